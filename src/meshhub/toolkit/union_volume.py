"""Volume of bodies that may overlap."""

from __future__ import annotations

import numpy as np

from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.geometry import extremes, face_normals, signed_volume
from meshhub.toolkit.supports import cross_columns, measure_boxes

MAX_OPENING_RATIO = 1e-3
"""Area of the openings per area of the surface up to which its signed volume is used."""

MAX_CELL_COUNT = 16_000_000
"""Cells of columns below the boxes of all triangles; many bodies in one place get wider columns, and not minutes."""


def measure_union(vertices: Float64, faces: Int32, columns: int) -> float:
    """Compute the volume that at least one body fills.

    The signed volume counts an overlap once for each body. Columns through the surface measure the share that remains
    if each overlap counts once. Without overlaps, this share is 1, and the volume is exact.

    Args:
        vertices: (n, 3) positions, any length unit.
        faces: (m, 3) oriented outward.
        columns: Columns along the longer side of the surface; fewer if the surface lies many times over itself.
    Returns:
        Volume in cubed units of `vertices`, never negative; columns that leave an open mesh count as empty.
    """
    if len(faces) == 0:
        return 0.0
    low, high = extremes(vertices)
    boxes = measure_boxes(vertices, faces)
    covered = float(np.prod([high - low for low, high in boxes], axis=0).sum())
    cell = max(float((high - low)[:2].max()) / columns, (covered / MAX_CELL_COUNT) ** 0.5)
    if cell == 0:
        return 0.0
    column, face, z = cross_columns(vertices, faces, low, cell, boxes)
    order = np.lexsort((z, column))
    column, face, z = column[order], face[order], z[order]
    normals = face_normals(vertices, faces)
    winding = np.cumsum(np.where(normals[face, 2] < 0, 1, -1))
    is_first = np.diff(column, prepend=-1) > 0
    # open columns end with another winding than they began with
    winding -= np.append(0, winding)[:-1][is_first][np.cumsum(is_first) - 1]
    length = np.diff(z) * ~is_first[1:]
    counted = float(winding[:-1] @ length)
    filled = float(length[winding[:-1] > 0].sum())
    exact = signed_volume(vertices, faces)
    # the normals of a closed surface add up to zero; the signed volume of an open one depends on where it lies
    opening, surface = np.linalg.norm(normals.sum(axis=0)), np.linalg.norm(normals, axis=1).sum()
    is_open = bool(opening > MAX_OPENING_RATIO * surface)
    if exact > 0 and counted > 0 and not is_open:
        return exact * filled / counted
    return float(filled * cell**2)
