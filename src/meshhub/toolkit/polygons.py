"""Triangulation of many polygons at once, for formats with n-gons.

Triangles, quads, and polygons that a fan covers are triangulated in whole arrays. Concave polygons are clipped ear by
ear (Meisters, "Polygons have ears", 1975). Small ones are clipped in lockstep, grouped by size. Large polygons and
those that touch themselves are triangulated one by one by `manifold3d.triangulate`. A polygon of n corners always
yields n - 2 triangles that use each of its sides once, so a closed surface stays closed and keeps its area.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.errors import ModelTooComplex
from meshhub.model.notes import note
from meshhub.model.scene import Float64, Int32

Index = NDArray[np.intp]
Integers = NDArray[np.integer[Any]]

MAX_CORNERS = 20_000
"""Maximum corners of a polygon; real models stay far below, and the triangulation takes more than linear time."""

_POLYGONS_AT_ONCE = 1 << 13
"""Polygons whose arrays stay in the cache of a processor; all at once take twice as long."""

_MAX_LOCKSTEP_CORNERS = 12
"""Corners up to which concave polygons are clipped in lockstep; for larger ones, one by one is faster."""

_MAX_TESTS = 1 << 21
"""Point-in-triangle tests at a time; bounds the memory."""

_MAX_FANS = 8
"""Maximum corners of a polygon tried as the center of a fan; bounds the work before ear clipping."""

_FLAT_RATIO = 1e-12
"""Share of the polygon's area; a smaller triangle counts as flat, because its sign is rounding noise."""


def triangulate(vertices: Float64, counts: Integers, indices: Integers) -> tuple[Int32, Int32]:
    """Triangulate polygons.

    Args:
        vertices: (n, 3) positions, any length unit.
        counts: (p,) corners of each polygon; a polygon of fewer than three corners yields no triangle.
        indices: (counts.sum(),) corners of all polygons, as rows of `vertices`.
    Returns:
        `faces`, (m, 3) vertex indices with the winding of the polygons, and `polygon_of_face`, (m,) ascending.
    Raises:
        ValueError: An index is out of range, or the counts do not add up.
        ModelTooComplex: A polygon has more than MAX_CORNERS corners.
    """
    corners, polygon = triangulate_corners(vertices, counts, indices)
    return np.asarray(indices)[corners].astype(np.int32, copy=False), polygon


def note_incomplete_faces(counts: Integers) -> None:
    """Add a note if some of the polygons, with (p,) corners, have fewer than three and therefore yield no triangle."""
    short_count = int((counts < 3).sum())
    if short_count:
        note(
            "incomplete_faces",
            f"skipped {short_count} of {len(counts)} faces: they have fewer than three corners",
            count=short_count,
            total=len(counts),
        )


def triangulate_corners(vertices: Float64, counts: Integers, indices: Integers) -> tuple[Index, Int32]:
    """Triangulate polygons over positions in `indices`, for formats whose corners have more than a vertex index.

    Args:
        vertices: (n, 3) positions, any length unit.
        counts: (p,) corners of each polygon; a polygon of fewer than three corners yields no triangle.
        indices: (counts.sum(),) corners of all polygons, as rows of `vertices`.
    Returns:
        `corners`, (m, 3) positions in `indices`, and `polygon_of_face`, (m,) ascending.
    Raises:
        ValueError: An index is out of range, or the counts do not add up.
        ModelTooComplex: A polygon has more than MAX_CORNERS corners.
    """
    sizes: Index = np.asarray(counts).astype(np.intp, copy=False)
    indices = np.asarray(indices)
    if len(sizes) and int(sizes.min()) < 0:
        raise ValueError("a polygon has a negative number of corners")
    if int(sizes.sum()) != len(indices):
        raise ValueError(f"the polygons have {int(sizes.sum())} corners, but there are {len(indices)} indices")
    if len(indices) and (int(indices.min()) < 0 or int(indices.max()) >= len(vertices)):
        raise ValueError(f"a polygon has a vertex index outside 0…{len(vertices) - 1}")
    if len(sizes) == 0 or int(sizes.max()) < 3:
        return np.empty((0, 3), np.intp), np.empty(0, np.int32)
    if int(sizes.max()) > MAX_CORNERS:
        raise ModelTooComplex(
            f"a face has {int(sizes.max())} corners, more than {MAX_CORNERS}; triangulate the model before the export"
        )
    size = int(sizes[0])
    if int(sizes.min()) == int(sizes.max()):
        # most files; what follows takes twice as long
        start = np.arange(len(sizes))[:, None, None] * size
        triangles = (start + _triangulate_same_size(vertices, indices.reshape(-1, size))).reshape(-1, 3)
        return triangles, np.repeat(np.arange(len(sizes), dtype=np.int32), size - 2)

    triangle_counts = np.maximum(sizes - 2, 0)
    first_corner = np.cumsum(sizes) - sizes
    first_face = np.cumsum(triangle_counts) - triangle_counts
    triangles = np.empty((int(triangle_counts.sum()), 3), np.intp)
    for size, polygons in _group_by_size(sizes):
        start = first_corner[polygons][:, None]
        rows = first_face[polygons][:, None] + np.arange(size - 2)
        local = _triangulate_same_size(vertices, indices[start + np.arange(size)])
        triangles[rows] = start[:, :, None] + local
    return triangles, np.repeat(np.arange(len(sizes), dtype=np.int32), triangle_counts)


def _triangulate_same_size(vertices: Float64, polygons: Integers) -> Index:
    """Return (k, n - 2, 3) local corners of polygons (k, n), n > 2, given as rows of `vertices`."""
    if polygons.shape[1] == 3:
        return np.broadcast_to(np.arange(3), (len(polygons), 1, 3))
    triangulate = _triangulate_quads if polygons.shape[1] == 4 else _triangulate_larger
    local = np.empty((len(polygons), polygons.shape[1] - 2, 3), np.intp)
    with np.errstate(all="ignore"):  # the host rejects non-finite vertices later
        for start in range(0, len(polygons), _POLYGONS_AT_ONCE):
            rows = slice(start, start + _POLYGONS_AT_ONCE)
            local[rows] = triangulate(vertices[polygons[rows]])
    return local


def _group_by_size(counts: Index) -> Iterator[tuple[int, Index]]:
    """Yield each size of three or more and its polygons; there are at most √(2 · corners) different sizes."""
    order = np.argsort(counts, kind="stable")
    sizes, starts = np.unique(counts[order], return_index=True)
    for size, polygons in zip(sizes.tolist(), np.split(order, starts[1:]), strict=True):
        if size >= 3:
            yield size, polygons


def _polygon_normals(points: Float64) -> Float64:
    """Return (k, 3) normals of (k, n, 3) polygons; their length is twice the area."""
    spokes = points[:, 1:] - points[:, :1]
    total: Float64 = np.cross(spokes[:, :-1], spokes[:, 1:]).sum(axis=1)
    return total


def _triangulate_quads(points: Float64) -> Index:
    """Split (k, 4, 3) quads along their first diagonal, or along the second one where the first runs outside.

    Returns:
        (k, 2, 3) local corners.
    """
    local = np.empty((len(points), 2, 3), np.intp)
    local[:] = [[0, 1, 2], [0, 2, 3]]
    # (3, k) columns: numpy computes on them several times as fast as on rows of three
    a, b, c, d = np.ascontiguousarray(points.transpose(1, 2, 0))
    normal = _cross(c - a, d - b)
    square = (normal * normal).sum(axis=0)

    def min_triangle_area(side: Float64, other: Float64, columns: slice | Index) -> Float64:
        """Return the smaller projected area of the two triangles; their sum is the area of the quad."""
        area = (_cross(side, other) * normal[:, columns]).sum(axis=0)
        smaller: Float64 = np.minimum(area, square[columns] - area)
        return smaller

    first = min_triangle_area(b - a, c - a, slice(None))
    remaining = np.flatnonzero(first <= _FLAT_RATIO * square)
    start = a[:, remaining]
    second = min_triangle_area(b[:, remaining] - start, d[:, remaining] - start, remaining)
    local[remaining[second > first[remaining]]] = [[0, 1, 3], [1, 2, 3]]
    return local


def _cross(first: Float64, second: Float64) -> Float64:
    """Return the cross products of (3, k) columns."""
    (a, b, c), (d, e, f) = first, second
    return np.stack([b * f - c * e, c * d - a * f, a * e - b * d])


def _triangulate_larger(points: Float64) -> Index:
    """Return (k, n - 2, 3) local corners of polygons (k, n, 3), n > 4."""
    count, size = points.shape[:2]
    normal = _polygon_normals(points)
    square = np.einsum("ij,ij->i", normal, normal)
    ring = np.arange(size)
    fan = np.stack([np.zeros(size - 2, np.intp), ring[1:-1], ring[2:]], axis=1)
    local = np.broadcast_to(fan, (count, size - 2, 3)).copy()
    # a polygon without a plane has no inside, so any fan is valid
    remaining = np.flatnonzero(np.isfinite(square) & (square > 0))
    for center in range(min(size, _MAX_FANS)):
        if len(remaining) == 0:
            return local
        rolled = np.roll(points[remaining], -center, axis=1)
        spokes = rolled[:, 1:] - rolled[:, :1]
        areas = np.einsum("kij,kj->ki", np.cross(spokes[:, :-1], spokes[:, 1:]), normal[remaining])
        is_covered = (areas > _FLAT_RATIO * square[remaining, None]).all(axis=1)
        local[remaining[is_covered]] = (fan + center) % size
        remaining = remaining[~is_covered]
    if len(remaining):
        local[remaining] = _triangulate_concave(_project(points[remaining], normal[remaining]))
    return local


def _project(points: Float64, normal: Float64) -> Float64:
    """Project polygons (k, n, 3) along the largest axis of their normals: (k, n, 2), counter-clockwise."""
    points = points - points[:, :1]
    axis = np.abs(normal).argmax(axis=1)
    behind = np.take_along_axis(normal, axis[:, None], axis=1)[:, 0] < 0
    across, up = (axis + 1) % 3, (axis + 2) % 3
    plane = np.stack([np.where(behind, up, across), np.where(behind, across, up)], axis=1)
    return np.take_along_axis(points, plane[:, None, :], axis=2)


def _triangulate_concave(flat: Float64) -> Index:
    """Return (k, n - 2, 3) local corners of flat polygons (k, n, 2), counter-clockwise."""
    count, size = flat.shape[:2]
    local = np.empty((count, size - 2, 3), np.intp)
    if size <= _MAX_LOCKSTEP_CORNERS:
        same = (flat[:, :, None] == flat[:, None, :]).all(axis=3)
        touching = same.sum(axis=(1, 2)) > size
        simple = np.flatnonzero(~touching)
        step = max(1, _MAX_TESTS // (size * size))
        for start in range(0, len(simple), step):
            chunk = simple[start : start + step]
            local[chunk] = _clip_ears(flat[chunk])
        singly = np.flatnonzero(touching)
    else:
        singly = np.arange(count)
    for index in singly.tolist():  # few: large, or touching themselves
        local[index] = _triangulate_single(flat[index])
    return local


def _triangulate_single(flat: Float64) -> Index:
    """Return (n - 2, 3) local corners of one flat polygon (n, 2)."""
    import manifold3d  # imported here because few files need it, and the import delays every reader

    size = len(flat)
    triangles = np.asarray(manifold3d.triangulate([flat], allow_convex=True), np.intp).reshape(-1, 3)
    if len(triangles) == size - 2:
        return triangles
    ring = np.arange(size)
    return np.stack([np.zeros(size - 2, np.intp), ring[1:-1], ring[2:]], axis=1)


def _doubled_area(a: Float64, b: Float64, c: Float64) -> Float64:
    """Return twice the signed area of flat triangles."""
    area: Float64 = (b[..., 0] - a[..., 0]) * (c[..., 1] - a[..., 1]) - (b[..., 1] - a[..., 1]) * (
        c[..., 0] - a[..., 0]
    )
    return area


def _clip_ears(flat: Float64) -> Index:
    """Clip flat polygons (k, n, 2) in lockstep: each round removes the best-shaped ear of every polygon."""
    count, size = flat.shape[:2]
    rows = np.arange(count)
    alive = np.broadcast_to(np.arange(size), (count, size))
    local = np.empty((count, size - 2, 3), np.intp)
    for cut in range(size - 3):
        points = np.take_along_axis(flat, alive[:, :, None], axis=1)
        before, after = np.roll(points, 1, axis=1), np.roll(points, -1, axis=1)
        area = _doubled_area(before, points, after)
        longest = np.maximum.reduce(
            [((q - p) ** 2).sum(axis=2) for p, q in ((before, points), (points, after), (after, before))]
        )
        # shape quality of the ear; a reflex corner is worse than a flat one, a blocked ear worse than both
        score = np.where(longest > 0, area / np.where(longest > 0, longest, 1), 0)
        score = np.where((area > 0) & _is_blocked(before, points, after), -4, score)
        best = score.argmax(axis=1)
        width = size - cut
        for column, at in enumerate((best - 1, best, best + 1)):
            local[:, cut, column] = alive[rows, at % width]
        keep = np.arange(width) != best[:, None]
        alive = alive[keep].reshape(count, width - 1)
    local[:, size - 3] = alive
    return local


def _is_blocked(before: Float64, points: Float64, after: Float64) -> NDArray[np.bool_]:
    """Return the mask (k, m) of corners whose triangle contains another corner of the same polygon, or touches it."""
    size = points.shape[1]
    a, b, c = before[:, :, None], points[:, :, None], after[:, :, None]
    other = points[:, None]
    inside = (_doubled_area(a, b, other) >= 0) & (_doubled_area(b, c, other) >= 0) & (_doubled_area(c, a, other) >= 0)
    own = (np.arange(size)[:, None] - np.arange(size) + 1) % size <= 2
    blocked: NDArray[np.bool_] = (inside & ~own).any(axis=2)
    return blocked
