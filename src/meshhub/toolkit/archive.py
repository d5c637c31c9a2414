"""The one reader of ZIP archives, for uploads and for 3MF: nothing in an archive is taken at its word.

The table of contents is checked whole before anything is read by it (`zip_directory`), and while an
entry inflates its real bytes are counted against the limits.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import NoReturn

from isal import igzip_lib, isal_zlib

from meshhub.errors import UnreadableFile
from meshhub.toolkit.zip_directory import (
    DEFAULT_LIMITS,
    DEFLATED,
    STORED,
    UPLOAD_LIMITS,
    ArchiveLimits,
    Directory,
    Entry,
    Where,
    allowed_bytes,
    check_ratio,
    folded_name,
    shown,
    too_large,
)

__all__ = ["DEFAULT_LIMITS", "UPLOAD_LIMITS", "Archive", "ArchiveLimits", "Entry", "is_litter"]

_CHUNK = 1 << 18
_LITTER = frozenset(("__macosx", ".ds_store", "thumbs.db", "ehthumbs.db", "desktop.ini", ".spotlight-v100", ".trashes"))


def is_litter(name: str) -> bool:
    """Whether a path is what a system leaves in archives (`__MACOSX`, `.DS_Store`, …) and nobody packed on purpose."""
    components = name.replace("\\", "/").split("/")
    return components[-1].startswith("._") or any(component.casefold() in _LITTER for component in components)


class Archive:
    """A ZIP archive, checked whole when it is opened.

    `entries` are its files in their order, without its folders; look one up by `find`, read it by
    `read` or `extract`. Close it, or use it in a `with`.
    """

    def __init__(self, source: bytes | str | os.PathLike[str], limits: ArchiveLimits = DEFAULT_LIMITS) -> None:
        """Raises UnreadableFile for what is no sound ZIP archive, UnsafeArchive for what is built to harm."""
        self.limits = limits
        self._mapped: mmap.mmap | None = None
        if isinstance(source, bytes):
            self._data = memoryview(source)
        else:
            with Path(source).open("rb") as file:
                if os.fstat(file.fileno()).st_size:
                    self._mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            self._data = memoryview(self._mapped if self._mapped is not None else b"")
        self._inflated = 0
        self._packed = 0
        try:
            self.entries, self._where = Directory(self._data, limits).contents()
        except BaseException:
            self.close()
            raise
        self._folded = {folded_name(entry.name): entry.name for entry in self.entries}

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._data.release()
        if self._mapped is not None:
            # after an error its traceback may still hold a piece, and the last one to let go closes
            with contextlib.suppress(BufferError):
                self._mapped.close()

    def find(self, name: str) -> str | None:
        """The name of the entry meant by a path, letter case and composition of accents forgiven."""
        return name if name in self._where else self._folded.get(folded_name(name))

    def read(self, name: str, limit: int | None = None) -> bytes:
        """An entry's bytes, at most `limit` of them.

        Raises KeyError for a name that is not in `entries`, UnsafeArchive past a limit,
        UnreadableFile when it is damaged.
        """
        where = self._where[name]
        if where.method == STORED:
            return b"".join(self._chunks(name, limit))
        # in one piece when the declared size is true: no growing, no joining
        bound = min(self._allowed(where, limit), where.size)
        inflater = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_DEFLATE)
        packed = self._data[where.start : where.start + where.packed]
        try:
            data: bytes = inflater.decompress(packed, bound + 1)
        except igzip_lib.IsalError:  # type: ignore[misc]
            raise UnreadableFile(f"{shown(name)} in the archive is damaged; pack it again") from None
        if len(data) > bound:
            self._refuse(name, where, limit, len(data))
        self._finish(name, where, len(data), isal_zlib.crc32(data), whole=inflater.eof)
        return data

    def extract(self, name: str, path: str | os.PathLike[str], limit: int | None = None) -> int:
        """Write an entry's bytes to a new file and return how many; raises as `read`, and leaves no part of it then."""
        path = Path(path)
        written = 0
        with path.open("xb") as file:
            try:
                for chunk in self._chunks(name, limit):
                    written += file.write(chunk)
            except BaseException:
                path.unlink()
                raise
        return written

    def _chunks(self, name: str, limit: int | None) -> Iterator[bytes]:
        where = self._where[name]
        allowed = self._allowed(where, limit)
        count = crc = 0
        inflater = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_DEFLATE) if where.method == DEFLATED else None
        at, end = where.start, where.start + where.packed
        while at < end or (inflater is not None and not inflater.eof):
            packed = b"" if inflater is not None and not inflater.needs_input else self._data[at : at + _CHUNK]
            packed = packed[: max(end - at, 0)]
            at += len(packed)
            if inflater is None:
                chunk = bytes(packed)
            else:
                if not packed and inflater.needs_input:
                    break
                try:
                    chunk = inflater.decompress(packed, _CHUNK)
                except igzip_lib.IsalError:  # type: ignore[misc]
                    raise UnreadableFile(f"{shown(name)} in the archive is damaged; pack it again") from None
            count += len(chunk)
            if count > allowed or count > where.size:
                self._refuse(name, where, limit, count)
            crc = isal_zlib.crc32(chunk, crc)
            yield chunk
            if inflater is not None and inflater.eof:
                break
        self._finish(name, where, count, crc, whole=inflater is None or inflater.eof)

    def _allowed(self, where: Where, limit: int | None) -> int:
        return allowed_bytes(where, self.limits, self._inflated, limit)

    def _refuse(self, name: str, where: Where, limit: int | None, count: int) -> NoReturn:
        """Say why an entry is not inflated any further."""
        allowed = self._allowed(where, limit)
        if count <= allowed:
            raise UnreadableFile(f"{shown(name)} in the archive is longer than the archive says; pack it again")
        raise too_large(name, allowed)

    def _finish(self, name: str, where: Where, count: int, crc: int, *, whole: bool) -> None:
        self._inflated += count
        self._packed += where.packed
        if not whole or count != where.size or crc != where.crc:
            raise UnreadableFile(f"{shown(name)} in the archive is damaged; pack it again")
        check_ratio(self._inflated, self._packed, self.limits)
