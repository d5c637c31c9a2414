"""Checks of the triangles that the kernel makes: closed solids, and the true area of each face."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.geometry import IntIndex
from meshhub.toolkit.opencascade import is_kernel_failure
from meshhub.toolkit.topology import edges, half_edges

_MIN_AREA_TOLERANCE_RATIO = 0.02
"""Share of its area by which the triangles of a face may differ from the face."""


def find_open_solids(triangles: Int32, solid: IntIndex) -> IntIndex:
    """Return the solids whose triangles do not close.

    Args:
        triangles: (m, 3) indices of welded points; different solids share no points.
        solid: (m,) the solid of each triangle; 0 for none.
    Returns:
        Ascending numbers of solids.
    """
    if len(triangles) == 0:
        return np.empty(0, np.intp)
    grouped = edges(triangles)
    begin, end = half_edges(triangles)
    direction = np.where(begin < end, 1, -1)[grouped.order]
    # each edge of a closed solid is used by as many triangles in one direction as in the other
    is_open = np.add.reduceat(direction, grouped.start) != 0
    open_solids: IntIndex = np.unique(solid[grouped.order[grouped.start[is_open]] // 3])
    return open_solids[open_solids > 0]


class InexactFaces(NamedTuple):
    """Faces whose triangles do not have the area of the surface.

    numbers:         positions among the checked faces
    unchecked_count: faces that the kernel cannot measure
    """

    numbers: IntIndex
    unchecked_count: int


def find_inexact_faces(shapes: list[Any], areas: Float64, deviation_mm: float, angle_rad: float) -> InexactFaces:
    """Return the faces whose triangles do not have the area of the surface.

    Chords of a turn `angle_rad` shorten a curve by the 24th part of its square. A face that is narrow loses up to
    `deviation_mm` along its outline, too.

    Args:
        shapes: Faces of the kernel.
        areas: (f,) areas of their triangles, mm².
        deviation_mm: Maximum distance of a triangle from the surface.
        angle_rad: Maximum turn of a curve from one edge to the next.
    """
    tolerance = _MIN_AREA_TOLERANCE_RATIO + angle_rad**2 / 6
    inexact: list[int] = []
    unchecked_count = 0
    for number, (shape, area) in enumerate(zip(shapes, areas.tolist(), strict=True)):
        try:
            is_exact = _is_exact(shape, area, tolerance * area, deviation_mm)
        except Exception as failure:
            if not is_kernel_failure(failure):
                raise
            unchecked_count += 1
            continue
        if not is_exact:
            inexact.append(number)
    return InexactFaces(np.array(inexact, np.intp), unchecked_count)


def _is_exact(shape: Any, area: float, tolerance: float, deviation_mm: float) -> bool:
    """Return whether the area of a face is that of its triangles."""
    from OCP.BRepGProp import BRepGProp
    from OCP.GProp import GProp_GProps

    surface = GProp_GProps()
    BRepGProp.SurfaceProperties_s(shape, surface)
    off = abs(area - abs(surface.Mass()))
    if off <= tolerance:
        return True
    outline = GProp_GProps()
    BRepGProp.LinearProperties_s(shape, outline)
    return bool(off <= tolerance + deviation_mm * outline.Mass())
