"""Services as the command line uses them: address, API key, and conversions as if they were local."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from meshhub.cli import report_text, terminal
from meshhub.cli.batch import Batch, Conversion, identify_inputs, list_conversions, perform_all
from meshhub.cli.convert_flags import ConvertFlags
from meshhub.cli.outputs import Output
from meshhub.cli.paths import STREAM, is_zip, readable_extensions
from meshhub.cli.progress import show_progress
from meshhub.cli.server_flags import KEY, KEY_FILE
from meshhub.cli.single import Inputs, print_report
from meshhub.cli.target_checks import is_kept, suggesting_overwrite
from meshhub.cli.texts import labeled, tr
from meshhub.cli.verbosity import is_quiet, is_verbose
from meshhub.errors import MeshhubError, MissingDependency, printable
from meshhub.model.progress import Listener, Progress
from meshhub.model.report import Report
from meshhub.registry import Registry

if TYPE_CHECKING:
    from meshhub.client import Client, JobDescription

T = TypeVar("T")

_JOB_COUNT = 4
"""Maximum parallel jobs of a command; fewer than the unfinished jobs that the Free plan allows."""

_RATE_PAUSES_S = (10.0,) * 12
"""Seconds until another attempt after the rate limit of the plan: two minutes in all, because rates count one minute.
"""


def open_client(server: str | None) -> Client:
    """Return a client of a service. Raises click.UsageError, MeshhubError."""
    if not server:
        raise click.UsageError("name the service with --server URL or MESHHUB_SERVER")
    try:
        from meshhub.client import Client
    except ImportError as error:
        raise MissingDependency(str(error)) from error
    return Client(server, key=_read_key())


def check_remote_sources(registry: Registry, *paths: str) -> None:
    """Reject streams, and archives, which commands unpack only for work on this machine. Raises click.UsageError."""
    if STREAM in paths:
        raise click.UsageError("--server takes files, not standard input and output")
    for path in paths:
        if is_zip(path) and Path(path).suffix.lower() not in readable_extensions(registry):
            raise click.UsageError(f"--server takes models, and {path} is an archive; unpack it, or omit --server")


def waiting_at_limits(send: Callable[[], T], pause: Callable[[float], None] = time.sleep) -> T:
    """Return what a request returns; at the rate limit of the plan, wait, and send it again. Raises MeshhubError."""
    for pause_s in _RATE_PAUSES_S:
        try:
            return send()
        except MeshhubError as error:
            if error.error_code not in ("rate_limit_exceeded", "too_many_jobs"):
                raise
        pause(pause_s)
    return send()


def convert_remote(
    registry: Registry, inputs: Inputs, output: Output, flags: ConvertFlags, options: dict[str, Any]
) -> None:
    """Convert one file, or several into one, on the service of the flags, and print the report."""
    check_remote_sources(registry, *inputs.paths)
    if output.path == STREAM:
        raise click.UsageError("--server takes files, not standard input and output")
    target = Path(output.path)
    if flags.skip_existing and is_kept(registry, target, list(map(Path, inputs.paths))):
        terminal.print_skipped(str(inputs), output.path, is_json=flags.as_json)
        return
    # a log and a bar would overwrite each other
    with (
        terminal.errors_as_json(flags.as_json),
        suggesting_overwrite(output.overwrite),
        open_client(flags.server) as client,
        show_progress(is_silent=flags.as_json or is_quiet() or is_verbose()) as progress,
    ):
        if output.folder is not None:
            output.folder.mkdir(parents=True, exist_ok=True)
        source = list(inputs.paths) if flags.combine else inputs.paths[0]
        job = client.convert(
            source,
            target,
            target=output.to,
            overwrite=flags.overwrite,
            on_change=relay_progress(progress),
            options=options,
        )
    if flags.as_json:
        terminal.as_json(job.report)
        return
    print_result(target, job, registry)


class _RunningJobs:
    """Jobs for which a command waits in several threads."""

    def __init__(self, client: Client) -> None:
        """Begin without jobs of the client."""
        self._client = client
        self._ids: set[str] = set()
        self._has_stopped = threading.Event()

    def watch(self, job: JobDescription) -> None:
        """Handle a change of a job. Raises KeyboardInterrupt if the command ends."""
        if job.is_finished:
            self._ids.discard(job.id)
            return
        self._ids.add(job.id)
        if self._has_stopped.is_set():
            raise KeyboardInterrupt

    def pause(self, seconds: float) -> None:
        """Wait. Raises KeyboardInterrupt if the command ends meanwhile."""
        if self._has_stopped.wait(seconds):
            raise KeyboardInterrupt

    def cancel(self) -> None:
        """Cancel the jobs, which ends the waits."""
        self._has_stopped.set()
        for job_id in tuple(self._ids):
            with contextlib.suppress(MeshhubError):
                self._client.cancel(job_id)


class _RemoteBatch(Batch, frozen=True, kw_only=True):
    """Batch that a service converts."""

    client: Client
    running: _RunningJobs

    def convert(self, conversion: Conversion) -> None:
        """Convert a file on the service; at the rate limit of the plan, wait. Raises MeshhubError, OSError."""
        with suggesting_overwrite("--force"):
            conversion.job = waiting_at_limits(
                lambda: self.client.convert(
                    conversion.source,
                    conversion.target,
                    target=self.to,
                    overwrite=self.flags.overwrite,
                    on_change=self.running.watch,
                    options=self.options,
                ),
                self.running.pause,
            )
        conversion.report = read_report(conversion.job)


def convert_batch_remote(
    registry: Registry, paths: tuple[str, ...], to: str, output_dir: Path, flags: ConvertFlags, options: dict[str, Any]
) -> int:
    """Convert many files on the service of the flags, print a summary, and return the exit status."""
    check_remote_sources(registry, *paths)
    with contextlib.ExitStack() as archives, open_client(flags.server) as client:
        conversions = list_conversions(registry, paths, to, output_dir, flags, archives)
        inputs = identify_inputs(paths, conversions)
        running = _RunningJobs(client)
        batch = _RemoteBatch(registry, to, output_dir, flags, options, inputs, client=client, running=running)
        return perform_all(batch, conversions, flags.jobs or _JOB_COUNT, running.cancel)


def print_result(path: Path, job: JobDescription, registry: Registry) -> None:
    """Print the report of a downloaded result as that of a local conversion; of a batch, only the size of its ZIP."""
    report = read_report(job)
    if report is None:
        terminal.inform(printable(f"{path}: {report_text.format_bytes(path.stat().st_size)}"))
        if job.report and "target" in job.report:
            text = tr("the report of the service cannot be read, so its notes are missing; update meshhub")
            terminal.inform(labeled("note", text))
    else:
        print_report(str(path), report, registry)


def read_report(job: JobDescription) -> Report | None:
    """Return the report of a job as far as the service summarized it; None for a batch."""
    from meshhub.service.jobs.description import read_summary

    try:
        return read_summary(job.report or {})
    except msgspec.ValidationError:
        return None


def relay_progress(listener: Listener | None) -> Callable[[JobDescription], None] | None:
    """Return a callback for the changes of a job that shows its progress."""
    if listener is None:
        return None

    def relay(job: JobDescription) -> None:
        step = job.progress
        if step is not None:
            listener(msgspec.convert(step, Progress, from_attributes=True))

    return relay


def _read_key() -> str | None:
    key = os.environ.get(KEY, "").strip()
    path = os.environ.get(KEY_FILE, "").strip()
    if not key and path:
        # a file that is not text contains no valid key, which the client reports
        key = Path(path).read_text(encoding="utf-8", errors="replace").strip()
    return key or None
