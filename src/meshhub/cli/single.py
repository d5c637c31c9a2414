"""Convert one file, from a path or standard input to a path or standard output."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import Any

import click

from meshhub.cli import show
from meshhub.cli.conversion import ConvertFlags, closing, extension_of
from meshhub.cli.exits import code_of, explained
from meshhub.cli.files import STREAM, bounded_hooks, identity, read_from, worker_log
from meshhub.engine.isolated import Isolated
from meshhub.errors import MeshhubError, printable
from meshhub.model.report import Report
from meshhub.model.source import Target
from meshhub.registry import Registry


def choose_output(registry: Registry, paths: tuple[str, ...], to: str | None) -> tuple[str, str]:
    """Return input and output of a single conversion. Raises click.UsageError, UnsupportedTarget."""
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
        raise click.UsageError(f"{paths[0]} is a folder; to convert the files in it, add --output-dir DIR")
    target = Path(paths[0]).with_suffix(extension_of(registry, to))
    if target.is_symlink():
        raise click.UsageError(f"{target} is a link to another file; give that file, or another one, as OUTPUT")
    return paths[0], str(target)


def _check_output(registry: Registry, source: str, target: str, to: str | None) -> None:
    """Reject a second path that is probably an input, as when a shell expands `*.stl` to two files."""
    format_of = registry.declarations.format_of
    path = Path(target)
    by_extension = format_of(path.suffix)
    target_format = by_extension if to is None else format_of(to)
    exists = path.is_file() and path.stat().st_size > 0
    hint = "to convert several files, name a folder: --output-dir DIR"
    if target_format is None:
        return
    if path.suffix.lower() not in target_format.extensions and (exists or by_extension is not None):
        raise click.UsageError(f"{target} does not have an extension of the format {target_format.id}; {hint}")
    source_format = format_of(Path(source).suffix)
    # the name of a stream or a pipe says nothing about its format
    is_named = source != STREAM and not source.startswith(("/dev/", "/proc/"))
    if exists and by_extension is not None and is_named and source_format in (by_extension, None):
        raise click.UsageError(f"{target} exists and has the format of the input, so it may be one; {hint}")


def convert_single(registry: Registry, source: str, target: str, flags: ConvertFlags, options: dict[str, Any]) -> None:
    """Convert one file and print the report."""
    engine = Isolated(workers=1, method="fork", log=worker_log())
    registry = registry.using(engine, bounded_hooks(flags.timeout))
    try:
        with closing(registry):
            if target == STREAM:
                report = _convert_to_stream(registry, source, flags, options)
            else:
                report = _convert_to_file(registry, source, target, flags, options)
    except (MeshhubError, OSError) as error:
        if flags.as_json and target != STREAM:
            show.as_json({"error": explained(error), "error_code": code_of(error)})
        raise
    if flags.as_json:
        show.as_json(report)
    elif not flags.quiet:
        _print_report(target, report)


def _convert_to_file(
    registry: Registry, source: str, target: str, flags: ConvertFlags, options: dict[str, Any]
) -> Report:
    if Path(target).is_file() and identity(target) == identity(source):
        raise click.UsageError(f"{target} is the input itself; give another OUTPUT")
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
        # what the buffer still holds would fail again when Python flushes it at the end, with exit status 120
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
