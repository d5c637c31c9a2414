"""Small scenes made by code, in millimetres, Z up: one for each thing that a format may carry, and odd ones."""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace

import numpy as np

from meshhub.model.capabilities import Feature
from meshhub.model.scene import Float64, Image, Material, Mesh, Part, Scene

SIZE = (10.0, 20.0, 30.0)
"""The brick's extent along X, Y and Z, from the origin on."""

_CORNERS = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], np.float64) * SIZE
_SIDES = np.array([[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]])
_NORMALS = np.array([[-1, 0, 0], [1, 0, 0], [0, -1, 0], [0, 1, 0], [0, 0, -1], [0, 0, 1]], np.float32)
_PAINT = np.array(
    [[255, 0, 0], [0, 255, 0], [0, 0, 255], [250, 200, 40], [30, 120, 180], [128, 128, 128]], np.uint8
)  # fmt: skip
_SPLIT = np.arange(24).reshape(6, 4)
_NAMES = ("Deckel groß", "side-2")


def _cut(sides: np.ndarray) -> np.ndarray:
    """(6, 4) sides as (12, 3) triangles, two for each side in turn."""
    return np.stack([sides[:, [0, 1, 2]], sides[:, [0, 2, 3]]], axis=1).reshape(-1, 3)


def brick() -> Scene:
    """A closed box of 10 × 20 × 30 with a corner at the origin: 8 vertices, 12 faces."""
    return Scene((Mesh(_CORNERS, _cut(_SIDES)),), (Part(0),))


def placed(x: float, y: float, z: float, *, turned: bool = False, mirrored: bool = False) -> Float64:
    """A (4, 4) matrix: a mirror across X, a quarter turn about Z, and a move."""
    matrix = np.eye(4)
    if mirrored:
        matrix[0, 0] = -1
    if turned:
        matrix[:2, :2] = [[0, -1], [1, 0]]
    matrix[:3, 3] = x, y, z
    return matrix


def twice() -> Scene:
    """One brick placed twice, the second time turned about Z and moved."""
    return replace(brick(), parts=(Part(0, name="one"), Part(0, placed(100, 5, 7, turned=True), name="two")))


def mirrored() -> Scene:
    """A brick placed by a matrix that mirrors it."""
    return replace(brick(), parts=(Part(0, placed(40, 0, 0, mirrored=True)),))


def _sided(**more: object) -> Mesh:
    """The brick with vertices of their own on every side: 24 vertices, 12 faces, still closed."""
    return replace(Mesh(_CORNERS[_SIDES.ravel()], _cut(_SPLIT)), **more)  # type: ignore[arg-type]


def _one(mesh: Mesh, **more: object) -> Scene:
    return Scene((mesh,), (Part(0),), **more)  # type: ignore[arg-type]


def png() -> bytes:
    """A picture of four pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"\0\xff\0\0\0\xff\0" + b"\0\0\0\xff\xff\xff\0"
    head = struct.pack(">IIBBBBB", 2, 2, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


def _uv() -> np.ndarray:
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], np.float32)
    return np.concatenate([square * 0.25 + side / 8 for side in range(6)])


def colors() -> Scene:
    """Vertex colours, one for each side."""
    return _one(_sided(colors=np.repeat(np.column_stack([_PAINT, np.full(6, 255, np.uint8)]), 4, axis=0)))


def normals() -> Scene:
    """Normals, sharp at the edges."""
    return _one(_sided(normals=np.repeat(_NORMALS, 4, axis=0)))


def materials() -> Scene:
    """Three materials over the six sides."""
    palette = tuple(
        Material(name, (red, green, blue, 1.0))
        for name, red, green, blue in (("red", 1.0, 0.0, 0.0), ("green", 0.0, 1.0, 0.2), ("grey", 0.4, 0.4, 0.4))
    )
    return _one(_sided(face_material=np.repeat([0, 1, 2], 4)), materials=palette)


def textures() -> Scene:
    """A texture over all sides, and the coordinates on it."""
    return _one(
        _sided(uv=_uv(), face_material=np.zeros(12, np.int32)),
        materials=(Material("painted", base_color_image=0),),
        images=(Image(png(), "image/png", "paint"),),
    )


def names() -> Scene:
    """Two parts with names."""
    first, second = (replace(brick().meshes[0], name=name) for name in _NAMES)
    second = replace(second, vertices=second.vertices + [50, 0, 0])
    return Scene((first, second), tuple(Part(index, name=name) for index, name in enumerate(_NAMES)))


def full() -> Scene:
    """Everything at once: instances of a coloured brick in a group, a textured one, one of three materials."""
    palette, picture = materials(), textures()
    meshes = (
        replace(colors().meshes[0], name="coloured", normals=normals().meshes[0].normals),
        replace(picture.meshes[0], name="textured", face_material=np.full(12, 3)),
        replace(palette.meshes[0], name="painted"),
    )
    parts = (
        Part(0, name="one", path=("group",)),
        Part(0, placed(100, 5, 7, turned=True), name="two", path=("group",)),
        # differs from the first in X alone, so that every operation can treat the two alike
        Part(0, placed(-60, 0, 0), name="like one"),
        Part(1, placed(0, 100, 0), name="three"),
        Part(2, placed(40, -100, 0, mirrored=True), name="four"),
    )
    return Scene(meshes, parts, (*palette.materials, *picture.materials), picture.images)


SHOWING: dict[Feature, Scene] = {
    "names": names(),
    "instances": twice(),
    "normals": normals(),
    "uv": textures(),
    "colors": colors(),
    "materials": materials(),
    "textures": textures(),
    "units": brick(),
}
"""For each feature a scene that has it."""


def odd() -> dict[str, Scene]:
    """Scenes that are legal and seldom thought of."""
    mesh = brick().meshes[0]
    hostile = '</name> "quoted" \\ % \t\n\r \x00\x01 \U0001f9f1 \u202e ' + "long " * 400
    triangle = Mesh(np.array([[0, 0, 0], [10, 0, 0], [0, 10, 5]]), np.array([[0, 1, 2]], np.int32))
    return {
        "a single triangle": _one(triangle),
        "a flat sheet": _one(Mesh(mesh.vertices[:4] * [0, 1, 1], np.array([[0, 1, 3], [0, 3, 2]], np.int32))),
        "an open box": _one(replace(mesh, faces=mesh.faces[2:])),
        "a face without area": _one(replace(mesh, faces=np.concatenate([mesh.faces, [[0, 0, 1]]]))),
        "a face twice": _one(replace(mesh, faces=np.concatenate([mesh.faces, mesh.faces[:1]]))),
        "a box inside out": _one(replace(mesh, faces=mesh.faces[:, ::-1])),
        "vertices that no face uses": _one(replace(mesh, vertices=np.concatenate([mesh.vertices, [[900, 0, 0]]]))),
        "a mesh without faces": Scene((mesh, replace(mesh, faces=np.empty((0, 3), np.int32))), (Part(0), Part(1))),
        "a mesh that nothing places": Scene((mesh, triangle), (Part(0),)),
        "no names": Scene((mesh, triangle), (Part(0), Part(1))),
        "one name twice": Scene((mesh, triangle), (Part(0, name="same"), Part(1, name="same"))),
        "hostile names": Scene(
            (replace(mesh, name=hostile, face_material=np.zeros(12, np.int32)),),
            (Part(0, name=hostile, path=(hostile,)),),
            (Material(hostile),),
            name=hostile,
            metadata={hostile: hostile},
        ),
        "far away": _one(replace(mesh, vertices=mesh.vertices + 1e6)),
        "tiny": _one(replace(mesh, vertices=mesh.vertices * 1e-3)),
        "squashed flat": replace(brick(), parts=(Part(0, np.diag([1.0, 1.0, 0.0, 1.0])),)),
        "colours and normals on one part of two": Scene((mesh, full().meshes[0]), (Part(0), Part(1, placed(50, 0, 0)))),
    }
