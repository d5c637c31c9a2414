"""Subdivision of a surface until its leaves follow the borders between the entries of a palette."""

# why this way: docs/decisions/0024-flat-colors.md
# why large triangles are halved first: docs/decisions/0047-borders.md
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.reduce_colors.leaves import Leaves, split_leaves
from meshhub.model.scene import Float32, Float64, Int32, UInt8
from meshhub.toolkit.geometry import IntIndex
from meshhub.toolkit.topology import edges

MAX_LEAF_COUNT = 200_000
"""Maximum leaves of a scene; PrusaSlicer needs 20 s for 200 000 painted triangles, and more than a minute for 400 000.
"""

MIN_SAMPLE_COUNT = 8
"""Samples of a small leaf."""

MAX_SAMPLE_COUNT = 1_000_000
"""Maximum samples of all triangles in the first round; bounds time and memory."""

MAX_ROUND_SAMPLE_COUNT = 300_000
"""Maximum samples of all new leaves in a round; only models over 150 mm would get more, and take three times as long.
"""

SAMPLES_PER_CELL = 2.0
"""Samples in the area of one cell."""

MIN_ERROR_CELL_RATIO = 1 / 16
"""Area, in cells, of the wrong color up to which a leaf is not split further: a quarter of a cell on a side."""

SIDE_SAMPLE_COUNT = 8
"""Samples along a side when a border is searched."""

BORDER_CELL_RATIO = 1 / 16
"""Precision, in cells, with which a border is located on a side; a share of long sides leaves slits along diagonals."""

MIN_LONG_SIDE_RATIO = 0.7
"""Length, as a share of the longest side of a leaf, from which sides are halved that no border crosses."""

MAX_CROSSED_CELLS = 16.0
"""Longest side, in cells, of a leaf of which only the sides with a border are split.

Of larger leaves, all long sides are split: otherwise, several borders cut them into slivers, which become slits, and
smoothing cuts off the corners between them.
"""

INWARD_SHARE = 0.01
"""Shift of the samples on a side toward the center of the leaf, because at a seam each side has its own color."""

MAX_ROUNDS = 40
"""Maximum rounds of splits; a side of one kilometer reaches a cell of 0.4 mm in 22 rounds."""

Labeler = Callable[[Int32, Float32], UInt8]
"""Function that returns the entry (k,) for each point: its face (k,) and barycentric coordinates (k, 3)."""


class Samples(NamedTuple):
    """Evenly distributed points of some leaves.

    owner:   (k,) position of the leaf among these leaves
    face:    (k,) triangle
    weights: (k, 3) barycentric coordinates in the triangle
    """

    owner: IntIndex
    face: Int32
    weights: Float32


def spread_samples(
    leaves: Leaves,
    rows: IntIndex,
    area_cells: Float64,
    min_count: int = MIN_SAMPLE_COUNT,
    max_count: int = MAX_SAMPLE_COUNT,
) -> Samples:
    """Return evenly distributed points of leaves.

    Args:
        rows: (r,) chosen leaves.
        area_cells: (r,) their areas in cells.
        min_count: Least number of points of a leaf.
        max_count: Maximum points of all leaves, if the minimum number per leaf allows it.
    """
    wanted = area_cells * SAMPLES_PER_CELL
    room = max(max_count - min_count * len(rows), 0)
    total = float(wanted.sum())
    count = (min_count + np.floor(wanted * min(1.0, room / total if total > 0 else 1.0))).astype(np.intp)
    owner = np.repeat(np.arange(len(rows)), count)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    inner = _make_sequence(int(count.max(initial=0))).take(place, axis=0)
    # `repeat` reads the rows in order, and takes a third of the time of an index
    weights = np.repeat(leaves.weights[rows], count, axis=0)
    return Samples(owner, np.repeat(leaves.face[rows], count), np.einsum("kc,kcd->kd", inner, weights))


def _make_sequence(count: int) -> Float32:
    """Return the barycentric coordinates (count, 3) of evenly distributed points of a triangle.

    Source:
        Roberts, "The unreasonable effectiveness of quasirandom sequences", 2018.
    """
    place = np.arange(count) + 0.5
    u, v = (0.7548776662466927 * place) % 1, (0.5698402909980532 * place) % 1
    is_outside = u + v > 1
    u, v = np.where(is_outside, 1 - u, u), np.where(is_outside, 1 - v, v)
    return np.stack([1 - u - v, u, v], axis=1).astype(np.float32)


def subdivide(leaves: Leaves, scale: Float64, label: Labeler, entry_count: int, cell: float) -> Leaves:
    """Split leaves until each has one color, up to errors of a quarter of a cell, or MAX_LEAF_COUNT is reached.

    A side that a border crosses is split there; the long sides of large leaves, and of others with several colors, are
    split there or in their middle.

    Args:
        leaves: The triangles, labeled.
        scale: (m,) millimeters per unit of length of the mesh, for each triangle.
        label: Labels points.
        entry_count: Number of entries of the palette.
        cell: Millimeters.
    """
    for _ in range(MAX_ROUNDS):
        room = MAX_LEAF_COUNT - len(leaves.face)
        rows = np.flatnonzero(leaves.error)
        wrong = leaves.areas(rows) * np.square(scale[leaves.face[rows]] / cell) * leaves.error[rows]
        rows, wrong = rows[wrong > MIN_ERROR_CELL_RATIO], wrong[wrong > MIN_ERROR_CELL_RATIO]
        # the largest errors first
        rows = rows[np.argsort(-wrong, kind="stable")][: max(room, 0)]
        if not len(rows):
            break
        mesh_edges = edges(leaves.corners)
        edge, position = _choose_splits(leaves, mesh_edges.order, mesh_edges.size, rows, label, scale / cell)
        fits = np.cumsum(mesh_edges.size[edge]) <= room
        if not fits.any():
            break
        leaves, changed = split_leaves(leaves, mesh_edges, edge[fits], position[fits])
        rows = changed[leaves.error[changed] > 0]
        area = leaves.areas(rows) * np.square(scale[leaves.face[rows]] / cell)
        samples = spread_samples(leaves, rows, area, max_count=MAX_ROUND_SAMPLE_COUNT)
        leaves = elect_labels(leaves, rows, samples.owner, label(samples.face, samples.weights), entry_count)
    return leaves


def elect_labels(leaves: Leaves, rows: IntIndex, owner: IntIndex, entry: UInt8, entry_count: int) -> Leaves:
    """Set the most frequent entry of leaves, and the share of the others.

    Args:
        rows: (r,) leaves to label.
        owner: (k,) position in `rows` of the leaf of each sample.
        entry: (k,) entry of each sample.
        entry_count: Number of entries of the palette.
    """
    votes = np.bincount(owner * entry_count + entry, minlength=len(rows) * entry_count).reshape(-1, entry_count)
    label, error = leaves.label.copy(), leaves.error.copy()
    label[rows] = votes.argmax(axis=1)
    error[rows] = 1 - votes.max(axis=1) / np.maximum(votes.sum(axis=1), 1)
    return replace(leaves, label=label, error=error)


def _choose_splits(
    leaves: Leaves, order: NDArray[np.integer], size: IntIndex, rows: IntIndex, label: Labeler, factor: Float64
) -> tuple[IntIndex, Float64]:
    """Return the edges to split, those of the first rows first, and the positions.

    Args:
        factor: (m,) cells per unit of length, for each triangle.
    """
    edge_of_half = np.empty(len(order), np.intp)
    edge_of_half[order] = np.repeat(np.arange(len(size)), size)
    half = (3 * rows[:, None] + np.arange(3)).ravel()
    # an edge between two of the leaves is examined only from the first one
    examined = _first_places(edge_of_half[half], len(size))
    found = np.full(len(size), np.nan)
    found[edge_of_half[half[examined]]] = _find_borders(leaves, half[examined], label, factor)
    crossing = found[edge_of_half[half]].reshape(-1, 3)
    sides = leaves.sides(rows)
    longest = sides.max(axis=1, keepdims=True)
    is_long = sides >= MIN_LONG_SIDE_RATIO * longest
    is_small = longest * factor[leaves.face[rows], None] < MAX_CROSSED_CELLS
    has_crossing = np.isfinite(crossing).any(axis=1, keepdims=True) & is_small
    is_split = np.where(has_crossing, np.isfinite(crossing), is_long).ravel()
    split = edge_of_half[half[is_split]]
    split = split[_first_places(split, len(size))]
    return split, np.nan_to_num(found[split], nan=0.5)


def _first_places(values: IntIndex, limit: int) -> IntIndex:
    """Return the positions, ascending, of the first occurrence of each value in 0…limit-1."""
    first = np.empty(limit, np.intp)
    places = np.arange(len(values))
    first[values[::-1]] = places[::-1]
    result: IntIndex = places[first[values] == places]
    return result


def _find_borders(leaves: Leaves, half: NDArray[np.integer], label: Labeler, factor: Float64) -> Float64:
    """Return where a border crosses each half-edge, nearest to its middle; NaN if no border crosses it.

    The position counts from 0 at the lower point to 1 at the higher point.
    """
    leaf, side = half // 3, half % 3
    begin, end = leaves.weights[leaf, side], leaves.weights[leaf, (side + 1) % 3]
    center = leaves.weights[leaf].mean(axis=1)
    begin, end = (corner + INWARD_SHARE * (center - corner) for corner in (begin, end))

    def label_at(rows: NDArray[np.integer], share: Float64) -> UInt8:
        end_share = share.astype(np.float32)[:, None]
        return label(leaves.face[leaf[rows]], begin[rows] * (1 - end_share) + end[rows] * end_share)

    share: Float64 = (np.arange(SIDE_SAMPLE_COUNT) + 0.5) / SIDE_SAMPLE_COUNT
    every = np.repeat(np.arange(len(half)), SIDE_SAMPLE_COUNT)
    entry = label_at(every, np.tile(share, len(half))).reshape(-1, SIDE_SAMPLE_COUNT)
    changes = entry[:, 1:] != entry[:, :-1]
    distance = np.where(changes, np.abs(share[1:] + share[:-1] - 1), np.inf)
    at = distance.argmin(axis=1)
    rows = np.flatnonzero(changes.any(axis=1))
    low: Float64 = share[at[rows]]
    high: Float64 = share[at[rows] + 1]
    low_entry = entry[rows, at[rows]]
    length = (
        leaves.sides(leaf[rows].astype(np.intp))[np.arange(len(rows)), side[rows]] * factor[leaves.face[leaf[rows]]]
    )
    while len(wide := np.flatnonzero((high - low) * length > BORDER_CELL_RATIO)):
        middle = (low[wide] + high[wide]) / 2
        is_same = label_at(rows[wide], middle) == low_entry[wide]
        low[wide], high[wide] = np.where(is_same, middle, low[wide]), np.where(is_same, high[wide], middle)
    result = np.full(len(half), np.nan)
    corner, next_corner = leaves.corners[leaf[rows], side[rows]], leaves.corners[leaf[rows], (side[rows] + 1) % 3]
    result[rows] = np.where(corner < next_corner, (low + high) / 2, 1 - (low + high) / 2)
    return result
