"""Material that a printer of filament deposits: walls, solid layers, infill and support of each layer of cells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from meshhub.model.scene import Float64
from meshhub.toolkit.layers import Cells, Layers, grow
from meshhub.toolkit.lengths import LINE_RATIO

SURFACE_MARGIN_MM = 3.0
"""Millimeters by which slicers extend visible surfaces under the walls."""

SLOPE_MARGIN_MM = 1.8
"""The same for what is left of a surface in the layers below or above it, which is narrow on slopes."""

MIN_INFILL_MM2 = 70.0
"""Area up to which slicers fill a region solid."""

WALL_OVERLAP_RATIO = 0.3
"""Infill that runs along walls and into them, per line of wall; fitted."""


class Shells(NamedTuple):
    """Volume of each layer of a model in mm³, (l,) each, and the number of its regions."""

    outer: Float64
    inner: Float64
    solid: Float64
    sparse: Float64
    regions: Float64


def line_spacing(nozzle_mm: float, layer_mm: float) -> float:
    """Return the distance of neighboring lines in mm: lines have round sides and overlap.

    Layers that are too high for the nozzle get half of the width.
    """
    width = LINE_RATIO * nozzle_mm
    return max(width - layer_mm * (1 - np.pi / 4), width / 2)


def fill_shells(layers: Layers, lines: int, solid_layers: float, spacing_mm: float, infill: float) -> Shells:
    """Divide the layers of a model into walls, solid layers and infill.

    Args:
        layers: Layers of the model.
        lines: Lines of walls around each layer.
        solid_layers: Layers of `layers` that are solid at the top and at the bottom.
        spacing_mm: Distance of neighboring lines.
        infill: Share of the rest that is filled, from 0 to 1.
    """
    filled, cell = layers.filled, layers.cell
    count, steps = len(filled), round(solid_layers)
    inside = np.zeros(filled.shape, np.float32)
    outer, total, regions = np.zeros((3, count))
    for number, own in enumerate(filled):
        # the wall covers the share of a cell by which it is wider than the distance of the cell
        depth = ndimage.distance_transform_edt(own) - 1
        inside[number] = own * (1 - np.clip(lines * spacing_mm / cell - depth, 0, 1))
        outer[number] = (np.clip(spacing_mm / cell - depth, 0, 1) * own).sum()
        total[number] = np.count_nonzero(own)
        regions[number] = ndimage.label(own)[1]
    tops = _find_surfaces(filled, inside, cell, above=True)
    bottoms = _find_surfaces(filled, inside, cell, above=False)
    solid, sparse = np.zeros((2, count))
    for number in range(count):
        own = inside[number] > 0.5
        below, above = max(0, number - steps + 1), number + steps
        slopes = np.logical_or(tops.slopes[number + 1 : above].any(axis=0), bottoms.slopes[below:number].any(axis=0))
        is_solid = grow(slopes & own, SLOPE_MARGIN_MM / cell)
        if steps:
            is_solid |= tops.flats[number] | bottoms.flats[number]
        is_sparse = (inside[number] > 0) & ~is_solid
        label, _ = ndimage.label(is_sparse)
        areas = np.bincount(label.ravel(), inside[number].ravel()) * cell**2
        is_sparse &= areas[label] > MIN_INFILL_MM2
        sparse[number] = (inside[number] * is_sparse).sum()
        solid[number] = inside[number].sum() - sparse[number]
    walls = total - solid - sparse
    # lines of infill run along the walls and into them
    share = sparse / np.maximum(solid + sparse, 1e-9)
    along = WALL_OVERLAP_RATIO * outer * np.where(sparse > 0, share, 0.0) * (infill > 0) * (infill < 1)
    volume = cell**2 * layers.height
    return Shells(outer * volume, (walls - outer) * volume, solid * volume, (infill * sparse + along) * volume, regions)


class _Surfaces(NamedTuple):
    """Cells that are visible from above or from below, (l, h, w) each.

    flats:  those within the walls, extended under the walls
    slopes: all
    """

    flats: Cells
    slopes: Cells


def _find_surfaces(filled: Cells, inside: NDArray[np.float32], cell: float, *, above: bool) -> _Surfaces:
    other = np.zeros_like(filled)
    if above:
        other[:-1] = filled[1:]
    else:
        other[1:] = filled[:-1]
    slopes = filled & ~other
    flats = np.zeros_like(filled)
    for number, visible in enumerate(slopes):
        own = inside[number] > 0.5
        flats[number] = grow(visible & own, SURFACE_MARGIN_MM / cell) & own
    return _Surfaces(flats, slopes | flats)
