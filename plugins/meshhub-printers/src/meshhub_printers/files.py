"""Files on printers: checked before anything is sent, sent once, and started at most once."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO
from urllib.parse import parse_qsl, unquote

from meshhub import NetworkPrinter, OutputExists, RequestError, UnreadableFile
from meshhub_printers import EXTENSIONS
from meshhub_printers.hosts import Host, PrinterError, find_file, find_host, read_hosts
from meshhub_printers.services import IDLE, SERVICES, Service

MAX_PARALLEL_COUNT = 16
"""Printers that are asked at once."""

MAX_PATH_LENGTH = 200
"""Characters of a path, which all three services take."""

_FORM = "write moonraker://printer/part.gcode, or moonraker://printer/part.gcode?print=true"


class PrinterFile:
    """A file on a printer."""

    def __init__(self, service: Service, path: str, *, start: bool) -> None:
        """Name a file, and whether its print starts after the upload."""
        self.service, self.path, self.start = service, path, start
        self.is_present = False

    def fetch(self, file: BinaryIO) -> None:  # noqa: ARG002
        """Raise UnreadableFile: printers only receive files. The host asks for a present one before it replaces it."""
        if self.is_present:
            raise self._exists()
        raise UnreadableFile(f"files are not read from printers; name a local copy of {self.path[:60]!r}")

    def store(self, files: Sequence[Path], *, overwrite: bool) -> None:
        """Send the result, after the printer is checked.

        Raises:
            OutputExists: The file exists and `overwrite` is false.
            PrinterError: The printer cannot be reached, is busy, is full, or rejects the key.
        """
        if len(files) > 1:
            raise PrinterError(errno.EINVAL, "a printer takes one file; write G-code, without companions")
        service, file = self.service, files[0]
        state = service.read_state()
        if self.start and state not in IDLE:
            raise PrinterError(
                errno.EBUSY,
                f"{service.name} is {state[:40]}, so no print starts and nothing was sent; omit ?print=true",
            )
        if not overwrite and service.has_file(self.path):
            self.is_present = True
            raise self._exists()
        free = service.read_free_bytes()
        if free is not None and free < file.stat().st_size:
            raise PrinterError(errno.ENOSPC, f"{service.name} has only {free:,} bytes free; delete files there")
        has_started = service.upload(file, self.path, overwrite=overwrite, start=self.start)
        if self.start and not has_started:
            raise PrinterError(
                errno.EBUSY, f"{self.path[:60]} is on {service.name}, but its print did not start; start it there"
            )

    def _exists(self) -> OutputExists:
        return OutputExists(f"{self.path[:60]} already exists on {self.service.name} and was not changed")


def open_printer(address: str) -> PrinterFile:
    """Return the file at an address such as octoprint://name/folder/part.gcode?print=true.

    Raises:
        RequestError: The address has another form.
        InvalidOption: The user's configuration file does not name the printer.
    """
    scheme, _, rest = address.partition("://")
    place, _, query = rest.partition("?")
    name, _, path = place.partition("/")
    path = unquote(path)
    options = dict(parse_qsl(query, keep_blank_values=True))
    start = options.pop("print", "false")
    if options or start not in ("true", "false") or not name:
        raise RequestError(f"the address of a printer has no such options; {_FORM}")
    is_plain = path.isprintable() and not any(part in ("", ".", "..") for part in path.split("/"))
    if not is_plain or "\\" in path or len(path) > MAX_PATH_LENGTH:
        raise RequestError(f"the path of a file on a printer is empty, too long, or has '..'; {_FORM}")
    if not path.lower().endswith(EXTENSIONS):
        raise RequestError(f"printers print G-code, not {Path(path).suffix or 'a file without an extension'}; {_FORM}")
    kind = scheme.lower()
    return PrinterFile(SERVICES[kind](find_host(kind, name), name), path, start=start == "true")


def list_printers(scheme: str) -> list[NetworkPrinter]:
    """Return the printers of one kind with their states. Raises PrinterError for an invalid configuration file."""
    hosts = read_hosts() if find_file().exists() else {}
    named = [(name, host) for name, host in hosts.items() if host.kind == scheme]
    with ThreadPoolExecutor(MAX_PARALLEL_COUNT) as pool:
        return list(pool.map(lambda item: _ask(*item), named))


def _ask(name: str, host: Host) -> NetworkPrinter:
    state = error = ""
    try:
        state = SERVICES[host.kind](host, name).read_state()
    except PrinterError as problem:
        error = str(problem.strerror)
    return NetworkPrinter(address=f"{host.kind}://{name}", name=name, state=state, error=error)
