"""Console script `meshhub-printers`: list the printers of the user with their states, and send files to them."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from meshhub import MeshhubError, OutputExists, RequestError
from meshhub_printers.files import open_printer
from meshhub_printers.hosts import Host, read_hosts
from meshhub_printers.services import SERVICES, PrinterError

USAGE = """\
usage: meshhub-printers [--json]
       meshhub-printers send FILE ADDRESS

List the printers of the configuration file with their states, or send a file of
G-code to an address such as moonraker://voron/part.gcode?print=true.
"""

MAX_PARALLEL_COUNT = 16
"""Printers that are asked at once."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the script; return 1 if a printer cannot be asked or rejects a file, 2 for a wrong command line or file."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    if len(words) == 3 and words[0] == "send":
        return _send(Path(words[1]), words[2])
    if words not in ([], ["--json"]):
        sys.stderr.write(USAGE)
        return 0 if words in (["--help"], ["-h"]) else 2
    try:
        hosts = read_hosts()
    except MeshhubError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    with ThreadPoolExecutor(MAX_PARALLEL_COUNT) as pool:
        states = list(pool.map(lambda item: _ask(*item), hosts.items()))
    rows = [
        {"name": name, "address": f"{host.kind}://{name}", "url": host.url, "state": state, "error": error}
        for (name, host), (state, error) in zip(hosts.items(), states, strict=True)
    ]
    if words:
        print(json.dumps(rows, indent=2))  # noqa: T201
    else:
        width = max((len(row["address"]) for row in rows), default=0)
        for row in rows:
            print(f"{row['address']:{width}}  {row['state'] or row['error']}")  # noqa: T201
    return 1 if any(error for _, error in states) else 0


def _send(file: Path, address: str) -> int:
    """Send a file, which never replaces one on the printer."""
    try:
        if not file.is_file():
            raise RequestError(f"{file} does not exist or is a folder; name a file of G-code")
        open_printer(address).store([file], overwrite=False)
    except MeshhubError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1 if isinstance(error, OutputExists) else 2
    except OSError as error:
        sys.stderr.write(f"error: {error.strerror or error}\n")
        return 1
    return 0


def _ask(name: str, host: Host) -> tuple[str, str]:
    """Return the state of a printer, or the reason why it is not known."""
    try:
        return SERVICES[host.kind](host, name).read_state(), ""
    except PrinterError as error:
        return "", str(error.strerror)


if __name__ == "__main__":
    sys.exit(main())
