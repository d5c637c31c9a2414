"""Solids that touch themselves along edges: every operation that needs a solid takes them, and nothing moves."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import manifold3d
import numpy as np
import pytest
import trimesh
from numpy.typing import NDArray

from meshhub import ConversionFailed, Registry
from meshhub.builtin_plugins.boolean import BooleanOptions
from meshhub.builtin_plugins.boolean.operation import run as combine
from meshhub.model.notes import collecting
from meshhub.model.scene import Float64, Int32, Mesh, Scene
from meshhub.toolkit.geometry import soup, weld
from meshhub.toolkit.topology import edge_statistics
from meshhub.toolkit.touching_edges import separate_touching_edges
from models import brick, move_mesh, scene_of, volume

pytestmark = pytest.mark.once

STEP_MM = 20.0

SIDES = np.array([(0, 0, 1), (0, 0, -1), (0, 1, 0), (0, -1, 0), (1, 0, 0), (-1, 0, 0)])


def stack(cells: NDArray[np.bool_], step: float = STEP_MM) -> Mesh:
    """Return the surface of all cells (x, y, z) that are set, as OpenSCAD unites cubes that share an edge."""
    padded = np.pad(cells, 1)
    corners: list[Float64] = []
    for side in SIDES:
        axis = int(np.abs(side).argmax())
        bare = padded & ~np.roll(padded, -side[axis], axis)
        across, along = np.roll(np.eye(3), -1 - axis, axis=0)[:2]
        quad = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) @ [across, along] / 2 + side / 2
        if np.cross(quad[1] - quad[0], quad[2] - quad[1]) @ side < 0:
            quad = quad[::-1]
        corners.append((np.argwhere(bare)[:, None] - 0.5 + quad).reshape(-1, 3))
    quads = np.concatenate(corners)
    first, index = weld(np.rint(2 * quads) / 2)
    a, b, c, d = index.reshape(-1, 4).T
    faces = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    return Mesh(quads[first] * step, faces.astype(np.int32), name="stack")


def cells(*layers: str) -> NDArray[np.bool_]:
    """Return cells from layers, from low to high, such as "#. .#"."""
    return np.array([[[char == "#" for char in row] for row in layer.split()] for layer in layers]).transpose(2, 1, 0)


TWO_CUBES = cells("#. .#")
NOTCH = cells("### #.# ##.", "### ### ###")
"""A blind hole whose corner meets that of the block's own notch: a crack of air along an edge."""
CROSSED_TUNNELS = cells("#### #.## ##.# ####", "#### #.## ##.# ####")
BRIDGED = cells("## ##", "#. .#", "## ##")
"""Two columns between two plates: the wedges are connected at both ends of the edge."""
CHAIN = cells("#.# .#. #.#", "#.# .#. #.#")
RANDOM = np.random.default_rng(45).random((5, 5, 5)) < 0.6
RANDOM[:, :, [0, 4]] = True

SHAPES = {
    "two cubes": TWO_CUBES,
    "notch": NOTCH,
    "crossed tunnels": CROSSED_TUNNELS,
    "bridged": BRIDGED,
    "chain": CHAIN,
    "random": RANDOM,
}


def statistics(mesh: Mesh) -> tuple[int, int, int]:
    return tuple(edge_statistics(weld(mesh.vertices)[1][mesh.faces]))


def solid_of(points: Float64, faces: Int32) -> manifold3d.Manifold:
    return manifold3d.Manifold(manifold3d.Mesh64(points, faces.astype(np.uint64)))


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_wedges_get_vertices_of_their_own_and_nothing_moves(shape: NDArray[np.bool_]) -> None:
    mesh = stack(shape)
    boundary, touching, inconsistent = statistics(mesh)
    assert touching > 0 and boundary == inconsistent == 0
    with collecting("test") as remarks:
        separated = separate_touching_edges(mesh, "'stack'")
    assert [(note.code, note.values["count"]) for note in remarks.notes] == [("touching_edges", touching)]
    points, faces = separated.weld()
    assert edge_statistics(faces) == (0, 0, 0)
    assert volume(points, faces) == pytest.approx(shape.sum() * STEP_MM**3)
    assert (points[separated.point] == separated.mesh.vertices).all()
    # each face is its parent or a half of it, so positions lie in the faces of the mesh
    before, after = (trimesh.Trimesh(each.vertices, each.faces, process=False) for each in (mesh, separated.mesh))
    assert after.area == pytest.approx(before.area)
    assert np.allclose(after.face_normals, before.face_normals[separated.parent])
    assert np.ptp(points, axis=0).tolist() == np.ptp(mesh.vertices, axis=0).tolist()


@pytest.mark.parametrize(
    ("shape", "bodies"),
    [(TWO_CUBES, [1, 1]), (CHAIN, [2, 2, 2, 2, 2]), (NOTCH, [16]), (CROSSED_TUNNELS, [28]), (BRIDGED, [10])],
)
def test_faces_that_bound_one_wedge_stay_together(shape: NDArray[np.bool_], bodies: list[int]) -> None:
    points, faces = separate_touching_edges(stack(shape), "'stack'").weld()
    volumes = [body.volume() / STEP_MM**3 for body in solid_of(points, faces).decompose()]
    assert sorted(volumes) == pytest.approx(sorted(bodies))


def test_cubes_that_share_a_face_stay_two_bodies() -> None:
    mesh = stack(cells("#"))
    double = Mesh(
        np.concatenate([mesh.vertices, mesh.vertices + [STEP_MM, 0, 0]]), np.concatenate([mesh.faces, mesh.faces + 8])
    )
    points, faces = separate_touching_edges(double, "'stack'").weld()
    assert edge_statistics(faces) == (0, 0, 0)
    assert sorted(body.volume() for body in solid_of(points, faces).decompose()) == pytest.approx([8000, 8000])


def test_a_mesh_without_touching_edges_stays_the_same_object() -> None:
    mesh = brick()
    with collecting("test") as remarks:
        assert separate_touching_edges(mesh, "'brick'").mesh is mesh
    assert remarks.notes == []


def test_edges_on_three_faces_are_still_rejected() -> None:
    mesh = brick()
    fin = replace(
        mesh, vertices=np.append(mesh.vertices, [[20, 0, 0]], axis=0), faces=np.append(mesh.faces, [[0, 1, 8]], axis=0)
    )
    for options in ({"boolean": "union"}, {"hollow_wall_mm": 1.0}):
        with pytest.raises(ConversionFailed, match="repair"):
            Registry(entry_points=False).convert(scene_of(fin), Path(os.devnull).with_suffix(".stl"), **options)


SAME_VOLUME: dict[str, dict[str, Any]] = {
    "thicken": {"thicken_mm": 1.0},
    "fill_holes": {"fill_holes_mm": 3.0},
    "boolean": {"boolean": "union"},
    "merge_parts": {"merge_parts": "union"},
    "cut_plane": {"cut_plane": "z=37%"},
    "split_for_bed": {"split_for_bed": "30x30x30", "split_for_bed_connectors": "none"},
}

OTHER_VOLUME: dict[str, dict[str, Any]] = {
    "emboss": {"emboss_text": "A", "emboss_size_mm": 6.0},
    "chamfer_base": {"chamfer_base_mm": 1.0},
    "plinth": {"plinth_mm": 2.0},
}


def convert(mesh: Mesh, path: Path, options: dict[str, Any]) -> float:
    """Return the volume of a mesh after an operation, whose result must be closed."""
    with Registry(entry_points=False) as registry:
        report = registry.convert(scene_of(mesh), path, **options)
        result = registry.read(path)
    codes = {note.code for note in report.notes}
    assert "touching_edges" in codes
    assert not codes & {"cut_not_closed", "result_invalid"}
    for each in result.meshes:
        boundary, _, inconsistent = statistics(each)
        assert boundary == inconsistent == 0
    return volume(*soup(result))


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("options", SAME_VOLUME.values(), ids=SAME_VOLUME)
def test_operations_that_keep_the_volume(options: dict[str, Any], shape: NDArray[np.bool_], tmp_path: Path) -> None:
    expected = shape.sum() * STEP_MM**3
    assert convert(stack(shape), tmp_path / "out.3mf", options) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("options", OTHER_VOLUME.values(), ids=OTHER_VOLUME)
def test_operations_that_change_the_volume(options: dict[str, Any], shape: NDArray[np.bool_], tmp_path: Path) -> None:
    before = shape.sum() * STEP_MM**3
    after = convert(stack(shape), tmp_path / "out.3mf", options)
    assert after != pytest.approx(before, rel=1e-5)
    assert after == pytest.approx(before, rel=0.2)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"hollow_wall_mm": 6.0}, 2 * (20**3 - 8**3)),
        ({"hollow_wall_mm": 6.0, "drain_holes_mm": 3.0}, 2 * (20**3 - 8**3 - 6 * np.pi * 1.5**2)),
        ({"offset_mm": -4.0}, 2 * 12**3),
    ],
    ids=["hollow", "drain", "offset"],
)
def test_operations_on_the_distance_to_the_surface(options: dict[str, Any], expected: float, tmp_path: Path) -> None:
    assert convert(stack(TWO_CUBES), tmp_path / "out.3mf", options) == pytest.approx(expected, rel=0.02)


def test_colors_and_texture_coordinates_stay() -> None:
    plain = stack(BRIDGED)
    corners = plain.faces.ravel()
    side = np.repeat(np.arange(len(plain.faces)) % 5, 3)
    colors = np.stack([50 * side, 255 - 50 * side, side, np.full(len(side), 255)], axis=1).astype(np.uint8)
    uv = (plain.vertices[corners][:, :2] / 100 + plain.vertices[corners][:, 2:] / 1000).astype(np.float32)
    faces = np.arange(len(corners), dtype=np.int32).reshape(-1, 3)
    mesh = replace(plain, vertices=plain.vertices[corners], faces=faces, colors=colors, uv=uv)
    other = move_mesh(brick(1, 1, 1), 500, 0, 0)
    result = combine(scene_of(mesh, other), BooleanOptions(boolean="difference")).meshes[0]
    assert result.colors is not None and result.uv is not None

    def areas(each: Mesh) -> dict[bytes, float]:
        assert each.colors is not None
        size = trimesh.Trimesh(each.vertices, each.faces, process=False).area_faces
        rows = each.colors[each.faces]
        assert (rows == rows[:, :1]).all()
        keys, at = np.unique(rows[:, 0], axis=0, return_inverse=True)
        return dict(zip(map(bytes, keys), np.bincount(at.ravel(), size), strict=True))

    assert areas(result) == pytest.approx(areas(mesh))
    expected = result.vertices[:, :2] / 100 + result.vertices[:, 2:] / 1000
    assert np.allclose(result.uv, expected, atol=1e-6)


def list_real_parts() -> list[Path]:
    root = os.environ.get("MESHHUB_CORPUS")
    return [Path(root) / "stl" / "mikedh+trimesh__models_shared.STL"] if root else []


@pytest.mark.skipif(not list_real_parts(), reason="MESHHUB_CORPUS is not set")
@pytest.mark.parametrize("options", [{"boolean": "union"}, {"cut_plane": "z=50%"}, {"plinth_mm": 2.0}], ids=str)
def test_real_parts_that_touch_themselves(options: dict[str, Any], tmp_path: Path) -> None:
    with Registry(entry_points=False) as registry:
        for path in list_real_parts():
            before: Scene = registry.read(path)
            report = registry.convert(path, tmp_path / "out.stl", **options)
            after = registry.read(tmp_path / "out.stl")
            assert "touching_edges" in {note.code for note in report.notes}
            grown = volume(*soup(after)) - volume(*soup(before))
            assert grown > 0 if "plinth_mm" in options else grown == pytest.approx(0, abs=1e-3)
