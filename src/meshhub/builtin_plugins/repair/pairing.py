"""Which half-edges belong together, also where more than two faces meet at an edge."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from meshhub import topology
from meshhub.scene import Float64, Int32
from meshhub.topology import Index

_TICKS = float(1 << 20)
_ROUNDS = 64


def paired(points: Float64, faces: Int32, found: topology.Edges) -> tuple[Index, Index]:
    """The half-edges that are partners, (p,) and (p,); what is in neither is a border.

    Where more than two faces meet, the two partners are those that bound one wedge of matter: neighbours by
    angle, one running each way. What remains runs one way, and is paired in the order of the angle.
    """
    one, other = found.pairs()
    crowded = np.flatnonzero(found.size > 2)
    if len(crowded) == 0:
        return one, other
    group = np.repeat(np.arange(len(crowded)), found.size[crowded])
    offset = np.arange(len(group)) - np.repeat(
        np.concatenate([[0], np.cumsum(found.size[crowded])[:-1]]), found.size[crowded]
    )
    half = found.order[found.start[crowded][group] + offset]
    begin, end = (each[half] for each in topology.half_edges(faces))
    upward = begin < end
    angle = _angles(points, faces, half, begin, end, offset == 0)
    order = np.lexsort((half, ~upward, angle, group))
    half, group, upward = half[order], group[order], upward[order]
    ones, others = [one], [other]
    for _ in range(_ROUNDS):
        matched = _wedges(group, upward)
        if len(matched[0]) == 0:
            break
        ones.append(half[matched[0]])
        others.append(half[matched[1]])
        left = np.ones(len(half), np.bool_)
        left[matched[0]] = left[matched[1]] = False
        half, group, upward = half[left], group[left], upward[left]
    first = np.searchsorted(group, group)
    place = np.arange(len(group)) - first
    last = np.searchsorted(group, group, side="right")
    even = np.flatnonzero((place % 2 == 0) & (np.arange(len(group)) + 1 < last))
    ones.append(half[even])
    others.append(half[even + 1])
    return np.concatenate(ones), np.concatenate(others)


def _angles(
    points: Float64,
    faces: Int32,
    half: Index,
    begin: Int32,
    end: Int32,
    leads: NDArray[np.bool_],
) -> Int32:
    """The angle of each face around its edge, in ticks counted from the first face of the group.

    In whole ticks, so that faces upon each other have one angle also where rounding says otherwise.
    """
    low, high = points[np.minimum(begin, end)], points[np.maximum(begin, end)]
    axis = high - low
    axis /= np.maximum(np.linalg.norm(axis, axis=1, keepdims=True), 1e-300)
    opposite = points[faces.ravel()[topology.preceding(half)]] - low
    opposite -= axis * np.einsum("ij,ij->i", axis, opposite)[:, None]
    leader = np.maximum.accumulate(np.where(leads, np.arange(len(half)), 0))
    zero = opposite[leader]
    zero = zero / np.maximum(np.linalg.norm(zero, axis=1, keepdims=True), 1e-300)
    quarter = np.cross(axis, zero)
    angle = np.arctan2(np.einsum("ij,ij->i", opposite, quarter), np.einsum("ij,ij->i", opposite, zero))
    ticks = np.rint(angle * _TICKS).astype(np.int32)
    ticks[np.abs(ticks) <= 1] = 0
    turned: Int32 = np.where(ticks < 0, ticks + np.int32(round(2 * np.pi * _TICKS)), ticks)
    return turned


def _wedges(group: Index, upward: NDArray[np.bool_]) -> tuple[Index, Index]:
    """Neighbours in the circle of each group of which the first runs down and the second up.

    Matter lies behind a face: below, in angle, one that runs up, and above one that runs down.
    """
    if len(group) == 0:
        return np.empty(0, np.intp), np.empty(0, np.intp)
    places = np.arange(len(group))
    ends = np.concatenate([group[1:] != group[:-1], [True]])
    first = np.searchsorted(group, group)
    after = np.where(ends, first, places + 1)
    lower = np.flatnonzero(~upward & upward[after])
    return lower, after[lower]
