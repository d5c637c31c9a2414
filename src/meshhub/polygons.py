"""Polygons into triangles, many at once: what every format with n-gons needs.

Triangles and quads, and polygons that a fan covers, are cut in whole arrays. The concave rest is
clipped ear by ear (Meisters, "Polygons have ears", 1975): small polygons in lockstep, all of one
size together; large ones, and those that touch themselves, one by one by `manifold3d.triangulate`.
A polygon of n corners always gives n - 2 triangles that use each of its sides once, so a closed
surface stays closed and no area is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.errors import ModelTooComplex
from meshhub.scene import Float64, Int32

Index = NDArray[np.intp]
Integers = NDArray[np.integer[Any]]

LARGEST = 20_000
"""No polygon of a model has more corners, and cutting one takes longer than anybody waits."""

_LOCKSTEP = 12
"""Up to so many corners polygons are clipped in lockstep; above it one by one is faster."""

_TESTS = 1 << 21
"""How many point-in-triangle tests are held in memory at a time."""

_FANS = 8
"""How many corners of a polygon are tried as the middle of a fan."""

_FLAT = 1e-12
"""A triangle with less than this share of its polygon's area counts as flat."""


def triangulate(vertices: Float64, counts: Integers, indices: Integers) -> tuple[Int32, Int32]:
    """Cut polygons into triangles.

    vertices: (n, 3) positions
    counts:   (p,) corners of each polygon; one with fewer than three gives no triangle
    indices:  (counts.sum(),) the polygons' corners, one after the other, as rows of `vertices`

    Returns `faces` (m, 3) and `polygon_of_face` (m,), in the order of the polygons and with their winding.
    Raises ValueError when an index is out of range, or the counts do not add up, ModelTooComplex
    for a polygon of more than `LARGEST` corners.
    """
    corners, polygon = triangulate_corners(vertices, counts, indices)
    return np.asarray(indices)[corners].astype(np.int32, copy=False), polygon


def triangulate_corners(vertices: Float64, counts: Integers, indices: Integers) -> tuple[Index, Int32]:
    """The same, with triangles over positions in `indices`, for formats whose corners carry more than a vertex.

    Returns `corners` (m, 3) and `polygon_of_face` (m,).
    Raises ValueError when an index is out of range, or the counts do not add up, ModelTooComplex
    for a polygon of more than `LARGEST` corners.
    """
    sizes: Index = np.asarray(counts).astype(np.intp, copy=False)
    indices = np.asarray(indices)
    if len(sizes) and int(sizes.min()) < 0:
        raise ValueError("a polygon has a negative number of corners")
    if int(sizes.sum()) != len(indices):
        raise ValueError(f"the polygons have {int(sizes.sum())} corners, and there are {len(indices)} indices")
    if len(indices) and (int(indices.min()) < 0 or int(indices.max()) >= len(vertices)):
        raise ValueError(f"a polygon names a vertex outside 0 … {len(vertices) - 1}")
    if len(sizes) == 0 or int(sizes.max()) < 3:
        return np.empty((0, 3), np.intp), np.empty(0, np.int32)
    if int(sizes.max()) > LARGEST:
        raise ModelTooComplex(
            f"a face has {int(sizes.max())} corners, and {LARGEST} is the most; cut it into triangles before the export"
        )
    if int(sizes.min()) == int(sizes.max()) == 3:
        return np.arange(len(indices)).reshape(-1, 3), np.arange(len(sizes), dtype=np.int32)

    pieces = np.maximum(sizes - 2, 0)
    first_corner = np.cumsum(sizes) - sizes
    first_face = np.cumsum(pieces) - pieces
    made = np.empty((int(pieces.sum()), 3), np.intp)
    for size, polygons in _by_size(sizes):
        start = first_corner[polygons][:, None]
        rows = first_face[polygons][:, None] + np.arange(size - 2)
        if size == 3:
            made[rows[:, 0]] = start + np.arange(3)
            continue
        corners = start + np.arange(size)
        with np.errstate(all="ignore"):  # what is not finite is the host's to refuse
            points = vertices[indices[corners]]
            local = _quads(points) if size == 4 else _polygons(points)
        made[rows] = start[:, :, None] + local
    return made, np.repeat(np.arange(len(sizes), dtype=np.int32), pieces)


def _by_size(counts: Index) -> Iterator[tuple[int, Index]]:
    """The polygons of each size that gives triangles: the loop is at most as long as √(2 · corners)."""
    order = np.argsort(counts, kind="stable")
    sizes, starts = np.unique(counts[order], return_index=True)
    for size, polygons in zip(sizes.tolist(), np.split(order, starts[1:]), strict=True):
        if size >= 3:
            yield size, polygons


def _newell(points: Float64) -> Float64:
    """(k, 3) normals of k polygons (k, n, 3), of length twice the area: the sum over a fan."""
    spokes = points[:, 1:] - points[:, :1]
    total: Float64 = np.cross(spokes[:, :-1], spokes[:, 1:]).sum(axis=1)
    return total


def _quads(points: Float64) -> Index:
    """(k, 2, 3) local corners of k quads; the second diagonal where the first runs outside."""
    local = np.empty((len(points), 2, 3), np.intp)
    local[:] = [[0, 1, 2], [0, 2, 3]]
    a, b, c, d = (points[:, corner] for corner in range(4))
    normal = np.cross(c - a, d - b)
    square = np.einsum("ij,ij->i", normal, normal)

    def smaller(spoke: Float64, other: Float64, chosen: slice | Index) -> Float64:
        """The smaller of the two triangles' areas as the normal sees them; together they are the quad's."""
        one = np.einsum("ij,ij->i", np.cross(spoke, other), normal[chosen])
        least: Float64 = np.minimum(one, square[chosen] - one)
        return least

    first = smaller(b - a, c - a, slice(None))
    left = np.flatnonzero(first <= _FLAT * square)
    second = smaller(b[left] - a[left], d[left] - a[left], left)
    local[left[second > first[left]]] = [[0, 1, 3], [1, 2, 3]]
    return local


def _polygons(points: Float64) -> Index:
    """(k, n - 2, 3) local corners of k polygons (k, n, 3), n > 4."""
    count, size = points.shape[:2]
    normal = _newell(points)
    square = np.einsum("ij,ij->i", normal, normal)
    ring = np.arange(size)
    fan = np.stack([np.zeros(size - 2, np.intp), ring[1:-1], ring[2:]], axis=1)
    local = np.broadcast_to(fan, (count, size - 2, 3)).copy()
    # without a plane there is no inside to respect: the fan is as good as any
    left = np.flatnonzero(np.isfinite(square) & (square > 0))
    for turn in range(min(size, _FANS)):
        if len(left) == 0:
            return local
        turned = np.roll(points[left], -turn, axis=1)
        spokes = turned[:, 1:] - turned[:, :1]
        seen = np.einsum("kij,kj->ki", np.cross(spokes[:, :-1], spokes[:, 1:]), normal[left])
        covered = (seen > _FLAT * square[left, None]).all(axis=1)
        local[left[covered]] = (fan + turn) % size
        left = left[~covered]
    if len(left):
        local[left] = _concave(_flattened(points[left], normal[left]))
    return local


def _flattened(points: Float64, normal: Float64) -> Float64:
    """(k, n, 2): the polygons seen along their normals' largest axis, counter-clockwise."""
    points = points - points[:, :1]
    axis = np.abs(normal).argmax(axis=1)
    behind = np.take_along_axis(normal, axis[:, None], axis=1)[:, 0] < 0
    across, up = (axis + 1) % 3, (axis + 2) % 3
    plane = np.stack([np.where(behind, up, across), np.where(behind, across, up)], axis=1)
    return np.take_along_axis(points, plane[:, None, :], axis=2)


def _concave(flat: Float64) -> Index:
    """(k, n - 2, 3) local corners of k flat polygons (k, n, 2), counter-clockwise."""
    count, size = flat.shape[:2]
    local = np.empty((count, size - 2, 3), np.intp)
    if size <= _LOCKSTEP:
        same = (flat[:, :, None] == flat[:, None, :]).all(axis=3)
        touching = same.sum(axis=(1, 2)) > size
        simple = np.flatnonzero(~touching)
        step = max(1, _TESTS // (size * size))
        for start in range(0, len(simple), step):
            chunk = simple[start : start + step]
            local[chunk] = _clipped(flat[chunk])
        singly = np.flatnonzero(touching)
    else:
        singly = np.arange(count)
    for index in singly.tolist():  # few: large, or touching themselves
        local[index] = _one(flat[index])
    return local


def _one(flat: Float64) -> Index:
    """(n - 2, 3) local corners of one flat polygon (n, 2)."""
    import manifold3d  # few files need it, and every reader would wait for it

    size = len(flat)
    made = np.asarray(manifold3d.triangulate([flat], allow_convex=True), np.intp).reshape(-1, 3)
    if len(made) == size - 2:
        return made
    ring = np.arange(size)
    return np.stack([np.zeros(size - 2, np.intp), ring[1:-1], ring[2:]], axis=1)


def _turn(a: Float64, b: Float64, c: Float64) -> Float64:
    """Twice the signed area of flat triangles."""
    area: Float64 = (b[..., 0] - a[..., 0]) * (c[..., 1] - a[..., 1]) - (b[..., 1] - a[..., 1]) * (
        c[..., 0] - a[..., 0]
    )
    return area


def _clipped(flat: Float64) -> Index:
    """Ear clipping of k flat polygons (k, n, 2) in lockstep: each round cuts the best-shaped ear of every one."""
    count, size = flat.shape[:2]
    rows = np.arange(count)
    alive = np.broadcast_to(np.arange(size), (count, size))
    local = np.empty((count, size - 2, 3), np.intp)
    for cut in range(size - 3):
        points = np.take_along_axis(flat, alive[:, :, None], axis=1)
        before, after = np.roll(points, 1, axis=1), np.roll(points, -1, axis=1)
        turn = _turn(before, points, after)
        longest = np.maximum.reduce(
            [((q - p) ** 2).sum(axis=2) for p, q in ((before, points), (points, after), (after, before))]
        )
        # how even the ear is; a reflex corner is worse than a flat one, a blocked ear worse than both
        score = np.where(longest > 0, turn / np.where(longest > 0, longest, 1), 0)
        score = np.where((turn > 0) & _blocked(before, points, after), -4, score)
        best = score.argmax(axis=1)
        width = size - cut
        for column, at in enumerate((best - 1, best, best + 1)):
            local[:, cut, column] = alive[rows, at % width]
        keep = np.arange(width) != best[:, None]
        alive = alive[keep].reshape(count, width - 1)
    local[:, size - 3] = alive
    return local


def _blocked(before: Float64, points: Float64, after: Float64) -> NDArray[np.bool_]:
    """(k, m): whether another corner of the same polygon lies in or on the triangle at each corner."""
    size = points.shape[1]
    a, b, c = before[:, :, None], points[:, :, None], after[:, :, None]
    other = points[:, None]
    inside = (_turn(a, b, other) >= 0) & (_turn(b, c, other) >= 0) & (_turn(c, a, other) >= 0)
    own = (np.arange(size)[:, None] - np.arange(size) + 1) % size <= 2
    blocked: NDArray[np.bool_] = (inside & ~own).any(axis=2)
    return blocked
