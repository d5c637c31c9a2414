"""Closed-form estimates of surfaces, for many groups of points and facets at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.surfaces.arrays import TINY
from meshhub.builtin_plugins.step.surfaces.sample_blocks import (
    Block,
    axis_coordinates,
    axis_frames,
    dot_products,
    solve_symmetric,
    sum_products,
)
from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceArray, SurfaceKind
from meshhub.model.scene import Float64

_RIDGE_RATIO = 1e-10
"""Part of the trace that is added to a diagonal, so that parallel normals do not make the system singular."""


def estimate_sphere(block: Block) -> SurfaceArray:
    """Return the algebraic least-squares sphere of each group: |p|² = 2 p · center + constant."""
    x, y, z = block.point
    square = x * x + y * y + z * z
    sums = sum_products([x * block.mask, y * block.mask, z * block.mask, block.mask, square * block.mask])
    solution = solve_symmetric(sums[:4, :4], sums[:4, 4])
    center = solution[:3].T / 2
    radius = np.sqrt(np.maximum(solution[3] + np.einsum("ij,ij->i", center, center), 0))
    axis = np.tile([0.0, 0.0, 1.0], (len(center), 1))
    return SurfaceArray(_kinds(SurfaceKind.SPHERE, axis), center, axis, radius, np.zeros(len(center)))


def estimate_cylinder(block: Block) -> SurfaceArray:
    """Return a cylinder for each group: the axis is perpendicular to all normals, the rest is a circle across it."""
    axis = _smallest_directions(sum_products(list(block.normal * np.sqrt(block.weight))))
    zero = np.zeros(len(axis))
    surfaces = SurfaceArray(_kinds(SurfaceKind.CYLINDER, axis), np.zeros_like(axis), axis, zero, zero)
    u, v, _ = axis_frames(surfaces)
    a, b, radius = _fit_circles(block, dot_products(block.point, u), dot_products(block.point, v))
    return SurfaceArray(surfaces.kind, (a * u + b * v).T, axis, radius, zero)


def estimate_torus(block: Block) -> SurfaceArray:
    """Return a torus for each group: the axis from the normals, the tube as a circle in the half plane of the axis."""
    surfaces = _axes_of_revolution(block, SurfaceKind.TORUS)
    height, distance = axis_coordinates(block.point, surfaces)
    ring, up, tube = _fit_circles(block, distance, height)
    return replace(surfaces, origin=surfaces.origin + surfaces.axis * up[:, None], radius=ring, second=tube)


def estimate_cone(block: Block) -> SurfaceArray:
    """Return a cone for each group: all normals have the same angle to the axis.

    The normals of one ring of facets meet in a point, and all lines through it meet them: `_axes_of_revolution` cannot
    find the axis there.
    """
    mean = (block.normal * block.weight).sum(axis=1) / block.weight.sum(axis=0)
    axis = _smallest_directions(sum_products(list((block.normal - mean[:, None, :]) * np.sqrt(block.weight))))
    zero = np.zeros(len(axis))
    surfaces = SurfaceArray(_kinds(SurfaceKind.CONE, axis), np.zeros_like(axis), axis, zero, zero)
    u, v, up = axis_frames(surfaces)
    x, y, height = (dot_products(block.point, line) * block.mask for line in (u, v, up))
    # circles about one axis whose squared radius is a quadratic function of the height
    sums = sum_products([x, y, block.mask, height, height**2, x * x + y * y])
    solution = solve_symmetric(sums[:5, :5], sums[:5, 5]) / 2
    return _fit_slopes(block, replace(surfaces, origin=(solution[0] * u + solution[1] * v).T))


def estimate_cone_of_revolution(block: Block) -> SurfaceArray:
    """Return a cone for each group: the axis is the line that all normals meet."""
    return _fit_slopes(block, _axes_of_revolution(block, SurfaceKind.CONE))


def _fit_slopes(block: Block, surfaces: SurfaceArray) -> SurfaceArray:
    """Fit the radii and slopes of cones about known axes: distance from the axis = radius + slope * height."""
    height, distance = axis_coordinates(block.point, surfaces)
    sums = sum_products([block.mask, height * block.mask, distance * block.mask])
    radius, slope = solve_symmetric(sums[:2, :2], sums[:2, 2])
    return replace(surfaces, radius=radius, second=slope)


def _axes_of_revolution(block: Block, kind: SurfaceKind) -> SurfaceArray:
    """Find the line that all normals of a group meet; radii are zero.

    Source:
        Pottmann and Randrup, "Rotational and helical surface approximation for reverse engineering", Computing
        60, 1998.
    """
    root = np.sqrt(block.weight)
    moment = np.cross(block.center, block.normal, axis=0)
    sums = sum_products([*(moment * root), *(block.normal * root)]).transpose(2, 0, 1)
    a, b, c = sums[:, :3, :3], sums[:, :3, 3:], sums[:, 3:, 3:]
    c = c + np.eye(3) * (_RIDGE_RATIO * np.trace(c, axis1=1, axis2=2)[:, None, None] + TINY)
    inner = np.linalg.solve(np.nan_to_num(c), np.nan_to_num(b.transpose(0, 2, 1)))
    axis = _smallest_directions((a - b @ inner).transpose(1, 2, 0))
    axis_moment = -np.einsum("ijk,ik->ij", inner, axis)
    zero = np.zeros(len(axis))
    return SurfaceArray(_kinds(kind, axis), np.cross(axis, axis_moment), axis, zero, zero)


def _fit_circles(block: Block, x: Float64, y: Float64) -> tuple[Float64, Float64, Float64]:
    """Return the (g,) center coordinates and radius of the algebraic least-squares circle of each group.

    Source:
        Kåsa, "A circle fitting procedure and its error analysis", IEEE Transactions on Instrumentation and
        Measurement 25, 1976.
    """
    sums = sum_products([x * block.mask, y * block.mask, block.mask, (x * x + y * y) * block.mask])
    a, b, square = solve_symmetric(sums[:3, :3], sums[:3, 3])
    a, b = a / 2, b / 2
    return a, b, np.sqrt(np.maximum(square + a * a + b * b, 0))


def _smallest_directions(moments: Float64) -> Float64:
    """Return the direction (g, 3) in which each moment (3, 3, g) is smallest."""
    directions: Float64 = np.linalg.eigh(np.nan_to_num(moments.transpose(2, 0, 1)))[1][:, :, 0]
    return directions


def _kinds(kind: SurfaceKind, axis: Float64) -> NDArray[np.int8]:
    return np.full(len(axis), kind, np.int8)
