"""Repair: results are closed, manifold and outward, also for programs that read positions only."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import manifold3d
import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st

from meshhub import Registry
from meshhub.builtin_plugins.repair import RepairOptions, meshlab
from meshhub.builtin_plugins.repair.operation import run
from meshhub.model.notes import Remarks, collecting
from meshhub.model.scene import Float64, Int32, Material, Mesh, Part, Scene
from models import brick, edge_counts, move_mesh, scene_of, sphere, volume

pytestmark = pytest.mark.once


def repair_scene(scene: Scene | Mesh) -> tuple[Scene, Remarks]:
    """Repair a scene; return the result and the remarks."""
    with collecting("repair") as remarks:
        result = run(scene if isinstance(scene, Scene) else scene_of(scene), RepairOptions(repair=True))
    return result, remarks


def list_codes(remarks: Remarks) -> list[str]:
    return [each.code for each in remarks.notes]


def join_meshes(*meshes: Mesh) -> Mesh:
    """Return one mesh with the vertices and faces of several."""
    offsets = np.cumsum([0] + [len(mesh.vertices) for mesh in meshes[:-1]])
    return Mesh(
        np.concatenate([mesh.vertices for mesh in meshes]),
        np.concatenate([mesh.faces + offset for mesh, offset in zip(meshes, offsets, strict=True)]),
    )


def flip(mesh: Mesh) -> Mesh:
    return replace(mesh, faces=mesh.faces[:, ::-1])


def weld_as_written(mesh: Mesh, scale: float = 1.0) -> tuple[Float64, Int32]:
    """Return the mesh as a file with float32 positions gives it: welded, without degenerate faces."""
    points, index = np.unique((mesh.vertices * scale).astype(np.float32) + np.float32(0), axis=0, return_inverse=True)
    faces = index.ravel()[mesh.faces]
    flat = (faces[:, 0] == faces[:, 1]) | (faces[:, 1] == faces[:, 2]) | (faces[:, 2] == faces[:, 0])
    return points.astype(np.float64), faces[~flat].astype(np.int32)


def assert_valid(mesh: Mesh, scale: float = 1.0) -> None:
    points, faces = weld_as_written(mesh, scale)
    assert edge_counts(faces) == (0, 0)
    judge = trimesh.Trimesh(points, faces, process=False)
    assert judge.is_watertight
    assert judge.is_winding_consistent
    assert volume(points, faces) > 0


def test_a_valid_mesh_stays_the_same_object() -> None:
    scene = scene_of(brick(), sphere(), join_meshes(sphere(10), flip(sphere(5))))
    result, remarks = repair_scene(scene)
    assert result is scene
    assert list_codes(remarks) == ["already_sound"]
    assert remarks.figures["bodies_before"] == remarks.figures["bodies_after"] == 4
    assert remarks.figures["meshes_repaired"] == 0


def test_seams_are_not_defects() -> None:
    box = brick()
    corner = box.faces.ravel()
    seamed = Mesh(
        box.vertices[corner], np.arange(36).reshape(-1, 3), uv=np.random.default_rng(0).random((36, 2), np.float32)
    )
    result, _ = repair_scene(seamed)
    assert result.meshes[0] is seamed


def test_equal_vertices_are_merged() -> None:
    box = brick()
    result, remarks = repair_scene(Mesh(box.vertices[box.faces.ravel()], np.arange(36).reshape(-1, 3)))
    assert len(result.meshes[0].vertices) == 8
    assert remarks.figures["vertices_merged"] == 28
    assert_valid(result.meshes[0])


def test_a_hole_is_closed_flat() -> None:
    box = brick()
    result, remarks = repair_scene(replace(box, faces=box.faces[2:]))
    assert_valid(result.meshes[0])
    assert volume(*weld_as_written(result.meshes[0])) == pytest.approx(6000)
    assert remarks.figures["holes_closed"] == 1
    assert remarks.figures["faces_added"] == 2
    assert remarks.figures["volume_after"] == pytest.approx(6000)
    assert remarks.figures["size_after"] == pytest.approx([10, 20, 30])


@pytest.mark.parametrize("segments", [20, 100, 300])
def test_a_large_hole_is_closed_without_overlap(segments: int) -> None:
    ball = sphere(10, segments)
    height = ball.vertices[ball.faces][:, :, 2].max(axis=1)
    result, _ = repair_scene(replace(ball, faces=ball.faces[height < 4]))
    assert_valid(result.meshes[0])
    points, faces = weld_as_written(result.meshes[0])
    lid = faces[(np.ptp(points[faces][:, :, 2], axis=1) < 1e-6) & (points[faces][:, :, 2].mean(axis=1) > 0)]
    a, b, c = (points[lid[:, corner], :2] for corner in range(3))
    areas = ((b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]) / 2
    assert areas.min() > -1e-6
    radius = np.linalg.norm(points[lid.ravel(), :2], axis=1).max()
    assert areas.sum() == pytest.approx(segments / 2 * np.sin(2 * np.pi / segments) * radius**2, rel=1e-3)


def test_a_missing_ring_is_closed_as_a_hole_with_an_island() -> None:
    outer, inner = sphere(10, 64), flip(sphere(6, 64))
    both = join_meshes(outer, inner)
    middle = both.vertices[both.faces].mean(axis=1)
    bowl = replace(both, faces=both.faces[middle[:, 2] < 0])
    result, remarks = repair_scene(bowl)
    assert_valid(result.meshes[0])
    assert remarks.figures["bodies_after"] == 1
    assert volume(*weld_as_written(result.meshes[0])) == pytest.approx(2 / 3 * np.pi * (1000 - 216), rel=0.05)


def test_many_small_holes_are_closed() -> None:
    ball = sphere(10, 120)
    result, remarks = repair_scene(replace(ball, faces=ball.faces[np.arange(len(ball.faces)) % 7 > 0]))
    assert_valid(result.meshes[0])
    assert remarks.figures["holes_closed"] > 900
    assert volume(*weld_as_written(result.meshes[0])) == pytest.approx(volume(ball.vertices, ball.faces), rel=0.01)


def test_flipped_faces_are_flipped_back() -> None:
    ball = sphere()
    faces = ball.faces.copy()
    faces[5:25] = faces[5:25, ::-1]
    result, remarks = repair_scene(replace(ball, faces=faces))
    assert remarks.figures["faces_flipped"] == 20
    assert volume(*weld_as_written(result.meshes[0])) == pytest.approx(volume(ball.vertices, ball.faces))
    assert_valid(result.meshes[0])


def test_an_inside_out_mesh_is_flipped() -> None:
    result, remarks = repair_scene(flip(brick()))
    assert remarks.figures["faces_flipped"] == 12
    assert remarks.figures["volume_before"] == pytest.approx(-6000)
    assert remarks.figures["volume_after"] == pytest.approx(6000)
    assert_valid(result.meshes[0])


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("second", [False, True])
def test_nested_shells_are_cavities_and_bodies_by_turns(first: bool, second: bool) -> None:
    cavity, body = sphere(6), sphere(3)
    result, _ = repair_scene(join_meshes(sphere(10), flip(cavity) if first else cavity, flip(body) if second else body))
    shells = [abs(volume(each.vertices, each.faces)) for each in (sphere(10), cavity, body)]
    assert volume(*weld_as_written(result.meshes[0])) == pytest.approx(shells[0] - shells[1] + shells[2], rel=1e-6)


def test_bodies_beside_each_other_are_not_cavities() -> None:
    result, _ = repair_scene(
        join_meshes(brick(), flip(move_mesh(brick(2, 2, 2), 20, 5, 5)), move_mesh(brick(2, 2, 2), 9, 5, 5))
    )
    assert volume(*weld_as_written(result.meshes[0])) == pytest.approx(6000 + 8 + 8)


def test_duplicate_and_degenerate_faces_are_removed() -> None:
    box = brick()
    faces = np.concatenate([box.faces, box.faces[:3], box.faces[:2, [0, 1, 1]]])
    result, remarks = repair_scene(replace(box, faces=faces))
    assert remarks.figures["duplicate_faces_removed"] == 3
    assert remarks.figures["degenerate_faces_removed"] == 2
    assert len(result.meshes[0].faces) == 12
    assert_valid(result.meshes[0])


def test_a_surface_with_faces_on_both_sides_becomes_one() -> None:
    ball = sphere()
    result, remarks = repair_scene(replace(ball, faces=np.concatenate([ball.faces, ball.faces[:, ::-1]])))
    assert remarks.figures["duplicate_faces_removed"] == len(ball.faces)
    assert remarks.figures["volume_after"] == pytest.approx(volume(ball.vertices, ball.faces), rel=1e-6)
    assert_valid(result.meshes[0])


@pytest.mark.parametrize(
    "by", [(10, 20, 0), (10, 20, 30), (10, 0, 0), (10, 10, 0)], ids=["an edge", "a point", "a wall", "half a wall"]
)
@pytest.mark.parametrize("scale", [1.0, 0.001, 1 / 25.4])
def test_touching_bodies_stay_separate_in_a_written_file(by: tuple[float, float, float], scale: float) -> None:
    result, remarks = repair_scene(join_meshes(brick(), move_mesh(brick(), *by)))
    assert remarks.figures["bodies_after"] == 2
    assert remarks.figures["volume_after"] == pytest.approx(12000, rel=1e-4)
    assert_valid(result.meshes[0], scale)


@pytest.mark.parametrize("by", [(10, 20, 0), (10, 0, 0)], ids=["an edge", "a wall"])
@pytest.mark.parametrize("inverted", [0, 1])
@pytest.mark.parametrize("order", range(4))
def test_touching_bodies_are_turned_outward(by: tuple[float, float, float], inverted: int, order: int) -> None:
    bodies = [brick(), move_mesh(Mesh(brick().vertices * [1, -1, 1] + [0, 20, 0], brick().faces[:, ::-1]), *by)]
    bodies[inverted] = flip(bodies[inverted])
    touching = join_meshes(*bodies)
    faces = np.random.default_rng(order).permutation(touching.faces) if order else touching.faces
    result, remarks = repair_scene(replace(touching, faces=faces))
    assert remarks.figures["bodies_after"] == 2
    assert remarks.figures["volume_after"] == pytest.approx(12000, rel=1e-4)
    assert_valid(result.meshes[0])


def test_touching_bodies_far_from_the_origin_stay_separate() -> None:
    touching = join_meshes(brick(), move_mesh(brick(), 10, 20, 0))
    away = np.eye(4)
    away[:3, 3] = (3000, -2000, 500)
    result, _ = repair_scene(Scene((touching,), (Part(0, away),)))
    mesh = result.meshes[0]
    assert_valid(replace(mesh, vertices=mesh.vertices + away[:3, 3]))


def test_an_inner_wall_does_not_split_the_body() -> None:
    box = brick()
    wall = Mesh([[0, 0, 15], [10, 0, 15], [10, 20, 15], [0, 20, 15]], [[0, 1, 2], [0, 2, 3]])
    result, _ = repair_scene(join_meshes(box, wall))
    assert_valid(result.meshes[0])
    assert volume(*weld_as_written(result.meshes[0])) == pytest.approx(6000)


@pytest.mark.parametrize("hair", [1e-7, 1e-6, 5e-6])
def test_cracks_are_welded(hair: float) -> None:
    ball = sphere()
    corner = ball.vertices[ball.faces.ravel()]
    apart = corner + np.random.default_rng(1).normal(0, hair * 34, corner.shape)
    result, remarks = repair_scene(Mesh(apart, np.arange(len(corner)).reshape(-1, 3)))
    assert remarks.figures["cracks_welded"]
    assert remarks.figures["bodies_after"] == 1
    assert len(result.meshes[0].vertices) == len(ball.vertices)
    assert_valid(result.meshes[0])


def test_t_junctions_are_closed() -> None:
    box = brick()
    a, b, c = box.faces[0]
    middle = (box.vertices[a] + box.vertices[b]) / 2
    faces = np.concatenate([box.faces[1:], [[a, 8, c], [8, b, c]]])
    result, _ = repair_scene(Mesh(np.concatenate([box.vertices, middle[None]]), faces))
    assert_valid(result.meshes[0])
    assert volume(*weld_as_written(result.meshes[0])) == pytest.approx(6000)


def test_fragments_are_removed_and_small_bodies_kept() -> None:
    speck = Mesh([[50, 50, 50], [50.01, 50, 50], [50, 50.01, 50]], [[0, 1, 2]])
    ball = sphere(0.05)
    result, remarks = repair_scene(join_meshes(brick(), speck, move_mesh(ball, 40, 0, 0)))
    assert remarks.figures["fragments_removed"] == 1
    assert remarks.figures["bodies_before"] == 3
    assert remarks.figures["bodies_after"] == 2
    assert len(result.meshes[0].faces) == 12 + len(ball.faces)


def test_the_last_shell_is_never_removed() -> None:
    specks = [Mesh(np.eye(3) * 0.001 + at, [[0, 1, 2]]) for at in (0, 50, 90)]
    result, remarks = repair_scene(join_meshes(*specks))
    assert result.face_count >= 1
    assert remarks.figures["fragments_removed"] == 0


def test_a_sheet_stays_open_and_is_noted() -> None:
    grid = np.stack(np.meshgrid(np.arange(5.0), np.arange(5.0), [0.0]), axis=-1).reshape(-1, 3)
    a = np.arange(20)[np.arange(20) % 5 < 4]
    faces = np.concatenate([np.stack([a, a + 1, a + 6], 1), np.stack([a, a + 6, a + 5], 1)])
    faces[3] = faces[3][::-1]
    result, remarks = repair_scene(Mesh(grid, faces, name="flag"))
    assert list_codes(remarks) == ["open_surface"]
    assert "'flag'" in remarks.notes[0].message
    assert len(result.meshes[0].faces) == len(faces)
    assert remarks.figures["holes_closed"] == 0
    assert edge_counts(result.meshes[0].faces) == (16, 0)


def test_a_sheet_without_defects_stays_the_same_object() -> None:
    square = Mesh([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], [[0, 1, 2], [0, 2, 3]])
    result, remarks = repair_scene(square)
    assert result.meshes[0] is square
    assert list_codes(remarks) == ["open_surface"]


def test_a_model_without_area_is_unchanged_and_noted() -> None:
    line = Mesh([[0, 0, 0], [1, 0, 0]], [[0, 1, 1]])
    result, remarks = repair_scene(line)
    assert result.meshes[0] is line
    assert "no_volume" in list_codes(remarks)


def build_painted() -> Mesh:
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


def test_attributes_of_faces_are_kept() -> None:
    whole = build_painted()
    keep = np.arange(12) != 4
    broken = replace(whole, faces=whole.faces[keep], face_material=whole.face_material[keep])
    scene = Scene((broken,), (Part(0, name="box"),), materials=tuple(Material(str(index)) for index in range(12)))
    result, remarks = repair_scene(scene)
    mesh = result.meshes[0]
    assert result.materials == scene.materials
    assert mesh.name == "box"
    assert remarks.figures["faces_added"] == 1
    assert mesh.face_material is not None
    assert mesh.uv is not None
    assert mesh.colors is not None
    assert mesh.normals is not None
    np.testing.assert_array_equal(mesh.face_material[:11], np.arange(12)[keep])
    assert mesh.face_material[11] in range(12)
    np.testing.assert_array_equal(mesh.colors[mesh.faces[:11, 0], 0], np.arange(12)[keep])
    np.testing.assert_array_equal(mesh.uv[mesh.faces[:11, 2], 1], np.arange(12)[keep])
    face_normals = trimesh.Trimesh(mesh.vertices, mesh.faces, process=False).face_normals
    np.testing.assert_allclose(mesh.normals[mesh.faces[:, 1]], face_normals, atol=1e-6)
    assert_valid(mesh)


def test_normals_are_flipped_with_their_faces() -> None:
    whole = build_painted()
    result, _ = repair_scene(replace(whole, faces=whole.faces[:, ::-1], normals=-whole.normals))
    mesh = result.meshes[0]
    assert mesh.normals is not None
    face_normals = trimesh.Trimesh(mesh.vertices, mesh.faces, process=False).face_normals
    np.testing.assert_allclose(mesh.normals[mesh.faces[:, 0]], face_normals, atol=1e-6)


def test_instances_stay_shared() -> None:
    there = np.eye(4)
    there[:3, 3] = (100, 0, 0)
    broken = replace(brick(), faces=brick().faces[1:])
    scene = Scene((broken, sphere()), (Part(0, name="a"), Part(0, there, name="b"), Part(1)))
    result, remarks = repair_scene(scene)
    assert result.parts == scene.parts
    assert len(result.meshes) == 2
    assert result.meshes[1] is scene.meshes[1]
    assert remarks.figures["holes_closed"] == 1
    assert remarks.figures["bodies_after"] == 3
    ball = volume(sphere().vertices, sphere().faces)
    assert remarks.figures["volume_after"] == pytest.approx(2 * 6000 + ball, rel=1e-6)


def test_repair_is_deterministic_and_does_not_change_its_input() -> None:
    ball = sphere()
    broken = replace(ball, faces=ball.faces[np.random.default_rng(3).random(len(ball.faces)) < 0.8])
    vertices, faces = broken.vertices.copy(), broken.faces.copy()
    first, second = repair_scene(broken)[0].meshes[0], repair_scene(broken)[0].meshes[0]
    assert first.vertices.tobytes() == second.vertices.tobytes()
    assert first.faces.tobytes() == second.faces.tobytes()
    np.testing.assert_array_equal(broken.vertices, vertices)
    np.testing.assert_array_equal(broken.faces, faces)


def build_samples() -> list[Mesh]:
    """Return small valid and invalid meshes, of which scenes have thousands."""
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
        flip(box),
        move_mesh(box, 1e12, 0, 0),
        join_meshes(tip, Mesh(-tip.vertices, tip.faces[:, ::-1])),
        join_meshes(box, small),
        join_meshes(box, flip(small)),
        Mesh(box.vertices[:3], np.array([[0, 1, 2]], np.int32)),
        Mesh(box.vertices[:3], np.array([[0, 1, 2], [2, 1, 0]], np.int32)),
        Mesh(box.vertices[:3], np.array([[0, 0, 2]], np.int32)),
        Mesh(np.empty((0, 3)), np.empty((0, 3), np.int32)),
    ]


@settings(max_examples=25)
@given(st.lists(st.integers(0, len(build_samples()) - 1), min_size=2, max_size=12))
def test_a_scene_is_repaired_like_each_of_its_meshes_alone(chosen: list[int]) -> None:
    # they overlap on purpose: repair does not join different meshes
    scene = scene_of(*(replace(build_samples()[kind], name=f"{kind}") for kind in chosen))
    together, remarks = repair_scene(scene)
    figures: dict[str, float] = {}
    notes = set()
    for mesh, result in zip(scene.meshes, together.meshes, strict=True):
        alone, mesh_remarks = repair_scene(mesh)
        assert alone.meshes[0].vertices.tobytes() == result.vertices.tobytes()
        assert alone.meshes[0].faces.tobytes() == result.faces.tobytes()
        assert (alone.meshes[0] is mesh) == (result is mesh)
        notes |= {each.message for each in mesh_remarks.notes if each.code != "already_sound"}
        for name, value in mesh_remarks.figures.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                figures[name] = figures.get(name, 0) + value
    assert {each.message for each in remarks.notes if each.code != "already_sound"} == notes
    for name, total in figures.items():
        assert remarks.figures[name] == total, name


def test_repaired_meshes_are_valid() -> None:
    ball = sphere()
    result, _ = repair_scene(replace(ball, faces=ball.faces[np.random.default_rng(4).random(len(ball.faces)) < 0.9]))
    again, remarks = repair_scene(result)
    assert again is result
    assert list_codes(remarks) == ["already_sound"]


BODIES = [
    brick(),
    sphere(),
    join_meshes(sphere(10), flip(sphere(4))),
    join_meshes(brick(), move_mesh(brick(), 10, 20, 0)),
]


@settings(max_examples=20)
@given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.sampled_from(BODIES),
    missing=st.floats(0, 0.15),
    flipped=st.floats(0, 1),
    doubled=st.floats(0, 0.5),
    shattered=st.booleans(),
)
def test_a_damaged_body_is_valid_after_repair(
    seed: int, shape: Mesh, missing: float, flipped: float, doubled: float, shattered: bool
) -> None:
    chance = np.random.default_rng(seed)
    faces = shape.faces[chance.random(len(shape.faces)) >= missing]
    faces = np.where((chance.random(len(faces)) < flipped)[:, None], faces[:, ::-1], faces)
    faces = chance.permutation(np.concatenate([faces, faces[chance.random(len(faces)) < doubled]]))
    broken = Mesh(shape.vertices, faces)
    if shattered:
        broken = Mesh(shape.vertices[faces.ravel()], np.arange(3 * len(faces)).reshape(-1, 3))
    result, remarks = repair_scene(broken)
    if "open_surface" not in list_codes(remarks):
        points, again = weld_as_written(result.meshes[0])
        assert edge_counts(again) == (0, 0)
        assert trimesh.Trimesh(points, again, process=False).is_winding_consistent
        assert volume(points, again) > 0


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(3, 20), st.sampled_from([1e-25, 1e-6, 1.0, 1e20]))
def test_any_triangle_soup_is_repaired_without_an_error(seed: int, faces: int, points: int, scale: float) -> None:
    chance = np.random.default_rng(seed)
    mess = Mesh(chance.integers(-3, 4, (points, 3)) * scale, chance.integers(0, points, (faces, 3)))
    result, remarks = repair_scene(mess)
    if not {"open_surface", "no_volume", "not_closed", "not_manifold"} & set(list_codes(remarks)):
        assert edge_counts(weld_as_written(result.meshes[0])[1]) == (0, 0)


@pytest.mark.parametrize("module", [None, SimpleNamespace(MeshSet=object)], ids=["not installed", "without OpenGL"])
def test_without_filters_of_pymeshlab_there_is_no_second_stage(monkeypatch: pytest.MonkeyPatch, module: object) -> None:
    monkeypatch.setitem(sys.modules, "pymeshlab", module)
    open_box = replace(brick(), faces=brick().faces[2:])
    assert meshlab.repair_with_meshlab(open_box, open_box) is None


def test_the_second_stage_keeps_attributes_and_is_checked() -> None:
    pytest.importorskip("pymeshlab", reason="the second stage needs pymeshlab")
    whole = build_painted()
    keep = np.arange(12) != 4
    broken = replace(whole, faces=whole.faces[keep], face_material=whole.face_material[keep])
    result = meshlab.repair_with_meshlab(broken, broken)
    assert result is not None
    assert result[1].valid
    assert_valid(result[0])
    assert result[0].face_material is not None
    assert set(result[0].face_material.tolist()) == set(np.arange(12)[keep].tolist())
    flat = Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    assert meshlab.repair_with_meshlab(flat, flat) is None


CORPUS: list[tuple[str, Callable[[float], bool]]] = [
    ("stl/assimp+assimp__test_models_STL_sphereWithHole.stl", lambda result: result > 0),
    ("stl/assimp+assimp__test_models_STL_Spider_binary.stl", lambda result: result > 10),
    ("stl/mikedh+trimesh__models_shared.STL", lambda result: result == pytest.approx(2, rel=1e-3)),
    ("ply/kovacsv+Online3DViewer__website_assets_models_cow.ply", lambda result: result > 0),
    ("ply/pyvista+vtk-data__Data_shark.ply", lambda result: result > 0),
    ("obj/nmwsharp+geometry-central__test_assets_cat_head.obj", lambda result: result > 0),
    ("stl/mikedh+trimesh__models_teapot.stl", lambda result: result > 23000),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "fits"), CORPUS, ids=lambda value: value if isinstance(value, str) else "")
def test_real_files_are_repaired(corpus: Path, name: str, fits: Callable[[float], bool]) -> None:
    path = corpus / name
    loaded = trimesh.load(path, force="mesh", process=False)
    result, _ = repair_scene(Mesh(np.array(loaded.vertices), np.array(loaded.faces)))
    assert_valid(result.meshes[0])
    assert fits(volume(*weld_as_written(result.meshes[0])))


def write_and_read(scene: Scene, folder: Path, target: str) -> list[tuple[Float64, Int32]]:
    """Convert with `repair`; return the welded meshes that a program reads from the written file, without meshhub."""
    with Registry(entry_points=False) as registry:
        registry.write(scene, folder / "before.3mf")
        registry.convert(folder / "before.3mf", folder / f"after.{target}", options={"repair": True})
    loaded = trimesh.load(folder / f"after.{target}", process=False)
    meshes = loaded.dump() if isinstance(loaded, trimesh.Scene) else [loaded]
    return [weld_as_written(Mesh(np.array(mesh.vertices), np.array(mesh.faces))) for mesh in meshes]


@pytest.mark.parametrize("by", [(10, 20, 0), (10, 20, 30), (10, 0, 0)], ids=["an edge", "a point", "a wall"])
@pytest.mark.parametrize("away", [0.0, 1234.5])
def test_touching_parts_stay_apart_where_the_file_has_one_mesh(
    by: tuple[float, float, float], away: float, tmp_path: Path
) -> None:
    place, mirror = np.eye(4), np.diag([-1.0, 1, 1, 1])
    place[:3, 3] = np.array(by) + away
    mirror[:3, 3] = (10 + away, away, away)
    scene = Scene((brick(),), (Part(0, mirror), Part(0, place)))
    [(points, faces)] = write_and_read(scene, tmp_path, "stl")
    assert edge_counts(faces) == (0, 0)
    solids = manifold3d.Manifold(manifold3d.Mesh64(points, faces.astype(np.uint64)))
    assert solids.status() == manifold3d.Error.NoError
    assert len(trimesh.Trimesh(points, faces, process=False).split(only_watertight=False)) == 2
    assert volume(points, faces) == pytest.approx(12000, rel=1e-3)


def test_touching_parts_stay_unchanged_where_the_file_keeps_parts(tmp_path: Path) -> None:
    scene = scene_of(brick(), move_mesh(brick(), 10, 20, 0))
    for points, faces in write_and_read(scene, tmp_path, "3mf"):
        assert len(points) == 8
        assert edge_counts(faces) == (0, 0)
        np.testing.assert_array_equal(points, np.round(points))


def fan(faces: int, size: float, at: tuple[float, float, float]) -> Mesh:
    """Return an open fan of some faces."""
    angle = np.arange(faces + 1)
    ring = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    corners = np.concatenate([[[0, 0, 0.5]], ring]) * size + at
    return Mesh(corners, np.array([[0, k + 1, k + 2] for k in range(faces)]))


@pytest.mark.parametrize("faces", [1, 2, 3, 4])
@pytest.mark.parametrize("size", [0.01, 5.0])
@pytest.mark.parametrize("at", [(20.0, 30.0, 40.0), (2000.0, 0.0, 0.0)])
def test_stray_open_shells_of_few_faces_disappear_at_any_size(
    faces: int, size: float, at: tuple[float, float, float]
) -> None:
    result, remarks = repair_scene(join_meshes(brick(), fan(faces, size, at)))
    assert remarks.figures["fragments_removed"] == 1
    assert remarks.figures["size_after"] == pytest.approx([10, 20, 30])
    assert list_codes(remarks) == ["strays_removed"]
    assert len(result.meshes[0].faces) == 12


def test_few_faces_that_fill_a_gap_stay() -> None:
    ball = sphere(10, 32)
    lid = ball.faces[40:42]
    opened = join_meshes(
        replace(ball, faces=np.delete(ball.faces, np.arange(38, 44), axis=0)), replace(ball, faces=lid)
    )
    result, remarks = repair_scene(opened)
    assert remarks.figures["bodies_after"] == 1
    assert volume(*weld_as_written(result.meshes[0])) == pytest.approx(volume(ball.vertices, ball.faces), rel=1e-3)


@pytest.mark.parametrize("size", [0.2, 0.6])
def test_floating_crumbs_are_judged_by_the_largest_body(size: float) -> None:
    crumb = Mesh(
        np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]) * size / np.sqrt(3) + [0, 0, 200],
        [[0, 2, 1], [0, 3, 2], [0, 1, 3], [1, 2, 3]],
    )
    result, remarks = repair_scene(join_meshes(brick(), crumb))
    assert remarks.figures["fragments_removed"] == 1
    assert len(result.meshes[0].faces) == 12


def test_merged_vertices_leave_no_bodies_without_volume() -> None:
    ball = sphere(10, 48)
    target = np.arange(len(ball.vertices))
    target[200:900:37] = target[201:901:37] + 1
    faces = target[ball.faces]
    result, remarks = repair_scene(
        replace(ball, faces=faces[(np.diff(np.sort(faces, axis=1), axis=1) > 0).all(axis=1)])
    )
    assert remarks.figures["bodies_after"] == 1
    assert_valid(result.meshes[0])


def relief(height: float, flat_rim: bool) -> Mesh:
    """Return a height field of 40 by 40 cells on a square of side 1."""
    line = np.linspace(0, 1, 41)
    x, y = np.meshgrid(line, line, indexing="ij")
    z = height * (np.sin(11 * x + 3 * y) + np.sin(7 * x - 9 * y + 1)) / 4
    if flat_rim:
        z = (z - z.min()) * np.clip(8 * np.minimum.reduce([x, 1 - x, y, 1 - y]), 0, 1)
    a = (np.arange(40)[:, None] * 41 + np.arange(40)).ravel()
    faces = np.concatenate([np.stack([a, a + 41, a + 42], 1), np.stack([a, a + 42, a + 1], 1)])
    return Mesh(np.stack([x, y, z], axis=-1).reshape(-1, 3), faces)


@pytest.mark.parametrize("flat_rim", [False, True])
@pytest.mark.parametrize("height", [0.1, 0.3, 0.45])
def test_a_height_field_is_a_sheet(height: float, flat_rim: bool) -> None:
    mesh = relief(height, flat_rim)
    result, remarks = repair_scene(mesh)
    assert list_codes(remarks) == ["open_surface"]
    assert result.meshes[0] is mesh


def test_a_dome_without_its_base_is_a_solid() -> None:
    ball = sphere(10, 48)
    dome = replace(ball, faces=ball.faces[ball.vertices[ball.faces][:, :, 2].min(axis=1) > -1e-9])
    result, _ = repair_scene(dome)
    assert_valid(result.meshes[0])


@pytest.mark.parametrize("edges", [1, 4])
@pytest.mark.parametrize("flipped", [False, True])
def test_bodies_that_touch_at_an_edge_with_holes_are_not_turned_inside_out(edges: int, flipped: bool) -> None:
    grid = trimesh.creation.box((10, 10, 10), transform=trimesh.transformations.translation_matrix((5, 5, 5)))
    for _ in range(edges // 2):
        grid = grid.subdivide()
    box = Mesh(np.array(grid.vertices), np.array(grid.faces))
    other = move_mesh(box, 10, 10, 0)
    broken = []
    for body in (box, other):
        at_edge = (np.abs(body.vertices[body.faces][:, :, :2] - 10).max(axis=2) == 0).sum(axis=1) == 2
        on_side = np.ptp(body.vertices[body.faces][:, :, 0], axis=1) == 0
        broken.append(replace(body, faces=body.faces[~(at_edge & on_side)]))
    if flipped:
        broken[1] = flip(broken[1])
    result, remarks = repair_scene(join_meshes(*broken))
    assert remarks.figures["bodies_after"] == 2
    assert volume(*weld_as_written(result.meshes[0])) == pytest.approx(2000, rel=1e-3)
    assert_valid(result.meshes[0])


@pytest.mark.parametrize("gap", [0.0, 1e-4, 1e-2])
@pytest.mark.parametrize("seed", range(3))
def test_bodies_with_holes_beside_each_other_are_not_joined(gap: float, seed: int) -> None:
    grid = trimesh.creation.box((10, 10, 10)).subdivide().subdivide()
    box = Mesh(np.array(grid.vertices), np.array(grid.faces))
    chance = np.random.default_rng(seed)
    broken = [
        replace(each, faces=each.faces[chance.random(len(each.faces)) > 0.05])
        for each in (box, move_mesh(box, 10 + gap, 0, 0))
    ]
    result, remarks = repair_scene(join_meshes(*broken))
    assert remarks.figures["bodies_after"] == 2
    assert_valid(result.meshes[0])


def without_sides(solid: manifold3d.Manifold, *sides: tuple[float, float, float]) -> Mesh:
    """Return a solid without its faces at the far end of directions."""
    whole = solid.to_mesh64()
    points, faces = np.asarray(whole.vert_properties)[:, :3], np.asarray(whole.tri_verts).astype(np.int32)
    kept = np.ones(len(faces), np.bool_)
    for side in sides:
        height = points @ np.array(side)
        kept &= ~(height[faces] > height.max() - 1e-6).all(axis=1)
    return Mesh(points, faces[kept], name="open")


TOP, BASE, WALL, OPPOSITE = (0.0, 0.0, 1.0), (0.0, 0.0, -1.0), (1.0, 0.0, 0.0), (-1.0, 0.0, 0.0)
DISK = manifold3d.CrossSection.circle(40, 96)
ANGLE = manifold3d.CrossSection([[(0, 0), (60, 0), (60, 20), (20, 20), (20, 50), (0, 50)]])
PERFORATED = manifold3d.CrossSection.square((80, 50)) - DISK.scale((0.1, 0.1)).translate((20, 20))
ROUNDED = manifold3d.CrossSection.square((80, 50)).offset(8, manifold3d.JoinType.Round, 2, 32)


@pytest.mark.parametrize("height", [0.4, 4, 40])
@pytest.mark.parametrize("sides", [[TOP], [WALL], [TOP, WALL], [TOP, BASE], [WALL, OPPOSITE]], ids=str)
def test_a_box_without_sides_becomes_whole(height: float, sides: list[tuple[float, float, float]]) -> None:
    tray = without_sides(manifold3d.Manifold.cube((100, 150, height)), *sides)
    result, remarks = repair_scene(tray)
    assert_valid(result.meshes[0])
    assert volume(result.meshes[0].vertices, result.meshes[0].faces) == pytest.approx(100 * 150 * height)
    assert "open_surface" not in list_codes(remarks)


@pytest.mark.parametrize("height", [1, 12])
@pytest.mark.parametrize("outline", [DISK, ANGLE, PERFORATED, ROUNDED], ids=["disk", "angle", "perforated", "rounded"])
@pytest.mark.parametrize("sides", [[TOP], [TOP, BASE]], ids=str)
def test_a_flat_part_without_sides_becomes_whole(
    outline: manifold3d.CrossSection, height: float, sides: list[tuple[float, float, float]]
) -> None:
    solid = outline.extrude(height)
    result, _ = repair_scene(without_sides(solid, *sides))
    assert_valid(result.meshes[0])
    assert volume(result.meshes[0].vertices, result.meshes[0].faces) == pytest.approx(solid.volume(), rel=1e-6)


def test_plates_with_rounded_edges_become_whole() -> None:
    corners = [(x, y, z) for x in (2, 88) for y in (2, 58) for z in (2, 4)]
    solid = manifold3d.Manifold.batch_hull([manifold3d.Manifold.sphere(2, 24).translate(corner) for corner in corners])
    for sides in ([TOP], [TOP, BASE]):
        result, _ = repair_scene(without_sides(solid, *sides))
        assert_valid(result.meshes[0])
        assert volume(result.meshes[0].vertices, result.meshes[0].faces) == pytest.approx(solid.volume(), rel=1e-6)


def test_a_scanned_tray_becomes_whole() -> None:
    solid = manifold3d.Manifold.cube((100, 150, 4)).refine_to_length(8)
    tray = without_sides(solid, TOP)
    noise = np.random.default_rng(3).normal(0, 0.2, tray.vertices.shape)
    result, _ = repair_scene(replace(tray, vertices=tray.vertices + noise))
    assert_valid(result.meshes[0])
    assert volume(result.meshes[0].vertices, result.meshes[0].faces) == pytest.approx(60_000, rel=0.02)


def bend(height: float, angle: float, columns: int = 24) -> Mesh:
    """Return a part of the side of a cylinder."""
    a, z = np.meshgrid(np.linspace(0, angle, columns + 1), np.linspace(0, height, 9))
    return grid_mesh(np.cos(a), np.sin(a), z)


def grid_mesh(x: Float64, y: Float64, z: Float64) -> Mesh:
    rows, columns = x.shape
    corner = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).ravel()
    a, b, c, d = corner, corner + 1, corner + columns + 1, corner + columns
    faces = np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)]).astype(np.int32)
    return Mesh(np.stack([x, y, z], axis=-1).reshape(-1, 3), faces)


def bent_sheet(wall: float) -> Mesh:
    """Return a strip that is bent up at both ends."""
    x, z = [0.0, 0, 1, 1], [wall, 0, 0, wall]
    return grid_mesh(np.stack([x, x]), np.array([[0.0] * 4, [1.0] * 4]), np.stack([z, z]))


def cushion(height: float) -> Mesh:
    x, y = np.meshgrid(np.linspace(0, 1, 25), np.linspace(0, 1, 25))
    return grid_mesh(x, y, height * np.sin(np.pi * x) * np.sin(np.pi * y))


def emboss(width: float) -> Mesh:
    """Return a flat sheet with a raised square."""
    x, y = np.meshgrid(np.linspace(0, 1, 41), np.linspace(0, 1, 41))
    return grid_mesh(x, y, 0.05 * (np.maximum(np.abs(x - 0.5), np.abs(y - 0.5)) < width))


@pytest.mark.parametrize(
    "mesh",
    [
        *(bend(1, angle) for angle in (0.3, 1, 2, 3)),
        *(bend(4, angle) for angle in (0.3, 1, 1.5)),
        bend(1, 3, columns=4),
        *(bend(height, angle) for height in (1, 8) for angle in (4.5, 6)),
        *(bent_sheet(wall) for wall in (0.1, 0.4, 1)),
        *(cushion(height) for height in (0.05, 0.3)),
        *(emboss(width) for width in (0.3, 0.45)),
    ],
)
def test_labels_rolls_bent_sheets_cushions_and_reliefs_stay_open(mesh: Mesh) -> None:
    result, remarks = repair_scene(mesh)
    assert list_codes(remarks) == ["open_surface"]
    assert result.meshes[0] is mesh
