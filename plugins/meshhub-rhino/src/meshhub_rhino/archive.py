"""Arrays of meshes in the bytes of rhino3dm, whose own functions take and give one vertex at a time.

`Encode` of an object returns its chunk of an openNURBS archive, and `Decode` reads one, so that a million vertices need
milliseconds instead of ten seconds.

Source: ON_Mesh::Write and ON_BinaryArchive of https://github.com/mcneel/opennurbs
"""

from __future__ import annotations

import base64
import importlib
import struct
import uuid
import zlib
from typing import Any, NamedTuple

import numpy as np

from meshhub import UnreadableFile
from meshhub.model.scene import Float32, Float64, Int32, Mesh, UInt8

rhino3dm: Any = importlib.import_module("rhino3dm")
"""The library, without its types, which call properties read-only that are not."""

_CHUNK = struct.Struct("<Iq")
_CLASS, _CLASS_UUID, _CLASS_DATA, _CLASS_END = 0x00027FFA, 0x0002FFFB, 0x0002FFFC, 0x80027FFF
_ANONYMOUS = 0x40008000
_MESH_UUID = bytes.fromhex("e4d4d74e47e9d311bfe50010830122f0")

_VERSION = 0x38
"""Major and minor version of meshes, 3.8: with vertices in double precision, and their box."""

_UNSET = struct.pack("<d", -1.23432101234321e308)
_MAPPING = struct.pack("<ii", 1, 1) + bytes(20) + np.eye(4, dtype="<f8").tobytes() + bytes(4)
"""Tag of a texture mapping: its version, none, and no transform."""

_REVISION_TABLE, _REVISION = 0x10000014, 0x20008021
_FILE_HEADER_BYTES = 32
_NO_DATE = struct.pack("<8i", 0, 0, 0, 1, 0, 70, 4, 0)
"""First second of 1970, because equal scenes give equal files."""


class MeshArrays(NamedTuple):
    """Arrays of a mesh of Rhino.

    vertices: (n, 3) positions
    faces:    (m, 4) vertices of each face; the last two are equal in a triangle
    normals:  (n, 3) or None
    colors:   (n, 4) or None
    """

    vertices: Float64
    faces: Int32
    normals: Float32 | None
    colors: UInt8 | None


class _Cursor:
    """Position in the bytes of a chunk."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    def take(self, layout: str) -> tuple[Any, ...]:
        """Return the values of a layout, and move behind them."""
        values = struct.unpack_from("<" + layout, self.data, self.at)
        self.at += struct.calcsize("<" + layout)
        return values

    def content(self, count: int) -> bytes:
        """Return bytes, and move behind them."""
        if not 0 <= count <= len(self.data) - self.at:
            raise struct.error
        self.at += count
        return self.data[self.at - count : self.at]

    def chunk(self) -> bytes:
        """Return the content of a chunk, and move behind it."""
        _, size = self.take("Iq")
        return self.content(size)

    def buffer(self) -> bytes:
        """Return the content of a buffer, which may be compressed."""
        (size,) = self.take("I")
        if size == 0:
            return b""
        _, method = self.take("IB")
        if method == 0:
            return self.content(size)
        return zlib.decompressobj().decompress(self.chunk(), size)


def read_arrays(mesh: Any) -> MeshArrays:
    """Return the arrays of a mesh of rhino3dm. Raises UnreadableFile for a mesh of an unknown version."""
    data = base64.b64decode(mesh.Encode()["data"])
    try:
        return _parse(data)
    except (struct.error, zlib.error, ValueError):
        raise UnreadableFile("a mesh of the 3DM file cannot be read; save the file again in Rhino 8") from None


def _parse(data: bytes) -> MeshArrays:
    # behind the class and its id
    cursor = _Cursor(data, _CHUNK.size)
    cursor.chunk()
    cursor.take("Iq")
    version, vertex_count, face_count = cursor.take("Bii")
    if version >> 4 != _VERSION >> 4 or version < _VERSION:
        raise ValueError
    cursor.content(80 + 64 + 4)
    for _ in range(5):
        (is_present,) = cursor.take("B")
        if is_present:
            cursor.chunk()
    (width,) = cursor.take("i")
    faces = np.frombuffer(cursor.content(4 * width * face_count), f"<u{width}").reshape(-1, 4) if face_count else None
    points, normals, _, _, colors = (cursor.buffer() for _ in range(5)) if vertex_count else [b""] * 5
    vertices = np.frombuffer(points, "<f4").reshape(-1, 3).astype(np.float64)
    cursor.take("i16s")
    if vertex_count:
        cursor.buffer()
    cursor.chunk()
    cursor.take("3B")
    (has_polygons,) = cursor.take("B")
    if has_polygons:
        cursor.chunk()
    (is_double,) = cursor.take("B")
    if is_double:
        inner = _Cursor(cursor.chunk())
        inner.take("iii")
        exact = np.frombuffer(inner.buffer(), "<f8").reshape(-1, 3)
        vertices = exact if len(exact) == len(vertices) else vertices
    shades = np.frombuffer(colors, np.uint8).reshape(-1, 4).copy()
    # a color has the opposite of alpha
    shades[:, 3] = 255 - shades[:, 3]
    directions = np.frombuffer(normals, "<f4").reshape(-1, 3)
    return MeshArrays(
        vertices,
        np.empty((0, 4), np.int32) if faces is None else faces.astype(np.int32),
        directions if len(directions) == len(vertices) > 0 else None,
        shades if len(shades) == len(vertices) > 0 else None,
    )


def build_mesh(mesh: Mesh) -> Any:
    """Return a mesh as one of rhino3dm, with vertices in double precision."""
    template = rhino3dm.Mesh().Encode()
    data = _encode(mesh)
    result = rhino3dm.CommonObject.Decode(template | {"data": base64.b64encode(data).decode("ascii")})
    if result is None or len(result.Vertices) != len(mesh.vertices):
        raise ValueError("rhino3dm rejects a mesh")
    return result


def _encode(mesh: Mesh) -> bytes:
    """Return the chunk of a mesh of version 3.8."""
    vertices = np.ascontiguousarray(mesh.vertices, "<f8")
    single = vertices.astype("<f4")
    count = len(vertices)
    width = 1 if count < 256 else 2 if count < 65536 else 4
    faces = mesh.faces[:, [0, 1, 2, 2]].astype(f"<u{width}")
    box = np.stack([vertices.min(axis=0), vertices.max(axis=0)])
    single_box = box.astype("<f4")
    # the box contains all vertices in single precision, too
    single_box[0] = np.where(single_box[0] > box[0], np.nextafter(single_box[0], np.float32(-np.inf)), single_box[0])
    single_box[1] = np.where(single_box[1] < box[1], np.nextafter(single_box[1], np.float32(np.inf)), single_box[1])
    normals, colors = b"", b""
    normal_box = np.array([1, 1, 1, -1, -1, -1], "<f4")
    if mesh.normals is not None:
        normals = mesh.normals.astype("<f4").tobytes()
        normal_box = np.concatenate([mesh.normals.min(axis=0), mesh.normals.max(axis=0)]).astype("<f4")
    if mesh.colors is not None:
        shades = mesh.colors.copy()
        shades[:, 3] = 255 - shades[:, 3]
        colors = shades.tobytes()
    exact = struct.pack("<iiI", 1, 0, count) + _pack_buffer(vertices.tobytes())
    # the checksum of a chunk leaves out the chunks in it
    body = [
        struct.pack("<Bii", _VERSION, count, len(faces)) + _UNSET * 8 + _UNSET * 2 + single_box.tobytes(),
        normal_box.tobytes() + struct.pack("<4fi5B", 1, 1, -1, -1, -1, *bytes(5)),
        struct.pack("<i", width) + faces.tobytes() + _pack_buffer(single.tobytes()) + _pack_buffer(normals),
        _pack_buffer(b"") * 2 + _pack_buffer(colors) + bytes(4) + bytes(16) + _pack_buffer(b""),
        _pack_chunk(_ANONYMOUS, _MAPPING),
        bytes(3) + b"\0" + b"\1",
        _pack_chunk(_ANONYMOUS, exact),
        box.astype("<f8").tobytes(),
    ]
    own = b"".join(body[:4]) + body[5] + body[7]
    data = b"".join(body) + struct.pack("<I", zlib.crc32(own))
    content = _pack_chunk(_CLASS_UUID, _MESH_UUID) + _CHUNK.pack(_CLASS_DATA, len(data)) + data
    content += _CHUNK.pack(_CLASS_END, 0)
    return _CHUNK.pack(_CLASS, len(content)) + content


def _pack_chunk(kind: int, content: bytes) -> bytes:
    return _CHUNK.pack(kind, len(content) + 4) + content + struct.pack("<I", zlib.crc32(content))


def _pack_buffer(content: bytes) -> bytes:
    """Return a buffer; rhino3dm compresses it when it writes the file."""
    if not content:
        return bytes(4)
    return struct.pack("<IIB", len(content), zlib.crc32(content), 0) + content


def make_definition(name: str, own_id: uuid.UUID, member_id: uuid.UUID) -> Any:
    """Return the definition of a block with one object.

    rhino3dm gives random ids to both, and has no other function for it; they are replaced, because equal scenes give
    equal files.
    """
    file = rhino3dm.File3dm()
    geometry, attributes = (rhino3dm.Mesh(),), (rhino3dm.ObjectAttributes(),)
    index = file.InstanceDefinitions.Add(name, "", "", "", rhino3dm.Point3d(0, 0, 0), geometry, attributes)
    definition = file.InstanceDefinitions[index]
    code = definition.Encode()
    data = base64.b64decode(code["data"])
    for before, after in ((definition.Id, own_id), (definition.GetObjectIds()[0], member_id)):
        data = data.replace(before.bytes_le, after.bytes_le)
    return rhino3dm.CommonObject.Decode(code | {"data": base64.b64encode(data).decode("ascii")})


def remove_dates(data: bytes) -> bytes:
    """Return a file with the same dates every time.

    Raises:
        ValueError: The file has no dates where they are expected.
    """
    at = _FILE_HEADER_BYTES
    result = bytearray(data)
    while at + _CHUNK.size <= len(data):
        kind, size = _CHUNK.unpack_from(data, at)
        at += _CHUNK.size
        if kind == _REVISION_TABLE:
            # chunks in the table
            continue
        if kind == _REVISION:
            content = b"\x10" + 2 * (bytes(4) + _NO_DATE) + struct.pack("<i", 1)
            if size != len(content) + 4:
                break
            result[at : at + size] = content + struct.pack("<I", zlib.crc32(content))
            return bytes(result)
        at += 0 if kind & 0x80000000 else size
    raise ValueError("rhino3dm wrote no dates")
