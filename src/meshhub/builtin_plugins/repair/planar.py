"""Holes that lie in a plane: triangulated in it, an opening with islands in it as one."""

from __future__ import annotations

import numpy as np
from manifold3d import triangulate
from numpy.typing import NDArray

from meshhub.scene import Float64
from meshhub.topology import Index

FLAT = 1e-3
"""A loop is planar when no point is further from its plane than this share of its size."""

SHORT = 24
"""Shorter loops are better served, and as fast, by the triangulation of least area."""

MOST_FRAMES = 64
"""Of the loops in one plane, so many of the largest are looked at as frames of others."""


def planar_patches(points: Float64, begin: Index, free: NDArray[np.bool_]) -> tuple[Index, Index, NDArray[np.bool_]]:
    """Patches over planar loops that are long, or have other loops inside.

    points: (n, 3), loop by loop; begin: (l + 1,); free: (l,) which loops may have a chord anywhere.
    Returns (t, 3) places in `points`, the loop of each triangle, and which loops are done.
    """
    count = len(begin) - 1
    length = np.diff(begin)
    done = np.zeros(count, np.bool_)
    made: list[Index] = [np.empty((0, 3), np.intp)]
    owners: list[Index] = [np.empty(0, np.intp)]
    normal, offset, flat = _planes(points, begin)
    groups = _frames(points, begin, normal, offset, flat & free)
    framed = {member for group in groups for member in group}
    groups += [[int(lone)] for lone in np.flatnonzero(flat & free & (length > SHORT)) if int(lone) not in framed]
    for group in groups:
        places = [np.arange(begin[loop], begin[loop + 1]) for loop in group]
        triangles = _in_plane(points, places, normal[group[0]])
        if triangles is not None:
            made.append(triangles)
            owners.append(np.full(len(triangles), group[0]))
            done[group] = True
    return np.concatenate(made), np.concatenate(owners), done


def _planes(points: Float64, begin: Index) -> tuple[Float64, Float64, NDArray[np.bool_]]:
    """Unit normal and middle of each loop, and whether it is flat."""
    length = np.diff(begin)
    loop = np.repeat(np.arange(len(length)), length)
    middle = np.add.reduceat(points, begin[:-1]) / length[:, None]
    spread = points - middle[loop]
    after = np.arange(len(points)) + 1
    after[begin[1:] - 1] = begin[:-1]
    normal = np.add.reduceat(np.cross(spread, spread[after]), begin[:-1])
    size = np.sqrt(np.maximum.reduceat((spread**2).sum(axis=1), begin[:-1]))
    doubled_area = np.linalg.norm(normal, axis=1)
    wide = doubled_area > FLAT * size**2
    normal = np.divide(normal, doubled_area[:, None], out=np.zeros_like(normal), where=wide[:, None])
    height = np.maximum.reduceat(np.abs(np.einsum("ij,ij->i", spread, normal[loop])), begin[:-1])
    return normal, middle, wide & (height <= FLAT * size)


def _frames(
    points: Float64, begin: Index, normal: Float64, middle: Float64, flat: NDArray[np.bool_]
) -> list[list[int]]:
    """Loops with the loops that lie inside them and run the other way, the frame first.

    That is how a missing face with openings looks: a ring is one hole, not two.
    """
    which = np.flatnonzero(flat)
    if len(which) < 2:
        return []
    low, high = (np.minimum.reduceat(points, begin[:-1]), np.maximum.reduceat(points, begin[:-1]))
    extent = np.linalg.norm(high - low, axis=1)
    largest = which[np.argsort(-extent[which], kind="stable")]
    parent = np.full(len(extent), -1, np.intp)
    for frame in largest[:MOST_FRAMES]:
        slack = FLAT * extent[frame]
        inside = flat & (normal @ normal[frame] < -0.999) & (extent < extent[frame])
        inside &= np.abs((middle - middle[frame]) @ normal[frame]) <= slack
        inside &= (low >= low[frame] - slack).all(axis=1) & (high <= high[frame] + slack).all(axis=1)
        near = np.flatnonzero(inside)
        if len(near):
            across = _axes(normal[frame])
            ring = points[begin[frame] : begin[frame + 1]] @ across
            within = _in_polygon(ring, points[begin[near]] @ across)
            parent[near[within]] = frame  # smaller frames come later, so the nearest one wins
    frames = [int(frame) for frame in np.unique(parent[parent >= 0]) if parent[frame] < 0]
    return [[frame, *np.flatnonzero(parent == frame).tolist()] for frame in frames]


def _axes(normal: Float64) -> Float64:
    """(3, 2) two axes that span the plane, so that a loop that runs around the normal runs counter-clockwise."""
    least = np.eye(3)[int(np.abs(normal).argmin())]
    first = np.cross(least, normal)
    first /= np.linalg.norm(first)
    return np.stack([first, np.cross(normal, first)], axis=1)


def _in_polygon(ring: Float64, asked: Float64) -> NDArray[np.bool_]:
    after = np.roll(ring, -1, axis=0)
    inside = np.zeros(len(asked), np.bool_)
    step = max(1, 1_000_000 // len(ring))
    for start in range(0, len(asked), step):
        x, y = (asked[start : start + step, axis][:, None] for axis in range(2))
        spans = (ring[:, 1] > y) != (after[:, 1] > y)
        rise = np.where(after[:, 1] == ring[:, 1], 1, after[:, 1] - ring[:, 1])
        crossing = ring[:, 0] + (y - ring[:, 1]) / rise * (after[:, 0] - ring[:, 0])
        inside[start : start + step] = (spans & (x < crossing)).sum(axis=1) % 2 == 1
    return inside


def _in_plane(points: Float64, places: list[Index], normal: Float64) -> Index | None:
    """(t, 3) places, or None where the loops cross themselves in the plane, and no answer is without overlap."""
    across = _axes(normal)
    place = np.concatenate(places)
    flat = points[place] @ across
    triangles = np.asarray(triangulate([points[each] @ across for each in places])).astype(np.intp)
    expected = len(place) + 2 * (len(places) - 1) - 2
    if len(triangles) != expected:
        return None
    a, b, c = (flat[triangles[:, corner]] for corner in range(3))
    twice = (b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1]) - (b[:, 1] - a[:, 1]) * (c[:, 0] - a[:, 0])
    if twice.min() < -FLAT * np.abs(twice).sum() / len(twice):
        return None
    made: Index = place[triangles]
    return made
