"""Hidden objects, which assimp reads like all others: their data are taken out of the file before the import."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

from meshhub_assimp.studio import Visible, repair_sizes, take_out_of_3ds

_LWO_MESH_CHUNKS = (b"PNTS", b"POLS", b"PTAG", b"VMAP", b"VMAD", b"BBOX")
_LAYER_IS_HIDDEN = 1
_GROUP_IS_HIDDEN = 2
_MS3D_HEADER_BYTES, _MS3D_VERTEX_BYTES, _MS3D_TRIANGLE_BYTES, _MS3D_NAME_BYTES = 14, 15, 70, 32

_AC3D_OBJECT = re.compile(rb"^(?=OBJECT\s)", re.MULTILINE)
_AC3D_HIDDEN = re.compile(rb"^hidden[ \t\r]*$", re.MULTILINE)
_AC3D_SURFACES = re.compile(rb"^numsurf\s.*?(?=^kids\s|\Z)", re.MULTILINE | re.DOTALL)

_FBX_TEXT = re.compile(rb'("Visibility"\s*,\s*)"Visibility"|("Visibility Inheritance"\s*,\s*)"Visibility Inheritance"')
_FBX_BINARY = {
    b"S\x0a\0\0\0VisibilityS\x0a\0\0\0Visibility": b"S\x0a\0\0\0VisibilityS\x0a\0\0\0double\0\0\0\0",
    b"S\x16\0\0\0Visibility InheritanceS\x16\0\0\0Visibility Inheritance": (
        b"S\x16\0\0\0Visibility InheritanceS\x16\0\0\0int" + bytes(19)
    ),
}
"""Properties with a type that assimp 6 does not read, and with one that it does. It ends at the first zero."""


def take_out_hidden(data: bytes, format_id: str) -> Visible:
    """Return a file without the objects that it hides.

    Args:
        data: The file; a damaged one is returned as far as it can be parsed.
        format_id: Format of the file. Those that assimp reports, and those without hidden objects, stay.
    """
    reader = _READERS.get(format_id)
    try:
        return Visible(data) if reader is None else reader(data)
    except (struct.error, IndexError, ValueError):
        # assimp says what is damaged
        return Visible(data)


def _expose_fbx(data: bytes) -> Visible:
    """Return an FBX file whose properties of visibility have a type that assimp reports."""
    if data.startswith(b"Kaydara FBX Binary"):
        for unread, read in _FBX_BINARY.items():
            data = data.replace(unread, read)
        return Visible(data)
    return Visible(_FBX_TEXT.sub(lambda match: match[1] + b'"double"' if match[1] else match[2] + b'"int"', data))


def _take_out_of_lwo(data: bytes) -> Visible:
    """Return an LWO2 file whose hidden layers have chunks with unknown names; the flags of Modo mean something else."""
    if data[8:12] != b"LWO2":
        return Visible(data)
    result = bytearray(data)
    offset, is_hidden, hidden_count, shown_count = 12, False, 0, 0
    while offset + 8 <= len(data):
        name, (size,) = data[offset : offset + 4], struct.unpack_from(">I", data, offset + 4)
        if name == b"LAYR":
            (flags,) = struct.unpack_from(">H", data, offset + 10)
            is_hidden = bool(flags & _LAYER_IS_HIDDEN)
        elif name in _LWO_MESH_CHUNKS:
            hidden_count += is_hidden and name == b"POLS"
            shown_count += not is_hidden and name == b"POLS"
            if is_hidden:
                result[offset : offset + 4] = b"HIDN"
        offset += 8 + size + size % 2
    if not shown_count:
        return Visible(data, hidden_count, is_whole=hidden_count > 0)
    return Visible(bytes(result), hidden_count)


def _take_out_of_ms3d(data: bytes) -> Visible:
    """Return a MilkShape file without hidden groups."""
    (vertex_count,) = struct.unpack_from("<H", data, _MS3D_HEADER_BYTES)
    offset = _MS3D_HEADER_BYTES + 2 + vertex_count * _MS3D_VERTEX_BYTES
    (triangle_count,) = struct.unpack_from("<H", data, offset)
    offset += 2 + triangle_count * _MS3D_TRIANGLE_BYTES
    start = offset
    (group_count,) = struct.unpack_from("<H", data, offset)
    offset += 2
    shown: list[bytes] = []
    for _ in range(group_count):
        flags = data[offset]
        (count,) = struct.unpack_from("<H", data, offset + 1 + _MS3D_NAME_BYTES)
        # flags, name, number, indices, material
        end = offset + 1 + _MS3D_NAME_BYTES + 2 + 2 * count + 1
        if not flags & _GROUP_IS_HIDDEN:
            shown.append(data[offset:end])
        offset = end
    hidden_count = group_count - len(shown)
    if not hidden_count or not shown:
        return Visible(data, hidden_count, is_whole=hidden_count > 0)
    groups = struct.pack("<H", len(shown)) + b"".join(shown)
    return Visible(data[:start] + groups + data[offset:], hidden_count)


def _take_out_of_ac3d(data: bytes) -> Visible:
    """Return an AC3D file whose hidden objects have no surfaces."""
    if not _AC3D_HIDDEN.search(data):
        return Visible(data)
    objects = _AC3D_OBJECT.split(data)
    with_surfaces = [number for number, text in enumerate(objects) if _AC3D_SURFACES.search(text)]
    hidden = [number for number in with_surfaces if _AC3D_HIDDEN.search(objects[number])]
    if len(hidden) == len(with_surfaces):
        return Visible(data, len(hidden), is_whole=bool(hidden))
    for number in hidden:
        objects[number] = _AC3D_SURFACES.sub(b"", objects[number])
    return Visible(b"".join(objects), len(hidden))


_READERS: dict[str, Callable[[bytes], Visible]] = {
    "fbx": _expose_fbx,
    "3ds": lambda data: take_out_of_3ds(repair_sizes(data)),
    "lwo": _take_out_of_lwo,
    "ms3d": _take_out_of_ms3d,
    "ac3d": _take_out_of_ac3d,
}
