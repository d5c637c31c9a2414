"""Heat maps: vertex colors of a measure, with large triangles divided where it changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from meshhub.model.scene import Material, Mesh, Part, Scene
from meshhub.toolkit.clustering import reduce_for_display
from meshhub.toolkit.geometry import area, soup
from meshhub.toolkit.refining import edge_lengths, halve_edges
from meshhub.toolkit.rendering.heat_maps import HeatMap, map_measure
from meshhub.toolkit.rendering.scales import ANCHORS, NEUTRAL
from meshhub.toolkit.topology import edges
from models import assert_valid, brick, move_mesh, scene_of, sphere, volume

pytestmark = pytest.mark.once


def hollow_brick(cavity_mm: float) -> Mesh:
    """A brick of 60 × 60 × 20 mm with a cubic cavity 0.4 mm below the middle of its upper side."""
    outside = brick(60, 60, 20)
    low = 30 - cavity_mm / 2
    inside = move_mesh(brick(cavity_mm, cavity_mm, cavity_mm), low, low, 19.6 - cavity_mm)
    faces = np.concatenate([outside.faces, inside.faces[:, ::-1] + len(outside.vertices)])
    return Mesh(np.concatenate([outside.vertices, inside.vertices]), faces)


def value_of(colors: NDArray[np.uint8], top: float) -> NDArray[np.float64]:
    """The values of colors of the scale."""
    fine = np.linspace(0, len(ANCHORS) - 1, 1001)
    scale = np.stack([np.interp(fine, np.arange(len(ANCHORS)), ANCHORS[:, k]) for k in range(3)], axis=1)
    distance = np.linalg.norm(colors[:, None, :3].astype(float) - scale, axis=2)
    assert distance.min(axis=1).max() < 2
    return np.asarray(distance.argmin(axis=1) / 1000 * top)


def color_whole(scene: Scene, measure: str = "thickness", limit: float | None = None, most: int = 20_000) -> HeatMap:
    return map_measure(scene, scene, measure, limit, most)  # type: ignore[arg-type]


def test_edges_are_halved_without_gaps() -> None:
    mesh = sphere(10)
    vertices, faces, origin = mesh.vertices, mesh.faces, np.arange(len(mesh.faces))
    random = np.random.default_rng(1)
    for _ in range(4):
        mesh_edges = edges(faces)
        chosen = np.flatnonzero(random.random(len(mesh_edges.size)) < 0.3)
        vertices, faces, inner = halve_edges(vertices, faces, mesh_edges, chosen)
        origin = origin[inner]
    assert len(faces) > 3 * len(mesh.faces)
    assert_valid(scene_of(Mesh(vertices, faces)))
    assert volume(vertices, faces) == pytest.approx(volume(mesh.vertices, mesh.faces))
    assert (np.diff(origin) >= 0).all()
    for face in (0, 100, 500):
        assert area(vertices, faces[origin == face]) == pytest.approx(area(mesh.vertices, mesh.faces[[face]]))


def test_edges_have_lengths() -> None:
    mesh = brick()
    lengths = edge_lengths(mesh.vertices, edges(mesh.faces), mesh.faces)
    assert sorted(lengths.round(2)) == sorted([10, 20, 30] * 4 + [22.36, 31.62, 36.06] * 2)


def test_a_thin_place_within_two_triangles_is_seen() -> None:
    result = color_whole(scene_of(hollow_brick(6)))
    (mesh,) = result.scene.meshes
    assert mesh.colors is not None
    assert result.scale.limit == 0.8
    assert_valid(result.scene)
    upper = np.flatnonzero(mesh.vertices[:, 2] == 20)
    values = value_of(mesh.colors[upper], result.scale.top)
    aside = np.abs(mesh.vertices[upper, :2] - 30).max(axis=1)
    assert values[aside < 2] == pytest.approx(0.4, abs=0.05)
    assert (values[(aside > 5) & (aside < 28)] > 3.1).all()
    # finer where the thickness changes than elsewhere
    assert (aside < 5).sum() / 100 > 2 * (aside > 5).sum() / 3500


@pytest.mark.parametrize("most", [1000, 5000, 100_000])
def test_divisions_respect_the_maximum(most: int) -> None:
    assert 12 < color_whole(scene_of(hollow_brick(20)), most=most).scene.face_count <= most


def test_the_limit_sets_the_scale() -> None:
    plate = scene_of(brick(20, 20, 1))
    for limit in (0.5, 2.0):
        result = color_whole(plate, limit=limit)
        (mesh,) = result.scene.meshes
        assert mesh.colors is not None
        middle = (np.abs(mesh.vertices[:, :2] - 10) < 5).all(axis=1)
        assert result.scale.top == 4 * limit
        assert value_of(mesh.colors[middle], 4 * limit) == pytest.approx(1, abs=0.02)


def test_overhangs_have_one_color_per_face() -> None:
    roof = brick(10, 10, 10)
    corners = roof.vertices.copy()
    corners[corners[:, 2] > 0] += [10, 0, 0]
    result = color_whole(scene_of(Mesh(corners, roof.faces)), "overhang")
    (mesh,) = result.scene.meshes
    assert mesh.colors is not None
    assert len(mesh.faces) == 12
    assert (mesh.colors[mesh.faces] == mesh.colors[mesh.faces][:, :1]).all()
    shown = mesh.colors[mesh.faces[:, 0], :3]
    sloped = (shown != NEUTRAL).any(axis=1)
    assert sloped.sum() == 2
    assert value_of(shown[sloped], 90) == pytest.approx(45, abs=1)


def test_walls_that_rounding_tilts_do_not_overhang() -> None:
    plate = brick(300, 300, 2)
    corners = plate.vertices.copy()
    corners[corners[:, 2] > 0] += [np.spacing(np.float32(300)), 0, 0]
    (mesh,) = color_whole(scene_of(Mesh(corners, plate.faces)), "overhang").scene.meshes
    assert mesh.colors is not None
    assert (mesh.colors[:, :3] == NEUTRAL).all()


def test_bodies_that_are_inside_out_have_the_colors_of_outward_ones() -> None:
    bodies = [brick(10, 10, 1.5), move_mesh(brick(10, 10, 1), 2, 0, 5)]
    inward = [Mesh(mesh.vertices, mesh.faces[:, ::-1]) for mesh in bodies]
    colors = []
    for meshes in (bodies, inward):
        heat_map = color_whole(scene_of(*meshes))
        found = [mesh.colors[mesh.faces].reshape(-1, 4) for mesh in heat_map.scene.meshes if mesh.colors is not None]
        colors.append(np.unique(np.concatenate(found), axis=0))
    assert len(colors[0]) > 1
    assert np.array_equal(*colors)


def test_parts_keep_their_names_and_places() -> None:
    matrix = np.diag([2.0, 2.0, -1.0, 1.0])
    matrix[:3, 3] = [100, 0, 5]
    scene = Scene(
        (replace(brick(10, 10, 1), face_material=np.zeros(12, np.int32)),),
        (Part(0, name="a", path=("group",)), Part(0, matrix, "b", material=0)),
        (Material("red"),),
    )
    result = color_whole(scene, most=4000).scene
    assert [(part.name, part.path, part.material) for part in result.parts] == [
        ("a", ("group",), None),
        ("b", (), None),
    ]
    assert result.materials == ()
    for before, after in ((scene, result),):
        assert np.ptp(soup(after)[0], axis=0) == pytest.approx(np.ptp(soup(before)[0], axis=0))
        assert volume(*soup(after)) == pytest.approx(volume(*soup(before)))


@pytest.mark.parametrize(("measure", "wall_mm"), [("thickness", 2.0), ("overhang", 8.0)])
def test_reduced_scenes_have_the_values_of_the_whole_one(measure: str, wall_mm: float) -> None:
    outside, inside = sphere(20, 96), sphere(20 - wall_mm, 96)
    faces = np.concatenate([outside.faces, inside.faces[:, ::-1] + len(outside.vertices)])
    scene = scene_of(Mesh(np.concatenate([outside.vertices, inside.vertices]), faces))
    reduced = reduce_for_display(scene, 4000)
    result = map_measure(scene, reduced, measure, None, 4000)  # type: ignore[arg-type]
    assert 2000 < result.scene.face_count <= 4000
    (mesh,) = result.scene.meshes
    assert mesh.colors is not None
    colors, center = mesh.colors[mesh.faces[:, 0], :3], mesh.vertices[mesh.faces].mean(axis=1)
    if measure == "thickness":
        assert value_of(colors, result.scale.top) == pytest.approx(wall_mm, abs=0.1)
        return
    distance = np.linalg.norm(center, axis=1)
    slope = np.rad2deg(np.arccos(np.clip(-center[:, 2] / distance, -1, 1)))
    is_outside = distance > 18
    chosen = is_outside & (slope > 20) & (slope < 80)
    assert value_of(colors[chosen], 90) == pytest.approx(slope[chosen], abs=8)
    assert (colors[is_outside & (slope > 100)] == NEUTRAL).all()
