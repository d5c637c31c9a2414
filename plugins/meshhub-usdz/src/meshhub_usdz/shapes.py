"""Shapes of USD that are not meshes, as triangles: cubes, spheres, cylinders, cones, capsules, planes, tetrahedra.

Source: OpenUSD, schema of UsdGeom
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pxr import UsdGeom

from meshhub import note

Points = NDArray[np.float64]
Faces = NDArray[np.int64]

_SEGMENTS_COUNT = 64
"""Straight lines of a full circle."""

_DEVIATION_PERCENT = 0.12
"""Percent of the radius that the middle of a line is inside of its circle: 1 - cos(180° / 64)."""

_AXES = {"X": [2, 0, 1], "Y": [1, 2, 0], "Z": [0, 1, 2]}
"""Columns of points along Z for each axis; their order turns, so that no shape is inside out."""


def build_shape(prim: Any, time: Any) -> tuple[Points, Faces] | None:
    """Return points and triangles of a shape, which face outward; None for a shape that is not read."""
    for kind, build in _BUILDERS.items():
        if prim.IsA(kind):
            points, faces = build(_Values(prim, time))
            is_usable = bool(np.isfinite(points).all())
            return (points, faces) if is_usable else None
    return None


class _Values:
    """Attributes of a prim at a time."""

    def __init__(self, prim: Any, time: Any) -> None:
        self.prim = prim
        self.time = time

    def number(self, name: str, default: float) -> float:
        """Return the number of an attribute."""
        value = self.prim.GetAttribute(name).Get(self.time) if self.prim.HasAttribute(name) else None
        return default if value is None else float(value)

    def turn(self, points: Points) -> Points:
        """Return points along Z along the axis of the shape."""
        return points[:, _AXES.get(str(self.prim.GetAttribute("axis").Get(self.time)), _AXES["Z"])]


def _build_cube(values: _Values) -> tuple[Points, Faces]:
    signs = np.array([(x, y, z) for z in (-1, 1) for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))], np.float64)
    sides = [(3, 2, 1, 0), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7)]
    faces = [corners for a, b, c, d in sides for corners in ((a, b, c), (a, c, d))]
    return signs * values.number("size", 2.0) / 2, np.array(faces)


def _build_plane(values: _Values) -> tuple[Points, Faces]:
    across, along = values.number("width", 2.0), values.number("length", 2.0)
    if str(values.prim.GetAttribute("axis").Get(values.time)) != "Z":
        # the width is along Z of a plane across X, and along X of one across Y
        across, along = along, across
    corners = np.array([(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)], np.float64) * [across / 2, along / 2, 0]
    return values.turn(corners), np.array([(0, 1, 2), (0, 2, 3)])


def _build_sphere(values: _Values) -> tuple[Points, Faces]:
    radius = values.number("radius", 1.0)
    return _revolve(_arc(radius, -90, 90))


def _build_cylinder(values: _Values) -> tuple[Points, Faces]:
    radius, half = values.number("radius", 1.0), values.number("height", 2.0) / 2
    bottom, top = values.number("radiusBottom", radius), values.number("radiusTop", radius)
    points, faces = _revolve(np.array([(0, -half), (bottom, -half), (top, half), (0, half)]))
    return values.turn(points), faces


def _build_cone(values: _Values) -> tuple[Points, Faces]:
    half = values.number("height", 2.0) / 2
    points, faces = _revolve(np.array([(0, -half), (values.number("radius", 1.0), -half), (0, half)]))
    return values.turn(points), faces


def _build_capsule(values: _Values) -> tuple[Points, Faces]:
    radius, half = values.number("radius", 0.5), values.number("height", 1.0) / 2
    bottom, top = values.number("radiusBottom", radius), values.number("radiusTop", radius)
    profile = np.concatenate([_arc(bottom, -90, 0) - [0, half], _arc(top, 0, 90) + [0, half]])
    points, faces = _revolve(profile)
    return values.turn(points), faces


def _build_tetrahedra(values: _Values) -> tuple[Points, Faces]:
    mesh = UsdGeom.TetMesh(values.prim)
    points = np.array(mesh.GetPointsAttr().Get(values.time) or (), np.float64).reshape(-1, 3)
    surface = mesh.GetSurfaceFaceVertexIndicesAttr().Get(values.time)
    if not surface:
        surface = UsdGeom.TetMesh.ComputeSurfaceFaces(mesh, values.time)
    faces = np.array(surface if surface else (), np.int64).reshape(-1, 3)
    is_inside = len(faces) == 0 or (faces.min() >= 0 and faces.max() < len(points))
    return points, faces if is_inside else faces[:0]


_BUILDERS: dict[Any, Callable[[_Values], tuple[Points, Faces]]] = {
    UsdGeom.Cube: _build_cube,
    UsdGeom.Sphere: _build_sphere,
    UsdGeom.Cylinder: _build_cylinder,
    UsdGeom.Cylinder_1: _build_cylinder,
    UsdGeom.Cone: _build_cone,
    UsdGeom.Capsule: _build_capsule,
    UsdGeom.Capsule_1: _build_capsule,
    UsdGeom.Plane: _build_plane,
    UsdGeom.TetMesh: _build_tetrahedra,
}


def _arc(radius: float, first_deg: float, last_deg: float) -> Points:
    """Return distance from the axis and height of an arc about the origin."""
    count = round((last_deg - first_deg) / 360 * _SEGMENTS_COUNT) + 1
    angle = np.radians(np.linspace(first_deg, last_deg, count))
    points = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    points[np.abs(points) < 1e-12] = 0.0
    return points * radius


def _revolve(profile: Points) -> tuple[Points, Faces]:
    """Return the solid of a profile that begins and ends on the axis, from below; (k, 2) distances and heights."""
    note(
        "shapes_divided",
        f"divided round shapes into triangles, which are up to {_DEVIATION_PERCENT} % of the radius inside of them",
    )
    is_new = np.append(True, np.abs(np.diff(profile, axis=0)).max(axis=1) > 0)
    profile = profile[is_new]
    angle = np.arange(_SEGMENTS_COUNT) * (2 * np.pi / _SEGMENTS_COUNT)
    rings = profile[1:-1]
    points = np.empty((len(rings), _SEGMENTS_COUNT, 3))
    points[:, :, 0] = rings[:, :1] * np.cos(angle)
    points[:, :, 1] = rings[:, :1] * np.sin(angle)
    points[:, :, 2] = rings[:, 1:]
    poles = [[0.0, 0.0, profile[0, 1]], [0.0, 0.0, profile[-1, 1]]]
    index = np.arange(len(rings) * _SEGMENTS_COUNT).reshape(len(rings), _SEGMENTS_COUNT) + 2
    following = np.roll(index, -1, axis=1)
    a, b, c, d = (each.ravel() for each in (index[:-1], following[:-1], following[1:], index[1:]))
    bottom = np.stack([np.zeros_like(index[0]), following[0], index[0]], axis=1)
    top = np.stack([np.ones_like(index[0]), index[-1], following[-1]], axis=1)
    sides = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    return np.concatenate([poles, points.reshape(-1, 3)]), np.concatenate([bottom, sides, top])
