"""Files as assimp reads them rightly: without hidden objects, which get a note, and with each surface once."""

from __future__ import annotations

import re
import struct

from meshhub import note

_OBJECT = re.compile(rb"^(?=OBJECT\s)", re.MULTILINE)
_HIDDEN = re.compile(rb"^hidden[ \t\r]*$", re.MULTILINE)
_SURFACES = re.compile(rb"^numsurf\s.*?(?=^kids\s|\Z)", re.MULTILINE | re.DOTALL)
_SURFACE = re.compile(rb"^([ \t]{0,80}SURF[ \t]{1,80}0[xX])([0-9a-fA-F]{1,8})", re.MULTILINE)

_TWO_SIDED = 0x20
"""Flag of surfaces of AC3D that are visible from both sides; assimp reads each of them as two faces."""

_CHUNK = struct.Struct(">4sI")
_SHARED = (b"TAGS", b"CLIP", b"SURF", b"ENVL")
"""Chunks of LWO2 that belong to no layer."""
_HIDDEN_LAYER = 1
"""Flag of layers of LWO2 that are hidden."""

_VERTEX_BYTES, _TRIANGLE_BYTES, _GROUP_HEAD_BYTES = 15, 70, 33
"""Sizes of the records of MilkShape 3D; the head of a group is its flags and its name."""
_HIDDEN_GROUP = 2
"""Flag of groups of MilkShape 3D that are hidden."""


def _note_hidden() -> None:
    note("invisible_skipped", "skipped invisible objects")


def prepare_ac3d(data: bytes) -> bytes:
    """Return a file without the flag of two sides, and without the surfaces of hidden objects."""
    if _HIDDEN.search(data):
        objects = _OBJECT.split(data)
        shown = [_SURFACES.sub(b"", each) if _HIDDEN.search(each) else each for each in objects]
        if shown != objects:
            _note_hidden()
            data = b"".join(shown)
    return _SURFACE.sub(lambda match: match[1] + f"{int(match[2], 16) & ~_TWO_SIDED:x}".encode(), data)


def prepare_lwo(data: bytes) -> bytes:
    """Return a file of version 2 without what is in hidden layers; the flags of Modo mean something else."""
    if data[8:12] != b"LWO2":
        return data
    chunks, position, is_hidden, was_hidden = [], 12, False, False
    while position + _CHUNK.size <= len(data):
        name, size = _CHUNK.unpack_from(data, position)
        end = position + _CHUNK.size + size + size % 2
        if name == b"LAYR" and size >= 4:
            is_hidden = bool(int.from_bytes(data[position + 10 : position + 12]) & _HIDDEN_LAYER)
        was_hidden |= is_hidden and name == b"POLS"
        if not is_hidden or name == b"LAYR" or name in _SHARED:
            chunks.append(data[position:end])
        position = end
    if not was_hidden:
        return data
    _note_hidden()
    content = b"LWO2" + b"".join(chunks)
    return _CHUNK.pack(b"FORM", len(content)) + content


def prepare_ms3d(data: bytes) -> bytes:
    """Return a file whose hidden groups have no triangles."""
    position, pieces, is_hidden = 14, [], False
    try:
        for size in (_VERTEX_BYTES, _TRIANGLE_BYTES):
            position += 2 + struct.unpack_from("<H", data, position)[0] * size
        (groups,) = struct.unpack_from("<H", data, position)
        position += 2
        pieces.append(data[:position])
        for _ in range(groups):
            (count,) = struct.unpack_from("<H", data, position + _GROUP_HEAD_BYTES)
            head, end = position + _GROUP_HEAD_BYTES, position + _GROUP_HEAD_BYTES + 2 + 2 * count + 1
            is_shown = not data[position] & _HIDDEN_GROUP
            is_hidden |= not is_shown
            pieces.append(data[position:end] if is_shown else data[position:head] + bytes(2) + data[end - 1 : end])
            position = end
    except (struct.error, IndexError):
        # assimp reports where the file is cut off
        return data
    if not is_hidden:
        return data
    _note_hidden()
    return b"".join([*pieces, data[position:]])
