"""Records of the source of each output, so that `--skip-existing` skips no result of another file.

An output has its record as an extended attribute, which needs no further file and moves along with it. Systems without
extended attributes keep no records.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from meshhub.cli.paths import identity
from meshhub.errors import OutputExists

_ATTRIBUTE = "user.meshhub.origin"
"""Extended attribute of an output."""


class _Origin(msgspec.Struct, frozen=True):
    """Source of an output: its path from the folder of the output, and the SHA-256 of its content."""

    source: str
    sha256: str


class _Record(msgspec.Struct, frozen=True):
    """Origin of an output that has this size and time; another one was written by another program."""

    origin: _Origin
    size: int
    modified_ns: int


@contextlib.contextmanager
def recording_origin(target: Path, source: Path, content: Path) -> Iterator[None]:
    """Record the source of an output that the block writes. Without a record, the origin of an output is unknown.

    Args:
        source: Input as the command names it; below an archive for a model in it.
    """
    # the file may change while it is converted
    origin = _find_origin(target, source, content)
    yield
    if origin is not None and hasattr(os, "setxattr"):
        with contextlib.suppress(OSError):
            status = target.stat()
            record = _Record(origin, status.st_size, status.st_mtime_ns)
            os.setxattr(target, _ATTRIBUTE, msgspec.json.encode(record))


def _find_origin(target: Path, source: Path, content: Path) -> _Origin | None:
    """Return the origin of an output; None for a pipe, or an address."""
    if not content.is_file():
        return None
    with content.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    path = os.path.realpath(source)
    # no relative path leads to another drive of Windows
    with contextlib.suppress(ValueError):
        path = os.path.relpath(path, os.path.realpath(target.parent))
    return _Origin(path, sha256)


def is_result_of(target: Path, source: Path, content: Path) -> bool:
    """Return whether an existing output is the result of a source; False if its origin is unknown.

    A copy of the source counts as the source if the recorded one is gone: folders are moved, and mounted elsewhere.
    While both exist, their companions may differ.

    Raises:
        OutputExists: The output is the result of another file, or of an earlier version of the source.
        OSError: The source cannot be read.
    """
    recorded = _read_origin(target)
    origin = None if recorded is None else _find_origin(target, source, content)
    if recorded is None or origin is None:
        return False
    other = Path(os.path.normpath(target.parent / recorded.source))
    if identity(other) not in (None, identity(content)):
        raise OutputExists(
            f"{target} is the result of {other}; give another --name or --output-dir, or --force to replace it"
        )
    if recorded.sha256 != origin.sha256:
        raise OutputExists(
            f"{target} is the result of another file, or of {source} before it changed; use --force to replace it"
        )
    return True


def _read_origin(target: Path) -> _Origin | None:
    """Return the recorded origin of an output; None without a record, or if the output has changed."""
    if not hasattr(os, "getxattr"):
        return None
    try:
        record = msgspec.json.decode(os.getxattr(target, _ATTRIBUTE), type=_Record)
        status = target.stat()
    except (OSError, msgspec.MsgspecError):
        return None
    return record.origin if (record.size, record.modified_ns) == (status.st_size, status.st_mtime_ns) else None
