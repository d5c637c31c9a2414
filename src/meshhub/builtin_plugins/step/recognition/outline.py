"""The outlines of regions: loops of chains, where a chain is what two regions share between two corners."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.recognition.skin import Skin, lengths, sort_unique, sum_by_label
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex
from meshhub.toolkit.topology import cycles, following

Mask = NDArray[np.bool_]

_PINCHES = 32


@dataclass(frozen=True, eq=False)
class Outline:
    """Boundary half-edges of regions, in the order of their loops, cut into chains at corners.

    half:        (b,) half-edges, loop by loop, each loop begun at a corner
    chain_begin: (k + 1,) where each chain begins in `half`
    loop_begin:  (l + 1,) where each loop begins among the chains
    region:      (k,) the region that a chain bounds
    start, stop: (k,) the corners a chain leads from and to; equal for a chain that is a whole loop
    edge:        (k,) the edge that a chain is one side of
    forward:     (k,) whether the chain runs along its edge; each edge has exactly one that does
    """

    half: IntIndex
    chain_begin: IntIndex
    loop_begin: IntIndex
    region: NDArray[np.int32]
    start: IntIndex
    stop: IntIndex
    edge: IntIndex
    forward: Mask

    @property
    def edge_chain(self) -> IntIndex:
        """(e,) the forward chain of each edge."""
        return np.flatnonzero(self.forward)

    def inner_points(self, skin: Skin, edges: Mask) -> IntIndex:
        """The points on some edges between their corners."""
        chain = self.edge_chain[edges]
        size = self.chain_begin[chain + 1] - self.chain_begin[chain]
        owner = np.repeat(np.arange(len(chain)), size)
        place = np.arange(len(owner)) - np.repeat(np.cumsum(size) - size, size)
        made: IntIndex = skin.begin[self.half[self.chain_begin[chain][owner] + place]][place > 0].astype(np.intp)
        return made

    @property
    def loop_region(self) -> NDArray[np.int32]:
        """(l,) the region each loop bounds."""
        made: NDArray[np.int32] = self.region[self.loop_begin[:-1]]
        return made


def trace_outline(
    skin: Skin, region: NDArray[np.int32], curved: Mask, tolerance: float, kept: Mask | None = None
) -> Outline:
    """The outline of all regions of a skin.

    region: (m,) label of each face
    curved: (r,) whether a region's surface is other than a plane
    kept:   (p,) points that are corners in any case

    Between two planes every point that lies on the line between its neighbours is dissolved, when
    no third region meets there; along a curved region every such point is, whether straight or not.
    """
    half, loop_begin = _loops(skin, region)
    if len(half) == 0:
        return _chained(skin, region, half, half, loop_begin)
    begin = skin.begin
    twin = skin.twin[half]
    beyond = np.where(twin >= 0, region[twin // 3], -1)
    bends = curved[region[half // 3]] | ((beyond >= 0) & curved[beyond])
    corner = _corners(skin, half, loop_begin, bends, tolerance)
    if kept is not None:
        corner |= kept
    while True:
        rolled = _rolled(loop_begin, corner[begin[half]])
        bent = bends[rolled]
        ordered = half[rolled]
        starts = np.flatnonzero(corner[begin[ordered]])
        missing = _missing(skin, ordered, starts, loop_begin, bent, tolerance)
        if len(missing) == 0:
            break
        corner[missing] = True
    return _chained(skin, region, ordered, starts, loop_begin)


def _loops(skin: Skin, region: NDArray[np.int32]) -> tuple[IntIndex, IntIndex]:
    count = len(skin.twin)
    inside = (skin.twin >= 0) & (region[np.arange(count) // 3] == region[skin.twin // 3])
    bound = np.flatnonzero(~inside)
    after = following(bound)
    active = np.flatnonzero(inside[after])
    while len(active):
        after[active] = following(skin.twin[after[active]])
        active = active[inside[after[active]]]
    place = np.full(count, -1, np.intp)
    place[bound] = np.arange(len(bound))
    ahead = place[after]
    members, begin = cycles(ahead)
    for _ in range(_PINCHES):
        if not _parted(ahead, members, begin, skin.end[bound]):
            break
        members, begin = cycles(ahead)
    return bound[members], begin


def _parted(ahead: IntIndex, members: IntIndex, begin: IntIndex, end: NDArray[np.int32]) -> bool:
    """Part every loop in two at one point that it passes twice, in place; whether there was any.

    There a hole touches the outline, and CAD programs want them as loops of their own.
    ahead: the successor of each half-edge; end: the point it leads to
    """
    loop = np.repeat(np.arange(len(begin) - 1), np.diff(begin))
    point = end[members].astype(np.int64)
    order = np.lexsort((point, loop))
    again = (loop[order][1:] == loop[order][:-1]) & (point[order][1:] == point[order][:-1])
    first, second = order[:-1][again], order[1:][again]
    _, one, several = np.unique(loop[first], return_index=True, return_counts=True)
    # one in the middle: pieces of many points are halved, not parted from their ends one after the other
    one += several // 2
    a, b = members[first[one]], members[second[one]]
    ahead[a], ahead[b] = ahead[b], ahead[a]
    return len(one) > 0


def _corners(skin: Skin, half: IntIndex, loop_begin: IntIndex, bends: Mask, tolerance: float) -> Mask:
    """(p,) the points where an outline has a corner."""
    twin = skin.twin[half]
    once = (twin < 0) | (half < twin)
    count = len(skin.points)
    degree = np.bincount(skin.begin[half[once]], minlength=count) + np.bincount(skin.end[half[once]], minlength=count)
    corner: Mask = degree != 2
    before = np.arange(len(half)) - 1
    before[loop_begin[:-1]] = loop_begin[1:] - 1
    point = skin.begin[half]
    here = skin.points[point]
    back = here - skin.points[point[before]]
    ahead = skin.points[skin.end[half]] - here
    chord = lengths(back + ahead)
    straight = lengths(np.cross(back, ahead)) <= tolerance * chord
    straight &= np.einsum("ij,ij->i", back, ahead) > 0
    corner[point[~(straight | bends)]] = True
    # a loop without a corner gets its lowest point, which is the same seen from both sides
    bare = np.logical_or.reduceat(corner[point], loop_begin[:-1])
    corner[np.minimum.reduceat(point, loop_begin[:-1])[~bare]] = True
    return corner


def _rolled(loop_begin: IntIndex, mark: Mask) -> IntIndex:
    """An order that begins each loop at a corner."""
    size = np.diff(loop_begin)
    loop = np.repeat(np.arange(len(size)), size)
    first = loop_begin[:-1].copy()
    marked = np.flatnonzero(mark)[::-1]
    first[loop[marked]] = marked
    place = np.arange(len(loop)) - loop_begin[:-1][loop]
    shift = (first - loop_begin[:-1])[loop]
    order: IntIndex = loop_begin[:-1][loop] + (place + shift) % size[loop]
    return order


def _missing(
    skin: Skin, half: IntIndex, starts: IntIndex, loop_begin: IntIndex, bends: Mask, tolerance: float
) -> IntIndex:
    """Points that must become corners after all: too far off their chain's chord, or too few in their loop."""
    stops = np.append(starts[1:], len(half))
    last = stops - 1
    point = skin.begin[half]
    from_, to = skin.points[point[starts]], skin.points[skin.end[half[last]]]
    size = stops - starts
    chain = np.repeat(np.arange(len(starts)), size)
    chord = to - from_
    chord_length = lengths(chord)
    offset = skin.points[point] - from_[chain]
    direction = chord / np.where(chord_length > 0, chord_length, 1)[:, None]
    along = np.einsum("ij,ij->i", offset, direction[chain])
    off = lengths(offset - along[:, None] * direction[chain])
    # a chain of lines that is a whole loop has no chord: its farthest point becomes a corner
    off = np.where(bends, 0.0, off)
    farthest = np.maximum.reduceat(off, starts)
    bad = np.flatnonzero(farthest > tolerance)
    found: list[NDArray[np.int32]] = []
    if len(bad):
        at = np.flatnonzero((off == farthest[chain]) & (farthest > tolerance)[chain])
        found.append(point[at])
    chains_before = np.searchsorted(starts, loop_begin)
    corners = np.diff(chains_before)
    straight = ~np.logical_or.reduceat(bends, loop_begin[:-1])
    thin = straight & (corners < 3)
    if thin.any():
        loop = np.repeat(np.arange(len(corners)), np.diff(loop_begin))
        between = thin[loop]
        between[starts] = False
        found.append(point[between])
    return sort_unique(np.concatenate(found)) if found else np.empty(0, np.int32)


def _chained(skin: Skin, region: NDArray[np.int32], half: IntIndex, starts: IntIndex, loop_begin: IntIndex) -> Outline:
    last = np.append(starts, len(half))[1:] - 1
    place = np.full(len(skin.twin), -1, np.intp)
    place[half[starts]] = np.arange(len(starts))
    twin = skin.twin[half[last]]
    partner = np.where(twin >= 0, place[twin], -1)
    mine = np.arange(len(starts))
    forward = (partner < 0) | (mine < partner)
    edge = np.empty(len(starts), np.intp)
    edge[forward] = np.arange(int(forward.sum()))
    edge[~forward] = edge[partner[~forward]]
    chain_begin = np.append(starts, len(half))
    return Outline(
        half=half,
        chain_begin=chain_begin,
        loop_begin=np.searchsorted(starts, loop_begin),
        region=region[half[starts] // 3],
        start=skin.begin[half[starts]].astype(np.intp),
        stop=skin.end[half[last]].astype(np.intp),
        edge=edge,
        forward=forward,
    )


def signed_areas(skin: Skin, outline: Outline, normal: Float64) -> Float64:
    """(l,) twice the area each loop encloses, seen against its region's normal; holes are negative.

    normal: (r, 3).
    """
    half_loop = outline.chain_begin[outline.loop_begin]
    size = np.diff(half_loop)
    if len(size) == 0:
        return np.empty(0)
    loop = np.repeat(np.arange(len(size)), size)
    origin = skin.points[skin.begin[outline.half[half_loop[:-1]]]]
    a = skin.points[skin.begin[outline.half]] - origin[loop]
    b = skin.points[skin.end[outline.half]] - origin[loop]
    cross = np.einsum("ij,ij->i", np.cross(a, b), normal[outline.loop_region][loop])
    return sum_by_label(loop, cross, len(size))
