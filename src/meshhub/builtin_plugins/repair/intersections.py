"""Union of bodies that overlap, and of a body with itself; cavities stay."""

from __future__ import annotations

from collections import Counter

import numpy as np
from manifold3d import Manifold, OpType
from numpy.typing import NDArray

from meshhub.builtin_plugins.repair import meshlab
from meshhub.builtin_plugins.repair.orient import measure_shell_volumes
from meshhub.builtin_plugins.repair.validity import check_as_file
from meshhub.builtin_plugins.repair.welded_mesh import WeldedMesh, weld_mesh
from meshhub.errors import ConversionFailed
from meshhub.model.notes import note
from meshhub.model.scene import Float64, Mesh
from meshhub.toolkit import topology
from meshhub.toolkit.containment import hosts_of
from meshhub.toolkit.crossings import find_crossings, pair_boxes
from meshhub.toolkit.geometry import chosen_faces, extremes, measure_diagonal
from meshhub.toolkit.solids import Solids, split_solid

DEPTH_RATIO = 1e-5
"""Depth per diagonal of the part from which faces cross; less is rounding."""

MAX_CROSSING_RATIO = 0.001
"""Share of the faces of a union that may cross others, such as slivers after rounding."""

MIN_OVERLAP_RATIO = 1e-7
"""Volume of overlaps per volume of the bodies; less is rounding."""

MAX_DEPTH = 6
"""Cuts of one body; each piece whose faces still cross is cut again, into 64 slabs at most."""


def unite_bodies(mesh: Mesh, tally: Counter[str], name: str, material_count: int) -> Mesh:
    """Unite the bodies of a mesh where they overlap, and each body with itself.

    Args:
        mesh: Repaired mesh.
        tally: Counts the meshes whose bodies were united.
        name: Name of the part in notes.
        material_count: Number of materials of the scene.
    Returns:
        The mesh itself if it has no overlap, or if the union would not be valid.
    """
    surface, _ = weld_mesh(mesh)
    groups = _group_bodies(surface)
    if not groups:
        _note_left(name, "it is not closed")
        return mesh
    crosses = _measure_crossings(surface) > 0
    if not crosses and not _overlap_boxes(surface, groups):
        return mesh
    before_volume = check_as_file(surface.points, surface.faces).volume
    result = _unite(mesh, groups, crosses, material_count)
    if result is not None and _is_union(result, before_volume):
        volume = check_as_file(*_arrays(result)).volume
        if volume >= (1 - MIN_OVERLAP_RATIO) * before_volume:
            return mesh
        tally["self_intersections_united"] += 1
        return result
    result = meshlab.unite_with_meshlab(mesh) if crosses else None
    if result is not None and _is_union(result, before_volume):
        tally["self_intersections_united"] += 1
        return result
    _note_left(name, "the union would not be valid")
    return mesh


def _note_left(name: str, reason: str) -> None:
    note(
        "self_intersections_left",
        f"Part {name} may intersect itself, and was left so, because {reason}; use {{repair_wrap_mm}}.",
        options=("repair_wrap_mm",),
        name=name,
    )


def _arrays(mesh: Mesh) -> tuple[Float64, NDArray[np.int32]]:
    return mesh.vertices, mesh.faces


def _is_union(mesh: Mesh, volume: float) -> bool:
    """Return whether a mesh is valid, not larger than its bodies, and has no overlap any more."""
    surface, _ = weld_mesh(mesh)
    check = check_as_file(surface.points, surface.faces)
    is_smaller = check.volume <= (1 + MIN_OVERLAP_RATIO) * volume
    return check.valid and is_smaller and _measure_crossings(surface) < MAX_CROSSING_RATIO


def _group_bodies(surface: WeldedMesh) -> list[NDArray[np.intp]]:
    """Return the faces of each outward shell with those of its cavities; none if the surface does not bound a solid."""
    mesh_edges = topology.edges(surface.faces)
    count, label = topology.shells(surface.faces, mesh_edges)
    volume = measure_shell_volumes(surface.with_shells(label))
    if any(topology.edge_statistics(surface.faces, mesh_edges)) or volume.sum() <= 0:
        return []
    if count == 1:
        return [np.arange(len(surface.faces))]
    host = hosts_of(surface.points[surface.faces], label, np.ones(count, np.bool_), volume)
    body = np.where(host >= 0, host, np.arange(count))[label]
    order = np.argsort(body, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(body[order])) + 1)


def _measure_crossings(surface: WeldedMesh) -> float:
    """Return the share of the faces that cross others."""
    corners = surface.points[surface.faces]
    crossings = find_crossings(corners, DEPTH_RATIO * measure_diagonal(corners))
    return len(np.unique([crossings.first, crossings.second])) / len(corners)


def _overlap_boxes(surface: WeldedMesh, groups: list[NDArray[np.intp]]) -> bool:
    """Return whether the bounding boxes of any two bodies overlap, so that one may be in the other."""
    boxes = np.array([extremes(surface.points[surface.faces[faces].ravel()]) for faces in groups])
    return any(len(first) > 0 for first, _ in pair_boxes(boxes[:, 0], boxes[:, 1]))


def _unite(mesh: Mesh, groups: list[NDArray[np.intp]], crosses: bool, material_count: int) -> Mesh | None:
    solids = Solids.of([mesh], material_count, "repair")
    try:
        bodies = [solids.to_solid(chosen_faces(mesh, faces), "") for faces in groups]
        pieces = [piece for body in bodies for piece in (_divide(body, MAX_DEPTH) if crosses else [body])]
        union = Manifold.batch_boolean(pieces, OpType.Add)
        return solids.to_mesh(union, mesh) if union.volume() > 0 else None
    except ConversionFailed:
        return None


def _divide(body: Manifold, depth: int) -> list[Manifold]:
    """Cut a body whose faces cross into pieces until those that overlap are separate shells."""
    native = body.to_mesh64()
    points = np.asarray(native.vert_properties)[:, :3]
    surface, _ = weld_mesh(Mesh(points, np.asarray(native.tri_verts).astype(np.int32)))
    if depth == 0 or not _measure_crossings(surface):
        return [body]
    low, high = points.min(axis=0), points.max(axis=0)
    axis = int((high - low).argmax())
    halves = split_solid(body, axis, float(low[axis] + high[axis]) / 2)
    return [piece for half in halves for shell in half.decompose() for piece in _divide(shell, depth - 1)]
