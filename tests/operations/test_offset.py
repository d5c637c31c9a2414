"""Grow and shrink."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st
from manifold3d import CrossSection, Manifold, OpType

from meshhub import ConversionFailed, InvalidOption
from meshhub.builtin_plugins.offset import OffsetOptions
from meshhub.builtin_plugins.offset.operation import run
from meshhub.model.notes import Note, collecting
from meshhub.model.scene import Material, Mesh, Part, Scene
from meshhub.toolkit.geometry import bounds, soup
from models import brick, scene_of, sphere
from solids import mesh_of

pytestmark = [pytest.mark.once, pytest.mark.process]


def offset(scene: Scene, distance: float) -> trimesh.Trimesh:
    return trimesh.Trimesh(*soup(run(scene, OffsetOptions(offset_mm=distance))), process=False)


@settings(max_examples=3)
@given(sides=st.tuples(*[st.floats(5, 15)] * 3), distance=st.floats(-2, -0.05) | st.floats(0.05, 3))
def test_a_box_stays_a_box(sides: tuple[float, float, float], distance: float) -> None:
    mesh = offset(scene_of(brick(*sides)), distance)
    assert mesh.is_watertight
    assert mesh.volume == pytest.approx(np.prod(np.add(sides, 2 * distance)), rel=1e-4)
    expected = [-distance] * 3 + [side + distance for side in sides]
    assert mesh.bounds.ravel().tolist() == pytest.approx(expected, abs=1e-4)


def test_the_surface_of_a_sphere_moves_by_the_distance() -> None:
    for distance in (-1, 1):
        mesh = offset(scene_of(sphere(8, 48)), distance)
        assert mesh.is_watertight
        assert np.abs(np.linalg.norm(mesh.vertices, axis=1) - 8 - distance).max() < 0.05


@pytest.mark.parametrize("distance", [-0.25, 0.25])
def test_a_torus_moves_to_one_side(distance: float) -> None:
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


def test_a_surface_of_hundred_million_square_offsets_keeps_its_materials() -> None:
    mesh = replace(brick(600, 600, 300), face_material=np.arange(12) // 6)
    grown = run(replace(scene_of(mesh), materials=(Material("red"), Material("blue"))), OffsetOptions(offset_mm=0.05))
    assert bounds(grown)[1].tolist() == pytest.approx([600.05, 600.05, 300.05], abs=1e-3)
    assert grown.meshes[0].face_material is not None
    assert np.bincount(grown.meshes[0].face_material).tolist() == [6, 6]


def notes_of(mesh: Mesh, distance: float, move: np.ndarray | None = None) -> tuple[trimesh.Trimesh, list[Note]]:
    scene = Scene((mesh,), (Part(0, np.eye(4) if move is None else move),))
    with collecting("offset") as remarks:
        return offset(scene, distance), remarks.notes


PLATE = Manifold.cube((40, 30, 4))


@pytest.mark.parametrize(
    ("solid", "distance", "code", "size", "low", "high", "volume"),
    [
        (
            PLATE + Manifold.cube((30, 1.4, 10)).translate((5, 14, 4)),
            -1,
            "wall_vanished",
            1.4,
            (5, 14, 4),
            (35, 15.4, 14),
            38 * 28 * 2,
        ),
        (
            PLATE + Manifold.cylinder(8, 0.8, 0.8, 48).translate((10, 10, 3.9)),
            -1,
            "wall_vanished",
            1.6,
            (9, 9, 4),
            (11, 11, 12),
            38 * 28 * 2,
        ),
        (
            PLATE - Manifold.cylinder(20, 0.8, 0.8, 48, True).translate((10, 10, 0)),
            1,
            "gap_closed",
            1.6,
            (9, 9, 0),
            (11, 11, 4),
            42 * 32 * 6,
        ),
        (
            Manifold.cube((10, 10, 10)) + Manifold.cube((10, 10, 10)).translate((11.5, 0, 0)),
            1,
            "bodies_joined",
            1.5,
            (10, 0, 0),
            (11.5, 10, 10),
            23.5 * 12 * 12,
        ),
    ],
    ids=["rib", "pin", "hole", "bodies"],
)
def test_lost_walls_and_closed_gaps_are_named_with_their_place(
    solid: Manifold,
    distance: float,
    code: str,
    size: float,
    low: tuple[float, float, float],
    high: tuple[float, float, float],
    volume: float,
) -> None:
    mesh, notes = notes_of(mesh_of(solid), distance)
    assert mesh.is_watertight and mesh.body_count == 1 and mesh.euler_number == 2
    assert mesh.volume == pytest.approx(volume, rel=1e-4)
    assert [note.code for note in notes] == [code]
    values = notes[0].values
    assert values["size"] == pytest.approx(size, rel=0.01)
    place = np.array([values[axis] for axis in "xyz"], np.float64)
    assert (place >= np.array(low) - 0.01).all() and (place <= np.array(high) + 0.01).all()


def test_a_place_is_stated_in_the_scene_for_a_turned_and_scaled_part() -> None:
    bar = mesh_of(Manifold.cube((5, 5, 5)) + Manifold.cube((10, 0.5, 2)).translate((5, 1, 1)))
    move = np.array([[0, 0, 2, 100], [2, 0, 0, 200], [0, 2, 0, 300], [0, 0, 0, 1]], np.float64)
    notes = notes_of(bar, -0.6, move)[1]
    assert [note.code for note in notes] == ["wall_vanished"]
    place = [notes[0].values[axis] for axis in "xyz"]
    low, high = [102, 210, 302], [106, 230, 303]
    assert all(start - 0.1 <= float(value) <= end + 0.1 for start, value, end in zip(low, place, high, strict=True))


def test_overlapping_bodies_shrink_as_their_union() -> None:
    solid = Manifold.cube((1, 1, 4)).translate((10, 10, 2))
    plate, pin = mesh_of(PLATE), mesh_of(solid)
    faces = np.concatenate([plate.faces, pin.faces + len(plate.vertices)])
    mesh, notes = notes_of(Mesh(np.concatenate([plate.vertices, pin.vertices]), faces), -0.2)
    assert [note.code for note in notes] == ["bodies_united"]
    assert mesh.volume == pytest.approx(notes_of(mesh_of(PLATE + solid), -0.2)[0].volume, rel=1e-6)


def test_a_surface_that_is_not_at_the_distance_is_named_with_its_place() -> None:
    pieces = ((20, 20, 2), (0, 0, 0)), ((1, 1, 7), (2, 10, 1)), ((9.5, 1, 1), (2, 10, 7)), ((1, 1, 4), (10.5, 10, 4))
    body = mesh_of(Manifold.batch_boolean([Manifold.cube(size).translate(at) for size, at in pieces], OpType.Add))
    vertices = np.array(body.vertices)
    # the tip of the arm reaches into the plate from which the arm rises: one body, which no union separates
    vertices[np.isclose(vertices[:, 2], 4), 2] = 1
    notes = notes_of(Mesh(vertices, body.faces), -0.2)[1]
    assert [note.code for note in notes] == ["offset_uneven"]
    place = np.array([notes[0].values[axis] for axis in "xyz"], np.float64)
    assert (place >= [10.3, 9.8, 1]).all() and (place <= [11.7, 11.2, 2]).all()


def test_a_slit_between_flush_ends_closes() -> None:
    ring = Manifold.cylinder(8, 10, 10, 64) - Manifold.cylinder(30, 7, 7, 64, True)
    mesh, notes = notes_of(mesh_of(ring - Manifold.cube((20, 0.3, 20)).translate((0, -0.15, -2))), 0.2)
    assert [note.code for note in notes] == ["gap_closed"]
    assert mesh.is_watertight and mesh.euler_number == 0
    closed = offset(scene_of(mesh_of(ring)), 0.2)
    assert mesh.volume == pytest.approx(closed.volume, rel=1e-3)


def test_a_rounded_inner_edge_becomes_sharp_where_its_radius_is_smaller_than_the_offset() -> None:
    angles = np.linspace(np.pi, 1.5 * np.pi, 9)
    arc = np.column_stack([np.cos(angles), np.sin(angles)]) * 0.3 + 2.3
    profile = CrossSection([[[10, 0], [10, 2], *arc[::-1].tolist(), [2, 10], [0, 10], [0, 0]]])
    mesh, notes = notes_of(mesh_of(Manifold.extrude(profile, 10)), 0.5)
    assert mesh.is_watertight and not notes
    assert mesh.volume == pytest.approx((11 * 11 - 8 * 8) * 11, rel=1e-3)


def test_a_knife_edge_is_beveled_and_its_sides_move_exactly() -> None:
    wedge = mesh_of(Manifold.extrude(CrossSection([[[0, 0], [20, -1], [20, 1]]]), 10))
    mesh, _ = notes_of(wedge, 0.5)
    assert mesh.is_watertight
    # the sides, at an angle of 5.7°, would meet 10 mm before the edge
    assert -2 < mesh.bounds[0, 0] < -1.4
    assert mesh.bounds[1, 1] == pytest.approx(1 + 0.5 * np.hypot(20, 1) / 20 + 0.5 / 20, abs=1e-3)


@pytest.mark.parametrize("distance", [-0.2, 0.2])
@pytest.mark.parametrize(
    "name",
    [
        "stl/mikedh+trimesh__models_busted.STL",
        "stl/kovacsv+Online3DViewer__website_assets_models_utah_teapot.stl",
        "stl/pyvista+vtk-data__Data_42400-IDGH.stl",
    ],
)
@pytest.mark.large
def test_real_surfaces_are_closed_at_the_distance(name: str, distance: float) -> None:
    folder = os.environ.get("MESHHUB_CORPUS")
    if not folder:
        pytest.skip("set MESHHUB_CORPUS to a folder of real files")
    before = trimesh.load(Path(folder, name), force="mesh")
    before.merge_vertices(merge_tex=True, merge_norm=True)
    after = offset(scene_of(Mesh(before.vertices, before.faces)), distance)
    after.merge_vertices()
    assert after.is_watertight
    samples = trimesh.sample.sample_surface(after, 400, seed=0)[0]
    nearest = [trimesh.proximity.closest_point_naive(before, batch)[1] for batch in np.array_split(samples, 40)]
    gaps = np.abs(np.concatenate(nearest)) / abs(distance)
    low, middle = np.percentile(gaps, [2, 50])
    assert low > 0.95 and middle == pytest.approx(1, abs=0.02)


def test_zero_changes_nothing() -> None:
    scene = scene_of(brick())
    assert run(scene, OffsetOptions(offset_mm=0)) is scene


def test_a_part_that_would_vanish_and_an_open_mesh_are_rejected() -> None:
    with pytest.raises(InvalidOption, match="offset_mm"):
        offset(scene_of(brick(3, 20, 30)), -2)
    with pytest.raises(ConversionFailed, match="repair"):
        offset(scene_of(replace(brick(), faces=brick().faces[1:])), 1)
    assert np.ptp(bounds(run(scene_of(brick(3, 20, 30)), OffsetOptions(offset_mm=-1))), axis=0)[0] < 1.1


def test_a_wafer_as_thin_as_both_moves_vanishes() -> None:
    plate = mesh_of(Manifold.cube((6, 6, 0.1)).refine(6))
    noise = np.random.default_rng(0).normal(0, 1e-4, len(plate.vertices))
    points = plate.vertices.copy()
    points[:, 2] += noise
    # dents leave volumes without area between the moved sides
    with pytest.raises(InvalidOption, match="nothing"):
        offset(scene_of(replace(plate, vertices=points)), -0.05)
