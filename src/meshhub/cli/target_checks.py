"""Check the target of a conversion: its format, and whether it may be written."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import structs

from meshhub.cli.paths import STREAM
from meshhub.errors import EmptyModel, MeshhubError, OutputExists, UnsupportedFormat
from meshhub.model.capabilities import Format
from meshhub.model.chain import BUILT_IN, Chain, Request
from meshhub.model.source import Source, name_bed
from meshhub.pipeline.existing_files import Overwrite, Replacing, is_own_result
from meshhub.pipeline.identify import identify
from meshhub.pipeline.inputs import Inputs
from meshhub.pipeline.outputs import check_output
from meshhub.pipeline.steps import unsupported_target
from meshhub.pipeline.storages import is_address
from meshhub.registry import Registry


def find_format(registry: Registry, to: str) -> Format:
    """Return the target format with an id or extension. Raises UnsupportedTarget."""
    target = registry.declarations.format_of(to)
    if target is None:
        raise unsupported_target(to, registry.declarations)
    return target


def preview(
    registry: Registry, model: Inputs, target: Path, request: Request, *, overwrite: Overwrite, creates_folder: bool
) -> Chain:
    """Return the chain of a conversion that could be written now, without running it.

    Raises:
        MeshhubError: The request is invalid.
        OSError: The target cannot be written.
    """
    with registry.open_model(model, request.options) as opened:
        chain = registry.resolve(request, opened)
    # the folders of derived outputs are created
    if not creates_folder or os.path.lexists(target.parent):
        check_output(target, Replacing(overwrite, model, registry.declarations.formats.values))
    return chain


@contextlib.contextmanager
def suggesting_overwrite(flags: str) -> Iterator[None]:
    """Add the names of the flags that overwrite an existing output to the error about it."""
    try:
        yield
    except OutputExists as error:
        if error.is_input:
            raise
        raise OutputExists(f"{error.message}; use {flags} to overwrite it") from error


def is_foreign_model(registry: Registry, path: Path) -> bool:
    """Return whether a file contains a model that meshhub did not write, judging by its content.

    A file counts as a model if only its content is not examined: that of a format which a plug-in reads, or one whose
    package is missing.
    """
    if not path.is_file() or path.stat().st_size == 0 or is_result(registry, path):
        return False
    readers = registry.declarations.readers_of(registry.declarations.format_of(path.suffix))
    if readers and all(reader.origin != BUILT_IN for reader in readers):
        return True
    try:
        _identify(registry, path)
    except (UnsupportedFormat, EmptyModel):
        return False
    except (MeshhubError, OSError):
        return True
    return True


def is_result(registry: Registry, path: Path) -> bool:
    """Return whether meshhub wrote a file."""
    return is_own_result(path, registry.declarations.formats.values())


def is_kept(registry: Registry, output: Path, sources: Sequence[Path], *, each_bed: bool = False) -> bool:
    """Return whether `--skip-existing` keeps an output.

    As `make` does, it replaces a result that is older than one of its sources. It never replaces a file of another
    program.

    Args:
        registry: Formats.
        output: Path of the output, that of the first bed if each has a file; it need not exist.
        sources: Inputs as the command names them; below an archive for a model in it.
        each_bed: Whether each bed has a file.
    """
    outputs = _list_beds(output) if each_bed else [output]
    return all(_is_current(registry, path, sources) for path in outputs)


def _list_beds(first: Path) -> list[Path]:
    """Return the files of the beds up to the last one that is there; those between may be missing."""
    before, _, after = name_bed(first.name, 1).rpartition("-bed1")
    pattern = re.compile(re.escape(before) + r"-bed(\d{1,6})" + re.escape(after))
    names = [path.name for path in first.parent.iterdir()] if first.parent.is_dir() else []
    last = max((int(match[1]) for match in map(pattern.fullmatch, names) if match), default=1)
    return [first.with_name(name_bed(first.name, number)) for number in range(1, last + 1)]


def _is_current(registry: Registry, output: Path, sources: Sequence[Path]) -> bool:
    """Return whether an output exists and is not older than its sources, or is a file of another program."""
    if not output.is_file():
        return False
    status = output.stat()
    if status.st_size == 0:
        return False
    if not is_result(registry, output):
        return True
    for source in sources:
        if str(source) == STREAM or is_address(str(source)):
            continue
        file = next(filter(Path.is_file, (source, *source.parents)), None)
        # without a file, the conversion reports the error
        if file is None or file.stat().st_mtime_ns > status.st_mtime_ns:
            return False
    return True


def find_content_format(registry: Registry, path: Path) -> Format | None:
    """Return the format of a file by its content; None if no built-in reader reads it."""
    try:
        return _identify(registry, path)
    except (MeshhubError, OSError):
        return None


def _identify(registry: Registry, path: Path) -> Format:
    declarations = registry.declarations
    readers = tuple(reader for reader in declarations.readers if reader.origin == BUILT_IN)
    reader, _, _ = identify(structs.replace(declarations, readers=readers), Source("model", path=path))
    return reader.capability.format
