"""Orientation for printing, and the measure of support that it minimizes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st

from meshhub import Registry
from meshhub.builtin_plugins.orient import OrientOptions
from meshhub.builtin_plugins.orient.operation import run
from meshhub.model.notes import Remarks, collecting
from meshhub.model.scene import Mesh, Scene
from meshhub.toolkit.geometry import bounds, moved, soup
from meshhub.toolkit.supports import measure_support
from models import brick, scene_of, sphere

pytestmark = [pytest.mark.once, pytest.mark.process]


def table(*, width: float = 40, thickness: float = 4, height: float = 30, leg: float = 8) -> Mesh:
    """Return a square plate on a square leg, closed."""
    plate = trimesh.creation.box((width, width, thickness))
    plate.apply_translation((0, 0, height + thickness / 2))
    column = trimesh.creation.box((leg, leg, height))
    column.apply_translation((0, 0, height / 2))
    joined = trimesh.boolean.union([plate, column], engine="manifold")
    return Mesh(np.asarray(joined.vertices), np.asarray(joined.faces, np.int32))


def orient(scene: Scene, **options: float) -> tuple[Scene, Remarks]:
    with collecting("orient") as remarks:
        result = run(scene, OrientOptions(orient=True, **options))
    return result, remarks


def rotation(seed: int) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, :3] = trimesh.transformations.random_rotation_matrix(np.random.default_rng(seed).random(3))[:3, :3]
    return matrix


def test_columns_below_a_plate_have_its_area_and_height() -> None:
    mesh = table()
    support = measure_support(mesh.vertices, mesh.faces, 45)
    assert support.volume_mm3 == pytest.approx((40 * 40 - 8 * 8) * 30, rel=0.02)
    assert support.contact_mm2 == pytest.approx(64)
    upside_down = mesh.vertices * [1, -1, -1]
    assert measure_support(upside_down, mesh.faces, 45) == pytest.approx((0, 1600))


def test_columns_stand_on_the_model_where_it_is_below() -> None:
    upper, lower = brick(10, 10, 2), brick(10, 10, 3)
    vertices = np.concatenate([lower.vertices, upper.vertices + [0, 0, 20]])
    faces = np.concatenate([lower.faces, upper.faces + len(lower.vertices)])
    assert measure_support(vertices, faces, 45).volume_mm3 == pytest.approx(100 * 17, rel=0.02)


@pytest.mark.parametrize("angle", [35, 45, 70])
def test_the_support_of_a_ball_is_that_of_its_overhanging_cap(angle: float) -> None:
    ball = sphere(10, 128)
    # columns between the bed and the part of the sphere that overhangs at less than the angle
    edge = 10 * np.sin(np.deg2rad(angle))
    radius = np.linspace(0, edge, 20001)
    expected = np.trapezoid(2 * np.pi * radius * (10 - np.sqrt(100 - radius**2)), radius)
    # whole rings of the ball overhang or not, and the volume grows with the fourth power of the edge
    assert measure_support(ball.vertices, ball.faces, angle).volume_mm3 == pytest.approx(expected, rel=0.2)


@settings(max_examples=6)
@given(seed=st.integers(0, 10_000))
def test_a_table_is_turned_onto_its_plate(seed: int) -> None:
    result, remarks = orient(moved(scene_of(table()), rotation(seed)))
    vertices, faces = soup(result)
    low = vertices[:, 2].min()
    assert measure_support(vertices, faces, 45).volume_mm3 < 20
    contact = vertices[vertices[:, 2] < low + 1e-6]
    assert np.ptp(contact[:, 0]) >= 39
    assert remarks.figures["support_mm3"] <= remarks.figures["support_before_mm3"]  # type: ignore[operator]
    assert len(remarks.figures["poses"]) == 3  # type: ignore[arg-type]


@settings(max_examples=10)
@given(seed=st.integers(0, 10_000))
def test_no_axis_direction_needs_much_less_support(seed: int) -> None:
    generator = np.random.default_rng(seed)
    boxes = [
        trimesh.creation.box(sides, trimesh.transformations.translation_matrix(center))
        for sides, center in zip(generator.uniform(5, 30, (3, 3)), generator.uniform(-10, 10, (3, 3)), strict=True)
    ]
    joined = trimesh.boolean.union(boxes, engine="manifold")
    mesh = Mesh(np.asarray(joined.vertices), np.asarray(joined.faces, np.int32))
    result, _ = orient(scene_of(mesh), orient_contact_weight=0, orient_height_weight=0)
    vertices, faces = soup(result)
    found = measure_support(vertices, faces, 45).volume_mm3
    hull = float(trimesh.convex.convex_hull(mesh.vertices).volume)
    for axis in range(3):
        for sign in (1, -1):
            down = np.zeros(3)
            down[axis] = sign
            turned = mesh.vertices @ trimesh.geometry.align_vectors(down, [0, 0, -1])[:3, :3].T
            assert found <= measure_support(turned, mesh.faces, 45).volume_mm3 * 1.05 + 0.02 * hull


@pytest.mark.parametrize("degrees", [0.3, 0.9, 44.5])
def test_a_side_that_an_axis_almost_has_lies_flat(degrees: float) -> None:
    matrix = np.eye(4)
    matrix[:3, :3] = trimesh.transformations.rotation_matrix(np.deg2rad(degrees), [1, 0, 0])[:3, :3]
    vertices, _ = soup(orient(moved(scene_of(table()), matrix))[0])
    assert np.count_nonzero(vertices[:, 2] < vertices[:, 2].min() + 1e-6) >= 4
    assert np.ptp(vertices[:, 2]) == pytest.approx(34)


def test_a_model_in_a_good_pose_stays_as_it_is() -> None:
    scene = scene_of(brick(30, 20, 10))
    assert orient(scene)[0] is scene


def test_weights_decide_between_low_and_little_support() -> None:
    mesh = table(width=60, thickness=4, height=60)
    low, _ = orient(scene_of(mesh), orient_height_weight=100)
    free, _ = orient(scene_of(mesh), orient_height_weight=0)
    assert np.ptp(bounds(low), axis=0)[2] < 64
    assert measure_support(*soup(free), 45).volume_mm3 < 20


def test_a_sheet_is_not_turned_and_has_a_note() -> None:
    sheet = scene_of(Mesh(np.array([[0, 0, 5], [9, 0, 5], [0, 9, 5]]), np.array([[0, 1, 2]])))
    result, remarks = orient(sheet)
    assert result is sheet
    assert [note.code for note in remarks.notes] == ["not_oriented"]


def test_an_open_model_is_turned_too(tmp_path: Path) -> None:
    with Registry(entry_points=False) as registry:
        report = registry.convert("examples/bracket.stl", tmp_path / "a.stl", orient=True, orient_angle_deg=30)
    assert [step.step for step in report.steps] == ["stl", "orient", "stl"]
