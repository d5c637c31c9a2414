"""Solids: check that parts are closed, change their shape in millimeters, and make new faces look like old ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import manifold3d
import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from meshhub.errors import ConversionFailed, quote
from meshhub.model.progress import track
from meshhub.model.scene import Division, Float64, Int32, Mesh, Part, Scene
from meshhub.toolkit.combining import unite_bodies
from meshhub.toolkit.geometry import distinct, face_normals, placed_mesh, signed_volume, unit_vectors, weld
from meshhub.toolkit.solids import SIMPLIFICATION_STEPS, find_tolerance
from meshhub.toolkit.topology import edge_statistics, first_members, shells
from meshhub.toolkit.touching_edges import SeparatedMesh, separate_touching_edges
from meshhub.toolkit.validity import find_damage, without_empty_faces

_FLAT_RATIO = 1e-9
"""Ratio of the shortest to the longest axis of a matrix, below which the matrix flattens a mesh."""


def reshaped(scene: Scene, change: Callable[[Mesh, list[Part]], Mesh]) -> Scene:
    """Change the shape of all meshes, each once for the parts that differ only in place, direction and mirroring.

    Args:
        scene: Millimeters, Z up.
        change: Called with a mesh at its size in millimeters, not rotated, and with its parts; returns the mesh itself
            or another one.
    Returns:
        Scene with the changed meshes; parts keep their order and matrices, and unmoved vertices keep their exact
        values.
    """
    groups: dict[tuple[int, bytes], list[int]] = {}
    for place, part in enumerate(scene.parts):
        linear = part.transform[:3, :3]
        # rotations and mirrors do not change the metric, which is rounded so that rotated instances stay shared
        metric = linear.T @ linear
        scale = np.abs(metric).max()
        metric = np.round(metric / (scale or 1), 9) * scale
        groups.setdefault((part.mesh, (metric + 0.0).tobytes()), []).append(place)
    meshes: list[Mesh] = []
    parts = list(scene.parts)
    for (index, _), places in track(groups.items()):
        mesh = scene.meshes[index]
        meshes.append(_change_at_size(mesh, [scene.parts[place] for place in places], change))
        for place in places:
            parts[place] = replace(parts[place], mesh=len(meshes) - 1)
    return replace(scene, meshes=tuple(meshes), parts=tuple(parts))


def _change_at_size(mesh: Mesh, parts: list[Part], change: Callable[[Mesh, list[Part]], Mesh]) -> Mesh:
    """Change a mesh at the size that the matrices of its parts give it."""
    linear = parts[0].transform[:3, :3]
    if len(mesh.faces) == 0:
        return mesh
    if np.allclose(linear.T @ linear, np.eye(3), rtol=0, atol=1e-9):
        return change(mesh, parts)
    values, axes = np.linalg.eigh(linear.T @ linear)
    if values.min() <= _FLAT_RATIO**2 * values.max():
        raise ConversionFailed(f"part {name_of(mesh, parts)} is flattened by its matrix, and has no volume")
    stretch = (axes * np.sqrt(values)) @ axes.T
    before = replace(mesh, vertices=mesh.vertices @ stretch).with_division(mesh.division)
    after = change(before, parts)
    if after is before:
        return mesh
    vertices = after.vertices @ np.linalg.inv(stretch)
    # points that did not move keep their bits, with all of their duplicates
    first, index = weld(np.concatenate([before.vertices, after.vertices]))
    source = first[index[len(before.vertices) :]]
    same = np.flatnonzero(source < len(before.vertices))
    vertices[same] = mesh.vertices[source[same]]
    return replace(after, vertices=vertices).with_division(after.division)


def name_of(mesh: Mesh, parts: list[Part]) -> str:
    """Return the quoted name of the first part, for messages."""
    return quote(parts[0].name or mesh.name or "model")


def reshaped_in_place(
    scene: Scene, change: Callable[[Mesh, list[Part]], Mesh], variants: Sequence[int] | None = None
) -> Scene:
    """Change the shape of all meshes, each once for the parts that differ only in position along X and Y.

    Args:
        scene: Millimeters, Z up.
        change: Called with a mesh at its size, direction and height, and with its parts; returns the mesh itself or
            another one.
        variants: Number for each part; parts with different numbers do not share a mesh. Default: all the same.
    Returns:
        Scene with the changed meshes; parts keep their order.
    """
    groups: dict[tuple[int, bytes, int], list[int]] = {}
    for place, part in enumerate(scene.parts):
        key = part.transform.copy()
        key[:2, 3] = 0
        groups.setdefault((part.mesh, key.tobytes(), variants[place] if variants else 0), []).append(place)
    meshes: list[Mesh] = []
    parts = list(scene.parts)
    for (index, key_bytes, _), places in track(groups.items()):
        mesh, matrix = scene.meshes[index], np.frombuffer(key_bytes).reshape(4, 4)
        placed = placed_mesh(mesh, matrix)
        result = change(placed, [parts[place] for place in places]) if len(mesh.faces) else placed
        for place in places:
            transform = parts[place].transform
            if result is not placed:
                transform = np.eye(4)
                transform[:2, 3] = parts[place].transform[:2, 3]
            parts[place] = replace(parts[place], mesh=len(meshes), transform=transform)
        meshes.append(mesh if result is placed else result)
    return replace(scene, meshes=tuple(meshes), parts=tuple(parts))


def solid_surface(mesh: Mesh, parts: list[Part]) -> tuple[Float64, Int32]:
    """Return the points (u, 3) and proper faces (k, 3) of a mesh that must be a solid.

    Points are welded, except where the solid touches itself; see `separate_touching_edges`.

    Raises:
        ConversionFailed: The mesh is open, non-manifold, inconsistently oriented or inside out.
    """
    return _separate_solid(mesh, parts).weld()


def _separate_solid(mesh: Mesh, parts: list[Part]) -> SeparatedMesh:
    """Return a mesh that must be a solid, separated where it touches itself; raises like `solid_surface`."""
    separated = separate_touching_edges(mesh, name_of(mesh, parts))
    points, faces = separated.weld()
    defects = sum(edge_statistics(faces))
    if defects or len(faces) == 0:
        raise ConversionFailed(
            f"part {name_of(mesh, parts)} is not a closed solid: {defects} edges are open or invalid; use {{repair}}",
            options=("repair",),
        )
    if signed_volume(points, faces) <= 0:
        raise ConversionFailed(
            f"part {name_of(mesh, parts)} is inside out or has no volume; use {{repair}}", options=("repair",)
        )
    return separated


def to_manifold(mesh: Mesh, parts: list[Part]) -> manifold3d.Manifold:
    """Convert a mesh that must be a solid to a manifold3d solid that keeps the attributes for `subtracted`.

    Raises:
        ConversionFailed: The mesh is open, non-manifold, inconsistently oriented or inside out.
    """
    surface, point, parent = _separate_solid(mesh, parts)
    columns = [surface.vertices, *(values for _, values in _attributes(surface))]
    first = first_members(point, int(point.max()) + 1)
    moved = np.flatnonzero(first[point] != np.arange(len(point)))
    run = manifold3d.Manifold.reserve_ids(1)
    solid = manifold3d.Manifold(
        manifold3d.Mesh64(
            np.concatenate(columns, axis=1).astype(np.float64),
            surface.faces.astype(np.uint64),
            merge_from_vert=moved.astype(np.uint64),
            merge_to_vert=first[point[moved]].astype(np.uint64),
            run_index=np.array([0, 3 * len(parent)], np.uint64),
            run_original_id=np.array([run], np.uint32),
            face_id=parent.astype(np.uint64),
        )
    )
    if solid.status() != manifold3d.Error.NoError:
        raise ConversionFailed(
            f"part {name_of(mesh, parts)} touches itself, and cannot be cut; use {{repair}}", options=("repair",)
        )
    return solid


def unite_overlaps(mesh: Mesh, parts: list[Part]) -> Mesh:
    """Return a mesh that must be a solid with its overlapping bodies united; the mesh itself if none overlap.

    Subtractions, walls and cavities count a place in two bodies twice; slicers print it once. Write `note_overlaps` if
    the result is used.

    Raises:
        ConversionFailed: As `to_manifold`.
    """
    solid = to_manifold(mesh, parts)
    union = unite_bodies(solid)
    return mesh if union is solid else united(mesh, union, [])


def subtracted(mesh: Mesh, solid: manifold3d.Manifold, tools: list[manifold3d.Manifold]) -> Mesh:
    """Subtract tools from a mesh; new faces get the appearance of the nearest surface.

    Args:
        mesh: The mesh.
        solid: Result of `to_manifold` for the mesh.
        tools: Solids to subtract, in the same position and at the same scale as the mesh.
    Returns:
        Mesh without the volume of the tools; other faces keep their attributes.
    """
    return _combined(mesh, solid, tools, manifold3d.OpType.Subtract)


def united(mesh: Mesh, solid: manifold3d.Manifold, tools: list[manifold3d.Manifold], min_volume: float = 0.0) -> Mesh:
    """Add solids to a mesh; arguments and result are those of `subtracted`.

    Shells with faces of the tools are left out if their volume is smaller than `min_volume`, such as gaps of tools.
    """
    return _combined(mesh, solid, tools, manifold3d.OpType.Add, min_volume)


def _combined(
    mesh: Mesh,
    solid: manifold3d.Manifold,
    tools: list[manifold3d.Manifold],
    kind: manifold3d.OpType,
    min_volume: float = 0.0,
) -> Mesh:
    original = int(solid.to_mesh64().run_original_id[0])
    combination = manifold3d.Manifold.batch_boolean([solid, *tools], kind)
    result = _with_old_attributes(mesh, original, combination, min_volume)
    for steps in SIMPLIFICATION_STEPS:
        if find_damage(result).is_clean and not _has_short_edges(result):
            return result
        simpler = combination.simplify(steps * find_tolerance(result.vertices))
        result = _with_old_attributes(mesh, original, simpler, min_volume)
    return without_empty_faces(result)


def _has_short_edges(mesh: Mesh) -> bool:
    """Return whether a file may round the ends of an edge to one point after the mesh is scaled back to its part."""
    corners = mesh.vertices[mesh.faces]
    sides = corners - np.roll(corners, 1, axis=1)
    return bool(np.einsum("ijk,ijk->ij", sides, sides).min(initial=np.inf) < (2 * find_tolerance(mesh.vertices)) ** 2)


def _with_old_attributes(mesh: Mesh, original: int, solid: manifold3d.Manifold, min_volume: float) -> Mesh:
    """Return a solid as a mesh: faces with the original id keep the attributes of the mesh, others get the nearest.

    Shells with other faces are left out if their volume is smaller than `min_volume`.
    """
    result = solid.to_mesh64()
    starts = np.asarray(result.run_index).astype(np.intp) // 3
    is_old = np.repeat(np.asarray(result.run_original_id) == original, np.diff(starts))
    values, faces = np.asarray(result.vert_properties), np.asarray(result.tri_verts).astype(np.int32)
    face_id = np.asarray(result.face_id).astype(np.intp)
    if min_volume:
        # `decompose` takes a minute for 2000 shells of 650 000 faces
        kept = _find_large_shells(values[:, :3], faces, is_old, min_volume)
        faces, is_old, face_id = faces[kept], is_old[kept], face_id[kept]
    old = face_id[is_old]
    used, corners = np.unique(faces[is_old], return_inverse=True)
    attributes: dict[str, Any] = {}
    column = 3
    for name, array in _attributes(mesh):
        end = column + array.shape[1]
        kept = values[used, column:end]
        attributes[name] = np.rint(kept).astype(array.dtype) if array.dtype == np.uint8 else kept
        column = end
    if mesh.face_material is not None:
        attributes["face_material"] = mesh.face_material[old]
    plain = {"uv": None, "colors": None, "normals": None, "face_material": None}
    kept_mesh = replace(
        mesh, vertices=values[used, :3], faces=corners.reshape(-1, 3).astype(np.int32), **{**plain, **attributes}
    )
    used, corners = np.unique(faces[~is_old], return_inverse=True)
    added = corners.reshape(-1, 3).astype(np.int32)
    return with_faces(kept_mesh, values[used, :3], added, like=mesh) if len(used) else kept_mesh


def _find_large_shells(
    vertices: Float64, faces: Int32, is_old: NDArray[np.bool_], min_volume: float
) -> NDArray[np.bool_]:
    """Return which faces (m,) belong to shells of a volume or without new faces."""
    points, index = distinct(vertices)
    count, shell = shells(index[faces])
    a, b, c = (points[index[faces[:, corner]]] - points[0] for corner in range(3))
    volume = np.bincount(shell, np.einsum("ij,ij->i", a, np.cross(b, c)), count) / 6
    is_kept = np.abs(volume) >= min_volume
    is_kept |= np.bincount(shell[~is_old], minlength=count) == 0
    return is_kept[shell]


def _attributes(mesh: Mesh) -> list[tuple[str, NDArray[Any]]]:
    """Return the vertex attributes that a mesh has, by name."""
    names = ("uv", "colors", "normals")
    return [(name, getattr(mesh, name)) for name in names if getattr(mesh, name) is not None]


def with_faces(mesh: Mesh, vertices: Float64, faces: Int32, like: Mesh | None = None) -> Mesh:
    """Add faces to a mesh, which look like its nearest faces.

    Args:
        mesh: Any mesh; its vertices and faces come first in the result.
        vertices: (n, 3) further positions.
        faces: (m, 3) indices into `vertices`.
        like: Mesh with faces and the same attributes that the faces look like; default: the mesh.
    """
    like = like or mesh
    used = np.unique(like.faces)
    near = used[cKDTree(like.vertices[used]).query(vertices)[1]]
    attributes: dict[str, Any] = {}
    for name in ("uv", "colors"):
        values, others = getattr(mesh, name), getattr(like, name)
        if others is not None:
            attributes[name] = np.concatenate([values, others[near]])
    if mesh.normals is not None:
        attributes["normals"] = np.concatenate([mesh.normals, vertex_normals(vertices, faces)])
    if mesh.face_material is not None and like.face_material is not None:
        material = np.empty(len(like.vertices), np.int32)
        material[like.faces] = like.face_material[:, None]
        attributes["face_material"] = np.concatenate([mesh.face_material, material[near[faces[:, 0]]]])
    added = faces + np.int32(len(mesh.vertices))
    result = replace(
        mesh,
        vertices=np.concatenate([mesh.vertices, vertices]),
        faces=np.concatenate([mesh.faces, added]),
        **attributes,
    )
    if mesh.division is None:
        return result
    triangles, owner = mesh.division.triangles, mesh.division.owner
    numbers = len(triangles) + np.arange(len(faces), dtype=np.int32)
    return result.with_division(Division(np.concatenate([triangles, added]), np.concatenate([owner, numbers])))


def vertex_normals(vertices: Float64, faces: Int32) -> Float64:
    """Return (n, 3) unit normals: the mean of the face normals around each vertex, weighted by area."""
    normals = face_normals(vertices, faces)
    total: Float64 = np.stack(
        [np.bincount(faces.ravel(), np.repeat(normals[:, axis], 3), len(vertices)) for axis in range(3)],
        axis=1,
        dtype=np.float64,
    )
    return unit_vectors(total)
