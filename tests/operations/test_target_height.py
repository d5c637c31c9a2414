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
from models import brick, moved_by, scene_of, sphere

pytestmark = pytest.mark.once


def scaled(scene: Scene, height: float) -> Scene:
    return run(scene, TargetHeightOptions(target_height_mm=height))


def turned(x: float, y: float, z: float, angle: float) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, :3] = [[1, 0, 0], [0, np.cos(angle), -np.sin(angle)], [0, np.sin(angle), np.cos(angle)]]
    matrix[:3, 3] = x, y, z
    return matrix


def test_a_brick_on_the_bed_grows_uniformly_and_stays_on_it() -> None:
    made = scaled(scene_of(brick(10, 20, 30)), 60)
    assert bounds(made).tolist() == [[0, 0, 0], [20, 40, 60]]


def test_the_scene_is_one_body() -> None:
    made = scaled(scene_of(brick(10, 10, 10), moved_by(brick(10, 10, 10), 50, 0, 10)), 40)
    assert bounds(made).tolist() == [[0, 0, 0], [120, 20, 40]]
    assert np.ptp(made.meshes[0].vertices, axis=0).tolist() == [20, 20, 20]


@given(
    height=st.floats(0.001, 100_000),
    low=st.floats(-30, 30),
    angle=st.floats(0, 6.3),
)
def test_height_is_exact_in_32_bits_too(height: float, low: float, angle: float) -> None:
    scene = replace(scene_of(sphere(10, 12)), parts=(Part(0, turned(3, 4, low, angle)), Part(0, turned(9, 9, low, 1))))
    made = scaled(scene, height)
    z = soup(made)[0][:, 2].astype(np.float32).astype(np.float64)
    assert np.ptp(z) == pytest.approx(height, rel=1e-6)


def test_instances_stay_shared_and_rotations_stay_rotations() -> None:
    matrix = turned(100, 0, 0, 0.5)
    scene = Scene((brick(),), (Part(0, name="a"), Part(0, matrix, name="b")))
    before = np.ptp(soup(scene)[0], axis=0)
    made = scaled(scene, before[2] * 3)
    assert len(made.meshes) == 1
    assert [part.name for part in made.parts] == ["a", "b"]
    assert np.array_equal(made.parts[1].transform[:3, :3], matrix[:3, :3])
    assert np.ptp(soup(made)[0], axis=0) == pytest.approx(before * 3)


def test_attributes_are_untouched() -> None:
    mesh = brick()
    coloured = Mesh(mesh.vertices, mesh.faces, colors=np.full((8, 4), 9, np.uint8), uv=np.ones((8, 2), np.float32))
    made = scaled(scene_of(coloured), 5).meshes[0]
    assert made.colors is not None and (made.colors == 9).all()
    assert made.uv is not None and (made.uv == 1).all()


def test_a_flat_model_has_no_height() -> None:
    sheet = Mesh(np.array([[0, 0, 5], [9, 0, 5], [0, 9, 5]]), np.array([[0, 1, 2]]))
    with pytest.raises(InvalidOption, match="target_height_mm"):
        scaled(scene_of(sheet), 10)


def test_rounding_is_no_height() -> None:
    sheet = Mesh(np.array([[0, 0, 5], [9, 0, 5 + 1e-15], [0, 9, 5]]), np.array([[0, 1, 2]]))
    with pytest.raises(InvalidOption, match="flat"):
        scaled(scene_of(sheet), 10)


def test_an_absurd_size_is_refused_by_name() -> None:
    with pytest.raises(InvalidOption, match="target_height_mm"):
        scaled(scene_of(brick(1000, 1000, 0.01)), 50_000)


def test_it_tells_the_factor_and_what_32_bits_cannot_hold() -> None:
    with collecting("resize") as heard:
        scaled(scene_of(brick()), 60)
    assert heard.figures == {"height_before_mm": 30, "height_mm": 60, "scale_factor": 2}
    assert heard.notes == []
    with collecting("resize") as heard:
        scaled(scene_of(moved_by(brick(), 0, 0, 1e6)), 60)
    assert [note.code for note in heard.notes] == ["far_from_origin"]


def test_without_the_option_nothing_happens() -> None:
    scene = scene_of(brick())
    assert run(scene, TargetHeightOptions()) is scene
