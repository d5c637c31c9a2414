"""ZIP archives with the same bytes for the same content: no time, no system, one level of compression."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import BinaryIO

from isal import isal_zlib

from meshhub.errors import ConversionFailed

_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_VERSION, _UTF8, _DEFLATED = 20, 0x800, 8
_TIME, _DATE = 0, 0x21
"""1 January 1980, the earliest that a ZIP archive can say."""
_MOST = 0xFFFFFFFE


def write_zip(file: BinaryIO, entries: Iterable[tuple[str, Sequence[bytes | memoryview]]]) -> None:
    """Write an archive of named pieces. Raises ConversionFailed beyond 4 GB, where slicers cannot follow."""
    directory: list[bytes] = []
    at = 0
    for name, pieces in entries:
        raw = name.encode()
        packer = isal_zlib.compressobj(1, isal_zlib.DEFLATED, -15)
        packed = []
        size = crc = 0
        for piece in pieces:
            packed.append(packer.compress(piece))
            crc = isal_zlib.crc32(piece, crc)
            size += len(piece)
        packed.append(packer.flush())
        length = sum(map(len, packed))
        header = (_VERSION, _UTF8, _DEFLATED, _TIME, _DATE, crc, length, size, len(raw), 0)
        if max(size, at + length + len(raw) + 100) > _MOST:
            raise ConversionFailed("the model is too large for one 3MF file (4 GB); reduce it first")
        file.write(_LOCAL.pack(b"PK\x03\x04", *header) + raw)
        for chunk in packed:
            file.write(chunk)
        directory.append(_CENTRAL.pack(b"PK\x01\x02", _VERSION, *header, 0, 0, 0, 0, at) + raw)
        at += _LOCAL.size + len(raw) + length
    table = b"".join(directory)
    file.write(table + _END.pack(b"PK\x05\x06", 0, 0, len(directory), len(directory), len(table), at, 0))
