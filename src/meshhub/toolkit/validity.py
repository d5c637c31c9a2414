"""Validity of the meshes that operations make, as a float32 file would store them.

An operation that makes a new surface judges it with `find_damage`. It falls back to another surface, or writes the one
note about it with `note_damage`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.errors import format_count
from meshhub.model.notes import note
from meshhub.model.scene import Float64, Int32, Mesh
from meshhub.toolkit.geometry import chosen_faces, weld, welded
from meshhub.toolkit.topology import (
    EdgeStatistics,
    components,
    edges,
    first_members,
    half_edges,
    remove_degenerate_faces,
    shells,
)
from meshhub.toolkit.touching_edges import find_touching_edges

MAX_BATCH_VERTICES = 200_000
"""Maximum vertices in one batch, unless a single mesh has more; bounds the memory."""


class MeshCheck(NamedTuple):
    """Defects and shells of a mesh, with vertices welded at positions that are equal in float32.

    edges:     invalid edges, without those of collapsed faces, and those along which a solid touches itself
    touching:  edges along which a solid touches itself, which slicers print
    collapsed: faces with two corners at one position
    shells:    shells, including cavities
    inward:    shells with negative volume, such as cavities
    volume:    signed, in cubed units of the vertices
    """

    edges: EdgeStatistics
    touching: int
    collapsed: int
    shells: int
    inward: int
    volume: float

    @property
    def defects(self) -> int:
        """Number of invalid edges."""
        return sum(self.edges)


class Damage(NamedTuple):
    """Defects that a mesh has beyond those of the mesh before an operation; empty fields if there are none.

    open:       edges on one face
    nonmanifold: edges on more than two faces, except those along which a solid touches itself
    flipped:    edges on two faces of opposite orientation
    collapsed:  faces with two corners at one position
    inside_out: whether the volume of the closed surface is not positive any more
    shells:     number of shells, if it is not the expected one; else None
    touching:   edges along which a solid touches itself; not a defect
    """

    open: int
    nonmanifold: int
    flipped: int
    collapsed: int
    inside_out: bool
    shells: int | None
    touching: int

    def __bool__(self) -> bool:
        """Return whether there is any defect."""
        return any(self[:5]) or self.shells is not None

    @property
    def is_clean(self) -> bool:
        """Whether the solid has no defect and does not touch itself."""
        return not self and self.touching == 0


_SOLID = MeshCheck(EdgeStatistics(0, 0, 0), 0, 0, 1, 0, 1.0)
"""Check of a valid solid."""


def check_mesh(mesh: Mesh) -> MeshCheck:
    """Check one mesh."""
    return _check_batch([mesh])[0]


def check_meshes(meshes: Sequence[Mesh]) -> list[MeshCheck]:
    """Check many meshes, small ones in batches."""
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


def find_damage(mesh: Mesh, before: MeshCheck | None = None, expected_shells: int | None = None) -> Damage:
    """Find the defects that an operation added.

    Args:
        mesh: Result of the operation.
        before: Check of the mesh before the operation; default: it was a valid solid.
        expected_shells: Number of shells that the result must have, including cavities; None for any number.
    """
    check, before = check_mesh(mesh), before or _SOLID
    boundary, nonmanifold, inconsistent, collapsed = (
        max(0, now - was)
        for now, was in zip((*check.edges, check.collapsed), (*before.edges, before.collapsed), strict=True)
    )
    is_changed = expected_shells is not None and check.shells != expected_shells
    return Damage(
        boundary,
        nonmanifold,
        inconsistent,
        collapsed,
        before.volume > 0 and check.volume <= 0 and check.edges.boundary == 0 and len(mesh.faces) > 0,
        check.shells if is_changed else None,
        max(0, check.touching - before.touching),
    )


def find_invalid_edge(mesh: Mesh) -> Float64 | None:
    """Return the middle (3,) of the first invalid edge of a mesh in a file; None if there is none."""
    points, faces = welded(replace(mesh, vertices=mesh.vertices.astype(np.float32).astype(np.float64)))
    faces = remove_degenerate_faces(faces)
    mesh_edges = edges(faces)
    begin, end = half_edges(faces)
    is_invalid = (mesh_edges.size != 2) & ~find_touching_edges(faces, mesh_edges)
    half_a, half_b = mesh_edges.pairs()
    is_invalid[mesh_edges.size == 2] = begin[half_a] == begin[half_b]
    if not is_invalid.any():
        return None
    half = mesh_edges.order[mesh_edges.start[is_invalid.argmax()]]
    middle: Float64 = points[[begin[half], end[half]]].mean(axis=0)
    return middle


def note_damage(name: str, damage: Damage) -> None:
    """Say what is wrong with the result of an operation; write no note without damage.

    Args:
        name: What is damaged, such as a quoted name of a part.
        damage: Defects that the operation added.
    """
    if not damage:
        return
    edge_count = damage.open + damage.nonmanifold + damage.flipped
    defects = [
        format_count(count, one, many)
        for count, one, many in (
            (damage.open, "open edge", "open edges"),
            (damage.nonmanifold, "edge of more than two faces", "edges of more than two faces"),
            (damage.flipped, "edge of flipped faces", "edges of flipped faces"),
            (damage.collapsed, "face without area", "faces without area"),
        )
        if count
    ]
    if damage.inside_out:
        defects.append("no volume")
    if damage.shells is not None:
        defects.append(f"an unexpected number of shells, {damage.shells:,}")
    note(
        "result_invalid",
        f"{name} has {' and '.join(defects)} after this step; inspect it, or use {{repair}} on the result",
        options=("repair",),
        name=name,
        count=edge_count + damage.collapsed,
    )


def without_empty_faces(mesh: Mesh) -> Mesh:
    """Return a mesh without faces that enclose nothing; it stays closed.

    These are faces with two corners at positions equal in float32, whose vertices are merged, and pairs of faces that
    lie on each other with opposite orientation.
    """
    first, index = weld(mesh.vertices.astype(np.float32))
    faces = index[mesh.faces]
    a, b, c = faces.T
    is_collapsed = (a == b) | (b == c) | (c == a)
    is_kept = ~is_collapsed & ~_find_opposite(faces, is_collapsed)
    if is_kept.all():
        return mesh
    begin, end = (corners[is_collapsed].ravel() for corners in (mesh.faces, np.roll(mesh.faces, -1, axis=1)))
    is_short = index[begin] == index[end]
    count, label = components(len(mesh.vertices), begin[is_short], end[is_short])
    merged = first_members(label, count)[label].astype(np.int32)
    result = replace(mesh, vertices=mesh.vertices[first[index]], faces=merged[mesh.faces])
    return chosen_faces(result, np.flatnonzero(is_kept))


def _find_opposite(faces: Int32, is_skipped: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return whether as many faces (m,) with the same corners turn one way as the other."""
    corners = np.sort(faces, axis=1)
    order = np.lexsort(corners.T)
    is_first = np.append(True, (np.diff(corners[order], axis=0) != 0).any(axis=1))
    group = np.empty(len(faces), np.intp)
    group[order] = np.cumsum(is_first) - 1
    a, b, c = faces.T
    turn = np.where((a < b).astype(np.int8) + (b < c) + (c < a) == 2, 1, -1) * ~is_skipped
    return np.asarray((np.bincount(group, turn) == 0)[group])


def _check_batch(meshes: Sequence[Mesh]) -> list[MeshCheck]:
    """Check meshes as one; the weld key includes the owner, so points of different meshes stay separate."""
    count = len(meshes)
    begin = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    vertices = np.concatenate([mesh.vertices for mesh in meshes]).astype(np.float32)
    key = vertices
    if count > 1:
        vertex_owner = np.repeat(np.arange(count, dtype=np.float32), np.diff(begin))
        key = np.concatenate([vertices, vertex_owner[:, None]], axis=1)
    first, index = weld(key)
    faces = np.concatenate([index[mesh.faces + np.int32(start)] for mesh, start in zip(meshes, begin, strict=False)])
    owner = np.repeat(np.arange(count), [len(mesh.faces) for mesh in meshes])
    a, b, c = faces.T
    proper = (a != b) & (b != c) & (c != a)
    collapsed = np.bincount(owner[~proper], minlength=count)
    if not proper.all():
        faces, owner = faces[proper], owner[proper]
    mesh_edges = edges(faces)
    is_touching = find_touching_edges(faces, mesh_edges)
    number, label = shells(faces, mesh_edges)
    shell_face = first_members(label, number)
    edge_owner = owner[mesh_edges.order[mesh_edges.start] // 3]
    half_a, half_b = mesh_edges.pairs()
    corner = faces.ravel()
    inconsistent = half_a[corner[half_a] == corner[half_b]]
    # relative to a point of the shell, so that the volumes of open shells mean something far from the origin
    points = vertices[first].astype(np.float64)
    origin = points[faces[shell_face, 0]][label]
    a, b, c = (points[faces[:, place]] - origin for place in range(3))
    volume = np.bincount(label, np.einsum("ij,ij->i", a, np.cross(b, c)), number) / 6
    shell_owner = owner[shell_face]
    figures = np.stack(
        [
            np.bincount(owners, minlength=count)
            for owners in (
                edge_owner[mesh_edges.size == 1],
                edge_owner[(mesh_edges.size > 2) & ~is_touching],
                owner[inconsistent // 3],
                edge_owner[is_touching],
                shell_owner,
                shell_owner[volume < 0],
            )
        ],
        axis=1,
    )
    volumes = np.bincount(shell_owner, volume, count)
    return [
        MeshCheck(EdgeStatistics(*defects), touching, flat, shell_count, inward, float(total))
        for (*defects, touching, shell_count, inward), flat, total in zip(
            figures.tolist(), collapsed.tolist(), volumes, strict=True
        )
    ]
