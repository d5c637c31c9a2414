"""Smooth borders between colors: remove speckles, and shorten ragged borders."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from meshhub.builtin_plugins.reduce_colors.leaves import Leaves
from meshhub.model.scene import Float64, UInt8
from meshhub.toolkit.geometry import IntIndex
from meshhub.toolkit.topology import components, edges

SPECKLE_ROUNDS = 3
"""Rounds of the removal of speckles; a removed speckle can join others to a larger one."""

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
    """Change the labels of leaves so that no area is smaller than a cell, and borders are short.

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
    return replace(leaves, label=_remove_speckles(label, area, neighbors, entry_count))


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


def _remove_speckles(label: UInt8, area: Float64, neighbors: _Neighbors, entry_count: int) -> UInt8:
    """Give areas smaller than a cell the color with which they share most of their border."""
    for _ in range(SPECKLE_ROUNDS):
        is_inner = label[neighbors.first] == label[neighbors.second]
        count, region = components(len(label), neighbors.first[is_inner], neighbors.second[is_inner])
        is_small = np.bincount(region, area, minlength=count) < 1
        border = ~is_inner & is_small[region[neighbors.first]]
        if not border.any():
            break
        shared = np.bincount(
            region[neighbors.first[border]].astype(np.intp) * entry_count + label[neighbors.second[border]],
            neighbors.length[border],
            minlength=count * entry_count,
        ).reshape(count, entry_count)
        is_changed = is_small & (shared.max(axis=1) > 0)
        label = np.where(is_changed[region], shared.argmax(axis=1)[region], label).astype(np.uint8)
    return label
