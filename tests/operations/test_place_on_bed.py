from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshhub.builtin_plugins.place_on_bed import PlaceOnBedOptions
from meshhub.builtin_plugins.place_on_bed.operation import run
from meshhub.model.notes import collecting
from meshhub.model.scene import Mesh, Part, Scene
from meshhub.toolkit.geometry import bounds, soup
from models import brick, move_mesh, scene_of, sphere

pytestmark = pytest.mark.once


def place_scene(scene: Scene) -> Scene:
    return run(scene, PlaceOnBedOptions(place_on_bed=True))


def build_transform(x: float, y: float, z: float, angle: float = 0, scale: float = 1) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, :3] = (
        np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]]) * scale
    )
    matrix[:3, 3] = x, y, z
    return matrix


def round_as_written(scene: Scene) -> np.ndarray:
    """Return the world positions of a file with float32 vertices and a matrix per part."""
    return np.concatenate(
        [
            scene.meshes[part.mesh].vertices.astype(np.float32).astype(np.float64) @ part.transform[:3, :3].T
            + part.transform[:3, 3]
            for part in scene.parts
        ]
    )


def test_a_brick_is_centered_and_stands_on_the_bed() -> None:
    result = place_scene(scene_of(move_mesh(brick(10, 20, 30), 7, -9, 4.25)))
    assert bounds(result).tolist() == [[-5, -10, 0], [5, 10, 30]]


def test_parts_keep_their_relative_positions() -> None:
    scene = scene_of(brick(), move_mesh(brick(), 40, 3, 8))
    shift = soup(place_scene(scene))[0] - soup(scene)[0]
    assert np.allclose(shift, shift[0])


@given(
    x=st.floats(-1e7, 1e7),
    y=st.floats(-1e7, 1e7),
    z=st.floats(-1e7, 1e7),
    angle=st.floats(0, 6.3),
    scale=st.floats(0.1, 9),
)
def test_the_placement_is_exact_for_distant_models(x: float, y: float, z: float, angle: float, scale: float) -> None:
    # the vertices of one mesh have the distance, and the matrix of the other
    scene = Scene(
        (move_mesh(sphere(3, 8), x, y, z), sphere(2, 8)),
        (
            Part(0),
            Part(1, build_transform(x, y, z, angle, scale)),
            Part(1, build_transform(x + 5, y, z + 1, angle, scale)),
        ),
    )
    result = place_scene(scene)
    low, high = bounds(result)
    assert low[2] == pytest.approx(0, abs=1e-12)
    assert (low + high)[:2] == pytest.approx(0, abs=1e-9)
    written = round_as_written(result)
    assert written[:, 2].min() == pytest.approx(0, abs=1e-5)
    assert (written.max(axis=0) + written.min(axis=0))[:2] == pytest.approx(0, abs=1e-5)


def test_the_lowest_vertex_is_exactly_at_zero() -> None:
    result = place_scene(scene_of(move_mesh(sphere(3.3, 16), 12.7, 1 / 3, 0.1)))
    assert result.meshes[0].vertices[:, 2].min() == 0


def test_instances_stay_shared() -> None:
    result = place_scene(Scene((brick(),), (Part(0, build_transform(5, 5, 5)), Part(0, build_transform(50, 5, 5)))))
    assert len(result.meshes) == 1
    assert [part.mesh for part in result.parts] == [0, 0]
    assert bounds(result).tolist() == [[-27.5, -10, 0], [27.5, 10, 30]]


def test_unused_vertices_are_ignored() -> None:
    mesh = brick()
    stray = Mesh(np.concatenate([mesh.vertices, [[0, 0, -500]]]), mesh.faces)
    assert bounds(place_scene(scene_of(stray)))[0, 2] == 0


def test_the_input_is_unchanged_and_the_move_is_reported() -> None:
    scene = scene_of(move_mesh(brick(10, 20, 30), 0, 0, 4))
    with collecting("place") as remarks:
        place_scene(scene)
    assert remarks.figures == {
        "moved_mm": [-5, -10, -4],
        "transform": [1, 0, 0, -5, 0, 1, 0, -10, 0, 0, 1, -4, 0, 0, 0, 1],
    }
    assert bounds(scene)[0].tolist() == [0, 0, 4]


def test_without_the_flag_the_scene_is_unchanged() -> None:
    scene = scene_of(brick())
    assert run(scene, PlaceOnBedOptions()) is scene
