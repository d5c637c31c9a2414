"""Convert many files into a folder, several at a time."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path, PurePath
from typing import Any

import click
import msgspec

from meshhub.cli import show
from meshhub.cli.conversion import ConvertFlags, closing, extension_of, suggesting_overwrite
from meshhub.cli.exits import BATCH_FAILED, code_of, explained
from meshhub.cli.files import bounded_hooks, expand_inputs, identity, leads_elsewhere, make_unique, worker_log
from meshhub.engine.isolated import Isolated
from meshhub.errors import MeshhubError, OutputExists, RequestError, printable
from meshhub.model.report import Report
from meshhub.registry import Registry


class _Conversion(msgspec.Struct):
    """One file of a batch."""

    source: Path
    target: Path
    report: Report | None = None
    error: Exception | None = None


def convert_batch(
    registry: Registry, paths: tuple[str, ...], to: str, output_dir: Path, flags: ConvertFlags, options: dict[str, Any]
) -> int:
    """Convert many files, print a summary, and return the exit status."""
    batch = _list_conversions(registry, paths, to, output_dir)
    inputs = {identity(conversion.source) for conversion in batch}
    engine = Isolated(workers=flags.jobs, queue=None, log=worker_log())
    registry = registry.using(engine, bounded_hooks(flags.timeout, method=None))

    def work(conversion: _Conversion) -> _Conversion:
        target = conversion.target
        try:
            if target.is_file() and identity(target) in inputs:
                raise RequestError(
                    f"{target} is an input of this command; name another --output-dir", code=OutputExists.code
                )
            if leads_elsewhere(target, output_dir):
                raise RequestError(
                    f"{target} is a link to another file, or in a linked folder; remove the link, or name another "
                    "--output-dir",
                    code=OutputExists.code,
                )
            target.parent.mkdir(parents=True, exist_ok=True)
            with suggesting_overwrite("--force"):
                conversion.report = registry.convert(
                    conversion.source, target, to=to, timeout=flags.timeout, overwrite=flags.force, **options
                )
        except (MeshhubError, OSError) as error:
            conversion.error = error
        return conversion

    # twice as many threads as workers: one prepares while another waits for its worker
    threads = min(2 * engine.workers, len(batch))
    is_silent = flags.quiet or flags.as_json
    with closing(registry), _progress(len(batch), is_silent) as advance, ThreadPoolExecutor(threads) as pool:
        try:
            for done in as_completed([pool.submit(work, conversion) for conversion in batch]):
                advance(done.result())
        except BaseException:
            registry.close()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return _print_results(batch, flags)


def _list_conversions(registry: Registry, paths: tuple[str, ...], to: str, output_dir: Path) -> list[_Conversion]:
    extension = extension_of(registry, to)
    readers = registry.declarations.readers
    readable = frozenset(name for reader in readers for name in reader.capability.format.extensions)
    taken: set[str] = set()
    return [
        _Conversion(path, make_unique(output_dir / folder / PurePath(path.name).with_suffix(extension), taken))
        for path, folder in expand_inputs(paths, readable, output_dir)
    ]


@contextlib.contextmanager
def _progress(total: int, is_silent: bool) -> Iterator[Callable[[_Conversion], None]]:
    """Yield a function that advances a progress bar by one file; no bar without a terminal."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, disable=is_silent or not sys.stderr.isatty()) as bar:
        task = bar.add_task("converting", total=total)
        yield lambda done: bar.update(task, advance=1, description=escape(printable(done.source.name)))


def _print_results(batch: list[_Conversion], flags: ConvertFlags) -> int:
    failed = [conversion for conversion in batch if conversion.error is not None]
    if flags.as_json:
        show.as_json([_as_data(conversion) for conversion in batch])
    elif not flags.quiet:
        _print_summary(batch)
    for conversion in failed if flags.quiet or flags.as_json else ():
        message = explained(conversion.error or Exception())
        click.echo(printable(f"error: {conversion.source}: {message}"), err=True)
    return BATCH_FAILED if failed else 0


def _as_data(conversion: _Conversion) -> dict[str, object]:
    data: dict[str, object] = {"file": str(conversion.source), "output": str(conversion.target)}
    if conversion.error is not None:
        return data | {"error": explained(conversion.error), "error_code": code_of(conversion.error)}
    return data | {"report": msgspec.to_builtins(conversion.report)}


def _print_summary(batch: list[_Conversion]) -> None:
    rows = []
    for conversion in batch:
        source = str(conversion.source)
        if conversion.report is not None:
            codes = sorted({note.code for note in conversion.report.notes})
            result = show.summarize(conversion.report) + (f" ({', '.join(codes)})" if codes else "")
            rows.append((source, str(conversion.target), result))
        elif conversion.error is not None:
            rows.append((source, "", f"error: {explained(conversion.error)}"))
    show.table(("input", "output", "result"), rows, err=True)
    converted = sum(conversion.report is not None for conversion in batch)
    click.echo(f"{converted} converted, {len(batch) - converted} failed", err=True)
