"""Support that a model needs on the bed: columns below its overhangs, measured on a grid."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.geometry import extremes, face_extremes, face_normals

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


Boxes = tuple[tuple[Float64, Float64], tuple[Float64, Float64]]
"""Lowest and highest X, and lowest and highest Y."""


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
    touches = face_extremes(vertices[:, 2], faces)[1] <= low[2] + layer_mm
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


def measure_boxes(vertices: Float64, faces: Int32) -> Boxes:
    """Return the lowest and the highest X of each face, and the lowest and the highest Y, (m,) each."""
    left, front = (face_extremes(vertices[:, axis], faces) for axis in range(2))
    return left, front


def cross_columns(
    vertices: Float64, faces: Int32, low: Float64, cell: float, boxes: Boxes | None = None
) -> tuple[NDArray[np.int64], NDArray[np.intp], Float64]:
    """Return the columns, faces and heights at which faces cross the columns of a grid, in no order.

    Args:
        vertices: (n, 3) positions.
        faces: (m, 3) indices into `vertices`.
        low: (2,) or (3,) lower corner of the grid.
        cell: Side of a cell.
        boxes: Result of `measure_boxes`, if the caller has it.
    Returns:
        (q,) row in the upper bits and column in the lower twenty bits of the cell; (q,) faces; (q,) Z.
    """
    (left, right), (front, back) = (
        [(side - low[axis]) / cell - _SHIFT[axis] for side in sides]
        for axis, sides in enumerate(measure_boxes(vertices, faces) if boxes is None else boxes)
    )
    left, front = np.ceil(left), np.ceil(front)
    # most faces of a fine mesh lie between the columns
    chosen = np.flatnonzero((left <= right) & (front <= back))
    first = np.stack([left[chosen], front[chosen]]).astype(np.int64)
    last = np.floor([right[chosen], back[chosen]]).astype(np.int64)
    width, depth = last - first + 1
    ends = np.cumsum(width * depth)
    flat = tuple((vertices[:, axis] - low[axis]) / cell - _SHIFT[axis] for axis in range(2))
    crossings = [(np.empty(0, np.int64), np.empty(0, np.intp), np.empty(0))]
    start = 0
    while start < len(chosen):
        done = ends[start - 1] if start else 0
        end = max(start + 1, int(np.searchsorted(ends, done + CHUNK_HITS, side="right")))
        part = slice(start, end)
        row, column, number = _list_cells(first[:, part], width[part], depth[part])
        columns, corner, height = _cross(vertices, faces[chosen[part]], flat, (row, column, number))
        crossings.append((columns, chosen[part][corner], height))
        start = end
    columns, face, height = (np.concatenate(arrays) for arrays in zip(*crossings, strict=True))
    return columns, face, height


def _list_cells(
    first: NDArray[np.int64], width: NDArray[np.int64], depth: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.intp]]:
    """Return rows, columns and numbers (q,) of the rectangles with a lowest column and row (2, k), and sides (k,)."""
    number = np.arange(len(width))
    if int(width.max()) == int(depth.max()) == 1:
        return first[1], first[0], number
    count = width * depth
    number = np.repeat(number, count)
    place = np.arange(len(number)) - np.repeat(np.cumsum(count) - count, count)
    row, column = np.divmod(place, width[number])
    return first[1][number] + row, first[0][number] + column, number


def _cross(
    vertices: Float64,
    faces: Int32,
    flat: tuple[Float64, ...],
    tries: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.intp]],
) -> tuple[NDArray[np.int64], NDArray[np.intp], Float64]:
    """Return the columns inside faces, with rows of `faces` and heights.

    Args:
        vertices: (n, 3) positions.
        faces: (k, 3)
        flat: X and Y of the vertices in cells, (n,) each.
        tries: Rows, columns and faces that are tried, (q,) each.
    """
    row, column, number = tries
    corners = [faces[:, corner][number] for corner in range(3)]
    x, y = ([values[corner] for corner in corners] for values in flat)
    sides = [
        (x[after] - x[before]) * (row - y[before]) - (y[after] - y[before]) * (column - x[before])
        for before, after in ((1, 2), (2, 0), (0, 1))
    ]
    area = sides[0] + sides[1] + sides[2]
    sign = np.sign(area)
    inside = np.flatnonzero((sides[0] * sign >= 0) & (sides[1] * sign >= 0) & (sides[2] * sign >= 0) & (area != 0))
    height = np.zeros(len(inside))
    for corner, side in zip(corners, sides, strict=True):
        height += vertices[corner[inside], 2] * (side[inside] / area[inside])
    return row[inside] * (1 << 20) + column[inside], number[inside], height
