"""The brick of the contracts in each format, in the layout of its specification: 10 × 20 × 30 mm, with a material."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

import numpy as np

from meshhub.testing import sample_scenes

_MESH = sample_scenes.brick().meshes[0]
FACES = _MESH.faces
Z_UP = _MESH.vertices
Y_UP = Z_UP @ np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]])
METERS = Y_UP / 1000
MIRRORED = Y_UP * [1, 1, -1]
"""Corners of formats that are left-handed; their faces are clockwise."""


def rows(table: Iterable[Iterable[float]], end: str = "\n") -> str:
    return end.join(" ".join(f"{value:g}" for value in row) for row in table)


def make_3ds(
    names: Iterable[bytes] = (b"brick",), hidden_objects: Iterable[bytes] = (), hidden_nodes: Iterable[bytes] = ()
) -> bytes:
    """Return a file of version 3 with objects of these names, and a red material of all faces."""

    def chunk(kind: int, *content: bytes) -> bytes:
        data = b"".join(content)
        return struct.pack("<HI", kind, len(data) + 6) + data

    uv = np.zeros((8, 2), "<f4")
    mesh = chunk(
        0x4100,
        chunk(0x4110, struct.pack("<H", 8), Z_UP.astype("<f4").tobytes()),
        chunk(0x4140, struct.pack("<H", 8), uv.tobytes()),
        chunk(
            0x4120,
            struct.pack("<H", 12),
            np.column_stack([FACES, np.zeros(12)]).astype("<u2").tobytes(),
            chunk(0x4130, b"red\0", struct.pack("<H", 12), np.arange(12, dtype="<u2").tobytes()),
        ),
    )
    color = chunk(0xA020, chunk(0x0011, bytes((255, 0, 0))))
    texture = chunk(0xA200, chunk(0xA300, b"paint.png\0"))
    material = chunk(0xAFFF, chunk(0xA000, b"red\0"), color, texture)
    marks = {name: chunk(0x4010) if name in hidden_objects else b"" for name in names}
    objects = [chunk(0x4000, name, b"\0", mark, mesh) for name, mark in marks.items()]
    editor = chunk(0x3D3D, chunk(0x3D3E, struct.pack("<I", 3)), material, *objects)
    # names are in the key frames
    group = chunk(0xB002, chunk(0xB030, b"\0\0"), chunk(0xB010, b"group\0", struct.pack("<HHh", 0, 0, -1)))
    bricks = [
        chunk(
            0xB002,
            chunk(0xB030, struct.pack("<H", number)),
            chunk(0xB010, name, b"\0", struct.pack("<HHh", 0x800 * (name in hidden_nodes), 0, 0)),
        )
        for number, name in enumerate(names, 1)
    ]
    return chunk(0x4D4D, chunk(0x0002, struct.pack("<I", 3)), editor, chunk(0xB000, group, *bricks))


def make_lwo(layers: Iterable[int] = (0,), kind: bytes = b"LWO2") -> bytes:
    """Return a file of version `kind` with a surface "red", and a brick in each layer; `layers` are their flags."""

    def chunk(name: bytes, data: bytes, size: str = ">I") -> bytes:
        return name + struct.pack(size, len(data)) + data + bytes(len(data) % 2)

    mirrored = METERS * [1, 1, -1]
    polygons = np.column_stack([np.full(12, 3), FACES[:, ::-1]]).astype(">u2").tobytes()
    tags = np.column_stack([np.arange(12), np.zeros(12)]).astype(">u2").tobytes()
    surface = b"red\0\0\0" + chunk(b"COLR", struct.pack(">fffH", 1, 0, 0, 0), ">H")
    bodies = (
        chunk(b"LAYR", struct.pack(">HHfff", number, flags, 0, 0, 0) + b"brick\0")
        + chunk(b"PNTS", mirrored.astype(">f4").tobytes())
        + chunk(b"POLS", b"FACE" + polygons)
        + chunk(b"PTAG", b"SURF" + tags)
        for number, flags in enumerate(layers)
    )
    return chunk(b"FORM", kind + chunk(b"TAGS", b"red\0") + b"".join(bodies) + chunk(b"SURF", surface))


def make_ms3d(groups: Sequence[int] = (0,)) -> bytes:
    """Return a file of version 4 with a group of all triangles for each of the flags, and a material."""
    vertices = b"".join(struct.pack("<B3fbB", 0, *corner, -1, 0) for corner in Y_UP)
    triangle = struct.Struct("<H3H9f3f3fBB")
    triangles = b"".join(triangle.pack(0, *map(int, face), *[0.0, 0, 1] * 3, *[0.0] * 6, 1, 0) for face in FACES)
    tables_of_groups = b"".join(struct.pack("<B32sH12HB", flags, b"brick", 12, *range(12), 0) for flags in groups)
    shades = (1.0, 0, 0, 1) * 4
    material = struct.pack("<32s16f2fB128s128s", b"red", *shades, 0, 1, 0, b"", b"")
    counted = [(8, vertices), (12, triangles), (len(groups), tables_of_groups), (1, material)]
    tables = b"".join(struct.pack("<H", count) + data for count, data in counted)
    return b"MS3D000000" + struct.pack("<i", 4) + tables + struct.pack("<ffiH", 25, 0, 0, 0)


def make_ac3d() -> bytes:
    """Return a text file with an object in a group."""
    surfaces = "".join(f"SURF 0x0\nmat 0\nrefs 3\n{a} 0 0\n{b} 1 0\n{c} 1 1\n" for a, b, c in FACES)
    return f"""AC3Db
MATERIAL "red" rgb 1 0 0 amb 0 0 0 emis 0 0 0 spec 0 0 0 shi 0 trans 0
OBJECT world
kids 1
OBJECT poly
name "brick"
numvert 8
{rows(Y_UP)}
numsurf 12
{surfaces}kids 0
""".encode()


def make_b3d() -> bytes:
    """Return a file with a node, a brush and a mesh."""

    def chunk(kind: bytes, *content: bytes) -> bytes:
        data = b"".join(content)
        return kind + struct.pack("<i", len(data)) + data

    brush = chunk(b"BRUS", struct.pack("<i", 0), b"red\0", struct.pack("<5f2i", 1, 0, 0, 1, 0, 1, 0))
    vertices = chunk(b"VRTS", struct.pack("<3i", 0, 0, 0), MIRRORED.astype("<f4").tobytes())
    triangles = chunk(b"TRIS", struct.pack("<i", 0), FACES[:, ::-1].astype("<i4").tobytes())
    mesh = chunk(b"MESH", struct.pack("<i", 0), vertices, triangles)
    node = chunk(b"NODE", b"brick\0", struct.pack("<10f", 0, 0, 0, 1, 1, 1, 1, 0, 0, 0), mesh)
    return chunk(b"BB3D", struct.pack("<i", 1), brush, node)


def make_directx() -> bytes:
    """Return a text file with a frame and a mesh."""
    vertices = ",\n".join(";".join(f"{value:g}" for value in corner) + ";" for corner in MIRRORED)
    faces = ",\n".join(f"3;{c},{b},{a};" for a, b, c in FACES)
    return f"""xof 0303txt 0032
Frame brick {{
 Mesh {{
  8;
{vertices};
  12;
{faces};
  MeshMaterialList {{
   1;
   12;
   {",".join(["0"] * 12)};
   Material red {{ 1.0;0.0;0.0;1.0;; 0.0; 0.0;0.0;0.0;; 0.0;0.0;0.0;; }}
  }}
 }}
}}
""".encode()


FILES = {
    "3ds": make_3ds(),
    "lwo": make_lwo(),
    "ms3d": make_ms3d(),
    "ac3d": make_ac3d(),
    "b3d": make_b3d(),
    "directx": make_directx(),
}
