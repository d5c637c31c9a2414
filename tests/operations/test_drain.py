"""Drain holes of hollow bodies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st
from manifold3d import Manifold

from meshhub import ConversionFailed
from meshhub.builtin_plugins.drain import DrainOptions
from meshhub.builtin_plugins.drain.operation import run
from meshhub.model.notes import collecting
from meshhub.model.scene import Mesh, Part, Scene
from meshhub.toolkit.geometry import soup
from models import brick, scene_of
from solids import mesh_of

pytestmark = pytest.mark.once


def box(wall: float = 2, x: float = 20, y: float = 30, z: float = 40) -> Mesh:
    """Return a hollow box with a corner at the origin."""
    room = Manifold.cube((x - 2 * wall, y - 2 * wall, z - 2 * wall)).translate((wall, wall, wall))
    return mesh_of(Manifold.cube((x, y, z)) - room)


def drain(scene: Scene, diameter: float, count: int = 1) -> trimesh.Trimesh:
    result = run(scene, DrainOptions(drain_holes_mm=diameter, drain_count=count))
    return trimesh.Trimesh(*soup(result))


@settings(max_examples=20)
@given(diameter=st.floats(1, 3), count=st.integers(1, 4))
def test_each_hole_connects_the_cavity_with_the_outside(diameter: float, count: int) -> None:
    with collecting("drain") as remarks:
        mesh = drain(scene_of(box()), diameter, count)
    assert mesh.is_watertight
    assert mesh.body_count == 1
    # a sphere with as many handles as holes, less the first one, which joins two shells
    assert mesh.euler_number == 2 - 2 * (count - 1)
    circle = 24 * np.sin(2 * np.pi / 48) * (diameter / 2) ** 2
    assert mesh.volume == pytest.approx(20 * 30 * 40 - 16 * 26 * 36 - count * 2 * circle)
    assert remarks.figures["holes"] == count


def test_the_holes_are_below_however_a_part_is_turned() -> None:
    turn = np.eye(4)
    turn[:3, :3] = [[1, 0, 0], [0, 0, -1], [0, 1, 0]]
    turn[:3, 3] = 100, 40, 5
    scene = Scene((box(),), (Part(0), Part(0, turn)))
    for part in drain(scene, 3).split():
        low = part.bounds[0, 2]
        gaps = np.linalg.norm((part.vertices - part.bounds.mean(axis=0))[part.vertices[:, 2] == low, :2], axis=1)
        # the rim, in the middle, and the corners of the box
        assert (np.abs(gaps - 1.5) < 1e-6).sum() == 48
        assert (gaps > 10).sum() == 4


def test_faces_beside_the_hole_keep_their_colors() -> None:
    mesh = box()
    colors = np.arange(4 * len(mesh.vertices), dtype=np.uint8).reshape(-1, 4)
    scene = scene_of(replace(mesh, colors=colors, face_material=np.arange(len(mesh.faces)) % 2))
    result = run(scene, DrainOptions(drain_holes_mm=3)).meshes[0]
    corner = {tuple(vertex): color for vertex, color in zip(mesh.vertices.tolist(), colors.tolist(), strict=True)}
    assert result.colors is not None and result.face_material is not None
    for vertex, color in zip(result.vertices.tolist(), result.colors.tolist(), strict=True):
        assert corner.get(tuple(vertex), color) == color
    assert len(set(corner) & set(map(tuple, result.vertices.tolist()))) == 16


def test_a_solid_model_and_a_hole_without_room_have_a_note() -> None:
    for mesh, diameter, code in ((brick(), 3, "no_cavity"), (box(), 17, "no_room_for_drain")):
        scene = scene_of(mesh)
        with collecting("drain") as remarks:
            result = run(scene, DrainOptions(drain_holes_mm=diameter))
        assert [note.code for note in remarks.notes] == [code]
        assert np.array_equal(soup(result)[0], soup(scene)[0])


def test_an_open_mesh_is_rejected_with_advice() -> None:
    with pytest.raises(ConversionFailed, match="repair"):
        drain(scene_of(replace(brick(), faces=brick().faces[1:])), 3)
