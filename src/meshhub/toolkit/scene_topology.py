"""Topology of all meshes of a scene at once, so that thousands of small meshes cost no more than a large one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64, Int32, Mesh
from meshhub.toolkit.containment import hosts_of
from meshhub.toolkit.geometry import IntIndex, face_normals, weld
from meshhub.toolkit.nesting import find_cavities
from meshhub.toolkit.pairing import pair_half_edges
from meshhub.toolkit.topology import Edges, Index, components, edges


@dataclass(frozen=True, eq=False)
class JoinedMeshes:
    """All meshes in one array.

    vertices: (n, 3) positions of all meshes
    faces:    (m, 3) indices into `vertices`
    welded:   (m, 3) indices of distinct points; points of different meshes are never the same
    owner:    (m,) mesh of each face, ascending
    collapsed: (m,) mask of faces with two corners at one point
    sizes:    (k,) number of faces of each mesh
    """

    vertices: Float64
    faces: Index
    welded: Int32
    owner: IntIndex
    collapsed: NDArray[np.bool_]
    sizes: IntIndex


def _join(meshes: tuple[Mesh, ...]) -> JoinedMeshes:
    sizes = np.array([len(mesh.faces) for mesh in meshes], np.intp)
    first = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    vertices = np.concatenate([mesh.vertices for mesh in meshes] or [np.empty((0, 3))])
    faces = np.concatenate(
        [mesh.faces.astype(np.int64) + start for mesh, start in zip(meshes, first, strict=False)]
        or [np.empty((0, 3), np.int64)]
    )
    point = _weld_by_mesh(vertices, np.repeat(np.arange(len(meshes)), np.diff(first)))
    welded = point[faces]
    a, b, c = welded[:, 0], welded[:, 1], welded[:, 2]
    collapsed = (a == b) | (b == c) | (c == a)
    return JoinedMeshes(vertices, faces, welded, np.repeat(np.arange(len(meshes)), sizes), collapsed, sizes)


class Shells(NamedTuple):
    """Shells of all meshes; bodies that touch along an edge or share a face are separate shells.

    label:  (k,) shell of each face that is not collapsed
    owner:  (s,) mesh of each shell
    closed: (s,) mask of shells whose edges all are on two faces that are oriented alike
    volume: (s,) signed volume of each shell
    hollow: (s,) mask of cavities: closed inward shells in an outward one of the same mesh; by nesting, as `repair`
            decides, if a body of the mesh faces inward
    """

    label: Int32
    owner: IntIndex
    closed: NDArray[np.bool_]
    volume: Float64
    hollow: NDArray[np.bool_]

    @property
    def inverted(self) -> NDArray[np.bool_]:
        """The mask (s,) of the closed shells that face the wrong way: bodies inward, or cavities outward."""
        inverted: NDArray[np.bool_] = self.closed & (self.volume * np.where(self.hollow, -1.0, 1.0) < 0)
        return inverted


@dataclass(frozen=True, eq=False)
class SceneTopology:
    """Topology of all meshes; collapsed faces are left out, except in `joined`.

    joined:  positions and faces of all meshes
    normals: (m, 3) normals of all faces, twice their area long
    volumes: (m,) signed volume between each face and a corner of its mesh
    faces:   (k, 3) welded points of the faces
    owner:   (k,) mesh of each face
    edges:   edges of `faces`
    half, twin: (p,) both half-edges of each edge on two faces
    is_inconsistent: (p,) mask of pairs that run in the same direction
    shells:  shells of `faces`
    """

    joined: JoinedMeshes
    normals: Float64
    volumes: Float64
    faces: Int32
    owner: IntIndex
    edges: Edges
    half: Index
    twin: Index
    is_inconsistent: NDArray[np.bool_]
    shells: Shells


def analyze(meshes: tuple[Mesh, ...]) -> SceneTopology:
    """Return the topology of meshes, each in its own coordinates."""
    joined = _join(meshes)
    normals = face_normals(joined.vertices, joined.faces.astype(np.int32))
    volumes = _signed_volumes(meshes, joined, normals)
    faces, owner = joined.welded[~joined.collapsed], joined.owner[~joined.collapsed]
    mesh_edges = edges(faces)
    half, twin = mesh_edges.pairs()
    begin = faces.ravel()
    is_inconsistent = begin[half] == begin[twin]
    shells_ = _find_shells(joined, mesh_edges, volumes)
    return SceneTopology(joined, normals, volumes, faces, owner, mesh_edges, half, twin, is_inconsistent, shells_)


def _signed_volumes(meshes: tuple[Mesh, ...], joined: JoinedMeshes, normals: Float64) -> Float64:
    """Return the signed volume (m,) of the tetrahedron between each face and a corner of its mesh.

    A corner of the mesh replaces the origin, because digits would be lost far from the origin.
    """
    corner = np.array([mesh.vertices[mesh.faces[0, 0]] if len(mesh.faces) else np.zeros(3) for mesh in meshes])
    offset = joined.vertices[joined.faces[:, 0]] - corner.reshape(-1, 3)[joined.owner]
    volumes: Float64 = np.einsum("ij,ij->i", offset, normals) / 6
    return volumes


def _weld_by_mesh(vertices: Float64, owner: IntIndex) -> Int32:
    """Return the distinct point of each vertex; vertices of different meshes are never the same point."""
    if len(owner) == 0 or owner[0] == owner[-1]:
        return weld(vertices)[1]
    return weld(np.concatenate([vertices, owner[:, None].astype(np.float64)], axis=1))[1]


def _find_shells(joined: JoinedMeshes, mesh_edges: Edges, volumes: Float64) -> Shells:
    """Return the shells, and which of them are cavities.

    Args:
        mesh_edges: Edges of the faces that are not collapsed.
        volumes: (m,) signed volume of each face.
    """
    owner, welded = joined.owner[~joined.collapsed], joined.welded[~joined.collapsed]
    points = np.empty((int(welded.max(initial=-1)) + 1, 3))
    points[welded] = joined.vertices[joined.faces[~joined.collapsed]]
    half_a, half_b = pair_half_edges(points, welded, mesh_edges)
    number, shell = components(len(welded), half_a // 3, half_b // 3)
    shell_owner = np.zeros(number, np.intp)
    shell_owner[shell] = owner
    begin = welded.ravel()
    agrees = begin[half_a] != begin[half_b]
    is_open = np.ones(len(begin), np.bool_)
    is_open[half_a[agrees]] = is_open[half_b[agrees]] = False
    closed = np.bincount(shell[np.flatnonzero(is_open) // 3], minlength=number) == 0
    signed = np.bincount(shell, volumes[~joined.collapsed], minlength=number).astype(np.float64)
    is_inward = closed & (signed < 0)
    faces = joined.faces[~joined.collapsed]
    hollow = np.zeros(number, np.bool_)
    for mesh in np.unique(shell_owner[is_inward]):
        of_faces, of_shells = (slice(*np.searchsorted(owners, [mesh, mesh + 1])) for owners in (owner, shell_owner))
        corner = joined.vertices[faces[of_faces]]
        own = shell[of_faces] - of_shells.start, closed[of_shells]
        hollow[of_shells] = hosts_of(corner, *own, signed[of_shells]) >= 0
        if (is_inward & ~hollow)[of_shells].any():
            # what is in a body that is inside out may have any orientation
            soup = np.arange(3 * len(corner), dtype=np.int32).reshape(-1, 3)
            hollow[of_shells] = find_cavities(corner.reshape(-1, 3), soup, *own, np.abs(signed[of_shells]))
    return Shells(shell, shell_owner, closed, signed, hollow)
