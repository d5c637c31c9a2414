"""Mesh connectivity: edges, shells, vertex fans, boundary loops. Numpy and scipy; no Python loop over faces.

All functions take `faces` (m, 3) over *welded* points (`geometry.welded`): with raw indices, a UV seam would look like
a gap.

- A *half-edge* is one side of one face. Half-edge `3 * face + corner` leads from that corner to the next corner of
  the face.
- An *edge* is the set of all half-edges between the same two points, in either direction.
- A *shell* is a set of faces connected by shared edges.
- A *fan* is a set of faces around one point that are connected by paired half-edges. A point with two fans is
  non-manifold.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.geometry import IntIndex, weld

Index = NDArray[np.integer[Any]]
Labels = NDArray[np.int32]

_MAX_FAN_STEPS = 64
"""Maximum faces around a point that `nonmanifold_points` walks; larger fans are labeled, which is slower per face. """

_MAX_NUMPY_COUNT = 1_000_000
"""Nodes and links up to which plain numpy takes less time than scipy: than its import and, for very few, than its call.
"""


class Edges(NamedTuple):
    """Half-edges of a mesh, grouped by edge.

    order: (3m,) half-edge ids; those of one edge are adjacent and ascend
    start: (e,) position in `order` where each edge begins; edges ascend by their two points
    size:  (e,) number of half-edges of each edge
    """

    order: Index
    start: IntIndex
    size: IntIndex

    def border(self) -> Index:
        """Return the half-edges of edges on exactly one face."""
        border: Index = self.order[self.start[self.size == 1]]
        return border

    def pairs(self) -> tuple[Index, Index]:
        """Return both half-edges of each edge on exactly two faces."""
        starts = self.start[self.size == 2]
        return self.order[starts], self.order[starts + 1]


class EdgeStatistics(NamedTuple):
    """Counts of invalid edges; all zero for a closed, edge-manifold, consistently oriented surface.

    boundary:     edges on one face
    nonmanifold:  edges on more than two faces
    inconsistent: edges on two faces that traverse them in the same direction
    """

    boundary: int
    nonmanifold: int
    inconsistent: int


class EdgeAngles(NamedTuple):
    """Half-edges of some edges, and the angle of each half-edge's face around its edge.

    half:    (k,) half-edge ids, edge by edge, in the order of `Edges.order`
    group:   (k,) position of the edge in the requested edges
    forward: (k,) whether the half-edge leads from the lower to the higher point index
    ticks:   (k,) angle in units of the resolution, from 0 at the first half-edge of the edge up to a full turn;
             counter-clockwise around the direction from the lower to the higher point index
    """

    half: Index
    group: IntIndex
    forward: NDArray[np.bool_]
    ticks: Int32


def following(half: Index) -> NDArray[Any]:
    """Return the next half-edge of the same face, for each half-edge."""
    after: NDArray[Any] = half + np.where(half % 3 == 2, -2, 1)
    return after


def preceding(half: Index) -> NDArray[Any]:
    """Return the previous half-edge of the same face, for each half-edge."""
    before: NDArray[Any] = half + np.where(half % 3 == 0, 2, -1)
    return before


def half_edges(faces: Index) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the start point and the end point of each half-edge, (3m,) each."""
    return faces.ravel(), faces[:, [1, 2, 0]].ravel()


def edges(faces: Index) -> Edges:
    """Group all half-edges by the two points that they connect.

    Args:
        faces: (m, 3) indices of welded points.
    Returns:
        The edges, in ascending order of their two points.
    """
    begin, end = half_edges(faces)
    size = len(begin)
    if size == 0:
        empty = np.empty(0, np.intp)
        return Edges(empty, empty, empty)
    low, high = np.minimum(begin, end), np.maximum(begin, end)
    point_bits = int(high.max()).bit_length()
    if 2 * point_bits + size.bit_length() < 64:
        order = _stable_argsort(low.astype(np.int64) << point_bits | high)
    else:
        order = _stable_argsort(high)
        order = order[_stable_argsort(low[order])]
    low, high = low[order], high[order]
    is_start = np.ones(size, np.bool_)
    is_start[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
    start = np.flatnonzero(is_start)
    return Edges(order, start, np.diff(start, append=size))


def _stable_argsort(key: Index) -> NDArray[np.int64]:
    """Return a stable argsort of non-negative integers that, together with their positions, fit into 63 bits.

    The integers are combined with their positions, because vector instructions sort the result in a ninth of the time
    of `np.argsort`.
    """
    bits = len(key).bit_length()
    packed = key.astype(np.int64) << bits | np.arange(len(key))
    packed.sort()
    packed &= (1 << bits) - 1
    return packed


def edge_statistics(faces: Index, mesh_edges: Edges | None = None) -> EdgeStatistics:
    """Count the boundary, non-manifold and inconsistently oriented edges.

    Args:
        faces: (m, 3) indices of welded points.
        mesh_edges: Result of `edges(faces)`, if the caller has it.
    """
    mesh_edges = edges(faces) if mesh_edges is None else mesh_edges
    begin, _ = half_edges(faces)
    half_a, half_b = mesh_edges.pairs()
    return EdgeStatistics(
        boundary=int((mesh_edges.size == 1).sum()),
        nonmanifold=int((mesh_edges.size > 2).sum()),
        inconsistent=int((begin[half_a] == begin[half_b]).sum()),
    )


def angles_around_edges(
    points: Float64, faces: Int32, mesh_edges: Edges, chosen: IntIndex, resolution_rad: float
) -> EdgeAngles:
    """Measure the angles of faces around the edges that they share.

    Use this to pair half-edges where more than two faces meet: faces that bound one wedge of material are neighbors
    by angle. Angles are integers, so that coincident faces compare equal in spite of rounding; angles within one
    tick of the first face become 0.

    Args:
        points: (n, 3) positions, any length unit.
        faces: (m, 3) indices into `points`.
        mesh_edges: Result of `edges(faces)`.
        chosen: (c,) positions of edges in `mesh_edges.start`.
        resolution_rad: Radians per tick; above 1e-8, so that a full turn fits 32 bits.
    Returns:
        Unsorted angles: the callers break ties differently.
    Source:
        Weiler, "The radial edge structure", Geometric Modeling for CAD Applications, 1988: the radial order of faces.
    """
    size = mesh_edges.size[chosen]
    group = np.repeat(np.arange(len(chosen)), size)
    offset = np.arange(len(group)) - np.repeat(np.cumsum(size) - size, size)
    half = mesh_edges.order[mesh_edges.start[chosen][group] + offset]
    begin, end = (ends[half] for ends in half_edges(faces))
    low, high = points[np.minimum(begin, end)], points[np.maximum(begin, end)]
    axis = high - low
    axis /= np.maximum(np.linalg.norm(axis, axis=1, keepdims=True), 1e-300)
    opposite = points[faces.ravel()[preceding(half)]] - low
    opposite -= axis * np.einsum("ij,ij->i", axis, opposite)[:, None]
    reference = opposite[np.arange(len(half)) - offset]
    reference = reference / np.maximum(np.linalg.norm(reference, axis=1, keepdims=True), 1e-300)
    quarter = np.cross(axis, reference)
    angle = np.arctan2(np.einsum("ij,ij->i", opposite, quarter), np.einsum("ij,ij->i", opposite, reference))
    ticks = np.rint(angle / resolution_rad).astype(np.int32)
    ticks[np.abs(ticks) <= 1] = 0
    positive: Int32 = np.where(ticks < 0, ticks + np.int32(round(2 * np.pi / resolution_rad)), ticks)
    return EdgeAngles(half, group, begin < end, positive)


def remove_degenerate_faces(faces: NDArray[Any]) -> NDArray[Any]:
    """Return the faces whose three corners are three different points."""
    a, b, c = faces[:, 0], faces[:, 1], faces[:, 2]
    degenerate = (a == b) | (b == c) | (c == a)
    return faces[~degenerate] if degenerate.any() else faces


def is_closed(vertices: NDArray[np.floating[Any]], faces: Int32) -> bool:
    """Return whether every edge is on exactly two faces, after welding equal positions.

    Degenerate faces are ignored. A mesh that has only degenerate faces is not closed.

    Args:
        vertices: (n, 3) float32 or float64, not necessarily welded; pass float32 to check what an STL file holds.
        faces: (m, 3) vertex indices.
    """
    _, index = weld(vertices)
    proper = remove_degenerate_faces(index[faces])
    return len(proper) > 0 and bool((edges(proper).size == 2).all())


def components(size: int, starts: Index, ends: Index) -> tuple[int, Labels]:
    """Label the connected components of a graph.

    Args:
        size: Number of nodes.
        starts: (k,) first node of each link.
        ends: (k,) second node of each link.
    Returns:
        The number of components, and (size,) labels, numbered by the first node of each component.
    """
    if size == 0:
        return 0, np.empty(0, np.int32)
    if size + len(starts) > _MAX_NUMPY_COUNT:
        return _label_large_components(size, starts, ends)
    label = np.arange(size)
    while len(starts):
        # replace the larger of two linked labels until none differ
        np.minimum.at(label, np.maximum(starts, ends), np.minimum(starts, ends))
        root = label[label]
        while (root != label).any():
            label, root = root, root[root]
        starts, ends = label[starts], label[ends]
        is_open = starts != ends
        starts, ends = starts[is_open], ends[is_open]
    rank = np.cumsum(label == np.arange(size), dtype=np.int32)
    return int(rank[-1]), rank[label] - np.int32(1)


def _label_large_components(size: int, starts: Index, ends: Index) -> tuple[int, Labels]:
    """Label the components of a large graph, as `components`."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(starts), np.uint8), (starts, ends)), (size, size))
    count, labels = connected_components(graph, directed=False)
    return int(count), _number_by_first_member(labels, count)


def first_members(labels: Index, count: int) -> IntIndex:
    """Return the first position of each of the labels 0…count-1; each label must occur."""
    first = np.empty(count, np.intp)
    first[labels[::-1]] = np.arange(len(labels) - 1, -1, -1)
    return first


def _number_by_first_member(labels: Labels, count: int) -> Labels:
    first = first_members(labels, count)
    if (first[1:] > first[:-1]).all():
        return labels
    rank = np.empty(count, np.int32)
    rank[np.argsort(first)] = np.arange(count, dtype=np.int32)
    return rank[labels]


def shells(faces: Index, mesh_edges: Edges | None = None) -> tuple[int, Labels]:
    """Label the shells. All faces at one edge are in one shell, regardless of their number.

    Args:
        faces: (m, 3) indices of welded points.
        mesh_edges: Result of `edges(faces)`, if the caller has it.
    Returns:
        The number of shells, and the (m,) shell of each face, numbered by first faces.
    """
    mesh_edges = edges(faces) if mesh_edges is None else mesh_edges
    continues = np.ones(len(mesh_edges.order), np.bool_)
    continues[mesh_edges.start] = False
    at = np.flatnonzero(continues)
    return components(len(faces), mesh_edges.order[at - 1] // 3, mesh_edges.order[at] // 3)


def fans(faces: Index, half_a: Index, half_b: Index) -> tuple[int, Labels]:
    """Label the fans of faces around points.

    Args:
        faces: (m, 3) indices of welded points.
        half_a: (p,) first half-edge of each pair.
        half_b: (p,) second half-edge, between the same two points in either direction.
    Returns:
        The number of fans, and the (3m,) fan of each corner; all corners of a fan are at one point.
    """
    corner = faces.ravel()
    return components(len(corner), *_corner_links(corner, half_a, half_b))


def fans_at(faces: Index, half_a: Index, half_b: Index, points: Index) -> tuple[int, Labels]:
    """Label the fans of faces around some points; see `fans`.

    Args:
        faces: (m, 3) indices of welded points.
        half_a: (p,) first half-edge of each pair.
        half_b: (p,) second half-edge, between the same two points in either direction.
        points: Indices of the points.
    Returns:
        The number of fans, and the (3m,) fan of each corner; -1 at other points.
    """
    is_requested = np.zeros(int(faces.max(initial=-1)) + 1, np.bool_)
    is_requested[points] = True
    corner = faces.ravel()
    begin, end = _corner_links(corner, half_a, half_b)
    linked = is_requested[corner[begin]]
    at = np.flatnonzero(is_requested[corner])
    label = np.full(len(corner), -1, np.int32)
    label[at] = np.arange(len(at), dtype=np.int32)
    count, label[at] = components(len(at), label[begin[linked]], label[end[linked]])
    return count, label


def _corner_links(corner: Index, half_a: Index, half_b: Index) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the pairs of corners at one point that lie on the two sides of a pair of half-edges."""
    end_a, end_b = following(half_a), following(half_b)
    opposed = corner[half_a] != corner[half_b]
    return np.concatenate([half_a, end_a]), np.concatenate(
        [np.where(opposed, end_b, half_b), np.where(opposed, half_b, end_b)]
    )


def is_vertex_manifold(faces: Index, mesh_edges: Edges) -> bool:
    """Return whether each point of a closed, consistently oriented surface has one fan."""
    return not len(nonmanifold_points(faces, *mesh_edges.pairs()))


def nonmanifold_points(faces: Index, half_a: Index, half_b: Index) -> IntIndex:
    """Find the points that may have several fans; all other points have one fan.

    It walks around all points at once, which is several times faster than labeling all fans.

    Args:
        faces: (m, 3) indices of welded points.
        half_a: (p,) first half-edge of each pair.
        half_b: (p,) second half-edge, in the opposite direction.
    Returns:
        Ascending point indices; a point on the border is included.
    """
    if len(faces) == 0:
        return np.empty(0, np.intp)
    twin = np.full(3 * len(faces), -1, np.int32)
    twin[half_a], twin[half_b] = half_b, half_a
    corner = faces.ravel()
    first = np.full(int(corner.max()) + 1, -1, np.int32)
    first[corner] = np.arange(len(corner), dtype=np.int32)
    point = np.flatnonzero(first >= 0)
    first, remaining = first[point], np.bincount(corner)[point]
    here, nonmanifold = first, [np.empty(0, np.intp)]
    for _ in range(_MAX_FAN_STEPS):
        here = twin[preceding(here)]
        remaining = remaining - 1
        is_back = here == first
        bad = (here < 0) | (is_back & (remaining > 0))
        nonmanifold.append(point[bad])
        walking = ~(is_back | bad)
        if not walking.any():
            break
        point, first, here, remaining = (values[walking] for values in (point, first, here, remaining))
    else:
        nonmanifold.append(_points_of_several_fans(faces, half_a, half_b, point))
    return np.sort(np.concatenate(nonmanifold))


def _points_of_several_fans(faces: Index, half_a: Index, half_b: Index, points: Index) -> IntIndex:
    """Return the points among `points` that have several fans, from the labels of the corners around them."""
    count, label = fans_at(faces, half_a, half_b, points)
    at = np.flatnonzero(label >= 0)
    fans_of_points = np.bincount(faces.ravel()[at[first_members(label[at], count)]])
    return np.flatnonzero(fans_of_points > 1)


def cycles(after: Index) -> tuple[IntIndex, IntIndex]:
    """Split a permutation into its cycles.

    Pointer doubling finds the position within a cycle in log2 n rounds, without a walk.

    Args:
        after: (n,) successor of each member of 0…n-1.
    Returns:
        (n,) members cycle by cycle, each from its smallest member, and (c + 1,) where each cycle begins.
    """
    size = len(after)
    if size == 0:
        return np.empty(0, np.intp), np.zeros(1, np.intp)
    member = np.arange(size)
    count, labels = components(size, member, after)
    first = first_members(labels, count)
    # `steps` from each member to the first member of its cycle
    is_first = first[labels] == member
    jump, steps = np.where(is_first, member, after), np.where(is_first, 0, 1)
    while True:
        longer = steps + steps[jump]
        if np.array_equal(longer, steps):
            break
        steps, jump = longer, jump[jump]
    length = np.bincount(labels, minlength=count)
    place = np.where(is_first, 0, length[labels] - steps)
    begin = np.concatenate([[0], np.cumsum(length)])
    members = np.empty(size, np.intp)
    members[begin[labels] + place] = member
    return members, begin


def boundary_loops(border: Index, fan: Index) -> tuple[Index, IntIndex]:
    """Chain the border half-edges of a consistently oriented surface into loops.

    An open fan has exactly one incoming and one outgoing border half-edge, so loops never branch.

    Args:
        border: (b,) half-edges without a partner.
        fan: (3m,) fan of each corner, from `fans`.
    Returns:
        (b,) half-edges loop by loop, in the direction of the faces, and (l + 1,) where each loop begins.
    """
    leaving = np.full(int(fan.max(initial=-1)) + 1, -1, np.intp)
    leaving[fan[border]] = np.arange(len(border))
    after = leaving[fan[following(border)]]
    members, begin = cycles(after)
    return border[members], begin
