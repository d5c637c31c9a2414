"""Surfaces of all kinds in arrays: distances, normals, curvatures, projection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.surfaces.arrays import lengths, normalize
from meshhub.builtin_plugins.step.surfaces.kinds import SurfaceKind
from meshhub.builtin_plugins.step.surfaces.patches import Patch, PatchPoints, PatchPool, relate_points
from meshhub.model.scene import Float64

_TINY = 1e-300
"""Smallest divisor, so that a point on an axis does not divide by zero."""

MAX_NEWTON_STEPS = 12
"""Newton steps that move a point onto its surfaces; they converge quadratically, except where surfaces touch."""

NEWTON_PRECISION_RATIO = 1e-14
"""Newton's method stops at a step of this part of the largest coordinate: the rounding of float64."""

MIN_SQUARED_SINE = 1e-6
"""Squared sine of the angle between two normals (0.06°) below which their surfaces count as touching."""


@dataclass(frozen=True, eq=False)
class SurfaceArray:
    """Surfaces as parallel arrays; lengths in millimeters, in the frame of the mesh.

    kind:   (s,) a `SurfaceKind`
    origin: (s, 3) a point of a plane, or on the axis of a cylinder or a cone; the center of a sphere or a torus; the
            middle of a patch
    axis:   (s, 3) unit vector; the normal of a plane
    radius: (s,) that of a cone is at its origin, that of a torus is the larger one
    second: (s,) slope of a cone (radius gained per length along the axis), smaller radius of a torus
    patch:  (s,) a `Patch`; None for other kinds
    """

    kind: NDArray[np.int8]
    origin: Float64
    axis: Float64
    radius: Float64
    second: Float64
    patch: NDArray[np.object_] = field(default_factory=lambda: np.empty(0, np.object_))

    def __post_init__(self) -> None:
        if len(self.patch) != len(self.kind):
            object.__setattr__(self, "patch", np.full(len(self.kind), None, np.object_))

    def __len__(self) -> int:
        return len(self.kind)

    def take(self, index: NDArray[Any]) -> SurfaceArray:
        """Return some of the surfaces, by index or mask."""
        return SurfaceArray(*(getattr(self, column.name)[index] for column in fields(self)))

    def replace_rows(self, index: NDArray[Any], surfaces: SurfaceArray) -> SurfaceArray:
        """Return a copy with the surfaces at `index` replaced."""
        columns = []
        for name in [column.name for column in fields(self)]:
            column = getattr(self, name).copy()
            column[index] = getattr(surfaces, name)
            columns.append(column)
        return SurfaceArray(*columns)


def make_planes(normal: Float64, center: Float64) -> SurfaceArray:
    """Return planes as surfaces, from (s, 3) unit normals and (s, 3) points."""
    zero = np.zeros(len(normal))
    return SurfaceArray(np.full(len(normal), SurfaceKind.PLANE, np.int8), center, normal, zero, zero)


def concatenate(parts: Sequence[SurfaceArray]) -> SurfaceArray:
    """Concatenate arrays of surfaces."""
    return SurfaceArray(
        *(np.concatenate([getattr(part, column.name) for part in parts]) for column in fields(SurfaceArray))
    )


def cylindrical(surfaces: SurfaceArray, points: Float64) -> tuple[Float64, Float64, Float64]:
    """Compute cylindrical coordinates about the axes of surfaces.

    Args:
        surfaces: (n,) one surface for each point.
        points: (n, 3) points.
    Returns:
        (n,) height over the origin along the axis; (n,) distance from the axis; (n, 3) unit vector away from the axis.
    """
    offset = points - surfaces.origin
    height = np.einsum("ij,ij->i", offset, surfaces.axis)
    across = offset - height[:, None] * surfaces.axis
    distance = lengths(across)
    return height, distance, across / np.maximum(distance, _TINY)[:, None]


def distances(surfaces: SurfaceArray, points: Float64) -> Float64:
    """Compute the signed distances of (n, 3) points from (n,) surfaces, row by row; positive outside."""
    height, distance, _ = cylindrical(surfaces, points)
    value = np.empty(len(surfaces))
    for kind, rows in _rows_by_kind(surfaces):
        shape = surfaces.radius[rows], surfaces.second[rows]
        value[rows] = evaluate_profile(kind, height[rows], distance[rows], *shape)[0]
    for rows, on_patch in _relate_to_patches(surfaces, points):
        value[rows] = on_patch.distance
    return value


def gradients(surfaces: SurfaceArray, points: Float64) -> tuple[Float64, Float64]:
    """Compute the signed distances of (n, 3) points from (n,) surfaces, and their gradients.

    Returns:
        (n,) distances, positive outside, and (n, 3) unit normals of the parallel surfaces through the points.
    """
    height, distance, away = cylindrical(surfaces, points)
    value, outward, along = np.empty((3, len(surfaces)))
    for kind, rows in _rows_by_kind(surfaces):
        shape = surfaces.radius[rows], surfaces.second[rows]
        value[rows], outward[rows], along[rows] = evaluate_profile(kind, height[rows], distance[rows], *shape)
    normal = outward[:, None] * away + along[:, None] * surfaces.axis
    for rows, on_patch in _relate_to_patches(surfaces, points):
        value[rows], normal[rows] = on_patch.distance, on_patch.normal
    return value, normal


def _relate_to_patches(surfaces: SurfaceArray, points: Float64) -> Iterator[tuple[NDArray[np.intp], PatchPoints]]:
    """Yield the rows of each patch, and points (n, 3) relative to it."""
    parts = _rows_by_patch(surfaces)
    related = relate_points([(patch, points[rows]) for patch, rows in parts])
    for (_, rows), on_patch in zip(parts, related, strict=True):
        yield rows, on_patch


def _rows_by_patch(surfaces: SurfaceArray) -> list[tuple[Patch, NDArray[np.intp]]]:
    """Return each patch with its rows."""
    rows = np.flatnonzero(surfaces.kind == SurfaceKind.PATCH)
    if len(rows) == 0:
        return []
    owner = np.array([id(patch) for patch in surfaces.patch[rows].tolist()], np.intp)
    order = np.argsort(owner, kind="stable")
    parts = np.split(rows[order], np.flatnonzero(np.diff(owner[order])) + 1)
    return [(surfaces.patch[part[0]], part) for part in parts if len(part)]


def find_charts(surfaces: SurfaceArray) -> NDArray[np.bool_]:
    """Return (n,) whether surfaces are patches that follow a mesh within a distance only."""
    charts: NDArray[np.bool_] = surfaces.kind == SurfaceKind.PATCH
    charts[charts] = [patch.is_chart for patch in surfaces.patch[charts].tolist()]
    return charts


def pool_patches(surfaces: SurfaceArray) -> tuple[PatchPool, NDArray[np.intp], NDArray[np.intp]]:
    """Return the patches among surfaces that have some, the rows (n,) of each in order, and their patches (n,)."""
    parts = _rows_by_patch(surfaces)
    owner = np.repeat(np.arange(len(parts)), [len(rows) for _, rows in parts])
    return PatchPool([patch for patch, _ in parts]), np.concatenate([rows for _, rows in parts]), owner


def _rows_by_kind(surfaces: SurfaceArray) -> list[tuple[SurfaceKind, NDArray[np.intp] | slice]]:
    """Return each kind that occurs, except for patches, with its rows."""
    counts = np.bincount(surfaces.kind, minlength=len(SurfaceKind))[: SurfaceKind.PATCH]
    kinds = np.flatnonzero(counts)
    if len(kinds) == 1 and counts[kinds[0]] == len(surfaces):
        return [(SurfaceKind(int(kinds[0])), slice(None))]
    return [(SurfaceKind(kind), np.flatnonzero(surfaces.kind == kind)) for kind in kinds.tolist()]


def evaluate_profile(
    kind: SurfaceKind, height: Float64, distance: Float64, radius: Float64, second: Float64
) -> tuple[Float64, Float64 | float, Float64 | float]:
    """Compute signed distances in the half plane through the axis, where each surface is a line or a circle.

    Args:
        kind: Kind of all surfaces.
        height: Heights of the points along the axis.
        distance: Distances of the points from the axis.
        radius: `SurfaceArray.radius`.
        second: `SurfaceArray.second`; all arrays broadcast.
    Returns:
        Signed distances, and the components of their gradients away from the axis and along it.
    """
    if kind == SurfaceKind.PLANE:
        return height, 0.0, 1.0
    if kind == SurfaceKind.CYLINDER:
        return distance - radius, 1.0, 0.0
    if kind == SurfaceKind.CONE:
        cosine = 1 / np.sqrt(1 + second**2)
        return (distance - radius - height * second) * cosine, cosine, -second * cosine
    if kind == SurfaceKind.SPHERE:
        from_center = np.sqrt(distance**2 + height**2)
        size = np.maximum(from_center, _TINY)
        return from_center - radius, distance / size, height / size
    from_ring = distance - radius
    tube = np.sqrt(from_ring**2 + height**2)
    size = np.maximum(tube, _TINY)
    return tube - second, from_ring / size, height / size


def curvatures(surfaces: SurfaceArray, points: Float64) -> tuple[Float64, Float64]:
    """Compute the principal curvatures of the parallel surface through each point.

    Args:
        surfaces: (n,) one surface for each point.
        points: (n, 3) points.
    Returns:
        (n,) and (n,) curvatures per millimeter; positive where the surface bends away from its normal.
    """
    height, distance, _ = cylindrical(surfaces, points)
    kind = surfaces.kind
    from_ring = distance - surfaces.radius
    tube = np.maximum(np.sqrt(from_ring**2 + height**2), _TINY)
    from_center = np.maximum(np.sqrt(distance**2 + height**2), _TINY)
    around = 1 / np.maximum(distance, _TINY)
    kinds = [
        kind == SurfaceKind.CYLINDER,
        kind == SurfaceKind.SPHERE,
        kind == SurfaceKind.CONE,
        kind == SurfaceKind.TORUS,
    ]
    cosine = 1 / np.sqrt(1 + surfaces.second**2)
    first = np.select(kinds, [around, 1 / from_center, cosine * around, from_ring / tube * around], 0.0)
    second = np.select(kinds, [np.zeros_like(tube), 1 / from_center, np.zeros_like(tube), 1 / tube], 0.0)
    for rows, on_patch in _relate_to_patches(surfaces, points):
        first[rows], second[rows] = on_patch.first, on_patch.second
    return first, second


def project_onto_both(
    one: SurfaceArray,
    other: SurfaceArray,
    points: Float64,
    max_steps: int = MAX_NEWTON_STEPS,
    min_squared_sine: float = MIN_SQUARED_SINE,
) -> Float64:
    """Move each point to the nearest common point of two surfaces: Newton's method, damped where they touch.

    Args:
        one: (n,) first surface of each point.
        other: (n,) second surface of each point.
        points: (n, 3) points.
        max_steps: Newton steps.
        min_squared_sine: Squared sine of the angle between two normals below which their surfaces count as touching.
    Returns:
        (n, 3) moved points; the caller checks their distances, because the surfaces need not meet.
    """
    points = points.copy()
    if len(points) == 0:
        return points
    precision = float(np.abs(points).max()) * NEWTON_PRECISION_RATIO
    for _ in range(max_steps):
        first, first_normal = gradients(one, points)
        second, second_normal = gradients(other, points)
        cosine = np.einsum("ij,ij->i", first_normal, second_normal)
        determinant = np.maximum(1 - cosine**2, min_squared_sine)
        a = (first - cosine * second) / determinant
        b = (second - cosine * first) / determinant
        is_touching = 1 - cosine**2 < min_squared_sine
        a = np.where(is_touching, first / 2, a)
        b = np.where(is_touching, second / 2, b)
        step = a[:, None] * first_normal + b[:, None] * second_normal
        points -= step
        if float(np.abs(step).max()) <= precision:
            break
    return points


def perpendicular(axis: Float64) -> Float64:
    """Return (s, 3) unit vectors perpendicular to (s, 3) axes; equal for an axis and its opposite."""
    helper = np.eye(3)[np.argmin(np.abs(axis), axis=1)]
    return normalize(helper - axis * np.einsum("ij,ij->i", helper, axis)[:, None])
