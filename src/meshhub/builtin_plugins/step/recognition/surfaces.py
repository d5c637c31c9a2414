"""Surfaces of revolution in columns: cylinders, cones, spheres, tori; distances, normals and projection."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.recognition.skin import lengths, normalize
from meshhub.model.scene import Float64

_TINY = 1e-300
_NEWTON = 12


class SurfaceKind(IntEnum):
    """What a surface is, in the order in which they are looked for."""

    PLANE = 0
    CYLINDER = 1
    SPHERE = 2
    CONE = 3
    TORUS = 4


@dataclass(frozen=True, eq=False)
class SurfaceArray:
    """Surfaces side by side.

    kind:   (s,) a SurfaceKind
    origin: (s, 3) a point of the plane or on the axis; the centre of a sphere or a torus
    axis:   (s, 3) unit; a plane's normal
    radius: (s,) a cone's at its origin, a torus's larger one
    second: (s,) a cone's slope (radius gained for each length along the axis), a torus's smaller radius
    """

    kind: NDArray[np.int8]
    origin: Float64
    axis: Float64
    radius: Float64
    second: Float64

    def __len__(self) -> int:
        return len(self.kind)

    def take(self, index: NDArray[Any]) -> SurfaceArray:
        """Some of them, by index or mask."""
        return SurfaceArray(*(getattr(self, field.name)[index] for field in fields(self)))


def planes(normal: Float64, centre: Float64) -> SurfaceArray:
    """Planes as surfaces."""
    nothing = np.zeros(len(normal))
    return SurfaceArray(np.full(len(normal), SurfaceKind.PLANE, np.int8), centre, normal, nothing, nothing)


def joined(parts: list[SurfaceArray]) -> SurfaceArray:
    """Several columns of surfaces, one after the other."""
    return SurfaceArray(
        *(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(SurfaceArray))
    )


def cylindrical(surfaces: SurfaceArray, points: Float64) -> tuple[Float64, Float64, Float64]:
    """Height along the axis, distance from it, and the unit direction away from it, of one point each."""
    offset = points - surfaces.origin
    height = np.einsum("ij,ij->i", offset, surfaces.axis)
    across = offset - height[:, None] * surfaces.axis
    distance = lengths(across)
    return height, distance, across / np.maximum(distance, _TINY)[:, None]


def distances(surfaces: SurfaceArray, points: Float64) -> Float64:
    """Signed distances, positive outside; row i of both belong together."""
    height, distance, _ = cylindrical(surfaces, points)
    value = np.empty(len(surfaces))
    for kind, rows in _kinds(surfaces):
        one = surfaces.radius[rows], surfaces.second[rows]
        value[rows] = profile(kind, height[rows], distance[rows], *one)[0]
    return value


def gradients(surfaces: SurfaceArray, points: Float64) -> tuple[Float64, Float64]:
    """Signed distances and the unit normals there."""
    height, distance, away = cylindrical(surfaces, points)
    value, outward, along = np.empty((3, len(surfaces)))
    for kind, rows in _kinds(surfaces):
        one = surfaces.radius[rows], surfaces.second[rows]
        value[rows], outward[rows], along[rows] = profile(kind, height[rows], distance[rows], *one)
    return value, outward[:, None] * away + along[:, None] * surfaces.axis


def _kinds(surfaces: SurfaceArray) -> list[tuple[SurfaceKind, NDArray[np.intp] | slice]]:
    """The kinds among surfaces, and where each is."""
    there = np.flatnonzero(np.bincount(surfaces.kind, minlength=len(SurfaceKind)))
    if len(there) == 1:
        return [(SurfaceKind(int(there[0])), slice(None))]
    return [(SurfaceKind(kind), np.flatnonzero(surfaces.kind == kind)) for kind in there.tolist()]


def profile(
    kind: SurfaceKind, height: Float64, distance: Float64, radius: Float64, second: Float64
) -> tuple[Float64, Float64 | float, Float64 | float]:
    """Signed distances from surfaces of one kind, and their gradients away from the axis and along it."""
    if kind == SurfaceKind.PLANE:
        return height, 0.0, 1.0
    if kind == SurfaceKind.CYLINDER:
        return distance - radius, 1.0, 0.0
    if kind == SurfaceKind.CONE:
        cosine = 1 / np.sqrt(1 + second**2)
        return (distance - radius - height * second) * cosine, cosine, -second * cosine
    if kind == SurfaceKind.SPHERE:
        whole = np.sqrt(distance**2 + height**2)
        size = np.maximum(whole, _TINY)
        return whole - radius, distance / size, height / size
    ring = distance - radius
    tube = np.sqrt(ring**2 + height**2)
    size = np.maximum(tube, _TINY)
    return tube - second, ring / size, height / size


def curvatures(surfaces: SurfaceArray, points: Float64) -> tuple[Float64, Float64]:
    """The principal curvatures of the parallel surface through each point; positive where it bends off its normal."""
    height, distance, _ = cylindrical(surfaces, points)
    kind = surfaces.kind
    to_ring = distance - surfaces.radius
    tube = np.maximum(np.sqrt(to_ring**2 + height**2), _TINY)
    whole = np.maximum(np.sqrt(distance**2 + height**2), _TINY)
    around = 1 / np.maximum(distance, _TINY)
    kinds = [
        kind == SurfaceKind.CYLINDER,
        kind == SurfaceKind.SPHERE,
        kind == SurfaceKind.CONE,
        kind == SurfaceKind.TORUS,
    ]
    cosine = 1 / np.sqrt(1 + surfaces.second**2)
    one = np.select(kinds, [around, 1 / whole, cosine * around, to_ring / tube * around], 0.0)
    other = np.select(kinds, [np.zeros_like(whole), 1 / whole, np.zeros_like(whole), 1 / tube], 0.0)
    return one, other


def project_onto_both(one: SurfaceArray, other: SurfaceArray, points: Float64) -> Float64:
    """The points moved on to both surfaces by the shortest way (Newton's method, damped where they touch)."""
    points = points.copy()
    if len(points) == 0:
        return points
    still = float(np.abs(points).max()) * 1e-14
    for _ in range(_NEWTON):
        first, first_normal = gradients(one, points)
        second, second_normal = gradients(other, points)
        cosine = np.einsum("ij,ij->i", first_normal, second_normal)
        determinant = np.maximum(1 - cosine**2, 1e-6)
        a = (first - cosine * second) / determinant
        b = (second - cosine * first) / determinant
        touching = 1 - cosine**2 < 1e-6
        a = np.where(touching, first / 2, a)
        b = np.where(touching, second / 2, b)
        step = a[:, None] * first_normal + b[:, None] * second_normal
        points -= step
        if float(np.abs(step).max()) <= still:
            break
    return points


def perpendicular(axis: Float64) -> Float64:
    """(s, 3) unit vectors perpendicular to axes; the same for an axis and its opposite."""
    lead = np.argmin(np.abs(axis), axis=1)
    helper = np.eye(3)[lead]
    made = helper - axis * np.einsum("ij,ij->i", helper, axis)[:, None]
    return normalize(made)
