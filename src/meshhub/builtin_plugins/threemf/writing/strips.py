"""Remove strips of paint that slicers do not print, or that take them minutes to slice."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.threemf.paint_trees import MAX_FILAMENT
from meshhub.builtin_plugins.threemf.writing.paint import MIN_ERROR_CELL_RATIO
from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.geometry import face_normals, weld
from meshhub.toolkit.regions import Neighbors, find_neighbors, find_regions, remove_labels, remove_narrow_regions
from meshhub.toolkit.topology import first_members

MAX_SLICING_COST = 7_000_000
"""Maximum slicing cost; PrusaSlicer 2.5 takes 14 s for 3 million, 27 s for 14 million, and 65 s for 40 million. """

MIN_PRINTED_WIDTH_CELLS = 0.5
"""Width, in cells, from which slicers print a strip: half a nozzle."""

MIN_PRINTED_AREA_CELLS = 4.0
"""Area, in cells, from which PrusaSlicer prints a narrow strip; a filament without such a strip causes no tool change.
"""

FIRST_WIDTH_CELLS = 0.3
"""Width, in cells, up to which strips are removed first if slicing takes too long."""

WIDTH_STEP_RATIO = 1.2
"""Factor by which this width grows while slicing takes too long."""

MAX_WIDTH_CELLS = 2.0
"""Largest of these widths; wider strips are details that justify the time."""


class PaintedSurface(NamedTuple):
    """Pieces of triangles.

    area:      (m,) in cells
    neighbors: their neighbors, with lengths in cells
    """

    area: Float64
    neighbors: Neighbors


def measure_surface(vertices: Float64, faces: Int32, cell: float) -> PaintedSurface:
    """Measure the pieces of a surface.

    Args:
        vertices: (n, 3) positions.
        faces: (m, 3) vertex indices.
        cell: Size of the smallest detail, in the unit of the vertices.
    """
    first, index = weld(vertices)
    corners, points = index[faces], vertices[first] / cell
    placed = points[corners]
    sides = np.linalg.norm(placed[:, [1, 2, 0]] - placed, axis=2)
    area = np.linalg.norm(face_normals(points, corners), axis=1) / 2
    return PaintedSurface(area, find_neighbors(corners, sides))


def remove_strips(surface: PaintedSurface, filament: Int32, max_cost: float) -> tuple[Int32, float]:
    """Relabel narrow regions with the filament beside them, because slicers drop them or take too long for them.

    The narrowest regions go first, until the slicing cost is low enough. Then all regions of a filament are removed if
    none of them is wide enough to be printed.

    Args:
        surface: The pieces.
        filament: (m,) filament of each piece.
        max_cost: Most slicing cost.
    Returns:
        Filaments (m,), and the width, in cells, up to which strips were removed; 0 for none.
    """
    width = 0.0
    source = label = filament.astype(np.uint8)
    next_width = FIRST_WIDTH_CELLS
    while next_width <= MAX_WIDTH_CELLS and measure_slicing_cost(surface, label) > max_cost:
        width = next_width
        label = remove_narrow_regions(source, surface.area, surface.neighbors, MAX_FILAMENT + 1, width)
        next_width *= WIDTH_STEP_RATIO
    is_skipped = ~_find_printed_filaments(surface, label)
    if is_skipped[label].any() and not is_skipped[label].all():
        width = max(width, MIN_PRINTED_WIDTH_CELLS)
        label = remove_labels(label, surface.neighbors, is_skipped)
    return label.astype(np.int32), width


def _find_printed_filaments(surface: PaintedSurface, label: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return whether each filament has a region that is wide enough for a slicer."""
    count, region = find_regions(label, surface.neighbors)
    first, second, length = surface.neighbors
    is_border = region[first] != region[second]
    area = np.bincount(region, surface.area, minlength=count)
    around = np.bincount(region[first[is_border]], length[is_border], minlength=count)
    is_wide = (2 * area >= MIN_PRINTED_WIDTH_CELLS * around) & (area >= MIN_PRINTED_AREA_CELLS)
    result = np.zeros(MAX_FILAMENT + 1, np.bool_)
    result[label[is_wide[region]]] = True
    return result


def measure_slicing_cost(surface: PaintedSurface, label: NDArray[np.uint8]) -> float:
    """Estimate how long a slicer takes, as a number without a unit.

    PrusaSlicer compares each region of a layer with all regions of the same filament in the next layer, so the cost is
    the number of the regions times the length of their borders.
    """
    count, region = find_regions(label, surface.neighbors)
    is_counted = np.bincount(region, surface.area, minlength=count) > MIN_ERROR_CELL_RATIO
    first, second, length = surface.neighbors
    is_border = (region[first] != region[second]) & is_counted[region[first]]
    size = MAX_FILAMENT + 1
    regions = np.bincount(label[first_members(region, count)[is_counted]], minlength=size)
    return float(regions @ np.bincount(label[first[is_border]], length[is_border], minlength=size))
