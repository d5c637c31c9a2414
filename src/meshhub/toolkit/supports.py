"""Support that a model needs on the bed: columns below its overhangs, measured on a grid."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.geometry import extremes, face_normals

GRID_SIZE = 160
"""Cells along the longer side of the grid; gives columns of 1 mm for a part of 160 mm."""

CHUNK_HITS = 1 << 22
"""Cells of bounding boxes of triangles per pass; bounds the memory."""

ROUNDING_RATIO = float(np.finfo(np.float32).eps)
"""Maximum distance by which two points move apart when both are rounded to float32, per largest coordinate."""

MAX_ROUNDINGS_COUNT = 6.0
"""Maximum change of a face's normal and of its share along Z, in roundings times the longest edge, because rounding
moves each edge by one along each axis."""

_SHIFT = np.array([0.34721, 0.61803])
"""Position of a column in its cell, off the center so that columns do not meet the sides of regular meshes."""


class Support(NamedTuple):
    """Support of a model in one pose.

    volume_mm3:  columns from its overhangs down to the bed, or to the model below
    contact_mm2: area that touches the bed
    """

    volume_mm3: float
    contact_mm2: float


def measure_support(vertices: Float64, faces: Int32, angle_deg: float, layer_mm: float = 0.2) -> Support:
    """Measure the support of a model that stands on its lowest point.

    Args:
        vertices: (n, 3) mm, Z up.
        faces: (m, 3) closed and oriented outward; otherwise, the result is an estimate.
        angle_deg: An overhang needs support if its angle with the bed is smaller.
        layer_mm: Height within which a face touches the bed.
    """
    low, high = extremes(vertices)
    cell = float((high - low)[:2].max()) / GRID_SIZE
    if cell == 0:
        return Support(0.0, 0.0)
    normals = face_normals(vertices, faces)
    z = vertices[:, 2][faces]
    touches = z.max(axis=1) <= low[2] + layer_mm
    contact = -normals[touches & (normals[:, 2] < 0), 2].sum() / 2
    overhangs = find_overhangs(vertices, faces, normals, angle_deg) & ~touches
    columns, face, height = cross_columns(vertices, faces, low, cell)
    order = np.lexsort((height, columns))
    columns, face, height = columns[order], face[order], height[order]
    # an overhang stands on the crossing below it in the same column, or on the bed
    below = np.concatenate([[low[2]], height[:-1]])
    below[np.concatenate([[True], columns[1:] != columns[:-1]])] = low[2]
    needs = overhangs[face]
    return Support(float((height - below)[needs].sum()) * cell * cell, float(contact))


def find_overhangs(vertices: Float64, faces: Int32, normals: Float64, angle_deg: float) -> NDArray[np.bool_]:
    """Return the mask (m,) of faces that look down at less than an angle from the bed.

    A face does not count if rounding to float32 could have moved it below the angle.

    Args:
        vertices: (n, 3) positions.
        faces: (m, 3) indices into `vertices`.
        normals: (m, 3) twice the area long.
        angle_deg: Degrees.
    """
    steepness = -normals[:, 2] - np.cos(np.deg2rad(angle_deg)) * np.linalg.norm(normals, axis=1)
    result: NDArray[np.bool_] = steepness > 0
    chosen = np.flatnonzero(result)
    a, b, c = (vertices[faces[chosen, corner]] for corner in range(3))
    length = np.maximum(np.linalg.norm(b - a, axis=1), np.linalg.norm(c - a, axis=1))
    rounding = ROUNDING_RATIO * float(np.abs(vertices).max(initial=0.0))
    result[chosen] = steepness[chosen] > MAX_ROUNDINGS_COUNT * rounding * length
    return result


def cross_columns(
    vertices: Float64, faces: Int32, low: Float64, cell: float
) -> tuple[NDArray[np.int64], NDArray[np.intp], Float64]:
    """Return the columns, faces and heights at which faces cross the columns of a grid, in no order.

    Args:
        vertices: (n, 3) positions.
        faces: (m, 3) indices into `vertices`.
        low: (2,) or (3,) lower corner of the grid.
        cell: Side of a cell.
    Returns:
        (q,) row in the upper bits and column in the lower twenty bits of the cell; (q,) faces; (q,) Z.
    """
    flat = (vertices[:, :2] - low[:2]) / cell - _SHIFT
    x, y = flat[:, 0][faces], flat[:, 1][faces]
    first = np.ceil(np.stack([x.min(axis=1), y.min(axis=1)])).astype(np.int64)
    last = np.floor(np.stack([x.max(axis=1), y.max(axis=1)])).astype(np.int64)
    width, depth = np.maximum(last - first + 1, 0)
    count = width * depth
    crossings = []
    ends = np.cumsum(count)
    start = 0
    while start < len(faces):
        done = ends[start - 1] if start else 0
        end = max(start + 1, int(np.searchsorted(ends, done + CHUNK_HITS, side="right")))
        part = np.arange(start, end)[count[start:end] > 0]
        crossings.append(_cross_some(vertices, faces, (x, y), part, first[:, part], width[part], count[part]))
        start = end
    columns, face, height = (np.concatenate(arrays) for arrays in zip(*crossings, strict=True))
    return columns, face, height


def _cross_some(
    vertices: Float64,
    faces: Int32,
    flat: tuple[Float64, Float64],
    part: NDArray[np.intp],
    first: NDArray[np.int64],
    width: NDArray[np.int64],
    count: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.intp], Float64]:
    """Return the crossings of some faces: the cells of their bounding boxes whose columns are inside."""
    face = np.repeat(part, count)
    number = np.arange(len(face)) - np.repeat(np.cumsum(count) - count, count)
    wide = np.repeat(width, count)
    column = np.repeat(first[0], count) + number % wide
    row = np.repeat(first[1], count) + number // wide
    x, y = (values[face] for values in flat)
    sides = [
        (x[:, after] - x[:, before]) * (row - y[:, before]) - (y[:, after] - y[:, before]) * (column - x[:, before])
        for before, after in ((1, 2), (2, 0), (0, 1))
    ]
    area = sides[0] + sides[1] + sides[2]
    sign = np.sign(area)
    inside = (sides[0] * sign >= 0) & (sides[1] * sign >= 0) & (sides[2] * sign >= 0) & (area != 0)
    z = vertices[:, 2][faces[face[inside]]]
    weights = np.stack([side[inside] for side in sides], axis=1) / area[inside, None]
    return row[inside] * (1 << 20) + column[inside], face[inside], np.einsum("ij,ij->i", weights, z)
