"""Small generated scenes in millimeters, Z up: one per feature that a format may carry, and unusual ones."""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace

import numpy as np

from meshhub.model.capabilities import Feature
from meshhub.model.scene import Float64, Image, Material, Mesh, Part, Scene

SIZE = (10.0, 20.0, 30.0)
"""Millimeters; extent of the brick along X, Y and Z, starting at the origin."""

_BRICK_CORNERS = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], np.float64) * SIZE
_BRICK_SIDES = np.array([[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]])
_SIDE_NORMALS = np.array([[-1, 0, 0], [1, 0, 0], [0, -1, 0], [0, 1, 0], [0, 0, -1], [0, 0, 1]], np.float32)
_SIDE_COLORS = np.array(
    [[255, 0, 0], [0, 255, 0], [0, 0, 255], [250, 200, 40], [30, 120, 180], [128, 128, 128]], np.uint8
)  # fmt: skip
_SPLIT_SIDES = np.arange(24).reshape(6, 4)
_PART_NAMES = ("Deckel groß", "side-2")


def _triangulate(sides: np.ndarray) -> np.ndarray:
    """Return (6, 4) quadrilaterals as (12, 3) triangles, two per side."""
    return np.stack([sides[:, [0, 1, 2]], sides[:, [0, 2, 3]]], axis=1).reshape(-1, 3)


def brick() -> Scene:
    """Return a closed box of 10 × 20 × 30 mm with a corner at the origin: 8 vertices, 12 faces."""
    # a copy: a faulty plug-in may change the array in place
    return Scene((Mesh(_BRICK_CORNERS.copy(), _triangulate(_BRICK_SIDES)),), (Part(0),))


def placement(x: float, y: float, z: float, *, is_turned: bool = False, is_mirrored: bool = False) -> Float64:
    """Return a (4, 4) matrix: a mirror in X, a quarter turn about Z, or neither, then a translation."""
    matrix = np.eye(4)
    if is_mirrored:
        matrix[0, 0] = -1
    if is_turned:
        matrix[:2, :2] = [[0, -1], [1, 0]]
    matrix[:3, 3] = x, y, z
    return matrix


def twice() -> Scene:
    """Return one brick with two instances, the second turned about Z and moved."""
    return replace(brick(), parts=(Part(0, name="one"), Part(0, placement(100, 5, 7, is_turned=True), name="two")))


def mirrored() -> Scene:
    """Return a brick with a mirroring transform."""
    return replace(brick(), parts=(Part(0, placement(40, 0, 0, is_mirrored=True)),))


def _split_brick(**attributes: object) -> Mesh:
    """Return the brick with separate vertices on each side: 24 vertices, 12 faces, closed after welding."""
    return replace(Mesh(_BRICK_CORNERS[_BRICK_SIDES.ravel()], _triangulate(_SPLIT_SIDES)), **attributes)  # type: ignore[arg-type]


def _scene_of(mesh: Mesh, **attributes: object) -> Scene:
    return Scene((mesh,), (Part(0),), **attributes)  # type: ignore[arg-type]


def png() -> bytes:
    """Return a PNG image of 2 × 2 pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"\0\xff\0\0\0\xff\0" + b"\0\0\0\xff\xff\xff\0"
    head = struct.pack(">IIBBBBB", 2, 2, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


def _uv() -> np.ndarray:
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], np.float32)
    return np.concatenate([square * 0.25 + side / 8 for side in range(6)])


def colors() -> Scene:
    """Return a brick with vertex colors, one per side."""
    rgba = np.column_stack([_SIDE_COLORS, np.full(6, 255, np.uint8)])
    return _scene_of(_split_brick(colors=np.repeat(rgba, 4, axis=0)))


def normals() -> Scene:
    """Return a brick with normals that are sharp at the edges."""
    return _scene_of(_split_brick(normals=np.repeat(_SIDE_NORMALS, 4, axis=0)))


def materials() -> Scene:
    """Return a brick with three materials on its six sides."""
    palette = tuple(
        Material(name, (red, green, blue, 1.0))
        for name, red, green, blue in (("red", 1.0, 0.0, 0.0), ("green", 0.0, 1.0, 0.2), ("grey", 0.4, 0.4, 0.4))
    )
    return _scene_of(_split_brick(face_material=np.repeat([0, 1, 2], 4)), materials=palette)


def textures() -> Scene:
    """Return a brick with a texture on all sides and texture coordinates."""
    return _scene_of(
        _split_brick(uv=_uv(), face_material=np.zeros(12, np.int32)),
        materials=(Material("painted", base_color_image=0),),
        images=(Image(png(), "image/png", "paint"),),
    )


def names() -> Scene:
    """Return two parts with names."""
    first, second = (replace(brick().meshes[0], name=name) for name in _PART_NAMES)
    second = replace(second, vertices=second.vertices + [50, 0, 0])
    return Scene((first, second), tuple(Part(index, name=name) for index, name in enumerate(_PART_NAMES)))


def hierarchy() -> Scene:
    """Return three parts: one without a group, one in a group, and one in a group inside that group."""
    paths: tuple[tuple[str, ...], ...] = ((), ("outer",), ("outer", "inner"))
    parts = (Part(0, placement(50 * row, 0, 0), f"part {row}", path) for row, path in enumerate(paths))
    return replace(brick(), parts=tuple(parts))


def full() -> Scene:
    """Return a scene with all features: instances of a colored brick in a group, a textured and a painted one."""
    palette, picture = materials(), textures()
    meshes = (
        replace(colors().meshes[0], name="colored", normals=normals().meshes[0].normals),
        replace(picture.meshes[0], name="textured", face_material=np.full(12, 3)),
        replace(palette.meshes[0], name="painted"),
    )
    parts = (
        Part(0, name="one", path=("group",)),
        Part(0, placement(100, 5, 7, is_turned=True), name="two", path=("group",)),
        # differs from the first only in X, so that every operation can keep both as instances
        Part(0, placement(-60, 0, 0), name="like one"),
        Part(1, placement(0, 100, 0), name="three"),
        Part(2, placement(40, -100, 0, is_mirrored=True), name="four"),
    )
    described = {"Designer": "somebody", "LicenseTerms": "CC0"}
    return Scene(meshes, parts, (*palette.materials, *picture.materials), picture.images, metadata=described)


FEATURE_SCENES: dict[Feature, Scene] = {
    "names": names(),
    "hierarchy": hierarchy(),
    "instances": twice(),
    "normals": normals(),
    "uv": textures(),
    "colors": colors(),
    "materials": materials(),
    "textures": textures(),
    "metadata": replace(brick(), metadata={"Designer": "somebody", "LicenseTerms": "CC0"}),
    "units": brick(),
}
"""A scene with each feature."""


def unusual() -> dict[str, Scene]:
    """Return scenes that are valid but easily overlooked, by description."""
    mesh = brick().meshes[0]
    hostile = '</name> "quoted" \\ % \t\n\r \x00\x01 \U0001f9f1 \u202e ' + "long " * 400
    triangle = Mesh(np.array([[0, 0, 0], [10, 0, 0], [0, 10, 5]]), np.array([[0, 1, 2]], np.int32))
    return {
        "a single triangle": _scene_of(triangle),
        "a flat sheet": _scene_of(Mesh(mesh.vertices[:4] * [0, 1, 1], np.array([[0, 1, 3], [0, 3, 2]], np.int32))),
        "an open box": _scene_of(replace(mesh, faces=mesh.faces[2:])),
        "a face without area": _scene_of(replace(mesh, faces=np.concatenate([mesh.faces, [[0, 0, 1]]]))),
        "a duplicate face": _scene_of(replace(mesh, faces=np.concatenate([mesh.faces, mesh.faces[:1]]))),
        "a box inside out": _scene_of(replace(mesh, faces=mesh.faces[:, ::-1])),
        "unused vertices": _scene_of(replace(mesh, vertices=np.concatenate([mesh.vertices, [[900, 0, 0]]]))),
        "a mesh without faces": Scene((mesh, replace(mesh, faces=np.empty((0, 3), np.int32))), (Part(0), Part(1))),
        "a mesh without a part": Scene((mesh, triangle), (Part(0),)),
        "no names": Scene((mesh, triangle), (Part(0), Part(1))),
        "a duplicate name": Scene((mesh, triangle), (Part(0, name="same"), Part(1, name="same"))),
        "hostile names": Scene(
            (replace(mesh, name=hostile, face_material=np.zeros(12, np.int32)),),
            (Part(0, name=hostile, path=(hostile,)),),
            (Material(hostile),),
            name=hostile,
            metadata={hostile: hostile},
        ),
        "far away": _scene_of(replace(mesh, vertices=mesh.vertices + 1e6)),
        "tiny": _scene_of(replace(mesh, vertices=mesh.vertices * 1e-3)),
        "scaled flat": replace(brick(), parts=(Part(0, np.diag([1.0, 1.0, 0.0, 1.0])),)),
        "colors and normals on one part of two": Scene(
            (mesh, full().meshes[0]), (Part(0), Part(1, placement(50, 0, 0)))
        ),
    }
