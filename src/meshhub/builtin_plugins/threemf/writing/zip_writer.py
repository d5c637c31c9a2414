"""Write ZIP archives that are reproducible: no time stamps, no system attributes, one compression level."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import BinaryIO

from isal import isal_zlib

from meshhub.errors import ConversionFailed
from meshhub.model.notes import advise_reduction
from meshhub.toolkit.threads import map_threads

_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_VERSION, _UTF8, _DEFLATED = 20, 0x800, 8
_TIME, _DATE = 0, 0x21
"""1 January 1980, the earliest date that a ZIP archive can store."""
_MAX_ARCHIVE_BYTES = 0xFFFFFFFE
"""Maximum bytes; larger archives need ZIP64, which slicers do not read."""
_BLOCK_BYTES = 4 << 20
"""Bytes that are compressed by themselves, so that the result does not depend on the number of threads."""
_LAST_BLOCK = b"\x03\x00"
"""Empty block of fixed Huffman codes that ends a deflate stream (RFC 1951, section 3.2.3)."""
_HEADER_MARGIN_BYTES = 100
"""Bytes; more than the headers of one entry take, apart from its name."""


def write_zip(file: BinaryIO, entries: Iterable[tuple[str, Sequence[bytes | memoryview]]]) -> None:
    """Write an archive.

    Args:
        file: Open for writing.
        entries: Name and chunks of content of each entry.
    Raises:
        ConversionFailed: The archive would exceed 4 GB.
    """
    directory: list[bytes] = []
    at = 0
    for name, chunks in entries:
        raw = name.encode()
        blocks = _divide(chunks)
        packed = map_threads(_deflate, blocks)
        packed.append(_LAST_BLOCK)
        size = crc = 0
        for block in blocks:
            for chunk in block:
                crc = isal_zlib.crc32(chunk, crc)
                size += len(chunk)
        length = sum(map(len, packed))
        header = (_VERSION, _UTF8, _DEFLATED, _TIME, _DATE, crc, length, size, len(raw), 0)
        if max(size, at + length + len(raw) + _HEADER_MARGIN_BYTES) > _MAX_ARCHIVE_BYTES:
            advice, options = advise_reduction()
            raise ConversionFailed(f"the model exceeds 4 GB, the limit of a 3MF file; {advice}", options=options)
        file.write(_LOCAL.pack(b"PK\x03\x04", *header) + raw)
        for compressed in packed:
            file.write(compressed)
        directory.append(_CENTRAL.pack(b"PK\x01\x02", _VERSION, *header, 0, 0, 0, 0, at) + raw)
        at += _LOCAL.size + len(raw) + length
    table = b"".join(directory)
    file.write(table + _END.pack(b"PK\x05\x06", 0, 0, len(directory), len(directory), len(table), at, 0))


def _divide(chunks: Sequence[bytes | memoryview]) -> list[list[bytes | memoryview]]:
    """Divide chunks into blocks of about `_BLOCK_BYTES`."""
    blocks: list[list[bytes | memoryview]] = [[]]
    room = _BLOCK_BYTES
    for chunk in chunks:
        view = memoryview(chunk)
        while len(view) > room:
            blocks[-1].append(view[:room])
            blocks.append([])
            view, room = view[room:], _BLOCK_BYTES
        blocks[-1].append(view)
        room -= len(view)
    return blocks


def _deflate(block: Sequence[bytes | memoryview]) -> bytes:
    """Compress a block so that others can follow."""
    compressor = isal_zlib.compressobj(1, isal_zlib.DEFLATED, -15)
    packed = [compressor.compress(chunk) for chunk in block]
    return b"".join((*packed, compressor.flush(isal_zlib.Z_FULL_FLUSH)))
