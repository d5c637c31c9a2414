"""Convert the models that arrive in a folder, until a signal: a hot folder of a print farm, for example."""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, NamedTuple

import click
from msgspec import Struct, structs

from meshhub.cli import report_text, terminal
from meshhub.cli.batch import Batch, Conversion, as_data, describe_counts, print_error
from meshhub.cli.convert_flags import ConvertFlags
from meshhub.cli.naming import OutputNames
from meshhub.cli.paths import list_models, readable_extensions
from meshhub.cli.processes import bounded_hooks, create_engine
from meshhub.cli.target_checks import find_format
from meshhub.cli.texts import labeled, tr
from meshhub.cli.verbosity import is_verbose
from meshhub.errors import printable
from meshhub.model.chain import Request
from meshhub.registry import Registry

POLL_S = 1.0
"""Seconds between two listings of the folder. It is polled because network file systems do not report changes."""

_SETTLE_S = 3.0
"""Seconds for which size and time of a complete file must not change; NFS caches both for as long."""


class _Version(NamedTuple):
    """State of a file; a different state means different content."""

    inode: int
    size: int
    modified_ns: int

    @classmethod
    def of(cls, path: Path) -> _Version | None:
        """Return the state of a file; None without a file."""
        try:
            status = path.stat()
        except OSError:
            return None
        return cls(status.st_ino, status.st_size, status.st_mtime_ns)


class _File(Struct):
    """File of a watched folder."""

    version: _Version
    """State at the last listing."""

    since: float
    """Time of the first listing with this state."""

    converted: _Version | None = None
    """State at the last conversion."""

    result: _Version | None = None
    """Output of the last conversion."""

    is_busy: bool = False
    """Whether a conversion runs or waits."""


class Arrivals:
    """Files of a folder that are complete and not yet converted."""

    def __init__(self, folder: Path, extensions: frozenset[str], output_dir: Path | None = None) -> None:
        self._folder = folder
        self._extensions = extensions
        self._output_dir = output_dir
        self._is_available = True
        self.files: dict[Path, _File] = {}

    def skip_present(self) -> None:
        """Treat the files that are in the folder now as converted."""
        now = time.monotonic()
        versions = [(path, _Version.of(path)) for path in self._list_paths() or ()]
        self.files = {path: _File(version, now, version) for path, version in versions if version is not None}

    def poll(self) -> Iterator[Path]:
        """Yield the files that have not changed for a while; each version of a file once."""
        paths = self._list_paths()
        if paths is None:
            return
        self.files = {path: file for path, file in self.files.items() if path in paths or file.is_busy}
        now = time.monotonic()
        for path in paths:
            version = _Version.of(path)
            if version is None:
                continue
            file = self.files.setdefault(path, _File(version, now))
            if file.version != version:
                file.version, file.since = version, now
            elif now - file.since >= _SETTLE_S and file.converted != version and not file.is_busy:
                file.converted = version
                yield path

    def _list_paths(self) -> list[Path] | None:
        """Return the model files; None while the folder is not available, for example if the network is lost."""
        paths = None
        with contextlib.suppress(OSError):
            paths = list_models(self._folder, self._extensions, self._output_dir)
        if not self._folder.is_dir():
            paths = None
        is_available = paths is not None
        if is_available != self._is_available:
            self._is_available = is_available
            state = "is available again" if is_available else "is not available; waiting for it"
            terminal.print_line(printable(f"{self._folder} {state}"), err=True)
        return paths


class _Watch:
    """Conversions of one watched folder."""

    def __init__(self, folder: Path, batch: Batch) -> None:
        registry, output_dir, flags = batch.registry, batch.output_dir, batch.flags
        self._folder = folder
        self._batch = batch
        self._again = structs.replace(batch, flags=structs.replace(flags, force=True, skip_existing=False))
        self._arrivals = Arrivals(folder, readable_extensions(registry), output_dir)
        target = find_format(registry, batch.to)
        self._names = OutputNames(output_dir, target, flags.name, keeps_existing=flags.skip_existing)
        self.counts: Counter[str] = Counter()

    def submit(self, pool: ThreadPoolExecutor) -> Iterator[Future[Conversion]]:
        """Yield the conversions of the files that have arrived."""
        for source in self._arrivals.poll():
            subfolder = source.relative_to(self._folder).parent
            try:
                target = self._names.choose(source, subfolder)
            except click.UsageError as error:
                self.counts["failed"] += 1
                click.echo(printable(labeled("error", error.message)), err=True)
                continue
            file = self._arrivals.files[source]
            file.is_busy = True
            # the upload had paused, so its first result is incomplete
            is_own = file.result is not None and file.result == _Version.of(target)
            yield pool.submit(_perform, self._again if is_own else self._batch, Conversion(source, target))

    def finish(self, conversion: Conversion) -> None:
        """Print the result of a conversion."""
        file = self._arrivals.files[conversion.source]
        file.is_busy = False
        if isinstance(conversion.error, FileNotFoundError) and _Version.of(conversion.source) is None:
            # renamed or removed since the folder was listed, or the folder was lost
            file.converted = None
            return
        self.counts[conversion.outcome] += 1
        file.result = _Version.of(conversion.target) if conversion.report is not None else None
        if self._batch.flags.as_json:
            click.echo(json.dumps(as_data(conversion)))
        if conversion.error is not None:
            print_error(conversion)
        elif conversion.report is not None and not self._batch.flags.as_json:
            summary = report_text.summarize(conversion.report)
            terminal.inform(printable(f"{conversion.source} → {conversion.target}: {summary}"))
            terminal.print_timings(conversion.report)
        elif conversion.is_skipped and is_verbose():
            terminal.inform(printable(f"{conversion.target} {tr('exists, skipped')}"))


def _perform(batch: Batch, conversion: Conversion) -> Conversion:
    """Convert a file; even a defect of meshhub does not end the watch."""
    try:
        return batch.perform(conversion)
    except Exception as error:
        conversion.error = error
        return conversion


def convert_arrivals(
    registry: Registry, folder: Path, to: str, output_dir: Path, flags: ConvertFlags, options: dict[str, Any]
) -> None:
    """Convert the models in a folder and those that arrive there, until a signal. Raises click.UsageError."""
    if folder.resolve().is_relative_to(output_dir.resolve()):
        raise click.UsageError(f"results in {output_dir} would arrive in {folder}; name another --output-dir")
    # a wrong option ends the command immediately, instead of failing in each conversion
    registry.check_request(Request(target=to, options=options))
    engine = create_engine(flags.jobs, queue=None, method=None)
    registry = registry.using(engine, bounded_hooks(flags.timeout))
    watch = _Watch(folder, Batch(registry, to, output_dir, flags, options))
    terminal.inform(printable(tr("watching {folder}; Ctrl-C or SIGTERM ends").format(folder=folder)))
    with registry, ThreadPoolExecutor(2 * engine.workers) as pool:
        try:
            _run(watch, pool)
        except KeyboardInterrupt:
            # running conversions end without a result, and the next run converts their files
            registry.close()
            pool.shutdown(wait=False, cancel_futures=True)
    terminal.inform(describe_counts(watch.counts))


def _run(watch: _Watch, pool: ThreadPoolExecutor) -> None:
    pending: set[Future[Conversion]] = set()
    while True:
        started = time.monotonic()
        pending.update(watch.submit(pool))
        while (remaining := started + POLL_S - time.monotonic()) > 0:
            if not pending:
                time.sleep(remaining)
                break
            done, pending = wait(pending, remaining, FIRST_COMPLETED)
            for future in done:
                watch.finish(future.result())
