"""Chamfer at the bed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st
from manifold3d import CrossSection, Manifold, Mesh64

from meshhub import ConversionFailed
from meshhub.builtin_plugins.chamfer_base import ChamferBaseOptions
from meshhub.builtin_plugins.chamfer_base.operation import run
from meshhub.model.notes import collecting
from meshhub.model.scene import Mesh, Scene
from meshhub.toolkit.geometry import signed_volume, soup, welded
from meshhub.toolkit.topology import is_closed
from meshhub.toolkit.validity import check_mesh, find_damage
from models import brick, move_mesh, scene_of, sphere
from solids import joined_mesh, mesh_of

pytestmark = pytest.mark.once


def ring() -> Mesh:
    """Return a ring of 24 mm with a hole of 10 mm, 8 mm high."""
    return mesh_of(Manifold.cylinder(8, 12, 12, 64) - Manifold.cylinder(30, 5, 5, 64, True))


def chamfer(scene: Scene, size: float) -> Scene:
    return run(scene, ChamferBaseOptions(chamfer_base_mm=size))


def test_a_brick_is_beveled_at_45_degrees() -> None:
    with collecting("chamfer-base") as remarks:
        result = chamfer(scene_of(brick(10, 20, 30)), 1)
    assert remarks.notes == []
    mesh = trimesh.Trimesh(*soup(result))
    assert mesh.is_watertight
    # a pyramid at each corner belongs to two wedges
    assert mesh.volume == pytest.approx(6000 - (60 / 2 - 4 / 3))
    for height, inset in ((1e-6, 1), (0.25, 0.75), (0.5, 0.5), (1, 0), (20, 0)):
        section = mesh.section((0, 0, 1), (0, 0, height))
        expected = [inset, inset, 10 - inset, 20 - inset]
        assert section.bounds[:, :2].ravel().tolist() == pytest.approx(expected, abs=0.02)


@settings(max_examples=6)
@given(size=st.floats(0.1, 2.3))
def test_outline_and_hole_of_a_ring_are_beveled(size: float) -> None:
    result = chamfer(scene_of(ring()), size)
    vertices, faces = soup(result)
    assert is_closed(vertices, faces)
    foot = np.linalg.norm(vertices[vertices[:, 2] == 0][:, :2], axis=1)
    assert foot.max() == pytest.approx(12 - size, abs=0.05 + 0.02 * size)
    assert foot.min() == pytest.approx(5 + size, abs=0.05 + 0.02 * size)
    assert signed_volume(*soup(scene_of(ring()))) - signed_volume(vertices, faces) == pytest.approx(
        np.pi * size**2 * (12 - size / 3 + 5 + size / 3), rel=0.05
    )


def test_parts_above_the_bed_and_round_feet_stay() -> None:
    high = move_mesh(brick(), 50, 0, 5)
    result = chamfer(scene_of(brick(), high), 1)
    assert result.meshes[1] is not result.meshes[0]
    assert np.array_equal(result.meshes[1].vertices, high.vertices)
    for mesh in (sphere(10, 64), brick(1.5, 20, 30)):
        scene = scene_of(mesh)
        with collecting("chamfer-base") as remarks:
            assert chamfer(scene, 1) is scene
        assert [note.code for note in remarks.notes] == ["no_base_to_chamfer"]


def test_a_rib_on_a_wide_base_stays_on_the_bed() -> None:
    base, rib = Manifold.cube((30, 30, 5)), Manifold.cube((1.2, 20, 5)).translate((10, 30, 0))
    solid = base + rib
    with collecting("chamfer-base") as remarks:
        result = run(scene_of(mesh_of(solid)), ChamferBaseOptions(chamfer_base_mm=0.9))
    assert [note.code for note in remarks.notes] == ["base_too_narrow"]
    points, faces = welded(result.meshes[0])
    cut = Manifold(Mesh64(points, faces.astype(np.uint64)))
    at_bed = cut.slice(1e-3)
    # the rib has its whole width on the bed, and the base is beveled elsewhere
    on_rib = at_bed ^ CrossSection.square((5, 15)).translate((8, 33))
    assert on_rib.area() == pytest.approx(1.2 * 15, rel=0.01)
    assert at_bed.bounds()[0] == pytest.approx(0.9, abs=0.01) and cut.volume() < solid.volume() - 25


@pytest.mark.parametrize("gap", [0.0, 0.01])
def test_parts_that_touch_get_no_groove_along_their_seam(gap: float) -> None:
    scene = scene_of(brick(20, 20, 10), brick(20, 20, 10))
    turn = np.eye(4)
    turn[0, 3] = 20 + gap
    scene = replace(scene, parts=(scene.parts[0], replace(scene.parts[1], transform=turn)))
    whole = trimesh.Trimesh(*soup(chamfer(scene_of(brick(40 + gap, 20, 10)), 1)))
    parts = [trimesh.Trimesh(*soup(replace(chamfer(scene, 1), parts=(part,)))) for part in chamfer(scene, 1).parts]
    assert all(part.is_watertight for part in parts)
    assert sum(part.volume for part in parts) == pytest.approx(whole.volume - gap * 200, abs=0.2)


def test_parts_beside_each_other_get_all_of_their_bevels() -> None:
    scene = scene_of(brick(20, 20, 10), brick(20, 20, 10))
    turn = np.eye(4)
    turn[0, 3] = 20.5
    scene = replace(scene, parts=(scene.parts[0], replace(scene.parts[1], transform=turn)))
    alone = signed_volume(*soup(chamfer(scene_of(brick(20, 20, 10)), 1)))
    assert signed_volume(*soup(chamfer(scene, 1))) == pytest.approx(2 * alone)


def test_a_low_flange_stays_on_the_bed() -> None:
    solid = Manifold.cube((20, 20, 10)) + Manifold.cube((10, 20, 1)).translate((20, 0, 0))
    with collecting("chamfer-base") as remarks:
        result = chamfer(scene_of(mesh_of(solid)), 0.5)
    assert [note.code for note in remarks.notes] == ["base_too_narrow"]
    # the three sides of the block without the flange
    assert remarks.figures["chamfered_mm"] == pytest.approx(20 + 2 * 20, abs=2)
    section = trimesh.Trimesh(*soup(result)).section((0, 0, 1), (0, 0, 1e-3))
    # the flange of 1 mm keeps its edge, and the block is beveled
    assert section.bounds[:, 0].tolist() == pytest.approx([0.5, 30], abs=0.02)


def test_colors_are_kept() -> None:
    mesh = replace(brick(), colors=np.tile(np.uint8([9, 80, 200, 255]), (8, 1)), face_material=np.full(12, 3))
    result = chamfer(scene_of(mesh), 1).meshes[0]
    assert result.colors is not None and np.array_equal(np.unique(result.colors, axis=0), [[9, 80, 200, 255]])
    assert result.face_material is not None and set(result.face_material.tolist()) == {3}


def test_an_open_mesh_is_rejected_with_advice() -> None:
    scene = scene_of(replace(brick(), faces=brick().faces[1:]))
    with pytest.raises(ConversionFailed, match="repair"):
        chamfer(scene, 1)


def test_feet_that_a_chamfer_would_sharpen_stay_flat_with_a_note() -> None:
    plate = Manifold.cube((20, 20, 5)).translate((0, 0, 5))
    solid = plate + Manifold.cube((10, 10, 6)) + Manifold.cube((1, 1, 6)).translate((18, 18, 0))
    with collecting("chamfer") as remarks:
        result = chamfer(scene_of(mesh_of(solid)), 1)
    assert [note.code for note in remarks.notes] == ["base_too_narrow"]
    mesh = trimesh.Trimesh(*soup(result))
    feet = Manifold(Mesh64(mesh.vertices, mesh.faces.astype(np.uint64))).slice(1e-6).decompose()
    assert sorted(foot.area() for foot in feet) == pytest.approx([1, 64], abs=0.01)


def test_a_rib_on_a_low_plate_gets_no_notch() -> None:
    plate = Manifold.cube((40, 40, 2)) + Manifold.cube((1.2, 40, 10)).translate((20, 0, 0))
    with collecting("chamfer") as remarks:
        result = chamfer(scene_of(mesh_of(plate)), 1)
    assert [note.code for note in remarks.notes] == ["no_base_to_chamfer"]
    assert remarks.figures == {}
    assert signed_volume(*soup(result)) == pytest.approx(plate.volume())


def test_bodies_that_overlap_are_beveled_as_one() -> None:
    first, second = Manifold.cube((20, 20, 10)), Manifold.cube((20, 20, 10)).translate((15, 5, 0))
    result = chamfer(scene_of(joined_mesh(first, second)), 0.5).meshes[0]
    assert find_damage(result).is_clean
    assert check_mesh(result).shells == 1
    united = chamfer(scene_of(mesh_of(first + second)), 0.5)
    assert signed_volume(*soup(scene_of(result))) == pytest.approx(signed_volume(*soup(united)))
