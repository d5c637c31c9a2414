"""3DS files as assimp reads them: chunks that contain their parts, without hidden objects."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

_CHUNK = struct.Struct("<HI")
_MAIN, _EDITOR, _OBJECT, _MESH, _HIDDEN = 0x4D4D, 0x3D3D, 0x4000, 0x4100, 0x4010
_KEY_FRAMES, _NODE, _NODE_HEADER = 0xB000, 0xB002, 0xB010
"""Chunks of 3DS files; `_HIDDEN` marks the object that it is in."""
_CONTAINERS = (_MAIN, _EDITOR, _OBJECT, _MESH)
_NODE_IS_HIDDEN = 0x0800
"""Flag of the header of a node."""
_UNKNOWN_CHUNK = b"\xf1\x41"
"""Number that replaces `_MESH`; readers skip it."""


class Visible(NamedTuple):
    """File without its hidden objects.

    data:         the file
    hidden_count: objects that were taken out
    is_whole:     whether all objects are hidden, so that none was taken out
    """

    data: bytes
    hidden_count: int = 0
    is_whole: bool = False


def repair_sizes(data: bytes) -> bytes:
    """Return a 3DS file whose chunks are as large as their parts.

    OpenCTM writes objects and meshes whose size lacks bytes of their last part. lib3ds reads these files.
    """
    result = bytearray(data)
    _grow(result, 0, len(data), _CONTAINERS)
    return bytes(result)


def _grow(data: bytearray, start: int, end: int, numbers: tuple[int, ...]) -> int:
    """Enlarge the containers of chunks between two offsets, and return where the last chunk ends.

    Args:
        data: File.
        start: Offset of the first chunk.
        end: Offset at which the container of the chunks ends.
        numbers: Container at this level, and those within it.
    """
    while start + _CHUNK.size <= end:
        found, size = _CHUNK.unpack_from(data, start)
        stop = start + size
        if size < _CHUNK.size or stop > len(data):
            break
        if numbers and found == numbers[0]:
            first = start + _CHUNK.size
            if found == _OBJECT:
                first = data.index(b"\0", first, stop) + 1
            stop = max(stop, _grow(data, first, stop, numbers[1:]))
            _CHUNK.pack_into(data, start, found, stop - start)
        start = stop
    return max(start, end)


def take_out_of_3ds(data: bytes) -> Visible:
    """Return a 3DS file whose hidden objects have meshes of an unknown kind."""
    objects: list[tuple[bytes, int, bool]] = []
    hidden_nodes: set[bytes] = set()
    for start, end in _find_chunks(data, 0, len(data), _MAIN):
        for begin, stop in _find_chunks(data, start, end, _EDITOR):
            objects += _list_objects(data, begin, stop)
        for begin, stop in _find_chunks(data, start, end, _KEY_FRAMES):
            hidden_nodes |= set(_list_hidden_nodes(data, begin, stop))
    hidden = [mesh for name, mesh, is_hidden in objects if is_hidden or name in hidden_nodes]
    if not hidden or len(hidden) == len(objects):
        return Visible(data, len(hidden), is_whole=bool(hidden))
    result = bytearray(data)
    for mesh in hidden:
        result[mesh : mesh + 2] = _UNKNOWN_CHUNK
    return Visible(bytes(result), len(hidden))


def _list_objects(data: bytes, start: int, end: int) -> Iterator[tuple[bytes, int, bool]]:
    """Yield name, offset of the mesh and whether it is hidden, of each object with a mesh."""
    for begin, stop in _find_chunks(data, start, end, _OBJECT):
        name_end = data.index(b"\0", begin, stop)
        meshes = list(_find_chunks(data, name_end + 1, stop, _MESH))
        if meshes:
            is_hidden = any(True for _ in _find_chunks(data, name_end + 1, stop, _HIDDEN))
            yield data[begin:name_end], meshes[0][0] - _CHUNK.size, is_hidden


def _list_hidden_nodes(data: bytes, start: int, end: int) -> Iterator[bytes]:
    for begin, stop in _find_chunks(data, start, end, _NODE):
        for header, header_end in _find_chunks(data, begin, stop, _NODE_HEADER):
            name_end = data.index(b"\0", header, header_end)
            (flags,) = struct.unpack_from("<H", data, name_end + 1)
            if flags & _NODE_IS_HIDDEN:
                yield data[header:name_end]


def _find_chunks(data: bytes, start: int, end: int, number: int) -> Iterator[tuple[int, int]]:
    """Yield the offsets of the contents of all chunks of a number between two offsets."""
    while start + _CHUNK.size <= end:
        found, size = _CHUNK.unpack_from(data, start)
        if size < _CHUNK.size:
            return
        stop = min(start + size, end)
        if found == number:
            yield start + _CHUNK.size, stop
        start = stop
