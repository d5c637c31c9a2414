"""Places of a print that nothing holds: islands, bridges and overhangs, layer by layer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from scipy import ndimage

from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.geometry import IntIndex
from meshhub.toolkit.layers import Cells, Layers, grow

HangingKind = Literal["island", "bridge", "overhang"]
"""What holds a place: nothing, both of its ends, or one side."""

KINDS: tuple[HangingKind, ...] = ("island", "bridge", "overhang")
"""The kinds, in the order of their numbers."""

REACH_LINES = 8.0
"""Widths of a line that a layer may reach into the air: printers build as much of 43 of 44 parts that need no support.
"""

_NEIGHBOR = 1.5
"""Distance in cells that includes the eight neighbors of a cell."""

MIN_ISLAND_RATIO = 1.0
"""Area from which an island counts, per square of a line: PrusaSlicer 2.5 prints columns of 0.45 x 0.45 mm."""

MAX_SPANS = 8
"""Spans of a region that are measured; the region around a pillar has several."""

MAX_RISE_RATIO = 1.15
"""Distance per distance of the middle of a span that its neighbors may have."""

DIRECTIONS_COUNT = 24
"""Directions of lines in which a bridge is tried; they are 7.5° apart."""

MAX_BEND_COUNT = 2
"""Directions by which both halves of a bridge may differ: what holds an end may stand beside the line."""


class Printable(NamedTuple):
    """What a printer builds without support.

    angle_deg:   slope from the bed from which each line lies on the one below
    reach_mm:    distance from what is held that lines may reach into the air
    bridge_mm:   length of bridges between two ends
    line_mm:     width of a line
    """

    angle_deg: float
    reach_mm: float
    bridge_mm: float
    line_mm: float


class Hanging(NamedTuple):
    """Places that need support.

    kind:   (q,) index in `KINDS`
    center: (q, 3) mm, the cell farthest from what holds the place
    length: (q,) mm: length of a bridge, reach of an overhang, 0 of an island
    area:   (q,) mm² of the place, in the layer in which it begins
    cells:  (c, 3) layer, row and column of the cells of all places
    """

    kind: IntIndex
    center: Float64
    length: Float64
    area: Float64
    cells: IntIndex

    def of(self, kind: HangingKind) -> IntIndex:
        """Return the places (k,) of a kind, the worst first."""
        own = np.flatnonzero(self.kind == KINDS.index(kind))
        worst: IntIndex = own[np.lexsort((-self.area[own], -self.length[own]))]
        return worst

    def bottoms(self, layers: Layers) -> Float64:
        """Return the (c, 3) middles of the undersides of the cells in mm."""
        layer, row, column = self.cells.T.astype(np.float64)
        result: Float64 = layers.centers(layer, row, column) - np.array([0.0, 0.0, layers.height / 2])
        return result


class _Place(NamedTuple):
    kind: HangingKind
    layer: int
    row: float
    column: float
    length: float
    area: float


def find_hanging(layers: Layers, printable: Printable) -> Hanging:
    """Find the places that a printer cannot build without support.

    Held is what lies above held cells, or beside them by no more than the slope allows. All other cells hang. They
    print if they are near what is held, or bridge it; others are places, and count as held in the layers above.

    Args:
        layers: Layers of the model.
        printable: What the printer builds.
    """
    places: list[_Place] = []
    cells = [np.empty((0, 3), np.intp)]
    slope = layers.height / np.tan(np.deg2rad(printable.angle_deg)) / layers.cell
    # sharp feet have no cells in the first layers; the bed holds what begins a layer above
    first = int(layers.filled.any(axis=(1, 2)).argmax())
    held, below = layers.filled[first], np.ones_like(layers.filled[first])
    taken = int(first * slope)
    for number in range(first + 1, len(layers.filled)):
        filled = layers.filled[number]
        # support that is drawn into the model ends a layer below what it holds
        base = held | below
        steps = range(taken + 1, int(number * slope) + 1)
        taken += len(steps)
        # the larger part of most models becomes narrower upward
        if (filled & ~base).any():
            for step in steps:
                base = grow(base, 1.0 if step % 2 else _NEIGHBOR)
        below, held = held, filled & base
        hangs = filled & ~held
        if not hangs.any():
            continue
        label, count = ndimage.label(hangs, np.ones((3, 3)))
        needs = np.zeros(count + 1, np.bool_)
        for region, place in _judge(layers, number, label, held, printable):
            if place is not None:
                places.append(place)
                needs[region] = True
            held |= label == region
        chosen = np.argwhere(needs[label])
        cells.append(np.column_stack([np.full(len(chosen), number, np.intp), chosen]))
    table = np.array([place[1:] for place in places], np.float64).reshape(-1, 5)
    kind = np.array([KINDS.index(place.kind) for place in places], np.intp)
    centers = layers.centers(table[:, 0], table[:, 1], table[:, 2])
    return Hanging(kind, centers, table[:, 3], table[:, 4], np.concatenate(cells))


def _judge(
    layers: Layers, number: int, label: Int32, held: Cells, printable: Printable
) -> Iterator[tuple[int, _Place | None]]:
    """Yield the regions of a layer that hang far, each with its places; None for a bridge that prints.

    Args:
        number: Layer.
        label: (h, w) regions that hang.
        held: (h, w)
    """
    area = np.bincount(label.ravel()) * layers.cell**2
    is_touched = np.zeros(len(area), np.bool_)
    is_touched[label[grow(held, _NEIGHBOR)]] = True
    islands = np.flatnonzero(~is_touched[1:] & (area[1:] > MIN_ISLAND_RATIO * printable.line_mm**2)) + 1
    for region in islands.tolist():
        rows, columns = np.nonzero(label == region)
        middle = int(((rows - rows.mean()) ** 2 + (columns - columns.mean()) ** 2).argmin())
        yield region, _Place("island", number, rows[middle], columns[middle], 0.0, area[region])
    reach = printable.reach_mm / layers.cell
    for region, box in enumerate(ndimage.find_objects(label), 1):
        if not is_touched[region] or np.hypot(*(side.stop - side.start for side in box)) < reach:
            continue
        row, column = (slice(max(side.start - 2, 0), side.stop + 2) for side in box)
        own = label[row, column] == region
        ends = held[row, column] & grow(own, _NEIGHBOR)
        if not (own & ~grow(ends, reach)).any():
            continue
        spans = _measure_spans(own, ends, reach)
        found = False
        for is_bridge, (length, y, x) in spans.items():
            length *= layers.cell
            if length > (printable.bridge_mm if is_bridge else printable.reach_mm):
                found = True
                kind: HangingKind = "bridge" if is_bridge else "overhang"
                yield region, _Place(kind, number, row.start + y, column.start + x, length, area[region])
        if not found and True in spans:
            yield region, None


def _measure_spans(own: Cells, ends: Cells, least: float) -> dict[bool, tuple[float, int, int]]:
    """Return the longest bridge (True) and the longest overhang (False) of a region in cells, and where they are.

    Args:
        own: (h, w) cells of the region.
        ends: (h, w) held cells beside it.
        least: Distance from what holds a cell up to which it prints in any case.
    """
    distance = ndimage.distance_transform_edt(~ends)
    longest: dict[bool, tuple[float, int, int]] = {}
    for row, column in _choose_cells(np.where(own & (distance > least), distance, 0.0)):
        bridge = _cross(own, ends, row, column)
        is_bridge = bool(np.isfinite(bridge))
        length = bridge if is_bridge else float(distance[row, column])
        if is_bridge not in longest or length > longest[is_bridge][0] + 1:
            longest[is_bridge] = length, row, column
    return longest


def _choose_cells(distance: Float64) -> Iterator[tuple[int, int]]:
    """Yield row and column of cells that are far from what holds a region, one for each of its spans, farthest first.

    Args:
        distance: (h, w) distance of each cell from what holds it; 0 outside the region.
    """
    rows, columns = np.ogrid[: distance.shape[0], : distance.shape[1]]
    rest = distance.copy()
    for _ in range(MAX_SPANS):
        row, column = np.unravel_index(int(rest.argmax()), rest.shape)
        reach = rest[row, column]
        if reach <= 0:
            return
        disk = (rows - row) ** 2 + (columns - column) ** 2 <= reach**2
        # a cell on the way to a farther one is in its span
        if distance[disk].max() <= MAX_RISE_RATIO * reach:
            yield int(row), int(column)
        rest[disk] = 0.0


def _cross(own: Cells, ends: Cells, row: int, column: int) -> float:
    """Return the cells of the shortest line through a cell that is held at both ends; infinite without one."""
    steps = np.arange(1, int(np.hypot(*own.shape)) + 2)
    angles = np.arange(2 * DIRECTIONS_COUNT) * np.pi / DIRECTIONS_COUNT
    rows = np.rint(row + np.sin(angles)[:, None] * steps).astype(np.intp)
    columns = np.rint(column + np.cos(angles)[:, None] * steps).astype(np.intp)
    is_inside = (rows >= 0) & (rows < own.shape[0]) & (columns >= 0) & (columns < own.shape[1])
    rows, columns = np.where(is_inside, rows, row), np.where(is_inside, columns, column)
    leaves = ~is_inside | ~own[rows, columns]
    first = leaves.argmax(axis=1)
    each = np.arange(len(angles))
    is_held = is_inside[each, first] & ends[rows[each, first], columns[each, first]]
    length = np.where(is_held, first + 1.0, np.inf)
    bends = range(DIRECTIONS_COUNT - MAX_BEND_COUNT, DIRECTIONS_COUNT + MAX_BEND_COUNT + 1)
    return min(float((length + np.roll(length, turn)).min()) for turn in bends)
