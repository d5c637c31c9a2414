"""`repair_solid`: inner walls and floating shells disappear, deliberate bodies and colors stay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from manifold3d import Manifold
from test_reduce_colors import draw_halves, measure_areas, project_texture

from meshhub import Registry
from meshhub.builtin_plugins.repair import RepairOptions
from meshhub.builtin_plugins.repair.operation import run
from meshhub.model.notes import collecting
from meshhub.model.scene import Float64, Mesh, Part, Scene
from meshhub.toolkit.geometry import soup
from meshhub.toolkit.topology import is_closed
from models import assert_valid, brick, scene_of, sphere, volume
from solids import mesh_of

pytestmark = pytest.mark.once


def place(mesh: Mesh, offset: tuple[float, float, float] = (0, 0, 0), scale: float = 1.0) -> Mesh:
    """Return a scaled and moved mesh; a negative scale turns it inside out."""
    faces = mesh.faces[:, ::-1] if scale < 0 else mesh.faces
    return replace(mesh, vertices=mesh.vertices * abs(scale) + np.array(offset), faces=faces)


def join(*meshes: Mesh) -> Mesh:
    first = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    vertices: Float64 = np.concatenate([mesh.vertices for mesh in meshes])
    return Mesh(
        vertices,
        np.concatenate([mesh.faces + start for mesh, start in zip(meshes, first, strict=False)]).astype(np.int32),
    )


BALL = sphere(20, 24)
SMALL = sphere(0.5, 12)


def make_solid(mesh: Mesh) -> tuple[Scene, dict[str, Any]]:
    with collecting("test") as remarks:
        result = run(Scene((mesh,), (Part(0),)), RepairOptions(repair_solid=True))
    return result, dict(remarks.figures)


@pytest.mark.parametrize("direction", [1, -1], ids=["same direction", "cavity"])
def test_a_double_shell_becomes_solid(direction: int) -> None:
    result, figures = make_solid(join(BALL, place(BALL, scale=0.98 * direction)))
    assert_valid(result)
    assert figures["inner_shells_removed"] == 1
    assert volume(*soup(result)) == pytest.approx(volume(BALL.vertices, BALL.faces))
    assert figures["volume_after"] == pytest.approx(volume(*soup(result)))
    assert figures["bodies_after"] == 1


def test_floating_shells_disappear_and_attached_ones_stay() -> None:
    floating = [place(SMALL, (25, y, 0), 1 + y / 100) for y in range(-20, 21, 2)]
    attached, large = place(SMALL, (0, 0, 20)), place(BALL, (50, 0, 0), 0.2)
    result, figures = make_solid(join(BALL, attached, large, *floating))
    assert figures["floating_shells_removed"] == len(floating) == 21
    assert result.face_count == len(BALL.faces) * 2 + len(SMALL.faces)


@pytest.mark.parametrize("turn", [False, True])
def test_pins_beside_a_plate_are_parts_of_a_kit(turn: bool) -> None:
    plate = brick(120, 80, 4)
    pins = [place(brick(1, 1, 3), (130 + 3 * number, 0, 0)) for number in range(11)]
    crumbs = [place(SMALL, (40, 30, 9)), place(SMALL, (60, 30, 9))]
    mesh, matrix = join(plate, *pins, *crumbs), np.eye(4)
    if turn:
        matrix[:3, :3] = [[1, 0, 0], [0, 0, 1], [0, -1, 0]]
        mesh = replace(mesh, vertices=mesh.vertices @ matrix[:3, :3])
    with collecting("test") as remarks:
        result = run(Scene((mesh,), (Part(0, matrix),)), RepairOptions(repair_solid=True))
    assert remarks.figures["floating_shells_removed"] == 2
    assert result.face_count == 12 * 12
    removed = [note for note in remarks.notes if note.code == "floating_removed"]
    assert len(removed) == 1
    assert removed[0].values["count"] == 2
    assert removed[0].values["size"] == pytest.approx(3**0.5, rel=0.05)
    assert "at (40, 30, 9)" in removed[0].message


def test_equal_pins_above_a_plate_are_parts_of_a_kit() -> None:
    pins = [place(brick(1, 1, 3), (10 + 3 * number, 0, 20)) for number in range(4)]
    mesh = join(brick(120, 80, 4), *pins)
    result, figures = make_solid(mesh)
    assert result.meshes[0] is mesh
    assert figures["floating_shells_removed"] == 0


def test_a_pocket_behind_a_narrow_slot_is_not_filled() -> None:
    pocket = Manifold.cube((10, 6, 3)).translate((15, 15, 8)) + Manifold.cube((6, 0.5, 20)).translate((17, 18, 9))
    mesh = mesh_of(Manifold.cube((40, 36, 20)) - pocket)
    result, figures = make_solid(mesh)
    assert result.meshes[0] is mesh
    assert figures["inner_faces_removed"] == 0


def test_many_equal_shells_stay() -> None:
    mesh = join(*(place(SMALL, (10 * x, 10 * y, 0)) for x in range(10) for y in range(10)))
    result, figures = make_solid(mesh)
    assert result.meshes[0] is mesh
    assert (figures["inner_shells_removed"], figures["floating_shells_removed"]) == (0, 0)


def test_a_plain_repair_keeps_all_shells() -> None:
    mesh = join(BALL, place(BALL, scale=-0.9), place(SMALL, (25, 0, 0)))
    with collecting("test") as remarks:
        result = run(Scene((mesh,), (Part(0),)), RepairOptions(repair=True))
    assert result.meshes[0] is mesh
    assert "inner_shells_removed" not in remarks.figures


def test_the_recipe_makes_a_print_of_a_double_shell_with_colors(tmp_path: Path) -> None:
    double = join(place(BALL), place(BALL, scale=-0.98), place(SMALL, (18, 18, 0)), place(SMALL, (-18, 18, 3)))
    with Registry(entry_points=False) as registry:
        registry.write(project_texture(double, draw_halves()), tmp_path / "a.glb")
        options = {"recipe": "print-color", "reduce_colors": 2, "target_height_mm": 80}
        report = registry.convert(tmp_path / "a.glb", tmp_path / "a.3mf", options=options)
        scene = registry.read(tmp_path / "a.3mf")
    assert is_closed(*soup(scene))
    assert report.target.size_mm == pytest.approx((80, 80, 80), rel=0.02)
    vertices = soup(scene)[0]
    assert vertices[:, 2].min() == pytest.approx(0, abs=1e-3)
    assert volume(*soup(scene)) == pytest.approx(8 * volume(BALL.vertices, BALL.faces), rel=0.01)
    sizes = sorted(size for size in measure_areas(scene).values() if size > 0)
    assert len(sizes) == 2
    assert sizes[0] == pytest.approx(sizes[1], rel=0.05)


def build_double_shell(radius: float, wall: float, holes: list[int]) -> Mesh:
    """Return a ball and a second wall inside, joined by narrow shafts at some faces."""
    outer = sphere(radius, 48)
    count = len(outer.vertices)
    inner = outer.vertices * (1 - wall / radius)
    vertices = [outer.vertices, inner]
    faces = [np.delete(outer.faces, holes, axis=0), np.delete(outer.faces, holes, axis=0)[:, ::-1] + count]
    for number, face in enumerate(outer.faces[holes]):
        first = 2 * count + 6 * number
        for wall_vertices in (outer.vertices[face], inner[face]):
            center = wall_vertices.mean(axis=0)
            vertices.append(center + 0.4 * (wall_vertices - center))
        top, bottom = first + np.arange(3), first + 3 + np.arange(3)
        for ends, ring, turn in ((face, top, 1), (face + count, bottom, -1)):
            after, following = np.roll(ends, -1), np.roll(ring, -1)
            faces.append(np.stack([ends, after, following], axis=1)[:, ::turn])
            faces.append(np.stack([ends, following, ring], axis=1)[:, ::turn])
        after, below = np.roll(top, -1), np.roll(bottom, -1)
        faces += [np.stack([top, after, below], axis=1), np.stack([top, below, bottom], axis=1)]
    return Mesh(np.concatenate(vertices), np.concatenate(faces).astype(np.int32))


@pytest.mark.parametrize("wall", [0.2, 1.0])
def test_a_double_shell_that_pin_holes_join_becomes_solid(wall: float) -> None:
    double = build_double_shell(40, wall, [100, 500, 1200])
    assert volume(double.vertices, double.faces) < 0.1 * volume(*soup(scene_of(sphere(40, 48))))
    result, figures = make_solid(double)
    assert_valid(result)
    assert volume(*soup(result)) == pytest.approx(volume(*soup(scene_of(sphere(40, 48)))), rel=1e-3)
    assert figures["bodies_after"] == 1
    assert figures["inner_faces_removed"] > 2000
    # the outer wall keeps its places
    distance = np.linalg.norm(result.meshes[0].vertices, axis=1)
    assert distance.min() > 39.5


def test_a_vessel_with_a_wide_opening_is_not_filled() -> None:
    ball, inner = sphere(40, 48), sphere(37, 48)
    both = join(ball, place(inner, scale=-1))
    cup = replace(both, faces=both.faces[both.vertices[both.faces][:, :, 2].mean(axis=1) < 20])
    with collecting("test"):
        mesh = run(Scene((cup,), (Part(0),)), RepairOptions(repair=True)).meshes[0]
    result, figures = make_solid(mesh)
    assert result.meshes[0] is mesh
    assert figures["inner_faces_removed"] == 0
