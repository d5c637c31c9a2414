"""Closed-form guesses at surfaces, for many groups of points and facets at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.recognition.sample_blocks import Block, about, along, frame, products, solved
from meshhub.builtin_plugins.step.recognition.surfaces import SurfaceArray, SurfaceKind
from meshhub.model.scene import Float64


def sphere(block: Block) -> SurfaceArray:
    """Return the algebraic least-squares sphere of each group."""
    x, y, z = block.point
    square = x * x + y * y + z * z
    sums = products([x * block.there, y * block.there, z * block.there, block.there, square * block.there])
    solution = solved(sums[:4, :4], sums[:4, 4])
    centre = solution[:3].T / 2
    radius = np.sqrt(np.maximum(solution[3] + np.einsum("ij,ij->i", centre, centre), 0))
    axis = np.tile([0.0, 0.0, 1.0], (len(centre), 1))
    return SurfaceArray(_kinds(SurfaceKind.SPHERE, axis), centre, axis, radius, np.zeros(len(centre)))


def cylinder(block: Block) -> SurfaceArray:
    """The axis is what all normals are perpendicular to."""
    axis = _smallest(products(list(block.normal * np.sqrt(block.weight))))
    nothing = np.zeros(len(axis))
    made = SurfaceArray(_kinds(SurfaceKind.CYLINDER, axis), np.zeros_like(axis), axis, nothing, nothing)
    u, v, _ = frame(made)
    a, b, radius = _circle(block, along(block.point, u), along(block.point, v))
    return SurfaceArray(made.kind, (a * u + b * v).T, axis, radius, nothing)


def torus(block: Block) -> SurfaceArray:
    """Return a torus for each group: the axis from the normals, the tube as a circle in the half plane."""
    guess = _revolved(block, SurfaceKind.TORUS)
    height, distance = about(block.point, guess)
    ring, up, tube = _circle(block, distance, height)
    return replace(guess, origin=guess.origin + guess.axis * up[:, None], radius=ring, second=tube)


def cone(block: Block) -> SurfaceArray:
    """The axis is what all normals lean from alike.

    The normals of one whole ring of facets meet in a point, and every line through it: `_revolved` is at a loss there.
    """
    mean = (block.normal * block.weight).sum(axis=1) / block.weight.sum(axis=0)
    axis = _smallest(products(list((block.normal - mean[:, None, :]) * np.sqrt(block.weight))))
    nothing = np.zeros(len(axis))
    guess = SurfaceArray(_kinds(SurfaceKind.CONE, axis), np.zeros_like(axis), axis, nothing, nothing)
    u, v, up = frame(guess)
    x, y, height = (along(block.point, line) * block.there for line in (u, v, up))
    # circles about one axis, the square of whose radius is a parabola of the height
    sums = products([x, y, block.there, height, height**2, x * x + y * y])
    solution = solved(sums[:5, :5], sums[:5, 5]) / 2
    return _with_slope(block, replace(guess, origin=(solution[0] * u + solution[1] * v).T))


def cone_about(block: Block) -> SurfaceArray:
    """Return a cone for each group about the axis that all normals meet."""
    return _with_slope(block, _revolved(block, SurfaceKind.CONE))


def _with_slope(block: Block, guess: SurfaceArray) -> SurfaceArray:
    """Cones about axes: their radii and slopes from the heights of the points, and their distances from the axes."""
    height, distance = about(block.point, guess)
    sums = products([block.there, height * block.there, distance * block.there])
    radius, slope = solved(sums[:2, :2], sums[:2, 2])
    return replace(guess, radius=radius, second=slope)


def _revolved(block: Block, kind: SurfaceKind) -> SurfaceArray:
    """The axis is the line that all normals meet (Pottmann and Randrup, 1998)."""
    root = np.sqrt(block.weight)
    moment = np.cross(block.centre, block.normal, axis=0)
    sums = products([*(moment * root), *(block.normal * root)]).transpose(2, 0, 1)
    a, b, c = sums[:, :3, :3], sums[:, :3, 3:], sums[:, 3:, 3:]
    c = c + np.eye(3) * (1e-10 * np.trace(c, axis1=1, axis2=2)[:, None, None] + 1e-300)
    inner = np.linalg.solve(np.nan_to_num(c), np.nan_to_num(b.transpose(0, 2, 1)))
    axis = _smallest((a - b @ inner).transpose(1, 2, 0))
    about = -np.einsum("ijk,ik->ij", inner, axis)
    nothing = np.zeros(len(axis))
    return SurfaceArray(_kinds(kind, axis), np.cross(axis, about), axis, nothing, nothing)


def _circle(block: Block, x: Float64, y: Float64) -> tuple[Float64, Float64, Float64]:
    """Centre and radius of the algebraic best circle of each group (Kåsa, 1976)."""
    sums = products([x * block.there, y * block.there, block.there, (x * x + y * y) * block.there])
    a, b, square = solved(sums[:3, :3], sums[:3, 3])
    a, b = a / 2, b / 2
    return a, b, np.sqrt(np.maximum(square + a * a + b * b, 0))


def _smallest(spread: Float64) -> Float64:
    """(g, 3) the direction in which (3, 3, g) moments are smallest."""
    made: Float64 = np.linalg.eigh(np.nan_to_num(spread.transpose(2, 0, 1)))[1][:, :, 0]
    return made


def _kinds(kind: SurfaceKind, axis: Float64) -> NDArray[np.int8]:
    return np.full(len(axis), kind, np.int8)
