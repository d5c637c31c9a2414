"""Operations that turn, mirror and scale the whole scene."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import trimesh
from hypothesis import given
from hypothesis import strategies as st
from manifold3d import Manifold, OpType
from scipy.spatial import ConvexHull

from meshhub import InvalidOption, Registry
from meshhub.builtin_plugins.fit import FitOptions
from meshhub.builtin_plugins.fit import operation as fit
from meshhub.builtin_plugins.lay_flat import LayFlatOptions
from meshhub.builtin_plugins.lay_flat import operation as lay_flat
from meshhub.builtin_plugins.mirror import MirrorOptions
from meshhub.builtin_plugins.mirror import operation as mirror
from meshhub.builtin_plugins.rotate import RotateOptions
from meshhub.builtin_plugins.rotate import operation as rotate
from meshhub.builtin_plugins.scale import ScaleOptions
from meshhub.builtin_plugins.scale import operation as scale
from meshhub.model.notes import collecting
from meshhub.model.scene import Mesh, Part, Scene
from meshhub.toolkit.geometry import bounds, signed_volume, soup
from models import brick, move_mesh, scene_of, sphere

pytestmark = pytest.mark.once

ANGLES = st.floats(-360, 360)


def volume(scene: Scene) -> float:
    return signed_volume(*soup(scene))


def two_bricks() -> Scene:
    """Return two instances of one brick, on the bed and away from the origin, the second one turned."""
    matrix = np.eye(4)
    matrix[:2, :2] = [[0, -1], [1, 0]]
    matrix[:3, 3] = 100, 50, 0
    moved = np.eye(4)
    moved[:3, 3] = 60, 50, 0
    return Scene((brick(10, 20, 30),), (Part(0, moved, name="a"), Part(0, matrix, name="b")))


@pytest.mark.parametrize(
    "options",
    [
        {"rotate_x_deg": 30, "rotate_z_deg": -70},
        {"lay_flat": True, "rotate_y_deg": 50},
        {"orient": True},
        {"mirror": "y"},
        {"scale_percent": 150},
        {"fit_mm": "40x40x40"},
        {"target_height_mm": 12},
        {"place_on_bed": True},
        {"rotate_y_deg": 90, "target_height_mm": 25, "place_on_bed": True},
    ],
)
def test_the_report_states_how_the_whole_scene_moved(options: dict[str, object], tmp_path: Path) -> None:
    """Viewers align the model before and after a conversion by the product of these matrices."""
    registry = Registry(entry_points=False)
    path = tmp_path / "before.glb"
    registry.write(scene_of(move_mesh(brick(60, 30, 5), 0, 0, 9), move_mesh(brick(10, 8, 20), 3, 4, 2)), path)
    report = registry.convert(path, tmp_path / "after.glb", options=options)
    matrix = np.eye(4)
    for step in report.steps:
        if "transform" in step.figures:
            matrix = np.array(step.figures["transform"], np.float64).reshape(4, 4) @ matrix
    before, after = (soup(registry.read(tmp_path / name))[0] for name in ("before.glb", "after.glb"))
    moved = before @ matrix[:3, :3].T + matrix[:3, 3]
    # the order of vertices may change
    assert np.allclose(np.sort(moved, axis=0), np.sort(after, axis=0), atol=1e-3)


@given(x=ANGLES, y=ANGLES, z=ANGLES)
def test_a_rotated_scene_keeps_its_volume_and_its_place_on_the_bed(x: float, y: float, z: float) -> None:
    scene = two_bricks()
    result = rotate.run(scene, RotateOptions(rotate_x_deg=x, rotate_y_deg=y, rotate_z_deg=z))
    before, after = bounds(scene), bounds(result)
    assert volume(result) == pytest.approx(2 * 10 * 20 * 30)
    assert after[:, :2].mean(axis=0) == pytest.approx(before[:, :2].mean(axis=0))
    assert after[0, 2] == pytest.approx(0, abs=1e-9)
    assert len(result.meshes) == 1
    assert [part.name for part in result.parts] == ["a", "b"]


def test_quarter_turns_are_exact_and_go_the_way_of_the_right_hand() -> None:
    scene = scene_of(brick(10, 20, 30))
    assert np.ptp(bounds(rotate.run(scene, RotateOptions(rotate_x_deg=90))), axis=0).tolist() == [10, 30, 20]
    assert np.ptp(bounds(rotate.run(scene, RotateOptions(rotate_y_deg=-270))), axis=0).tolist() == [30, 20, 10]
    # an arrow toward X points to Y after a quarter turn about Z
    arrow = Mesh(np.array([[0, 0, 0], [9, 0, 0], [0, 1, 0], [0, 0, 1]]), brick().faces[:0])
    arrow = replace(arrow, faces=np.array([[0, 2, 1], [0, 3, 2], [0, 1, 3], [1, 2, 3]], np.int32))
    turned = soup(rotate.run(scene_of(arrow), RotateOptions(rotate_z_deg=90)))[0]
    assert np.ptp(turned, axis=0).tolist() == [1, 9, 1]
    assert turned[1, 1] - turned[0, 1] == 9


def test_x_is_turned_before_y_and_y_before_z() -> None:
    scene = scene_of(brick(10, 20, 30))
    steps = scene
    for options in (RotateOptions(rotate_x_deg=90), RotateOptions(rotate_y_deg=90), RotateOptions(rotate_z_deg=30)):
        steps = rotate.run(steps, options)
    at_once = rotate.run(scene, RotateOptions(rotate_x_deg=90, rotate_y_deg=90, rotate_z_deg=30))
    assert np.allclose(soup(steps)[0], soup(at_once)[0])


@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_a_mirror_image_is_in_place_and_not_inside_out(axis: str) -> None:
    scene = two_bricks()
    corner = scene_of(Mesh(np.array([[0, 0, 0], [9, 0, 0], [0, 5, 0], [0, 0, 2]]),
                           np.array([[0, 2, 1], [0, 3, 2], [0, 1, 3], [1, 2, 3]])))  # fmt: skip
    for before in (scene, corner):
        after = mirror.run(before, MirrorOptions(mirror=axis))  # type: ignore[arg-type]
        assert volume(after) == pytest.approx(volume(before))
        assert np.allclose(bounds(after), bounds(before))
        assert all(np.linalg.det(part.transform[:3, :3]) > 0 for part in after.parts)
        twice = mirror.run(after, MirrorOptions(mirror=axis))  # type: ignore[arg-type]
        assert np.allclose(np.sort(soup(twice)[0], axis=0), np.sort(soup(before)[0], axis=0))
    number = "xyz".index(axis)
    side = bounds(corner)[:, number].sum()
    expected = soup(corner)[0].copy()
    expected[:, number] = side - expected[:, number]
    after = mirror.run(corner, MirrorOptions(mirror=axis))  # type: ignore[arg-type]
    assert np.allclose(soup(after)[0], expected)


def test_normals_are_mirrored_and_colors_kept() -> None:
    mesh = brick()
    normals = np.tile(np.float32([0.6, 0, 0.8]), (8, 1))
    colored = replace(mesh, normals=normals, colors=np.arange(32, dtype=np.uint8).reshape(8, 4))
    result = mirror.run(scene_of(colored), MirrorOptions(mirror="x")).meshes[0]
    assert result.normals is not None and np.allclose(result.normals, [-0.6, 0, 0.8])
    assert result.colors is not None and np.array_equal(result.colors, np.arange(32).reshape(8, 4))


def test_a_scene_is_scaled_about_its_origin() -> None:
    result = scale.run(scene_of(move_mesh(brick(10, 20, 30), 10, 0, 0)), ScaleOptions(scale_percent=150))
    assert bounds(result).tolist() == [[15, 0, 0], [30, 30, 45]]
    assert volume(result) == pytest.approx(6000 * 1.5**3)


def test_a_factor_that_makes_the_model_longer_than_a_kilometer_is_rejected() -> None:
    with pytest.raises(InvalidOption, match="scale_percent"):
        scale.run(scene_of(brick(2000, 1, 1)), ScaleOptions(scale_percent=100_000))


@given(width=st.floats(1, 999), depth=st.floats(1, 999), height=st.floats(1, 999))
def test_a_fitted_model_touches_the_box_and_is_within_it(width: float, depth: float, height: float) -> None:
    box = [round(side, 3) for side in (width, depth, height)]
    result = fit.run(two_bricks(), FitOptions(fit_mm="x".join(map(str, box))))
    ratio = np.ptp(bounds(result), axis=0) / box
    assert ratio.max() == pytest.approx(1)


def test_a_flat_model_is_fitted_by_its_other_sides() -> None:
    sheet = Mesh(np.array([[0, 0, 5], [10, 0, 5], [0, 10, 5]]), np.array([[0, 1, 2]]))
    assert np.ptp(bounds(fit.run(scene_of(sheet), FitOptions(fit_mm="50×40×1"))), axis=0).tolist() == [40, 40, 0]


@pytest.mark.parametrize("text", ["200", "200x200", "axbxc", "0x1x1", "-1x1x1", "1e3x1x1", "1x1x1x1"])
def test_a_box_that_is_none_is_rejected(text: str, tmp_path: Path) -> None:
    with Registry(entry_points=False) as registry, pytest.raises(InvalidOption, match="fit_mm"):
        registry.convert("examples/bracket.stl", tmp_path / "a.stl", fit_mm=text)


def lie_down(scene: Scene) -> Scene:
    return lay_flat.run(scene, LayFlatOptions(lay_flat=True))


@given(x=ANGLES, y=ANGLES, z=ANGLES)
def test_a_brick_lies_on_its_largest_side_from_everywhere(x: float, y: float, z: float) -> None:
    scene = rotate.run(scene_of(brick(10, 20, 30)), RotateOptions(rotate_x_deg=x, rotate_y_deg=y, rotate_z_deg=z))
    assert np.ptp(bounds(lie_down(scene)), axis=0)[2] == pytest.approx(10)


@given(seed=st.integers(0, 10_000))
def test_a_hull_rests_on_a_side_below_its_center_of_mass(seed: int) -> None:
    points = np.random.default_rng(seed).normal(size=(30, 3)) * [30, 20, 10]
    hull = trimesh.convex.convex_hull(points)
    result = lie_down(scene_of(Mesh(np.asarray(hull.vertices), np.asarray(hull.faces, np.int32))))
    vertices, faces = soup(result)
    low = vertices[:, 2].min()
    contact = vertices[vertices[:, 2] < low + 1e-6]
    assert len(contact) >= 3
    center = trimesh.Trimesh(vertices, faces, process=False).center_mass
    # inside the convex outline of the contact
    outline = ConvexHull(contact[:, :2])
    assert (outline.equations[:, :2] @ center[:2] + outline.equations[:, 2]).max() < 1e-6


def test_a_model_does_not_lie_on_a_side_on_which_it_tips_over() -> None:
    # the longest side of an oblique prism overhangs: its center of mass is beside its base
    base = np.array([[0, 0, 0], [10, 0, 0], [10, 10, 0], [0, 10, 0]], np.float64)
    prism = trimesh.convex.convex_hull(np.concatenate([base, base + [40, 0, 12]]))
    result = lie_down(scene_of(Mesh(np.asarray(prism.vertices), np.asarray(prism.faces, np.int32))))
    vertices, faces = soup(result)
    contact = vertices[vertices[:, 2] < vertices[:, 2].min() + 1e-6]
    center = trimesh.Trimesh(vertices, faces, process=False).center_mass
    outline = ConvexHull(contact[:, :2])
    assert (outline.equations[:, :2] @ center[:2] + outline.equations[:, 2]).max() < 0


def test_a_model_that_lies_flat_is_unchanged() -> None:
    scene = scene_of(brick(30, 20, 10))
    assert lie_down(scene) is scene


def make_tray() -> Manifold:
    """Return a tray with an inclined wall: 3136 mm² below, 60 x 60 mm at the rim, of which 464 mm² are not open."""

    def pyramid(low: float, high: float) -> Manifold:
        corners = [(-1, -1), (1, -1), (1, 1), (-1, 1)]
        sides = ((low, 0), (high, 20))
        return Manifold.hull_points(np.array([[x * w / 2, y * w / 2, z] for w, z in sides for x, y in corners]))

    return pyramid(56, 60) - pyramid(52, 56).translate((0, 0, 2))


def make_furniture(*, back: bool) -> Manifold:
    """Return a table of 40 x 40 mm on four legs, or a chair."""
    legs = [Manifold.cube((4, 4, 30)).translate((x, y, 0)) for x in (0, 36) for y in (0, 36)]
    boards = [Manifold.cube((40, 40, 4)).translate((0, 0, 30))]
    if back:
        boards.append(Manifold.cube((40, 4, 40)).translate((0, 36, 30)))
    return Manifold.batch_boolean([*legs, *boards], OpType.Add)


def make_vessel(height: float, low: float, high: float, recess: float = 0.0) -> Manifold:
    """Return a round vessel with a wall of 2 mm and a floor of 3 mm, which may have a recess below."""
    inner = Manifold.cylinder(height, low - 2, high - 2, 64).translate((0, 0, 3))
    vessel = Manifold.cylinder(height, low, high, 64) - inner
    return vessel - Manifold.cylinder(recess, low - 4, low - 4, 64) if recess else vessel


def disk_area(radius: float) -> float:
    return 32 * radius**2 * float(np.sin(2 * np.pi / 64))


LYING = {
    "tray": (make_tray(), 56.0**2, 1),
    "table": (make_furniture(back=False), 1600.0, -1),
    # on its back: the board, and two legs
    "chair": (make_furniture(back=True), 40 * 40 + 2 * 4 * 30, 0),
    "cup": (make_vessel(100, 28, 40), disk_area(28), 1),
    "cup with a recess below": (make_vessel(100, 28, 40, 1), disk_area(28) - disk_area(24), 1),
    "vase": (make_vessel(200, 30, 45), disk_area(30), 1),
    # its rim is larger than its foot
    "bowl": (make_vessel(60, 15, 80), disk_area(15), 1),
    "open box": (Manifold.cube((60, 50, 30)) - Manifold.cube((56, 46, 30)).translate((2, 2, 2)), 3000.0, 1),
    "bracket": (Manifold.cube((50, 30, 4)) + Manifold.cube((4, 30, 40)), 1500.0, 1),
    # nothing is above the hole of a frame, so it is not open
    "frame": (Manifold.cube((90, 90, 6)) - Manifold.cube((70, 70, 9)).translate((10, 10, -1)), 3200.0, None),
}
"""Solids, the area in mm² on which they must lie, and the height in the result of what was up."""


@pytest.mark.parametrize("name", LYING)
@pytest.mark.parametrize("seed", range(3))
def test_a_model_lies_on_what_touches_and_not_on_an_open_side(name: str, seed: int) -> None:
    solid, expected, up = LYING[name]
    mesh = solid.to_mesh64()
    drawn = trimesh.Trimesh(np.asarray(mesh.vert_properties)[:, :3], np.asarray(mesh.tri_verts), process=False)
    turn = trimesh.transformations.random_rotation_matrix(np.random.default_rng(seed).random(3)) if seed else np.eye(4)
    scene = scene_of(Mesh(drawn.copy().apply_transform(turn).vertices, np.asarray(drawn.faces, np.int32)))
    with collecting("lay-flat") as remarks:
        vertices, faces = soup(lie_down(scene))
    result = trimesh.Trimesh(vertices, faces, process=False)
    z = result.triangles[:, :, 2]
    touching = result.area_faces[z.max(axis=1) < z.min() + 1e-4].sum()
    assert touching == pytest.approx(expected, rel=1e-3)
    assert remarks.figures["side_area_mm2"] == pytest.approx(expected, rel=1e-3)
    assert not remarks.notes
    if up is not None:
        rotation = np.linalg.lstsq(drawn.vertices - drawn.vertices.mean(axis=0), vertices - vertices.mean(axis=0))[0]
        assert rotation[2, 2] == pytest.approx(up, abs=1e-3)


def test_a_bracket_does_not_lean_on_two_edges() -> None:
    """The largest side of its hull touches nothing but the ends of both plates."""
    bracket = Manifold.cube((50, 90, 2)) + Manifold.cube((2, 90, 50))
    mesh = bracket.to_mesh64()
    scene = scene_of(Mesh(np.asarray(mesh.vert_properties)[:, :3], np.asarray(mesh.tri_verts).astype(np.int32)))
    with collecting("lay-flat") as remarks:
        lie_down(scene)
    assert remarks.figures["side_area_mm2"] == pytest.approx(50 * 90)


def test_a_ball_and_a_sheet_have_a_note() -> None:
    for mesh in (sphere(10, 64), Mesh(np.array([[0, 0, 5], [9, 0, 5], [0, 9, 5]]), np.array([[0, 1, 2]]))):
        with collecting("lay-flat") as remarks:
            lie_down(scene_of(mesh))
        assert [note.code for note in remarks.notes] == ["no_flat_side"]


def test_the_operations_run_in_their_order_and_are_reported(tmp_path: Path) -> None:
    with Registry(entry_points=False) as registry:
        report = registry.convert(
            "examples/bracket-clean.stl",
            tmp_path / "a.3mf",
            fit_mm="100x100x100",
            rotate_z_deg=45,
            mirror="x",
            lay_flat=True,
            place_on_bed=True,
        )
        assert [step.step for step in report.steps[1:-1]] == ["lay-flat", "mirror", "rotate", "fit", "place-on-bed"]
        model = registry.inspect(tmp_path / "a.3mf").model
    assert max(model.size_mm) == pytest.approx(100)
    assert model.watertight
