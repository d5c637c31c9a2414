"""Outlines of regions: loops of chains; a chain is the common boundary of two regions between two corners."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.surfaces.arrays import expand_ranges, lengths, sort_unique, sum_by_label
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex
from meshhub.toolkit.topology import cycles, following

Mask = NDArray[np.bool_]

_MAX_SPLIT_ROUNDS = 32
"""Maximum rounds of splitting loops at points that they pass twice; each halves a loop, so 2³² points can be split."""


@dataclass(frozen=True, eq=False)
class Outline:
    """Boundary half-edges of regions in the order of their loops, cut into chains at corners.

    half:        (b,) half-edges, loop by loop; each loop begins at a corner
    chain_begin: (k + 1,) position in `half` where each chain begins
    loop_begin:  (l + 1,) chain with which each loop begins
    region:      (k,) region that a chain bounds
    start, stop: (k,) first and last corner of a chain, as points; equal for a chain that is a whole loop
    edge:        (k,) edge that a chain is one side of
    forward:     (k,) whether the chain runs along its edge; true for exactly one chain of each edge
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
        """(e,) forward chain of each edge."""
        return np.flatnonzero(self.forward)

    def inner_points(self, skin: Skin, edges: Mask) -> IntIndex:
        """Return the points between the corners of some edges; `edges` is an (e,) mask."""
        chain = self.edge_chain[edges]
        begin = self.chain_begin[chain]
        owner, place = expand_ranges(begin, self.chain_begin[chain + 1] - begin)
        points: IntIndex = skin.begin[self.half[place[place > begin[owner]]]].astype(np.intp)
        return points

    @property
    def loop_region(self) -> NDArray[np.int32]:
        """(l,) region that each loop bounds."""
        regions: NDArray[np.int32] = self.region[self.loop_begin[:-1]]
        return regions


def trace_outline(
    skin: Skin, region: NDArray[np.int32], curved: Mask, tolerance: float, kept: Mask | None = None
) -> Outline:
    """Trace the outlines of all regions, and choose their corners.

    A point where three regions meet is a corner. Between two planes, a point on the line between its neighbors is not a
    corner. Along a curved region, no other point is a corner, whether the outline is straight there or not.

    Args:
        skin: Mesh.
        region: (m,) region of each face.
        curved: (r,) whether the surface of a region is not a plane.
        tolerance: Maximum distance in millimeters of a point from the line between its neighbors.
        kept: (p,) points that are always corners.
    """
    half, loop_begin = _trace_loops(skin, region)
    if len(half) == 0:
        return _assemble(skin, region, half, half, loop_begin)
    begin = skin.begin
    twin = skin.twin[half]
    beyond = np.where(twin >= 0, region[twin // 3], -1)
    bends = curved[region[half // 3]] | ((beyond >= 0) & curved[beyond])
    is_corner = _find_corners(skin, half, loop_begin, bends, tolerance)
    if kept is not None:
        is_corner |= kept
    while True:
        order = _order_from_corners(loop_begin, is_corner[begin[half]])
        ordered, ordered_bends = half[order], bends[order]
        starts = np.flatnonzero(is_corner[begin[ordered]])
        missing = np.union1d(
            _points_off_chords(skin, ordered, starts, ordered_bends, tolerance),
            _points_of_thin_loops(skin, ordered, starts, loop_begin, ordered_bends),
        )
        if len(missing) == 0:
            break
        is_corner[missing] = True
    return _assemble(skin, region, ordered, starts, loop_begin)


def _trace_loops(skin: Skin, region: NDArray[np.int32]) -> tuple[IntIndex, IntIndex]:
    """Return the boundary half-edges loop by loop, and where each loop begins."""
    count = len(skin.twin)
    is_inner = (skin.twin >= 0) & (region[np.arange(count) // 3] == region[skin.twin // 3])
    boundary = np.flatnonzero(~is_inner)
    # turn around the end point, within the region, to the next boundary half-edge
    after = following(boundary)
    active = np.flatnonzero(is_inner[after])
    while len(active):
        after[active] = following(skin.twin[after[active]])
        active = active[is_inner[after[active]]]
    place = np.full(count, -1, np.intp)
    place[boundary] = np.arange(len(boundary))
    ahead = place[after]
    members, begin = cycles(ahead)
    for _ in range(_MAX_SPLIT_ROUNDS):
        if not _split_loops(ahead, members, begin, skin.end[boundary]):
            break
        members, begin = cycles(ahead)
    return boundary[members], begin


def _split_loops(ahead: IntIndex, members: IntIndex, begin: IntIndex, end: NDArray[np.int32]) -> bool:
    """Split each loop in two at one point that it passes twice, in place.

    At such a point a hole touches the outline; CAD programs expect separate loops.

    Args:
        ahead: (b,) successor of each half-edge; changed in place.
        members: (b,) half-edges loop by loop.
        begin: Where each loop begins in `members`.
        end: (b,) point to which each half-edge leads.
    Returns:
        Whether any loop was split.
    """
    loop = np.repeat(np.arange(len(begin) - 1), np.diff(begin))
    point = end[members].astype(np.int64)
    order = np.lexsort((point, loop))
    is_repeated = (loop[order][1:] == loop[order][:-1]) & (point[order][1:] == point[order][:-1])
    first, second = order[:-1][is_repeated], order[1:][is_repeated]
    _, chosen, repeats = np.unique(loop[first], return_index=True, return_counts=True)
    # the middle one halves loops with many such points; the first one would need a round for each point
    chosen += repeats // 2
    a, b = members[first[chosen]], members[second[chosen]]
    ahead[a], ahead[b] = ahead[b], ahead[a]
    return len(chosen) > 0


def _find_corners(skin: Skin, half: IntIndex, loop_begin: IntIndex, bends: Mask, tolerance: float) -> Mask:
    """Return the mask (p,) of the points where an outline has a corner; each loop has at least one."""
    twin = skin.twin[half]
    is_first = (twin < 0) | (half < twin)
    count = len(skin.points)
    degree = np.bincount(skin.begin[half[is_first]], minlength=count)
    degree += np.bincount(skin.end[half[is_first]], minlength=count)
    is_corner: Mask = degree != 2
    before = np.arange(len(half)) - 1
    before[loop_begin[:-1]] = loop_begin[1:] - 1
    point = skin.begin[half]
    here = skin.points[point]
    back = here - skin.points[point[before]]
    ahead = skin.points[skin.end[half]] - here
    chord = lengths(back + ahead)
    is_straight = lengths(np.cross(back, ahead)) <= tolerance * chord
    is_straight &= np.einsum("ij,ij->i", back, ahead) > 0
    is_corner[point[~(is_straight | bends)]] = True
    # a loop without a corner gets its lowest point, which is the same from both sides
    has_corner = np.logical_or.reduceat(is_corner[point], loop_begin[:-1])
    is_corner[np.minimum.reduceat(point, loop_begin[:-1])[~has_corner]] = True
    return is_corner


def _order_from_corners(loop_begin: IntIndex, is_corner: Mask) -> IntIndex:
    """Return an order of the half-edges that begins each loop at its first corner."""
    size = np.diff(loop_begin)
    loop = np.repeat(np.arange(len(size)), size)
    first = loop_begin[:-1].copy()
    corners = np.flatnonzero(is_corner)[::-1]
    first[loop[corners]] = corners
    place = np.arange(len(loop)) - loop_begin[:-1][loop]
    shift = (first - loop_begin[:-1])[loop]
    order: IntIndex = loop_begin[:-1][loop] + (place + shift) % size[loop]
    return order


def _points_off_chords(skin: Skin, half: IntIndex, starts: IntIndex, bends: Mask, tolerance: float) -> IntIndex:
    """Return the farthest point of each straight chain that has a point too far off its chord.

    A chain that is a whole loop has no chord, so its point that is farthest from the start becomes a corner.
    """
    stops = np.append(starts[1:], len(half))
    point = skin.begin[half]
    first, last = skin.points[point[starts]], skin.points[skin.end[half[stops - 1]]]
    chain = np.repeat(np.arange(len(starts)), stops - starts)
    chord = last - first
    chord_length = lengths(chord)
    offset = skin.points[point] - first[chain]
    direction = chord / np.where(chord_length > 0, chord_length, 1)[:, None]
    along = np.einsum("ij,ij->i", offset, direction[chain])
    off = np.where(bends, 0.0, lengths(offset - along[:, None] * direction[chain]))
    farthest = np.maximum.reduceat(off, starts)
    return sort_unique(point[(off == farthest[chain]) & (farthest > tolerance)[chain]])


def _points_of_thin_loops(skin: Skin, half: IntIndex, starts: IntIndex, loop_begin: IntIndex, bends: Mask) -> IntIndex:
    """Return all points of the straight loops that have fewer than three corners."""
    corners = np.diff(np.searchsorted(starts, loop_begin))
    is_thin = ~np.logical_or.reduceat(bends, loop_begin[:-1]) & (corners < 3)
    is_missing = np.repeat(is_thin, np.diff(loop_begin))
    is_missing[starts] = False
    return sort_unique(skin.begin[half[is_missing]])


def _assemble(skin: Skin, region: NDArray[np.int32], half: IntIndex, starts: IntIndex, loop_begin: IntIndex) -> Outline:
    """Number the edges of the chains that begin at `starts`, and collect the outline."""
    last = np.append(starts, len(half))[1:] - 1
    place = np.full(len(skin.twin), -1, np.intp)
    place[half[starts]] = np.arange(len(starts))
    twin = skin.twin[half[last]]
    partner = np.where(twin >= 0, place[twin], -1)
    forward = (partner < 0) | (np.arange(len(starts)) < partner)
    edge = np.empty(len(starts), np.intp)
    edge[forward] = np.arange(int(forward.sum()))
    edge[~forward] = edge[partner[~forward]]
    return Outline(
        half=half,
        chain_begin=np.append(starts, len(half)),
        loop_begin=np.searchsorted(starts, loop_begin),
        region=region[half[starts] // 3],
        start=skin.begin[half[starts]].astype(np.intp),
        stop=skin.end[half[last]].astype(np.intp),
        edge=edge,
        forward=forward,
    )


def signed_areas(skin: Skin, outline: Outline, normal: Float64) -> Float64:
    """Compute twice the area that each loop encloses.

    Args:
        skin: Mesh.
        outline: Outlines of the regions.
        normal: (r, 3) unit normals of the regions.
    Returns:
        (l,) mm², seen against the normal of the loop's region; negative for holes.
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
