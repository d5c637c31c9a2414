"""Faces that cross each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex, face_normals, unit_vectors

CHUNK_PAIRS = 1 << 15
"""Pairs of boxes that are divided at once: their boxes fit into the cache of a processor."""

SHALLOW_RATIO = 1e-3
"""Height per depth from which the corners of both faces must lie on both sides of the other; less is rounding."""

MORTON_BITS = 21
"""Bits per axis of a place on the Morton curve."""

_MORTON_STEPS = (
    (32, 0x1F00000000FFFF),
    (16, 0x1F0000FF0000FF),
    (8, 0x100F00F00F00F00F),
    (4, 0x10C30C30C30C30C3),
    (2, 0x1249249249249249),
)
"""Shifts and masks that put two empty bits between the bits of a number."""


class Crossings(NamedTuple):
    """Pairs of faces that cross.

    first, second: (p,) faces; each pair once, in ascending order, and with the lower number first
    points: (p, 3) a point of both
    """

    first: IntIndex
    second: IntIndex
    points: Float64

    def chosen(self, mask: NDArray[np.bool_]) -> Crossings:
        """Return the pairs of a mask (p,)."""
        return Crossings(self.first[mask], self.second[mask], self.points[mask])


def find_crossings(corners: Float64, depth: float, chosen: NDArray[np.bool_] | None = None) -> Crossings:
    """Find the pairs of faces that cross: an edge of one goes through the inside of the other.

    Faces that only touch, share an edge or lie in one plane do not cross.

    Args:
        corners: (m, 3, 3) corners of the faces, in any length unit.
        depth: An edge must reach this far to both sides of a face, and pass its edges at this distance.
        chosen: (m,) mask; each pair must include a chosen face; default: all.
    """
    if len(corners) < 2:
        return Crossings(np.empty(0, np.intp), np.empty(0, np.intp), np.empty((0, 3)))
    a, b, c = corners.transpose(1, 0, 2)
    order = np.argsort(morton_codes((a + b + c) / 3), kind="stable")
    # along the curve, the corners of close faces are close in memory
    corners = corners[order]
    a, b, c = corners.transpose(1, 0, 2)
    numbers = np.arange(3 * len(corners), dtype=np.int32).reshape(-1, 3)
    normals = unit_vectors(face_normals(corners.reshape(-1, 3), numbers))
    faces = _Faces(corners, normals, np.einsum("ij,ij->i", normals, corners[:, 0]))
    boxes = pair_boxes(
        np.minimum(np.minimum(a, b), c),
        np.maximum(np.maximum(a, b), c),
        None if chosen is None else chosen[order],
    )
    pairs = [_choose_crossing(faces, first, second, depth) for first, second in boxes]
    first, second, points = (np.concatenate(column) for column in zip(*pairs, strict=True))
    lower, upper = np.sort(order[np.stack([first, second])], axis=0)
    ascending = np.lexsort((upper, lower))
    return Crossings(lower[ascending], upper[ascending], points[ascending])


def pair_boxes(
    low: Float64, high: Float64, chosen: NDArray[np.bool_] | None = None
) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
    """Yield the pairs of boxes that overlap, in batches; at least one batch, which may be empty.

    Boxes that only touch do not overlap, nor do two flat boxes in one plane: nothing crosses there, and most faces of a
    mesh that share a corner have such boxes.

    Args:
        low: (m, 3) low corners of the boxes. Boxes that are close in space should be close in this order.
        high: (m, 3) high corners.
        chosen: (m,) mask; each pair must include a chosen box; default: all.
    """
    levels = build_tree(low, high)
    counted = [] if chosen is None else _find_chosen_nodes(chosen, levels)
    start = np.zeros(1, np.int32)
    stack = [(0, start, start)]
    while stack:
        level, a, b = stack.pop()
        if len(a) > CHUNK_PAIRS:
            stack += [(level, a[i : i + CHUNK_PAIRS], b[i : i + CHUNK_PAIRS]) for i in range(0, len(a), CHUNK_PAIRS)]
        elif level < len(levels):
            a, b = _divide(*levels[level], a, b)
            if counted:
                is_kept = counted[level][a] | counted[level][b]
                a, b = a[is_kept], b[is_kept]
            stack.append((level + 1, a, b))
        else:
            is_pair = a != b
            yield a[is_pair], b[is_pair]


def morton_codes(points: Float64) -> NDArray[np.uint64]:
    """Return the place of each point on a curve on which neighbors are close."""
    low, high = points.min(axis=0), points.max(axis=0)
    cell = max(float((high - low).max()), np.finfo(np.float64).tiny) / (2**MORTON_BITS - 1)
    code = ((points - low) / cell).astype(np.uint64)
    for shift, mask in _MORTON_STEPS:
        code = (code | (code << np.uint64(shift))) & np.uint64(mask)
    result: NDArray[np.uint64] = code[:, 0] | (code[:, 1] << np.uint64(1)) | (code[:, 2] << np.uint64(2))
    return result


def build_tree(low: Float64, high: Float64) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Return the low and high corners (3, 2^k) of the nodes of a binary tree of boxes, from both children of its root.

    The leaves are the boxes in their order; empty boxes fill the last level.
    """
    size = max(2, 1 << (len(low) - 1).bit_length())
    leaf_low, leaf_high = np.full((3, size), np.inf, np.float32), np.full((3, size), -np.inf, np.float32)
    leaf_low[:, : len(low)], leaf_high[:, : len(low)] = _round_outward(low, -np.inf).T, _round_outward(high, np.inf).T
    levels = [(leaf_low, leaf_high)]
    while levels[-1][0].shape[1] > 2:
        a, b = levels[-1]
        levels.append((np.minimum(a[:, ::2], a[:, 1::2]), np.maximum(b[:, ::2], b[:, 1::2])))
    return levels[::-1]


def _find_chosen_nodes(
    chosen: NDArray[np.bool_], levels: list[tuple[NDArray[np.float32], NDArray[np.float32]]]
) -> list[NDArray[np.bool_]]:
    """Return for each level of a tree which nodes have a chosen leaf."""
    leaves = np.zeros(levels[-1][0].shape[1], np.bool_)
    leaves[: len(chosen)] = chosen
    result = [leaves]
    while len(result) < len(levels):
        result.append(result[-1][::2] | result[-1][1::2])
    return result[::-1]


def _round_outward(values: Float64, direction: float) -> NDArray[np.float32]:
    """Return values in float32, rounded toward a direction; those of files in float32 stay as they are."""
    result = values.astype(np.float32)
    wrong = result > values if direction < 0 else result < values
    result[wrong] = np.nextafter(result[wrong], np.float32(direction))
    return result


def _divide(
    low: NDArray[np.float32], high: NDArray[np.float32], a: NDArray[np.int32], b: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the pairs of children whose boxes overlap; each box is also paired with itself."""
    overlaps = np.ones((2, 2, len(a)), np.bool_)
    one, other = a.astype(np.intp), b.astype(np.intp)
    for axis_low, axis_high in zip(low, high, strict=True):
        # both children of a box at once, as 8 bytes
        low_a, high_a, low_b, high_b = (
            np.take(corner.view(np.float64), box).view(np.float32).reshape(-1, 2).T
            for corner, box in ((axis_low, one), (axis_high, one), (axis_low, other), (axis_high, other))
        )
        for i in (0, 1):
            for j in (0, 1):
                overlaps[i, j] &= low_a[i] < high_b[j]
                overlaps[i, j] &= low_b[j] < high_a[i]
    overlaps[1, 0] &= a != b
    rows = [(i, j, np.flatnonzero(overlaps[i, j])) for i in (0, 1) for j in (0, 1)]
    first = np.concatenate([2 * np.take(a, own) + np.int32(i) for i, _, own in rows])
    second = np.concatenate([2 * np.take(b, own) + np.int32(j) for _, j, own in rows])
    return first, second


class _Faces(NamedTuple):
    """Corners (m, 3, 3), unit normals (m, 3) and distances (m,) of the planes of faces from the origin."""

    corners: Float64
    normals: Float64
    offsets: Float64

    def heights(self, face: NDArray[np.int32], other: NDArray[np.int32]) -> Float64:
        """Return the heights (p, 3) of the corners of the other faces over the planes of faces."""
        heights: Float64 = np.einsum(
            "ijk,ik->ij", np.take(self.corners, other, axis=0), np.take(self.normals, face, axis=0)
        )
        heights -= np.take(self.offsets, face)[:, None]
        return heights

    def reaches_through(self, face: NDArray[np.int32], other: NDArray[np.int32], depth: float) -> NDArray[np.bool_]:
        """Return for which pairs the other face has corners on both sides of the plane of the face."""
        a, b, c = self.heights(face, other).T
        # a reduction along an axis of three is many times slower
        low, high = np.minimum(np.minimum(a, b), c), np.maximum(np.maximum(a, b), c)
        result: NDArray[np.bool_] = (low < -depth) & (high > depth)
        return result


def _choose_crossing(
    faces: _Faces, a: NDArray[np.int32], b: NDArray[np.int32], depth: float
) -> tuple[NDArray[np.int32], NDArray[np.int32], Float64]:
    """Return the pairs that cross, and a point (p, 3) of each."""
    # almost all pairs are neighbors, of which few reach through the plane of each other
    chosen = faces.reaches_through(a, b, SHALLOW_RATIO * depth)
    a, b = a[chosen], b[chosen]
    chosen = faces.reaches_through(b, a, SHALLOW_RATIO * depth)
    a, b = a[chosen], b[chosen]
    if len(a) == 0:
        return a, b, np.empty((0, 3))
    count, total = np.zeros(len(a)), np.zeros((len(a), 3))
    for face, other in ((a, b), (b, a)):
        heights, corners = faces.heights(face, other), faces.corners[other]
        for start, end in ((0, 1), (1, 2), (2, 0)):
            above, below = heights[:, start], heights[:, end]
            own = np.flatnonzero((np.minimum(above, below) < -depth) & (np.maximum(above, below) > depth))
            if len(own) == 0:
                continue
            share = above[own] / (above[own] - below[own])
            points = corners[own, start] + share[:, None] * (corners[own, end] - corners[own, start])
            is_within = _is_within(faces.corners[face[own]], faces.normals[face[own]], points, depth)
            count[own] += is_within
            total[own] += np.where(is_within[:, None], points, 0)
    crosses = count > 0
    return a[crosses], b[crosses], total[crosses] / count[crosses, None]


def _is_within(corners: Float64, normals: Float64, points: Float64, depth: float) -> NDArray[np.bool_]:
    """Return which points (p, 3) lie in their face (p, 3, 3), at a distance from its edges."""
    result = np.ones(len(points), np.bool_)
    for corner in range(3):
        start = corners[:, corner]
        side = unit_vectors(np.cross(normals, corners[:, (corner + 1) % 3] - start))
        result &= np.einsum("ij,ij->i", side, points - start) > depth
    return result
