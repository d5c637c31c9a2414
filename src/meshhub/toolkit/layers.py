"""A model as layers of cells, as a printer builds it, and volumes that are closed while it prints."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.geometry import IntIndex, extremes
from meshhub.toolkit.supports import cross_columns, measure_boxes

MIN_CELLS_PER_SIDE, MAX_LAYERS = 400, 500
"""Bounds of the grid: 80 million cells, one byte each, take a second."""

MAX_CELLS = 40_000_000
"""Cells up to which low models have more of them per side."""

MAX_CROSSINGS = 6_000_000
"""Crossings of faces with the columns of cells, and columns that are tried for one face; each takes about 110 bytes."""

ROUNDING_RATIO = 1e-3
"""Share of a layer by which a surface may be above the middle of a layer that it is meant to touch."""

Cells = NDArray[np.bool_]
"""Layers of cells, (l, h, w), or the cells of one layer, (h, w)."""


_IN_PLANE = np.array([np.zeros((3, 3)), np.ones((3, 3)), np.zeros((3, 3))], np.bool_)
"""Neighbors of a cell in its layer."""


class Layers(NamedTuple):
    """Cells of a model, filled where their center is inside.

    filled: (l, h, w) layers from the bed up, rows along Y, columns along X; one empty cell around each layer
    low:    (3,) mm, lower corner of the grid
    cell:   mm, side of a cell along X and Y
    height: mm, height of a layer
    """

    filled: Cells
    low: Float64
    cell: float
    height: float

    def centers(self, layer: IntIndex | Float64, row: Float64, column: Float64) -> Float64:
        """Return the (q, 3) centers of cells in mm, also of fractional ones."""
        grid = np.stack([column * self.cell, row * self.cell, (layer + 0.5) * self.height], axis=-1)
        result: Float64 = self.low + grid + np.array([self.cell / 2, self.cell / 2, 0.0])
        return result


class Regions(NamedTuple):
    """Connected regions of cells of one layer each.

    center: (q, 3) mm
    area:   (q,) mm²
    """

    center: Float64
    area: Float64


def slice_layers(vertices: Float64, faces: Int32, cell_mm: float, layer_mm: float) -> Layers:
    """Return the layers of a model that stands on its lowest point.

    Cells and layers are larger where the model would have too many.

    Args:
        vertices: (n, 3) mm, Z up.
        faces: (m, 3) oriented outward. Bodies that overlap count once; open places leak along Z.
        cell_mm: Side of a cell, at best.
        layer_mm: Height of a layer, at best.
    """
    low, high = extremes(vertices)
    size = high - low
    height = max(layer_mm, float(size[2]) / MAX_LAYERS)
    count = max(1, int(np.ceil(size[2] / height - 0.5 - ROUNDING_RATIO)))
    longest = float(size[:2].max())
    # of a model as narrow as a line, three rows of cells
    finest = max(float(np.sqrt(size[0] * size[1] * count / MAX_CELLS)), 3 * longest * count / MAX_CELLS)
    finest = min(longest / MIN_CELLS_PER_SIDE, finest)
    upward = _measure_upward(vertices, faces)
    seen_from_above = float(np.abs(upward).sum()) / 2
    # a long triangle meets few of the columns in its rectangle, but all of them are tried
    boxes = measure_boxes(vertices, faces)
    largest = float(np.prod([high - low for low, high in boxes], axis=0).max())
    cell = max(cell_mm, finest, (max(seen_from_above, largest) / MAX_CROSSINGS) ** 0.5)
    width, depth = (int(np.ceil(length / cell)) + 2 for length in size[:2])
    origin = low - np.array([cell, cell, 0.0])
    columns, face, z = cross_columns(vertices, faces, origin, cell, boxes)
    row, column = columns >> 20, columns & ((1 << 20) - 1)
    # a layer has what its middle crosses; a side that lies there belongs as a whole to one layer, despite rounding
    layer = np.clip(np.ceil((z - low[2]) / height - 0.5 - ROUNDING_RATIO), 0, count).astype(np.int64)
    # sorted as one number: column, layer, and whether the face looks down, so that it is entered from below
    crossing = np.sort(((row * width + column) * (count + 1) + layer) << 1 | (upward[face] < 0))
    place = crossing >> 1
    is_last = np.diff(place, append=-1) != 0
    winding = np.cumsum(2 * (crossing & 1) - 1)[is_last]
    stack, layer = np.divmod(place[is_last], count + 1)
    is_first = np.diff(stack, prepend=-1) > 0
    # open columns end with another winding than they began with
    winding -= np.append(0, winding)[:-1][is_first][np.cumsum(is_first) - 1]
    is_inside = winding > 0
    was_inside = np.append(False, is_inside)[:-1] & ~is_first
    # what changes fits into a byte, however many bodies overlap
    filled = np.zeros((count + 1, depth * width), np.int8)
    filled[layer, stack] = is_inside.astype(np.int8) - was_inside
    # layer by layer, in place: half of the memory of `np.cumsum`
    for below, above in pairwise(filled[:count]):
        np.add(above, below, out=above)
    return Layers(filled[:count].reshape(count, depth, width).view(np.bool_), origin, cell, height)


def _measure_upward(vertices: Float64, faces: Int32) -> Float64:
    """Return the Z of the normals (m,), twice the area long."""
    x, y = np.ascontiguousarray(vertices[:, :2].T)
    a, b, c = faces.T
    upward: Float64 = (x[b] - x[a]) * (y[c] - y[a]) - (y[b] - y[a]) * (x[c] - x[a])
    return upward


def grow(cells: Cells, distance: float) -> Cells:
    """Return the cells that are within a distance of given ones in the same layer.

    Shifted copies take a twentieth of the time of a distance transform.

    Args:
        cells: (…, h, w)
        distance: In cells.
    """
    radius = int(distance)
    rows = np.floor(np.sqrt(distance**2 - np.arange(radius + 1) ** 2)).astype(np.intp).tolist()
    result = np.zeros_like(cells)
    wide = cells.copy()
    reach = 0
    # rows near the rim of the disk are short, so each width contains the one before
    for row in range(radius, -1, -1):
        for step in range(reach + 1, rows[row] + 1):
            wide[..., step:] |= cells[..., :-step]
            wide[..., :-step] |= cells[..., step:]
        reach = rows[row]
        if row:
            result[..., row:, :] |= wide[..., :-row, :]
            result[..., :-row, :] |= wide[..., row:, :]
    return result | wide


def find_cups(layers: Layers) -> tuple[Float64, Float64]:
    """Find volumes that the model closes while it prints upside down, layer by layer: they pull at the film.

    A void is closed in a layer if no way leads out of it through this layer and those before it.

    Returns:
        (q, 3) mm, a place in each volume, in its last closed layer; (q,) mm³ closed there.
    """
    label, count = ndimage.label(~layers.filled, _IN_PLANE)
    # the border of each layer is outside
    outside = label[:, 0, 0]
    links = []
    for below, above, out_below, out_above in zip(label[:-1], label[1:], outside[:-1], outside[1:], strict=True):
        both = (below > 0) & (above > 0) & ((below != out_below) | (above != out_above))
        # pairs as numbers: `np.unique` of rows takes twenty times as long
        pairs = np.unique(below[both].astype(np.int64) * (count + 1) + above[both])
        links.append(np.stack(np.divmod(pairs, count + 1), axis=1))
    closed = _follow_closed_voids(links, outside, np.bincount(label.ravel(), minlength=count + 1))
    regions = _measure(layers, label, np.array(sorted(closed), np.intp))
    volume = np.array([closed[tip] for tip in sorted(closed)]) * layers.cell**2 * layers.height
    return regions.center, volume


def _follow_closed_voids(links: list[IntIndex], outside: IntIndex, size: IntIndex) -> dict[int, int]:
    """Join the voids of layers from the bed up; return the last region of each closed volume, with its cells.

    The loop runs over contacts of regions, which are few, not over cells.

    Args:
        links: Contacts of the regions of neighboring layers, (q, 2) each.
        outside: The region of each layer that is outside.
        size: Cells of each region.
    """
    parent, cells, tip = list(range(len(size))), size.tolist(), list(range(len(size)))
    opened = np.isin(np.arange(len(size)), outside).tolist()
    closed: dict[int, int] = {}

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for pairs in links:
        for below, above in pairs.tolist():
            a, b = root(below), root(above)
            if a == b:
                continue
            if opened[a] != opened[b]:
                # here, the closed one opens
                inner = b if opened[a] else a
                closed[tip[inner]] = cells[inner]
            parent[a] = b
            cells[b] += cells[a]
            opened[b] = opened[a] or opened[b]
            tip[b] = above
    closed |= {tip[node]: cells[node] for node in range(1, len(parent)) if parent[node] == node and not opened[node]}
    return closed


def _measure(layers: Layers, label: Int32, chosen: IntIndex, first: int = 0) -> Regions:
    """Return the regions with the chosen labels of some layers, of which the lowest is `first`."""
    if len(chosen) == 0:
        return Regions(np.empty((0, 3)), np.empty(0))
    number = np.zeros(int(label.max()) + 1, np.int32)
    number[chosen] = np.arange(1, len(chosen) + 1)
    own = number[label]
    layer, row, column = np.nonzero(own)
    owner = own[layer, row, column] - 1
    # the cell nearest to the middle, because the middle of a ring is not in it
    count = np.bincount(owner)
    middle = [np.bincount(owner, axis) / count for axis in (layer, row, column)]
    distance = (row - middle[1][owner]) ** 2 + (column - middle[2][owner]) ** 2
    order = np.lexsort((distance, owner))
    nearest = order[np.searchsorted(owner[order], np.arange(len(chosen)))]
    centers = layers.centers(
        layer[nearest] + first, row[nearest].astype(np.float64), column[nearest].astype(np.float64)
    )
    return Regions(centers, count.astype(np.float64) * layers.cell**2)
