"""The table of contents of a ZIP archive, parsed and checked before anything is unpacked by it.

Parsed here and not by the standard library, which would build a million objects before anyone
could count them. After APPNOTE.TXT 6.3.
"""

from __future__ import annotations

import itertools
import re
import struct
import unicodedata

from msgspec import Struct

from meshhub.errors import UnreadableFile, UnsafeArchive

_END = struct.Struct("<4s4H2LH")
_END_LOCATOR = struct.Struct("<4sLQL")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
STORED, DEFLATED = 0, 8
_SPECIAL = frozenset((0x1000, 0x2000, 0x6000, 0xA000, 0xC000))
"""File types of Unix: pipe, the two kinds of device, link, socket."""
_DRIVE = re.compile(r"[A-Za-z]:")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NESTED = tuple(".zip .zipx .7z .rar .tar .gz .tgz .bz2 .tbz2 .xz .txz .zst .lzma .jar".split())
_FOLDERS_DEEP = 32
_EXTRAS = 100
"""Extra fields of an entry that are looked through."""


class ArchiveLimits(Struct, frozen=True, kw_only=True):
    """What an archive may hold. Sizes are of inflated bytes, as counted while inflating.

    max_ratio:   inflated bytes for each packed one, of an entry and of all together, once more than
                 `ratio_after` bytes have come out.
    nested:      whether an archive may hold archives; none is ever opened here.
    backslashes: whether a backslash in a name is taken for a slash, or refused.
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
"""For formats that are archives themselves."""

UPLOAD_LIMITS = ArchiveLimits(nested=False, backslashes=False)
"""For archives that strangers send: no archive inside, no backslash in a name."""


class Entry(Struct, frozen=True):
    """A file in an archive: its path with slashes, and the sizes that the archive tells."""

    name: str
    size: int
    packed: int


class Where(Struct, frozen=True):
    """Where the packed bytes of an entry lie, and what they should become."""

    start: int
    packed: int
    size: int
    crc: int
    method: int


class Directory:
    """Reads the table of contents of one archive.

    All of it raises UnreadableFile for what is damaged and UnsafeArchive for what is built to harm.
    """

    def __init__(self, data: memoryview, limits: ArchiveLimits) -> None:
        self._data = data
        self._limits = limits

    def contents(self) -> tuple[tuple[Entry, ...], dict[str, Where]]:
        """The files in their order, and where each lies; folders are checked and left out."""
        count, start, end = self._directory()
        entries: list[Entry] = []
        found: dict[str, Where] = {}
        spans: list[tuple[int, int]] = []
        taken: dict[str, bool] = {}  # folded path → whether it is a file
        inflated = packed = 0
        at = start
        for _ in range(count):
            name, folder, where, at = self._central(at, end, start)
            spans.append((where.start, where.start + where.packed))
            where = self._local(name, where, start)
            spans[-1] = (spans[-1][0], where.start + where.packed)
            inflated, packed = inflated + where.size, packed + where.packed
            self._check_sizes(name, where, inflated, packed)
            _claim(taken, name, file=not folder)
            if not folder:
                entries.append(Entry(name, where.size, where.packed))
                found[name] = where
        if at != end:
            raise UnreadableFile("the archive's table of contents is damaged; pack it again")
        spans.sort()
        for (_, before), (after, _) in itertools.pairwise(spans):
            if after < before:
                raise UnsafeArchive("the archive holds entries that overlap, as only bombs do")
        return tuple(entries), found

    def _check_sizes(self, name: str, where: Where, inflated: int, packed: int) -> None:
        """Refuse by what the archive itself tells, before the real bytes are counted."""
        allowed = allowed_bytes(where, self._limits)
        if where.size > allowed:
            raise too_large(name, allowed)
        if inflated > self._limits.max_total_bytes:
            raise UnsafeArchive(
                f"the archive unpacks to more than {self._limits.max_total_bytes} bytes; send less at once"
            )
        check_ratio(inflated, packed, self._limits)

    def _directory(self) -> tuple[int, int, int]:
        """How many entries the table of contents has, where it starts and ends."""
        data = self._data
        tail = bytes(data[max(len(data) - _END.size - 0xFFFF, 0) :])
        at = tail.rfind(b"PK\x05\x06")
        while at >= 0 and len(tail) - at < _END.size:
            at = tail.rfind(b"PK\x05\x06", 0, at)
        if at < 0:
            raise UnreadableFile(
                "this is no complete ZIP archive: its table of contents is missing; pack or send it again"
            )
        _, disk, first_disk, here, count, size, start, comment = _END.unpack_from(tail, at)
        if len(tail) - at - _END.size < comment:
            raise UnreadableFile("the archive ends too early; send it again")
        end = len(data) - len(tail) + at
        if 0xFFFF in (here, count) or 0xFFFFFFFF in (size, start):
            end, disk, first_disk, here, count, size, start = self._directory_64(
                end, (disk, first_disk, here, count, size, start)
            )
        if disk or first_disk or here != count:
            raise UnreadableFile("the archive is one volume of several; pack it into one file")
        if count > self._limits.max_entries:
            raise UnsafeArchive(f"the archive holds more than {self._limits.max_entries} files; send fewer at once")
        if start + size != end or size < count * _CENTRAL.size:
            raise UnreadableFile("the archive's table of contents is damaged; pack it again")
        return count, start, end

    def _directory_64(self, end: int, plain: tuple[int, ...]) -> tuple[int, ...]:
        """The same from the records for large archives (APPNOTE 4.3.14), when they are there."""
        at = end - _END_LOCATOR.size
        if at < 0 or bytes(self._data[at : at + 4]) != b"PK\x06\x07":
            return end, *plain
        _, _, where, _ = _END_LOCATOR.unpack_from(self._data, at)
        if where + _END_64.size > at or bytes(self._data[where : where + 4]) != b"PK\x06\x06":
            raise UnreadableFile("the archive's table of contents is damaged; pack it again")
        _, _, _, _, disk, first_disk, here, count, size, start = _END_64.unpack_from(self._data, where)
        return where, disk, first_disk, here, count, size, start

    def _central(self, at: int, end: int, directory: int) -> tuple[str, bool, Where, int]:
        """One entry of the table of contents: name, whether it is a folder, where it lies, where the next one is."""
        damaged = UnreadableFile("the archive's table of contents is damaged; pack it again")
        if at + _CENTRAL.size > end:
            raise damaged
        fields = _CENTRAL.unpack_from(self._data, at)
        magic, made_by, _, flags, method, _, _, crc, packed, size, name_size, extra_size, comment_size, *rest = fields
        _, _, attributes, start = rest
        at += _CENTRAL.size
        after = at + name_size + extra_size + comment_size
        if magic != b"PK\x01\x02" or after > end:
            raise damaged
        if name_size > self._limits.max_name_bytes:
            raise UnsafeArchive(f"the archive holds a name of {name_size} bytes; shorten its names and folders")
        name, folder = self._name(bytes(self._data[at : at + name_size]), utf8=bool(flags & 0x800))
        extra = bytes(self._data[at + name_size : at + name_size + extra_size])
        size, packed, start = _large(extra, (size, packed, start))
        if flags & 0x2041:  # encrypted, strongly encrypted, masked headers
            raise UnsafeArchive(f"{shown(name)} in the archive is encrypted; pack it without a password")
        kind = attributes >> 16 & 0xF000
        if kind in _SPECIAL or (attributes & 0x400 and made_by >> 8 in (0, 10, 11)):
            raise UnsafeArchive(f"{shown(name)} in the archive is a link or a device; pack plain files only")
        if method not in (STORED, DEFLATED):
            raise UnsafeArchive(f"{shown(name)} in the archive is packed by method {method}; pack it by deflate")
        if (method == STORED and size != packed) or start + packed > directory:
            raise damaged
        return name, folder or kind == 0x4000, Where(start, packed, size, crc, method), after

    def _name(self, raw: bytes, *, utf8: bool) -> tuple[str, bool]:
        """A path as it may be used, and whether it names a folder."""
        try:
            name = raw.decode("utf-8")  # most packers write it without saying so
        except UnicodeDecodeError:
            if utf8:
                raise UnreadableFile("the archive holds a name that is not UTF-8, as it says; pack it again") from None
            name = raw.decode("cp437")
        if _CONTROL.search(name):
            raise UnsafeArchive(f"{shown(name)} in the archive has control characters in its name")
        if "\\" in name:
            if not self._limits.backslashes:
                raise UnsafeArchive(f"{shown(name)} in the archive has a backslash in its name; use slashes")
            name = name.replace("\\", "/")
        components = name.split("/")
        if name.startswith("/") or _DRIVE.match(name) or ".." in components:
            raise UnsafeArchive(f"{shown(name)} in the archive leads out of the archive; pack relative paths")
        components = [component for component in components if component not in ("", ".")]
        if len(components) > _FOLDERS_DEEP:
            raise UnsafeArchive(f"{shown(name)} in the archive lies more than {_FOLDERS_DEEP} folders deep")
        folder = name.endswith(("/", "/.")) or not components
        plain = "/".join(components)
        if not self._limits.nested and not folder and plain.casefold().endswith(_NESTED):
            raise UnsafeArchive(f"{shown(name)} is an archive in the archive; send its files themselves")
        return plain, folder

    def _local(self, name: str, where: Where, directory: int) -> Where:
        """Where the bytes of an entry really start, by its own header, which must not contradict."""
        if where.start + _LOCAL.size > directory:
            raise UnreadableFile("the archive's table of contents is damaged; pack it again")
        magic, _, flags, method, *_, name_size, extra_size = _LOCAL.unpack_from(self._data, where.start)
        start = where.start + _LOCAL.size + name_size + extra_size
        if magic != b"PK\x03\x04" or method != where.method or flags & 0x41:
            raise UnreadableFile(f"{shown(name)} in the archive contradicts the table of contents; pack it again")
        if start + where.packed > directory:
            raise UnreadableFile(f"{shown(name)} in the archive is cut off; send it again")
        return Where(start, where.packed, where.size, where.crc, where.method)


def _large(extra: bytes, sizes: tuple[int, int, int]) -> tuple[int, ...]:
    """Size, packed size and offset with those that need 64 bits taken from the extra field (APPNOTE 4.5.3)."""
    if 0xFFFFFFFF not in sizes:
        return sizes
    at = 0
    for _ in range(_EXTRAS):
        if at + 4 > len(extra):
            break
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == 1:
            wide = [extra[at + 4 + k : at + 12 + k] for k in range(0, min(length, len(extra) - at - 4) - 7, 8)]
            if len(wide) < sizes.count(0xFFFFFFFF):
                break
            numbers = iter([int.from_bytes(field, "little") for field in wide])
            return tuple(next(numbers) if size == 0xFFFFFFFF else size for size in sizes)
        at += 4 + length
    raise UnreadableFile("the archive's table of contents is damaged; pack it again")


def _claim(taken: dict[str, bool], name: str, *, file: bool) -> None:
    """Note a path and the folders above it; a file may not be named twice, nor be a folder too."""
    folded = folded_name(name)
    if not folded:
        return
    before = taken.get(folded)
    if before or (file and before is not None):
        raise UnsafeArchive(f"{shown(name)} is in the archive twice; names that differ by case alone count as one")
    taken[folded] = file
    at = folded.rfind("/")
    while at > 0:
        folded = folded[:at]
        if taken.setdefault(folded, False):
            raise UnsafeArchive(f"{shown(name)} lies in a folder of the archive that is a file too")
        at = folded.rfind("/")


def folded_name(name: str) -> str:
    """A name with case and composition of accents made alike."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def shown(name: str) -> str:
    """A name for a message, cut short."""
    return repr(name if len(name) <= 80 else name[:38] + "…" + name[-40:])


def check_ratio(inflated: int, packed: int, limits: ArchiveLimits) -> None:
    """Raises UnsafeArchive when all that came out is too much for what was packed."""
    if inflated > limits.ratio_after and inflated > limits.max_ratio * packed:
        raise UnsafeArchive(f"the archive unpacks to more than {limits.max_ratio} times its size, as only bombs do")


def allowed_bytes(where: Where, limits: ArchiveLimits, inflated: int = 0, limit: int | None = None) -> int:
    """How many bytes may come out of an entry, when `inflated` have come out of others."""
    bounds = [
        limits.max_entry_bytes,
        limits.max_total_bytes - inflated,
        max(limits.ratio_after, limits.max_ratio * where.packed),
    ]
    return max(min(bounds if limit is None else [*bounds, limit]), 0)


def too_large(name: str, allowed: int) -> UnsafeArchive:
    """The error for an entry that holds more than may come out of it."""
    return UnsafeArchive(f"{shown(name)} in the archive unpacks to more than the {allowed} bytes that are allowed here")
