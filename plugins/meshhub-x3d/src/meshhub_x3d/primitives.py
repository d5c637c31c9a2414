"""Boxes, spheres, cones, cylinders and flat shapes (ISO/IEC 19775-1, 13 and 14)."""

from __future__ import annotations

import numpy as np

from meshhub import note
from meshhub.errors import quote
from meshhub.model.scene import Float64
from meshhub_x3d.fields import read_flag, read_float, read_floats, read_vector
from meshhub_x3d.nodes import Node
from meshhub_x3d.surfaces import Surface, join, make_grid

_SIDES = np.array(
    [[3, 2, 1, 0], [4, 5, 6, 7], [0, 1, 5, 4], [1, 2, 6, 5], [2, 3, 7, 6], [3, 0, 4, 7]],
)
"""Corners of the sides of a box, counter-clockwise seen from outside."""
_CORNERS = np.array(
    [[-1, -1, -1], [1, -1, -1], [1, 1, -1], [-1, 1, -1], [-1, -1, 1], [1, -1, 1], [1, 1, 1], [-1, 1, 1]]
)
_SIDES_UV = np.array([[[1, 1], [0, 1], [0, 0], [1, 0]], *[[[0, 0], [1, 0], [1, 1], [0, 1]]] * 5])


def _is_sized(node: Node, *lengths: float) -> bool:
    """Return whether all lengths are positive; otherwise nothing is drawn, with a note."""
    if all(length > 0 and np.isfinite(length) for length in lengths):
        return True
    note("shape_without_size", f"skipped a {quote(node.kind)} whose size is not positive")
    return False


def read_box(node: Node) -> Surface | None:
    """Return the six sides of a box."""
    size = read_vector(node, "size", (2, 2, 2))
    if not _is_sized(node, *size):
        return None
    corners = _SIDES.ravel().astype(np.int64)
    uv = (_SIDES_UV.reshape(-1, 2).astype(np.float64), np.arange(len(corners)))
    return Surface(_CORNERS * size / 2, np.full(6, 4, np.int64), corners, {"uv": uv})


def _circle(radius: float, height: float, sides: int) -> Float64:
    """Return a closed circle around the Y axis, counter-clockwise seen from above, from behind."""
    angles = np.arange(sides) * (2 * np.pi / sides)
    circle = np.stack([-radius * np.sin(angles), np.full(sides, height), -radius * np.cos(angles)], axis=1)
    return np.concatenate([circle, circle[:1]])


def _side(rings: list[Float64], v: Float64) -> Surface:
    """Return the surface between circles, from below to above; `v` is the texture coordinate of each."""
    u = np.broadcast_to(np.linspace(0, 1, len(rings[0])), (len(rings), len(rings[0])))
    uv = np.stack([u, np.broadcast_to(v[:, None], u.shape)], axis=-1)
    return make_grid(np.stack(rings), uv)


def _cap(radius: float, height: float, sides: int, *, is_top: bool) -> Surface:
    """Return a disk, seen from above or below."""
    points = _circle(radius, height, sides)[:-1]
    uv = np.stack([points[:, 0], -points[:, 2] if is_top else points[:, 2]], axis=1) / (2 * radius) + 0.5
    corners = np.arange(sides)[:: 1 if is_top else -1]
    return Surface(points, np.array([sides]), corners, {"uv": (uv, corners)})


def read_sphere(node: Node, sides: int) -> Surface | None:
    """Return a sphere, in circles of latitude."""
    radius = read_float(node, "radius", 1)
    if not _is_sized(node, radius):
        return None
    count = sides // 2
    latitudes = np.linspace(-np.pi / 2, np.pi / 2, count + 1)
    widths = radius * np.cos(latitudes)
    widths[[0, -1]] = 0
    rings = [_circle(*row, sides) for row in zip(widths.tolist(), (radius * np.sin(latitudes)).tolist(), strict=True)]
    return _side(rings, np.linspace(0, 1, count + 1))


def read_cylinder(node: Node, sides: int) -> Surface | None:
    """Return side, top and bottom of a cylinder, as far as its flags show them."""
    radius, height = read_float(node, "radius", 1), read_float(node, "height", 2)
    if not _is_sized(node, radius, height):
        return None
    shown = []
    if read_flag(node, "side", True):
        shown.append(
            _side([_circle(radius, -height / 2, sides), _circle(radius, height / 2, sides)], np.array([0.0, 1]))
        )
    if read_flag(node, "top", True):
        shown.append(_cap(radius, height / 2, sides, is_top=True))
    if read_flag(node, "bottom", True):
        shown.append(_cap(radius, -height / 2, sides, is_top=False))
    return join(shown) if shown else None


def read_cone(node: Node, sides: int) -> Surface | None:
    """Return side and bottom of a cone, as far as its flags show them; a top radius makes it a frustum."""
    radius, height = read_float(node, "bottomRadius", 1), read_float(node, "height", 2)
    top = max(read_float(node, "topRadius", 0), 0)
    if not _is_sized(node, radius, height):
        return None
    shown = []
    if read_flag(node, "side", True):
        shown.append(_side([_circle(radius, -height / 2, sides), _circle(top, height / 2, sides)], np.array([0.0, 1])))
    if read_flag(node, "bottom", True):
        shown.append(_cap(radius, -height / 2, sides, is_top=False))
    if top > 0 and read_flag(node, "top", True):
        shown.append(_cap(top, height / 2, sides, is_top=True))
    return join(shown) if shown else None


def read_rectangle(node: Node) -> Surface | None:
    """Return a rectangle in the plane Z = 0."""
    size = read_vector(node, "size", (2, 2))
    if not _is_sized(node, *size):
        return None
    uv = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]])
    points = np.column_stack([(uv - 0.5) * size, np.zeros(4)])
    return Surface(points, np.array([4]), np.arange(4), {"uv": (uv, np.arange(4))})


def read_disk(node: Node, sides: int) -> Surface | None:
    """Return a disk or a ring in the plane Z = 0."""
    inner, outer = read_float(node, "innerRadius", 0), read_float(node, "outerRadius", 1)
    if not _is_sized(node, outer):
        return None
    inner = min(max(inner, 0.0), outer)
    turned = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])
    # seen from above, Z becomes -Y
    rings = [_circle(outer, 0, sides) @ turned, _circle(inner, 0, sides) @ turned]
    return _side(rings, np.array([0.0, 1]))


def read_triangles_2d(node: Node) -> Surface:
    """Return triangles in the plane Z = 0."""
    flat = read_floats(node, "vertices", 2)
    flat = flat[: len(flat) // 3 * 3]
    points = np.column_stack([flat, np.zeros(len(flat))])
    return Surface(points, np.full(len(flat) // 3, 3, np.int64), np.arange(len(flat)))
