"""A mesh as an oriented manifold surface: the topology that a boundary representation starts from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.surfaces.arrays import normalize
from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.geometry import IntIndex, distinct, face_normals
from meshhub.toolkit.topology import Edges, Index, angles_around_edges, components, edges, half_edges

_ANGLE_RESOLUTION_RAD = 1e-7
"""Radians; faces closer than this around an edge count as coincident, because rounding separates them."""

_MIN_SMOOTH_COSINE = float(np.cos(np.radians(31.0)))
"""Cosine of 31°; half a degree over the turn that `facet_graph` accepts between facets of one curved surface."""


@dataclass(frozen=True, eq=False)
class Skin:
    """Triangles whose half-edges have at most one partner each, and whose shells share no points.

    Half-edge `3 * face + corner` leads from that corner to the next corner of its face.

    points: (p, 3) millimeters; where two shells touch, each has a point of its own
    faces:  (m, 3) indices into `points`, counter-clockwise seen from outside
    twin:   (3m,) the half-edge in the opposite direction on the neighbor, -1 on the border
    shell:  (m,) connected component of each face, numbered by first faces
    closed: (s,) whether a shell has no border
    paint:  (m,) color of each face, as an index
    cross:  (m, 3) normals, twice the area long
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
        """(3m,) point from which each half-edge leads."""
        return self.faces.ravel()

    @property
    def end(self) -> NDArray[np.int32]:
        """(3m,) point to which each half-edge leads."""
        return self.faces[:, [1, 2, 0]].ravel()


def build_skin(vertices: Float64, faces: Int32, paint: NDArray[np.int32]) -> Skin:
    """Build the skin of a mesh: weld equal points, drop degenerate faces, pair half-edges, separate shells.

    Args:
        vertices: (n, 3) millimeters.
        faces: (m, 3) vertex indices, counter-clockwise seen from outside.
        paint: (m,) color of each face, as an index.
    """
    points, index = distinct(vertices)
    faces = index[faces]
    a, b, c = faces.T
    is_proper = (a != b) & (b != c) & (c != a)
    faces, paint = faces[is_proper], paint[is_proper]
    one, other = _pair_half_edges(points, faces)
    twin = np.full(3 * len(faces), -1, np.intp)
    twin[one], twin[other] = other, one
    return pair_skin(points, faces, twin, paint)


def pair_skin(points: Float64, faces: Int32, twin: IntIndex, paint: NDArray[np.int32]) -> Skin:
    """Build a skin from paired half-edges; shells that share points get points of their own.

    Args:
        points: (p, 3) millimeters.
        faces: (m, 3) indices into `points`.
        twin: (3m,) partners of the half-edges, -1 on the border.
        paint: (m,) color of each face, as an index.
    """
    half = np.flatnonzero(twin >= 0)
    shells, shell = components(len(faces), half // 3, twin[half] // 3)
    shell_point, corner_point = np.unique(
        np.repeat(shell, 3).astype(np.int64) * len(points) + faces.ravel(), return_inverse=True
    )
    points = points[shell_point % len(points)] if len(points) else points
    faces = corner_point.reshape(-1, 3).astype(np.int32)
    closed = np.ones(shells, np.bool_)
    closed[shell[np.flatnonzero(twin < 0) // 3]] = False
    return Skin(points, faces, twin, shell, closed, paint, face_normals(points, faces))


def _pair_half_edges(points: Float64, faces: NDArray[np.int32]) -> tuple[Index, Index]:
    """Return pairs of half-edges in opposite directions; those without a partner are the border."""
    mesh_edges = edges(faces)
    begin, _ = half_edges(faces)
    one, other = mesh_edges.pairs()
    is_opposed = begin[one] != begin[other]
    crowded_one, crowded_other = _pair_by_angle(points, faces, mesh_edges)
    return np.concatenate([one[is_opposed], crowded_one]), np.concatenate([other[is_opposed], crowded_other])


def _pair_by_angle(points: Float64, faces: NDArray[np.int32], mesh_edges: Edges) -> tuple[Index, Index]:
    """Pair the half-edges at edges on four or more faces: two that bound one wedge of material are partners.

    Where a body touches itself along a line, as a hole that touches a wall, such pairs would make cusps. If all faces
    at the line have a smooth continuation across it, the faces that continue each other are partners instead.

    Unlike the pairing of `repair`, this one nests wedges by level, and leaves an unbalanced edge without partners.
    """
    crowded = np.flatnonzero((mesh_edges.size > 2) & (mesh_edges.size % 2 == 0))
    if len(crowded) == 0:
        return np.empty(0, np.intp), np.empty(0, np.intp)
    begins = np.concatenate([[0], np.cumsum(mesh_edges.size[crowded])])
    half, group, forward, ticks = angles_around_edges(points, faces, mesh_edges, crowded, _ANGLE_RESOLUTION_RAD)
    # of coincident faces, as in a body that exists twice, the first ones are paired with the first ones
    order = np.lexsort((np.where(forward, half, -half), ~forward, ticks, group))
    half, forward = half[order], forward[order]
    level, is_balanced = _wedge_levels(forward, group, begins)
    order = np.lexsort((np.arange(len(group)), level, group))
    half, forward, level = half[order], forward[order], level[order]
    # cyclic predecessor and successor within each level of each edge
    first = np.flatnonzero(np.diff(group, prepend=-1) | np.diff(level, prepend=0))
    before = np.arange(len(group)) - 1
    before[first] = np.append(first[1:], len(group)) - 1
    behind = np.empty_like(before)
    behind[before] = np.arange(len(group))
    normal = normalize(face_normals(points, faces[half // 3]))
    is_bent = np.einsum("ij,ij->i", normal, normal[behind]) < _MIN_SMOOTH_COSINE
    is_smooth = np.ones(len(crowded), np.bool_)
    np.logical_and.at(is_smooth, group, ~(forward & is_bent))
    chosen = np.flatnonzero(forward & is_balanced[group])
    return half[chosen], half[np.where(is_smooth[group], behind, before)[chosen]]


def _wedge_levels(forward: NDArray[np.bool_], group: IntIndex, begins: IntIndex) -> tuple[IntIndex, NDArray[np.bool_]]:
    """Count the wedges that each face begins or ends within; rounding can fold wedges into each other, so they nest.

    Args:
        forward: (k,) direction of the half-edges, by edge and angle.
        group: (k,) edge of each half-edge, ascending.
        begins: (c + 1,) position where each edge begins.
    Returns:
        (k,) level of each half-edge, equal for both sides of a wedge; (c,) whether an edge has as many forward as
        backward half-edges.
    """
    step = np.where(forward, 1, -1)
    depth = np.cumsum(step)
    depth -= (depth - step)[begins[:-1]][group]
    return np.where(forward, depth, depth + 1), depth[begins[1:] - 1] == 0
