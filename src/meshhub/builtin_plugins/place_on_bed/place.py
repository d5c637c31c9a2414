"""Moving the whole scene, as one rigid body, to the middle of the print bed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from meshhub.builtin_plugins.place_on_bed import PlaceOnBedOptions
from meshhub.geometry import bounds
from meshhub.notes import did
from meshhub.scene import Float64, Mesh, Part, Scene

ROOM = 8.0
"""A mesh farther from its own origin than this many of its diagonals is brought nearer: 32-bit files
keep seven digits of each coordinate, and a distance that a matrix undoes later would eat them."""

PASSES = 3
"""The first move is exact but for rounding in turned and scaled parts; the others take that away."""


def run(scene: Scene, options: PlaceOnBedOptions) -> Scene:
    """The scene with its lowest point at Z = 0 and the centre of its bounding box at X = Y = 0.

    Parts keep their places to one another, and instances stay shared.
    """
    if not options.place_on_bed:
        return scene
    scene = _near_their_origins(scene)
    total = np.zeros(3)
    for _ in range(PASSES):
        box = bounds(scene)
        offset = -np.array([*(box[:, :2].sum(axis=0) / 2), box[0, 2]])
        if not offset.any():
            break
        scene = _moved(scene, offset)
        total += offset
    did(moved_mm=[float(value) for value in total])
    return scene


def _moved(scene: Scene, offset: Float64) -> Scene:
    """The scene moved: in the vertices where a mesh is placed once and only shifted, else in the matrices."""
    uses = Counter(part.mesh for part in scene.parts)
    meshes = list(scene.meshes)
    parts: list[Part] = []
    for part in scene.parts:
        matrix = part.transform.copy()
        matrix[:3, 3] += offset
        if uses[part.mesh] == 1 and np.array_equal(matrix[:3, :3], np.eye(3)):
            mesh = meshes[part.mesh]
            meshes[part.mesh] = replace(mesh, vertices=mesh.vertices + matrix[:3, 3])
            matrix = np.eye(4)
        parts.append(replace(part, transform=matrix))
    return replace(scene, meshes=tuple(meshes), parts=tuple(parts))


def _near_their_origins(scene: Scene) -> Scene:
    """The same scene, with meshes that lie far from their own origin moved there and their parts' matrices told."""
    centres: dict[int, Float64] = {}
    meshes: list[Mesh] = []
    for index, mesh in enumerate(scene.meshes):
        meshes.append(mesh)
        if len(mesh.faces) == 0:
            continue
        low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
        centre = (low + high) / 2
        if np.linalg.norm(centre) > ROOM * np.linalg.norm(high - low):
            centres[index] = centre
            meshes[index] = replace(mesh, vertices=mesh.vertices - centre)
    if not centres:
        return scene
    parts: list[Part] = []
    for part in scene.parts:
        matrix = part.transform.copy()
        if part.mesh in centres:
            matrix[:3, 3] += matrix[:3, :3] @ centres[part.mesh]
        parts.append(replace(part, transform=matrix))
    return replace(scene, meshes=tuple(meshes), parts=tuple(parts))
