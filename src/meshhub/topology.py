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

_FEW = 3000
"""With so few half-edges or links, to set up a sparse matrix takes longer than all the rest."""


class Edges(NamedTuple):
    """The half-edges of a mesh, grouped by edge.

    order: (3m,) half-edge ids, those of one edge side by side, ascending within it
    start: (e,) where each edge begins in `order`; edges ascend by their two points
    size:  (e,) how many half-edges each has
    """

    order: Index
    start: IntIndex
    size: IntIndex

    def border(self) -> Index:
        """The half-edges whose edge lies on one face only."""
        lone: Index = self.order[self.start[self.size == 1]]
        return lone

    def pairs(self) -> tuple[Index, Index]:
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

    Two counting sorts: two to seven times faster than one sort of packed keys, unless there are but few.
    """
    begin, end = half_edges(faces)
    size = len(begin)
    if size == 0:
        nothing = np.empty(0, np.intp)
        return Edges(nothing, nothing, nothing)
    low, high = np.minimum(begin, end), np.maximum(begin, end)
    points = int(high.max()) + 1
    if size > _FEW and points <= 4 * size:
        order = _counted(high, points)
        order = order[_counted(low[order], points)]
    else:  # else the counters would take more room than the faces
        order = np.lexsort((high, low))
    low, high = low[order], high[order]
    new = np.ones(size, np.bool_)
    new[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
    start = np.flatnonzero(new)
    return Edges(order, start, np.diff(start, append=size))


def _counted(key: Index, limit: int) -> NDArray[Any]:
    """A stable argsort of small whole numbers: what the transposition of a sparse matrix does."""
    size = len(key)
    kind = np.int32 if size < 2**31 - 1 else np.int64
    rows = csr_array((np.ones(size, np.int8), key, np.arange(size + 1, dtype=kind)), (size, limit))
    order: NDArray[Any] = rows.tocsc().indices
    return order


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
    if size + len(one) <= _FEW:
        return _joined(size, one, other)
    graph = coo_array((np.ones(len(one), np.uint8), (one, other)), (size, size))
    count, labels = connected_components(graph, directed=False)
    return int(count), _numbered(labels, count)


def _joined(size: int, one: Index, other: Index) -> tuple[int, Labels]:
    """The components of few things: the larger of two linked labels becomes the smaller until none differ."""
    label = np.arange(size)
    while True:
        a, b = label[one], label[other]
        if (a == b).all():
            break
        np.minimum.at(label, np.maximum(a, b), np.minimum(a, b))
        further = label[label]
        while (further != label).any():
            label, further = further, further[further]
    rank = np.cumsum(label == np.arange(size), dtype=np.int32)
    return int(rank[-1]), rank[label] - np.int32(1)


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
    return components(len(corner), *_corner_links(corner, one, other))


def _corner_links(corner: Index, one: Index, other: Index) -> tuple[NDArray[Any], NDArray[Any]]:
    """Corners that are at one point and on both sides of a pair."""
    one_end, other_end = following(one), following(other)
    opposed = corner[one] != corner[other]
    return np.concatenate([one, one_end]), np.concatenate(
        [np.where(opposed, other_end, other), np.where(opposed, other, other_end)]
    )


def fans_are_whole(faces: Index, found: Edges) -> bool:
    """Whether a closed surface with oppositely directed pairs has one fan at each point."""
    return not len(torn_points(faces, *found.pairs()))


def torn_points(faces: Index, one: Index, other: Index) -> IntIndex:
    """The points that may have several fans, given the oppositely directed pairs: every other one has one for sure.

    Walks around all points at once, which is several times faster than to label all the fans. A point
    of very many faces is suspected when its walk takes too long.
    """
    if len(faces) == 0:
        return np.empty(0, np.intp)
    twin = np.full(3 * len(faces), -1, np.int32)
    twin[one], twin[other] = other, one
    corner = faces.ravel()
    begun = np.full(int(corner.max()) + 1, -1, np.int32)
    begun[corner] = np.arange(len(corner), dtype=np.int32)
    point = np.flatnonzero(begun >= 0)
    begun, remaining = begun[point], np.bincount(corner)[point]
    here, torn = begun, [np.empty(0, np.intp)]
    for _ in range(_FEW_STEPS):
        here = twin[preceding(here)]
        remaining = remaining - 1
        back = here == begun
        bad = (here < 0) | (back & (remaining > 0))
        torn.append(point[bad])
        goes_on = ~(back | bad)
        if not goes_on.any():
            break
        point, begun, here, remaining = (each[goes_on] for each in (point, begun, here, remaining))
    else:
        torn.append(_labelled(faces, one, other, point))
    return np.sort(np.concatenate(torn))


def _labelled(faces: Index, one: Index, other: Index, asked: Index) -> IntIndex:
    """Those of the asked points that have several fans, by labelling the corners around them."""
    wanted = np.zeros(int(faces.max()) + 1, np.bool_)
    wanted[asked] = True
    corner = faces.ravel()
    begin, end = _corner_links(corner, one, other)
    linked = wanted[corner[begin]]
    at = np.flatnonzero(wanted[corner])
    name = np.full(len(corner), -1, np.int32)
    name[at] = np.arange(len(at), dtype=np.int32)
    count, label = components(len(at), name[begin[linked]], name[end[linked]])
    fans_at = np.bincount(corner[at[first_members(label, count)]])
    return np.flatnonzero(fans_at > 1)


def cycles(after: Index) -> tuple[IntIndex, IntIndex]:
    """The cycles of a permutation `after` of 0…n-1, each in its own order.

    Returns the members, cycle by cycle, each begun at its smallest member, and (c + 1,) where each begins.
    The place within a cycle comes from doubling jumps: log2 n rounds, no walk.
    """
    size = len(after)
    if size == 0:
        return np.empty(0, np.intp), np.zeros(1, np.intp)
    everyone = np.arange(size)
    count, labels = components(size, everyone, after)
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


def boundary_loops(border: Index, fan: Index) -> tuple[Index, IntIndex]:
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
