"""Orientation for printing, and the measure of support that it minimizes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage
from scipy.spatial import ConvexHull

from meshhub import Registry
from meshhub.builtin_plugins.orient import OrientOptions
from meshhub.builtin_plugins.orient.operation import MAX_EXACT_FACES, run
from meshhub.model.notes import Remarks, collecting
from meshhub.model.scene import Mesh, Scene
from meshhub.toolkit.geometry import bounds, moved, soup
from meshhub.toolkit.layers import grow, slice_layers
from meshhub.toolkit.support_material import Skin, stand_columns
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


@pytest.mark.large
def test_a_model_of_more_faces_than_are_measured_is_turned() -> None:
    """The library that reduces it rejects read-only arrays, and those of a scene are."""
    mesh = table()
    plate = trimesh.Trimesh(mesh.vertices * [1, -1, -1], mesh.faces)
    while len(plate.faces) <= MAX_EXACT_FACES:
        plate = plate.subdivide()
    scene = scene_of(Mesh(np.asarray(plate.vertices), np.asarray(plate.faces, np.int32)))
    vertices, _ = soup(orient(moved(scene, rotation(3)))[0])
    assert np.ptp(vertices[:, 2]) == pytest.approx(34, abs=0.05)


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


@settings(max_examples=3)
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


@settings(max_examples=4)
@given(seed=st.integers(0, 10_000))
@pytest.mark.large
def test_no_axis_on_which_the_model_stands_needs_much_less_support(seed: int) -> None:
    generator = np.random.default_rng(seed)
    boxes = [
        trimesh.creation.box(sides, trimesh.transformations.translation_matrix(center))
        for sides, center in zip(generator.uniform(5, 30, (3, 3)), generator.uniform(-10, 10, (3, 3)), strict=True)
    ]
    joined = trimesh.boolean.union(boxes, engine="manifold")
    scene = scene_of(Mesh(np.asarray(joined.vertices), np.asarray(joined.faces, np.int32)))
    found = sum_support(orient(moved(scene, rotation(seed)))[1], "")
    slack = 0.005 * joined.convex_hull.volume
    for axis in range(3):
        for sign in (1, -1):
            down = np.zeros(3)
            down[axis] = sign
            turn = trimesh.geometry.align_vectors(down, [0, 0, -1])
            if stands(joined.copy().apply_transform(turn)):
                assert found <= 1.05 * sum_support(orient(moved(scene, turn))[1], "_before") + slack


def sum_support(remarks: Remarks, when: str) -> float:
    """Return what hangs, and what slicers support."""
    return sum(float(remarks.figures[f"{name}{when}_mm3"]) for name in ("support", "sliced_support"))  # type: ignore[arg-type]


def stands(model: trimesh.Trimesh) -> bool:
    """Return whether the center of mass is above the lowest side."""
    low = model.vertices[:, 2].min()
    foot = ConvexHull(model.vertices[model.vertices[:, 2] < low + 1e-6][:, :2])
    return bool((foot.equations[:, :2] @ model.center_mass[:2] + foot.equations[:, 2]).max() < 0)


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


def test_a_cylinder_that_stands_without_support_stays_although_it_is_high() -> None:
    cylinder = trimesh.creation.cylinder(6, 40, sections=64)
    scene = scene_of(Mesh(np.asarray(cylinder.vertices), np.asarray(cylinder.faces, np.int32)))
    result, remarks = orient(scene)
    assert result is scene
    assert remarks.figures["support_mm3"] == 0


def gate(*, width: float) -> Mesh:
    """Return two posts and a beam, closed, whose support is less on its side."""
    beam = trimesh.creation.box((width, 8, 8), trimesh.transformations.translation_matrix((0, 0, 26)))
    posts = [
        trimesh.creation.box((8, 8, 30), trimesh.transformations.translation_matrix((x, 0, 15)))
        for x in (4 - width / 2, width / 2 - 4)
    ]
    joined = trimesh.boolean.union([beam, *posts], engine="manifold")
    return Mesh(np.asarray(joined.vertices), np.asarray(joined.faces, np.int32))


def test_a_model_that_bridges_stays_although_a_slicer_would_support_its_bridge() -> None:
    scene = scene_of(gate(width=40))
    result, remarks = orient(scene)
    assert result is scene
    assert remarks.figures["support_mm3"] == 0
    assert remarks.figures["sliced_support_mm3"] > 0  # type: ignore[operator]


def test_a_model_with_a_bridge_that_is_too_long_lies_down() -> None:
    vertices, faces = soup(orient(scene_of(gate(width=100)))[0])
    assert np.ptp(vertices[:, 2]) == pytest.approx(8)
    assert measure_support(vertices, faces, 45).volume_mm3 == 0


@settings(max_examples=5)
@given(seed=st.integers(0, 10_000))
@pytest.mark.large
def test_no_model_that_stands_needs_more_support_than_as_drawn(seed: int) -> None:
    generator = np.random.default_rng(seed)
    plate = trimesh.creation.box((40, 40, 3), trimesh.transformations.translation_matrix((0, 0, 1.5)))
    arms = [
        trimesh.creation.box(sides, trimesh.transformations.translation_matrix(center))
        for sides, center in zip(
            generator.uniform(5, 30, (3, 3)), generator.uniform(-10, 10, (3, 3)) + [0, 0, 14], strict=True
        )
    ]
    joined = trimesh.boolean.union([plate, *arms], engine="manifold")
    figures = orient(scene_of(Mesh(np.asarray(joined.vertices), np.asarray(joined.faces, np.int32))))[1].figures
    for name in ("support", "sliced_support"):
        assert figures[f"{name}_mm3"] <= figures[f"{name}_before_mm3"]  # type: ignore[operator]


def test_a_pose_that_tips_over_is_not_chosen_for_less_support() -> None:
    # on its foot, the post needs no support and falls; on its head, it stands
    foot, head = trimesh.creation.box((2, 2, 30)), trimesh.creation.box((30, 8, 8))
    head.apply_translation((11, 0, 19))
    joined = trimesh.boolean.union([foot, head], engine="manifold")
    result, remarks = orient(scene_of(Mesh(np.asarray(joined.vertices), np.asarray(joined.faces, np.int32))))
    assert not remarks.notes
    vertices, faces = soup(result)
    assert measure_support(vertices, faces, 45).contact_mm2 >= 30 * 8 - 1


@pytest.mark.parametrize("scale", [0.01, 20.0])
def test_the_pose_does_not_depend_on_the_unit(scale: float) -> None:
    mesh = table()
    result, remarks = orient(scene_of(Mesh(mesh.vertices * scale, mesh.faces)))
    vertices, faces = soup(result)
    assert measure_support(vertices, faces, 45).contact_mm2 == pytest.approx(1600 * scale**2, rel=1e-3)
    assert remarks.figures["support_mm3"] == 0
    before = remarks.figures["support_before_mm3"]
    assert 0 < before < (40 * 40 - 8 * 8) * 30 * scale**3  # type: ignore[operator]


@settings(max_examples=10)
@given(seed=st.integers(0, 10_000), distance=st.floats(0, 9))
def test_cells_grow_to_all_within_the_distance(seed: int, distance: float) -> None:
    cells = np.random.default_rng(seed).random((3, 20, 30)) < 0.02
    expected = [ndimage.distance_transform_edt(~layer) <= distance if layer.any() else layer for layer in cells]
    assert np.array_equal(grow(cells, distance), expected)


def test_edges_that_point_down_need_support_like_a_face() -> None:
    # a bar on its edge, 20 mm above a plate: its sides are too steep to need support
    angle = np.deg2rad(30)
    roof = np.array([[0, 0], [20 * np.sin(angle), 20 * np.cos(angle)], [-20 * np.sin(angle), 20 * np.cos(angle)]])
    bar = trimesh.convex.convex_hull(np.array([[x, y, z + 20] for x in (-20, 20) for y, z in roof]))
    plate = trimesh.creation.box((60, 60, 2), trimesh.transformations.translation_matrix((0, 0, 1)))
    both = trimesh.util.concatenate([bar, plate])
    skin = Skin.of(np.asarray(both.vertices), np.asarray(both.faces, np.int32))
    layers = slice_layers(skin.vertices, skin.faces, 0.5, 0.5)
    assert stand_columns(skin, layers, 45, 0.2).space.sum() == 0
    space = stand_columns(skin, layers, 45, 0.2, with_edges=True).space.sum()
    # as wide as the margin on both sides of the edge, down to the plate
    assert space == pytest.approx(43 * 3 * 18, rel=0.15)


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
