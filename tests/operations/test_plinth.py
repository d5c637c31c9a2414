"""Plates under the model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st
from manifold3d import CrossSection, Manifold

from meshhub import ConversionFailed, InvalidOption, Registry
from meshhub.builtin_plugins.plinth import PlinthOptions
from meshhub.builtin_plugins.plinth.operation import run
from meshhub.model.notes import collecting
from meshhub.model.scene import Part, Scene
from meshhub.toolkit.geometry import bounds, signed_volume, soup
from models import assert_valid, brick, move_mesh, scene_of, sphere
from solids import mesh_of

pytestmark = pytest.mark.once


def add_plinth(scene: Scene, height: float, margin: float = 2) -> Scene:
    return run(scene, PlinthOptions(plinth_mm=height, plinth_margin_mm=margin))


@settings(max_examples=10)
@given(height=st.floats(0.1, 50), sides=st.tuples(*[st.floats(1, 50)] * 3))
def test_a_brick_without_margin_is_a_higher_brick(height: float, sides: tuple[float, float, float]) -> None:
    result = add_plinth(scene_of(brick(*sides)), height, 0)
    assert_valid(result)
    assert bounds(result).ravel().tolist() == pytest.approx([0, 0, -height, *sides])
    assert signed_volume(*soup(result)) == pytest.approx(sides[0] * sides[1] * (sides[2] + height))


@settings(max_examples=10)
@given(margin=st.floats(0.1, 30))
def test_the_margin_protrudes_on_all_sides(margin: float) -> None:
    result = add_plinth(scene_of(brick(10, 20, 30)), 3, margin)
    assert_valid(result)
    assert bounds(result).ravel().tolist() == pytest.approx([-margin, -margin, -3, 10 + margin, 20 + margin, 30])
    plate = 200 + 60 * margin + np.pi * margin**2
    assert signed_volume(*soup(result)) == pytest.approx(6000 + 3 * plate, rel=0.01)
    assert trimesh.Trimesh(*soup(result)).body_count == 1


def test_the_feet_of_a_table_stand_on_one_plate() -> None:
    leg = Manifold.cube((2, 2, 20))
    table = Manifold.cube((40, 30, 2)).translate((0, 0, 20))
    for x, y in ((0, 0), (38, 0), (0, 28), (38, 28)):
        table += leg.translate((x, y, 0))
    result = add_plinth(scene_of(mesh_of(table)), 1, 0)
    assert_valid(result)
    assert signed_volume(*soup(result)) == pytest.approx(table.volume() + 40 * 30)


def test_a_sphere_sinks_into_its_plate() -> None:
    result = add_plinth(scene_of(sphere(10, 64)), 2, 1)
    assert_valid(result)
    mesh = trimesh.Trimesh(*soup(result))
    assert mesh.body_count == 1
    assert mesh.bounds[:, 2].tolist() == pytest.approx([-11, 10])
    # the lowest 2 mm of the sphere are 12 mm wide
    section = mesh.section((0, 0, 1), (0, 0, -10.5))
    assert section.bounds[:, 0].tolist() == pytest.approx([-7, 7], abs=0.1)


def test_a_foot_and_an_edge_beside_it_stand_on_one_plate() -> None:
    # the edge of the prism is as low as the foot, and touches the plate along a line
    foot = Manifold.cube((20, 20, 10))
    prism = Manifold.extrude(CrossSection([[(25, 0), (30, 5), (20, 5)]]), 20).rotate((90, 0, 0)).translate((0, 20, 0))
    beam = Manifold.cube((30, 20, 5)).translate((0, 0, 4))
    result = add_plinth(scene_of(mesh_of(foot + prism + beam)), 2)
    assert_valid(result)
    assert trimesh.Trimesh(*soup(result)).body_count == 1
    assert bounds(result)[:, 2].tolist() == pytest.approx([-2, 10])


def test_parts_above_the_bottom_stay_and_neighbors_are_named() -> None:
    high = move_mesh(brick(), 0, 0, 30)
    result = add_plinth(scene_of(brick(), high), 3)
    assert np.array_equal(result.meshes[1].vertices, high.vertices)
    with collecting("plinth") as remarks:
        add_plinth(scene_of(brick(), move_mesh(brick(), 50, 0, 0)), 3)
    assert remarks.notes == [] and remarks.figures["plates"] == 2
    with collecting("plinth") as remarks:
        add_plinth(scene_of(brick(), move_mesh(brick(), 11, 0, 0)), 3)
    assert [note.code for note in remarks.notes] == ["plates_may_overlap"]


def test_colors_names_and_instances_are_kept() -> None:
    mesh = replace(brick(), colors=np.tile(np.uint8([9, 80, 200, 255]), (8, 1)), face_material=np.full(12, 3))
    beside = np.eye(4)
    beside[0, 3] = 40
    result = add_plinth(Scene((mesh,), (Part(0, name="a"), Part(0, beside, name="b"))), 1)
    assert [part.name for part in result.parts] == ["a", "b"]
    assert len(result.meshes) == 1
    colors, material = result.meshes[0].colors, result.meshes[0].face_material
    assert colors is not None and np.array_equal(np.unique(colors, axis=0), [[9, 80, 200, 255]])
    assert material is not None and set(material.tolist()) == {3}


def test_an_open_mesh_and_a_margin_without_a_plate_are_rejected() -> None:
    with pytest.raises(ConversionFailed, match="repair"):
        add_plinth(scene_of(replace(brick(), faces=brick().faces[1:])), 1)
    with Registry(entry_points=False) as registry, pytest.raises(InvalidOption, match="plinth_mm"):
        registry.convert_bytes(scene_of(brick()), "stl", plinth_margin_mm=3)
