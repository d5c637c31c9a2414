"""Detection of formats without a signature by content. Imports nothing heavy."""

from __future__ import annotations

import re
import struct

_TEXT_FBX = re.compile(rb"\s{0,80}; FBX \d{1,3}\.\d{1,3}\.\d{1,3} project file|FBXHeaderExtension:\s{1,80}\{")
_CHUNK = struct.Struct("<HI")

_MAIN_3DS = 0x4D4D
_FIRST_3DS = {0x0002, 0x3D3D, 0x3D3E, 0xB000, 0x0100}
"""Chunks that begin the content of a 3DS file: version, editor, version of the mesh, key frames, scale."""


def sniff_fbx(head: bytes, size: int) -> int:  # noqa: ARG001
    """Return the confidence that the file is text FBX, 0 … 100; binary files have a signature."""
    return 90 if _TEXT_FBX.search(head[:4096]) else 0


def sniff_3ds(head: bytes, size: int) -> int:
    """Return the confidence that the file is 3DS, 0 … 100; two bytes alone would be a weak signature."""
    if len(head) < 2 * _CHUNK.size:
        return 0
    kind, length = _CHUNK.unpack_from(head)
    first, _ = _CHUNK.unpack_from(head, _CHUNK.size)
    if kind != _MAIN_3DS or first not in _FIRST_3DS:
        return 0
    return 95 if length == size else 70
