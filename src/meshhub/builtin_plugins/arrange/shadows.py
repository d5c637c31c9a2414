"""Shadows of objects on the bed: which cells of a grid lie below an object."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64

Cells = NDArray[np.bool_]
"""Grid of cells, (rows along Y, columns along X)."""

CHUNK_STRIPS = 1 << 20
"""Strips of triangles per pass; bounds the memory."""

ROUNDING_RATIO = 1e-6
"""Part of a cell that rounding may add to a size: a side of the bed's own length still fits."""


def find_shape(triangles: Float64, cell: float) -> tuple[int, int]:
    """Return the rows and columns of a shadow; arguments as in `draw_shadow`."""
    columns, rows = np.maximum(np.ceil(triangles.max(axis=(0, 1)) / cell - ROUNDING_RATIO), 1).astype(int).tolist()
    return rows, columns


def draw_shadow(triangles: Float64, cell: float) -> Cells:
    """Return the cells that a shadow touches, in a grid that begins at X = Y = 0.

    A cell that is touched at all counts, so shadows are never farther apart than their objects.

    Args:
        triangles: (m, 3, 2) corners seen from above, in mm; none is negative.
        cell: Side of a cell, in mm.
    """
    rows, columns = find_shape(triangles, cell)
    corners = triangles / cell
    bottom = np.clip(np.floor(corners[:, :, 1].min(axis=1) + ROUNDING_RATIO).astype(np.intp), 0, rows - 1)
    top = np.clip(np.ceil(corners[:, :, 1].max(axis=1) - ROUNDING_RATIO).astype(np.intp) - 1, bottom, rows - 1)
    changes = np.zeros((rows, columns + 1), np.int32)
    ends = np.cumsum(top - bottom + 1)
    start = 0
    while start < len(corners):
        begun = ends[start - 1] if start else 0
        stop = max(int(np.searchsorted(ends, begun + CHUNK_STRIPS, side="right")), start + 1)
        chosen = slice(start, stop)
        _add_strips(changes, corners[chosen], bottom[chosen], top[chosen])
        start = stop
    covered: Cells = np.cumsum(changes[:, :-1], axis=1) > 0
    return covered


def _add_strips(changes: NDArray[np.int32], corners: Float64, bottom: NDArray[np.intp], top: NDArray[np.intp]) -> None:
    """Add the range of columns that each triangle touches in each row: +1 where it begins, -1 behind its end."""
    counts = top - bottom + 1
    triangle = np.repeat(np.arange(len(corners)), counts)
    row = np.arange(len(triangle)) - np.repeat(np.cumsum(counts) - counts, counts) + bottom[triangle]
    corner = corners[triangle]
    following = np.roll(corner, -1, axis=1)
    low, high = np.full(len(row), np.inf), np.full(len(row), -np.inf)
    # the part of an edge within the row, which may be a point
    rise = following[:, :, 1] - corner[:, :, 1]
    with np.errstate(all="ignore"):
        at = (np.stack([row, row + 1], axis=1)[:, None, :] - corner[:, :, 1, None]) / rise[:, :, None]
    at.sort(axis=2)
    is_level = rise == 0
    inside = (corner[:, :, 1] >= row[:, None]) & (corner[:, :, 1] <= row[:, None] + 1)
    first = np.where(is_level, np.where(inside, 0.0, 2.0), np.maximum(at[:, :, 0], 0.0))
    last = np.where(is_level, np.where(inside, 1.0, -1.0), np.minimum(at[:, :, 1], 1.0))
    is_met = first <= last
    run = following[:, :, 0] - corner[:, :, 0]
    for place in (first, last):
        x = np.where(is_met, corner[:, :, 0] + np.where(is_met, place, 0.0) * run, np.nan)
        low = np.fmin(low, np.fmin.reduce(x, axis=1))
        high = np.fmax(high, np.fmax.reduce(x, axis=1))
    met = low <= high
    columns = changes.shape[1] - 1
    begin = np.clip(np.floor(low[met] + ROUNDING_RATIO).astype(np.intp), 0, columns - 1)
    end = np.clip(np.ceil(high[met] - ROUNDING_RATIO).astype(np.intp), begin + 1, columns)
    first_cell = row[met] * (columns + 1)
    # `bincount` takes a fifth of the time of `add.at`
    begun, ended = (np.bincount(first_cell + place, minlength=changes.size) for place in (begin, end))
    changes += (begun - ended).reshape(changes.shape).astype(np.int32)
