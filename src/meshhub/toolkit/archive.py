"""Safe reader for ZIP archives, used for uploads and for 3MF.

The central directory is checked as a whole before any entry is read (`zip_directory`). While an entry inflates, its
actual bytes are counted against the limits, since declared sizes may be wrong.
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

from meshhub.errors import UnreadableFile, quote
from meshhub.toolkit.zip_directory import (
    DEFAULT_LIMITS,
    DEFLATED,
    STORED,
    UPLOAD_LIMITS,
    ArchiveLimits,
    CentralDirectory,
    Entry,
    EntryLocation,
    allowed_bytes,
    check_ratio,
    fold_name,
    too_large,
)

__all__ = ["DEFAULT_LIMITS", "UPLOAD_LIMITS", "Archive", "ArchiveLimits", "Entry", "is_system_file"]

_CHUNK_BYTES = 1 << 18
"""Bytes inflated at a time; bounds the memory, and the excess over a limit."""

_SYSTEM_NAMES = frozenset(
    ("__macosx", ".ds_store", "thumbs.db", "ehthumbs.db", "desktop.ini", ".spotlight-v100", ".trashes")
)


def is_system_file(name: str) -> bool:
    """Return whether a path was added to the archive by an operating system (`__MACOSX`, `.DS_Store`, …)."""
    components = name.replace("\\", "/").split("/")
    return components[-1].startswith("._") or any(component.casefold() in _SYSTEM_NAMES for component in components)


class Archive:
    """ZIP archive, checked as a whole when it is opened.

    `entries` are its files in order, without folders. Find one with `find`; read it with `read` or `extract`. Close
    the archive, or use it in a `with` statement.
    """

    def __init__(self, source: bytes | str | os.PathLike[str], limits: ArchiveLimits = DEFAULT_LIMITS) -> None:
        """Open an archive.

        Args:
            source: The archive, or the path of its file.
            limits: Limits for its entries.
        Raises:
            UnreadableFile: The archive is damaged, or not a ZIP archive.
            UnsafeArchive: The archive exceeds a limit or is dangerous to unpack.
        """
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
            self.entries, self._locations = CentralDirectory(self._data, limits).read()
        except BaseException:
            self.close()
            raise
        self._name_by_fold = {fold_name(entry.name): entry.name for entry in self.entries}

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the file."""
        self._data.release()
        if self._mapped is not None:
            # the traceback of an error may still hold a slice; the map closes when the last slice is released
            with contextlib.suppress(BufferError):
                self._mapped.close()

    def find(self, name: str) -> str | None:
        """Return the name of the entry at a path, or None; ignores letter case and the composition of accents."""
        return name if name in self._locations else self._name_by_fold.get(fold_name(name))

    def read(self, name: str, limit: int | None = None) -> bytes:
        """Return the content of an entry.

        Args:
            name: Name of the entry.
            limit: Maximum number of bytes, in addition to the limits of the archive.
        Raises:
            KeyError: No entry has this name.
            UnsafeArchive: The entry exceeds a limit.
            UnreadableFile: The entry is damaged.
        """
        location = self._locations[name]
        if location.method == STORED:
            return b"".join(self._chunks(name, limit))
        # one call if the declared size is true, without growing or joining buffers
        bound = min(self._allowed_bytes(location, limit), location.size)
        inflater = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_DEFLATE)
        packed = self._data[location.start : location.start + location.packed]
        try:
            data: bytes = inflater.decompress(packed, bound + 1)
        except igzip_lib.IsalError:  # type: ignore[misc]
            raise _damaged_entry(name) from None
        if len(data) > bound:
            self._reject(name, location, limit, len(data))
        self._finish(name, location, len(data), isal_zlib.crc32(data), is_complete=inflater.eof)
        return data

    def read_head(self, name: str, size: int) -> bytes:
        """Return the first bytes of an entry, without inflating the rest or checking its checksum.

        Args:
            name: Name of the entry.
            size: Maximum number of bytes.
        Raises:
            KeyError, UnsafeArchive, UnreadableFile: As for `read`.
        """
        head = b""
        for chunk in self._chunks(name, None):
            head += chunk
            if len(head) >= size:
                break
        return head[:size]

    def extract(self, name: str, path: str | os.PathLike[str], limit: int | None = None) -> int:
        """Write the content of an entry to a new file; on an error, delete the file.

        Args:
            name: Name of the entry.
            path: File to create.
            limit: Maximum number of bytes, in addition to the limits of the archive.
        Returns:
            Number of bytes written.
        Raises:
            FileExistsError: The file exists.
            KeyError, UnsafeArchive, UnreadableFile: As for `read`.
        """
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
        """Yield the content of an entry, and check it on the way."""
        location = self._locations[name]
        allowed = min(self._allowed_bytes(location, limit), location.size)
        count = crc = 0
        inflater = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_DEFLATE) if location.method == DEFLATED else None
        for chunk in self._stored_chunks(location) if inflater is None else self._inflate(name, location, inflater):
            count += len(chunk)
            if count > allowed:
                self._reject(name, location, limit, count)
            crc = isal_zlib.crc32(chunk, crc)
            yield chunk
        self._finish(name, location, count, crc, is_complete=inflater is None or inflater.eof)

    def _stored_chunks(self, location: EntryLocation) -> Iterator[bytes]:
        """Yield the packed bytes of an entry."""
        end = location.start + location.packed
        for start in range(location.start, end, _CHUNK_BYTES):
            yield bytes(self._data[start : min(start + _CHUNK_BYTES, end)])

    def _inflate(self, name: str, location: EntryLocation, inflater: igzip_lib.IgzipDecompressor) -> Iterator[bytes]:
        """Yield the inflated bytes of an entry, up to the end of the deflate stream or of the packed bytes."""
        packed_chunks = self._stored_chunks(location)
        while not inflater.eof:
            packed = next(packed_chunks, b"") if inflater.needs_input else b""
            if not packed and inflater.needs_input:
                return
            try:
                yield inflater.decompress(packed, _CHUNK_BYTES)
            except igzip_lib.IsalError:  # type: ignore[misc]
                raise _damaged_entry(name) from None

    def _allowed_bytes(self, location: EntryLocation, limit: int | None) -> int:
        return allowed_bytes(location, self.limits, self._inflated, limit)

    def _reject(self, name: str, location: EntryLocation, limit: int | None, count: int) -> NoReturn:
        """Raise the error for an entry that inflates to more bytes than allowed."""
        allowed = self._allowed_bytes(location, limit)
        if count <= allowed:
            raise UnreadableFile(f"{quote(name)} in the archive is longer than its declared size; pack it again")
        raise too_large(name, allowed)

    def _finish(self, name: str, location: EntryLocation, count: int, crc: int, *, is_complete: bool) -> None:
        """Check the size and the checksum of an inflated entry, and the ratio of all entries so far."""
        self._inflated += count
        self._packed += location.packed
        if not is_complete or count != location.size or crc != location.crc:
            raise _damaged_entry(name)
        check_ratio(self._inflated, self._packed, self.limits)


def _damaged_entry(name: str) -> UnreadableFile:
    return UnreadableFile(f"{quote(name)} in the archive is damaged; pack it again")
