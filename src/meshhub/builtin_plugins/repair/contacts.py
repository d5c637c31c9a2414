"""Separation of parts that touch, for files that programs read as one mesh: welding would join them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.repair.split import MAX_ROUNDS, MIN_SEPARATION_STEPS, SEPARATION_RATIO
from meshhub.builtin_plugins.repair.validity import check_as_file
from meshhub.builtin_plugins.repair.welded_mesh import point_normals
from meshhub.model.scene import Float64, Int32, Scene
from meshhub.toolkit import topology
from meshhub.toolkit.geometry import IntIndex, mirrors, transformed, weld, without_unused_meshes


def separate_parts(scene: Scene) -> tuple[Scene, int]:
    """Move the places where shells touch apart, if a file that stores all parts as one float32 mesh would join them.

    The first shell at a place keeps it; the others move into their own material, by a few steps of float32.

    Args:
        scene: Millimeters, Z up.
    Returns:
        The scene, in which each changed part has a mesh of its own, and the number of points moved. The scene itself if
        that would not leave fewer defects.
    """
    placed = [transformed(scene.meshes[part.mesh].vertices, part.transform) for part in scene.parts]
    faces = [
        scene.meshes[part.mesh].faces[:, ::-1] if mirrors(part.transform) else scene.meshes[part.mesh].faces
        for part in scene.parts
    ]
    begin = np.cumsum([0, *(len(points) for points in placed)])
    if begin[-1] == 0 or min(abs(np.linalg.det(part.transform[:3, :3])) for part in scene.parts) == 0:
        return scene, 0
    points = np.concatenate(placed)
    corners = np.concatenate([own + np.int32(start) for own, start in zip(faces, begin, strict=False)])
    before = check_as_file(points, corners)
    shell = _label_shells(scene, faces, begin)
    result: Float64 = points
    moved = 0
    for attempt in range(MAX_ROUNDS):
        contact = _find_contacts(result, shell)
        if len(contact.vertex) == 0:
            break
        moved = moved or contact.places
        result = result.copy()
        distance = _choose_distance(points) * (contact.rank + 0.7 * attempt)
        result[contact.vertex] -= _outward_normals(points, corners, shell, contact.vertex) * distance[:, None]
    if moved == 0 or check_as_file(result, corners).defects > before.defects:
        return scene, 0
    return _with_vertices(scene, placed, [result[low:high] for low, high in pairwise(begin)]), moved


class _Contacts(NamedTuple):
    """Vertices at places of several shells, without those of the first shell.

    vertex: (k,) vertices
    rank:   (k,) position of the shell of each vertex among those at its place, from 1
    places: number of different points that the vertices are at, each shell counted
    """

    vertex: IntIndex
    rank: IntIndex
    places: int


def _find_contacts(points: Float64, shell: IntIndex) -> _Contacts:
    """Find the vertices (n, 3) of used points that have the position of another shell's in float32; unused have -1."""
    used = np.flatnonzero(shell >= 0)
    _, place = weld(points[used].astype(np.float32))
    count = int(shell.max()) + 1
    pairs, pair = np.unique(place.astype(np.int64) * count + shell[used], return_inverse=True)
    owner = pairs // count
    rank = np.arange(len(pairs)) - np.searchsorted(owner, owner)
    chosen = rank[pair] > 0
    return _Contacts(used[chosen], rank[pair][chosen], int((rank > 0).sum()))


def _label_shells(scene: Scene, faces: list[Int32], begin: IntIndex) -> IntIndex:
    """Return the (n,) shell of each vertex of all parts; -1 for a vertex without faces."""
    label = np.full(int(begin[-1]), -1, np.intp)
    count = 0
    by_mesh = {
        index: topology.shells(weld(scene.meshes[index].vertices)[1][scene.meshes[index].faces])
        for index in {part.mesh for part in scene.parts}
    }
    for number, part in enumerate(scene.parts):
        own, shells = by_mesh[part.mesh]
        label[begin[number] + faces[number].ravel()] = count + np.repeat(shells, 3)
        count += own
    return label


def _choose_distance(points: Float64) -> float:
    diagonal = float(np.linalg.norm(np.ptp(points, axis=0)))
    return max(SEPARATION_RATIO * diagonal, MIN_SEPARATION_STEPS * float(np.spacing(np.float32(np.abs(points).max()))))


def _outward_normals(points: Float64, faces: Int32, shell: IntIndex, vertex: IntIndex) -> Float64:
    """Return the outward unit normals of the shells at some of their vertices; +Z where they cancel out."""
    key = np.column_stack([points.astype(np.float32).astype(np.float64), shell])
    first, index = weld(key)
    normal: Float64 = point_normals(points[first], index[faces])[index[vertex]]
    normal[~normal.any(axis=1)] = (0, 0, 1)
    return normal


def _with_vertices(scene: Scene, before: list[Float64], after: list[Float64]) -> Scene:
    """Return the scene with other placed vertices; unmoved ones keep their bits."""
    meshes, parts = list(scene.meshes), list(scene.parts)
    for number, part in enumerate(scene.parts):
        is_moved: NDArray[np.bool_] = (before[number] != after[number]).any(axis=1)
        if not is_moved.any():
            continue
        mesh = scene.meshes[part.mesh]
        vertices = mesh.vertices.copy()
        inverse = np.asarray(np.linalg.inv(part.transform), np.float64)
        vertices[is_moved] = transformed(after[number][is_moved], inverse)
        parts[number] = replace(part, mesh=len(meshes))
        meshes.append(replace(mesh, vertices=vertices))
    return without_unused_meshes(replace(scene, meshes=tuple(meshes), parts=tuple(parts)))
