"""Curves along which neighboring surfaces touch, each as a surface that crosses both there.

Where two surfaces touch, points between them are determined to the square root of the precision: a gap of 1e-9 mm
leaves 1e-4 mm. A third surface determines them exactly.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from meshhub.builtin_plugins.step.surfaces.arrays import normalize
from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceArray, SurfaceKind, make_planes

_SAME_MM = 1e-4
"""Millimeters between two places that relations make one."""

_SAME_SINE = 1e-5
"""Sine of the angle between directions that relations make one."""


def find_contact(one: SurfaceArray, other: SurfaceArray) -> SurfaceArray | None:
    """Return a surface that crosses two touching ones along the curve of their contact; None if they do not touch.

    Args:
        one: A single surface.
        other: Another one.
    """
    first, second = sorted((one, other), key=lambda surface: int(surface.kind[0]))
    rule = _RULES.get((int(first.kind[0]), int(second.kind[0])))
    return rule(first, second) if rule else None


def _touch_plane_and_cylinder(plane: SurfaceArray, cylinder: SurfaceArray) -> SurfaceArray | None:
    """A line: the plane through the axis, across the other plane."""
    if abs(_cosine(plane, cylinder)) > _SAME_SINE or abs(abs(_height(plane, cylinder)) - _radius(cylinder)) > _SAME_MM:
        return None
    return make_planes(normalize(np.cross(plane.axis, cylinder.axis)), cylinder.origin)


def _touch_plane_and_torus(plane: SurfaceArray, torus: SurfaceArray) -> SurfaceArray | None:
    """A circle: the cylinder through the middle of the tube."""
    if _sine(plane, torus) > _SAME_SINE or abs(abs(_height(plane, torus)) - float(torus.second[0])) > _SAME_MM:
        return None
    kind, zero = np.array([SurfaceKind.CYLINDER], np.int8), np.zeros(1)
    return SurfaceArray(kind, torus.origin, torus.axis, torus.radius, zero)


def _touch_cylinders(one: SurfaceArray, other: SurfaceArray) -> SurfaceArray | None:
    """A line: the plane through both axes."""
    across = _across(one, other)
    gap = float(np.linalg.norm(across))
    radii = _radius(one) + _radius(other), abs(_radius(one) - _radius(other))
    if _sine(one, other) > _SAME_SINE or gap < _SAME_MM or min(abs(gap - radius) for radius in radii) > _SAME_MM:
        return None
    return make_planes(normalize(np.cross(one.axis, across)), one.origin)


def _touch_cylinder_and_sphere(cylinder: SurfaceArray, sphere: SurfaceArray) -> SurfaceArray | None:
    """A circle: the plane through the center, across the axis."""
    if np.linalg.norm(_across(cylinder, sphere)) > _SAME_MM or abs(_radius(cylinder) - _radius(sphere)) > _SAME_MM:
        return None
    return make_planes(cylinder.axis, sphere.origin)


def _touch_cylinder_and_torus(cylinder: SurfaceArray, torus: SurfaceArray) -> SurfaceArray | None:
    """A circle: around the rim of the cylinder, or where the torus bends it."""
    tube = float(torus.second[0])
    if _sine(cylinder, torus) <= _SAME_SINE:
        is_rim = abs(abs(_radius(cylinder) - _radius(torus)) - tube) <= _SAME_MM
        is_rim &= bool(np.linalg.norm(_across(cylinder, torus)) <= _SAME_MM)
        return make_planes(cylinder.axis, torus.origin) if is_rim else None
    is_bend = abs(_cosine(cylinder, torus)) <= _SAME_SINE and abs(_radius(cylinder) - tube) <= _SAME_MM
    return make_planes(cylinder.axis, torus.origin) if is_bend else None


_RULES: dict[tuple[int, int], Callable[[SurfaceArray, SurfaceArray], SurfaceArray | None]] = {
    (SurfaceKind.PLANE, SurfaceKind.CYLINDER): _touch_plane_and_cylinder,
    (SurfaceKind.PLANE, SurfaceKind.TORUS): _touch_plane_and_torus,
    (SurfaceKind.CYLINDER, SurfaceKind.CYLINDER): _touch_cylinders,
    (SurfaceKind.CYLINDER, SurfaceKind.SPHERE): _touch_cylinder_and_sphere,
    (SurfaceKind.CYLINDER, SurfaceKind.TORUS): _touch_cylinder_and_torus,
}
"""Rules by kinds."""


def _radius(surface: SurfaceArray) -> float:
    return float(surface.radius[0])


def _cosine(one: SurfaceArray, other: SurfaceArray) -> float:
    return float(one.axis[0] @ other.axis[0])


def _sine(one: SurfaceArray, other: SurfaceArray) -> float:
    return float(np.linalg.norm(np.cross(one.axis[0], other.axis[0])))


def _height(one: SurfaceArray, other: SurfaceArray) -> float:
    """Return the height of the origin of a surface over that of the first one, along the axis of the first one."""
    return float((other.origin[0] - one.origin[0]) @ one.axis[0])


def _across(one: SurfaceArray, other: SurfaceArray) -> np.ndarray:
    """Return the offset (3,) of the origin of a surface from the axis of the first one."""
    offset: np.ndarray = other.origin[0] - one.origin[0] - _height(one, other) * one.axis[0]
    return offset
