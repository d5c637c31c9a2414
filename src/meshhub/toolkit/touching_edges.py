"""Separation of a solid from itself along edges that more than two faces share; no vertex moves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.errors import format_count
from meshhub.model.notes import note
from meshhub.model.scene import Float64, Int32, Mesh
from meshhub.toolkit.geometry import IntIndex, unit_vectors, weld
from meshhub.toolkit.pairing import choose_independent_pairs, pair_half_edges
from meshhub.toolkit.topology import Edges, Index, edges, fans_at, first_members, following, preceding

MAX_ROUNDS = 8
"""Rounds of separation. One is enough unless more than four faces share an edge; bounds the time."""


class SeparatedMesh(NamedTuple):
    """Mesh without collapsed faces that shares no edge with itself.

    mesh:   has several vertices at one position where wedges of the solid touch
    point:  (n,) point of each vertex; equal at one position, except for vertices of different wedges
    parent: (m,) face of the original mesh that each face is, or is a half of
    """

    mesh: Mesh
    point: Int32
    parent: IntIndex

    def weld(self) -> tuple[Float64, Int32]:
        """Return the points (u, 3), of which some have the same position, and the faces (m, 3) over them."""
        points = np.empty((int(self.point.max(initial=-1)) + 1, 3))
        points[self.point] = self.mesh.vertices
        return points, self.point[self.mesh.faces]


def find_touching_edges(faces: Index, mesh_edges: Edges) -> NDArray[np.bool_]:
    """Find the edges along which only solids meet: on more than two faces, half of them in either direction.

    Args:
        faces: (m, 3) indices of welded points.
        mesh_edges: Result of `edges(faces)`.
    Returns:
        (e,) mask.
    """
    crowded = np.flatnonzero(mesh_edges.size > 2)
    result = np.zeros(len(mesh_edges.size), np.bool_)
    if len(crowded):
        corner = faces.ravel()
        is_forward = corner[mesh_edges.order] < corner[following(mesh_edges.order)]
        forward = np.add.reduceat(is_forward.astype(np.intp), mesh_edges.start)
        result[crowded] = 2 * forward[crowded] == mesh_edges.size[crowded]
    return result


def separate_touching_edges(mesh: Mesh, name: str) -> SeparatedMesh:
    """Give each wedge of a solid its own vertices at the edges along which the solid touches itself.

    Slicers print such edges, but they are not manifold. Pairs of faces that bound one wedge of material stay together.
    Where the wedges are connected at both ends of the edge, one wedge also gets a vertex in the middle of the edge. A
    note names the number of edges.

    Args:
        mesh: Surface of a solid. Other non-manifold edges stay as they are.
        name: Quoted name of the part for the note.
    """
    result = _drop_collapsed_faces(mesh)
    count = 0
    for _ in range(MAX_ROUNDS):
        points, faces = result.weld()
        mesh_edges = edges(faces)
        touching = np.flatnonzero(find_touching_edges(faces, mesh_edges))
        if len(touching) == 0:
            break
        count = count or len(touching)
        half_a, half_b = pair_half_edges(points, faces, mesh_edges)
        half = mesh_edges.order[mesh_edges.start[touching]]
        separated = _separate_fans(result, faces, half_a, half_b, np.concatenate([half, following(half)]))
        result = _separate_middles(result, half, half_a, half_b) if separated is result else separated
    if count:
        note(
            "touching_edges",
            f"part {name} touches itself along {format_count(count, 'edge', 'edges')}, where this step separated its "
            "faces; nothing moved",
            name=name,
            count=count,
        )
    return result


def _drop_collapsed_faces(mesh: Mesh) -> SeparatedMesh:
    _, point = weld(mesh.vertices)
    a, b, c = point[mesh.faces].T
    proper = np.flatnonzero((a != b) & (b != c) & (c != a))
    if len(proper) < len(mesh.faces):
        mesh = _with_faces(mesh, mesh.faces[proper], proper)
    return SeparatedMesh(mesh, point, proper)


def _with_faces(mesh: Mesh, faces: Int32, parent: IntIndex) -> Mesh:
    """Return a mesh with other faces, which have the materials of its faces `parent`."""
    return replace(mesh, faces=faces, face_material=None if mesh.face_material is None else mesh.face_material[parent])


def _with_vertices(mesh: Mesh, rows: Index, others: Index | None = None) -> Mesh:
    """Append copies of vertices (k,) to a mesh, or, with other vertices (k,), the means of both."""
    columns: dict[str, Any] = {
        name: values for name in ("vertices", "normals", "uv", "colors") if (values := getattr(mesh, name)) is not None
    }
    for name, values in columns.items():
        added = values[rows]
        if others is not None:
            mean = (added.astype(np.float64) + values[others]) / 2
            if name == "normals":
                mean = unit_vectors(mean)
            added = (np.rint(mean) if name == "colors" else mean).astype(values.dtype)
        columns[name] = np.concatenate([values, added])
    return replace(mesh, **columns)


def _separate_fans(surface: SeparatedMesh, faces: Int32, half_a: Index, half_b: Index, corners: Index) -> SeparatedMesh:
    """Give each fan a point of its own, at the points of some corners; return the surface itself if each has one fan.

    Args:
        faces: (m, 3) points of the faces.
        half_a, half_b: (p,) paired half-edges.
        corners: (k,) corners at the points to separate.
    """
    corner = faces.ravel()
    count, label = fans_at(faces, half_a, half_b, np.unique(corner[corners]))
    own = np.flatnonzero(label >= 0)
    fan = label[own]
    old = corner[own[first_members(fan, count)]]
    is_first = np.zeros(count, np.bool_)
    is_first[np.unique(old, return_index=True)[1]] = True
    if is_first.all():
        return surface
    new = old.astype(np.int64)
    new[~is_first] = int(surface.point.max()) + 1 + np.arange(count - np.count_nonzero(is_first))
    vertex, point = surface.mesh.faces.ravel()[own].astype(np.int64), new[fan]
    pairs, at = np.unique(vertex << 32 | point, return_inverse=True)
    of_pair, point_of_pair = pairs >> 32, (pairs & 0xFFFFFFFF).astype(np.int32)
    is_copy = np.concatenate([[False], of_pair[1:] == of_pair[:-1]])
    number = of_pair.copy()
    number[is_copy] = len(surface.point) + np.arange(np.count_nonzero(is_copy))
    points = surface.point.copy()
    points[of_pair[~is_copy]] = point_of_pair[~is_copy]
    result = surface.mesh.faces.copy()
    result.ravel()[own] = number[at]
    mesh = replace(_with_vertices(surface.mesh, of_pair[is_copy]), faces=result)
    return SeparatedMesh(mesh, np.concatenate([points, point_of_pair[is_copy]]), surface.parent)


def _separate_middles(surface: SeparatedMesh, half: Index, half_a: Index, half_b: Index) -> SeparatedMesh:
    """Give the pair of faces at each half-edge (k,) a vertex in its middle, if no other pair changes the same faces."""
    count = len(surface.mesh.faces)
    partner = np.empty(3 * count, np.intp)
    partner[half_a], partner[half_b] = half_b, half_a
    half, mate = choose_independent_pairs(half, partner[half], count)
    at = np.concatenate([half, mate])
    after = following(at)
    corner = surface.mesh.faces.ravel()
    start, end, opposite = corner[at], corner[after], corner[preceding(at)]
    middle = len(surface.point) + np.arange(len(at), dtype=np.int32)
    faces = surface.mesh.faces.copy()
    faces.ravel()[after] = middle
    rows = np.concatenate([np.arange(count), at // 3])
    mesh = _with_faces(
        _with_vertices(surface.mesh, start, end),
        np.concatenate([faces, np.stack([middle, end, opposite], axis=1)]),
        rows,
    )
    point = int(surface.point.max()) + 1 + np.tile(np.arange(len(half), dtype=np.int32), 2)
    return SeparatedMesh(mesh, np.concatenate([surface.point, point]), surface.parent[rows])
