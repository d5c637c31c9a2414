"""Triangles over loops in space: the triangulation of least area, many loops of one length at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from meshhub.scene import Float64
from meshhub.topology import Index

_CELLS = 1_000_000
_OVERLAP = 4.0
_LENGTH = 1e-4


def newell(loops: Float64) -> Float64:
    """(b, 3) the vector area of loops (b, n, 3): its direction is their best plane's."""
    spread = loops - loops.mean(axis=1, keepdims=True)
    total: Float64 = np.cross(spread, np.roll(spread, -1, axis=1)).sum(axis=1) / 2
    return total


def least_area(loops: Float64, forbidden: NDArray[np.bool_]) -> tuple[Index, NDArray[np.bool_]]:
    """Triangles over loops of one length, (b, n, 3), without the chords `forbidden` (b, n, n).

    Returns (b, n - 2, 3) places in the loop, wound as the loop is, and (b,) whether there is an answer at all.

    Least area after Barequet and Sharir, "Filling gaps in the boundary of a polyhedron" (1995): right for
    concave and flat loops alike. Triangles that face away from the loop's plane weigh more; among equals,
    short chords win, which keeps slivers away.
    """
    if loops.shape[1] == 3:
        return np.tile(np.arange(3), (len(loops), 1, 1)), np.ones(len(loops), np.bool_)
    made, answered = [], []
    step = max(1, _CELLS // loops.shape[1] ** 2)
    for start in range(0, len(loops), step):
        triangles, good = _solved(loops[start : start + step], forbidden[start : start + step])
        made.append(triangles)
        answered.append(good)
    return np.concatenate(made), np.concatenate(answered)


def _solved(loops: Float64, forbidden: NDArray[np.bool_]) -> tuple[Index, NDArray[np.bool_]]:
    lots, size = loops.shape[:2]
    normal = newell(loops)
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    normal = np.divide(normal, length, out=np.zeros_like(normal), where=length > 0)
    squared = ((loops[:, :, None] - loops[:, None]) ** 2).sum(axis=3)
    best = np.zeros((lots, size, size))
    choice = np.zeros((lots, size, size), np.int32)
    for span in range(2, size):
        low = np.arange(size - span)
        high = low + span
        between = low[:, None] + np.arange(1, span)
        origin = loops[:, low][:, :, None]
        cross = np.cross(loops[:, between] - origin, (loops[:, high] - loops[:, low])[:, :, None])
        area = np.sqrt(np.einsum("bijk,bijk->bij", cross, cross))
        facing = np.einsum("bijk,bk->bij", cross, normal)
        cost = best[:, low[:, None], between] + best[:, between, high[:, None]]
        cost += area + _OVERLAP * np.maximum(-facing, 0)
        cost += _LENGTH * (squared[:, low[:, None], between] + squared[:, between, high[:, None]])
        chosen = cost.argmin(axis=2)
        least = np.take_along_axis(cost, chosen[:, :, None], axis=2)[:, :, 0]
        if span < size - 1:
            least[forbidden[:, low, high]] = np.inf
        best[:, low, high] = least
        choice[:, low, high] = low + 1 + chosen
    return _triangles(choice), np.isfinite(best[:, 0, size - 1])


def _triangles(choice: NDArray[np.int32]) -> Index:
    """The triangles that the table of best middle points stands for, all loops level by level."""
    lots, size = choice.shape[:2]
    lot, low = np.arange(lots), np.zeros(lots, np.intp)
    high = np.full(lots, size - 1)
    owners, found = [], []
    while len(lot):
        middle = choice[lot, low, high].astype(np.intp)
        owners.append(lot)
        found.append(np.stack([low, middle, high], axis=1))
        left, right = middle - low > 1, high - middle > 1
        lot, low, high = (
            np.concatenate([lot[left], lot[right]]),
            np.concatenate([low[left], middle[right]]),
            np.concatenate([middle[left], high[right]]),
        )
    order = np.argsort(np.concatenate(owners), kind="stable")
    return np.concatenate(found)[order].reshape(lots, size - 2, 3)
