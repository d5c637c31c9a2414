"""Which points lie inside a closed surface, by how many of its faces a ray meets, and which shells inside others."""

from __future__ import annotations

from typing import Any

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


def hosts_of(corner: Float64, shell: NDArray[Any], closed: NDArray[np.bool_], volume: Float64) -> NDArray[np.intp]:
    """Find the cavities: the closed inward shells inside closed outward ones.

    Args:
        corner: (f, 3, 3) corners of the faces.
        shell: (f,) shell of each face, below s.
        closed: (s,) whether a shell is closed.
        volume: (s,) what it encloses; negative for an inward shell.
    Returns:
        (s,) for each inward shell the smallest outward one around it, -1 for all others.
    """
    hosts = np.full(len(volume), -1, np.intp)
    free = np.flatnonzero(closed & (volume < 0))
    outer = np.flatnonzero(closed & (volume > 0))
    if len(free) == 0 or len(outer) == 0:
        return hosts
    order = np.argsort(shell, kind="stable")
    begin = np.searchsorted(shell[order], np.arange(len(volume) + 1))
    corner = corner[order] @ TURN
    face_low, face_high = corner.min(axis=1), corner.max(axis=1)
    low = np.minimum.reduceat(face_low, begin[:-1])
    high = np.maximum.reduceat(face_high, begin[:-1])
    # only those that begin within a host's extent along X can be in it
    free = free[np.argsort(low[free, 0], kind="stable")]
    left = low[free, 0]
    begins, ends = np.searchsorted(left, low[:, 0]), np.searchsorted(left, high[:, 0], side="right")
    for host in outer[np.argsort(volume[outer], kind="stable")].tolist():
        near = free[begins[host] : ends[host]]
        near = near[(hosts[near] < 0) & (-volume[near] < volume[host])]
        near = near[(low[near] >= low[host]).all(axis=1) & (high[near] <= high[host]).all(axis=1)]
        if len(near) == 0:
            continue
        faces = slice(begin[host], begin[host + 1])
        probes = corner[begin[near]].mean(axis=1)
        hosts[near[inside(corner[faces], face_low[faces], face_high[faces], probes)]] = host
    return hosts


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
