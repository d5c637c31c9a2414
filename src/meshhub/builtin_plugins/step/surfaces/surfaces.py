"""Surfaces of all kinds in arrays: distances, normals, curvatures, projection."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.surfaces import traits
from meshhub.builtin_plugins.step.surfaces.arrays import TINY, lengths
from meshhub.builtin_plugins.step.surfaces.kinds import PROFILES
from meshhub.builtin_plugins.step.surfaces.patches import Patch, PatchPoints, PatchPool, relate_points
from meshhub.builtin_plugins.step.surfaces.profiles import ProfilePoints
from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceArray, SurfaceKind
from meshhub.model.scene import Float64

MAX_NEWTON_STEPS = 12
"""Newton steps that move a point onto its surfaces; they converge quadratically, except where surfaces touch."""

NEWTON_PRECISION_RATIO = 1e-14
"""Newton's method stops at a step of this part of the largest coordinate: the rounding of float64."""

MIN_SQUARED_SINE = 1e-6
"""Squared sine of the angle between two normals (0.06°) below which their surfaces count as touching."""


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
    return height, distance, across / np.maximum(distance, TINY)[:, None]


def distances(surfaces: SurfaceArray, points: Float64) -> Float64:
    """Compute the signed distances of (n, 3) points from (n,) surfaces, row by row; positive outside."""
    height, distance, _ = cylindrical(surfaces, points)
    value = np.empty(len(surfaces))
    for kind, rows in _rows_by_kind(surfaces):
        shape = surfaces.radius[rows], surfaces.second[rows]
        value[rows] = PROFILES[kind](ProfilePoints(height[rows], distance[rows], *shape))[0]
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
        value[rows], outward[rows], along[rows] = PROFILES[kind](ProfilePoints(height[rows], distance[rows], *shape))
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
    rows = np.flatnonzero(traits.IS_PATCH[surfaces.kind])
    if len(rows) == 0:
        return []
    owner = np.array([id(patch) for patch in surfaces.patch[rows].tolist()], np.intp)
    order = np.argsort(owner, kind="stable")
    parts = np.split(rows[order], np.flatnonzero(np.diff(owner[order])) + 1)
    return [(surfaces.patch[part[0]], part) for part in parts if len(part)]


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
    tube = np.maximum(np.sqrt(from_ring**2 + height**2), TINY)
    from_center = np.maximum(np.sqrt(distance**2 + height**2), TINY)
    around = 1 / np.maximum(distance, TINY)
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


def project_onto_both(one: SurfaceArray, other: SurfaceArray, points: Float64) -> Float64:
    """Move each point to the nearest common point of two surfaces: Newton's method, damped where they touch.

    Args:
        one: (n,) first surface of each point.
        other: (n,) second surface of each point.
        points: (n, 3) points.
    Returns:
        (n, 3) moved points; the caller checks their distances, because the surfaces need not meet.
    """
    points = points.copy()
    if len(points) == 0:
        return points
    precision = float(np.abs(points).max()) * NEWTON_PRECISION_RATIO
    for _ in range(MAX_NEWTON_STEPS):
        first, first_normal = gradients(one, points)
        second, second_normal = gradients(other, points)
        cosine = np.einsum("ij,ij->i", first_normal, second_normal)
        determinant = np.maximum(1 - cosine**2, MIN_SQUARED_SINE)
        a = (first - cosine * second) / determinant
        b = (second - cosine * first) / determinant
        is_touching = 1 - cosine**2 < MIN_SQUARED_SINE
        a = np.where(is_touching, first / 2, a)
        b = np.where(is_touching, second / 2, b)
        step = a[:, None] * first_normal + b[:, None] * second_normal
        points -= step
        if float(np.abs(step).max()) <= precision:
            break
    return points
