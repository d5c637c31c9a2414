"""Hollow bodies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st
from manifold3d import CrossSection, Manifold

from meshhub import ConversionFailed, ModelTooComplex, Registry
from meshhub.builtin_plugins.hollow import HollowOptions
from meshhub.builtin_plugins.hollow.operation import run
from meshhub.model.notes import collecting
from meshhub.model.scene import Float64, Material, Mesh, Part, Scene
from meshhub.toolkit.distances import closest_points
from meshhub.toolkit.geometry import bounds, signed_volume, soup
from meshhub.toolkit.validity import check_mesh, find_damage
from models import brick, move_mesh, scene_of, sphere
from solids import joined_mesh, mesh_of

pytestmark = [pytest.mark.once, pytest.mark.process]

SHAPES: dict[str, Callable[[], Manifold]] = {
    "cube": lambda: Manifold.cube((20, 20, 20)),
    "sphere": lambda: Manifold.sphere(10, 32),
    "cylinder": lambda: Manifold.cylinder(20, 10, 10, 64),
    "bracket": lambda: Manifold.cube((30, 15, 8)) + Manifold.cube((8, 15, 30)),
    "torus": lambda: Manifold.revolve(CrossSection.circle(7, 24).translate((18, 0)), 32),
}


def hollow(scene: Scene, wall: float) -> Scene:
    return run(scene, HollowOptions(hollow_wall_mm=wall))


def cavity_of(mesh: Mesh, outside: Mesh) -> trimesh.Trimesh:
    """Return the faces that hollowing added, which point into the cavity, as an outward surface."""
    assert np.array_equal(mesh.faces[: len(outside.faces)], outside.faces)
    assert np.array_equal(mesh.vertices[: len(outside.vertices)], outside.vertices)
    return trimesh.Trimesh(mesh.vertices, mesh.faces[len(outside.faces) :, ::-1], process=False)


def measure_walls(cavity: trimesh.Trimesh, outside: Mesh) -> Float64:
    """Return the distances of many points of the cavity to the outside."""
    points = trimesh.sample.sample_surface(cavity, 400, seed=1)[0]
    surface = trimesh.Trimesh(outside.vertices, outside.faces, process=False)
    batches = np.array_split(points, 20)
    distances: Float64 = np.concatenate([trimesh.proximity.closest_point_naive(surface, batch)[1] for batch in batches])
    return distances


@pytest.mark.parametrize("name", SHAPES)
def test_the_wall_has_its_thickness_everywhere(name: str) -> None:
    outside = mesh_of(SHAPES[name]())
    cavity = cavity_of(hollow(scene_of(outside), 2).meshes[0], outside)
    assert cavity.is_watertight and cavity.volume > 0
    walls = measure_walls(cavity, outside)
    assert walls.min() >= 2 * 0.97
    # edges of the cavity may be rounded, where the wall is thicker
    assert np.percentile(walls, 95) <= 2 * 1.03


def test_the_wall_is_as_thick_beside_long_narrow_faces() -> None:
    angle, radius = np.linspace(0, 2 * np.pi, 48, endpoint=False), np.where(np.arange(48) % 2, 14, 18)
    star = CrossSection([np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)])
    outside = mesh_of(star.extrude(20, twist_degrees=40))
    cavity = cavity_of(hollow(scene_of(outside), 1.5).meshes[0], outside)
    points = cavity.vertices[np.unique(cavity.faces)]
    walls = np.full(len(points), np.inf)
    for corners in outside.vertices[outside.faces]:
        gap = points - closest_points(points, np.broadcast_to(corners, (len(points), 3, 3)))
        walls = np.minimum(walls, np.linalg.norm(gap, axis=1))
    assert walls.min() >= 1.5 * 0.97


@pytest.mark.parametrize("name", ["sphere", "bracket"])
def test_a_cavity_of_moved_faces_has_no_more_faces_than_the_outside(name: str) -> None:
    outside = mesh_of(SHAPES[name]())
    cavity = cavity_of(hollow(scene_of(outside), 2).meshes[0], outside)
    assert len(cavity.faces) <= len(outside.faces)


def test_the_cavity_of_a_cube_is_a_cube() -> None:
    with collecting("hollow") as remarks:
        result = hollow(scene_of(brick(20, 20, 20)), 2)
    assert signed_volume(*soup(result)) == pytest.approx(20**3 - 16**3, rel=0.01)
    assert remarks.figures["cavities"] == 1
    assert remarks.figures["saved_mm3"] == pytest.approx(16**3, rel=0.01)
    assert remarks.figures["saved_percent"] == pytest.approx(100 * 0.8**3, rel=0.01)


@settings(max_examples=5)
@given(wall=st.floats(1, 3), sides=st.tuples(*[st.floats(8, 15)] * 3))
def test_the_cavity_of_any_box_is_a_smaller_box(wall: float, sides: tuple[float, float, float]) -> None:
    outside = brick(*sides)
    cavity = cavity_of(hollow(scene_of(outside), wall).meshes[0], outside)
    assert cavity.is_watertight
    assert cavity.bounds[0] == pytest.approx([wall] * 3, rel=0.03)
    assert cavity.bounds[1] == pytest.approx(np.array(sides) - wall, abs=wall * 0.03)


def test_a_thin_body_stays_solid_with_a_note() -> None:
    scene = scene_of(Mesh(np.concatenate([brick(20, 20, 20).vertices, move_mesh(brick(9, 9, 3), 50, 0, 0).vertices]),
                          np.concatenate([brick().faces, brick().faces + 8])))  # fmt: skip
    with collecting("hollow") as remarks:
        result = hollow(scene, 2)
    assert signed_volume(*soup(result)) == pytest.approx(20**3 - 16**3 + 9 * 9 * 3, rel=0.01)
    assert [note.code for note in remarks.notes] == ["stays_solid"]
    with collecting("hollow") as remarks:
        assert signed_volume(*soup(hollow(scene, 11))) == pytest.approx(20**3 + 9 * 9 * 3, rel=0.01)
    assert "2 bodies" in remarks.notes[0].message


def test_a_hollow_body_keeps_its_cavity() -> None:
    inner = move_mesh(brick(10, 10, 10), 10, 10, 10)
    mesh = Mesh(np.concatenate([brick(30, 30, 30).vertices, inner.vertices]),
                np.concatenate([brick().faces, inner.faces[:, ::-1] + 8]))  # fmt: skip
    result = hollow(scene_of(mesh), 2)
    # the cavity becomes part of the new one, because a wall around it would be loose
    assert signed_volume(*soup(result)) == pytest.approx(30**3 - 26**3, rel=0.02)
    assert check_mesh(result.meshes[0]).shells == 2


def test_a_cavity_beside_the_outside_keeps_its_wall() -> None:
    inner = move_mesh(brick(10, 10, 10), 2, 15, 15)
    mesh = Mesh(np.concatenate([brick(40, 40, 40).vertices, inner.vertices]),
                np.concatenate([brick().faces, inner.faces[:, ::-1] + 8]))  # fmt: skip
    result = hollow(scene_of(mesh), 2)
    assert check_mesh(result.meshes[0]).shells == 3
    assert signed_volume(*soup(result)) == pytest.approx(40**3 - 36**3 + 12 * 14**2 - 10**3, rel=0.03)


def test_a_body_inside_of_a_cavity_stays_and_is_hollowed() -> None:
    room, ball = move_mesh(brick(30, 30, 30), 5, 5, 5), move_mesh(brick(20, 20, 20), 10, 10, 10)
    mesh = Mesh(np.concatenate([brick(40, 40, 40).vertices, room.vertices, ball.vertices]),
                np.concatenate([brick().faces, room.faces[:, ::-1] + 8, ball.faces + 16]))  # fmt: skip
    result = hollow(scene_of(mesh), 1)
    # the wall of 5 mm gets a cavity around the room, whose own wall would be loose
    assert signed_volume(*soup(result)) == pytest.approx(40**3 - 38**3 + 20**3 - 18**3, rel=0.03)
    assert check_mesh(result.meshes[0]).shells == 4


def test_bodies_that_overlap_get_one_empty_cavity() -> None:
    other = move_mesh(brick(20, 20, 20), 10, 0, 0)
    mesh = Mesh(np.concatenate([brick(20, 20, 20).vertices, other.vertices]),
                np.concatenate([brick().faces, other.faces + 8]))  # fmt: skip
    with collecting("hollow") as remarks:
        result = hollow(scene_of(mesh), 2)
    assert signed_volume(*soup(result)) == pytest.approx(30 * 20 * 20 - 26 * 16 * 16, rel=0.02)
    assert check_mesh(result.meshes[0]).shells == 2
    assert [note.code for note in remarks.notes] == ["bodies_united"]


@pytest.mark.large
def test_bodies_that_overlap_are_hollowed_as_one_beside_a_cavity() -> None:
    first = Manifold.cube((40, 40, 40)) - Manifold.cube((10, 10, 10)).translate((4, 4, 4))
    second = Manifold.cube((40, 40, 40)).translate((30, 10, 5))
    with collecting("hollow") as remarks:
        result = hollow(scene_of(joined_mesh(first, second)), 2)
    assert [note.code for note in remarks.notes] == ["bodies_united"]
    expected = hollow(scene_of(mesh_of(first + second)), 2)
    assert signed_volume(*soup(result)) == pytest.approx(signed_volume(*soup(expected)), rel=0.01)


@pytest.mark.large
def test_a_cavity_is_valid_in_a_file_at_any_wall() -> None:
    bracket = mesh_of(SHAPES["bracket"]())
    for wall in np.arange(1.3, 1.6, 0.05):
        with collecting("hollow") as remarks:
            result = hollow(scene_of(bracket), float(wall)).meshes[0]
        assert not remarks.notes
        assert not find_damage(result, expected_shells=2)


def test_colors_materials_and_instances_are_kept() -> None:
    turn = np.eye(4)
    turn[:2, :2] = [[0, -1], [1, 0]]
    turn[:3, 3] = 90, 0, 0
    double = np.diag([2.0, 2, 2, 1])
    double[:3, 3] = 0, 90, 0
    mesh = replace(
        brick(20, 20, 20),
        colors=np.tile(np.uint8([9, 80, 200, 255]), (8, 1)),
        uv=np.zeros((8, 2)),
        normals=np.ones((8, 3)),
        face_material=np.zeros(12),
    )
    scene = Scene((mesh,), (Part(0, name="a"), Part(0, turn, name="b"), Part(0, double, name="c")), (Material("red"),))
    result = hollow(scene, 2)
    assert len(result.meshes) == 2
    assert [part.name for part in result.parts] == ["a", "b", "c"]
    for mesh in result.meshes:
        assert mesh.colors is not None and np.array_equal(np.unique(mesh.colors, axis=0), [[9, 80, 200, 255]])
        assert mesh.face_material is not None and not mesh.face_material.any()
        # the normals of the cavity point into it
        assert mesh.normals is not None
        inner = slice(8, None)
        assert (np.einsum("ij,ij->i", mesh.normals[inner], mesh.vertices[inner] - 10) < 0).all()
    # the wall is in millimeters, whatever the matrices
    assert signed_volume(*soup(result)) == pytest.approx(2 * (20**3 - 16**3) + 40**3 - 36**3, rel=0.01)
    assert np.array_equal(bounds(result), bounds(scene))


def test_an_open_mesh_is_rejected_with_advice() -> None:
    mesh = replace(brick(20, 20, 20), faces=brick().faces[1:])
    with pytest.raises(ConversionFailed, match="repair"):
        hollow(scene_of(mesh), 2)
    with pytest.raises(ConversionFailed, match="repair"):
        hollow(scene_of(replace(brick(20, 20, 20), faces=brick().faces[:, ::-1])), 2)


def test_a_wall_too_fine_for_the_model_is_rejected() -> None:
    with pytest.raises(ModelTooComplex, match="hollow_wall_mm"):
        # moved faces of a rib thinner than two walls meet, so that only the grid remains
        rib = Manifold.cube((0.3, 600, 650)).translate((300, 0, 0))
        hollow(scene_of(mesh_of(Manifold.cube((600, 600, 600)) + rib)), 0.2)


def test_a_fine_wall_of_a_large_sphere_has_its_thickness() -> None:
    outside = sphere(500, 64)
    walls = measure_walls(cavity_of(hollow(scene_of(outside), 0.2).meshes[0], outside), outside)
    assert walls.min() >= 0.2 * 0.97 and walls.max() <= 0.2 * 1.03


def test_a_hollow_file_is_closed_in_other_programs(tmp_path: Path) -> None:
    with Registry(entry_points=False) as registry:
        report = registry.convert("examples/bracket-clean.stl", tmp_path / "a.stl", hollow_wall_mm=2.5)
    assert next(step for step in report.steps if step.step == "hollow").figures["cavities"] == 1
    assert trimesh.load_mesh(tmp_path / "a.stl").is_watertight
