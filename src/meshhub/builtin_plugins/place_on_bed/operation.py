"""Move the whole scene, as one rigid body, to the center of the print bed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from meshhub.builtin_plugins.place_on_bed import PlaceOnBedOptions
from meshhub.model.notes import did
from meshhub.model.scene import Float64, Mesh, Part, Scene
from meshhub.toolkit.geometry import bounds, report_transform

MAX_OFFSET_RATIO = 8.0
"""Distance of a mesh from its own origin, per diagonal, beyond which the mesh is centered: float32 files store seven
digits per coordinate, which an offset that the matrix removes later would use up.
"""

MAX_PASSES = 3
"""Maximum moves; the first is exact except for rounding in rotated or scaled parts, which the others remove."""


def run(scene: Scene, options: PlaceOnBedOptions) -> Scene:
    """Move the scene so that its lowest point is at Z = 0 and the center of its bounding box at X = Y = 0.

    Args:
        scene: Millimeters, Z up.
        options: `place_on_bed` False leaves the scene unchanged.
    Returns:
        Moved scene; parts keep their relative positions, and instances stay shared.
    Raises:
        ValueError: The scene has no faces.
    """
    if not options.place_on_bed:
        return scene
    scene = _center_distant_meshes(scene)
    total = np.zeros(3)
    for _ in range(MAX_PASSES):
        box = bounds(scene)
        offset = -np.array([*(box[:, :2].sum(axis=0) / 2), box[0, 2]])
        if not offset.any():
            break
        scene = _move(scene, offset)
        total += offset
    did(moved_mm=[float(value) for value in total])
    matrix = np.eye(4)
    matrix[:3, 3] = total
    report_transform(matrix)
    return scene


def _move(scene: Scene, offset: Float64) -> Scene:
    """Move the vertices of meshes that are placed once and only translated, and the matrices of all other parts."""
    uses = Counter(part.mesh for part in scene.parts)
    meshes = list(scene.meshes)
    parts: list[Part] = []
    for part in scene.parts:
        matrix = part.transform.copy()
        matrix[:3, 3] += offset
        if uses[part.mesh] == 1 and np.array_equal(matrix[:3, :3], np.eye(3)):
            mesh = meshes[part.mesh]
            meshes[part.mesh] = _shift(mesh, matrix[:3, 3])
            matrix = np.eye(4)
        parts.append(replace(part, transform=matrix))
    return replace(scene, meshes=tuple(meshes), parts=tuple(parts))


def _center_distant_meshes(scene: Scene) -> Scene:
    """Center the meshes that are far from their own origin, and compensate in the matrices of their parts."""
    centers: dict[int, Float64] = {}
    meshes: list[Mesh] = []
    for index, mesh in enumerate(scene.meshes):
        meshes.append(mesh)
        if len(mesh.faces) == 0:
            continue
        low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
        center = (low + high) / 2
        if np.linalg.norm(center) > MAX_OFFSET_RATIO * np.linalg.norm(high - low):
            centers[index] = center
            meshes[index] = _shift(mesh, -center)
    if not centers:
        return scene
    parts: list[Part] = []
    for part in scene.parts:
        matrix = part.transform.copy()
        if part.mesh in centers:
            matrix[:3, 3] += matrix[:3, :3] @ centers[part.mesh]
        parts.append(replace(part, transform=matrix))
    return replace(scene, meshes=tuple(meshes), parts=tuple(parts))


def _shift(mesh: Mesh, offset: Float64) -> Mesh:
    return replace(mesh, vertices=mesh.vertices + offset).with_division(mesh.division)
