"""Operation split-parts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import manifold3d
import numpy as np
import pytest
import trimesh
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from meshhub import ModelTooComplex, Registry
from meshhub.builtin_plugins.split_parts import SplitPartsOptions, operation
from meshhub.model.notes import collecting
from meshhub.model.scene import Material, Mesh, Part, Scene
from meshhub.toolkit.geometry import soup, weld
from meshhub.toolkit.topology import edges
from models import assert_valid, brick, move_mesh, scene_of, sphere, volume

pytestmark = pytest.mark.once


def split(scene: Scene) -> Scene:
    return operation.run(scene, SplitPartsOptions(split_parts=True))


def join(*meshes: Mesh, name: str = "model") -> Mesh:
    """Return one mesh with the faces of several, whose vertices are welded."""
    vertices, faces = soup(scene_of(*meshes))
    points, index = np.unique(vertices, axis=0, return_inverse=True)
    return Mesh(points, index.ravel()[faces], name=name)


def part_volumes(scene: Scene) -> list[float]:
    return [round(volume(*soup(replace(scene, parts=(part,)))), 6) for part in scene.parts]


@pytest.mark.parametrize(
    "shift", [(30, 0, 0), (10, 20, 30), (10, 20, 0), (0, 0, 30)], ids="apart point edge face".split()
)
def test_bodies_that_touch_stay_apart(shift: tuple[int, int, int]) -> None:
    result = split(scene_of(join(brick(), move_mesh(brick(), *shift))))
    assert [part.name for part in result.parts] == ["model-1", "model-2"]
    assert part_volumes(result) == [6000, 6000]
    assert_valid(result)


def test_two_opposite_faces_are_no_part() -> None:
    corners = np.array([[50.0, 0, 0], [60, 0, 0], [50, 10, 0]])
    pair = Mesh(corners, np.array([[0, 1, 2], [0, 2, 1]], np.int32))
    result = split(scene_of(join(pair, brick(), move_mesh(brick(), 30, 0, 0))))
    assert part_volumes(result) == [6000, 6000]
    assert_valid(result)
    alone = split(scene_of(join(pair, brick())))
    assert part_volumes(alone) == [6000]


def test_a_cavity_stays_with_its_body() -> None:
    ball = sphere(5)
    hollow = [sphere(10), replace(ball, faces=ball.faces[:, ::-1])]
    core = sphere(2)
    result = split(scene_of(join(*hollow, core, move_mesh(brick(), 20, 0, 0))))
    outer, inner = volume(*soup(scene_of(sphere(10)))), volume(*soup(scene_of(ball)))
    expected = [outer - inner, volume(*soup(scene_of(core))), 6000]
    assert sorted(part_volumes(result)) == pytest.approx(sorted(expected))


def test_colors_materials_and_instances_are_kept() -> None:
    mesh = join(brick(), move_mesh(brick(), 30, 0, 0))
    mesh = replace(
        mesh,
        colors=np.arange(64, dtype=np.uint8).reshape(16, 4),
        uv=np.arange(32, dtype=np.float32).reshape(16, 2),
        normals=np.tile(np.float32([0, 0, 1]), (16, 1)),
        face_material=np.arange(24) // 12,
    )
    moved = np.eye(4)
    moved[1, 3] = 50
    scene = Scene(
        (mesh,), (Part(0, name="a", path=("group",)), Part(0, moved, "b", material=1)), (Material("x"), Material("y"))
    )
    result = split(scene)
    assert [part.name for part in result.parts] == ["a-1", "a-2", "b-1", "b-2"]
    assert [part.mesh for part in result.parts] == [0, 1, 0, 1]
    assert [part.path for part in result.parts] == [("group",), ("group",), (), ()]
    assert [part.material for part in result.parts] == [None, None, 1, 1]
    left, right = result.meshes
    assert np.array_equal(np.concatenate([left.colors, right.colors]), mesh.colors)
    assert np.array_equal(np.concatenate([left.uv, right.uv]), mesh.uv)
    assert [set(side.face_material.tolist()) for side in (left, right)] == [{0}, {1}]
    assert left.normals is not None


def test_a_part_of_one_body_stays_as_it_is() -> None:
    scene = scene_of(brick(), sphere())
    with collecting("split-parts") as remarks:
        assert split(scene) is scene
    assert [note.code for note in remarks.notes] == ["nothing_to_split"]


def test_parts_of_one_name_share_the_numbers() -> None:
    mesh = join(brick(), move_mesh(brick(), 30, 0, 0), name="")
    result = split(Scene((mesh,), (Part(0), Part(0))))
    assert [part.name for part in result.parts] == ["part-1", "part-2", "part-3", "part-4"]


def test_open_shells_and_faces_without_area() -> None:
    open_brick = replace(brick(), faces=brick().faces[:-1])
    mesh = join(open_brick, move_mesh(brick(), 30, 0, 0))
    mesh = replace(mesh, faces=np.concatenate([mesh.faces, [[0, 0, 0], [1, 1, 2]]]))
    assert [len(split(scene_of(mesh)).meshes[part].faces) for part in range(2)] == [11, 12]


def test_too_many_bodies_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operation, "MAX_PARTS", 1)
    with pytest.raises(ModelTooComplex, match="repair"):
        split(scene_of(join(brick(), move_mesh(brick(), 30, 0, 0))))


@given(seed=st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_the_bodies_are_those_of_manifold(seed: int) -> None:
    random = np.random.default_rng(seed)
    solid = manifold3d.Manifold()
    for _ in range(6):
        cube = manifold3d.Manifold.cube([3, 3, 3]).translate(random.integers(0, 9, 3).tolist())
        solid = solid - cube if random.random() < 0.3 else solid + cube
    if solid.is_empty():
        return
    bodies = solid.decompose()
    meshes = [piece.to_mesh64() for piece in bodies]
    mesh = join(*(Mesh(m.vert_properties[:, :3], m.tri_verts.astype(np.int32)) for m in meshes))
    # the four faces at an edge of two cubes are pairs in two ways, with one or two bodies
    assume(edges(weld(mesh.vertices)[1][mesh.faces]).size.max() == 2)
    result = split(scene_of(mesh))
    assert sum(part_volumes(result)) == pytest.approx(solid.volume())
    # a cavity is a shell of its own in Manifold
    assert len(result.parts) == sum(body.volume() > 0 for body in bodies)


@pytest.mark.parametrize("extension", ["3mf", "glb", "stl"])
def test_files_have_the_parts(extension: str, tmp_path: Path) -> None:
    two = trimesh.util.concatenate(
        [trimesh.creation.box((1, 2, 3)), trimesh.creation.icosphere().apply_translation((9, 0, 0))]
    )
    two.export(tmp_path / "two.stl")
    with Registry(entry_points=False) as registry:
        report = registry.convert(tmp_path / "two.stl", tmp_path / f"a.{extension}", split_parts=True)
    assert "parts_split" in [note.code for note in report.notes]
    loaded = trimesh.load_scene(tmp_path / f"a.{extension}")
    assert sum(geometry.volume for geometry in loaded.geometry.values()) == pytest.approx(
        two.volume * (1e-9 if extension == "glb" else 1), rel=1e-5
    )
    if extension != "stl":
        assert len(loaded.geometry) == 2
        assert all(geometry.is_watertight for geometry in loaded.geometry.values())
        assert all(any(node.endswith(end) for node in loaded.graph.nodes_geometry) for end in ("-1", "-2"))
