"""`meshhub convert`: one file, many files, or a pipe."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path, PurePath
from typing import Any

import click
import msgspec

from meshhub.cli import show
from meshhub.cli.exits import BATCH_FAILED, EXIT_HELP, code_of, explained
from meshhub.cli.files import STREAM, bounded_hooks, deadline, expanded, identity, read_from, unique, worker_log
from meshhub.cli.flags import RegistryCommand
from meshhub.engine.isolated import Isolated
from meshhub.errors import MeshhubError, OutputExists, RequestError, printable
from meshhub.model.report import Report
from meshhub.model.source import Target
from meshhub.pipeline.resolve import unsupported_target
from meshhub.registry import Registry


class _Job(msgspec.Struct):
    """One file of a batch."""

    source: Path
    target: Path
    report: Report | None = None
    error: Exception | None = None


@click.command(cls=RegistryCommand, epilog=EXIT_HELP)
@click.argument("paths", nargs=-1, required=True, metavar="INPUT... [OUTPUT]")
@click.option("--to", metavar="FORMAT", help="The target format; without it the output's extension tells.")
@click.option(
    "-o", "--output-dir", type=click.Path(file_okay=False, path_type=Path), help="Convert every input into here."
)
@click.option("-f", "--force", is_flag=True, help="Overwrite files that exist.")
@click.option("-j", "--jobs", type=click.IntRange(1, 256), help="Conversions at once; the cores unless told.")
@click.option("--timeout", type=float, default=90.0, show_default=True, metavar="SECONDS", help="A file; 0 is none.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
@click.option("--json", "as_json", is_flag=True, help="The report as JSON on standard output.")
@click.pass_context
def convert(
    ctx: click.Context,
    paths: tuple[str, ...],
    to: str | None,
    output_dir: Path | None,
    force: bool,
    jobs: int | None,
    timeout: float,
    quiet: bool,
    as_json: bool,
    options: dict[str, Any],
    registry: Registry,
) -> None:
    """Convert model files.

    \b
    meshhub convert IN OUT               one file; OUT's extension tells the format
    meshhub convert IN --to FORMAT       one file, written beside IN
    meshhub convert IN... --to FORMAT --output-dir DIR
                                         many files; a folder stands for its model files
    meshhub convert - OUT | IN - --to FORMAT
                                         from standard input, to standard output

    An existing file is overwritten only with --force, an input of the command never. Operations run
    in one order, whatever the order of the flags: repair, reduce, scale, flatten, place.
    """
    limit = deadline(timeout)
    if output_dir is not None:
        if to is None:
            raise click.UsageError("--output-dir needs --to FORMAT")
        if STREAM in paths:
            raise click.UsageError("standard input has no name to write under: give an OUTPUT instead of --output-dir")
        ctx.exit(_batch(registry, paths, to, output_dir, force, jobs, limit, quiet, as_json, options))
    source, target = _one(registry, paths, to)
    registry = registry.using(Isolated(workers=1, method="fork", log=worker_log()), bounded_hooks(limit))
    try:
        with _closing(registry):
            report = _single(registry, source, target, to, force, limit, as_json, options)
    except (MeshhubError, OSError) as error:
        if as_json and target != STREAM:
            show.as_json({"error": explained(error), "error_code": code_of(error)})
        raise
    if as_json:
        show.as_json(report)
    elif not quiet:
        _tell(target, report)


def _one(registry: Registry, paths: tuple[str, ...], to: str | None) -> tuple[str, str]:
    """Input and output of a single conversion."""
    if len(paths) > 2:
        raise click.UsageError("several inputs need --to FORMAT and --output-dir DIR")
    if len(paths) == 2:
        _check_output(registry, paths[0], paths[1], to)
        return paths[0], paths[1]
    if to is None:
        raise click.UsageError("give an OUTPUT, or --to FORMAT to write beside the input")
    if paths[0] == STREAM:
        return STREAM, STREAM
    if Path(paths[0]).is_dir():
        raise click.UsageError(f"{paths[0]} is a folder: say --output-dir DIR too, to convert the files in it")
    return paths[0], str(Path(paths[0]).with_suffix(_extension(registry, to)))


def _check_output(registry: Registry, source: str, target: str, to: str | None) -> None:
    """Refuse a second path that is an input: a shell puts two there for `*.stl`. Raises click.UsageError."""
    format_of = registry.declarations.format_of
    path = Path(target)
    named = format_of(path.suffix)
    wanted = named if to is None else format_of(to)
    exists = path.is_file() and path.stat().st_size > 0
    hint = "to convert several files, name a folder: --output-dir DIR"
    if wanted is not None and path.suffix.lower() not in wanted.extensions and (exists or named is not None):
        raise click.UsageError(f"{target} is not named like a file of the format {wanted.id}; {hint}")
    if exists and named is not None and source != STREAM and format_of(Path(source).suffix) == named:
        raise click.UsageError(f"{target} exists and has the format of the input, so it may be one; {hint}")


def _extension(registry: Registry, to: str) -> str:
    known = registry.declarations.format_of(to)
    if known is None:
        raise unsupported_target(to, registry.declarations)
    return known.extensions[0]


@contextlib.contextmanager
def _closing(registry: Registry) -> Iterator[None]:
    try:
        yield
    finally:
        registry.close()


def _single(
    registry: Registry,
    source: str,
    target: str,
    to: str | None,
    force: bool,
    limit: float | None,
    as_json: bool,
    options: dict[str, Any],
) -> Report:
    if target != STREAM:
        if Path(target).is_file() and identity(target) == identity(source):
            raise click.UsageError(f"{target} is the input itself; give another OUTPUT")
        return registry.convert(read_from(source), target, to=to, timeout=limit, overwrite=force, **options)
    if to is None:
        raise click.UsageError("standard output has no extension: say --to FORMAT")
    if as_json:
        raise click.UsageError("standard output takes either the model or --json; give an OUTPUT file")
    if sys.stdout is None:
        raise click.UsageError("standard output is closed; give an OUTPUT file")
    if sys.stdout.isatty():
        raise click.UsageError("standard output is a terminal; send it to a file or a pipe")
    if _is_standard_output(source):
        raise click.UsageError("standard output is the input itself; send it to another file")
    held = Target()
    report = registry.convert(read_from(source), held, to=to, timeout=limit, **options)
    try:
        sys.stdout.buffer.write(held.read())
        sys.stdout.buffer.flush()
    except OSError as error:
        raise OSError(error.errno, error.strerror, "standard output") from error
    if len(held.names) > 1:
        click.echo(
            "note: materials and textures are files of their own and were left out; give an OUTPUT file", err=True
        )
    return report


def _is_standard_output(source: str) -> bool:
    """Whether the shell sends standard output to the file that the input comes from."""
    output = os.fstat(sys.stdout.fileno())
    return stat.S_ISREG(output.st_mode) and identity(source) == (output.st_dev, output.st_ino)


def _tell(target: str, report: Report) -> None:
    name = "standard output" if target == STREAM else target
    click.echo(printable(f"{name}: {show.summary(report)}"), err=True)
    for line in show.figures(report):
        click.echo(f"  {line}", err=True)
    for note in report.notes:
        click.echo(f"  {show.note_line(note)}", err=True)


def _batch(
    registry: Registry,
    paths: tuple[str, ...],
    to: str,
    output_dir: Path,
    force: bool,
    jobs: int | None,
    limit: float | None,
    quiet: bool,
    as_json: bool,
    options: dict[str, Any],
) -> int:
    """Convert many files; the exit status."""
    suffix = _extension(registry, to)
    readable = frozenset(
        extension for one in registry.declarations.readers for extension in one.capability.format.extensions
    )
    taken: set[str] = set()
    batch = []
    for path, folder in expanded(paths, readable, output_dir):
        name = folder / PurePath(path.name).with_suffix(suffix)
        batch.append(_Job(path, unique(output_dir / name, taken)))
    inputs = {identity(job.source) for job in batch}
    engine = Isolated(workers=jobs, queue=None, log=worker_log())
    registry = registry.using(engine, bounded_hooks(limit, method=None))

    def work(job: _Job) -> _Job:
        try:
            if job.target.is_file() and identity(job.target) in inputs:
                raise RequestError(
                    f"{job.target} is an input of this command; name another --output-dir", code=OutputExists.code
                )
            job.target.parent.mkdir(parents=True, exist_ok=True)
            job.report = registry.convert(job.source, job.target, to=to, timeout=limit, overwrite=force, **options)
        except (MeshhubError, OSError) as error:
            job.error = error
        return job

    # twice as many threads as workers: one prepares while another waits for its worker
    threads = min(2 * engine.workers, len(batch))
    with _closing(registry), _progress(len(batch), quiet or as_json) as advance, ThreadPoolExecutor(threads) as pool:
        try:
            for done in as_completed([pool.submit(work, job) for job in batch]):
                advance(done.result())
        except BaseException:
            registry.close()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    failed = [job for job in batch if job.error is not None]
    if as_json:
        show.as_json([_told(job) for job in batch])
    elif not quiet:
        _summarise(batch)
    for job in failed if quiet or as_json else ():
        click.echo(printable(f"error: {job.source}: {explained(job.error or Exception())}"), err=True)
    return BATCH_FAILED if failed else 0


@contextlib.contextmanager
def _progress(total: int, silent: bool) -> Iterator[Callable[[_Job], None]]:
    """A function that counts finished jobs on a bar; no bar where nobody looks."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, disable=silent or not sys.stderr.isatty()) as bar:
        task = bar.add_task("converting", total=total)
        yield lambda job: bar.update(task, advance=1, description=escape(printable(job.source.name)))


def _told(job: _Job) -> dict[str, object]:
    told: dict[str, object] = {"file": str(job.source), "output": str(job.target)}
    if job.error is not None:
        return told | {"error": explained(job.error), "error_code": code_of(job.error)}
    return told | {"report": msgspec.to_builtins(job.report)}


def _summarise(batch: list[_Job]) -> None:
    rows = []
    for job in batch:
        if job.report is not None:
            notes = sorted({note.code for note in job.report.notes})
            result = show.summary(job.report) + (f" ({', '.join(notes)})" if notes else "")
            rows.append((str(job.source), str(job.target), result))
        elif job.error is not None:
            rows.append((str(job.source), "", f"error: {explained(job.error)}"))
    show.table(("input", "output", "result"), rows, err=True)
    good = sum(job.report is not None for job in batch)
    click.echo(f"{good} converted, {len(batch) - good} failed", err=True)
