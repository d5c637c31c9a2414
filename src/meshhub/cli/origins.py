"""Records of the source of each output, so that `--skip-existing` does not skip the result of another file.

An output has its record as an extended attribute, which needs no further file and moves with the output. Systems
without extended attributes keep no records.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from meshhub.cli.paths import identity
from meshhub.errors import OutputExists

_ATTRIBUTE = "user.meshhub.origin"
"""Extended attribute of an output."""

CAN_RECORD = hasattr(os, "setxattr")
"""Whether this system has extended attributes; a file system may lack them all the same."""


class _Origin(msgspec.Struct, frozen=True):
    """Source of an output: its path from the folder of the output, and the SHA-256 of its content.

    The path is bytes, as on the disk: a name need not be UTF-8.
    """

    source: bytes
    sha256: str


class _Record(msgspec.Struct, frozen=True):
    """Origin of an output that has this size and time; another one was written by another program.

    `options` is the SHA-256 of the options with which it was made, as the command had them.
    """

    origin: _Origin
    size: int
    modified_ns: int
    options: str = ""


class Match(NamedTuple):
    """Whether the output is recorded as the result of this input, and whether its options were others."""

    is_known: bool
    has_other_options: bool = False


@contextlib.contextmanager
def recording_origin(target: Path, source: Path, content: Path, options: Mapping[str, object]) -> Iterator[None]:
    """Record the source of an output that the block writes. Without a record, the origin of an output is unknown.

    Args:
        source: Input as the command names it; below an archive for a model in it.
        options: Options of the conversion, as the command has them.
    """
    # the file may change while it is converted
    origin = _find_origin(target, source, content)
    yield
    if origin is not None and CAN_RECORD:
        with contextlib.suppress(OSError):
            status = target.stat()
            record = _Record(origin, status.st_size, status.st_mtime_ns, _digest(options))
            os.setxattr(target, _ATTRIBUTE, msgspec.json.encode(record))


def _find_origin(target: Path, source: Path, content: Path) -> _Origin | None:
    """Return the origin of an output; None for a pipe, or an address."""
    if not content.is_file():
        return None
    import hashlib

    with content.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    path = os.path.realpath(source)
    # no relative path leads to another drive on Windows
    with contextlib.suppress(ValueError):
        path = os.path.relpath(path, os.path.realpath(target.parent))
    return _Origin(os.fsencode(path), sha256)


def match_origin(target: Path, source: Path, content: Path, options: Mapping[str, object]) -> Match:
    """Return whether an existing output is the result of a source, and of other options.

    A copy of the source counts as the source if the recorded one is gone, because folders are moved and mounted
    elsewhere. While both exist, their companions may differ.

    Raises:
        OutputExists: The output is the result of another file, or of an earlier version of the source.
        OSError: The source cannot be read.
    """
    record = _read_record(target)
    origin = None if record is None else _find_origin(target, source, content)
    if record is None or origin is None:
        return Match(is_known=False)
    recorded = record.origin
    other = Path(os.path.normpath(target.parent / os.fsdecode(recorded.source)))
    if identity(other) not in (None, identity(content)):
        raise OutputExists(
            f"{target} is the result of {other}; give another --name or --output-dir, or --force to replace it"
        )
    if recorded.sha256 != origin.sha256:
        raise OutputExists(
            f"{target} is the result of another file, or of {source} before it changed; use --force to replace it"
        )
    return Match(is_known=True, has_other_options=record.options not in ("", _digest(options)))


def _digest(options: Mapping[str, object]) -> str:
    import hashlib

    text = repr(sorted((name, str(value)) for name, value in options.items()))
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()


def has_origin(target: Path) -> bool:
    """Return whether a valid record names the source of an existing output."""
    return _read_record(target) is not None


def _read_record(target: Path) -> _Record | None:
    """Return the record of an output; None without one, or if the output has changed."""
    if not CAN_RECORD:
        return None
    try:
        record = msgspec.json.decode(os.getxattr(target, _ATTRIBUTE), type=_Record)
        status = target.stat()
    except (OSError, msgspec.MsgspecError):
        return None
    return record if (record.size, record.modified_ns) == (status.st_size, status.st_mtime_ns) else None
