"""Records of binary FBX files, version 7.4: named nodes with typed properties, as the FBX SDK writes them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

VERSION = 7400

FILE_ID = b"\x28\xb3\x2a\xeb\xb6\x24\xcc\xc2\xbf\xc8\xb0\x2a\xa9\x2b\xfc\xf1"
FIXED_TIME = "1970-01-01 10:00:00:000"
"""Time of creation; the FBX SDK checks that it fits to FILE_ID and _FOOTER_ID."""

_FOOTER_ID = b"\xfa\xbc\xab\x09\xd0\xc8\xd4\x66\xb1\x76\xfb\x83\x1c\xf7\x26\x7e"
_FOOTER_MAGIC = b"\xf8\x5a\x8c\x6a\xde\xf5\xd9\x7e\xec\xe9\x0c\xe3\x75\x8f\x29\x0b"

_HEADER = b"Kaydara FBX Binary  \0\x1a\0" + struct.pack("<I", VERSION)
_RECORD = struct.Struct("<IIIB")
_END = bytes(_RECORD.size)
"""Record that ends a list of records."""

_MAX_FILE_BYTES = 2**32 - 1
"""Greatest offset of version 7.4."""

_ARRAY_KINDS = {"f8": b"d", "i4": b"i"}


class Id(int):
    """Id of an object, which has 64 bits."""


Value = bool | int | float | str | bytes | NDArray[Any]


class Record:
    """Named node: its properties, encoded, and the records in it."""

    def __init__(self, name: str, *values: Value) -> None:
        self.name = name
        self.properties = [_encode(value) for value in values]
        self.children: list[Record] = []

    def add(self, name: str, *values: Value) -> Record:
        """Append a record, and return it."""
        child = Record(name, *values)
        self.children.append(child)
        return child

    def size(self) -> int:
        """Return the number of bytes that `pieces` yields."""
        inner = sum(child.size() for child in self.children)
        end = len(_END) if self._has_end() else 0
        return _RECORD.size + len(self.name) + sum(map(len, self.properties)) + inner + end

    def pieces(self, offset: int) -> Iterator[bytes]:
        """Yield the record, which begins at an offset of the file."""
        head = _RECORD.pack(
            offset + self.size(), len(self.properties), sum(map(len, self.properties)), len(self.name)
        ) + self.name.encode("ascii")
        yield head
        yield from self.properties
        offset += len(head) + sum(map(len, self.properties))
        for child in self.children:
            yield from child.pieces(offset)
            offset += child.size()
        if self._has_end():
            yield _END

    def _has_end(self) -> bool:
        return bool(self.children) or not self.properties


def _encode(value: Value) -> bytes:
    """Return a property: its type and its value."""
    if isinstance(value, np.ndarray):
        data = zlib.compress(value.tobytes(), 1)
        kind = _ARRAY_KINDS[value.dtype.str[1:]]
        return kind + struct.pack("<III", value.size, 1, len(data)) + data
    if isinstance(value, bool):
        return b"C" + struct.pack("<?", value)
    if isinstance(value, Id):
        return b"L" + struct.pack("<q", value)
    if isinstance(value, int):
        return b"I" + struct.pack("<i", value)
    if isinstance(value, float):
        return b"D" + struct.pack("<d", value)
    if isinstance(value, str):
        data = value.encode()
        return b"S" + struct.pack("<I", len(data)) + data
    return b"R" + struct.pack("<I", len(value)) + value


def encode_file(records: list[Record]) -> Iterator[bytes]:
    """Yield a file with these records. Raises ValueError if it exceeds 4 GiB."""
    offset = len(_HEADER)
    if offset + sum(record.size() for record in records) > _MAX_FILE_BYTES:
        raise ValueError("the FBX file would exceed 4 GiB; reduce the number of faces")
    yield _HEADER
    for record in records:
        yield from record.pieces(offset)
        offset += record.size()
    yield _END + _FOOTER_ID + bytes(4)
    offset += len(_END) + len(_FOOTER_ID) + 4
    # to the next multiple of 16, at least one byte
    yield bytes(16 - offset % 16) + struct.pack("<I", VERSION) + bytes(120) + _FOOTER_MAGIC
