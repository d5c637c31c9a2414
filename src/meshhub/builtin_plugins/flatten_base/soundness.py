"""Whether meshes are sound, many small ones at once; and what of a mesh vanishes whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from meshhub.builtin_plugins.flatten_base.cut import Plane
from meshhub.geometry import compacted, weld, welded
from meshhub.scene import Mesh
from meshhub.topology import EdgeStatistics, edges, first_members, shells

LOT = 200_000
"""So many vertices are looked at together at most, or one larger mesh by itself; bounds the memory."""


class Soundness(NamedTuple):
    """The edges and bodies of a mesh as an STL file would hold them."""

    edges: EdgeStatistics
    bodies: int

    @property
    def bad(self) -> int:
        """How many edges are unsound."""
        return sum(self.edges)


def soundness(mesh: Mesh) -> Soundness:
    """The mesh's edges and bodies, where points that are equal in 32 bits are one."""
    return _together([mesh])[0]


def soundness_of_each(meshes: Sequence[Mesh]) -> list[Soundness]:
    """The same of many meshes, small ones together."""
    made: list[Soundness] = []
    lot: list[Mesh] = []
    size = 0
    for mesh in meshes:
        if lot and size + len(mesh.vertices) > LOT:
            made += _together(lot)
            lot, size = [], 0
        lot.append(mesh)
        size += len(mesh.vertices)
    return made + _together(lot) if lot else made


def _together(meshes: Sequence[Mesh]) -> list[Soundness]:
    """The same of meshes laid side by side: points of different ones are never one."""
    count = len(meshes)
    begin = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    vertices = np.concatenate([mesh.vertices for mesh in meshes]).astype(np.float32)
    if count > 1:
        owner_of_vertex = np.repeat(np.arange(count, dtype=np.float32), np.diff(begin))
        vertices = np.concatenate([vertices, owner_of_vertex[:, None]], axis=1)
    _, index = weld(vertices)
    faces = np.concatenate([index[mesh.faces + np.int32(start)] for mesh, start in zip(meshes, begin, strict=False)])
    owner = np.repeat(np.arange(count), [len(mesh.faces) for mesh in meshes])
    a, b, c = faces.T
    solid = (a != b) & (b != c) & (c != a)
    if not solid.all():
        faces, owner = faces[solid], owner[solid]
    found = edges(faces)
    number, label = shells(faces, found)
    edge_owner = owner[found.order[found.start] // 3]
    one, other = found.pairs()
    corner = faces.ravel()
    inconsistent = one[corner[one] == corner[other]]
    figures = np.stack(
        [
            np.bincount(owners, minlength=count)
            for owners in (
                edge_owner[found.size == 1],
                edge_owner[found.size > 2],
                owner[inconsistent // 3],
                owner[first_members(label, number)],
            )
        ],
        axis=1,
    )
    return [Soundness(EdgeStatistics(*awry), bodies) for *awry, bodies in figures.tolist()]


def shells_below(mesh: Mesh, plane: Plane) -> int:
    """How many shells of a mesh have nothing above the plane, so that a cut takes them whole."""
    high = (mesh.vertices[:, 2] - plane.at > plane.near)[mesh.faces]
    # faces wholly above are not asked: what is below them hangs on others that cross
    lower = np.flatnonzero(~high.all(axis=1))
    crossing = high[lower].any(axis=1)
    if crossing.all():
        return 0
    count, label = shells(welded(compacted(Mesh(mesh.vertices, mesh.faces[lower])))[1])
    stays = np.zeros(count, np.bool_)
    stays[label[crossing]] = True
    return int(count - stays.sum())
