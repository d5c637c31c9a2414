"""Which points lie inside a closed surface, by how many of its faces a ray meets."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from meshhub.scene import Float64

TURN: Float64 = np.linalg.qr(np.array([[0.83, 0.31, 0.47], [-0.39, 0.91, 0.13], [-0.41, -0.29, 0.87]]))[0]
"""Turn points by it (`points @ TURN`) first: then rays go in a direction, and boxes lie along axes, that no edge of a
model is likely to have."""

_BLOCK = 4_000_000


def inside(corner: Float64, low: Float64, high: Float64, asked: Float64) -> NDArray[np.bool_]:
    """(q,) whether points (q, 3) are inside a closed surface, by parity along +Z.

    corner:    (f, 3, 3) its faces
    low, high: (f, 3) the boxes of the faces
    """
    found = np.zeros(len(asked), np.bool_)
    step = max(1, _BLOCK // len(corner))
    for start in range(0, len(asked), step):
        point = asked[start : start + step]
        x, y, z = (point[:, None, axis] for axis in range(3))
        hit = (low[:, 0] <= x) & (x < high[:, 0]) & (low[:, 1] <= y) & (y < high[:, 1]) & (high[:, 2] > z)
        query, face = np.nonzero(hit)
        above = _above(corner[face], point[query])
        found[start : start + step] = np.bincount(query[above], minlength=len(point)) % 2 == 1
    return found


def _above(corner: Float64, point: Float64) -> NDArray[np.bool_]:
    """Whether the ray from each point along +Z meets its face."""
    x, y = corner[:, :, 0] - point[:, :1], corner[:, :, 1] - point[:, 1:2]
    # each is the weight of the corner opposite to an edge
    c = x[:, 0] * y[:, 1] - y[:, 0] * x[:, 1]
    a = x[:, 1] * y[:, 2] - y[:, 1] * x[:, 2]
    b = x[:, 2] * y[:, 0] - y[:, 2] * x[:, 0]
    total = a + b + c
    met = (((a >= 0) & (b >= 0) & (c >= 0)) | ((a <= 0) & (b <= 0) & (c <= 0))) & (total != 0)
    height = a * corner[:, 0, 2] + b * corner[:, 1, 2] + c * corner[:, 2, 2]
    above: NDArray[np.bool_] = met & (height / np.where(total == 0, 1, total) > point[:, 2])
    return above
