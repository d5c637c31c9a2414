"""Smooth borders between colors: shorten ragged borders, and remove speckles and strips too narrow to print."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from meshhub.builtin_plugins.reduce_colors.leaves import Leaves
from meshhub.model.scene import Float64, UInt8
from meshhub.toolkit.geometry import IntIndex
from meshhub.toolkit.topology import components, edges

REGION_ROUNDS = 24
"""Rounds of the removal of narrow regions; strips side by side disappear one after the other."""

SMOOTH_ROUNDS = 6
"""Rounds of the shortening of borders; later ones change almost nothing."""

BORDER_CELL_RATIO = 0.25
"""Width, in cells, of a strip that is as costly as its two borders; narrower strips disappear."""


class _Neighbors(NamedTuple):
    """Pairs of neighboring leaves, and the length of their common side in cells."""

    first: IntIndex
    second: IntIndex
    length: Float64


def smooth_borders(leaves: Leaves, scale: Float64, entry_count: int, cell: float) -> Leaves:
    """Change the labels of leaves so that borders are short, and no region is smaller or narrower than a cell.

    Slicers drop strips narrower than half a nozzle, and need five times as long for a model that is full of them.

    Args:
        leaves: Leaves with labels.
        scale: (m,) millimeters per unit of length of the mesh, for each triangle.
        entry_count: Number of entries of the palette.
        cell: Millimeters.
    """
    pairs = edges(leaves.corners).pairs()
    first, second = (np.asarray(half // 3, np.intp) for half in pairs)
    factor = scale[leaves.face] / cell
    length = leaves.sides().ravel()[pairs[0]] * factor[first]
    neighbors = _Neighbors(
        np.concatenate([first, second]), np.concatenate([second, first]), np.concatenate([length, length])
    )
    area = leaves.areas() * np.square(factor)
    label = _shorten(leaves.label, area * (1 - leaves.error), neighbors, entry_count)
    return replace(leaves, label=_remove_narrow_regions(label, area, neighbors, entry_count))


def _shorten(label: UInt8, own_area: Float64, neighbors: _Neighbors, entry_count: int) -> UInt8:
    """Change leaves whose borders become shorter by more than their area is worth, alternating between two halves."""
    original, count = label, len(label)
    rows = np.arange(count)
    for number in range(SMOOTH_ROUNDS):
        shared = np.bincount(
            neighbors.first * entry_count + label[neighbors.second], neighbors.length, minlength=count * entry_count
        ).reshape(count, entry_count)
        gain = BORDER_CELL_RATIO * shared
        gain[rows, original] += own_area
        best = gain.argmax(axis=1)
        is_better = (gain[rows, best] > gain[rows, label]) & (rows % 2 == number % 2)
        label = np.where(is_better, best, label).astype(np.uint8)
    return label


def _remove_narrow_regions(label: UInt8, area: Float64, neighbors: _Neighbors, entry_count: int) -> UInt8:
    """Give regions smaller or narrower than a cell the color with which they share most of their border.

    Of narrow neighbors, a random half changes in a round: all at once would exchange their colors.
    """
    for number in range(REGION_ROUNDS):
        is_inner = label[neighbors.first] == label[neighbors.second]
        count, region = components(len(label), neighbors.first[is_inner], neighbors.second[is_inner])
        first, second, length = (values[~is_inner] for values in neighbors)
        size = np.bincount(region, area, minlength=count)
        around = np.bincount(region[first], length, minlength=count)
        # 4 · area / border is the side of a square, and twice the width of a strip
        is_narrow = (around > 0) & ((size < 1) | (4 * size < around))
        if not is_narrow.any():
            break
        shared = np.bincount(
            region[first].astype(np.intp) * entry_count + label[second], length, minlength=count * entry_count
        ).reshape(count, entry_count)
        has_narrow_neighbor = np.bincount(region[first], is_narrow[region[second]], minlength=count) > 0
        is_changed = is_narrow & (~has_narrow_neighbor | (np.random.default_rng(number).random(count) < 0.5))
        label = np.where(is_changed[region], shared.argmax(axis=1)[region], label).astype(np.uint8)
    return label
