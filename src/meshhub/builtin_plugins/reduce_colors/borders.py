"""Smooth borders between colors: shorten ragged borders, and remove speckles and strips too narrow to print."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from meshhub.builtin_plugins.reduce_colors.leaves import Leaves
from meshhub.model.scene import Float64, UInt8
from meshhub.toolkit.regions import Neighbors, find_neighbors, remove_narrow_regions

SMOOTH_ROUNDS = 6
"""Rounds of shortening the borders; later ones change almost nothing."""

MIN_WIDTH_CELL_RATIO = 0.5
"""Width, in cells, from which strips stay, because slicers drop those narrower than half a nozzle."""

BORDER_CELL_RATIO = 0.25
"""Width, in cells, of a strip whose area is worth its two borders; narrower strips disappear."""


def smooth_borders(leaves: Leaves, scale: Float64, entry_count: int, cell: float) -> Leaves:
    """Change the labels of leaves so that borders are short, and no region is smaller or narrower than a cell.

    Slicers drop strips narrower than half a nozzle, and need five times as long for a model that is full of them.

    Args:
        scale: (m,) millimeters per unit of length of the mesh, for each triangle.
        entry_count: Number of entries of the palette.
        cell: Millimeters.
    """
    factor = scale[leaves.face] / cell
    neighbors = find_neighbors(leaves.corners, leaves.sides() * factor[:, None])
    area = leaves.areas() * np.square(factor)
    label = _shorten(leaves.label, area * (1 - leaves.error), neighbors, entry_count)
    return replace(leaves, label=remove_narrow_regions(label, area, neighbors, entry_count, MIN_WIDTH_CELL_RATIO))


def _shorten(label: UInt8, own_area: Float64, neighbors: Neighbors, entry_count: int) -> UInt8:
    """Change leaves if that shortens borders by more than their area is worth, alternating between two halves."""
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
