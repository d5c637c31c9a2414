"""Operation cut-plane."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st

from meshhub import ConversionFailed, InvalidOption, Registry
from meshhub.builtin_plugins.cut_plane import CutPlaneOptions
from meshhub.builtin_plugins.cut_plane.operation import run
from meshhub.model.notes import collecting
from meshhub.model.scene import Material, Mesh, Part, Scene
from meshhub.testing import sample_scenes
from meshhub.toolkit import dividing
from meshhub.toolkit.geometry import bounds, bounds_of_parts, soup
from models import assert_valid, brick, move_mesh, scene_of, sphere, volume

pytestmark = pytest.mark.once

RED, BLUE = (255, 0, 0, 255), (0, 0, 255, 255)


def cut(scene: Scene, planes: str, keep: str = "both") -> Scene:
    return run(scene, CutPlaneOptions(cut_plane=planes, cut_plane_keep=keep))  # type: ignore[arg-type]


def total_volume(scene: Scene) -> float:
    return volume(*soup(scene))


def corner_colors(scene: Scene, axis: int, level: float) -> set[tuple[int, ...]]:
    """Return the colors of the faces in a plane."""
    colors: set[tuple[int, ...]] = set()
    for part in scene.parts:
        mesh = scene.meshes[part.mesh]
        assert mesh.colors is not None
        points = mesh.vertices + part.transform[:3, 3]
        in_plane = (np.abs(points[:, axis] - level) < 1e-9)[mesh.faces].all(axis=1)
        colors |= {tuple(color) for color in mesh.colors[mesh.faces[in_plane]].reshape(-1, 4).tolist()}
    return colors


def test_a_brick_becomes_two_closed_parts_in_place() -> None:
    result = cut(scene_of(move_mesh(brick(), 5, 6, 7)), "z=17")
    assert [part.name for part in result.parts] == ["brick-a", "brick-b"]
    assert bounds_of_parts(result).tolist() == [[[5, 6, 7], [15, 26, 17]], [[5, 6, 17], [15, 26, 37]]]
    assert_valid(result)


def test_several_planes_cut_each_other_and_percent_is_of_the_scene() -> None:
    result = cut(scene_of(brick(), move_mesh(brick(), 90, 0, 0)), "z=50%, x=95, z=20")
    names = [part.name for part in result.parts]
    assert names == ["brick-a", "brick-b", "brick-c", *(f"brick-{letter}" for letter in "defghi")]
    assert total_volume(result) == pytest.approx(12000, rel=1e-12)
    assert_valid(result)


@pytest.mark.parametrize(
    ("keep", "expected"), [("low", [[0, 0, 0], [4, 20, 10]]), ("high", [[4, 0, 10], [10, 20, 30]])]
)
def test_one_side_of_all_planes_is_kept_under_its_name(keep: str, expected: list[list[float]]) -> None:
    result = cut(scene_of(brick(), move_mesh(brick(name="far"), 4, 0, 10)), "z=10,x=4", keep)
    assert [part.name for part in result.parts] == (["brick"] if keep == "low" else ["brick", "far"])
    assert bounds_of_parts(result)[0].tolist() == expected


def test_a_cut_that_leaves_nothing_is_rejected() -> None:
    with pytest.raises(InvalidOption, match="cut_plane"):
        cut(scene_of(brick()), "z=-1", "low")


def test_a_plane_beside_the_model_has_a_note() -> None:
    scene = scene_of(brick())
    with collecting("cut-plane") as remarks:
        assert np.allclose(bounds(cut(scene, "z=30")), bounds(scene))
    assert [note.code for note in remarks.notes] == ["plane_misses_model"]


@pytest.mark.parametrize("text", ["z", "z=", "w=3", "z=1e3", "z=0%", "z=100%", "z=1;x=2", ",".join(["z=1"] * 9)])
def test_a_plane_that_is_none_is_rejected(text: str, tmp_path: Path) -> None:
    with Registry(entry_points=False) as registry, pytest.raises(InvalidOption, match="cut_plane"):
        registry.convert("examples/bracket.stl", tmp_path / "a.3mf", cut_plane=text)


def test_a_side_without_a_plane_is_rejected(tmp_path: Path) -> None:
    with Registry(entry_points=False) as registry, pytest.raises(InvalidOption, match="needs 'cut_plane'"):
        registry.convert("examples/bracket.stl", tmp_path / "a.3mf", cut_plane_keep="low")


@given(
    seed=st.integers(0, 10_000),
    planes=st.lists(st.tuples(st.sampled_from("xyz"), st.floats(-9, 9)), min_size=1, max_size=4),
)
@settings(max_examples=25, deadline=None)
def test_the_pieces_have_the_volume_of_the_whole(seed: int, planes: list[tuple[str, float]]) -> None:
    random = np.random.default_rng(seed)
    ball, hole = sphere(10, 24), sphere(4, 12)
    shell = Mesh(
        np.concatenate([ball.vertices, hole.vertices + random.uniform(-3, 3, 3)]),
        np.concatenate([ball.faces, hole.faces[:, ::-1] + len(ball.vertices)]),
        name="shell",
    )
    turn = np.eye(4)
    turn[:3, :3] = trimesh.transformations.random_rotation_matrix(random.random(3))[:3, :3]
    scene = Scene((shell,), (Part(0, turn, name="shell"),))
    result = cut(scene, ",".join(f"{axis}={position:.4f}" for axis, position in planes))
    assert total_volume(result) == pytest.approx(total_volume(scene), rel=1e-6)
    assert_valid(result)


def test_colors_stay_outside_and_caps_take_the_nearest() -> None:
    # the left half of a bar is red, the right half blue; the cut runs along it
    left, right = move_mesh(brick(20, 6, 6), -20, 0, 0), brick(20, 6, 6)
    vertices, faces = soup(scene_of(left, right))
    # without the wall between the halves
    faces = faces[(np.abs(vertices[faces][:, :, 0]) > 0).any(axis=1)]
    colors = np.repeat([RED, BLUE], 8, axis=0)
    scene = scene_of(Mesh(vertices, faces, colors=colors))
    result = cut(scene, "z=3")
    assert_valid(result)
    assert corner_colors(result, 2, 3) == {RED, BLUE}
    for part in result.parts:
        mesh = result.meshes[part.mesh]
        assert mesh.colors is not None
        centers = mesh.vertices[mesh.faces].mean(axis=1)[:, 0]
        is_red = (mesh.colors[mesh.faces][:, :, 0] == 255).all(axis=1)
        # caps blend no colors, and away from the seam have that of their half
        assert (is_red | (mesh.colors[mesh.faces][:, :, 2] == 255).all(axis=1)).all()
        assert is_red[centers < -10].all() and not is_red[centers > 10].any()
    assert corner_colors(cut(scene, "x=-10"), 0, -10) == {RED}


def test_materials_uv_and_normals_are_kept() -> None:
    mesh = replace(
        sphere(10), face_material=np.where(sphere(10).vertices[sphere(10).faces][:, :, 2].mean(axis=1) > 0, 1, 0)
    )
    mesh = replace(mesh, normals=mesh.vertices / 10, uv=mesh.vertices[:, :2])
    scene = Scene((mesh,), (Part(0, name="ball", material=2),), (Material("a"), Material("b"), Material("c")))
    result = cut(scene, "z=5.3,x=1")
    assert_valid(result)
    for part in result.parts:
        piece = result.meshes[part.mesh]
        assert piece.normals is not None and piece.uv is not None and piece.face_material is not None
        assert np.allclose(np.linalg.norm(piece.normals, axis=1), 1, atol=1e-5)
        outside = ~np.isin(piece.vertices[:, [2, 0]], [5.3, 1]).any(axis=1)
        assert np.allclose(piece.uv[outside], piece.vertices[outside, :2], atol=1e-4)
        assert part.material == 2
        high = (piece.vertices[piece.faces][:, :, 2] > 1).all(axis=1)
        assert (piece.face_material[high] == 1).all()


def test_a_piece_from_the_inside_has_the_color_of_the_nearest_surface() -> None:
    mesh = replace(brick(30, 30, 30), colors=np.tile(np.uint8(RED), (8, 1)))
    result = cut(scene_of(mesh), "x=10,x=20,y=10,y=20,z=10,z=20")
    assert len(result.parts) == 27
    assert all((result.meshes[part.mesh].colors == RED).all() for part in result.parts)
    assert_valid(result)


def test_instances_with_equal_cuts_share_pieces() -> None:
    scene = sample_scenes.full()
    result = cut(scene, "z=10", "low")
    assert len(result.parts) == len(scene.parts)
    assert result.features() == scene.features()
    assert_valid(result)


def test_open_parts_are_an_error_only_where_a_plane_crosses_them() -> None:
    hole = replace(brick(name="hole"), faces=brick().faces[1:])
    scene = scene_of(hole, move_mesh(brick(), 0, 0, 40))
    assert len(cut(scene, "z=50").parts) == 3
    with pytest.raises(ConversionFailed, match=r"'hole' is open or non-manifold.*repair"):
        cut(scene, "z=10")
    with pytest.raises(ConversionFailed, match="inside out"):
        cut(scene_of(replace(brick(), faces=brick().faces[:, ::-1])), "z=10")


@pytest.mark.parametrize("extension", ["3mf", "glb"])
def test_files_have_closed_pieces(extension: str, tmp_path: Path) -> None:
    source = tmp_path / "knot.stl"
    trimesh.creation.torus(20, 7).export(source)
    with Registry(entry_points=False) as registry:
        report = registry.convert(source, tmp_path / f"a.{extension}", cut_plane="x=1,y=50%,z=-3")
    assert {note.code for note in report.notes} <= {"frame_converted"}
    scale = 1000 if extension == "glb" else 1
    # processed, trimesh merges points at 1e-8 meters
    pieces = list(trimesh.load_scene(tmp_path / f"a.{extension}", process=False).geometry.values())
    assert len(pieces) == 8
    for piece in pieces:
        piece.apply_scale(scale).merge_vertices()
    assert all(piece.is_watertight for piece in pieces)
    assert sum(piece.volume for piece in pieces) == pytest.approx(trimesh.load(source).volume, rel=1e-6)


def test_bounds_of_the_whole_stay() -> None:
    scene = scene_of(sphere())
    assert np.allclose(bounds(cut(scene, "z=20%,y=3")), bounds(scene))


def test_the_note_about_invalid_edges_names_the_plane(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dividing, "find_invalid_edge", lambda _: np.array([4.0, 8.0, 19.0]))
    with collecting("cut-plane") as remarks:
        cut(scene_of(move_mesh(replace(brick(), name=""), 0, 0, 7)), "y=5, z=20")
    messages = [note.message for note in remarks.notes if note.code == "cut_not_closed"]
    assert messages == ["the cut at z=20 left invalid edges in 'part'; repair the result with 'repair'"]


def test_a_piece_that_touches_itself_along_the_cut_edge_is_valid() -> None:
    # a ridge that the plane passes: below it, two prisms meet at one edge
    outline = np.array([[0, 0], [10, 0], [5, 10], [10, 20], [0, 20], [5, 10]], np.float64)
    prism = trimesh.creation.extrude_triangulation(outline, [[0, 1, 2], [5, 3, 4]], 30)
    mesh = Mesh(prism.vertices, prism.faces.astype(np.int32), name="hourglass")
    with collecting("cut-plane") as remarks:
        result = cut(scene_of(mesh), "z=12")
    assert [note.code for note in remarks.notes] == ["touching_edges"]
    assert [volume(*soup(replace(result, parts=(part,)))) for part in result.parts] == pytest.approx([1200, 1800])
