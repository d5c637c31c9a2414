"""Unions, differences and intersections of parts."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import add, sub, xor
from pathlib import Path

import manifold3d
import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st

from meshhub import ConversionFailed, InvalidOption, Registry
from meshhub.builtin_plugins.boolean import BooleanOptions
from meshhub.builtin_plugins.boolean.operation import run
from meshhub.model.notes import collecting
from meshhub.model.scene import Material, Mesh, Part, Scene
from meshhub.toolkit.geometry import soup
from models import assert_valid, brick, move_mesh, scene_of, sphere, volume

pytestmark = pytest.mark.once

OPERATORS = {"union": add, "difference": sub, "intersection": xor}


def combine(scene: Scene, how: str) -> Scene:
    return run(scene, BooleanOptions(boolean=how))  # type: ignore[arg-type]


@pytest.mark.parametrize(("how", "expected"), [("union", 8400), ("difference", 2400), ("intersection", 3600)])
def test_two_bricks_are_combined(how: str, expected: float) -> None:
    with collecting("boolean") as remarks:
        result = combine(scene_of(brick(), move_mesh(brick(name="other"), 4, 0, 0)), how)
    assert len(result.parts) == 1
    assert_valid(result)
    assert volume(*soup(result)) == pytest.approx(expected)
    assert [note.code for note in remarks.notes] == ["parts_merged"]
    assert remarks.figures == {"volume_before_mm3": pytest.approx(6000), "volume_after_mm3": pytest.approx(expected)}


@pytest.mark.parametrize(("how", "expected"), [("union", 2860), ("difference", 1260), ("intersection", 240)])
def test_overlapping_bodies_of_an_operand_count_once(how: str, expected: float) -> None:
    bodies = [brick(10, 10, 10), brick(10, 10, 10)]
    double = Mesh(
        np.concatenate([bodies[0].vertices, bodies[1].vertices + [5, 0, 0]]),
        np.concatenate([bodies[0].faces, bodies[1].faces + 8]),
    )
    bar = brick(100, 4, 4)
    result = combine(Scene((double, replace(bar, vertices=bar.vertices + [-10, 3, 3])), (Part(0), Part(1))), how)
    assert volume(*soup(result)) == pytest.approx(expected)


@given(seed=st.integers(0, 10_000), how=st.sampled_from(sorted(OPERATORS)))
@settings(max_examples=20)
def test_volumes_are_those_of_manifold(seed: int, how: str) -> None:
    random = np.random.default_rng(seed)
    meshes, parts, solids = [brick(), sphere(8, 16)], [], []
    for number in range(3):
        matrix = trimesh.transformations.random_rotation_matrix(random.random(3))
        matrix[:3, 3] = random.uniform(-5, 5, 3)
        parts.append(Part(number % 2, matrix))
        points = meshes[number % 2].vertices @ matrix[:3, :3].T + matrix[:3, 3]
        solids.append(manifold3d.Manifold(manifold3d.Mesh64(points, meshes[number % 2].faces.astype(np.uint64))))
    expected = reduce(OPERATORS[how], solids).volume()
    scene = Scene(tuple(meshes), tuple(parts))
    if expected < 1e-6:
        with pytest.raises(InvalidOption):
            combine(scene, how)
        return
    result = combine(scene, how)
    assert volume(*soup(result)) == pytest.approx(expected, rel=1e-9)
    assert_valid(result)


def test_the_walls_of_a_cut_have_the_material_of_the_cutter() -> None:
    scene = replace(scene_of(brick(), move_mesh(brick(4, 4, 40), 3, 8, -5)), materials=(Material("a"), Material("b")))
    scene = replace(scene, parts=tuple(replace(part, material=at) for at, part in enumerate(scene.parts)))
    mesh = combine(scene, "difference").meshes[0]
    assert mesh.face_material is not None
    centers = mesh.vertices[mesh.faces].mean(axis=1)
    is_hole = (np.abs(centers[:, :2] - [5, 10]) <= 2 + 1e-9).all(axis=1) & (centers[:, 2] > 0) & (centers[:, 2] < 30)
    assert is_hole.any() and (mesh.face_material == is_hole).all()


def test_what_cannot_be_combined_is_said() -> None:
    with pytest.raises(InvalidOption, match="nothing"):
        combine(scene_of(brick(), move_mesh(brick(), 50, 0, 0)), "intersection")
    with pytest.raises(ConversionFailed, match="repair"):
        combine(scene_of(brick(), replace(brick(), faces=brick().faces[1:])), "union")
    with collecting("boolean") as remarks:
        assert volume(*soup(combine(scene_of(brick()), "difference"))) == pytest.approx(6000)
    assert [note.code for note in remarks.notes] == ["one_part"]


def test_files_are_combined_in_python(tmp_path: Path) -> None:
    with Registry(entry_points=False) as registry:
        for name, mesh in (("a", brick()), ("b", move_mesh(brick(), 4, 0, 0))):
            registry.convert(scene_of(mesh), tmp_path / f"{name}.stl")
        first, second = registry.read(tmp_path / "a.stl"), registry.read(tmp_path / "b.stl")
        scene = Scene((*first.meshes, *second.meshes), (Part(0), Part(1)))
        registry.convert(scene, tmp_path / "c.stl", boolean="difference")
        model = registry.inspect(tmp_path / "c.stl").model
    assert (model.watertight, model.volume_mm3) == (True, pytest.approx(2400))


def join(*meshes: Mesh) -> Mesh:
    begin = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    faces = [mesh.faces + start for mesh, start in zip(meshes, begin, strict=False)]
    return Mesh(np.concatenate([mesh.vertices for mesh in meshes]), np.concatenate(faces).astype(np.int32))


def flip(mesh: Mesh) -> Mesh:
    return replace(mesh, faces=mesh.faces[:, ::-1])


@pytest.mark.parametrize("has_material", [False, True])
@pytest.mark.parametrize("gap", [0.0, 50.0], ids=["touching", "apart"])
def test_an_intersection_without_volume_is_an_error(gap: float, has_material: bool) -> None:
    scene = scene_of(brick(), move_mesh(brick(), 10 + gap, 0, 0))
    if has_material:
        meshes = tuple(replace(mesh, face_material=np.zeros(len(mesh.faces), np.int32)) for mesh in scene.meshes)
        scene = replace(scene, meshes=meshes, materials=(Material("red"),))
    with pytest.raises(InvalidOption, match="'boolean' intersection would leave nothing of the model") as error:
        combine(scene, "intersection")
    assert error.value.options == ("boolean",)


@pytest.mark.parametrize(("how", "expected"), [("union", 2 * 936 + 200), ("difference", 2 * 936), ("intersection", 0)])
def test_bodies_of_an_operand_touch_and_have_cavities(how: str, expected: float) -> None:
    box = join(brick(10, 10, 10), move_mesh(flip(brick(4, 4, 4)), 3, 3, 3))
    scene = scene_of(join(box, move_mesh(box, 20, 0, 0)), move_mesh(brick(2, 10, 10), 14, 0, 0))
    if expected == 0:
        with pytest.raises(InvalidOption, match="nothing"):
            combine(scene, how)
        return
    result = combine(scene, how)
    assert volume(*soup(result)) == pytest.approx(expected)
    assert_valid(result)


@pytest.mark.parametrize(("how", "expected"), [("union", 1436 + 24), ("difference", 1316), ("intersection", 120)])
def test_overlapping_bodies_with_a_cavity_count_once(how: str, expected: float) -> None:
    cavity = move_mesh(flip(brick(4, 4, 4)), 0.5, 3, 3)
    bodies = join(brick(10, 10, 10), move_mesh(brick(10, 10, 10), 5, 0, 0), cavity)
    result = combine(scene_of(bodies, move_mesh(brick(9, 4, 4), 3, 3, 3)), how)
    assert_valid(result)
    assert volume(*soup(result)) == pytest.approx(expected)


def test_the_wall_of_a_cavity_keeps_its_color_where_bodies_are_united() -> None:
    cavity = move_mesh(flip(brick(4, 4, 4)), 0.5, 3, 3)
    bodies = join(brick(10, 10, 10), move_mesh(brick(10, 10, 10), 5, 0, 0), cavity)
    colors = np.full((len(bodies.vertices), 4), 255, np.uint8)
    colors[16:] = (255, 0, 0, 255)
    result = combine(scene_of(replace(bodies, colors=colors), move_mesh(brick(1, 1, 1), 30, 0, 0)), "difference")
    assert_valid(result)
    mesh = result.meshes[0]
    assert mesh.colors is not None
    is_red = (mesh.colors[mesh.faces] == (255, 0, 0, 255)).all(axis=(1, 2))
    assert trimesh.Trimesh(mesh.vertices, mesh.faces, process=False).area_faces[is_red].sum() == pytest.approx(96)
