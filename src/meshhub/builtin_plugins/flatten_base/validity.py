"""Check the edges and bodies of many meshes at once, as a float32 file would store them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from meshhub.builtin_plugins.flatten_base.cut import Plane
from meshhub.model.scene import Mesh
from meshhub.toolkit.geometry import compacted, weld, welded
from meshhub.toolkit.topology import EdgeStatistics, edges, first_members, shells

MAX_BATCH_VERTICES = 200_000
"""Maximum vertices in one batch, unless a single mesh has more; bounds the memory."""


class MeshCheck(NamedTuple):
    """Invalid edges and number of bodies of a mesh, as an STL file would store it."""

    edges: EdgeStatistics
    bodies: int

    @property
    def defects(self) -> int:
        """Number of invalid edges."""
        return sum(self.edges)


def check_mesh(mesh: Mesh) -> MeshCheck:
    """Check one mesh, with vertices welded at positions that are equal in float32."""
    return _check_batch([mesh])[0]


def check_meshes(meshes: Sequence[Mesh]) -> list[MeshCheck]:
    """Check many meshes, small ones in batches; vertices are welded at positions that are equal in float32."""
    checks: list[MeshCheck] = []
    batch: list[Mesh] = []
    size = 0
    for mesh in meshes:
        if batch and size + len(mesh.vertices) > MAX_BATCH_VERTICES:
            checks += _check_batch(batch)
            batch, size = [], 0
        batch.append(mesh)
        size += len(mesh.vertices)
    return checks + _check_batch(batch) if batch else checks


def _check_batch(meshes: Sequence[Mesh]) -> list[MeshCheck]:
    """Check meshes as one; the weld key includes the owner, so points of different meshes stay separate."""
    count = len(meshes)
    begin = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    vertices = np.concatenate([mesh.vertices for mesh in meshes]).astype(np.float32)
    if count > 1:
        vertex_owner = np.repeat(np.arange(count, dtype=np.float32), np.diff(begin))
        vertices = np.concatenate([vertices, vertex_owner[:, None]], axis=1)
    _, index = weld(vertices)
    faces = np.concatenate([index[mesh.faces + np.int32(start)] for mesh, start in zip(meshes, begin, strict=False)])
    owner = np.repeat(np.arange(count), [len(mesh.faces) for mesh in meshes])
    a, b, c = faces.T
    proper = (a != b) & (b != c) & (c != a)
    if not proper.all():
        faces, owner = faces[proper], owner[proper]
    mesh_edges = edges(faces)
    number, label = shells(faces, mesh_edges)
    edge_owner = owner[mesh_edges.order[mesh_edges.start] // 3]
    half_a, half_b = mesh_edges.pairs()
    corner = faces.ravel()
    inconsistent = half_a[corner[half_a] == corner[half_b]]
    figures = np.stack(
        [
            np.bincount(owners, minlength=count)
            for owners in (
                edge_owner[mesh_edges.size == 1],
                edge_owner[mesh_edges.size > 2],
                owner[inconsistent // 3],
                owner[first_members(label, number)],
            )
        ],
        axis=1,
    )
    return [MeshCheck(EdgeStatistics(*defects), bodies) for *defects, bodies in figures.tolist()]


def count_shells_below(mesh: Mesh, plane: Plane) -> int:
    """Count the shells of a mesh that have no vertex above the plane, which a cut removes completely."""
    is_above = (mesh.vertices[:, 2] - plane.cut_z > plane.tolerance)[mesh.faces]
    # faces completely above are irrelevant, because they connect to lower faces only through crossing faces
    lower = np.flatnonzero(~is_above.all(axis=1))
    crossing = is_above[lower].any(axis=1)
    if crossing.all():
        return 0
    count, label = shells(welded(compacted(Mesh(mesh.vertices, mesh.faces[lower])))[1])
    stays = np.zeros(count, np.bool_)
    stays[label[crossing]] = True
    return int(count - stays.sum())
