"""Regions of triangles with equal labels: their neighbors, and the removal of regions that are too narrow to print."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64, Int32, UInt8
from meshhub.toolkit.geometry import IntIndex
from meshhub.toolkit.topology import Index, Labels, components, edges, first_members

MAX_ROUNDS = 24
"""Rounds of the removal of narrow regions; adjacent strips disappear one after the other."""


class Neighbors(NamedTuple):
    """Pairs of neighboring triangles, each in both orders, and the length of their common side."""

    first: IntIndex
    second: IntIndex
    length: Float64


def find_neighbors(corners: Int32, sides: Float64) -> Neighbors:
    """Return the neighbors of triangles.

    Args:
        corners: (m, 3) welded points.
        sides: (m, 3) length of the sides; side i leads from corner i to the next one.
    """
    pairs = edges(corners).pairs()
    first, second = (np.asarray(half // 3, np.intp) for half in pairs)
    length = sides.ravel()[pairs[0]]
    return Neighbors(np.concatenate([first, second]), np.concatenate([second, first]), np.concatenate([length, length]))


def find_regions(label: UInt8, neighbors: Neighbors) -> tuple[int, Labels]:
    """Return the number of regions, and the region (m,) of each triangle, numbered by first triangles."""
    is_link = (label[neighbors.first] == label[neighbors.second]) & (neighbors.first < neighbors.second)
    return components(len(label), neighbors.first[is_link], neighbors.second[is_link])


def remove_narrow_regions(
    label: UInt8, area: Float64, neighbors: Neighbors, label_count: int, min_width: float
) -> UInt8:
    """Relabel regions that are too small or too narrow: each gets the label with which it shares most of its border.

    Of narrow neighbors, a random half changes in each round, because all of them at once would only exchange their
    labels.

    Args:
        label: (m,) label of each triangle.
        area: (m,) areas.
        neighbors: Neighbors of the triangles.
        label_count: Number of labels.
        min_width: Minimum width of a strip; a region also stays if its area is at least that of a square with twice
            this side.
    """
    region: Index = np.arange(len(label))
    for number in range(MAX_ROUNDS):
        # from the second round on, the regions of the previous round replace the triangles
        group, label, neighbors = _join_regions(label, neighbors)
        region, area = group[region], np.bincount(group, area).astype(np.float64)
        around = np.bincount(neighbors.first, neighbors.length, minlength=len(label))
        # 2 · area / border is the width of a strip
        is_narrow = (around > 0) & ((area < (2 * min_width) ** 2) | (2 * area < min_width * around))
        if not is_narrow.any():
            break
        best = _measure_borders(label, neighbors, label_count).argmax(axis=1)
        has_narrow_neighbor = np.bincount(neighbors.first, is_narrow[neighbors.second], minlength=len(label)) > 0
        is_changed = is_narrow & (~has_narrow_neighbor | (np.random.default_rng(number).random(len(label)) < 0.5))
        label = np.where(is_changed, best, label).astype(np.uint8)
    return label[region]


def remove_labels(label: UInt8, neighbors: Neighbors, is_removed: NDArray[np.bool_]) -> UInt8:
    """Relabel the regions of some labels: each gets the other label with which it shares most of its border.

    Args:
        label: (m,) label of each triangle.
        neighbors: Neighbors of the triangles.
        is_removed: (n,) whether to remove each label; a region without other labels around it stays.
    """
    region: Index = np.arange(len(label))
    while True:
        group, label, neighbors = _join_regions(label, neighbors)
        region = group[region]
        borders = _measure_borders(label, neighbors, len(is_removed))
        borders[:, is_removed] = 0
        is_changed = is_removed[label] & borders.any(axis=1)
        if not is_changed.any():
            return label[region]
        label = np.where(is_changed, borders.argmax(axis=1), label).astype(np.uint8)


def _join_regions(label: UInt8, neighbors: Neighbors) -> tuple[Labels, UInt8, Neighbors]:
    """Return the region (m,) of each triangle, the labels (r,) of the regions, and their neighbors."""
    count, region = find_regions(label, neighbors)
    first, second = (region[side].astype(np.intp) for side in (neighbors.first, neighbors.second))
    is_border = first != second
    between = Neighbors(first[is_border], second[is_border], neighbors.length[is_border])
    return region, label[first_members(region, count)], between


def _measure_borders(label: UInt8, neighbors: Neighbors, label_count: int) -> Float64:
    """Return the length (r, n) of the border between each region and each label."""
    key = neighbors.first * label_count + label[neighbors.second]
    size = len(label) * label_count
    return np.bincount(key, neighbors.length, minlength=size).astype(np.float64).reshape(-1, label_count)
