"""Repair: what comes out is closed, manifold and outward also for a program that reads positions only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st

from meshhub.builtin_plugins.repair import RepairOptions, meshlab
from meshhub.builtin_plugins.repair.operation import run
from meshhub.model.notes import Remarks, collecting
from meshhub.model.scene import Float64, Int32, Material, Mesh, Part, Scene
from models import brick, edge_counts, moved_by, scene_of, sphere, volume

pytestmark = pytest.mark.once


def mended(scene: Scene | Mesh) -> tuple[Scene, Remarks]:
    """The scene after repair, and what was said."""
    with collecting("repair") as said:
        made = run(scene if isinstance(scene, Scene) else scene_of(scene), RepairOptions(repair=True))
    return made, said


def codes(said: Remarks) -> list[str]:
    return [each.code for each in said.notes]


def joined(*meshes: Mesh) -> Mesh:
    """Several meshes as one, their vertices side by side."""
    offsets = np.cumsum([0] + [len(mesh.vertices) for mesh in meshes[:-1]])
    return Mesh(
        np.concatenate([mesh.vertices for mesh in meshes]),
        np.concatenate([mesh.faces + offset for mesh, offset in zip(meshes, offsets, strict=True)]),
    )


def turned(mesh: Mesh) -> Mesh:
    return replace(mesh, faces=mesh.faces[:, ::-1])


def reread(mesh: Mesh, scale: float = 1.0) -> tuple[Float64, Int32]:
    """The mesh as a file of float32 positions tells it: welded again, degenerate faces gone."""
    points, index = np.unique((mesh.vertices * scale).astype(np.float32) + np.float32(0), axis=0, return_inverse=True)
    faces = index.ravel()[mesh.faces]
    flat = (faces[:, 0] == faces[:, 1]) | (faces[:, 1] == faces[:, 2]) | (faces[:, 2] == faces[:, 0])
    return points.astype(np.float64), faces[~flat].astype(np.int32)


def assert_right(mesh: Mesh, scale: float = 1.0) -> None:
    points, faces = reread(mesh, scale)
    assert edge_counts(faces) == (0, 0)
    judge = trimesh.Trimesh(points, faces, process=False)
    assert judge.is_watertight
    assert judge.is_winding_consistent
    assert volume(points, faces) > 0


def test_a_sound_mesh_stays_the_same_object() -> None:
    scene = scene_of(brick(), sphere(), joined(sphere(10), turned(sphere(5))))
    made, said = mended(scene)
    assert made is scene
    assert codes(said) == ["already_sound"]
    assert said.figures["bodies_before"] == said.figures["bodies_after"] == 4
    assert said.figures["meshes_repaired"] == 0


def test_seams_are_no_defect() -> None:
    box = brick()
    corner = box.faces.ravel()
    seamed = Mesh(
        box.vertices[corner], np.arange(36).reshape(-1, 3), uv=np.random.default_rng(0).random((36, 2), np.float32)
    )
    made, _ = mended(seamed)
    assert made.meshes[0] is seamed


def test_vertices_that_say_the_same_are_merged() -> None:
    box = brick()
    made, said = mended(Mesh(box.vertices[box.faces.ravel()], np.arange(36).reshape(-1, 3)))
    assert len(made.meshes[0].vertices) == 8
    assert said.figures["vertices_merged"] == 28
    assert_right(made.meshes[0])


def test_a_hole_is_closed_flat() -> None:
    box = brick()
    made, said = mended(replace(box, faces=box.faces[2:]))
    assert_right(made.meshes[0])
    assert volume(*reread(made.meshes[0])) == pytest.approx(6000)
    assert said.figures["holes_closed"] == 1
    assert said.figures["faces_added"] == 2
    assert said.figures["volume_after"] == pytest.approx(6000)
    assert said.figures["size_after"] == pytest.approx([10, 20, 30])


@pytest.mark.parametrize("segments", [20, 100, 700])
def test_a_large_hole_is_closed_without_overlap(segments: int) -> None:
    ball = sphere(10, segments)
    height = ball.vertices[ball.faces][:, :, 2].max(axis=1)
    made, _ = mended(replace(ball, faces=ball.faces[height < 4]))
    assert_right(made.meshes[0])
    points, faces = reread(made.meshes[0])
    lid = faces[(np.ptp(points[faces][:, :, 2], axis=1) < 1e-6) & (points[faces][:, :, 2].mean(axis=1) > 0)]
    a, b, c = (points[lid[:, corner], :2] for corner in range(3))
    areas = ((b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]) / 2
    assert areas.min() > -1e-6
    radius = np.linalg.norm(points[lid.ravel(), :2], axis=1).max()
    assert areas.sum() == pytest.approx(segments / 2 * np.sin(2 * np.pi / segments) * radius**2, rel=1e-3)


def test_a_missing_ring_is_one_hole_with_an_island() -> None:
    outer, inner = sphere(10, 64), turned(sphere(6, 64))
    both = joined(outer, inner)
    middle = both.vertices[both.faces].mean(axis=1)
    bowl = replace(both, faces=both.faces[middle[:, 2] < 0])
    made, said = mended(bowl)
    assert_right(made.meshes[0])
    assert said.figures["bodies_after"] == 1
    assert volume(*reread(made.meshes[0])) == pytest.approx(2 / 3 * np.pi * (1000 - 216), rel=0.05)


def test_many_small_holes() -> None:
    ball = sphere(10, 120)
    made, said = mended(replace(ball, faces=ball.faces[np.arange(len(ball.faces)) % 7 > 0]))
    assert_right(made.meshes[0])
    assert said.figures["holes_closed"] > 900
    assert volume(*reread(made.meshes[0])) == pytest.approx(volume(ball.vertices, ball.faces), rel=0.01)


def test_turned_faces_are_turned_back() -> None:
    ball = sphere()
    faces = ball.faces.copy()
    faces[5:25] = faces[5:25, ::-1]
    made, said = mended(replace(ball, faces=faces))
    assert said.figures["faces_flipped"] == 20
    assert volume(*reread(made.meshes[0])) == pytest.approx(volume(ball.vertices, ball.faces))
    assert_right(made.meshes[0])


def test_inside_out_is_turned_out() -> None:
    made, said = mended(turned(brick()))
    assert said.figures["faces_flipped"] == 12
    assert said.figures["volume_before"] == pytest.approx(-6000)
    assert said.figures["volume_after"] == pytest.approx(6000)
    assert_right(made.meshes[0])


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("second", [False, True])
def test_a_shell_inside_is_a_cavity_and_one_inside_that_a_body(first: bool, second: bool) -> None:
    cavity, body = sphere(6), sphere(3)
    made, _ = mended(joined(sphere(10), turned(cavity) if first else cavity, turned(body) if second else body))
    shells = [abs(volume(each.vertices, each.faces)) for each in (sphere(10), cavity, body)]
    assert volume(*reread(made.meshes[0])) == pytest.approx(shells[0] - shells[1] + shells[2], rel=1e-6)


def test_bodies_beside_each_other_are_no_cavities() -> None:
    made, _ = mended(joined(brick(), turned(moved_by(brick(2, 2, 2), 20, 5, 5)), moved_by(brick(2, 2, 2), 9, 5, 5)))
    assert volume(*reread(made.meshes[0])) == pytest.approx(6000 + 8 + 8)


def test_doubled_and_degenerate_faces_go() -> None:
    box = brick()
    faces = np.concatenate([box.faces, box.faces[:3], box.faces[:2, [0, 1, 1]]])
    made, said = mended(replace(box, faces=faces))
    assert said.figures["duplicate_faces_removed"] == 3
    assert said.figures["degenerate_faces_removed"] == 2
    assert len(made.meshes[0].faces) == 12
    assert_right(made.meshes[0])


def test_a_skin_drawn_on_both_sides_becomes_one() -> None:
    ball = sphere()
    made, said = mended(replace(ball, faces=np.concatenate([ball.faces, ball.faces[:, ::-1]])))
    assert said.figures["duplicate_faces_removed"] == len(ball.faces)
    assert said.figures["volume_after"] == pytest.approx(volume(ball.vertices, ball.faces), rel=1e-6)
    assert_right(made.meshes[0])


@pytest.mark.parametrize(
    "by", [(10, 20, 0), (10, 20, 30), (10, 0, 0), (10, 10, 0)], ids=["an edge", "a point", "a wall", "half a wall"]
)
@pytest.mark.parametrize("scale", [1.0, 0.001, 1 / 25.4])
def test_bodies_that_touch_stay_two_and_are_not_welded_again(by: tuple[float, float, float], scale: float) -> None:
    made, said = mended(joined(brick(), moved_by(brick(), *by)))
    assert said.figures["bodies_after"] == 2
    assert said.figures["volume_after"] == pytest.approx(12000, rel=1e-4)
    assert_right(made.meshes[0], scale)


def test_bodies_that_touch_far_from_the_origin_of_the_plate() -> None:
    touching = joined(brick(), moved_by(brick(), 10, 20, 0))
    away = np.eye(4)
    away[:3, 3] = (3000, -2000, 500)
    made, _ = mended(Scene((touching,), (Part(0, away),)))
    mesh = made.meshes[0]
    assert_right(replace(mesh, vertices=mesh.vertices + away[:3, 3]))


def test_a_wall_inside_leaves_the_body_whole() -> None:
    box = brick()
    wall = Mesh([[0, 0, 15], [10, 0, 15], [10, 20, 15], [0, 20, 15]], [[0, 1, 2], [0, 2, 3]])
    made, _ = mended(joined(box, wall))
    assert_right(made.meshes[0])
    assert volume(*reread(made.meshes[0])) == pytest.approx(6000)


@pytest.mark.parametrize("hair", [1e-7, 1e-6, 5e-6])
def test_cracks_are_welded(hair: float) -> None:
    ball = sphere()
    corner = ball.vertices[ball.faces.ravel()]
    apart = corner + np.random.default_rng(1).normal(0, hair * 34, corner.shape)
    made, said = mended(Mesh(apart, np.arange(len(corner)).reshape(-1, 3)))
    assert said.figures["cracks_welded"]
    assert said.figures["bodies_after"] == 1
    assert len(made.meshes[0].vertices) == len(ball.vertices)
    assert_right(made.meshes[0])


def test_t_junctions_are_closed() -> None:
    box = brick()
    a, b, c = box.faces[0]
    middle = (box.vertices[a] + box.vertices[b]) / 2
    faces = np.concatenate([box.faces[1:], [[a, 8, c], [8, b, c]]])
    made, _ = mended(Mesh(np.concatenate([box.vertices, middle[None]]), faces))
    assert_right(made.meshes[0])
    assert volume(*reread(made.meshes[0])) == pytest.approx(6000)


def test_fragments_go_and_small_bodies_stay() -> None:
    speck = Mesh([[50, 50, 50], [50.01, 50, 50], [50, 50.01, 50]], [[0, 1, 2]])
    ball = sphere(0.05)
    made, said = mended(joined(brick(), speck, moved_by(ball, 40, 0, 0)))
    assert said.figures["fragments_removed"] == 1
    assert said.figures["bodies_before"] == 3
    assert said.figures["bodies_after"] == 2
    assert len(made.meshes[0].faces) == 12 + len(ball.faces)


def test_the_last_shell_is_never_removed() -> None:
    specks = [Mesh(np.eye(3) * 0.001 + at, [[0, 1, 2]]) for at in (0, 50, 90)]
    made, said = mended(joined(*specks))
    assert made.face_count >= 1
    assert said.figures["fragments_removed"] == 0


def test_a_sheet_is_left_open_and_said_to_be_one() -> None:
    grid = np.stack(np.meshgrid(np.arange(5.0), np.arange(5.0), [0.0]), axis=-1).reshape(-1, 3)
    a = np.arange(20)[np.arange(20) % 5 < 4]
    faces = np.concatenate([np.stack([a, a + 1, a + 6], 1), np.stack([a, a + 6, a + 5], 1)])
    faces[3] = faces[3][::-1]
    made, said = mended(Mesh(grid, faces, name="flag"))
    assert codes(said) == ["open_surface"]
    assert "'flag'" in said.notes[0].message
    assert len(made.meshes[0].faces) == len(faces)
    assert said.figures["holes_closed"] == 0
    assert edge_counts(made.meshes[0].faces) == (16, 0)


def test_a_sheet_with_nothing_to_mend_stays_the_same_object() -> None:
    square = Mesh([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], [[0, 1, 2], [0, 2, 3]])
    made, said = mended(square)
    assert made.meshes[0] is square
    assert codes(said) == ["open_surface"]


def test_a_model_without_any_area_is_left_with_a_note() -> None:
    line = Mesh([[0, 0, 0], [1, 0, 0]], [[0, 1, 1]])
    made, said = mended(line)
    assert made.meshes[0] is line
    assert "no_volume" in codes(said)


def painted() -> Mesh:
    box = brick()
    corner = box.faces.ravel()
    shade = np.repeat(np.arange(12, dtype=np.uint8), 3)
    return Mesh(
        box.vertices[corner],
        np.arange(36).reshape(-1, 3),
        normals=np.repeat(trimesh.Trimesh(box.vertices, box.faces, process=False).face_normals, 3, axis=0),
        uv=np.stack([shade, shade], axis=1).astype(np.float32),
        colors=np.stack([shade, shade, shade, np.full(36, 255, np.uint8)], axis=1),
        face_material=np.arange(12),
        name="box",
    )


def test_what_a_face_shows_survives() -> None:
    whole = painted()
    keep = np.arange(12) != 4
    broken = replace(whole, faces=whole.faces[keep], face_material=whole.face_material[keep])
    scene = Scene((broken,), (Part(0, name="box"),), materials=tuple(Material(str(index)) for index in range(12)))
    made, said = mended(scene)
    mesh = made.meshes[0]
    assert made.materials == scene.materials
    assert mesh.name == "box"
    assert said.figures["faces_added"] == 1
    assert mesh.face_material is not None
    assert mesh.uv is not None
    assert mesh.colors is not None
    assert mesh.normals is not None
    np.testing.assert_array_equal(mesh.face_material[:11], np.arange(12)[keep])
    assert mesh.face_material[11] in range(12)
    np.testing.assert_array_equal(mesh.colors[mesh.faces[:11, 0], 0], np.arange(12)[keep])
    np.testing.assert_array_equal(mesh.uv[mesh.faces[:11, 2], 1], np.arange(12)[keep])
    shown = trimesh.Trimesh(mesh.vertices, mesh.faces, process=False).face_normals
    np.testing.assert_allclose(mesh.normals[mesh.faces[:, 1]], shown, atol=1e-6)
    assert_right(mesh)


def test_normals_turn_with_their_faces() -> None:
    whole = painted()
    made, _ = mended(replace(whole, faces=whole.faces[:, ::-1], normals=-whole.normals))
    mesh = made.meshes[0]
    assert mesh.normals is not None
    shown = trimesh.Trimesh(mesh.vertices, mesh.faces, process=False).face_normals
    np.testing.assert_allclose(mesh.normals[mesh.faces[:, 0]], shown, atol=1e-6)


def test_instances_stay_instances() -> None:
    there = np.eye(4)
    there[:3, 3] = (100, 0, 0)
    broken = replace(brick(), faces=brick().faces[1:])
    scene = Scene((broken, sphere()), (Part(0, name="a"), Part(0, there, name="b"), Part(1)))
    made, said = mended(scene)
    assert made.parts == scene.parts
    assert len(made.meshes) == 2
    assert made.meshes[1] is scene.meshes[1]
    assert said.figures["holes_closed"] == 1
    assert said.figures["bodies_after"] == 3
    ball = volume(sphere().vertices, sphere().faces)
    assert said.figures["volume_after"] == pytest.approx(2 * 6000 + ball, rel=1e-6)


def test_repair_is_deterministic_and_leaves_its_input_alone() -> None:
    ball = sphere()
    broken = replace(ball, faces=ball.faces[np.random.default_rng(3).random(len(ball.faces)) < 0.8])
    vertices, faces = broken.vertices.copy(), broken.faces.copy()
    one, other = mended(broken)[0].meshes[0], mended(broken)[0].meshes[0]
    assert one.vertices.tobytes() == other.vertices.tobytes()
    assert one.faces.tobytes() == other.faces.tobytes()
    np.testing.assert_array_equal(broken.vertices, vertices)
    np.testing.assert_array_equal(broken.faces, faces)


def kinds() -> list[Mesh]:
    """Meshes of every sort, sound and not, that a scene may have thousands of."""
    box, ball = brick(), sphere(segments=8)
    corners = box.faces.ravel()
    soup = Mesh(box.vertices[corners], np.arange(36, dtype=np.int32).reshape(-1, 3))
    tip = Mesh(ball.vertices + [-10, 0, 0], ball.faces)
    small = Mesh(box.vertices / 10 + [2, 2, 2], box.faces)
    return [
        box,
        ball,
        soup,
        replace(soup, uv=np.arange(72, dtype=np.float32).reshape(-1, 2)),
        replace(soup, uv=np.zeros((36, 2), np.float32)),
        replace(box, vertices=np.concatenate([box.vertices, box.vertices[:1], [[500, 0, 0]]])),
        replace(box, faces=box.faces[1:]),
        replace(box, faces=np.concatenate([box.faces[:1, ::-1], box.faces[1:]])),
        replace(box, faces=np.concatenate([box.faces, [[0, 0, 1]]]).astype(np.int32)),
        turned(box),
        moved_by(box, 1e12, 0, 0),
        joined(tip, Mesh(-tip.vertices, tip.faces[:, ::-1])),
        joined(box, small),
        joined(box, turned(small)),
        Mesh(box.vertices[:3], np.array([[0, 1, 2]], np.int32)),
        Mesh(box.vertices[:3], np.array([[0, 1, 2], [2, 1, 0]], np.int32)),
        Mesh(box.vertices[:3], np.array([[0, 0, 2]], np.int32)),
        Mesh(np.empty((0, 3)), np.empty((0, 3), np.int32)),
    ]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, len(kinds()) - 1), min_size=2, max_size=12))
def test_many_meshes_are_repaired_as_each_alone(chosen: list[int]) -> None:
    # overlapping on purpose: what is another mesh is no neighbour
    scene = scene_of(*(replace(kinds()[kind], name=f"{kind}") for kind in chosen))
    together, said = mended(scene)
    figures: dict[str, float] = {}
    notes = set()
    for mesh, made in zip(scene.meshes, together.meshes, strict=True):
        alone, remarks = mended(mesh)
        assert alone.meshes[0].vertices.tobytes() == made.vertices.tobytes()
        assert alone.meshes[0].faces.tobytes() == made.faces.tobytes()
        assert (alone.meshes[0] is mesh) == (made is mesh)
        notes |= {each.message for each in remarks.notes if each.code != "already_sound"}
        for name, value in remarks.figures.items():
            if isinstance(value, int | float):
                figures[name] = figures.get(name, 0) + value
    assert {each.message for each in said.notes if each.code != "already_sound"} == notes
    for name, total in figures.items():
        assert said.figures[name] == total, name


def test_repaired_is_sound() -> None:
    ball = sphere()
    made, _ = mended(replace(ball, faces=ball.faces[np.random.default_rng(4).random(len(ball.faces)) < 0.9]))
    again, said = mended(made)
    assert again is made
    assert codes(said) == ["already_sound"]


BODIES = [
    brick(),
    sphere(),
    joined(sphere(10), turned(sphere(4))),
    joined(brick(), moved_by(brick(), 10, 20, 0)),
]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.sampled_from(BODIES),
    missing=st.floats(0, 0.15),
    flipped=st.floats(0, 1),
    doubled=st.floats(0, 0.5),
    shattered=st.booleans(),
)
def test_whatever_befalls_a_body_it_comes_out_right(
    seed: int, shape: Mesh, missing: float, flipped: float, doubled: float, shattered: bool
) -> None:
    chance = np.random.default_rng(seed)
    faces = shape.faces[chance.random(len(shape.faces)) >= missing]
    faces = np.where((chance.random(len(faces)) < flipped)[:, None], faces[:, ::-1], faces)
    faces = chance.permutation(np.concatenate([faces, faces[chance.random(len(faces)) < doubled]]))
    broken = Mesh(shape.vertices, faces)
    if shattered:
        broken = Mesh(shape.vertices[faces.ravel()], np.arange(3 * len(faces)).reshape(-1, 3))
    made, said = mended(broken)
    if "open_surface" not in codes(said):
        points, again = reread(made.meshes[0])
        assert edge_counts(again) == (0, 0)
        assert trimesh.Trimesh(points, again, process=False).is_winding_consistent
        assert volume(points, again) > 0


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(3, 20), st.sampled_from([1e-25, 1e-6, 1.0, 1e20]))
def test_any_faces_at_all_are_survived(seed: int, faces: int, points: int, scale: float) -> None:
    chance = np.random.default_rng(seed)
    mess = Mesh(chance.integers(-3, 4, (points, 3)) * scale, chance.integers(0, points, (faces, 3)))
    made, said = mended(mess)
    if not {"open_surface", "no_volume", "not_closed", "not_manifold"} & set(codes(said)):
        assert edge_counts(reread(made.meshes[0])[1]) == (0, 0)


def test_without_pymeshlab_there_is_no_second_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meshlab, "find_spec", lambda name: None)
    open_box = replace(brick(), faces=brick().faces[2:])
    assert meshlab.repair_with_meshlab(open_box, open_box) is None


def test_the_second_stage_dresses_and_is_judged() -> None:
    pytest.importorskip("pymeshlab", reason="the second stage needs pymeshlab")
    whole = painted()
    keep = np.arange(12) != 4
    broken = replace(whole, faces=whole.faces[keep], face_material=whole.face_material[keep])
    found = meshlab.repair_with_meshlab(broken, broken)
    assert found is not None
    assert found[1].valid
    assert_right(found[0])
    assert found[0].face_material is not None
    assert set(found[0].face_material.tolist()) == set(np.arange(12)[keep].tolist())
    flat = Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    assert meshlab.repair_with_meshlab(flat, flat) is None


CORPUS: list[tuple[str, Callable[[float], bool]]] = [
    ("stl/assimp+assimp__test_models_STL_sphereWithHole.stl", lambda made: made > 0),
    ("stl/assimp+assimp__test_models_STL_Spider_binary.stl", lambda made: made > 10),
    ("stl/mikedh+trimesh__models_shared.STL", lambda made: made == pytest.approx(2, rel=1e-3)),
    ("ply/kovacsv+Online3DViewer__website_assets_models_cow.ply", lambda made: made > 0),
    ("ply/pyvista+vtk-data__Data_shark.ply", lambda made: made > 0),
    ("obj/nmwsharp+geometry-central__test_assets_cat_head.obj", lambda made: made > 0),
    ("stl/mikedh+trimesh__models_teapot.stl", lambda made: made > 23000),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "fits"), CORPUS, ids=lambda value: value if isinstance(value, str) else "")
def test_real_files(corpus: Path, name: str, fits: Callable[[float], bool]) -> None:
    path = corpus / name
    loaded = trimesh.load(path, force="mesh", process=False)
    made, _ = mended(Mesh(np.array(loaded.vertices), np.array(loaded.faces)))
    assert_right(made.meshes[0])
    assert fits(volume(*reread(made.meshes[0])))
