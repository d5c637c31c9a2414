"""Printed lines as closed tubes of triangles: four or six corners around each point of a line."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64, Int32, Mesh, read_only
from meshhub_gcode.words import Index

_MIN_TURN_COSINE = -0.2
"""Cosine of the sharpest turn inside a tube; at sharper ones it ends, because its corner would reach too far."""

_MAX_WIDTH_RATIO = 20.0
"""Largest ratio of the width of a line to its height; with more filament, it is a blob."""

MAX_SLANTED_COUNT = 300_000
"""Lines up to which tubes have slanted sides; more would be over 4 million triangles, and finer than a picture."""


class Segments(NamedTuple):
    """Straight printed lines, in the order of printing.

    start, end: (n, 3) centers of their tops, in millimeters
    area:   (n,) square millimeters of their cross section
    height: (n,) millimeters
    group:  (n,) number of the tube's mesh
    """

    start: Float64
    end: Float64
    area: Float64
    height: Float64
    group: Index

    def choose(self, chosen: NDArray[np.bool_]) -> Segments:
        """Return some of the lines."""
        start, end, area, height, group = self
        return Segments(start[chosen], end[chosen], area[chosen], height[chosen], group[chosen])


def join_straight(segments: Segments, tolerance_mm: float) -> Segments:
    """Join neighbors whose common point lies on the straight line between the others, within a tolerance.

    Every second point is tried at a time, with half of the tolerance that is left, so that the sum stays within it.
    """
    allowed = tolerance_mm
    while len(segments.start) > 1:
        allowed /= 2
        is_joined = _is_continued(segments)
        first, middle, last = segments.start[:-1], segments.end[:-1], segments.end[1:]
        along = last - first
        length = np.linalg.norm(along, axis=1)
        offset = middle - first
        share = (offset * along).sum(axis=1) / np.maximum(length, 1e-12) ** 2
        distance = np.linalg.norm(offset - along * share[:, None], axis=1)
        is_joined &= (distance <= allowed) & (share > 0) & (share < 1)
        # lines of different width stay apart
        is_joined &= np.abs(segments.area[1:] - segments.area[:-1]) <= 0.1 * segments.area[:-1]
        # of a run, every second pair
        run = np.arange(len(is_joined)) - np.maximum.accumulate(
            np.where(~is_joined, np.arange(1, len(is_joined) + 1), 0)
        )
        joined = np.flatnonzero(is_joined & (run % 2 == 0))
        if len(joined) <= len(segments.start) // 100:
            return segments
        weights = np.linalg.norm(segments.end - segments.start, axis=1)
        end, area = segments.end.copy(), segments.area.copy()
        volume = segments.area * weights
        area[joined] = (volume[joined] + volume[joined + 1]) / np.maximum(length[joined], 1e-12)
        end[joined] = segments.end[joined + 1]
        is_kept = np.ones(len(end), np.bool_)
        is_kept[joined + 1] = False
        segments = Segments(segments.start, end, area, segments.height, segments.group).choose(is_kept)
    return segments


def _is_continued(segments: Segments) -> NDArray[np.bool_]:
    """Return (n - 1,) whether the next line begins where one ends, at the same height and in the same mesh."""
    is_continued: NDArray[np.bool_] = (
        (np.abs(segments.end[:-1] - segments.start[1:]) < 1e-6).all(axis=1)
        & (segments.group[1:] == segments.group[:-1])
        & (np.abs(segments.height[1:] - segments.height[:-1]) < 1e-6)
    )
    return is_continued


def build_tubes(segments: Segments, *, is_slanted: bool) -> Mesh:
    """Return the mesh of lines of one group. Their volume is that of the lines, but for their corners.

    Args:
        segments: Lines of one group, at least one.
        is_slanted: Whether lines that are wider than high have slanted sides, which touch at half height, so that
            neighbors stay visible; otherwise, their cross section is a rectangle, with a third fewer triangles.
    """
    direction = (segments.end - segments.start)[:, :2]
    direction = direction / np.linalg.norm(direction, axis=1)[:, None]
    is_inner = _is_continued(segments) & ((direction[1:] * direction[:-1]).sum(axis=1) > _MIN_TURN_COSINE)
    begins = np.concatenate([[True], ~is_inner])
    tube = np.cumsum(begins) - 1
    # each tube has one more point than lines
    points = np.empty((len(direction) + tube[-1] + 1, 3))
    start = np.arange(len(direction)) + tube
    points[start] = segments.start
    points[start + 1] = segments.end
    side = np.zeros((len(points), 2))
    widths = np.zeros((len(points), 3))
    height = np.minimum(segments.height, 1e3)
    width = np.minimum(segments.area / height, _MAX_WIDTH_RATIO * height)
    slant = np.clip((width - height) / 2, 0, height / 4) if is_slanted else np.zeros(len(width))
    normal = np.stack([-direction[:, 1], direction[:, 0]], axis=1)
    sizes = np.stack([width - slant, width + slant, height], axis=1)
    for place in (start, start + 1):
        side[place] += normal
        widths[place] += sizes
    uses = np.full(len(points), 2.0)
    uses[start[begins]] = 1
    uses[start[np.concatenate([begins[1:], [True]])] + 1] = 1
    side /= uses[:, None]
    # at a corner, the mean of two unit vectors has the cosine of half the turn as length, and the miter its inverse
    side /= (side**2).sum(axis=1)[:, None]
    narrow, wide, thickness = (widths / uses[:, None]).T

    outline = [(narrow, 1.0), (wide, 0.5), (narrow, 0.0), (-narrow, 0.0), (-wide, 0.5), (-narrow, 1.0)]
    if not is_slanted:
        outline = [corner for corner in outline if corner[1] != 0.5]
    sides = len(outline)
    corners = np.empty((len(points), sides, 3))
    for number, (half, drop) in enumerate(outline):
        corners[:, number, :2] = points[:, :2] + side * (half / 2)[:, None]
        corners[:, number, 2] = points[:, 2] - drop * thickness
    ring = np.arange(sides)
    following = (ring + 1) % sides
    one = (start * sides)[:, None]
    two = one + sides
    walls = np.stack(
        [
            np.stack([one + ring, one + following, two + following], axis=-1),
            np.stack([one + ring, two + following, two + ring], axis=-1),
        ],
        axis=2,
    ).reshape(-1, 3)
    fan = np.array([[0, number + 1, number] for number in range(1, sides - 1)])
    first = (start[begins] * sides)[:, None, None]
    last = ((start + 1)[np.concatenate([begins[1:], [True]])] * sides)[:, None, None]
    faces = np.concatenate([walls, (first + fan).reshape(-1, 3), (last + fan[:, ::-1]).reshape(-1, 3)])
    vertices = corners.reshape(-1, 3)
    return Mesh(read_only(vertices), read_only(_as_int32(faces)))


def _as_int32(faces: Index) -> Int32:
    return faces.astype(np.int32)
