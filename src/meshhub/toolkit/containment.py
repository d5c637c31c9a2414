"""Containment of points and shells in closed surfaces, by the parity of the faces that a ray crosses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.geometry import IntIndex

TURN: Float64 = np.linalg.qr(np.array([[0.83, 0.31, 0.47], [-0.39, 0.91, 0.13], [-0.41, -0.29, 0.87]]))[0]
"""(3, 3) orthogonal matrix. Apply it (`points @ TURN`) before `inside`, so that rays and boxes are not parallel to the
edges of a model."""

_MAX_TESTS = 4_000_000
"""Point-face pairs per round; bounds the memory."""


def inside(corner: Float64, low: Float64, high: Float64, points: Float64) -> NDArray[np.bool_]:
    """Return which points are inside a closed surface, by the parity of crossings along +Z.

    Args:
        corner: (f, 3, 3) corners of the faces of the surface; any length unit, in the frame of `TURN`.
        low: (f, 3) lowest corner of the bounding box of each face.
        high: (f, 3) highest corner of the bounding box of each face.
        points: (q, 3) query points, in the same frame.
    Returns:
        (q,) mask; meaningless for points on the surface.
    Source:
        Shimrat, "Algorithm 112: Position of point relative to polygon", Communications of the ACM 5 (8), 1962; here
        with faces instead of edges.
    """
    result = np.zeros(len(points), np.bool_)
    step = max(1, _MAX_TESTS // len(corner))
    for start in range(0, len(points), step):
        point = points[start : start + step]
        x, y, z = (point[:, None, axis] for axis in range(3))
        hit = (low[:, 0] <= x) & (x < high[:, 0]) & (low[:, 1] <= y) & (y < high[:, 1]) & (high[:, 2] > z)
        query, face = np.nonzero(hit)
        above = _is_crossed(corner[face], point[query])
        result[start : start + step] = np.bincount(query[above], minlength=len(point)) % 2 == 1
    return result


def _is_crossed(corner: Float64, point: Float64) -> NDArray[np.bool_]:
    """Return whether the ray from each point along +Z crosses the face in the same row."""
    x, y = corner[:, :, 0] - point[:, :1], corner[:, :, 1] - point[:, 1:2]
    # barycentric weights, times twice the area of the projected face
    c = x[:, 0] * y[:, 1] - y[:, 0] * x[:, 1]
    a = x[:, 1] * y[:, 2] - y[:, 1] * x[:, 2]
    b = x[:, 2] * y[:, 0] - y[:, 2] * x[:, 0]
    total = a + b + c
    met = (((a >= 0) & (b >= 0) & (c >= 0)) | ((a <= 0) & (b <= 0) & (c <= 0))) & (total != 0)
    height = a * corner[:, 0, 2] + b * corner[:, 1, 2] + c * corner[:, 2, 2]
    above: NDArray[np.bool_] = met & (height / np.where(total == 0, 1, total) > point[:, 2])
    return above


@dataclass(frozen=True, eq=False)
class ShellFaces:
    """Faces of a mesh grouped by shell, with bounding boxes, in the frame of `TURN`.

    corner:    (m, 3, 3) corners of the faces, shell by shell
    begin:     (s + 1,) position in `corner` where each shell begins
    face_low, face_high: (m, 3) bounding boxes of the faces
    low, high: (s, 3) bounding boxes of the shells
    """

    corner: Float64
    begin: IntIndex
    face_low: Float64
    face_high: Float64
    low: Float64
    high: Float64

    def contains(self, outer: int, points: Float64) -> NDArray[np.bool_]:
        """Return which of the points (q, 3), in the frame of `TURN`, are inside the closed shell `outer`."""
        faces = slice(self.begin[outer], self.begin[outer + 1])
        return inside(self.corner[faces], self.face_low[faces], self.face_high[faces], points)


def group_by_shell(points: Float64, faces: Int32, shell: Int32, count: int) -> ShellFaces:
    """Group the faces of a mesh by shell, so that `cavities` can find which shells contain which.

    Args:
        points: (n, 3) positions, any length unit.
        faces: (m, 3) indices into `points`.
        shell: (m,) shell of each face, 0…count-1.
        count: Number of shells; each has at least one face.
    """
    order = np.argsort(shell, kind="stable")
    begin = np.concatenate([[0], np.cumsum(np.bincount(shell, minlength=count))])
    corner = (points @ TURN)[faces[order]]
    face_low = np.minimum(np.minimum(corner[:, 0], corner[:, 1]), corner[:, 2])
    face_high = np.maximum(np.maximum(corner[:, 0], corner[:, 1]), corner[:, 2])
    low, high = np.minimum.reduceat(face_low, begin[:-1]), np.maximum.reduceat(face_high, begin[:-1])
    return ShellFaces(corner, begin, face_low, face_high, low, high)


def hosts_of(corner: Float64, shell: NDArray[Any], closed: NDArray[np.bool_], volume: Float64) -> NDArray[np.intp]:
    """Find the cavities: the closed inward shells inside closed outward ones.

    Args:
        corner: (m, 3, 3) corners of the faces, any length unit.
        shell: (m,) shell of each face, 0…s-1; each shell has at least one face.
        closed: (s,) whether a shell is closed.
        volume: (s,) signed volume of each shell; negative for an inward shell.
    Returns:
        (s,) for each cavity the smallest outward shell around it; -1 for all other shells.
    """
    hosts = np.full(len(volume), -1, np.intp)
    inward = np.flatnonzero(closed & (volume < 0))
    outward = np.flatnonzero(closed & (volume > 0))
    if len(inward) == 0 or len(outward) == 0:
        return hosts
    faces = np.arange(3 * len(corner), dtype=np.int32).reshape(-1, 3)
    shells = group_by_shell(corner.reshape(-1, 3), faces, shell, len(volume))
    low, high = shells.low, shells.high
    # only shells whose lower end along X lies within an outward shell can be inside it
    inward = inward[np.argsort(low[inward, 0], kind="stable")]
    left = low[inward, 0]
    begins, ends = np.searchsorted(left, low[:, 0]), np.searchsorted(left, high[:, 0], side="right")
    for host in outward[np.argsort(volume[outward], kind="stable")].tolist():
        near = inward[begins[host] : ends[host]]
        near = near[(hosts[near] < 0) & (-volume[near] < volume[host])]
        near = near[(low[near] >= low[host]).all(axis=1) & (high[near] <= high[host]).all(axis=1)]
        if len(near):
            probes = shells.corner[shells.begin[near]].mean(axis=1)
            hosts[near[shells.contains(host, probes)]] = host
    return hosts
