"""Triangulation of planar holes in their plane; an opening with islands is one hole."""

from __future__ import annotations

import numpy as np
from manifold3d import triangulate
from numpy.typing import NDArray

from meshhub.builtin_plugins.repair.triangulate import MAX_CELLS
from meshhub.model.scene import Float64
from meshhub.toolkit.topology import Index

FLATNESS_RATIO = 1e-3
"""Distance from the plane per size of the loop; a loop within it is planar, because files round coordinates."""

MAX_PARALLEL_COSINE = -0.999
"""Cosine of the angle between two normals; below it they are opposite, within 2.6°."""

MAX_SHORT_LOOP = 24
"""Edges of a flat loop up to which the triangulation of least area is as fast, and its triangles are better; corners of
a loop in several planes, which bounds the time to search for the chords between them.
"""

MAX_TWO_FOLD_CORNERS = 12
"""Corners of a loop in three planes; each chord is tried with each other one."""

STRAIGHT_COSINE = 1 - 1e-6
"""Cosine of a turn above which a point is not a corner; 0.08°."""

MAX_TESTED_COUNT = 64
"""Largest loops that are tested as frames of others, and links between pieces that are tested, the largest first;
bounds the time on a mesh with thousands of holes."""


def triangulate_planar(
    points: Float64, begin: Index, is_free: NDArray[np.bool_]
) -> tuple[Index, Index, NDArray[np.bool_]]:
    """Triangulate the planar loops that are long or contain other loops.

    Args:
        points: (n, 3) positions, loop by loop; any length unit.
        begin: (l + 1,) position where each loop begins.
        is_free: (l,) loops that may have a chord between any two points.
    Returns:
        (t, 3) positions in `points`, (t,) loop of each triangle, and (l,) loops that are triangulated.
    """
    count = len(begin) - 1
    length = np.diff(begin)
    done = np.zeros(count, np.bool_)
    triangles: list[Index] = [np.empty((0, 3), np.intp)]
    owners: list[Index] = [np.empty(0, np.intp)]
    normal, center, is_flat = fit_planes(points, begin)
    groups = _group_by_frame(points, begin, normal, center, is_flat & is_free)
    grouped = {member for group in groups for member in group}
    long_loops = np.flatnonzero(is_flat & is_free & (length > MAX_SHORT_LOOP))
    groups += [[int(loop)] for loop in long_loops if int(loop) not in grouped]
    for group in groups:
        places = [np.arange(begin[loop], begin[loop + 1]) for loop in group]
        patch = _triangulate_in_plane(points, places, normal[group[0]])
        if patch is not None:
            triangles.append(patch)
            owners.append(np.full(len(patch), group[0]))
            done[group] = True
    return np.concatenate(triangles), np.concatenate(owners), done


def fit_planes(
    points: Float64, begin: Index, flatness: float = FLATNESS_RATIO
) -> tuple[Float64, Float64, NDArray[np.bool_]]:
    """Return the unit normal and the center of each loop, and whether it is flat, relative to its size."""
    length = np.diff(begin)
    loop = np.repeat(np.arange(len(length)), length)
    center = np.add.reduceat(points, begin[:-1]) / length[:, None]
    spread = points - center[loop]
    after = np.arange(len(points)) + 1
    after[begin[1:] - 1] = begin[:-1]
    normal = np.add.reduceat(np.cross(spread, spread[after]), begin[:-1])
    size = np.sqrt(np.maximum.reduceat((spread**2).sum(axis=1), begin[:-1]))
    doubled_area = np.linalg.norm(normal, axis=1)
    has_area = doubled_area > FLATNESS_RATIO * size**2
    normal = np.divide(normal, doubled_area[:, None], out=np.zeros_like(normal), where=has_area[:, None])
    height = np.maximum.reduceat(np.abs(np.einsum("ij,ij->i", spread, normal[loop])), begin[:-1])
    return normal, center, has_area & (height <= flatness * size)


def split_at_folds(points: Float64, chords: set[tuple[int, int]], folds: int = 2) -> list[Index]:
    """Divide a loop in several planes, as that of two missing sides of a box, into flat loops.

    Args:
        points: (n, 3) corners of the loop.
        chords: Pairs of positions, the lower first, that no fold may connect.
        folds: Maximum number of folds.
    Returns:
        (k,) positions of each flat loop; of all divisions the one with the fewest folds, then of the least area. Empty
        if there is none.
    """
    along = np.roll(points, -1, axis=0) - points
    along /= np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-300)
    corners = np.flatnonzero(np.einsum("ij,ij->i", along, np.roll(along, 1, axis=0)) < STRAIGHT_COSINE)
    if folds == 0 or not 6 <= len(corners) <= MAX_SHORT_LOOP:
        return []
    first, second = np.triu_indices(len(corners), 2)
    first, second = corners[first], corners[second]
    order = np.arange(len(points))
    inner = [order[i : j + 1] for i, j in zip(first, second, strict=True)]
    outer = [np.concatenate([order[j:], order[: i + 1]]) for i, j in zip(first, second, strict=True)]
    begin = np.cumsum([0, *(len(side) for side in (*inner, *outer))])
    is_flat = fit_planes(points[np.concatenate([*inner, *outer])], begin)[2].reshape(2, -1)
    is_free = np.array([pair not in chords for pair in zip(first.tolist(), second.tolist(), strict=True)], np.bool_)
    both = np.flatnonzero(is_flat.all(axis=0) & is_free)
    divisions = [[inner[place], outer[place]] for place in both]
    if not divisions and len(corners) <= MAX_TWO_FOLD_CORNERS:
        for place in np.flatnonzero(is_flat.any(axis=0) & is_free).tolist():
            flat, rest = (inner, outer) if is_flat[0, place] else (outer, inner)
            split = split_at_folds(points[rest[place]], set(), folds - 1)
            if split:
                divisions.append([flat[place], *(rest[place][part] for part in split)])
    return min(divisions, key=lambda parts: sum(_measure_area(points[part]) for part in parts), default=[])


def _measure_area(loop: Float64) -> float:
    """Return the area of a flat loop (n, 3)."""
    spread = loop - loop.mean(axis=0)
    return float(np.linalg.norm(np.cross(spread, np.roll(spread, -1, axis=0)).sum(axis=0)))


def _group_by_frame(
    points: Float64, begin: Index, normal: Float64, center: Float64, is_flat: NDArray[np.bool_]
) -> list[list[int]]:
    """Group each outer loop with the opposite loops inside it, the outer loop first.

    Together they bound one missing face with openings: a ring is one hole, not two.
    """
    which = np.flatnonzero(is_flat)
    if len(which) < 2:
        return []
    low, high = (np.minimum.reduceat(points, begin[:-1]), np.maximum.reduceat(points, begin[:-1]))
    extent = np.linalg.norm(high - low, axis=1)
    largest = which[np.argsort(-extent[which], kind="stable")]
    parent = np.full(len(extent), -1, np.intp)
    for frame in largest[:MAX_TESTED_COUNT]:
        slack = FLATNESS_RATIO * extent[frame]
        inside = is_flat & (normal @ normal[frame] < MAX_PARALLEL_COSINE) & (extent < extent[frame])
        inside &= np.abs((center - center[frame]) @ normal[frame]) <= slack
        inside &= (low >= low[frame] - slack).all(axis=1) & (high <= high[frame] + slack).all(axis=1)
        near = np.flatnonzero(inside)
        if len(near):
            axes = _plane_axes(normal[frame])
            ring = points[begin[frame] : begin[frame + 1]] @ axes
            within = _is_in_polygon(ring, points[begin[near]] @ axes)
            parent[near[within]] = frame  # smaller frames come later, so the smallest one wins
    frames = [int(frame) for frame in np.unique(parent[parent >= 0]) if parent[frame] < 0]
    return [[frame, *np.flatnonzero(parent == frame).tolist()] for frame in frames]


def _plane_axes(normal: Float64) -> Float64:
    """Return (3, 2) axes of the plane; a loop around the normal is counter-clockwise in them."""
    least = np.eye(3)[int(np.abs(normal).argmin())]
    first = np.cross(least, normal)
    first /= np.linalg.norm(first)
    return np.stack([first, np.cross(normal, first)], axis=1)


def _is_in_polygon(ring: Float64, points: Float64) -> NDArray[np.bool_]:
    """Return which points (q, 2) are inside a polygon (n, 2), by the parity of crossings."""
    after = np.roll(ring, -1, axis=0)
    inside = np.zeros(len(points), np.bool_)
    step = max(1, MAX_CELLS // len(ring))
    for start in range(0, len(points), step):
        x, y = (points[start : start + step, axis][:, None] for axis in range(2))
        spans = (ring[:, 1] > y) != (after[:, 1] > y)
        rise = np.where(after[:, 1] == ring[:, 1], 1, after[:, 1] - ring[:, 1])
        crossing = ring[:, 0] + (y - ring[:, 1]) / rise * (after[:, 0] - ring[:, 0])
        inside[start : start + step] = (spans & (x < crossing)).sum(axis=1) % 2 == 1
    return inside


def _triangulate_in_plane(points: Float64, places: list[Index], normal: Float64) -> Index | None:
    """Return (t, 3) positions, or None if the loops intersect in the plane and triangles would overlap."""
    axes = _plane_axes(normal)
    place = np.concatenate(places)
    flat = points[place] @ axes
    triangles = np.asarray(triangulate([points[loop] @ axes for loop in places])).astype(np.intp)
    expected = len(place) + 2 * (len(places) - 1) - 2
    if len(triangles) != expected:
        return None
    a, b, c = (flat[triangles[:, corner]] for corner in range(3))
    doubled_area = (b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1]) - (b[:, 1] - a[:, 1]) * (c[:, 0] - a[:, 0])
    if doubled_area.min() < -FLATNESS_RATIO * np.abs(doubled_area).sum() / len(doubled_area):
        return None
    patch: Index = place[triangles]
    return patch
