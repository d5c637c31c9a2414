"""Small round holes are filled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import trimesh
from hypothesis import given
from hypothesis import strategies as st
from manifold3d import Manifold

from meshhub import ConversionFailed
from meshhub.builtin_plugins.fill_holes import FillHolesOptions
from meshhub.builtin_plugins.fill_holes.operation import run
from meshhub.model.notes import collecting
from meshhub.model.scene import Mesh, Scene
from meshhub.toolkit.geometry import soup
from models import brick, scene_of, sphere
from solids import mesh_of

pytestmark = pytest.mark.once

SEGMENTS = 32


def drill(x: float, diameter: float, bottom: float = -1) -> Manifold:
    """Return a drill that enters a plate of 10 mm from above, down to a height."""
    return Manifold.cylinder(20, diameter / 2, diameter / 2, SEGMENTS).translate((x, 20, bottom))


def plate(*drills: Manifold) -> Mesh:
    """Return a plate of 100 × 40 × 10 mm with holes."""
    solid = Manifold.cube((100, 40, 10))
    for each in drills:
        solid -= each
    return mesh_of(solid)


def fill(mesh: Mesh, diameter: float) -> trimesh.Trimesh:
    return trimesh.Trimesh(*soup(run(scene_of(mesh), FillHolesOptions(fill_holes_mm=diameter))))


def volume_of(diameter: float, depth: float) -> float:
    return SEGMENTS / 2 * np.sin(2 * np.pi / SEGMENTS) * (diameter / 2) ** 2 * depth


@given(limit=st.floats(1, 12), diameters=st.lists(st.floats(1, 12), min_size=4, max_size=4))
def test_exactly_the_holes_up_to_the_diameter_are_filled(limit: float, diameters: list[float]) -> None:
    bottoms = (-1, 4, -1, 7)
    drills = [drill(20 + 20 * place, *each) for place, each in enumerate(zip(diameters, bottoms, strict=True))]
    with collecting("fill-holes") as remarks:
        mesh = fill(plate(*drills), limit)
    left = [(each, 10 - max(0, bottom)) for each, bottom in zip(diameters, bottoms, strict=True) if each > limit]
    assert mesh.is_watertight
    assert mesh.volume == pytest.approx(100 * 40 * 10 - sum(volume_of(*each) for each in left))
    assert remarks.figures["holes_filled"] == 4 - len(left)


def test_nothing_else_changes() -> None:
    mesh = plate(drill(20, 3), drill(60, 8))
    colors = np.arange(4 * len(mesh.vertices), dtype=np.uint8).reshape(-1, 4)
    mesh = replace(mesh, colors=colors, face_material=np.arange(len(mesh.faces)))
    result = run(scene_of(mesh), FillHolesOptions(fill_holes_mm=4)).meshes[0]
    assert result.face_material is not None and result.colors is not None
    # faces have their number as material; the last ones are the caps
    kept = len(result.faces) - 2 * (SEGMENTS - 2)
    before = mesh.faces[result.face_material[:kept]]
    assert len(np.unique(result.face_material[:kept])) == kept == len(mesh.faces) - 2 * SEGMENTS
    assert np.array_equal(result.vertices[result.faces[:kept]], mesh.vertices[before])
    assert np.array_equal(result.colors[result.faces[:kept]], colors[before])


def test_a_counterbore_is_filled_as_far_as_it_is_small() -> None:
    mesh = plate(drill(50, 4), drill(50, 9, 6))
    assert fill(mesh, 5).volume == pytest.approx(40000 - volume_of(9, 4))
    assert fill(mesh, 9).volume == pytest.approx(40000)


def test_pins_nut_seats_and_cavities_stay() -> None:
    pin = Manifold.cylinder(5, 1, 1, SEGMENTS).translate((20, 20, 9))
    nut = Manifold.cylinder(20, 3, 3, 6).translate((40, 20, -1))
    room = Manifold.cube((20, 20, 6)).translate((70, 10, 2))
    solid = Manifold.cube((100, 40, 10)) + pin - nut - room - drill(80, 3, 5)
    mesh = mesh_of(solid)
    # the drain hole is closed, and the room behind it stays
    assert fill(mesh, 10).volume == pytest.approx(solid.volume() + volume_of(3, 2))
    assert fill(mesh, 10).body_count == 2


def test_a_model_without_holes_is_unchanged_with_a_note() -> None:
    for mesh in (brick(), sphere(10, 32)):
        scene: Scene = scene_of(mesh)
        with collecting("fill-holes") as remarks:
            assert run(scene, FillHolesOptions(fill_holes_mm=100)) is scene
        assert [note.code for note in remarks.notes] == ["no_small_holes"]


def test_an_open_mesh_is_rejected_with_advice() -> None:
    with pytest.raises(ConversionFailed, match="repair"):
        fill(replace(brick(), faces=brick().faces[1:]), 3)
