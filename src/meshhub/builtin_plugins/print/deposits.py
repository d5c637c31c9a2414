"""Material that a printer of filament deposits in each layer of cells: walls, solid layers and infill, and their lines.

The rules are those of PrusaSlicer 2.5 (`PrintObject.cpp`, `LayerRegion.cpp`), applied to cells instead of polygons.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from meshhub.model.scene import Float64
from meshhub.toolkit.layers import Cells, Layers, grow
from meshhub.toolkit.lengths import LINE_RATIO

SURFACE_MARGIN_MM = 3.0
"""Millimeters by which slicers extend visible surfaces under the walls."""

NARROW_LINES = 3.0
"""Half of the least width of solid layers below a surface, and of bridges over infill, in lines."""

MIN_INFILL_MM2 = 70.0
"""Area up to which slicers fill a region solid."""

OVERLAP_RATIO = 0.25
"""Overlap of infill and walls, per distance of lines."""

EDGE_MM = 0.063
"""Width of what lines of one direction add where they turn along the edge of a region; fitted. Infill is a grid of two
directions."""

SHORT_LOOP_MM = 2 * np.pi * 6.5
"""Length of a loop of a wall up to which slicers print it slowly."""

BRIDGE_GAP_MM = 0.05
"""Gap between the round lines of a bridge."""


class Spacing(NamedTuple):
    """Widths and distances of lines.

    nozzle: mm
    line:   mm, distance of neighboring lines
    bridge: volume of a bridge per volume of a layer of the same area; its lines are round, as thick as the nozzle
    """

    nozzle: float
    line: float
    bridge: float

    @classmethod
    def of(cls, nozzle_mm: float, layer_mm: float) -> Spacing:
        """Return the distances of lines for a nozzle and the height of a layer."""
        bridge = np.pi * nozzle_mm**2 / 4 / (nozzle_mm + BRIDGE_GAP_MM) / layer_mm
        return cls(nozzle_mm, line_spacing(nozzle_mm, layer_mm), max(1.0, bridge))


class Shells(NamedTuple):
    """What is printed in each layer of a model, (l,) each.

    outer, inner:             volume of the walls, mm³
    solid, sparse:            volume of solid layers and of infill, mm³
    top:                      share of `solid` that is visible from above
    solid_lines, sparse_lines: number of straight lines
    contours:                 number of closed walls
    wall_mm:                  length of the contours
    short_outer, short_inner: shares of the walls that are short loops
    solid_regions, sparse_regions: number of connected regions
    """

    outer: Float64
    inner: Float64
    solid: Float64
    sparse: Float64
    top: Float64
    solid_lines: Float64
    sparse_lines: Float64
    contours: Float64
    wall_mm: Float64
    short_outer: Float64
    short_inner: Float64
    solid_regions: Float64
    sparse_regions: Float64


def line_spacing(nozzle_mm: float, layer_mm: float) -> float:
    """Return the distance of neighboring lines in mm: lines have round sides and overlap.

    Layers that are too high for the nozzle get half of the width.
    """
    width = LINE_RATIO * nozzle_mm
    return max(width - layer_mm * (1 - np.pi / 4), width / 2)


def fill_shells(layers: Layers, lines: int, solid_layers: int, spacing: Spacing, infill: float) -> Shells:
    """Divide the layers of a model into walls, solid layers and infill.

    Args:
        layers: Layers of the model.
        lines: Lines of walls around each layer.
        solid_layers: Layers of `layers` that are solid at the top and at the bottom.
        spacing: Distances of lines.
        infill: Share of the rest that is filled, from 0 to 1.
    """
    filled, cell = layers.filled, layers.cell
    inside, touched = np.zeros(filled.shape, np.float32), np.zeros_like(filled)
    outer, total, contours, wall_mm, short_outer, short_inner = np.zeros((6, len(filled)))
    wall = lines * spacing.line
    for number, own in enumerate(filled):
        # the wall covers the share of a cell by which it is wider than the distance of the cell
        depth = ndimage.distance_transform_edt(own) - 1
        inside[number] = own * (1 - np.clip(wall / cell - depth, 0, 1))
        touched[number] = (depth + 1) * cell > wall - OVERLAP_RATIO * spacing.line
        outer[number] = (np.clip(spacing.line / cell - depth, 0, 1) * own).sum()
        total[number] = np.count_nonzero(own)
        length = _measure_contours(own) * cell
        contours[number], wall_mm[number] = len(length), np.abs(length).sum()
        short_outer[number] = _share_short(length, spacing.line / 2)
        short_inner[number] = _share_short(length, (lines + 1) / 2 * spacing.line)
    within = inside > 0.5
    regions = _find_regions(layers, inside, touched, solid_layers, spacing, infill)
    content = inside.sum(axis=(1, 2), dtype=np.float64)
    share = _count(regions.sparse) / np.maximum(_count(within), 1)
    solid, sparse = content * (1 - share), content * share
    solid_cells = within & ~regions.sparse
    wide = _drop_narrow(solid_cells)
    thick = (inside * regions.bridges).sum(axis=(1, 2), dtype=np.float64)
    # a gap that one line fills has no lines that turn at its edges
    turning = _open(solid_cells, spacing.line / 2 / cell)
    solid_mm, sparse_mm = (_measure_edges(cells) / cell for cells in (turning, regions.sparse))
    is_grid = 0 < infill < 1
    volume = cell**2 * layers.height
    diagonal = cell / np.sqrt(2) / spacing.line
    return Shells(
        outer=outer * volume,
        inner=(total - content - outer) * volume,
        solid=(solid + (spacing.bridge - 1) * thick + EDGE_MM * solid_mm) * volume,
        sparse=(infill * sparse + 2 * EDGE_MM * sparse_mm * is_grid) * volume,
        top=(inside * regions.tops).sum(axis=(1, 2), dtype=np.float64) / np.maximum(solid, 1e-9),
        solid_lines=_count_runs(wide).mean(axis=0) * diagonal,
        sparse_lines=_count_runs(regions.sparse).mean(axis=0) * diagonal * infill,
        contours=contours,
        wall_mm=wall_mm,
        short_outer=short_outer,
        short_inner=short_inner,
        solid_regions=_count_regions(wide),
        sparse_regions=_count_regions(_drop_narrow(regions.sparse)),
    )


def _find_surfaces(filled: Cells) -> tuple[Cells, Cells]:
    """Return the cells that are visible from above, and those from below."""
    above, below = np.zeros_like(filled), np.zeros_like(filled)
    above[:-1], below[1:] = filled[1:], filled[:-1]
    return filled & ~above, filled & ~below


class _Regions(NamedTuple):
    """Cells within the walls: those of infill, those that are visible from above, and those of thick bridges."""

    sparse: Cells
    tops: Cells
    bridges: Cells


def _find_regions(
    layers: Layers, inside: NDArray[np.float32], touched: Cells, solid_layers: int, spacing: Spacing, infill: float
) -> _Regions:
    """Divide what is within the walls.

    Args:
        layers: Layers of the model.
        inside: Share of each cell that is within the walls.
        touched: Cells that infill touches, which overlaps the walls.
        solid_layers: As in `fill_shells`, like the rest.
    """
    cell, within = layers.cell, inside > 0.5
    tops, bottoms = _find_surfaces(layers.filled)
    nothing = np.zeros_like(within)
    top = within & tops if solid_layers else nothing
    bottom = within & bottoms & ~top if solid_layers else nothing
    solid = (
        _find_small(within & ~top & ~bottom, inside, cell, OVERLAP_RATIO * spacing.line) if infill else nothing.copy()
    )
    margin = SURFACE_MARGIN_MM / cell
    wide_bottom = _grow(bottom, margin) & within & ~top
    wide_top = _grow(top, margin) & within & ~wide_bottom
    internal = within & ~wide_top & ~wide_bottom
    solid &= internal
    narrow = NARROW_LINES * LINE_RATIO * spacing.nozzle / cell
    reached = internal | (touched & ~within)
    for step in range(1, min(solid_layers, len(within))):
        for source, own, surface in (
            (slice(step, None), slice(None, -step), tops | wide_top),
            (slice(None, -step), slice(step, None), bottoms | wide_bottom),
        ):
            shell = surface[source] & reached[own]
            thin = shell & ~_open(shell, narrow)
            solid[own] |= (shell | _grow(thin, narrow)) & internal[own]
    sparse = internal & ~solid if infill < 1 else nothing
    over_infill = np.zeros_like(within)
    over_infill[2:] = solid[2:] & sparse[1:-1] & sparse[:-2]
    bridges = _open(over_infill, narrow) | wide_bottom
    bridges[0] = False
    return _Regions(sparse, wide_top, bridges)


def _find_small(cells: Cells, inside: NDArray[np.float32], cell: float, overlap_mm: float) -> Cells:
    """Return the cells of regions that are too small for infill; necks of a cell do not connect."""
    result, cores = np.zeros_like(cells), _drop_narrow(cells)
    for number, own in enumerate(cells):
        core = cores[number]
        label, _ = ndimage.label(core)
        areas = np.bincount(label.ravel(), inside[number].ravel()) * cell**2
        # infill overlaps the walls around it, here those of a square
        areas += 4 * overlap_mm * np.sqrt(areas)
        result[number] = own & ~(core & (areas[label] > MIN_INFILL_MM2))
    return result


def _grow(cells: Cells, distance: float) -> Cells:
    """Return `grow` of the layers that have cells; most have none."""
    result = np.zeros_like(cells)
    chosen = np.flatnonzero(cells.any(axis=(1, 2)))
    result[chosen] = grow(cells[chosen], distance)
    return result


def _open(cells: Cells, distance: float) -> Cells:
    """Return the cells of each layer that a disk within the cells covers; `distance` is its radius in cells."""
    result = np.zeros_like(cells)
    chosen = np.flatnonzero(cells.any(axis=(1, 2)))
    result[chosen] = grow(~grow(~cells[chosen], distance), distance)
    return result


def _count(cells: Cells) -> Float64:
    result: Float64 = np.count_nonzero(cells, axis=(1, 2)).astype(np.float64)
    return result


def _count_regions(cells: Cells) -> Float64:
    return np.array([ndimage.label(own)[1] for own in cells], np.float64)


def _drop_narrow(cells: Cells) -> Cells:
    """Return the cells of regions that are wider than a cell; a narrow one gets no lines from side to side."""
    # what squares of two cells within the cells cover: a tenth of the time of `ndimage.binary_opening`
    square = cells[:, 1:] & cells[:, :-1]
    square = square[:, :, 1:] & square[:, :, :-1]
    result = np.zeros_like(cells)
    for row, column in product((slice(1, None), slice(None, -1)), repeat=2):
        result[:, row, column] |= square
    return result


_NEIGHBORS = (
    ((slice(1, None), slice(None)), (slice(None, -1), slice(None)), 1.0),
    ((slice(None), slice(1, None)), (slice(None), slice(None, -1)), 1.0),
    ((slice(1, None), slice(1, None)), (slice(None, -1), slice(None, -1)), np.sqrt(0.5)),
    ((slice(1, None), slice(None, -1)), (slice(None, -1), slice(1, None)), np.sqrt(0.5)),
)
"""Pairs of neighboring cells in four directions, and the distances of lines in these directions.

Crofton's formula: the length of a curve is π/8 of its crossings with lines in four directions times their distances.
"""


def _measure_edges(cells: Cells) -> Float64:
    """Return the length of the edges of each layer in cells."""
    crossings = (
        weight * np.count_nonzero(cells[:, *one] != cells[:, *other], axis=(1, 2)) for one, other, weight in _NEIGHBORS
    )
    result: Float64 = np.pi / 8 * sum(crossings, np.zeros(len(cells)))
    return result


def _count_runs(cells: Cells) -> Float64:
    """Return (2, l) runs of cells along both diagonals of each layer."""
    crossings = [np.count_nonzero(cells[:, *one] != cells[:, *other], axis=(1, 2)) for one, other, _ in _NEIGHBORS[2:]]
    result: Float64 = np.array(crossings) / 2
    return result


def _measure_contours(own: Cells) -> Float64:
    """Return the lengths of the contours of a layer in cells, (k,); those of holes are negative."""
    # a thin wall that runs diagonally is one region, although its cells touch only at corners
    label, count = ndimage.label(own, np.ones((3, 3)))
    hole, hole_count = ndimage.label(~own)
    length = np.zeros(count + hole_count + 1)
    for one, other, weight in _NEIGHBORS:
        differs = own[one] != own[other]
        region = np.maximum(label[one], label[other])[differs]
        gap = np.maximum(hole[one], hole[other])[differs]
        # a contour belongs to its hole, or else to the region
        contour = np.where(gap == hole[0, 0], region - 1, count + gap)
        length += np.bincount(contour, minlength=len(length)) * weight * np.pi / 8
    length[count:] *= -1
    result: Float64 = length[length != 0]
    return result


def _share_short(length_mm: Float64, offset_mm: float) -> float:
    """Return the share of short loops in the length of all of them, which run at an offset from the contours."""
    loops = np.abs(length_mm) - np.sign(length_mm) * 2 * np.pi * offset_mm
    loops = loops[loops > 0]
    return float(loops[loops <= SHORT_LOOP_MM].sum() / loops.sum()) if len(loops) else 0.0
