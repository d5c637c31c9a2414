"""What is connected to what: edges, shells, vertex fans, boundary loops. Numpy and scipy, no loop over faces.

Everything here takes `faces` (m, 3) over *welded* points (`geometry.welded`), because a seam in UV
is no gap. A *half-edge* is one side of one face: half-edge `3 * face + corner` leads from that corner
to the next one of its face. An *edge* is all half-edges between the same two points, whatever their
direction; a *shell* is what hangs together by edges; a *fan* is what hangs together around one
point, so that a point with two fans is not manifold.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from meshhub.geometry import IntIndex, weld
from meshhub.scene import Int32

Index = NDArray[np.integer[Any]]
Labels = NDArray[np.int32]

_FEW_STEPS = 64


class Edges(NamedTuple):
    """The half-edges of a mesh, grouped by edge.

    order: (3m,) half-edge ids, those of one edge side by side, ascending within it
    start: (e,) where each edge begins in `order`; edges ascend by their two points
    size:  (e,) how many half-edges each has
    """

    order: IntIndex
    start: IntIndex
    size: IntIndex

    def border(self) -> IntIndex:
        """The half-edges whose edge lies on one face only."""
        lone: IntIndex = self.order[self.start[self.size == 1]]
        return lone

    def pairs(self) -> tuple[IntIndex, IntIndex]:
        """The two half-edges of each edge that lies on exactly two faces."""
        two = self.start[self.size == 2]
        return self.order[two], self.order[two + 1]


class EdgeStatistics(NamedTuple):
    """How many edges are unsound, and how: all zero for a closed, oriented, edge-manifold surface.

    boundary:     on one face only
    nonmanifold:  on more than two faces
    inconsistent: on two faces that run along it in the same direction
    """

    boundary: int
    nonmanifold: int
    inconsistent: int


def following(half: Index) -> NDArray[Any]:
    """The next half-edge of the same face."""
    after: NDArray[Any] = half + np.where(half % 3 == 2, -2, 1)
    return after


def preceding(half: Index) -> NDArray[Any]:
    """The half-edge before, of the same face."""
    before: NDArray[Any] = half + np.where(half % 3 == 0, 2, -1)
    return before


def half_edges(faces: Index) -> tuple[NDArray[Any], NDArray[Any]]:
    """Where each half-edge begins and ends, (3m,) each."""
    return faces.ravel(), faces[:, [1, 2, 0]].ravel()


def edges(faces: Index) -> Edges:
    """All half-edges, grouped by the two points they join.

    One sort of packed keys where the bits suffice: half the time of an indirect sort.
    """
    begin, end = half_edges(faces)
    size = len(begin)
    if size == 0:
        nothing = np.empty(0, np.intp)
        return Edges(nothing, nothing, nothing)
    low, high = np.minimum(begin, end).astype(np.int64), np.maximum(begin, end)
    point_bits, half_bits = int(high.max()).bit_length(), size.bit_length()
    key = (low << point_bits) | high
    if 2 * point_bits + half_bits <= 63:
        packed = np.sort((key << half_bits) | np.arange(size))
        order: IntIndex = packed & ((1 << half_bits) - 1)
        key = packed >> half_bits
    else:
        order = np.argsort(key, kind="stable")
        key = key[order]
    start = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
    return Edges(order, start, np.diff(start, append=size))


def edge_statistics(faces: Index, found: Edges | None = None) -> EdgeStatistics:
    """How many edges are on the boundary, on too many faces, or run through in one direction twice."""
    found = edges(faces) if found is None else found
    begin, _ = half_edges(faces)
    one, other = found.pairs()
    return EdgeStatistics(
        boundary=int((found.size == 1).sum()),
        nonmanifold=int((found.size > 2).sum()),
        inconsistent=int((begin[one] == begin[other]).sum()),
    )


def without_degenerate(faces: NDArray[Any]) -> NDArray[Any]:
    """The faces whose three corners are three points."""
    a, b, c = faces[:, 0], faces[:, 1], faces[:, 2]
    flat = (a == b) | (b == c) | (c == a)
    return faces[~flat] if flat.any() else faces


def is_closed(vertices: NDArray[np.floating[Any]], faces: Int32) -> bool:
    """Whether every edge lies on exactly two faces, once equal positions are one point.

    vertices: (n, 3) float32 or float64, not necessarily welded. Degenerate faces do not count; a mesh of no
    other faces is not closed. Pass float32 to ask what an STL would hold.
    """
    _, index = weld(vertices)
    solid = without_degenerate(index[faces])
    return len(solid) > 0 and bool((edges(solid).size == 2).all())


def components(size: int, one: Index, other: Index) -> tuple[int, Labels]:
    """The connected components of `size` things that are linked in pairs: their number, a label for each.

    Labels are numbered by each component's first member.
    """
    if size == 0:
        return 0, np.empty(0, np.int32)
    graph = coo_array((np.ones(len(one), np.uint8), (one, other)), (size, size))
    count, labels = connected_components(graph, directed=False)
    return int(count), _numbered(labels, count)


def first_members(labels: Index, count: int) -> IntIndex:
    """Where each of the labels 0…count-1 occurs first; every one of them must occur."""
    first = np.empty(count, np.intp)
    first[labels[::-1]] = np.arange(len(labels) - 1, -1, -1)
    return first


def _numbered(labels: Labels, count: int) -> Labels:
    first = first_members(labels, count)
    if (first[1:] > first[:-1]).all():
        return labels
    rank = np.empty(count, np.int32)
    rank[np.argsort(first)] = np.arange(count, dtype=np.int32)
    return rank[labels]


def shells(faces: Index, found: Edges | None = None) -> tuple[int, Labels]:
    """The shells: how many, and which one each face belongs to, numbered by their first faces.

    Faces that share an edge are in one shell, however many there are at that edge.
    """
    found = edges(faces) if found is None else found
    inside = np.ones(len(found.order), np.bool_)
    inside[found.start] = False
    at = np.flatnonzero(inside)
    return components(len(faces), found.order[at - 1] // 3, found.order[at] // 3)


def fans(faces: Index, one: Index, other: Index) -> tuple[int, Labels]:
    """The fans of faces around points, given which half-edges are paired.

    Returns their number and a label for each corner, (3m,); corners of one fan are at one point. Pairs may run
    in the same direction, as long as they join the same two points.
    """
    corner = faces.ravel()
    one_end, other_end = following(one), following(other)
    opposed = corner[one] != corner[other]
    links = (
        np.concatenate([one, one_end]),
        np.concatenate([np.where(opposed, other_end, other), np.where(opposed, other, other_end)]),
    )
    return components(len(corner), *links)


def fans_are_whole(faces: Index, found: Edges) -> bool:
    """Whether a closed surface with oppositely directed pairs has one fan at each point.

    Walks around all points at once, which is several times faster than to label the fans.
    """
    one, other = found.pairs()
    twin = np.empty(3 * len(faces), np.int32)
    twin[one], twin[other] = other, one
    corner = faces.ravel()
    size = int(corner.max()) + 1
    remaining = np.bincount(corner, minlength=size)
    begun = np.full(size, -1, np.int32)
    begun[corner] = np.arange(len(corner), dtype=np.int32)
    point = np.flatnonzero(remaining)
    begun, remaining = begun[point], remaining[point]
    here = begun
    for _ in range(_FEW_STEPS):
        here = twin[preceding(here)]
        remaining = remaining - 1
        back = here == begun
        if (remaining[back] > 0).any():
            return False
        if back.all():
            return True
        begun, here, remaining = begun[~back], here[~back], remaining[~back]
    return fans(faces, one, other)[0] == len(point)


def cycles(after: Index) -> tuple[IntIndex, IntIndex]:
    """The cycles of a permutation `after` of 0…n-1, each in its own order.

    Returns the members, cycle by cycle, each begun at its smallest member, and (c + 1,) where each begins.
    The place within a cycle comes from doubling jumps: log2 n rounds, no walk.
    """
    size = len(after)
    if size == 0:
        return np.empty(0, np.intp), np.zeros(1, np.intp)
    everyone = np.arange(size)
    graph = csr_array((np.ones(size, np.uint8), after, np.arange(size + 1)), (size, size))
    count, labels = connected_components(graph, directed=False)
    labels = _numbered(labels, count)
    first = first_members(labels, count)
    # steps still to go until the cycle's first member is met
    is_first = first[labels] == everyone
    jump, steps = np.where(is_first, everyone, after), np.where(is_first, 0, 1)
    while True:
        further = steps + steps[jump]
        if np.array_equal(further, steps):
            break
        steps, jump = further, jump[jump]
    length = np.bincount(labels, minlength=count)
    place = np.where(is_first, 0, length[labels] - steps)
    begin = np.concatenate([[0], np.cumsum(length)])
    members = np.empty(size, np.intp)
    members[begin[labels] + place] = everyone
    return members, begin


def boundary_loops(border: IntIndex, fan: Index) -> tuple[IntIndex, IntIndex]:
    """The loops of border half-edges of a consistently oriented surface.

    border: half-edges without a partner; fan: (3m,) the fan of each corner, from `fans`. Around an
    open fan exactly one border half-edge arrives and one leaves, so no loop ever branches.

    Returns half-edges, loop by loop, in the faces' own direction, and (l + 1,) where each loop begins.
    """
    leaving = np.full(int(fan.max(initial=-1)) + 1, -1, np.intp)
    leaving[fan[border]] = np.arange(len(border))
    after = leaving[fan[following(border)]]
    members, begin = cycles(after)
    return border[members], begin
