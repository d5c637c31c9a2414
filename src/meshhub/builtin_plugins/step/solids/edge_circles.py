"""Circles through the points of edges."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.solids.edge_paths import Paths, Sides
from meshhub.builtin_plugins.step.surfaces import traits
from meshhub.builtin_plugins.step.surfaces.arrays import TINY, lengths, normalize, sum_by_label
from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceArray, SurfaceKind
from meshhub.builtin_plugins.step.surfaces.surfaces import cylindrical
from meshhub.model.scene import Float64

_REGULARIZATION = 1e-14
"""Added to the normal equations of points in units of their extent; makes those of collinear points solvable."""


class CircleAxis(IntEnum):
    """Origin of a circle's axis: no circle, the axis of a surface, or fitted to the points."""

    NONE = 0
    SURFACE = 1
    FITTED = 2


class Circles(NamedTuple):
    """Circles through paths; center, axis: (n, 3), radius: (n,) mm, source: (n,) a CircleAxis."""

    center: Float64
    axis: Float64
    radius: Float64
    source: NDArray[np.int8]


def fit_circles(paths: Paths, refined: Paths, sides: Sides, limit: Float64) -> Circles:
    """Fit a circle to each path, about the axis of a surface or about an axis of its own."""
    count = paths.count
    source = np.full(count, CircleAxis.NONE, np.int8)
    center, axis, radius = np.zeros((count, 3)), np.zeros((count, 3)), np.zeros(count)
    segment_path, begin, end = paths.segments()
    for candidate in sides:
        usable = source == CircleAxis.NONE
        usable &= ~(traits.IS_PLANE | traits.HAS_FREE_AXIS)[candidate.kind]
        if not usable.any():
            continue
        middle, ring, error = _mean_circles(candidate, paths)
        # the middle of each arc must lie on both surfaces
        out = (begin + end) / 2 - middle[segment_path]
        line = candidate.axis[segment_path]
        out -= line * np.einsum("ij,ij->i", out, line)[:, None]
        arc_middle = middle[segment_path] + ring[segment_path][:, None] * normalize(out)
        off_surface = sides.distances(arc_middle, segment_path)
        error = np.maximum(error, np.maximum.reduceat(off_surface, np.searchsorted(segment_path, np.arange(count))))
        fits = usable & (error <= limit) & (ring > limit)
        source[fits] = CircleAxis.SURFACE
        center[fits], axis[fits], radius[fits] = middle[fits], candidate.axis[fits], ring[fits]
    candidate = _fit_axes(refined)
    middle, ring, error = _mean_circles(candidate, refined)
    # cylinders and cones meet planes in circles about their own axes or in none
    can_be_circle = traits.HAS_CENTER[sides.left.kind] | traits.HAS_CENTER[sides.right.kind]
    fits = (source == CircleAxis.NONE) & can_be_circle & (error <= limit) & (ring > limit)
    source[fits] = CircleAxis.FITTED
    center[fits], axis[fits], radius[fits] = middle[fits], candidate.axis[fits], ring[fits]
    a, b = begin - center[segment_path], end - center[segment_path]
    turn = np.bincount(segment_path, np.einsum("ij,ij->i", np.cross(a, b), axis[segment_path]), count)
    axis *= np.where(turn < 0, -1.0, 1.0)[:, None]
    return Circles(center, axis, radius, source)


def _mean_circles(axes: SurfaceArray, paths: Paths) -> tuple[Float64, Float64, Float64]:
    """Return the mean circle of each path about an axis: centers (n, 3), radii (n,), largest errors (n,), mm."""
    count = paths.count
    size = np.bincount(paths.path, minlength=count)
    height, distance, _ = cylindrical(axes.take(paths.path), paths.point)
    mean_height = np.bincount(paths.path, height, count) / size
    radius = np.bincount(paths.path, distance, count) / size
    error = np.maximum(np.abs(height - mean_height[paths.path]), np.abs(distance - radius[paths.path]))
    largest: Float64 = np.maximum.reduceat(error, paths.begin[:-1])
    return axes.origin + mean_height[:, None] * axes.axis, radius, largest


def _fit_axes(paths: Paths) -> SurfaceArray:
    """Fit a circle to the points of each path and return the cylinder around it, with radius 0.

    Source:
        Kåsa, "A circle fitting procedure and its error analysis", IEEE Trans. Instrum. Meas. 25, 1976.
    """
    count, path, begin = paths.count, paths.path, paths.begin[:-1]
    middle = np.add.reduceat(paths.point, begin) / np.bincount(path, minlength=count)[:, None]
    offset = paths.point - middle[path]
    scale = np.maximum(np.maximum.reduceat(lengths(offset), begin), TINY)
    offset = offset / scale[path][:, None]
    covariance = np.stack(
        [[np.bincount(path, offset[:, i] * offset[:, j], count) for j in range(3)] for i in range(3)]
    ).transpose(2, 0, 1)
    _, vectors = np.linalg.eigh(covariance)
    axis, u, v = vectors[:, :, 0], vectors[:, :, 2], vectors[:, :, 1]
    x = np.einsum("ij,ij->i", offset, u[path])
    y = np.einsum("ij,ij->i", offset, v[path])
    columns = [x, y, np.ones_like(x)]
    square = x * x + y * y
    products = np.stack([[sum_by_label(path, p * q, count) for q in columns] for p in columns]).transpose(2, 0, 1)
    right = np.stack([sum_by_label(path, p * square, count) for p in columns], axis=1)
    solution = np.linalg.solve(products + np.eye(3) * _REGULARIZATION, right[..., None])[..., 0] / 2
    origin = middle + scale[:, None] * (solution[:, :1] * u + solution[:, 1:2] * v)
    kind = np.full(count, SurfaceKind.CYLINDER, np.int8)
    return SurfaceArray(kind, origin, axis, np.zeros(count), np.zeros(count))
