"""Existing files: which of them an output may replace, and which of them meshhub wrote."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

from meshhub.errors import MeshhubError, OutputExists
from meshhub.model.capabilities import Format
from meshhub.model.source import HEAD_BYTES, Source, members_of
from meshhub.pipeline.companion_mentions import COMPANION_EXTENSIONS, find_companions
from meshhub.pipeline.inputs import is_several
from meshhub.pipeline.storages import is_address

Overwrite: TypeAlias = bool | None
"""Which existing files to replace: any (True), none (False), or only results of meshhub and empty files (None).
An input is never replaced.
"""

_ZIP_SIGNATURE = b"PK\3\4"
"""First bytes of a ZIP archive with entries (APPNOTE 4.3)."""

_MARK = re.compile(rb"(?<![a-z/\\._-])meshhub(?![\w-]*[./\\]\w)")
"""Name of the program in a result, but not in a path such as meshhub/a.blend or a file name such as meshhub.mtl."""

_UNLIMITED_BYTES = 1 << 62
"""Limit of the sizes in an archive of which only the head of one entry is inflated."""


class Replacing(NamedTuple):
    """Rule which existing files the output of a run replaces."""

    overwrite: Overwrite = None

    inputs: object = ()
    """Input of the run, or several; see `pipeline.inputs`."""

    list_formats: Callable[[], Iterable[Format]] = tuple
    """Returns the known formats, which say where a result has the name of its program."""

    def check(self, path: Path) -> None:
        """Raise OutputExists if a file exists and must stay."""
        if not os.path.lexists(path):
            return
        self.check_inputs(path)
        if self.overwrite:
            return
        if self.overwrite is not None:
            raise OutputExists(f"{path} already exists and was not changed")
        if not self.may_replace(path):
            raise OutputExists(f"{path} is not a result of meshhub; name another file, or pass overwrite=True")

    def check_inputs(self, output: Path | int | str) -> None:
        """Raise OutputExists if an output (a path, a descriptor or an address) is an input, or a companion of one."""
        if self._is_input(output):
            name = "the open file" if isinstance(output, int) else output
            error = OutputExists(f"{name} is an input or its companion, which is never replaced; name another output")
            error.is_input = True
            raise error

    def may_replace(self, path: Path) -> bool:
        """Return whether a file is a result of meshhub, or empty."""
        return is_own_result(path, self.list_formats()) or (path.is_file() and path.stat().st_size == 0)

    def _is_input(self, output: Path | int | str) -> bool:
        if isinstance(output, str):
            return any(_spell_address(value) == _spell_address(output) for value in _list_inputs(self.inputs))
        status = identity(output)
        if status is None:
            return False
        files = [file for value in _list_inputs(self.inputs) for file in _list_files(value)]
        if status in map(identity, files):
            return True
        return isinstance(output, Path) and status in map(identity, self._list_companions(output, files))

    def _list_companions(self, output: Path, files: Iterable[Path | int]) -> Iterator[Path]:
        """Yield the companions of input files, if the extension of the output may be that of a companion."""
        extension = output.suffix.lower()
        models = {name for format_ in self.list_formats() for name in format_.extensions} - COMPANION_EXTENSIONS
        for file in files if extension and extension not in models else ():
            if isinstance(file, Path):
                yield from find_companions(file, COMPANION_EXTENSIONS | {extension}).values()


def identity(file: str | Path | int) -> tuple[int, int] | None:
    """Return the device and number of the file behind a path or a descriptor; None without a file."""
    try:
        status = os.fstat(file) if isinstance(file, int) else Path(file).stat()
    except (OSError, ValueError):
        # ValueError: a path with a null byte
        return None
    return status.st_dev, status.st_ino


def is_own_result(path: Path, formats: Iterable[Format]) -> bool:
    """Return whether meshhub wrote a file, because its writers put the name near the beginning.

    A file that cannot be read, or a damaged archive, counts as written by another program.
    """
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        if head.startswith(_ZIP_SIGNATURE):
            # formats such as USDZ store files uncompressed; others name an entry that may be compressed
            entries = {format_.generator_entry for format_ in formats} - {""}
            head = b"".join((head, *_read_heads(path, entries)))
    except (OSError, MeshhubError):
        return False
    return _MARK.search(head) is not None


def _read_heads(path: Path, names: Iterable[str]) -> Iterator[bytes]:
    from meshhub.toolkit.archive import Archive, ArchiveLimits

    limits = ArchiveLimits(
        max_total_bytes=_UNLIMITED_BYTES, max_entry_bytes=_UNLIMITED_BYTES, ratio_after=_UNLIMITED_BYTES
    )
    with Archive(path, limits) as archive:
        for entry in filter(None, map(archive.find, names)):
            yield archive.read_head(entry, HEAD_BYTES)


def _list_inputs(value: object) -> Iterator[object]:
    """Yield the single inputs of a run, and the files of an assembly."""
    for single in value if is_several(value) else (value,):  # type: ignore[arg-type]
        yield from members_of(single) if isinstance(single, Source) else (single,)


def _spell_address(value: object) -> str | None:
    """Return an address with its scheme in lower case; None for another input."""
    if not is_address(value):
        return None
    scheme, colon, rest = value.partition(":")
    return scheme.lower() + colon + rest


def _list_files(value: object) -> Iterator[Path | int]:
    """Yield the files of an input: its path or descriptor, and the paths of the companions that were passed with it."""
    if isinstance(value, int):
        yield value
    elif isinstance(value, Source):
        yield from value.paths
    elif isinstance(value, str | os.PathLike):
        yield Path(value)
    elif hasattr(value, "fileno"):
        descriptor = find_descriptor(value)
        if descriptor is not None:
            yield descriptor


def find_descriptor(file: object) -> int | None:
    """Return the descriptor of an open file; None for one in memory."""
    try:
        return int(file.fileno())  # type: ignore[attr-defined]
    except (AttributeError, OSError, ValueError):
        # io.UnsupportedOperation is an OSError; a closed file raises ValueError
        return None
