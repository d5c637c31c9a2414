"""Convert many files into a folder, several at a time."""

from __future__ import annotations

import contextlib
import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import msgspec

from meshhub.cli import report_text, terminal
from meshhub.cli.convert_flags import ConvertFlags
from meshhub.cli.exits import BATCH_FAILED, error_data, explained_here
from meshhub.cli.naming import OutputNames
from meshhub.cli.paths import expand_inputs, identity, is_zip, leads_elsewhere, readable_extensions
from meshhub.cli.processes import bounded_hooks, create_engine
from meshhub.cli.progress import show_count
from meshhub.cli.target_checks import find_format, is_foreign_model, is_kept, preview, suggesting_overwrite
from meshhub.cli.texts import labeled, tr
from meshhub.cli.verbosity import is_verbose
from meshhub.errors import MeshhubError, OutputExists, RequestError, printable
from meshhub.model.chain import Chain, Request
from meshhub.model.report import Report
from meshhub.model.source import Source, name_bed
from meshhub.pipeline.storages import is_address
from meshhub.registry import Registry

if TYPE_CHECKING:
    from meshhub.client import JobDescription


class Conversion(msgspec.Struct):
    """One file of a batch, and its result."""

    source: Path
    target: Path
    model: Source | None = None
    """Model of an archive; None: the file at `source`."""

    report: Report | None = None
    job: JobDescription | None = None
    chain: Chain | None = None
    error: Exception | None = None
    is_skipped: bool = False

    @property
    def content(self) -> Path:
        """File with the content of the source."""
        return (self.model and self.model.path) or self.source

    @property
    def outcome(self) -> str:
        """Outcome of the conversion, for people."""
        if self.error is not None:
            return "failed"
        if self.chain is not None:
            return "would be converted"
        return "skipped" if self.is_skipped else "converted"


class Batch(msgspec.Struct, frozen=True):
    """Values that the conversions of a command share."""

    registry: Registry
    to: str
    output_dir: Path
    flags: ConvertFlags
    options: dict[str, Any]
    inputs: frozenset[tuple[int, int] | None] = frozenset()

    def perform(self, conversion: Conversion) -> Conversion:
        """Convert, skip or preview a file; an error becomes part of the result."""
        if conversion.error is not None:
            return conversion
        if self.options.get("each_bed"):
            conversion.target = conversion.target.with_name(name_bed(conversion.target.name, 1))
        try:
            keeps = self.flags.skip_existing
            each_bed = self.options.get("each_bed") is True
            conversion.is_skipped = keeps and is_kept(
                self.registry, conversion.target, [conversion.source], each_bed=each_bed
            )
            if not conversion.is_skipped:
                self._write(conversion)
        except OutputExists as error:
            # another program has written the output since the check
            conversion.is_skipped = self.flags.skip_existing and not error.is_input
            conversion.error = None if conversion.is_skipped else error
        except (MeshhubError, OSError) as error:
            conversion.error = error
        return conversion

    def _write(self, conversion: Conversion) -> None:
        """Convert or preview a file. Raises MeshhubError, OSError."""
        target = conversion.target
        self._check_target(target)
        if self.flags.dry_run:
            self._preview(conversion)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        self.convert(conversion)

    def _check_target(self, target: Path) -> None:
        if target.is_file() and identity(target) in self.inputs:
            raise RequestError(
                f"{target} is an input of this command; name another --output-dir", error_code=OutputExists.error_code
            )
        if leads_elsewhere(target, self.output_dir):
            raise RequestError(
                f"{target} is a link to another file, or in a linked folder; remove the link, or name another "
                "--output-dir",
                error_code=OutputExists.error_code,
            )
        if target.is_file() and is_foreign_model(self.registry, target):
            raise RequestError(
                f"{target} exists and is not a result of meshhub; to replace it: --output {shlex.quote(str(target))} "
                "--force",
                error_code=OutputExists.error_code,
            )

    def _preview(self, conversion: Conversion) -> None:
        request = Request(target=self.to, options=self.options)
        source, target = conversion.model or Source.from_path(conversion.source), conversion.target
        overwrite = self.flags.overwrite
        with suggesting_overwrite("--force"):
            conversion.chain = preview(self.registry, source, target, request, overwrite=overwrite, creates_folder=True)

    def convert(self, conversion: Conversion) -> None:
        """Convert a file. Raises MeshhubError, OSError."""
        with suggesting_overwrite("--force"):
            conversion.report = self.registry.convert(
                conversion.model or conversion.source,
                conversion.target,
                target=self.to,
                timeout=self.flags.timeout,
                overwrite=self.flags.overwrite,
                options=self.options,
            )


def convert_batch(
    registry: Registry, paths: tuple[str, ...], to: str, output_dir: Path, flags: ConvertFlags, options: dict[str, Any]
) -> int:
    """Convert many files, print a summary, and return the exit status."""
    engine = create_engine(flags.jobs, queue=None, method=None)
    registry = registry.using(engine, bounded_hooks(flags.timeout))
    with registry, contextlib.ExitStack() as archives:
        conversions = list_conversions(registry, paths, to, output_dir, flags, archives)
        batch = Batch(registry, to, output_dir, flags, options, identify_inputs(paths, conversions))
        # twice as many threads as workers, so that one prepares while another waits for its worker
        threads = min(2 * engine.workers, len(conversions))
        return perform_all(batch, conversions, threads, registry.close)


def identify_inputs(paths: tuple[str, ...], conversions: list[Conversion]) -> frozenset[tuple[int, int] | None]:
    """Return the identities of the files that a command reads: models, and archives of models."""
    sources = (conversion.source for conversion in conversions)
    return frozenset(map(identity, map(Path, paths))) | frozenset(map(identity, sources))


def perform_all(batch: Batch, conversions: list[Conversion], threads: int, stop: Callable[[], None]) -> int:
    """Perform conversions in parallel, print a summary, and return the exit status.

    Args:
        conversions: Files.
        threads: Conversions at a time.
        stop: Ends running conversions early if an exception ends the command.
    """
    flags = batch.flags
    is_silent = flags.quiet or flags.as_json
    with show_count(len(conversions), is_silent=is_silent) as advance, ThreadPoolExecutor(threads) as pool:
        try:
            for done in as_completed([pool.submit(batch.perform, conversion) for conversion in conversions]):
                advance(done.result().source.name)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            stop()
            raise
    return _print_results(conversions, flags)


def list_conversions(
    registry: Registry,
    paths: tuple[str, ...],
    to: str,
    output_dir: Path,
    flags: ConvertFlags,
    archives: contextlib.ExitStack,
) -> list[Conversion]:
    """Return the models of a command with their outputs.

    Args:
        registry: Formats.
        paths: Files, folders and ZIP archives of models.
        to: Target format.
        archives: Keeps the models of archives until it closes.
    Raises:
        click.UsageError: A folder has no model, or two inputs have one output.
        UnsupportedTarget: The target is not a format.
    """
    if any(map(is_address, paths)):
        raise click.UsageError("--output-dir takes files and folders; convert each address to its own OUTPUT")
    names = OutputNames(output_dir, find_format(registry, to), flags.name, keeps_existing=flags.skip_existing)
    extensions = readable_extensions(registry)
    inputs = [
        model
        for path, folder in expand_inputs(paths, extensions, output_dir)
        for model in _list_models(registry, path, folder, archives)
    ]
    outputs = names.choose_all([(model.path, model.folder) for model in inputs])
    return [
        Conversion(model.path, output, model.content, error=model.error)
        for model, output in zip(inputs, outputs, strict=True)
    ]


class _Input(NamedTuple):
    """Model of a command: a file, or a part of an archive."""

    path: Path
    folder: PurePath
    content: Source | None = None
    error: Exception | None = None


def _list_models(registry: Registry, path: Path, folder: PurePath, archives: contextlib.ExitStack) -> Iterator[_Input]:
    """Yield the models of a ZIP archive with their folders in it, or another file as it is."""
    if not is_zip(path) or path.suffix.lower() in readable_extensions(registry):
        yield _Input(path, folder)
        return
    try:
        models = archives.enter_context(registry.open_models(path))
    except (MeshhubError, OSError) as error:
        yield _Input(path, folder, error=error)
        return
    for model in models:
        # a ZIP archive may itself be a model, in a format that uses ZIP
        name = PurePath() if model.path == path else PurePath(model.name)
        yield _Input(path / name, folder / name.parent, model)


def _print_results(batch: list[Conversion], flags: ConvertFlags) -> int:
    failed = [conversion for conversion in batch if conversion.error is not None]
    if flags.as_json:
        terminal.as_json([as_data(conversion) for conversion in batch])
    elif flags.dry_run or not flags.quiet:
        _print_summary(batch, is_preview=flags.dry_run)
    for conversion in failed if flags.quiet or flags.as_json or flags.dry_run else ():
        print_error(conversion)
    return BATCH_FAILED if failed else 0


def print_error(conversion: Conversion) -> None:
    """Print the error of a conversion on standard error."""
    message = explained_here(conversion.error or Exception())
    click.echo(printable(labeled("error", f"{conversion.source}: {message}")), err=True)


def as_data(conversion: Conversion) -> dict[str, object]:
    """Return a conversion as data for programs."""
    data: dict[str, object] = {"file": str(conversion.source), "output": str(conversion.target)}
    if conversion.error is not None:
        return data | error_data(conversion.error)
    if conversion.is_skipped:
        return data | {"skipped": True}
    if conversion.chain is not None:
        return data | {"chain": msgspec.to_builtins(conversion.chain)}
    report = conversion.report if conversion.job is None else conversion.job.report
    return data | {"report": msgspec.to_builtins(report)}


def _print_summary(batch: list[Conversion], *, is_preview: bool) -> None:
    """Print a table: a preview on standard output, without errors, and results on standard error."""
    rows = []
    for conversion in batch:
        source = str(conversion.source)
        if conversion.error is not None and not is_preview:
            rows.append((source, "", labeled("error", explained_here(conversion.error))))
        elif conversion.is_skipped:
            rows.append((source, str(conversion.target), tr("exists, skipped")))
        elif conversion.chain is not None:
            rows.append((source, str(conversion.target), ", ".join(report_text.list_steps(conversion.chain))))
        elif conversion.report is not None:
            codes = {note.code for note in conversion.report.notes} - terminal.USUAL_NOTES
            rows.append((source, str(conversion.target), _add_codes(report_text.summarize(conversion.report), codes)))
    columns = ("input", "output", "steps" if is_preview else "result")
    terminal.table([tr(column) for column in columns], rows, err=not is_preview)
    for conversion in batch:
        if conversion.report is not None and is_verbose():
            terminal.inform(str(conversion.target))
            terminal.print_timings(conversion.report)
    terminal.inform(describe_counts(Counter(conversion.outcome for conversion in batch)))


def _add_codes(result: str, codes: set[str]) -> str:
    """Return the summary of a result with the codes of its notes."""
    return result + (f" ({', '.join(sorted(codes))})" if codes else "")


def describe_counts(counts: Counter[str]) -> str:
    """Describe how many conversions had each outcome."""
    rare = [outcome for outcome in ("skipped", "would be converted") if counts[outcome]]
    return ", ".join(f"{counts[outcome]} {tr(outcome)}" for outcome in ("converted", "failed", *rare))
