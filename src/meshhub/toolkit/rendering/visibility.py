"""Visible triangle of each sample: a scan conversion by numpy, without a Python loop over triangles.

Triangles are split into rows, rows into samples. A sample belongs to a triangle if its center is inside; of two
triangles that share a side exactly one owns a center on it, because both compute the same crossings.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Int32
from meshhub.toolkit.rendering.camera import Float32

CHUNK_FACES = 1 << 17
"""Triangles per pass; their arrays fit into the cache."""

CHUNK_SAMPLES = 1 << 21
"""Samples per pass; bounds the memory for large triangles."""

TILE_SAMPLES = 8
"""Side of the squares in which hidden triangles are found."""

_EMPTY = np.uint64(2**64 - 1)


class VisibleSamples(NamedTuple):
    """Samples that a triangle covers.

    position: (k,) index of the sample, row by row, ascending
    face:     (k,) visible face
    depth:    (k,) distance away from the viewer, in samples
    """

    position: NDArray[np.intp]
    face: NDArray[np.intp]
    depth: Float32


class _Rows(NamedTuple):
    """Rows of triangles: (r,) each.

    position: index of the first sample
    size:     number of samples
    face:     face
    depth:    depth of the first sample
    slope:    change of the depth per sample
    near:     least depth of the face
    far:      greatest depth of the face
    """

    position: NDArray[np.intp]
    size: Int32
    face: NDArray[np.intp]
    depth: Float32
    slope: Float32
    near: Float32
    far: Float32

    def between(self, first: int, last: int) -> _Rows:
        """Return some of the rows."""
        columns: list[Any] = [column[first:last] for column in self]
        return _Rows(*columns)


def find_visible(x: Float32, y: Float32, depth: Float32, faces: Int32, width: int, height: int) -> VisibleSamples:
    """Return the face that each sample shows; of faces at the same depth, the first one.

    Args:
        x: (n,) samples to the right.
        y: (n,) samples down.
        depth: (n,) depth away from the viewer in samples, at least 0, because only then the bits of two depths compare
            like the depths.
        faces: (m, 3) vertex indices.
        width: Samples of a row.
        height: Number of rows.
    """
    picture = _Picture(np.full(width * height, _EMPTY, np.uint64), width, height)
    back_facing = []
    for start in range(0, len(faces), CHUNK_FACES):
        number = np.arange(start, min(start + CHUNK_FACES, len(faces)), dtype=np.int32)
        corners = _Corners(*([values[faces[number, corner]] for corner in range(3)] for values in (x, y, depth)))
        # rows count downward, so a face that is counter-clockwise for the viewer has a negative area
        is_back = corners.area() > 0
        back_facing.append(number[is_back])
        _draw(picture, corners.chosen(~is_back), number[~is_back])
    behind = np.concatenate(back_facing or [np.empty(0, np.int32)])
    farthest = _farthest_by_tile(picture)
    for start in range(0, len(behind), CHUNK_FACES):
        number = behind[start : start + CHUNK_FACES]
        corners = _Corners(*([values[faces[number, corner]] for corner in range(3)] for values in (x, y, depth)))
        shown = ~_is_hidden(corners, farthest)
        _draw(picture, corners.chosen(shown), number[shown])
    position = np.flatnonzero(picture.keys != _EMPTY)
    visible = picture.keys[position]
    return VisibleSamples(
        position,
        (visible & np.uint64(0xFFFFFFFF)).astype(np.intp),
        (visible >> np.uint64(32)).astype(np.uint32).view(np.float32),
    )


class _Picture(NamedTuple):
    """Picture in progress; keys: (height * width,) depth and face of each sample in one number, the nearest first."""

    keys: NDArray[np.uint64]
    width: int
    height: int


class _Corners(NamedTuple):
    """Corners of triangles: three arrays for each coordinate."""

    x: list[Float32]
    y: list[Float32]
    depth: list[Float32]

    def chosen(self, mask: NDArray[Any]) -> _Corners:
        """Return some of the triangles."""
        return _Corners(*([values[mask] for values in columns] for columns in self))

    def area(self) -> Float32:
        """Return twice the signed areas."""
        x, y = self.x, self.y
        return (x[1] - x[0]) * (y[2] - y[0]) - (x[2] - x[0]) * (y[1] - y[0])


def _farthest_by_tile(picture: _Picture) -> Float32:
    """Return the greatest depth in each tile of TILE_SAMPLES × TILE_SAMPLES; infinite where a sample is empty."""
    rows, columns = -(-picture.height // TILE_SAMPLES), -(-picture.width // TILE_SAMPLES)
    depth = np.full((rows * TILE_SAMPLES, columns * TILE_SAMPLES), np.inf, np.float32)
    keys = picture.keys.reshape(picture.height, picture.width)
    bits = (keys >> np.uint64(32)).astype(np.uint32)
    depth[: picture.height, : picture.width] = np.where(keys == _EMPTY, np.float32(np.inf), bits.view(np.float32))
    by_row = np.maximum.reduce([depth[row::TILE_SAMPLES] for row in range(TILE_SAMPLES)])
    result: Float32 = np.maximum.reduce([by_row[:, column::TILE_SAMPLES] for column in range(TILE_SAMPLES)])
    return result


def _is_hidden(corners: _Corners, farthest: Float32) -> NDArray[np.bool_]:
    """Return which small triangles are behind everything in their tiles; False for large ones."""
    (left, right), (top, bottom) = ((_least(values), _greatest(values)) for values in (corners.x, corners.y))
    is_small = (right - left < TILE_SAMPLES) & (bottom - top < TILE_SAMPLES)
    columns, rows = (
        [np.clip(values / TILE_SAMPLES, 0, count - 1).astype(np.int32) for values in ends]
        for ends, count in (((left, right), farthest.shape[1]), ((top, bottom), farthest.shape[0]))
    )
    depth = _greatest([farthest[rows[0], columns[0]], farthest[rows[0], columns[1]], farthest[rows[1], columns[0]]])
    depth = np.maximum(depth, farthest[rows[1], columns[1]])
    result: NDArray[np.bool_] = is_small & (_least(corners.depth) > depth)
    return result


def _draw(picture: _Picture, corners: _Corners, number: Int32) -> None:
    """Draw triangles; number: (m,) their faces."""
    rows = _split_into_rows(corners, number, picture.width, picture.height)
    ends = np.cumsum(rows.size)
    first = 0
    while first < len(ends):
        done = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, done + CHUNK_SAMPLES, side="right")))
        _draw_rows(picture.keys, rows.between(first, last))
        first = last


def _split_into_rows(corners: _Corners, number: Int32, width: int, height: int) -> _Rows:
    """Return the rows of samples whose centers are inside the triangles."""
    top = _first_center(_least(corners.y), height)
    row_count = _first_center(_greatest(corners.y), height) - top
    drawn = np.flatnonzero(row_count > 0)
    top, row_count, number = top[drawn], row_count[drawn], number[drawn]
    xs, ys, zs = corners.chosen(drawn)
    slope_x, slope_y = _depth_slopes(xs, ys, zs)
    start_depth = zs[0] - slope_x * xs[0] - slope_y * ys[0]
    near, far = _least(zs), _greatest(zs)
    _sort_corners(xs, ys)
    with np.errstate(divide="ignore", invalid="ignore"):
        long, upper, lower = ((xs[end] - xs[begin]) / (ys[end] - ys[begin]) for begin, end in ((0, 2), (0, 1), (1, 2)))
    owner = np.repeat(np.arange(len(drawn), dtype=np.int32), row_count)
    row = np.arange(len(owner), dtype=np.int32) - np.repeat(
        np.cumsum(row_count, dtype=np.int32) - row_count - top, row_count
    )
    center = row.astype(np.float32) + np.float32(0.5)
    on_long = xs[0][owner] + (center - ys[0][owner]) * long[owner]
    is_upper = center < ys[1][owner]
    begin_x, begin_y = (np.where(is_upper, values[0][owner], values[1][owner]) for values in (xs, ys))
    on_short = begin_x + (center - begin_y) * np.where(is_upper, upper[owner], lower[owner])
    left = _first_center(np.minimum(on_long, on_short), width)
    count = _first_center(np.maximum(on_long, on_short), width) - left
    kept = np.flatnonzero(count > 0)
    owner, left, center = owner[kept], left[kept], center[kept]
    return _Rows(
        row[kept] * width + left,
        count[kept],
        number[owner].astype(np.uint32),
        start_depth[owner] + slope_y[owner] * center + slope_x[owner] * (left.astype(np.float32) + np.float32(0.5)),
        slope_x[owner],
        near[owner],
        far[owner],
    )


def _least(corners: list[Float32]) -> Float32:
    return np.minimum(np.minimum(corners[0], corners[1]), corners[2])


def _greatest(corners: list[Float32]) -> Float32:
    return np.maximum(np.maximum(corners[0], corners[1]), corners[2])


def _first_center(edge: Float32, limit: int) -> Int32:
    """Return the first sample whose center is not before an edge, within 0 … limit."""
    center: Int32 = np.minimum(np.maximum(np.ceil(edge - np.float32(0.5)), 0), limit).astype(np.int32)
    return center


def _depth_slopes(xs: list[Float32], ys: list[Float32], zs: list[Float32]) -> tuple[Float32, Float32]:
    """Return the change of the depth per sample to the right and down; 0 for triangles seen from the side."""
    ax, ay, az = xs[1] - xs[0], ys[1] - ys[0], zs[1] - zs[0]
    bx, by, bz = xs[2] - xs[0], ys[2] - ys[0], zs[2] - zs[0]
    area = ax * by - bx * ay
    inverse = np.divide(1, area, out=np.zeros_like(area), where=area != 0)
    return (az * by - bz * ay) * inverse, (ax * bz - bx * az) * inverse


def _sort_corners(xs: list[Float32], ys: list[Float32]) -> None:
    """Sort the corners of each triangle from top to bottom."""
    for first, second in ((0, 1), (1, 2), (0, 1)):
        swapped = ys[first] > ys[second]
        for values in (xs, ys):
            values[first], values[second] = (
                np.where(swapped, values[second], values[first]),
                np.where(swapped, values[first], values[second]),
            )


def _draw_rows(keys: NDArray[np.uint64], rows: _Rows) -> None:
    """Draw the samples of rows, except where the picture already has nearer ones."""
    owner = np.repeat(np.arange(len(rows.size), dtype=np.int32), rows.size)
    step = np.arange(len(owner), dtype=np.int32) - np.repeat(
        np.cumsum(rows.size, dtype=np.int32) - rows.size, rows.size
    )
    depth = rows.depth[owner] + step.astype(np.float32) * rows.slope[owner]
    # the slopes of narrow triangles are inaccurate
    depth = np.minimum(np.maximum(depth, rows.near[owner]), rows.far[owner])
    key = depth.view(np.uint32).astype(np.uint64)
    key <<= np.uint64(32)
    key |= rows.face[owner]
    np.minimum.at(keys, rows.position[owner] + step, key)
