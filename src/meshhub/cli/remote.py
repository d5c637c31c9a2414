"""Services as the command line uses them: address, API key, and conversions as if they were local."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from meshhub.cli import show
from meshhub.cli.conversion import ConvertFlags
from meshhub.cli.files import STREAM
from meshhub.cli.outputs import Output
from meshhub.cli.progress import show_progress
from meshhub.cli.verbosity import is_quiet, is_verbose
from meshhub.errors import MissingDependency, OutputExists, printable
from meshhub.model.progress import Listener, Progress

if TYPE_CHECKING:
    from meshhub.client import Client, JobDescription

KEY = "MESHHUB_API_KEY"
"""Variable with the API key."""

KEY_FILE = "MESHHUB_API_KEY_FILE"
"""Variable with the path of a file that holds the API key."""

server_option = click.option(
    "--server",
    envvar="MESHHUB_SERVER",
    metavar="URL",
    help=f"Service to use (default: MESHHUB_SERVER); its API key is in {KEY}, or in the file that {KEY_FILE} names.",
)
"""Option for the address of a service. A flag for the key would show it in the list of processes."""


def open_client(server: str | None) -> Client:
    """Return a client of a service. Raises click.UsageError, MeshhubError."""
    if not server:
        raise click.UsageError("name the service with --server URL or MESHHUB_SERVER")
    try:
        from meshhub.client import Client
    except ImportError as error:
        raise MissingDependency(str(error)) from error
    return Client(server, key=_read_key())


def convert_remote(source: str, output: Output, flags: ConvertFlags, options: dict[str, Any]) -> None:
    """Convert one file on the service of the flags, and print the report."""
    if STREAM in (source, output.path):
        raise click.UsageError("--server takes files, not standard input and output")
    target = Path(output.path)
    if flags.skip_existing and target.is_file():
        show.print_skipped(source, output.path, is_json=flags.as_json)
        return
    if target.exists() and not flags.force:
        raise OutputExists(f"{output.path} exists; use {output.overwrite} to overwrite it")
    # a log and a bar would overwrite each other
    with (
        show.errors_as_json(flags.as_json),
        open_client(flags.server) as client,
        show_progress(is_silent=flags.as_json or is_quiet() or is_verbose()) as progress,
    ):
        if output.folder is not None:
            output.folder.mkdir(parents=True, exist_ok=True)
        job = client.convert(source, target, to=output.to, on_change=relay_progress(progress), options=options)
    if flags.as_json:
        show.as_json(job.report)
        return
    print_result(output.path, job)


def print_result(path: str, job: JobDescription) -> None:
    """Print the size of a downloaded result, and its notes."""
    size = show.format_bytes(job.result.bytes) if job.result is not None else "0 bytes"
    show.inform(printable(f"{path}: {size}"))
    for note in (job.report or {}).get("notes", []):
        if isinstance(note, dict):
            show.inform(printable(f"note: {note.get('message', '')} [{note.get('code', '')}]"), indent="  ")


def relay_progress(listener: Listener | None) -> Callable[[JobDescription], None] | None:
    """Return a callback for the changes of a job that shows its progress."""
    if listener is None:
        return None

    def relay(job: JobDescription) -> None:
        step = job.progress
        if step is not None:
            listener(
                Progress(
                    step=step.step,
                    kind=step.kind,
                    label=step.label,
                    index=step.index,
                    count=step.count,
                    fraction=step.fraction,
                )
            )

    return relay


def _read_key() -> str | None:
    key = os.environ.get(KEY, "").strip()
    path = os.environ.get(KEY_FILE, "").strip()
    if not key and path:
        # a file that is not text has no valid key, which the client reports
        key = Path(path).read_text(encoding="utf-8", errors="replace").strip()
    return key or None
