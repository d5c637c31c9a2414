"""Paint triangles that were split along borders of color: the tree of each one, down to a cell."""

# why this way: docs/decisions/0029-paint.md
from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.threemf.paint_trees import MAX_FILAMENT, PATTERNS, PaintTrees
from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.geometry import IntIndex, face_normals

MIN_ERROR_CELL_RATIO = 1 / 16
"""Area, in cells, of the wrong filament up to which a leaf is not split further: a quarter of a cell on a side."""

DIAGONAL = 2**0.5
"""Longest side, in cells, of a leaf that is not split further: such a leaf is half of a square cell."""

MIN_LONG_SIDE_RATIO = 0.7
"""Length from which sides are split, as a share of the longest side of a leaf; keeps leaves well shaped."""

MIN_OVERLAP = 1e-9
"""Share of a leaf from which a piece counts as a part of it; a smaller share is rounding."""

ROUND_RATIO = 4
"""Number of rounds over which the free leaves are spread; the largest errors come first in each."""


_UNIT = np.array([(0, 0), (1, 0), (0, 1)], np.float64)
"""Corners of a leaf in its own coordinates."""


class Pieces(NamedTuple):
    """Pieces of triangles, with one filament each.

    faces:    (m, 3) vertex indices
    triangle: (m,) triangle that contains the piece
    filament: (m,) from 0 to MAX_FILAMENT
    """

    faces: Int32
    triangle: Int32
    filament: Int32


@dataclass(frozen=True)
class _Leaves:
    """Leaves that may be split, and the pieces in them.

    node:    (n,) number in the tree
    corners: (n, 3, 3) positions of the corners
    filament: (n,) filament that covers most of the leaf
    error:   (n,) area of the other filaments
    owner:   (k,) leaf of each piece
    color:   (k,) its filament
    local:   (2, 3, k) x and y of its corners; those of the leaf are (0, 0), (1, 0) and (0, 1)
    """

    node: NDArray[np.int64]
    corners: Float64
    filament: NDArray[np.int64]
    error: Float64
    owner: IntIndex
    color: Int32
    local: Float64

    def select(self, mask: NDArray[np.bool_]) -> _Leaves:
        """Return some (n,) of the leaves."""
        place = np.cumsum(mask) - 1
        kept = mask[self.owner]
        return _Leaves(
            self.node[mask],
            self.corners[mask],
            self.filament[mask],
            self.error[mask],
            place[self.owner[kept]],
            self.color[kept],
            self.local[..., kept],
        )


def build_trees(
    vertices: Float64, triangles: Int32, pieces: Pieces, cell: float, max_leaf_count: int
) -> tuple[PaintTrees, bool]:
    """Turn colored pieces of triangles into slicer paint: a tree for each triangle, split where its colors change.

    Each leaf has the filament that covers most of it.

    Args:
        vertices: (n, 3) positions.
        triangles: (c, 3) vertex indices.
        cell: Side of the squares whose halves are not split further, in the unit of the vertices.
        max_leaf_count: Maximum leaves of all trees, if there are fewer triangles.
    Returns:
        The trees, and whether `max_leaf_count` sufficed for the details.
    """
    order = np.argsort(pieces.triangle, kind="stable")
    triangle, color = pieces.triangle[order], pieces.filament[order]
    first = np.searchsorted(triangle, np.arange(len(triangles)))
    corners = vertices[triangles]
    is_mixed = np.minimum.reduceat(color, first) != np.maximum.reduceat(color, first)
    is_mixed &= face_normals(vertices, triangles).any(axis=1)
    inner = is_mixed[triangle]
    local = _find_coordinates(vertices[pieces.faces[order[inner]]], corners[triangle[inner]])
    roots = np.flatnonzero(is_mixed)
    leaves = _measure(roots, corners[roots], np.searchsorted(roots, triangle[inner]), color[inner], local)
    splits = _Splits(color[first].astype(np.int64))
    splits.filament[0][roots] = leaves.filament
    room = max_leaf_count - len(triangles)
    while len(leaves.node):
        longest = _find_sides(leaves.corners).max(axis=1)
        leaves = leaves.select((leaves.error > MIN_ERROR_CELL_RATIO * cell**2) & (longest > DIAGONAL * cell))
        order = np.argsort(-leaves.error, kind="stable")
        count, start = _choose_sides(leaves.corners)
        total = np.cumsum(count[order])
        share = room if len(total) and total[-1] <= room else room // ROUND_RATIO
        chosen = np.zeros(len(order), np.bool_)
        chosen[order[: np.searchsorted(total, max(share, min(room, 3)), side="right")]] = True
        if not chosen.any():
            break
        room -= int(count[chosen].sum())
        leaves = _join([leaves.select(~chosen), splits.split(leaves.select(chosen), count[chosen], start[chosen])])
    return splits.finish(len(triangles)), not len(leaves.node)


def _find_coordinates(points: Float64, corners: Float64) -> Float64:
    """Convert three points of each triangle to coordinates in which its corners are (0, 0), (1, 0) and (0, 1).

    Args:
        points: (k, 3, 3) positions.
        corners: (k, 3, 3) corners of the triangles, which are not degenerate.
    Returns:
        (2, 3, k) x and y.
    """
    origin, first, second = corners[:, 0], corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    normal = np.cross(first, second)
    normal /= np.einsum("kd,kd->k", normal, normal)[:, None]
    # x = (p × second) · n = p · (second × n), and y = (first × p) · n = p · (n × first)
    axes = np.stack([np.cross(second, normal), np.cross(normal, first)])
    result: Float64 = np.einsum("kcd,akd->ack", points - origin[:, None], axes)
    return result


def _measure(node: NDArray[np.int64], corners: Float64, owner: IntIndex, color: Int32, local: Float64) -> _Leaves:
    """Return leaves with the filaments that cover most of them; pieces outside of their leaf are left out."""
    share = _measure_overlaps(local)
    kept = np.flatnonzero(share > MIN_OVERLAP)
    owner, color, local, share = owner[kept], color[kept], local[..., kept], share[kept]
    width = MAX_FILAMENT + 1
    covered = np.bincount(owner * width + color, share, minlength=len(node) * width).reshape(-1, width)
    filament = covered.argmax(axis=1)
    a, b, c = corners.transpose(1, 0, 2)
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1) / 2
    total = np.maximum(covered.sum(axis=1), MIN_OVERLAP)
    error = area * (1 - covered.max(axis=1) / total)
    return _Leaves(node, corners, filament, error, owner, color, local)


def _measure_overlaps(local: Float64) -> Float64:
    """Return the share of a leaf that each piece covers.

    Args:
        local: (2, 3, k) corners of the pieces in coordinates of their leaf, which is (0, 0), (1, 0), (0, 1).
    """
    x, y = local
    heights = np.stack([x, y, 1 - x - y])
    is_outside = (heights.max(axis=1) <= 0).any(axis=0)
    is_crossing = ~is_outside & (heights.min(axis=(0, 1)) < 0)
    area: Float64 = np.abs((x[1] - x[0]) * (y[2] - y[0]) - (x[2] - x[0]) * (y[1] - y[0]))
    area[is_outside] = 0
    area[is_crossing] = _clip_areas(x[:, is_crossing], y[:, is_crossing])
    return area


def _clip_areas(x: Float64, y: Float64) -> Float64:
    """Compute the same as `_measure_overlaps` for pieces that cross a side of their leaf; `x` and `y` are (3, k).

    By Green's theorem, an area is the integral over its boundary of the x that lie in the unit triangle at each y.
    """
    following = [1, 2, 0]
    height, width = y[following] - y, x[following] - x
    low, high = np.clip(y, 0, 1), np.clip(y[following], 0, 1)
    slope = width / np.where(height != 0, height, 1)
    start, end = x + (low - y) * slope, x + (high - y) * slope
    # clip(x, 0, 1 - y) = max(x, 0) - max(x + y - 1, 0)
    inner = _mean_positive(start, end) - _mean_positive(start + low - 1, end + high - 1)
    result: Float64 = 2 * np.abs(((high - low) * inner).sum(axis=0))
    return result


def _mean_positive(start: Float64, end: Float64) -> Float64:
    """Return the mean of the positive part of linear functions between their values at both ends."""
    low, high = np.minimum(start, end), np.maximum(start, end)
    crossing = np.square(np.maximum(high, 0)) / np.where(high > low, 2 * (high - low), 1)
    result: Float64 = np.where(low >= 0, (low + high) / 2, np.where(high > 0, crossing, 0))
    return result


def _find_sides(corners: Float64) -> Float64:
    """Return the length (n, 3) of the side opposite to each corner."""
    result: Float64 = np.linalg.norm(corners[:, [2, 0, 1]] - corners[:, [1, 2, 0]], axis=2)
    return result


def _choose_sides(corners: Float64) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Choose the long sides of leaves to split.

    Returns:
        (n,) number of sides, and (n,) corner with which the pattern of the split begins; see PATTERNS.
    """
    sides = _find_sides(corners)
    is_long = sides >= MIN_LONG_SIDE_RATIO * sides.max(axis=1, initial=0, keepdims=True)
    count = is_long.sum(axis=1)
    # one side: the one opposite to the corner; two sides: all but the one opposite to the corner
    start = np.where(count == 1, is_long.argmax(axis=1), np.where(count == 2, is_long.argmin(axis=1), 0))
    return count, start


def _join(parts: list[_Leaves]) -> _Leaves:
    offsets = np.cumsum([0, *(len(part.node) for part in parts)])
    return _Leaves(
        np.concatenate([part.node for part in parts]),
        np.concatenate([part.corners for part in parts]),
        np.concatenate([part.filament for part in parts]),
        np.concatenate([part.error for part in parts]),
        np.concatenate([part.owner + offset for part, offset in zip(parts, offsets, strict=False)]),
        np.concatenate([part.color for part in parts]),
        np.concatenate([part.local for part in parts], axis=2),
    )


class _Splits:
    """Nodes of the paint trees: their filaments and their splits, as one array per round."""

    def __init__(self, filament: NDArray[np.int64]) -> None:
        """Start with the filaments of the roots."""
        self.filament = [filament]
        self._nodes: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]] = []

    def split(self, leaves: _Leaves, count: NDArray[np.int64], start: NDArray[np.int64]) -> _Leaves:
        """Split leaves, and return their children; `count` and `start` are those of `_choose_sides`."""
        size = sum(map(len, self.filament))
        first = size + np.cumsum(count + 1) - count - 1
        self._nodes.append((leaves.node, count, start, first))
        children = []
        for sides, edges, members in PATTERNS:
            for corner in range(3):
                chosen = (count == sides) & (start == corner)
                if not chosen.any():
                    continue
                group = leaves.select(chosen)
                turn = [corner, (corner + 1) % 3, (corner + 2) % 3]
                points = list(group.corners[:, turn].transpose(1, 0, 2))
                units = list(_UNIT[turn])
                for a, b in edges:
                    points.append((points[a] + points[b]) / 2)
                    units.append((units[a] + units[b]) / 2)
                for number, (a, b, c) in enumerate(members):
                    matrix = np.linalg.inv(np.stack([units[b] - units[a], units[c] - units[a]], axis=1))
                    corners = np.stack([points[a], points[b], points[c]], axis=1)
                    local = np.tensordot(matrix, group.local - units[a][:, None, None], 1)
                    children.append(_measure(first[chosen] + number, corners, group.owner, group.color, local))
        result = _join(children)
        filament = np.empty(int(count.sum()) + len(count), np.int64)
        filament[result.node - size] = result.filament
        self.filament.append(filament)
        return result

    def finish(self, root_count: int) -> PaintTrees:
        """Return the trees; children that all have the same filament become one leaf again."""
        filament = np.concatenate(self.filament)
        sides, start, child = (np.zeros(len(filament), np.int64) for _ in range(3))
        for nodes, count, corner, first in self._nodes:
            sides[nodes], start[nodes], child[nodes] = count, corner, first
        for nodes, count, _, first in reversed(self._nodes):
            children = first[:, None] + np.minimum(np.arange(4), count[:, None])
            is_equal = ((sides[children] == 0) & (filament[children] == filament[first][:, None])).all(axis=1)
            sides[nodes[is_equal]], filament[nodes[is_equal]] = 0, filament[first[is_equal]]
        return PaintTrees(np.arange(root_count), sides, start, child, filament)
