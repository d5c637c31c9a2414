"""Central directory of a ZIP archive, parsed and checked before any entry is unpacked (APPNOTE.TXT 6.3).

It replaces `zipfile`, which would create a million objects before they could be counted.
"""

from __future__ import annotations

import itertools
import re
import struct
import unicodedata

from msgspec import Struct

from meshhub.errors import CUT_OFF, UnreadableFile, UnsafeArchive, quote

STORED, DEFLATED = 0, 8
"""Supported compression methods (APPNOTE 4.4.5)."""

_END = struct.Struct("<4s4H2LH")
_END_LOCATOR = struct.Struct("<4sLQL")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")

_MAX_16, _MAX_32 = 0xFFFF, 0xFFFFFFFF
"""Field values that refer to the 64-bit records (APPNOTE 4.4.1.4)."""

_UTF_8_FLAG = 0x0800
"""General purpose bit 11: the name is UTF-8."""

_ENCRYPTION_FLAGS = 0x0001 | 0x0040 | 0x2000
"""General purpose bits: encrypted, strongly encrypted, masked headers."""

_LOCAL_ENCRYPTION_FLAGS = 0x0001 | 0x0040
"""The bits that a local header repeats."""

_UNIX_TYPE_MASK, _UNIX_FOLDER = 0xF000, 0x4000
_UNIX_SPECIAL_TYPES = frozenset((0x1000, 0x2000, 0x6000, 0xA000, 0xC000))
"""Unix file types: pipe, character device, block device, symbolic link, socket."""

_WINDOWS_SYSTEMS = (0, 10, 11)
"""Values of "made by" with Windows file attributes: FAT, NTFS (APPNOTE 4.4.2.2), and NTFS as Info-ZIP writes it."""

_REPARSE_POINT = 0x400
"""Windows file attribute of links."""

_DRIVE = re.compile(r"[A-Za-z]:")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ARCHIVE_EXTENSIONS = tuple(".zip .zipx .7z .rar .tar .gz .tgz .bz2 .tbz2 .xz .txz .zst .lzma .jar".split())

_MAX_FOLDER_DEPTH = 32
"""Maximum components of a path; real archives stay far below, and every component costs a check."""

_MAX_EXTRA_FIELDS_COUNT = 100
"""Maximum extra fields to search per entry; writers add a few."""


class ArchiveLimits(Struct, frozen=True, kw_only=True):
    """Limits for an archive. All sizes are in inflated bytes, counted while inflating.

    max_total_bytes: Size of all entries together.
    max_entry_bytes: Size of each entry.
    max_entries: Number of entries, folders included.
    max_name_bytes: Length of each name.
    max_ratio: Maximum inflated bytes per packed byte, for each entry and for all together.
    ratio_after: Inflated bytes up to which `max_ratio` does not apply.
    nested: Whether the archive may contain archives; they are never opened here.
    backslashes: Whether a backslash in a name is read as a slash; False rejects the name.
    """

    max_total_bytes: int = 1 << 30
    max_entry_bytes: int = 1 << 30
    max_entries: int = 10_000
    max_name_bytes: int = 1024
    max_ratio: int = 100
    ratio_after: int = 1 << 20
    nested: bool = True
    backslashes: bool = True


DEFAULT_LIMITS = ArchiveLimits()
"""Limits for file formats that are archives."""

UPLOAD_LIMITS = ArchiveLimits(nested=False)
"""Limits for uploaded archives: no archive inside."""


class Entry(Struct, frozen=True):
    """File in an archive: its path with slashes, and its sizes in bytes according to the central directory."""

    name: str
    size: int
    packed: int


class EntryLocation(Struct, frozen=True):
    """Position of an entry's packed bytes, and the declared size and checksum of its content."""

    start: int
    packed: int
    size: int
    crc: int
    method: int


class CentralDirectory:
    """Parser for the central directory of one archive.

    All methods raise UnreadableFile for a damaged archive, and UnsafeArchive for a dangerous one.
    """

    def __init__(self, data: memoryview, limits: ArchiveLimits) -> None:
        self._data = data
        self._limits = limits

    def read(self) -> tuple[tuple[Entry, ...], dict[str, EntryLocation]]:
        """Return the files in order, and the location of each by name; folders are checked and left out."""
        count, start, end = self._find_directory()
        entries: list[Entry] = []
        locations: dict[str, EntryLocation] = {}
        spans: list[tuple[int, int]] = []
        is_file_by_path: dict[str, bool] = {}
        inflated = packed = 0
        position = start
        for _ in range(count):
            name, is_folder, location, position = self._read_central_header(position, end, start)
            header_start = location.start
            location = self._read_local_header(name, location, start)
            spans.append((header_start, location.start + location.packed))
            inflated, packed = inflated + location.size, packed + location.packed
            self._check_sizes(name, location, inflated, packed)
            _add_path(is_file_by_path, name, is_file=not is_folder)
            if not is_folder:
                entries.append(Entry(name, location.size, location.packed))
                locations[name] = location
        if position != end:
            raise _damaged_directory()
        spans.sort()
        for (_, previous_end), (next_start, _) in itertools.pairwise(spans):
            if next_start < previous_end:
                raise UnsafeArchive("the archive has entries that overlap, as in a ZIP bomb; pack it again")
        return tuple(entries), locations

    def _check_sizes(self, name: str, location: EntryLocation, inflated: int, packed: int) -> None:
        """Reject an entry whose declared size exceeds a limit, before it is inflated."""
        allowed = allowed_bytes(location, self._limits)
        if location.size > allowed:
            raise too_large(name, allowed)
        if inflated > self._limits.max_total_bytes:
            raise UnsafeArchive(
                f"the archive unpacks to more than {self._limits.max_total_bytes} bytes; pack fewer files"
            )
        check_ratio(inflated, packed, self._limits)

    def _find_directory(self) -> tuple[int, int, int]:
        """Return the number of entries, and the start and end of the central directory."""
        data = self._data
        tail = bytes(data[max(len(data) - _END.size - _MAX_16, 0) :])
        position = tail.rfind(b"PK\x05\x06")
        while position >= 0 and len(tail) - position < _END.size:
            position = tail.rfind(b"PK\x05\x06", 0, position)
        if position < 0:
            raise UnreadableFile(
                "the ZIP archive is cut off: its table of contents is missing; use a complete copy, or pack it again",
                values=CUT_OFF,
            )
        _, disk, first_disk, disk_count, count, size, start, comment_size = _END.unpack_from(tail, position)
        if len(tail) - position - _END.size < comment_size:
            raise UnreadableFile("the archive is cut off; use a complete copy", values=CUT_OFF)
        end = len(data) - len(tail) + position
        if _MAX_16 in (disk_count, count) or _MAX_32 in (size, start):
            end, disk, first_disk, disk_count, count, size, start = self._read_end_64(
                end, (disk, first_disk, disk_count, count, size, start)
            )
        if disk or first_disk or disk_count != count:
            raise UnreadableFile("the archive is one volume of several; pack it into one file")
        if count > self._limits.max_entries:
            raise UnsafeArchive(f"the archive has more than {self._limits.max_entries} files; pack fewer")
        if start + size != end or size < count * _CENTRAL.size:
            raise _damaged_directory()
        return count, start, end

    def _read_end_64(self, end: int, fields: tuple[int, ...]) -> tuple[int, ...]:
        """Replace the fields of a large archive by those of its ZIP64 records (APPNOTE 4.3.14), if it has them."""
        position = end - _END_LOCATOR.size
        if position < 0 or bytes(self._data[position : position + 4]) != b"PK\x06\x07":
            return end, *fields
        _, _, record, _ = _END_LOCATOR.unpack_from(self._data, position)
        if record + _END_64.size > position or bytes(self._data[record : record + 4]) != b"PK\x06\x06":
            raise _damaged_directory()
        _, _, _, _, disk, first_disk, disk_count, count, size, start = _END_64.unpack_from(self._data, record)
        return record, disk, first_disk, disk_count, count, size, start

    def _read_central_header(self, position: int, end: int, directory: int) -> tuple[str, bool, EntryLocation, int]:
        """Parse the header of one entry, and reject entries that are encrypted, links, devices or unsupported.

        Args:
            position: Start of the header.
            end: End of the central directory.
            directory: Start of the central directory, where the data of the entries ends.
        Returns:
            Name, whether the entry is a folder, its location, and the position of the next header.
        """
        if position + _CENTRAL.size > end:
            raise _damaged_directory()
        fields = _CENTRAL.unpack_from(self._data, position)
        magic, made_by, _, flags, method, _, _, crc, packed, size, name_size, extra_size, comment_size, *rest = fields
        _, _, attributes, start = rest
        position += _CENTRAL.size
        next_position = position + name_size + extra_size + comment_size
        if magic != b"PK\x01\x02" or next_position > end:
            raise _damaged_directory()
        if name_size > self._limits.max_name_bytes:
            raise UnsafeArchive(f"the archive has a name of {name_size} bytes; shorten the names of files and folders")
        raw_name = bytes(self._data[position : position + name_size])
        name, is_folder = self._decode_name(raw_name, is_utf8=bool(flags & _UTF_8_FLAG))
        extra = bytes(self._data[position + name_size : position + name_size + extra_size])
        size, packed, start = _read_sizes_64(extra, (size, packed, start))
        unix_type = attributes >> 16 & _UNIX_TYPE_MASK
        is_windows_link = attributes & _REPARSE_POINT and made_by >> 8 in _WINDOWS_SYSTEMS
        if flags & _ENCRYPTION_FLAGS:
            raise UnsafeArchive(f"{quote(name)} in the archive is encrypted; pack it without a password")
        if unix_type in _UNIX_SPECIAL_TYPES or is_windows_link:
            raise UnsafeArchive(f"{quote(name)} in the archive is a link or a device; pack regular files only")
        if method not in (STORED, DEFLATED):
            raise UnsafeArchive(f"{quote(name)} in the archive is packed by method {method}; pack it by deflate")
        if (method == STORED and size != packed) or start + packed > directory:
            raise _damaged_directory()
        location = EntryLocation(start, packed, size, crc, method)
        return name, is_folder or unix_type == _UNIX_FOLDER, location, next_position

    def _decode_name(self, raw: bytes, *, is_utf8: bool) -> tuple[str, bool]:
        """Return a safe relative path, and whether it names a folder."""
        try:
            name = raw.decode("utf-8")  # most writers use UTF-8 without setting the flag
        except UnicodeDecodeError:
            if is_utf8:
                raise UnreadableFile("the archive has a name that is not valid UTF-8; pack it again") from None
            name = raw.decode("cp437")
        if _CONTROL.search(name):
            raise UnsafeArchive(f"{quote(name)} in the archive has control characters in its name; rename it")
        if "\\" in name:
            if not self._limits.backslashes:
                raise UnsafeArchive(f"{quote(name)} in the archive has a backslash in its name; use slashes")
            name = name.replace("\\", "/")
        components = name.split("/")
        if name.startswith("/") or _DRIVE.match(name) or ".." in components:
            raise UnsafeArchive(f"{quote(name)} is a path that leaves the archive; pack relative paths")
        components = [component for component in components if component not in ("", ".")]
        if len(components) > _MAX_FOLDER_DEPTH:
            raise UnsafeArchive(
                f"{quote(name)} is more than {_MAX_FOLDER_DEPTH} folders deep in the archive; move it up"
            )
        is_folder = name.endswith(("/", "/.")) or not components
        path = "/".join(components)
        if not self._limits.nested and not is_folder and path.casefold().endswith(_ARCHIVE_EXTENSIONS):
            raise UnsafeArchive(f"{quote(name)} is an archive in the archive; pack its files themselves")
        return path, is_folder

    def _read_local_header(self, name: str, location: EntryLocation, directory: int) -> EntryLocation:
        """Find the data of an entry behind its local header, which must not contradict the central one."""
        if location.start + _LOCAL.size > directory:
            raise _damaged_directory()
        magic, _, flags, method, *_, name_size, extra_size = _LOCAL.unpack_from(self._data, location.start)
        start = location.start + _LOCAL.size + name_size + extra_size
        if magic != b"PK\x03\x04" or method != location.method or flags & _LOCAL_ENCRYPTION_FLAGS:
            raise UnreadableFile(f"{quote(name)} in the archive contradicts the table of contents; pack it again")
        if start + location.packed > directory:
            raise UnreadableFile(f"{quote(name)} in the archive is cut off; use a complete copy", values=CUT_OFF)
        return EntryLocation(start, location.packed, location.size, location.crc, location.method)


def _damaged_directory() -> UnreadableFile:
    return UnreadableFile("the table of contents of the archive is damaged; pack it again")


def _read_sizes_64(extra: bytes, sizes: tuple[int, int, int]) -> tuple[int, ...]:
    """Replace sizes and offsets that do not fit into 32 bits by those of the extra field (APPNOTE 4.5.3)."""
    if _MAX_32 not in sizes:
        return sizes
    position = 0
    for _ in range(_MAX_EXTRA_FIELDS_COUNT):
        if position + 4 > len(extra):
            break
        kind, length = struct.unpack_from("<HH", extra, position)
        position += 4
        if kind == 1:
            available = min(length, len(extra) - position)
            values = [extra[position + start : position + start + 8] for start in range(0, available - 7, 8)]
            if len(values) < sizes.count(_MAX_32):
                break
            numbers = iter([int.from_bytes(value, "little") for value in values])
            return tuple(next(numbers) if size == _MAX_32 else size for size in sizes)
        position += length
    raise _damaged_directory()


def _add_path(is_file_by_path: dict[str, bool], name: str, *, is_file: bool) -> None:
    """Record a path and its folders. Raises UnsafeArchive for a repeated file, and for a file that is also a folder."""
    path = fold_name(name)
    if not path:
        return
    previous = is_file_by_path.get(path)
    if previous or (is_file and previous is not None):
        raise UnsafeArchive(f"{quote(name)} is in the archive twice (letter case is ignored); rename one of them")
    is_file_by_path[path] = is_file
    slash = path.rfind("/")
    while slash > 0:
        path = path[:slash]
        if is_file_by_path.setdefault(path, False):
            raise UnsafeArchive(f"{quote(name)} is in a folder of the archive that is also a file; rename one of them")
        slash = path.rfind("/")


def fold_name(name: str) -> str:
    """Normalize the letter case and the composition of accents in a name, for comparison."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def check_ratio(inflated: int, packed: int, limits: ArchiveLimits) -> None:
    """Raise UnsafeArchive if the inflated bytes exceed the allowed ratio to the packed bytes."""
    if inflated > limits.ratio_after and inflated > limits.max_ratio * packed:
        raise UnsafeArchive(
            f"the archive unpacks to more than {limits.max_ratio} times its size, as a ZIP bomb does; use the files "
            "themselves"
        )


def allowed_bytes(location: EntryLocation, limits: ArchiveLimits, inflated: int = 0, limit: int | None = None) -> int:
    """Return the maximum number of bytes to which an entry may inflate.

    Args:
        location: The entry.
        limits: Limits of the archive.
        inflated: Bytes that other entries have inflated to.
        limit: Additional limit for this entry.
    """
    bounds = [
        limits.max_entry_bytes,
        limits.max_total_bytes - inflated,
        max(limits.ratio_after, limits.max_ratio * location.packed),
    ]
    return max(min(bounds if limit is None else [*bounds, limit]), 0)


def too_large(name: str, allowed: int) -> UnsafeArchive:
    """Return the error for an entry that inflates to more than the allowed number of bytes."""
    return UnsafeArchive(f"{quote(name)} in the archive unpacks to more than the {allowed} bytes allowed; pack less")
