"""Convert one file, from a path or standard input to a path or standard output."""

from __future__ import annotations

import os
import shlex
import stat
import sys
from pathlib import Path
from typing import Any, NamedTuple

import click
from msgspec import structs

from meshhub.cli import show
from meshhub.cli.conversion import ConvertFlags, closing, extension_of, suggesting_overwrite
from meshhub.cli.exits import code_of, explained
from meshhub.cli.files import STREAM, bounded_hooks, identity, is_own_output, read_from, worker_log
from meshhub.engine.isolated import Isolated
from meshhub.errors import MeshhubError, printable
from meshhub.model.chain import BUILT_IN
from meshhub.model.report import Report
from meshhub.model.source import Source, Target
from meshhub.pipeline.identify import identify
from meshhub.registry import Registry

_SEVERAL_HINT = "to convert several files, name a folder: --output-dir DIR"


class Output(NamedTuple):
    """Output of a single conversion; `overwrite` holds the flags that replace an existing file."""

    path: str
    overwrite: str = "--force"


def choose_output(registry: Registry, paths: tuple[str, ...], flags: ConvertFlags) -> tuple[str, Output]:
    """Return input and output of a single conversion. Raises click.UsageError, UnsupportedTarget."""
    source, *others = paths
    if flags.output is not None:
        if others:
            raise click.UsageError("--output takes one INPUT; several inputs need --to FORMAT and --output-dir DIR")
        _check_extension(registry, flags.output, flags.to)
        return source, Output(flags.output)
    if len(others) > 1:
        raise click.UsageError("several inputs need --to FORMAT and --output-dir DIR")
    if others:
        return source, _check_second_path(registry, source, others[0], flags)
    if flags.to is None:
        raise click.UsageError("give an OUTPUT, or --to FORMAT to write beside the input")
    if source == STREAM:
        return STREAM, Output(STREAM)
    if Path(source).is_dir():
        raise click.UsageError(f"{source} is a folder; to convert the files in it, add --output-dir DIR")
    target = Path(source).with_suffix(extension_of(registry, flags.to))
    if target.is_symlink():
        raise click.UsageError(f"{target} is a link to another file; give that file, or another one, as OUTPUT")
    return source, Output(str(target))


def _check_extension(registry: Registry, target: str, to: str | None) -> None:
    """Reject an output whose extension contradicts `--to`."""
    format_of = registry.declarations.format_of
    suffix = Path(target).suffix.lower()
    target_format = None if to is None else format_of(to)
    if target_format is not None and suffix not in target_format.extensions and format_of(suffix) is not None:
        raise click.UsageError(f"{target} does not have an extension of the format {target_format.id}; {_SEVERAL_HINT}")


def _check_second_path(registry: Registry, source: str, target: str, flags: ConvertFlags) -> Output:
    """Reject a second path that may be an input: a shell may have expanded `*` to two paths."""
    _check_extension(registry, target, flags.to)
    path = Path(target)
    # a pattern never matches the name of a stream or a pipe
    is_named = source != STREAM and not source.startswith(("/dev/", "/proc/"))
    if not is_named or not path.is_file() or path.stat().st_size == 0:
        return Output(target)
    declarations = registry.declarations
    by_extension, source_format = (declarations.format_of(Path(name).suffix) for name in (target, source))
    is_model = bool(declarations.readers_of(by_extension))
    replacing = f"--output {shlex.quote(target)} --force"
    # the same command may be repeated: an output of meshhub is not an original
    is_original = is_model and _holds_model(registry, path) and not is_own_output(path)
    is_input = is_model and (source_format in (by_extension, None) or (flags.force and is_original))
    if is_input or (by_extension is None and flags.to is not None):
        raise click.UsageError(f"{target} exists and may be an input; to replace it: {replacing}; {_SEVERAL_HINT}")
    return Output(target, replacing if is_original else "--force")


def _holds_model(registry: Registry, path: Path) -> bool:
    """Return whether a file is a model in a built-in format, judged by its content and not by its name."""
    declarations = registry.declarations
    readers = tuple(reader for reader in declarations.readers if reader.origin == BUILT_IN)
    try:
        identify(structs.replace(declarations, readers=readers), Source("model", path=path))
    except MeshhubError:
        return False
    return True


def convert_single(
    registry: Registry, source: str, output: Output, flags: ConvertFlags, options: dict[str, Any]
) -> None:
    """Convert one file and print the report."""
    engine = Isolated(workers=1, method="fork", log=worker_log())
    registry = registry.using(engine, bounded_hooks(flags.timeout))
    try:
        with closing(registry):
            if output.path == STREAM:
                report = _convert_to_stream(registry, source, flags, options)
            else:
                report = _convert_to_file(registry, source, output, flags, options)
    except (MeshhubError, OSError) as error:
        if flags.as_json and output.path != STREAM:
            show.as_json({"error": explained(error), "error_code": code_of(error)})
        raise
    if flags.as_json:
        show.as_json(report)
    elif not flags.quiet:
        _print_report(output.path, report)


def _convert_to_file(
    registry: Registry, source: str, output: Output, flags: ConvertFlags, options: dict[str, Any]
) -> Report:
    target = output.path
    if Path(target).is_file() and identity(target) == identity(source):
        raise click.UsageError(f"{target} is the input itself; give another OUTPUT")
    with suggesting_overwrite(output.overwrite):
        return registry.convert(
            read_from(source), target, to=flags.to, timeout=flags.timeout, overwrite=flags.force, **options
        )


def _convert_to_stream(registry: Registry, source: str, flags: ConvertFlags, options: dict[str, Any]) -> Report:
    _check_standard_output(source, flags)
    target = Target()
    report = registry.convert(read_from(source), target, to=flags.to, timeout=flags.timeout, **options)
    try:
        sys.stdout.buffer.write(target.read())
        sys.stdout.buffer.flush()
    except OSError as error:
        # Python would flush the rest of the buffer at exit, fail again, and exit with status 120
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise OSError(error.errno, error.strerror, "standard output") from error
    if len(target.names) > 1:
        click.echo("note: materials and textures need files of their own and were left out; give an OUTPUT", err=True)
    return report


def _check_standard_output(source: str, flags: ConvertFlags) -> None:
    if flags.to is None:
        raise click.UsageError("standard output has no extension; add --to FORMAT")
    if flags.as_json:
        raise click.UsageError("standard output takes either the model or --json; give an OUTPUT file")
    if sys.stdout is None:
        raise click.UsageError("standard output is closed; give an OUTPUT file")
    if sys.stdout.isatty():
        raise click.UsageError("standard output is a terminal; redirect it to a file or a pipe")
    output = os.fstat(sys.stdout.fileno())
    if stat.S_ISREG(output.st_mode) and identity(source) == (output.st_dev, output.st_ino):
        raise click.UsageError("standard output is the input itself; redirect it to another file")


def _print_report(target: str, report: Report) -> None:
    name = "standard output" if target == STREAM else target
    click.echo(printable(f"{name}: {show.summarize(report)}"), err=True)
    for line in show.list_figures(report):
        click.echo(f"  {line}", err=True)
    for note in report.notes:
        click.echo(f"  {show.note_line(note)}", err=True)
