from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshhub.builtin_plugins.target_height import TargetHeightOptions
from meshhub.builtin_plugins.target_height.operation import run
from meshhub.errors import InvalidOption
from meshhub.model.notes import collecting
from meshhub.model.scene import Mesh, Part, Scene
from meshhub.toolkit.geometry import bounds, soup
from models import brick, move_mesh, scene_of, sphere

pytestmark = pytest.mark.once


def scale_scene(scene: Scene, height: float) -> Scene:
    return run(scene, TargetHeightOptions(target_height_mm=height))


def build_transform(x: float, y: float, z: float, angle: float) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, :3] = [[1, 0, 0], [0, np.cos(angle), -np.sin(angle)], [0, np.sin(angle), np.cos(angle)]]
    matrix[:3, 3] = x, y, z
    return matrix


def test_a_brick_on_the_bed_grows_uniformly_and_stays_on_it() -> None:
    result = scale_scene(scene_of(brick(10, 20, 30)), 60)
    assert bounds(result).tolist() == [[0, 0, 0], [20, 40, 60]]


def test_all_parts_are_scaled_about_the_same_origin() -> None:
    result = scale_scene(scene_of(brick(10, 10, 10), move_mesh(brick(10, 10, 10), 50, 0, 10)), 40)
    assert bounds(result).tolist() == [[0, 0, 0], [120, 20, 40]]
    assert np.ptp(result.meshes[0].vertices, axis=0).tolist() == [20, 20, 20]


@given(
    height=st.floats(0.001, 100_000),
    low=st.floats(-30, 30),
    angle=st.floats(0, 6.3),
)
def test_the_height_is_exact_in_float32(height: float, low: float, angle: float) -> None:
    scene = replace(
        scene_of(sphere(10, 12)),
        parts=(Part(0, build_transform(3, 4, low, angle)), Part(0, build_transform(9, 9, low, 1))),
    )
    result = scale_scene(scene, height)
    z = soup(result)[0][:, 2].astype(np.float32).astype(np.float64)
    assert np.ptp(z) == pytest.approx(height, rel=1e-6)


def test_instances_stay_shared_and_rotations_stay_rotations() -> None:
    matrix = build_transform(100, 0, 0, 0.5)
    scene = Scene((brick(),), (Part(0, name="a"), Part(0, matrix, name="b")))
    before = np.ptp(soup(scene)[0], axis=0)
    result = scale_scene(scene, before[2] * 3)
    assert len(result.meshes) == 1
    assert [part.name for part in result.parts] == ["a", "b"]
    assert np.array_equal(result.parts[1].transform[:3, :3], matrix[:3, :3])
    assert np.ptp(soup(result)[0], axis=0) == pytest.approx(before * 3)


def test_attributes_are_unchanged() -> None:
    mesh = brick()
    colored = Mesh(mesh.vertices, mesh.faces, colors=np.full((8, 4), 9, np.uint8), uv=np.ones((8, 2), np.float32))
    result = scale_scene(scene_of(colored), 5).meshes[0]
    assert result.colors is not None and (result.colors == 9).all()
    assert result.uv is not None and (result.uv == 1).all()


def test_a_flat_model_is_rejected() -> None:
    sheet = Mesh(np.array([[0, 0, 5], [9, 0, 5], [0, 9, 5]]), np.array([[0, 1, 2]]))
    with pytest.raises(InvalidOption, match="target_height_mm"):
        scale_scene(scene_of(sheet), 10)


def test_a_model_as_flat_as_its_rounding_is_rejected() -> None:
    sheet = Mesh(np.array([[0, 0, 5], [9, 0, 5 + 1e-15], [0, 9, 5]]), np.array([[0, 1, 2]]))
    with pytest.raises(InvalidOption, match="flat"):
        scale_scene(scene_of(sheet), 10)


def test_a_result_that_is_too_large_is_rejected() -> None:
    with pytest.raises(InvalidOption, match="target_height_mm"):
        scale_scene(scene_of(brick(1000, 1000, 0.01)), 50_000)


def test_the_factor_and_the_rounding_of_float32_are_reported() -> None:
    with collecting("resize") as remarks:
        scale_scene(scene_of(brick()), 60)
    assert remarks.figures == {
        "height_before_mm": 30,
        "height_mm": 60,
        "scale_factor": 2,
        "transform": [2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1],
    }
    assert remarks.notes == []
    with collecting("resize") as remarks:
        scale_scene(scene_of(move_mesh(brick(), 0, 0, 1e6)), 60)
    assert [note.code for note in remarks.notes] == ["far_from_origin"]


def test_without_the_option_the_scene_is_unchanged() -> None:
    scene = scene_of(brick())
    assert run(scene, TargetHeightOptions()) is scene
