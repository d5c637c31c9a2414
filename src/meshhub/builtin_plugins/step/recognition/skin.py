"""A mesh as an oriented, manifold skin: the topology that a boundary representation starts from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.geometry import IntIndex, weld
from meshhub.toolkit.topology import Edges, components, edges, following, half_edges

_SAME_ANGLE = 1e-7
_SMOOTH = np.cos(np.radians(31.0))


@dataclass(frozen=True, eq=False)
class Skin:
    """Triangles whose half-edges are paired at most once, and whose shells have no point in common.

    Half-edge `3 * face + corner` leads from that corner to the next of its face.

    points: (p, 3) float64; a place where two shells touch has a point for each
    faces:  (m, 3) indices into points
    twin:   (3m,) the half-edge that runs the other way on the neighbour, -1 on the border
    shell:  (m,) which connected piece a face belongs to, numbered by first faces
    closed: (s,) whether a shell has no border
    paint:  (m,) the colour of each face, as an index
    cross:  (m, 3) normals of twice the area
    """

    points: Float64
    faces: NDArray[np.int32]
    twin: IntIndex
    shell: NDArray[np.int32]
    closed: NDArray[np.bool_]
    paint: NDArray[np.int32]
    cross: Float64

    @property
    def begin(self) -> NDArray[np.int32]:
        """(3m,) the point each half-edge starts from."""
        return self.faces.ravel()

    @property
    def end(self) -> NDArray[np.int32]:
        """(3m,) the point each half-edge leads to."""
        return self.faces[:, [1, 2, 0]].ravel()


def build_skin(vertices: Float64, faces: Int32, paint: NDArray[np.int32]) -> Skin:
    """The skin of a mesh: exactly equal points welded, faces without three corners left away."""
    first, index = weld(vertices)
    points = vertices[first] + 0.0
    faces = index[faces]
    a, b, c = faces.T
    sound = (a != b) & (b != c) & (c != a)
    faces, paint = faces[sound], paint[sound]
    one, other = _pairs(points, faces)
    twin = np.full(3 * len(faces), -1, np.intp)
    twin[one], twin[other] = other, one
    shells, shell = components(len(faces), one // 3, other // 3)
    place, corner_point = np.unique(
        np.repeat(shell, 3).astype(np.int64) * len(points) + faces.ravel(), return_inverse=True
    )
    points = points[place % len(points)] if len(points) else points
    faces = corner_point.reshape(-1, 3).astype(np.int32)
    closed = np.ones(shells, np.bool_)
    closed[shell[np.flatnonzero(twin < 0) // 3]] = False
    corner = points[faces]
    cross = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    return Skin(points, faces, twin, shell, closed, paint, cross)


def _pairs(points: Float64, faces: NDArray[np.int32]) -> tuple[IntIndex, IntIndex]:
    found = edges(faces)
    begin, _ = half_edges(faces)
    one, other = found.pairs()
    opposed = begin[one] != begin[other]
    extra = _pairs_by_angle(points, faces, found)
    return np.concatenate([one[opposed], extra[0]]), np.concatenate([other[opposed], extra[1]])


def _pairs_by_angle(points: Float64, faces: NDArray[np.int32], found: Edges) -> tuple[IntIndex, IntIndex]:
    """Partners at edges of more than two faces: the two that bound the same wedge of material.

    Where a body touches itself along a line, as a hole that touches a wall does, such partners would be cusps: there
    the faces that go on smoothly across the line are partners, if they all have one.
    """
    crowded = np.flatnonzero((found.size > 2) & (found.size % 2 == 0))
    nothing = np.empty(0, np.intp)
    if len(crowded) == 0:
        return nothing, nothing
    group = np.repeat(np.arange(len(crowded)), found.size[crowded])
    begins = np.concatenate([[0], np.cumsum(found.size[crowded])])
    half = found.order[np.arange(len(group)) - begins[group] + found.start[crowded][group]]
    begin, end = half_edges(faces)
    forward = begin[half] < end[half]
    low, high = np.minimum(begin[half], end[half]), np.maximum(begin[half], end[half])
    axis = points[high] - points[low]
    axis /= np.linalg.norm(axis, axis=1, keepdims=True)
    third = points[end[following(half)]] - points[low]
    third = third - axis * np.einsum("ij,ij->i", third, axis)[:, None]
    reference = third[begins[:-1]][group]
    side = np.cross(axis, reference)
    angle = np.arctan2(np.einsum("ij,ij->i", third, side), np.einsum("ij,ij->i", third, reference))
    angle = np.rint(np.where(angle < -_SAME_ANGLE, angle + 2 * np.pi, angle) / _SAME_ANGLE)
    # of faces that lie on each other, as in a body that is there twice, the first ones go with the first ones
    order = np.lexsort((np.where(forward, half, -half), ~forward, angle, group))
    half, forward = half[order], forward[order]
    # how many wedges an edge's face begins or ends within: where rounding has folded wedges into each other, they nest
    step = np.where(forward, 1, -1)
    inside = np.cumsum(step)
    inside -= (inside - step)[begins[:-1]][group]
    whole = inside[begins[1:] - 1] == 0
    level = np.where(forward, inside, inside + 1)
    order = np.lexsort((np.arange(len(group)), level, group))
    half, forward, level = half[order], forward[order], level[order]
    first = np.flatnonzero(np.diff(group, prepend=-1) | np.diff(level, prepend=0))
    before = np.arange(len(group)) - 1
    before[first] = np.append(first[1:], len(group)) - 1
    behind = np.empty_like(before)
    behind[before] = np.arange(len(group))
    corner = points[faces[half // 3]]
    normal = normalize(np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]))
    bent = np.einsum("ij,ij->i", normal, normal[behind]) < _SMOOTH
    smooth = np.ones(len(crowded), np.bool_)
    np.logical_and.at(smooth, group, ~(forward & bent))
    taken = np.flatnonzero(forward & whole[group])
    return half[taken], half[np.where(smooth[group], behind, before)[taken]]


def lengths(vectors: NDArray[np.floating[Any]]) -> NDArray[Any]:
    """(n,) lengths of (n, 3) vectors."""
    made: NDArray[Any] = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    return made


def sum_by_label(labels: NDArray[np.integer[Any]], weights: NDArray[Any], count: int) -> Float64:
    """(count,) the sum of the weights of each label."""
    return np.asarray(np.bincount(labels, weights, count), np.float64)


def sort_unique(numbers: NDArray[Any]) -> NDArray[Any]:
    """The different ones among whole numbers, in ascending order.

    What `np.unique` does, which hashes before it sorts: that takes six times as long.
    """
    numbers = np.sort(numbers)
    new = np.ones(len(numbers), np.bool_)
    np.not_equal(numbers[1:], numbers[:-1], out=new[1:])
    made: NDArray[Any] = numbers[new]
    return made


def distinct_pairs(
    first: NDArray[np.integer[Any]], second: NDArray[np.integer[Any]], limit: int
) -> tuple[IntIndex, IntIndex]:
    """The different pairs of two columns of whole numbers from 0 on, in ascending order; `second` is below `limit`."""
    bits = limit.bit_length()
    key: NDArray[np.integer[Any]] = (first.astype(np.int64) << bits) | second
    if (int(first.max(initial=0)) + 1) << bits < 2**31:
        key = key.astype(np.int32)
    key = sort_unique(key)
    return (key >> bits).astype(np.intp), (key & ((1 << bits) - 1)).astype(np.intp)


def normalize(vectors: Float64) -> Float64:
    """(n, 3) vectors of length one; zero stays zero."""
    size = lengths(vectors)[:, None]
    made: Float64 = vectors / np.where(size > 0, size, 1)
    return made
