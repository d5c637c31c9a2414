"""Grow and shrink."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import trimesh
from hypothesis import example, given, settings
from hypothesis import strategies as st
from manifold3d import Manifold

from meshhub import ConversionFailed, InvalidOption
from meshhub.builtin_plugins.offset import OffsetOptions
from meshhub.builtin_plugins.offset.operation import run
from meshhub.model.scene import Material, Mesh, Part, Scene
from meshhub.toolkit.geometry import bounds, soup
from models import brick, scene_of, sphere
from solids import mesh_of

pytestmark = [pytest.mark.once, pytest.mark.process]


def offset(scene: Scene, distance: float) -> trimesh.Trimesh:
    return trimesh.Trimesh(*soup(run(scene, OffsetOptions(offset_mm=distance))), process=False)


@settings(max_examples=5)
@given(sides=st.tuples(*[st.floats(5, 15)] * 3), radius=st.floats(1, 3))
@example(sides=(14.96141190118628, 7.432154643063271, 7.568674672271028), radius=1.146380144781932)
def test_a_grown_box_has_the_volume_of_steiners_formula(sides: tuple[float, float, float], radius: float) -> None:
    mesh = offset(scene_of(brick(*sides)), radius)
    x, y, z = sides
    expected = x * y * z + 2 * (x * y + y * z + z * x) * radius
    expected += np.pi * (x + y + z) * radius**2 + 4 / 3 * np.pi * radius**3
    assert mesh.is_watertight
    assert mesh.volume == pytest.approx(expected, rel=0.01)
    assert mesh.bounds.ravel().tolist() == pytest.approx([-radius] * 3 + [side + radius for side in sides], abs=0.03)


def test_a_shrunk_box_is_a_box() -> None:
    mesh = offset(scene_of(brick(10, 20, 30)), -1)
    assert mesh.is_watertight
    assert mesh.volume == pytest.approx(8 * 18 * 28, rel=0.01)
    assert np.ptp(mesh.bounds, axis=0).tolist() == pytest.approx([8, 18, 28], abs=0.03)


def test_the_surface_of_a_sphere_moves_by_the_distance() -> None:
    for distance in (-1, 1):
        mesh = offset(scene_of(sphere(8, 48)), distance)
        assert mesh.is_watertight
        assert np.abs(np.linalg.norm(mesh.vertices, axis=1) - 8 - distance).max() < 0.05


@pytest.mark.parametrize("distance", [-0.25, 0.25])
def test_a_torus_that_needs_the_coarsest_grid_moves_to_one_side(distance: float) -> None:
    ring = trimesh.creation.torus(8, 2, 48, 24)
    mesh = offset(scene_of(Mesh(ring.vertices, ring.faces)), distance)
    assert mesh.is_watertight
    assert mesh.volume - ring.volume == pytest.approx(ring.area * distance, rel=0.1)


def test_a_hole_narrows_and_a_cavity_shrinks_where_a_body_grows() -> None:
    ring = Manifold.cylinder(6, 10, 10, 64) - Manifold.cylinder(20, 4, 4, 64, True)
    mesh = offset(scene_of(mesh_of(ring)), 1)
    hole = mesh.vertices[np.linalg.norm(mesh.vertices[:, :2], axis=1) < 5]
    assert np.linalg.norm(hole[:, :2], axis=1).min() == pytest.approx(3, abs=0.05)
    assert mesh.euler_number == 0
    hollow = Manifold.cube((14, 14, 14)) - Manifold.cube((6, 6, 6)).translate((4, 4, 4))
    inner, outer = sorted(offset(scene_of(mesh_of(hollow)), 1).split(only_watertight=False), key=lambda mesh: mesh.area)
    assert np.ptp(inner.bounds, axis=0) == pytest.approx([4, 4, 4], abs=0.05)
    assert np.ptp(outer.bounds, axis=0) == pytest.approx([16, 16, 16], abs=0.05)


def test_colors_materials_and_instances_are_kept() -> None:
    move = np.eye(4)
    move[0, 3] = 50
    mesh = replace(
        brick(10, 10, 10),
        colors=np.tile(np.uint8([9, 80, 200, 255]), (8, 1)),
        face_material=np.arange(12) // 6,
    )
    scene = Scene((mesh,), (Part(0, name="a"), Part(0, move, name="b")), (Material("red"), Material("blue")))
    result = run(scene, OffsetOptions(offset_mm=1))
    assert len(result.meshes) == 1
    assert [part.name for part in result.parts] == ["a", "b"]
    grown = result.meshes[0]
    assert grown.colors is not None and np.array_equal(np.unique(grown.colors, axis=0), [[9, 80, 200, 255]])
    assert grown.face_material is not None
    # the middle of each side has the material of that side
    middles = grown.vertices[grown.faces].mean(axis=1)
    is_left = (middles[:, 0] < -0.9) & (np.abs(middles[:, 1:] - 5).max(axis=1) < 4)
    assert is_left.any() and not grown.face_material[is_left].any()


def test_zero_changes_nothing() -> None:
    scene = scene_of(brick())
    assert run(scene, OffsetOptions(offset_mm=0)) is scene


def test_a_part_that_would_vanish_and_an_open_mesh_are_rejected() -> None:
    with pytest.raises(InvalidOption, match="offset_mm"):
        offset(scene_of(brick(3, 20, 30)), -2)
    with pytest.raises(ConversionFailed, match="repair"):
        offset(scene_of(replace(brick(), faces=brick().faces[1:])), 1)
    assert np.ptp(bounds(run(scene_of(brick(3, 20, 30)), OffsetOptions(offset_mm=-1))), axis=0)[0] < 1.1
