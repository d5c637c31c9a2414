"""Triangulation of loops in space with the least area, many loops of one length at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64
from meshhub.toolkit.topology import Index

MAX_CELLS = 1_000_000
"""Cells of tables, or pairs of points and edges, at a time; bounds the memory."""

FLIPPED_WEIGHT_RATIO = 4.0
"""Weight of area that faces away from the plane of the loop, per area; prevents folds."""

LENGTH_WEIGHT_RATIO = 1e-4
"""Weight of squared chord lengths per area; decides between equal areas, and prevents slivers."""


def loop_normals(loops: Float64) -> Float64:
    """Return the (b, 3) vector areas of loops (b, n, 3): normals of their best planes, by Newell's method."""
    spread = loops - loops.mean(axis=1, keepdims=True)
    total: Float64 = np.cross(spread, np.roll(spread, -1, axis=1)).sum(axis=1) / 2
    return total


def triangulate_least_area(loops: Float64, forbidden: NDArray[np.bool_]) -> tuple[Index, NDArray[np.bool_]]:
    """Triangulate loops of equal length with the least area; correct for concave and flat loops alike.

    Args:
        loops: (b, n, 3) corners, any length unit.
        forbidden: (b, n, n) chords that the triangulation must not use.
    Returns:
        (b, n - 2, 3) positions in the loop, with its winding, and (b,) whether a triangulation exists.
    Source:
        Barequet and Sharir, "Filling gaps in the boundary of a polyhedron", Computer Aided Geometric Design 12, 1995.
    """
    if loops.shape[1] == 3:
        return np.tile(np.arange(3), (len(loops), 1, 1)), np.ones(len(loops), np.bool_)
    triangles, solved = [], []
    step = max(1, MAX_CELLS // loops.shape[1] ** 2)
    for start in range(0, len(loops), step):
        choice, is_solved = _choose_middles(loops[start : start + step], forbidden[start : start + step])
        triangles.append(_list_triangles(choice))
        solved.append(is_solved)
    return np.concatenate(triangles), np.concatenate(solved)


def _choose_middles(loops: Float64, forbidden: NDArray[np.bool_]) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Return the (b, n, n) best middle point over each chord, and (b,) whether a triangulation exists."""
    count, size = loops.shape[:2]
    normal = loop_normals(loops)
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    normal = np.divide(normal, length, out=np.zeros_like(normal), where=length > 0)
    squared = ((loops[:, :, None] - loops[:, None]) ** 2).sum(axis=3)
    best = np.zeros((count, size, size))
    choice = np.zeros((count, size, size), np.int32)
    for span in range(2, size):
        low = np.arange(size - span)
        high = low + span
        between = low[:, None] + np.arange(1, span)
        origin = loops[:, low][:, :, None]
        cross = np.cross(loops[:, between] - origin, (loops[:, high] - loops[:, low])[:, :, None])
        area = np.sqrt(np.einsum("bijk,bijk->bij", cross, cross))
        facing = np.einsum("bijk,bk->bij", cross, normal)
        cost = best[:, low[:, None], between] + best[:, between, high[:, None]]
        cost += area + FLIPPED_WEIGHT_RATIO * np.maximum(-facing, 0)
        cost += LENGTH_WEIGHT_RATIO * (squared[:, low[:, None], between] + squared[:, between, high[:, None]])
        chosen = cost.argmin(axis=2)
        least = np.take_along_axis(cost, chosen[:, :, None], axis=2)[:, :, 0]
        if span < size - 1:
            least[forbidden[:, low, high]] = np.inf
        best[:, low, high] = least
        choice[:, low, high] = low + 1 + chosen
    return choice, np.isfinite(best[:, 0, size - 1])


def _list_triangles(choice: NDArray[np.int32]) -> Index:
    """Return the (b, n - 2, 3) triangles that follow from the table of middle points, all loops level by level."""
    count, size = choice.shape[:2]
    owner, low = np.arange(count), np.zeros(count, np.intp)
    high = np.full(count, size - 1)
    owners, triangles = [], []
    while len(owner):
        middle = choice[owner, low, high].astype(np.intp)
        owners.append(owner)
        triangles.append(np.stack([low, middle, high], axis=1))
        left, right = middle - low > 1, high - middle > 1
        owner, low, high = (
            np.concatenate([owner[left], owner[right]]),
            np.concatenate([low[left], middle[right]]),
            np.concatenate([middle[left], high[right]]),
        )
    order = np.argsort(np.concatenate(owners), kind="stable")
    return np.concatenate(triangles)[order].reshape(count, size - 2, 3)
