"""Operation merge-parts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import manifold3d
import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st

from meshhub import ConversionFailed, Registry
from meshhub.builtin_plugins.merge_parts import MergePartsOptions
from meshhub.builtin_plugins.merge_parts.operation import run
from meshhub.model.notes import collecting
from meshhub.model.scene import Material, Mesh, Part, Scene
from meshhub.testing import sample_scenes
from meshhub.toolkit.geometry import bounds, soup
from models import assert_valid, brick, move_mesh, scene_of, sphere, volume

pytestmark = pytest.mark.once

RED, BLUE = (255, 0, 0, 255), (0, 0, 255, 255)


def merge(scene: Scene, how: str = "union") -> Scene:
    return run(scene, MergePartsOptions(merge_parts=how))  # type: ignore[arg-type]


def total_volume(scene: Scene) -> float:
    return volume(*soup(scene))


def paint(mesh: Mesh, color: tuple[int, ...]) -> Mesh:
    return replace(mesh, colors=np.tile(np.uint8(color), (len(mesh.vertices), 1)))


@pytest.mark.parametrize(
    ("shift", "expected"), [(4, 8400), (10, 12000), (15, 12000)], ids=["overlap", "touch", "apart"]
)
def test_two_bricks_are_one_solid(shift: float, expected: float) -> None:
    with collecting("merge-parts") as remarks:
        result = merge(scene_of(brick(), move_mesh(brick(name="other"), shift, 0, 0)))
    assert len(result.parts) == 1
    assert total_volume(result) == pytest.approx(expected)
    assert_valid(result)
    assert [note.code for note in remarks.notes] == ["parts_merged"]
    assert remarks.figures["overlap_mm3"] == pytest.approx(12000 - expected)


def test_the_surface_keeps_the_colors_and_materials_of_each_part() -> None:
    left, right = paint(brick(20, 10, 10), RED), paint(move_mesh(brick(20, 6, 6), 10, 2, 2), BLUE)
    scene = replace(scene_of(left, right), materials=(Material("a"), Material("b")))
    scene = replace(scene, parts=(replace(scene.parts[0], material=0), replace(scene.parts[1], material=1)))
    mesh = merge(scene).meshes[0]
    assert mesh.colors is not None and mesh.face_material is not None
    centers = mesh.vertices[mesh.faces].mean(axis=1)
    is_right = centers[:, 0] > 20 + 1e-9
    assert (mesh.colors[mesh.faces[is_right]] == BLUE).all() and (mesh.colors[mesh.faces[~is_right]] == RED).all()
    assert (mesh.face_material == np.where(is_right, 1, 0)).all()


def test_a_part_without_colors_is_white_beside_a_colored_one() -> None:
    scene = scene_of(paint(brick(), RED), replace(move_mesh(sphere(), 40, 0, 0), normals=sphere().vertices / 10))
    for how in ("union", "keep"):
        mesh = merge(scene, how).meshes[0]
        assert mesh.colors is not None and mesh.normals is not None
        far = mesh.vertices[:, 0] > 20
        assert (mesh.colors[far] == 255).all() and (mesh.colors[~far] == RED).all()
        assert (np.abs(mesh.normals[~far]).max(axis=1) == 1).all()


def test_keep_joins_the_meshes_as_they_are() -> None:
    scene = sample_scenes.full()
    result = merge(scene, "keep")
    assert result.face_count == scene.face_count
    assert np.allclose(np.sort(soup(result)[0][soup(result)[1]].reshape(-1, 9), axis=0),
                       np.sort(soup(scene)[0][soup(scene)[1]].reshape(-1, 9), axis=0))  # fmt: skip
    assert result.features() == scene.features() - {"names", "hierarchy", "instances"}
    assert result.used_materials() == scene.used_materials()


def test_keep_takes_open_parts_and_union_rejects_them() -> None:
    scene = scene_of(brick(), replace(move_mesh(brick(name="lid"), 4, 0, 0), faces=brick().faces[1:]))
    assert merge(scene, "keep").face_count == 23
    with pytest.raises(ConversionFailed, match=r"'lid' is open or non-manifold.*repair"):
        merge(scene)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_a_union_has_the_volume_of_that_of_manifold(seed: int) -> None:
    random = np.random.default_rng(seed)
    meshes, parts, solids = [brick(), sphere(8, 16)], [], []
    for number in range(5):
        matrix = trimesh.transformations.random_rotation_matrix(random.random(3))
        matrix[:3, 3] = random.uniform(-12, 12, 3)
        index = number % 2
        parts.append(Part(index, matrix))
        points = meshes[index].vertices @ matrix[:3, :3].T + matrix[:3, 3]
        solids.append(manifold3d.Manifold(manifold3d.Mesh64(points, meshes[index].faces.astype(np.uint64))))
    scene = Scene(tuple(meshes), tuple(parts))
    result = merge(scene)
    assert total_volume(result) == pytest.approx(sum(solids, manifold3d.Manifold()).volume(), rel=1e-9)
    assert np.allclose(bounds(result), bounds(scene))
    assert_valid(result)


def test_parts_are_merged_before_they_are_cut(tmp_path: Path) -> None:
    with Registry(entry_points=False) as registry:
        for name in ("a", "b"):
            box = trimesh.creation.box((10, 10, 10)).apply_translation((0, 5 * (name == "b"), 0))
            box.export(tmp_path / f"{name}.stl")
        trimesh.Scene([trimesh.load(tmp_path / f"{name}.stl") for name in "ab"]).export(tmp_path / "two.3mf")
        report = registry.convert(tmp_path / "two.3mf", tmp_path / "out.3mf", merge_parts="union", cut_plane="z=0")
        assert [step.step for step in report.steps[1:-1]] == ["merge-parts", "cut-plane"]
        model = registry.inspect(tmp_path / "out.3mf").model
    assert (model.parts, model.bodies, model.watertight) == (2, 2, True)
    assert model.volume_mm3 == pytest.approx(1500)
