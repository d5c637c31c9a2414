"""Binary G-code: blocks with metadata and packed text."""

from __future__ import annotations

import re
import struct
import zlib
from typing import NamedTuple

from meshhub import UnreadableFile

_FILE_HEADER = struct.Struct("<4sIH")
_BLOCK_HEADER = struct.Struct("<HHI")
_CHECKSUM_BYTES = {0: 0, 1: 4}
_VERSION = 1

_GCODE_BLOCK = 1
_THUMBNAIL_BLOCK = 5
_METADATA_BLOCKS = (0, 2, 3, 4)
"""Kinds of blocks: file, slicer, printer and print metadata."""

_STORED, _DEFLATED = 0, 1
_HEATSHRINK_WINDOWS = {2: 11, 3: 12}
"""Bits of the window of heatshrink, by the kind of compression; the lookahead has 4."""

_MAX_BLOCK_BYTES = 1 << 26
"""Bytes of a block; those of slicers have 64 KB, and settings less than 1 MB."""

_PACKED = "0123456789. \nGX\0"
"""Characters of the half bytes of MeatPack; the last stands for a whole byte that follows."""

_PACKING_ON, _PACKING_OFF, _RESET, _SPACES_OFF, _SPACES_ON = 251, 250, 249, 247, 246


class BinaryGcode(NamedTuple):
    """Content of a file.

    text:     G-code as text
    metadata: names and values
    """

    text: bytes
    metadata: list[tuple[str, str]]


def read_binary(data: bytes) -> BinaryGcode:
    """Read binary G-code.

    Raises:
        UnreadableFile: The file is cut off or damaged, or of a later version.
    Source:
        https://github.com/prusa3d/libbgcode/blob/main/doc/specifications.md
    """
    if len(data) < _FILE_HEADER.size:
        raise _describe_damage("it is cut off")
    magic, version, checksum = _FILE_HEADER.unpack_from(data)
    if magic != b"GCDE":
        raise UnreadableFile("the file does not begin as binary G-code does; check its format, or slice it again")
    if version != _VERSION or checksum not in _CHECKSUM_BYTES:
        raise UnreadableFile(f"version {version} of binary G-code is not supported; export G-code as text")
    at = _FILE_HEADER.size
    texts: list[bytes] = []
    metadata: list[tuple[str, str]] = []
    while at < len(data):
        start = at
        kind, compression, size = _unpack(_BLOCK_HEADER, data, at)
        at += _BLOCK_HEADER.size
        packed_size = size
        if compression != _STORED:
            (packed_size,) = _unpack(struct.Struct("<I"), data, at)
            at += 4
        at += 6 if kind == _THUMBNAIL_BLOCK else 2
        end = at + packed_size
        if end + _CHECKSUM_BYTES[checksum] > len(data):
            raise _describe_damage("it is cut off")
        if checksum and zlib.crc32(data[start:end]) != int.from_bytes(data[end : end + 4], "little"):
            raise _describe_damage(f"the checksum of the block at byte {start} differs")
        if kind == _GCODE_BLOCK:
            encoding = int.from_bytes(data[at - 2 : at], "little")
            texts.append(_decode(_decompress(data[at:end], compression, size), encoding))
        elif kind in _METADATA_BLOCKS:
            block = _decompress(data[at:end], compression, size).decode("utf-8", "replace")
            metadata += [(name, value) for name, _, value in (line.partition("=") for line in block.splitlines())]
        at = end + _CHECKSUM_BYTES[checksum]
    return BinaryGcode(b"".join(texts), metadata)


def _describe_damage(what: str) -> UnreadableFile:
    return UnreadableFile(f"the binary G-code is damaged: {what}; export it again")


def _unpack(layout: struct.Struct, data: bytes, at: int) -> tuple[int, ...]:
    if at + layout.size > len(data):
        raise _describe_damage("it is cut off")
    return layout.unpack_from(data, at)


def _decompress(data: bytes, compression: int, size: int) -> bytes:
    """Return the content of a block, which states its size."""
    if size > _MAX_BLOCK_BYTES:
        raise _describe_damage("a block is too large")
    if compression == _STORED:
        return data
    try:
        if compression == _DEFLATED:
            result = zlib.decompressobj().decompress(data, size + 1)
        elif compression in _HEATSHRINK_WINDOWS:
            import heatshrink2  # type: ignore[import-untyped]

            # expands by at most a factor of 8: 16 bytes from 16 bits
            result = bytes(heatshrink2.decode(data, window_sz2=_HEATSHRINK_WINDOWS[compression], lookahead_sz2=4))
        else:
            raise _describe_damage(f"compression {compression} is unknown")
    except (zlib.error, RuntimeError, ValueError):
        raise _describe_damage("a compressed block cannot be unpacked") from None
    if len(result) != size:
        raise _describe_damage("a compressed block has another size than it states")
    return result


def _decode(data: bytes, encoding: int) -> bytes:
    """Return the text of a block. Encodings 1 and 2 are MeatPack, without and with comments."""
    if encoding == 0:
        return data
    if encoding not in (1, 2):
        raise _describe_damage(f"encoding {encoding} is unknown")
    return unpack_meatpack(data)


def _make_table(space: str) -> tuple[list[bytes], list[bytes]]:
    """Return the characters of each byte: of both halves, and of the lower or the only known half."""
    characters = _PACKED.replace(" ", space)
    pairs, singles = [], []
    for byte in range(256):
        low, high = characters[byte & 15], characters[byte >> 4]
        # a line feed in the lower half ends the byte: the other half only fills it
        pairs.append((low if low == "\n" else low + high).encode())
        singles.append((low if low != "\0" else high if high != "\0" else "").encode())
    return pairs, singles


_TABLES = {has_spaces: _make_table(" " if has_spaces else "E") for has_spaces in (True, False)}

_WHOLE = "".join(f"\\x{byte:02x}" for byte in range(256) if byte & 15 != 15 and (byte >> 4 != 15 or byte & 15 == 12))
_TOKEN = re.compile(
    rb"(?P<command>\xff\xff.)|(?P<both>\xff[^\xff].)|(?P<low>["
    + "".join(f"\\x{byte:02x}" for byte in range(256) if byte & 15 == 15 and byte != 255).encode()
    + rb"].)|(?P<high>["
    + "".join(f"\\x{byte:02x}" for byte in range(256) if byte >> 4 == 15 and byte & 15 not in (12, 15)).encode()
    + rb"].)|(?P<pairs>["
    + _WHOLE.encode()
    + rb"]+)",
    re.DOTALL,
)
"""Commands, bytes with one or both halves for whole bytes that follow, and runs of bytes without."""


def unpack_meatpack(data: bytes) -> bytes:
    """Return the text of MeatPack: two characters in a byte for the fifteen most frequent.

    Source:
        https://github.com/scottmudge/OctoPrint-MeatPack, and the decoder of libbgcode
    """
    is_packed, has_spaces = False, True
    pieces: list[bytes] = []
    at = 0
    while at < len(data):
        if not is_packed:
            # whole bytes up to the next command
            end = data.find(b"\xff\xff", at)
            pieces.append(data[at : end if end >= 0 else len(data)])
            if end < 0 or end + 2 >= len(data):
                break
            command, at = data[end + 2], end + 3
        else:
            at, found = _unpack_run(data, at, _TABLES[has_spaces], pieces)
            if found is None:
                break
            command = found
        if command in (_PACKING_ON, _PACKING_OFF, _RESET):
            is_packed = command == _PACKING_ON
        if command in (_RESET, _SPACES_ON):
            has_spaces = True
        elif command == _SPACES_OFF:
            has_spaces = False
    return b"".join(pieces)


def _unpack_run(
    data: bytes, at: int, tables: tuple[list[bytes], list[bytes]], pieces: list[bytes]
) -> tuple[int, int | None]:
    """Add the text up to the next command; return the position after it, and the command."""
    pairs, singles = tables
    for match in _TOKEN.finditer(data, at):
        if match.start() != at:
            raise _describe_damage("its packed text is cut off")
        at, token = match.end(), match[0]
        kind = match.lastgroup
        if kind == "pairs":
            pieces.append(b"".join([pairs[byte] for byte in token]))
        elif kind == "low":
            pieces.append(token[1:] + singles[token[0] & 0xF0 | 0x0F])
        elif kind == "high":
            pieces.append(singles[token[0] & 0x0F | 0xF0] + token[1:])
        elif kind == "both":
            pieces.append(token[1:])
        else:
            return at, token[2]
    return at, None
