"""Choose the output of a single conversion from the paths and flags of a command."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import NamedTuple

import click

from meshhub.cli.convert_flags import ConvertFlags
from meshhub.cli.naming import derive_name
from meshhub.cli.paths import STREAM, identity, is_folder, leads_elsewhere
from meshhub.cli.target_checks import find_content_format, find_format, is_foreign_model, is_result
from meshhub.pipeline.outputs import output_suffix
from meshhub.pipeline.storages import is_address
from meshhub.registry import Registry

_SEPARATORS = tuple(filter(None, (os.sep, os.altsep)))
"""Ends of a path that names a folder."""

_SEVERAL_HINT = "to convert several files, name a folder: --output-dir DIR"


class Output(NamedTuple):
    """Output of a single conversion."""

    path: str
    """Path of the file, or `-`."""

    to: str | None
    """Name of the target format; None: according to the extension."""

    overwrite: str = "--force"
    """Flags that replace an existing file."""

    folder: Path | None = None
    """Folder to create before the file is written."""


def choose_output(registry: Registry, paths: tuple[str, ...], flags: ConvertFlags) -> tuple[str, Output]:
    """Return input and output of a single conversion. Raises click.UsageError, UnsupportedTarget."""
    source, *others = paths
    if flags.output is not None:
        if others:
            raise click.UsageError("--output takes one INPUT; several inputs need --to FORMAT and --output-dir DIR")
        if flags.name is not None:
            raise click.UsageError("--output names the file and --name derives its name; give one of them")
        _check_extension(registry, flags.output, flags.to)
        check_distinct(source, flags.output)
        return source, Output(flags.output, flags.to)
    if len(others) > 1:
        raise click.UsageError("several inputs need --to FORMAT, and a folder: DIR/ at the end, or --output-dir DIR")
    if not others:
        if flags.to is None:
            raise click.UsageError("give an OUTPUT, or --to FORMAT to write beside the input")
        return source, _name_beside(registry, source, flags.to, flags)
    (second,) = others
    is_derived = _names_folder(second) or (flags.to is None and _is_format(registry, second))
    if flags.name is not None and not is_derived:
        raise click.UsageError("--name needs an output that is derived from the input; give a folder instead of a file")
    if _names_folder(second):
        return source, _name_in_folder(registry, source, second, flags)
    if flags.to is None and _is_format(registry, second):
        output = _name_beside(registry, source, second, flags)
        check_distinct(source, output.path)
        return source, _keep_original(registry, output, flags)
    return source, _check_second_path(registry, source, second, flags)


def choose_combined(registry: Registry, paths: tuple[str, ...], flags: ConvertFlags) -> tuple[tuple[str, ...], Output]:
    """Return the inputs and the output of files that become one. Raises click.UsageError, UnsupportedTarget."""
    inputs, target = (paths, flags.output) if flags.output is not None else (paths[:-1], paths[-1])
    if not inputs:
        raise click.UsageError("--combine needs several INPUTs and an OUTPUT")
    if target != STREAM and _names_folder(target):
        raise click.UsageError(f"--combine writes one file, and {target} is a folder; give an OUTPUT file")
    if inputs.count(STREAM) > 1:
        raise click.UsageError("standard input can be read once only")
    for path in inputs:
        check_distinct(path, target)
    if flags.output is None:
        return inputs, _check_second_path(registry, inputs[0], target, flags)
    _check_extension(registry, target, flags.to)
    return inputs, Output(target, flags.to)


def check_distinct(source: str, target: str) -> None:
    """Reject an output that is the input itself; no flag replaces an input. Raises click.UsageError."""
    is_same = target == source or (Path(target).is_file() and identity(target) == identity(source))
    if target == STREAM or not is_same:
        return
    remedy = "give another OUTPUT"
    if not is_address(target):
        path = Path(target)
        remedy += f", such as {shlex.quote(str(path.with_stem(f'{path.stem}-new')))}, or --output-dir DIR"
    raise click.UsageError(f"{target} is the input itself, which is never replaced; {remedy}")


def ends_with_folder(paths: tuple[str, ...]) -> bool:
    """Return whether several inputs precede a folder for the results.

    The folder ends with a slash. A folder without it, or beside other folders, may be the match of a pattern (*, */).
    """
    *inputs, last = paths or ("",)
    return len(inputs) > 1 and last.endswith(_SEPARATORS) and not any(map(is_folder, inputs))


def _names_folder(name: str) -> bool:
    """Return whether a path is an existing folder, or ends with a slash."""
    return is_folder(name) or name.endswith(_SEPARATORS)


def _is_format(registry: Registry, name: str) -> bool:
    """Return whether a second path is the name of an output format and not of a file."""
    if name == STREAM or Path(name).suffix or os.path.lexists(name):
        return False
    declarations = registry.declarations
    return bool(declarations.writers_of(declarations.format_of(name)))


def _name_beside(registry: Registry, source: str, to: str, flags: ConvertFlags) -> Output:
    """Return the output beside the input; standard output for standard input."""
    if source == STREAM:
        return Output(STREAM, to)
    if is_address(source):
        raise click.UsageError("an address needs an OUTPUT: a file, or another address")
    if Path(source).is_dir():
        raise click.UsageError(f"{Path(source)} is a folder; to convert the files in it, add --output-dir DIR")
    target = Path(source).with_name(derive_name(Path(source), find_format(registry, to), flags.name))
    if target.is_symlink():
        raise click.UsageError(f"{target} is a link to another file; give that file, or another one, as OUTPUT")
    return Output(str(target), to)


def _name_in_folder(registry: Registry, source: str, folder: str, flags: ConvertFlags) -> Output:
    """Return the output in the folder that the second path names."""
    if flags.to is None:
        raise click.UsageError(f"{folder} is a folder; add --to FORMAT to write into it")
    if source == STREAM:
        raise click.UsageError(f"standard input has no name for the output; give a file in {folder}")
    if Path(source).is_dir():
        raise click.UsageError(f"{Path(source)} is a folder; to convert its files: --output-dir {shlex.quote(folder)}")
    target = Path(folder) / derive_name(Path(source), find_format(registry, flags.to), flags.name)
    if leads_elsewhere(target, Path(folder)):
        raise click.UsageError(f"{target} is a link to another file; give that file, or another one, as OUTPUT")
    check_distinct(source, str(target))
    return _keep_original(registry, Output(str(target), flags.to, folder=Path(folder)), flags)


def _keep_original(registry: Registry, output: Output, flags: ConvertFlags) -> Output:
    """Reject, even with --force, a derived output that is a model of another program."""
    path = Path(output.path)
    if output.path == STREAM or not path.is_file() or not is_foreign_model(registry, path):
        return output
    replacing = f"--output {shlex.quote(output.path)} --force"
    if flags.force:
        raise click.UsageError(f"{path} exists and is not a result of meshhub; to replace it: {replacing}")
    return output._replace(overwrite=replacing)


def _check_extension(registry: Registry, target: str, to: str | None) -> None:
    """Reject an output whose extension contradicts `--to`."""
    format_of = registry.declarations.format_of
    suffix = output_suffix(target, registry.declarations).lower()
    target_format = None if to is None else format_of(to)
    if target_format is not None and suffix not in target_format.extensions and format_of(suffix) is not None:
        raise click.UsageError(f"{target} does not have an extension of the format {target_format.id}; {_SEVERAL_HINT}")


def _check_second_path(registry: Registry, source: str, target: str, flags: ConvertFlags) -> Output:
    """Reject a second path that may be an input: a shell may have expanded `*` to two paths."""
    _check_extension(registry, target, flags.to)
    check_distinct(source, target)
    path = Path(target)
    # a pattern never matches the name of a stream or a pipe
    is_named = source != STREAM and not source.startswith(("/dev/", "/proc/"))
    if not is_named or not path.is_file() or path.stat().st_size == 0:
        return Output(target, flags.to)
    if is_result(registry, path):
        return Output(target, flags.to)
    declarations = registry.declarations
    by_extension, source_format = (declarations.format_of(Path(name).suffix) for name in (target, source))
    replacing = f"--output {shlex.quote(target)} --force"
    is_original = is_input = False
    if by_extension is None:
        is_input = flags.to is not None
    elif declarations.readers_of(by_extension):
        is_original = is_foreign_model(registry, path)
        source_format = source_format or find_content_format(registry, Path(source))
        is_input = source_format == by_extension or (flags.force and is_original)
    if is_input:
        raise click.UsageError(f"{target} exists and may be an input; to replace it: {replacing}; {_SEVERAL_HINT}")
    return Output(target, flags.to, replacing if is_original else "--force")
