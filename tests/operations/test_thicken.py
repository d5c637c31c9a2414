"""Least thickness of walls."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st
from manifold3d import CrossSection, Manifold, Mesh64
from scipy.spatial import cKDTree

from meshhub import ConversionFailed, Registry
from meshhub.builtin_plugins.thicken import ThickenOptions
from meshhub.builtin_plugins.thicken.operation import run
from meshhub.model.notes import collecting
from meshhub.model.scene import Float64, Material, Mesh, Part, Scene
from meshhub.toolkit.geometry import bounds, soup, welded
from meshhub.toolkit.topology import is_closed
from models import assert_valid, brick, scene_of, sphere, volume
from solids import mesh_of

pytestmark = [pytest.mark.once, pytest.mark.process]


def thicken(scene: Scene, wall: float) -> Scene:
    return run(scene, ThickenOptions(thicken_mm=wall))


def ray_walls(scene: Scene, count: int = 300) -> Float64:
    """Return how far it is from random points of a scene straight inward to the other side."""
    mesh = trimesh.Trimesh(*soup(scene), process=False)
    points, faces = trimesh.sample.sample_surface(mesh, count, seed=1)
    inward = -mesh.face_normals[faces]
    solid = solid_of(scene)
    hits = [
        solid.ray_cast((p + 1e-4 * d).tolist(), (p + 100 * d).tolist()) for p, d in zip(points, inward, strict=True)
    ]
    return np.array([np.linalg.norm(np.array(h[0].position) - p) for h, p in zip(hits, points, strict=True) if h])


def solid_of(scene: Scene) -> Manifold:
    """Return a scene as one solid."""
    points, faces = welded(Mesh(*soup(scene)))
    return Manifold(Mesh64(points, faces.astype(np.uint64)))


@settings(max_examples=4)
@given(thickness=st.floats(0.05, 1.9), wall=st.floats(0.5, 2))
def test_a_plate_gets_exactly_as_thick(thickness: float, wall: float) -> None:
    scene = scene_of(brick(20, 30, thickness))
    result = thicken(scene, wall)
    assert_valid(result)
    low, high = bounds(result)
    assert (high - low)[:2].tolist() == pytest.approx([20, 30])
    assert (high - low)[2] == pytest.approx(max(wall, thickness), rel=0.01)
    assert volume(*soup(result)) == pytest.approx(600 * max(wall, thickness), rel=0.01)


@pytest.mark.parametrize("thickness", [0.2, 0.4, 0.8])
def test_a_tube_grows_inward_and_outward(thickness: float) -> None:
    tube = Manifold.cylinder(30, 10 + thickness, 10 + thickness, 96) - Manifold.cylinder(90, 10, 10, 96, True)
    result = thicken(scene_of(mesh_of(tube)), 1.2)
    assert_valid(result)
    assert bounds(result)[:, 2].tolist() == pytest.approx([0, 30])
    radii = np.linalg.norm(soup(result)[0][:, :2], axis=1)
    assert radii.max() - radii.min() == pytest.approx(1.2, rel=0.03)
    expected = np.pi * ((10 + thickness / 2 + 0.6) ** 2 - (10 + thickness / 2 - 0.6) ** 2) * 30
    assert volume(*soup(result)) == pytest.approx(expected, rel=0.03)


def test_a_layer_has_no_teeth_where_the_wall_gets_thick_slowly() -> None:
    height = np.linspace(4, 25, 10)
    inner = [[14.5 - 3.5 * ((25 - z) / 21) ** 2, z] for z in height[::-1]]
    cup = trimesh.creation.revolve(np.array([[0, 0], [15, 0], *([15, z] for z in height), *inner, [0, 4]]), sections=96)
    cup.merge_vertices()
    result = thicken(scene_of(Mesh(np.asarray(cup.vertices), np.asarray(cup.faces))), 1.5)
    assert_valid(result)
    # rays at the rim run along it
    assert np.quantile(ray_walls(result, 600), 0.02) > 0.95 * 1.5
    mesh = trimesh.Trimesh(*welded(Mesh(*soup(result))), process=False)
    is_side = (np.abs(mesh.triangles_center[:, 2] - 15) < 9)[mesh.face_adjacency].all(axis=1)
    assert np.rad2deg(mesh.face_adjacency_angles[is_side].max()) < 30


@pytest.mark.parametrize("is_open", [True, False])
def test_the_walls_of_a_box_are_as_thick(is_open: bool) -> None:
    box = Manifold.cube((30, 20, 15)) - Manifold.cube((29, 19, 20 if is_open else 14)).translate((0.5, 0.5, 0.5))
    result = thicken(scene_of(mesh_of(box)), 1)
    assert_valid(result)
    size = np.ptp(bounds(result), axis=0)
    assert size.tolist() == pytest.approx([30.5, 20.5, 15.25 if is_open else 15.5], abs=0.01)
    walls = ray_walls(result)
    # rays from the ends of the walls run along them
    assert np.percentile(walls, 2) >= 0.97
    assert np.median(walls) == pytest.approx(1, rel=0.03)
    inner = (28.5, 18.5, 14.25 if is_open else 13.5)
    assert volume(*soup(result)) == pytest.approx(np.prod(size) - np.prod(inner), rel=0.03)


def test_thick_places_stay_to_the_vertex() -> None:
    block = Manifold.cube((20, 20, 20))
    fin = Manifold.cube((20, 0.4, 10)).translate((20, 10, 5))
    before = mesh_of(block + fin)
    result = thicken(scene_of(before), 1).meshes[0]
    assert_valid(scene_of(result))
    kept = before.vertices[before.vertices[:, 0] < 20]
    assert {tuple(point) for point in kept.tolist()} <= {tuple(point) for point in result.vertices.tolist()}
    far = result.vertices[result.vertices[:, 0] > 30]
    assert np.ptp(far[:, 1]) == pytest.approx(1, rel=0.01)
    assert np.ptp(far[:, 2]) == pytest.approx(10)
    assert volume(result.vertices, result.faces) == pytest.approx(8000 + 200, rel=0.005)


@pytest.mark.parametrize(
    "solid", [Manifold.cube((20, 20, 20)), Manifold.sphere(10, 48), Manifold.cylinder(9, 5, 0, 48)]
)
def test_a_thick_body_stays_itself(solid: Manifold) -> None:
    scene = scene_of(mesh_of(solid))
    with collecting("thicken") as remarks:
        assert thicken(scene, 1).meshes[0] is scene.meshes[0]
    assert [note.code for note in remarks.notes] == ["walls_thick_enough"]


def test_a_wall_in_the_middle_of_a_plate_is_found() -> None:
    # a pocket from above leaves a floor of 0.3 mm
    plate = Manifold.cube((40, 40, 5)) - Manifold.extrude(CrossSection.circle(10, 64), 10).translate((20, 20, 0.3))
    result = thicken(scene_of(mesh_of(plate)), 1.5)
    assert_valid(result)
    solid = solid_of(result)
    hits = solid.ray_cast((19.3, 20.7, -9), (19.3, 20.7, 9))
    assert hits[1].position[2] - hits[0].position[2] == pytest.approx(1.5, rel=0.03)
    hits = solid.ray_cast((3, 3, -9), (3, 3, 9))
    assert [hit.position[2] for hit in hits] == pytest.approx([0, 5])


@pytest.mark.parametrize("wall", [4.5, 6, 8])
def test_a_bracket_stays_one_body(wall: float) -> None:
    with Registry(entry_points=False) as registry:
        result = registry.read("examples/bracket-clean.stl", thicken_mm=wall)
    assert_valid(result)
    assert trimesh.Trimesh(*welded(Mesh(*soup(result)))).body_count == 1


def test_a_part_with_a_scale_stays_closed() -> None:
    tube = Manifold.cylinder(30, 10.4, 10.4, 96) - Manifold.cylinder(90, 10, 10, 96, True)
    block = Manifold.cube((30, 30, 30)).translate((9, -15, 0))
    mesh = mesh_of((tube + block).rotate((10, 20, 30)).scale((81.3, 81.3, 81.3)))
    result = thicken(Scene((mesh,), (Part(0, np.diag([0.0123, 0.0123, 0.0123, 1.0])),)), 1)
    assert result.face_count > len(mesh.faces)
    # in the units of the mesh, which files contain, and in millimeters
    for changed in (scene_of(result.meshes[0]), result):
        assert is_closed(*soup(changed))
        assert_valid(changed)


def test_names_colors_and_instances_are_kept() -> None:
    colors = np.tile(np.uint8([9, 80, 200, 255]), (8, 1))
    mesh = replace(brick(20, 30, 0.5), colors=colors, face_material=np.full(12, 3))
    beside = np.eye(4)
    beside[0, 3] = 40
    double = np.diag([2.0, 2, 2, 1])
    double[2, 3] = 50
    result = thicken(Scene((mesh,), (Part(0, name="a"), Part(0, beside, name="b"), Part(0, double, name="c"))), 2)
    assert [part.name for part in result.parts] == ["a", "b", "c"] and len(result.meshes) == 2
    for changed in result.meshes:
        assert changed.colors is not None and np.array_equal(np.unique(changed.colors, axis=0), colors[:1])
        assert changed.face_material is not None and set(changed.face_material.tolist()) == {3}
    assert volume(*soup(result)) == pytest.approx(2 * 600 * 2 + 2400 * 2, rel=0.01)


def test_an_open_mesh_is_rejected_with_advice() -> None:
    with pytest.raises(ConversionFailed, match="repair"):
        thicken(scene_of(replace(sphere(), faces=sphere().faces[1:])), 1)


def terrain(bend: float, step: float) -> Mesh:
    """A wavy sheet of 40 × 30 mm with texture coordinates and two materials; `bend` is the height of its waves."""
    x, y = np.meshgrid(np.arange(0, 40.1, step), np.arange(0, 30.1, step), indexing="ij")
    points = np.stack([x, y, bend * np.sin(x / 6) * np.cos(y / 5)], axis=-1).reshape(-1, 3)
    number = np.arange(x.size).reshape(x.shape)
    a, b, c, d = (part.ravel() for part in (number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]))
    faces = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)]).astype(np.int32)
    return Mesh(points, faces, uv=points[:, :2] / 40, face_material=(points[faces[:, 0], 0] > 20).astype(np.int32))


@settings(max_examples=5)
@given(bend=st.floats(0, 5), step=st.sampled_from([1.0, 2.5]), thickness=st.floats(0.8, 4))
def test_a_sheet_gets_this_thickness(bend: float, step: float, thickness: float) -> None:
    sheet = terrain(bend, step)
    scene = replace(scene_of(sheet), materials=(Material("a"), Material("b")))
    with collecting("thicken") as remarks:
        result = thicken(scene, thickness)
    assert "sheet_thickened" in {note.code for note in remarks.notes}
    assert_valid(result)
    area = trimesh.Trimesh(sheet.vertices, sheet.faces, process=False).area
    assert volume(*soup(result)) == pytest.approx(area * thickness, rel=0.05)
    # the sheet lies in the middle
    mesh = trimesh.Trimesh(*soup(result), process=False)
    middle = trimesh.Trimesh(sheet.vertices, sheet.faces, process=False)
    inner = (np.abs(mesh.vertices[:, :2] - [20, 15]) < [17, 12]).all(axis=1)
    for _ in range(4 if step == 1 else 5):
        middle = middle.subdivide()
    distance, _ = cKDTree(middle.vertices).query(mesh.vertices[inner])
    assert distance == pytest.approx(np.full(inner.sum(), thickness / 2), rel=0.06)
    part = result.meshes[0]
    assert part.uv is not None and part.face_material is not None
    centers = part.vertices[part.faces].mean(axis=1)
    clear = np.abs(centers[:, 0] - 20) > thickness + step
    assert (part.face_material == (centers[:, 0] > 20))[clear].all()


def compose(*solids: Manifold) -> Mesh:
    """Return solids as bodies of one mesh, which may overlap."""
    meshes = [mesh_of(solid) for solid in solids]
    starts = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    faces = [mesh.faces + start for mesh, start in zip(meshes, starts, strict=False)]
    return Mesh(np.concatenate([mesh.vertices for mesh in meshes]), np.concatenate(faces).astype(np.int32))


def test_the_overlap_of_two_bodies_is_not_a_wall() -> None:
    lower = Manifold.cube((40, 40, 3))
    upper = Manifold.cube((30, 30, 3)).translate((5, 5, 3 - 1e-4))
    with collecting("thicken") as remarks:
        result = thicken(scene_of(compose(lower, upper)), 0.8)
    assert [note.code for note in remarks.notes] == ["walls_thick_enough"]
    assert volume(*soup(result)) == pytest.approx(40 * 40 * 3 + 30 * 30 * 3)


def test_a_thin_wall_beside_an_overlap_gets_thick() -> None:
    lower = Manifold.cube((40, 40, 3))
    upper = Manifold.cube((0.4, 40, 10)).translate((20, 0, 3 - 1e-4))
    result = thicken(scene_of(compose(lower, upper)), 0.8)
    assert_valid(result)
    assert volume(*soup(result)) == pytest.approx(40 * 40 * 3 + 0.8 * 40 * 10, rel=0.01)


def test_a_sheet_that_bends_too_much_for_its_thickness_is_rounded() -> None:
    result = thicken(scene_of(terrain(5, 2)), 15)
    assert_valid(result)
    assert not trimesh.Trimesh(*soup(result), process=False).is_empty
    assert np.ptp(bounds(result), axis=0)[2] == pytest.approx(15 + np.ptp(terrain(5, 2).vertices[:, 2]), rel=0.05)
    low, high = bounds(result)
    # half a ball around the corners
    assert (high - low)[:2].tolist() == pytest.approx([55, 45], rel=0.02)


@pytest.mark.parametrize("is_turned", [False, True])
def test_sheets_that_touch_in_a_point_become_one_solid(is_turned: bool) -> None:
    points = np.array([[0, 0, 0], [20, 5, 0], [20, -5, 0], [-20, 5, 0], [-20, -5, 0]], float)
    scene = scene_of(Mesh(points, np.array([(0, 1, 2), (0, 3, 4) if is_turned else (0, 4, 3)], np.int32)))
    result = thicken(scene, 2)
    assert_valid(result)
    perimeter = 2 * (10 + 2 * np.hypot(20, 5))
    assert volume(*soup(result)) == pytest.approx(2 * 200 + np.pi / 2 * perimeter, rel=0.03)


def test_a_solid_beside_a_sheet_stays_as_it_is() -> None:
    sheet, ball = terrain(2, 2), sphere(5)
    points = np.concatenate([sheet.vertices, ball.vertices + (20, 15, 30)])
    last = len(points) - 1
    # the last face has two corners in one point
    faces = [sheet.faces, ball.faces + len(sheet.vertices), [(last, last, last - 1)]]
    both = Mesh(points, np.concatenate(faces).astype(np.int32))
    result = thicken(scene_of(both), 2)
    assert_valid(result)
    alone = volume(*soup(thicken(scene_of(replace(sheet, uv=None, face_material=None)), 2)))
    assert volume(*soup(result)) == pytest.approx(alone + volume(ball.vertices, ball.faces), rel=1e-6)
