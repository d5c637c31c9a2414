"""FBX files written here, as assimp reads them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from meshhub import Material, Part, Registry, Scene, Source
from meshhub.testing import sample_scenes
from meshhub.toolkit.geometry import soup

REGISTRY = Registry()


def reread(scene: Scene) -> Scene:
    return REGISTRY.read(Source.from_bytes(REGISTRY.convert_bytes(scene, "fbx"), "a.fbx"))


def turn(x: float, y: float, z: float) -> np.ndarray:
    """Return a rotation about X, then Y, then Z, in degrees, with a translation."""
    result = np.eye(4)
    for axis, angle in enumerate(np.radians([x, y, z])):
        rotation = np.eye(4)
        first, second = (axis + 1) % 3, (axis + 2) % 3
        rotation[[first, second], [first, second]] = np.cos(angle)
        rotation[second, first], rotation[first, second] = np.sin(angle), -np.sin(angle)
        result = rotation @ result
    result[:3, 3] = 1, -2, 3
    return result


SHEAR = np.eye(4)
SHEAR[0, 1] = 0.5


@pytest.mark.parametrize(
    ("matrix", "meshes"),
    [
        (turn(20, 30, -140), 1),
        (turn(20, 90, 40), 1),
        (turn(-160, -90, 10) @ np.diag([2, 3, 0.5, 1]), 1),
        # neither a rotation nor a scale along the axes of the mesh
        (SHEAR, 2),
        (turn(10, 20, 30) @ np.diag([-1, 1, 1, 1]), 2),
    ],
)
def test_placements_become_translation_rotation_and_scale(matrix: np.ndarray, meshes: int) -> None:
    scene = replace(sample_scenes.brick(), parts=(Part(0), Part(0, matrix)))
    result = reread(scene)
    assert len(result.meshes) == meshes
    expected, actual = (np.sort(vertices[faces].mean(axis=1), axis=0) for vertices, faces in map(soup, (scene, result)))
    assert actual == pytest.approx(expected, abs=1e-4)


def test_faces_without_a_material_stay_so_beside_others() -> None:
    mesh = replace(sample_scenes.brick().meshes[0], face_material=np.repeat([-1, 0], 6))
    result = reread(Scene((mesh,), (Part(0),), (Material("red", (1, 0, 0, 0.5), alpha_mode="blend"),)))
    (face_material,) = (mesh.face_material for mesh in result.meshes)
    assert face_material is not None and sorted(face_material.tolist()) == [-1] * 6 + [0] * 6
    assert [(each.name, each.base_color) for each in result.materials] == [("red", pytest.approx((1, 0, 0, 0.5)))]
