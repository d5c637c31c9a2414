"""Which shells lie inside which: asked only of shells whose boxes do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.repair.surface import Surface
from meshhub.scene import Float64

OUTER_SHELLS = 2000
"""At most so many shells are taken for containers, the largest; bounds the work on a cloud of shells."""

_WITNESSES = 3
_BLOCK = 4_000_000


def depths(surface: Surface, whole: NDArray[np.bool_], volume: Float64) -> NDArray[np.int64]:
    """How many closed shells contain each shell.

    A shell is inside another of larger volume when its box is, and three of its points are, by the parity
    of the faces that a ray meets. The rays go in a direction that no axis or diagonal of a model has.
    """
    points, faces, count, label = surface.points, surface.faces, surface.shells, surface.shell
    depth = np.zeros(count, np.int64)
    if count < 2:
        return depth
    order = np.argsort(label, kind="stable")
    begin = np.concatenate([[0], np.cumsum(np.bincount(label, minlength=count))])
    corner = points[faces[order]]
    low = np.minimum.reduceat(corner.min(axis=1), begin[:-1])
    high = np.maximum.reduceat(corner.max(axis=1), begin[:-1])
    candidates = np.flatnonzero(whole & (volume > 0))
    candidates = candidates[np.argsort(-volume[candidates], kind="stable")][:OUTER_SHELLS]
    for outer in np.sort(candidates):
        within = (low > low[outer]).all(axis=1) & (high < high[outer]).all(axis=1) & (volume < volume[outer])
        inner = np.flatnonzero(within)
        if len(inner):
            length = begin[inner + 1] - begin[inner]
            witness = begin[inner][:, None] + (np.arange(_WITNESSES) * (length[:, None] - 1)) // (_WITNESSES - 1)
            asked = points[faces[order[witness.ravel()], 0]]
            inside = contains(corner[begin[outer] : begin[outer + 1]], asked).reshape(-1, _WITNESSES)
            depth[inner[inside.all(axis=1)]] += 1
    return depth


def contains(triangles: Float64, asked: Float64) -> NDArray[np.bool_]:
    """Whether points are inside a closed surface: (t, 3, 3) corners, (q, 3) points.

    The parity of the faces above each point, after a turn of everything about odd angles.
    """
    turn, _ = np.linalg.qr(np.array([[0.83, 0.31, 0.47], [-0.39, 0.91, 0.13], [-0.41, -0.29, 0.87]]))
    triangles, asked = triangles @ turn, asked @ turn
    low, high = triangles.min(axis=1), triangles.max(axis=1)
    inside = np.zeros(len(asked), np.bool_)
    step = max(1, _BLOCK // max(1, len(triangles)))
    for start in range(0, len(asked), step):
        point = asked[start : start + step]
        x, y, z = (point[:, None, axis] for axis in range(3))
        hit = (low[:, 0] <= x) & (x < high[:, 0]) & (low[:, 1] <= y) & (y < high[:, 1]) & (high[:, 2] > z)
        query, face = np.nonzero(hit)
        above = _above(triangles[face], point[query])
        inside[start : start + step] = np.bincount(query[above], minlength=len(point)) % 2 == 1
    return inside


def _above(triangles: Float64, point: Float64) -> NDArray[np.bool_]:
    """Whether the ray from each point along +Z meets its triangle."""
    flat = triangles[:, :, :2] - point[:, None, :2]
    after = flat[:, [1, 2, 0]]
    weight = flat[:, :, 0] * after[:, :, 1] - flat[:, :, 1] * after[:, :, 0]  # of the edge's opposite corner
    total = weight.sum(axis=1)
    met = ((weight >= 0).all(axis=1) | (weight <= 0).all(axis=1)) & (total != 0)
    height = (weight * triangles[:, [2, 0, 1], 2]).sum(axis=1)
    above: NDArray[np.bool_] = met & (height / np.where(total == 0, 1, total) > point[:, 2])
    return above
