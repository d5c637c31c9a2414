"""Which shells lie inside which: asked only of shells whose boxes do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.repair.surface import Surface
from meshhub.scene import Float64

OUTER_SHELLS = 2000
"""At most so many shells are taken for containers, the largest; bounds the work on a cloud of shells."""

MOST_TESTS = 300_000_000
"""And so many points are held against faces; what is not asked by then counts as not nested."""

_WITNESSES = 12
_BLOCK = 4_000_000

# rays go in a direction, and boxes lie along axes, that no edge of a model is likely to have
_TURN: Float64 = np.linalg.qr(np.array([[0.83, 0.31, 0.47], [-0.39, 0.91, 0.13], [-0.41, -0.29, 0.87]]))[0]


def depths(surface: Surface, whole: NDArray[np.bool_], volume: Float64) -> NDArray[np.int64]:
    """How many closed shells contain each shell.

    whole, volume: (shells,) which are closed, and how large they are. A shell is inside another of larger
    volume when its box is, and a dozen of its points are, by the parity of the faces that a ray meets.
    """
    count, label = surface.shells, surface.shell
    depth = np.zeros(count, np.int64)
    if count < 2:
        return depth
    order = np.argsort(label, kind="stable")
    begin = np.concatenate([[0], np.cumsum(np.bincount(label, minlength=count))])
    corner = (surface.points @ _TURN)[surface.faces[order]]
    face_low = np.minimum(np.minimum(corner[:, 0], corner[:, 1]), corner[:, 2])
    face_high = np.maximum(np.maximum(corner[:, 0], corner[:, 1]), corner[:, 2])
    low, high = np.minimum.reduceat(face_low, begin[:-1]), np.maximum.reduceat(face_high, begin[:-1])
    by_x = np.argsort(low[:, 0], kind="stable")
    sorted_x = low[by_x, 0]
    containers = np.flatnonzero(whole & (volume > 0))
    containers = containers[np.argsort(-volume[containers], kind="stable")][:OUTER_SHELLS]
    tests = 0
    for outer in containers:
        near = by_x[np.searchsorted(sorted_x, low[outer, 0], "right") : np.searchsorted(sorted_x, high[outer, 0])]
        for axis in range(3):
            near = near[(low[near, axis] > low[outer, axis]) & (high[near, axis] < high[outer, axis])]
        near = near[volume[near] < volume[outer]]
        faces = slice(begin[outer], begin[outer + 1])
        tests += len(near) * (faces.stop - faces.start)
        if tests > MOST_TESTS:
            break
        for witness in range(_WITNESSES):
            if len(near) == 0:
                break
            last = begin[near + 1] - begin[near] - 1
            asked = corner[begin[near] + last * witness // (_WITNESSES - 1), 0]
            near = near[_inside(corner[faces], face_low[faces], face_high[faces], asked)]
        depth[near] += 1
    return depth


def _inside(corner: Float64, low: Float64, high: Float64, asked: Float64) -> NDArray[np.bool_]:
    """Whether points (q, 3) are inside a closed surface of faces (f, 3, 3) with these boxes: parity along +Z."""
    inside = np.zeros(len(asked), np.bool_)
    step = max(1, _BLOCK // len(corner))
    for start in range(0, len(asked), step):
        point = asked[start : start + step]
        x, y, z = (point[:, None, axis] for axis in range(3))
        hit = (low[:, 0] <= x) & (x < high[:, 0]) & (low[:, 1] <= y) & (y < high[:, 1]) & (high[:, 2] > z)
        query, face = np.nonzero(hit)
        above = _above(corner[face], point[query])
        inside[start : start + step] = np.bincount(query[above], minlength=len(point)) % 2 == 1
    return inside


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
