"""Marks in pictures: lines and faces of defects, and circles around places."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64, UInt8
from meshhub.toolkit.geometry import IntIndex
from meshhub.toolkit.rendering.camera import Float32
from meshhub.toolkit.rendering.lettering import blend_text, draw_text, text_width
from meshhub.toolkit.rendering.visibility import CHUNK_SAMPLES, VisibleSamples, find_visible

DEPTH_TOLERANCE_SAMPLES = 4.0
"""Samples by which a mark may lie behind the visible surface, whose depth is rounded."""

HIDDEN_STEP = 8
"""Samples between the dots of a line that is behind a surface."""

MIN_RING_PIXELS = 9
"""Radius of the smallest circle around a place, for a picture with letters of scale 1."""

MAX_RING_RATIO = 0.2
"""Radius per side of the picture from which a place is not circled, because it can be seen without."""


MARK_PIXELS = 10
"""Radius of a number, for letters of scale 1."""

MARK_INK, WHITE = (176, 0, 58), (255, 255, 255)
"""Colors of numbers: a red that neither the model nor a scale has."""

MAX_MARK_RINGS, MARK_TURNS = 16, 12
"""Distances and directions in which a number looks for a free place."""


def find_marked(
    positions: Sequence[Float32], visible: VisibleSamples, shape: tuple[int, int], width: int
) -> NDArray[np.intp]:
    """Return the samples of edges or faces: all of what is visible, and dots where an edge is hidden.

    Args:
        positions: Samples to the right, down, and depth, (k, 2) of edges or (k, 3) of faces each.
        visible: Visible samples of the model.
        shape: Height and width of the picture in samples.
        width: Samples across a line.
    """
    depth = np.full(shape[0] * shape[1], np.inf, np.float32)
    depth[visible.position] = visible.depth
    if positions[0].shape[1] == 3:
        count = len(positions[0])
        x, y, z = (values.ravel() for values in positions)
        faces = np.arange(3 * count, dtype=np.int32).reshape(-1, 3)
        drawn = find_visible(x, y, z, faces, shape[1], shape[0])
        return drawn.position[drawn.depth <= depth[drawn.position] + DEPTH_TOLERANCE_SAMPLES]
    mask = np.zeros(shape, np.bool_)
    for column, row, behind in _walk(positions):
        inside = (column >= 0) & (column < shape[1]) & (row >= 0) & (row < shape[0])
        at = row[inside] * shape[1] + column[inside]
        is_shown = behind[inside] <= depth[at] + DEPTH_TOLERANCE_SAMPLES
        is_shown |= (row[inside] + column[inside]) % HIDDEN_STEP < 2
        mask.ravel()[at[is_shown]] = True
    return np.flatnonzero(_widen(mask, width))


def find_hidden(centers: Float64, depth: Float32, visible: VisibleSamples, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Return which places (q, 2), columns and rows in samples, are behind the visible surface."""
    surface = np.full(shape[0] * shape[1], np.inf, np.float32)
    surface[visible.position] = visible.depth
    column, row = (np.clip(centers[:, axis].astype(np.intp), 0, shape[1 - axis] - 1) for axis in (0, 1))
    result: NDArray[np.bool_] = depth > surface[row * shape[1] + column]
    return result


def _walk(positions: Sequence[Float32]) -> list[tuple[IntIndex, IntIndex, Float32]]:
    """Return columns, rows and depths of points along edges, a sample apart, in passes of about CHUNK_SAMPLES."""
    x, y, _ = positions
    count = np.ceil(np.maximum(np.abs(x[:, 1] - x[:, 0]), np.abs(y[:, 1] - y[:, 0]))).astype(np.int64) + 1
    passes = np.cumsum(count) // CHUNK_SAMPLES
    result = []
    for number in range(int(passes.max(initial=-1)) + 1):
        edges = np.flatnonzero(passes == number)
        owner = np.repeat(edges, count[edges])
        step = np.arange(len(owner)) - np.repeat(np.cumsum(count[edges]) - count[edges], count[edges])
        share = (step / np.maximum(count[owner] - 1, 1)).astype(np.float32)
        column, row, depth = (values[owner, 0] + share * (values[owner, 1] - values[owner, 0]) for values in positions)
        result.append((np.floor(column).astype(np.intp), np.floor(row).astype(np.intp), depth))
    return result


def _widen(mask: NDArray[np.bool_], width: int) -> NDArray[np.bool_]:
    """Return a mask in which each sample became a square of `width` samples."""
    before, after = (width - 1) // 2, width // 2
    for axis in (0, 1):
        padded = np.pad(mask, [(after, before) if axis == each else (0, 0) for each in (0, 1)])
        size = mask.shape[axis]
        mask = np.logical_or.reduce([padded.take(range(shift, shift + size), axis) for shift in range(width)])
    return mask


def draw_rings(pixels: UInt8, centers: Float64, radii: Float64, color: tuple[int, int, int], scale: int) -> None:
    """Circle places, however small they are.

    Args:
        pixels: (height, width, 4) picture, changed in place.
        centers: (q, 2) columns and rows.
        radii: (q,) pixels.
        color: Color of the circles.
        scale: Scale of the letters.
    """
    for (column, row), radius in zip(centers.tolist(), radii.tolist(), strict=True):
        if radius <= MAX_RING_RATIO * min(pixels.shape[:2]):
            ring = max(radius, MIN_RING_PIXELS * scale)
            draw_disk(pixels, (column, row), ring + 0.75 * scale, color, ring - 0.75 * scale)


def draw_numbers(pixels: UInt8, centers: Float64, is_hidden: NDArray[np.bool_], scale: int) -> None:
    """Number places 1, 2, …; a number that would cover another one stands beside its place, with a line to it.

    Args:
        pixels: (height, width, 4) picture, changed in place.
        centers: (q, 2) columns and rows.
        is_hidden: (q,) whether a place is behind the surface.
        scale: Scale of the letters.
    """
    radius = MARK_PIXELS * scale
    places: list[tuple[float, float]] = []
    for column, row in centers.tolist():
        places.append(_find_free_place((column, row), places, radius, (pixels.shape[1], pixels.shape[0])))
    for (column, row), place in zip(centers.tolist(), places, strict=True):
        steps = np.linspace(0, 1, max(2, int(np.hypot(place[0] - column, place[1] - row))))
        for share in steps.tolist():
            point = column + share * (place[0] - column), row + share * (place[1] - row)
            draw_disk(pixels, point, 0.6 * scale, MARK_INK)
        draw_disk(pixels, (column, row), 1.6 * scale, MARK_INK)
    for number, (place, hidden) in enumerate(zip(places, is_hidden.tolist(), strict=True), 1):
        draw_disk(pixels, place, radius, WHITE)
        draw_disk(pixels, place, radius - scale, MARK_INK)
        if hidden:
            draw_disk(pixels, place, radius - 2 * scale, WHITE)
        text = str(number)
        coverage = draw_text(text, scale)[: 7 * scale, : text_width(text, scale) - scale]
        top, left = round(place[1] - coverage.shape[0] / 2), round(place[0] - coverage.shape[1] / 2)
        coverage = coverage[max(0, -top) :, max(0, -left) :]
        area = pixels[max(0, top) :, max(0, left) :][: coverage.shape[0], : coverage.shape[1]]
        blend_text(area, coverage, MARK_INK if hidden else WHITE)


def _find_free_place(
    center: tuple[float, float], taken: list[tuple[float, float]], radius: float, size: tuple[int, int]
) -> tuple[float, float]:
    """Return the position nearest to a place at which its number covers no other one and is in the picture."""
    for distance in range(MAX_MARK_RINGS):
        for turn in range(MARK_TURNS if distance else 1):
            angle = 2 * np.pi * turn / MARK_TURNS
            reach = 1.2 * radius * distance
            column, row = center[0] + reach * np.sin(angle), center[1] - reach * np.cos(angle)
            is_inside = radius <= column <= size[0] - radius and radius <= row <= size[1] - radius
            if is_inside and all(np.hypot(column - x, row - y) > 2 * radius for x, y in taken):
                return float(column), float(row)
    return center


def draw_disk(
    pixels: UInt8, center: tuple[float, float], radius: float, color: tuple[int, int, int], inner: float = 0.0
) -> None:
    """Draw a disk, or a ring with an inner radius, with smooth borders and clipped to the picture."""
    column, row = center
    top, left = max(0, int(row - radius - 1)), max(0, int(column - radius - 1))
    area = pixels[top : max(top, int(row + radius + 2)), left : max(left, int(column + radius + 2))]
    if area.size == 0:
        return
    rows, columns = np.indices(area.shape[:2]) + 0.5
    distance = np.hypot(rows + top - row, columns + left - column)
    share = np.clip(radius - distance + 0.5, 0, 1) * (np.clip(distance - inner + 0.5, 0, 1) if inner else 1.0)
    target = np.array([*color, 255.0])
    area[:] = np.rint(area + (target - area) * share[..., None]).astype(np.uint8)
