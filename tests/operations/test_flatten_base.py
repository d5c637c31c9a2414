from __future__ import annotations

from dataclasses import replace

import manifold3d
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from meshhub.builtin_plugins.flatten_base import FlattenBaseOptions
from meshhub.builtin_plugins.flatten_base.operation import run
from meshhub.errors import InvalidOption
from meshhub.model.notes import collecting
from meshhub.model.scene import Material, Mesh, Part, Scene
from meshhub.toolkit.geometry import bounds, soup
from models import assert_valid, brick, edge_counts, move_mesh, scene_of, sphere, volume, weld_as_stl

pytestmark = pytest.mark.once


def flatten_scene(scene: Scene, depth: float) -> Scene:
    return run(scene, FlattenBaseOptions(flatten_base_mm=depth))


def measure_base_area(scene: Scene) -> float:
    """Return the area of the downward faces at the lowest height."""
    vertices, faces = soup(scene)
    low = vertices[:, 2] == vertices[:, 2][faces].min()
    base = faces[low[faces].all(axis=1)]
    a, b, c = (vertices[base[:, k]] for k in range(3))
    crossed = np.cross(b - a, c - a)
    assert (crossed[:, 2] <= 1e-6).all()
    return float(-crossed[:, 2].sum() / 2)


def convert_manifold(solid: manifold3d.Manifold) -> Mesh:
    mesh = solid.to_mesh()
    return Mesh(mesh.vert_properties[:, :3].astype(np.float64), mesh.tri_verts.astype(np.int32), name="solid")


def build_prism(polygons: list[list[tuple[float, float]]], height: float) -> Mesh:
    section = manifold3d.CrossSection(polygons, manifold3d.FillRule.EvenOdd)
    return convert_manifold(manifold3d.Manifold.extrude(section, height))


def test_a_brick_is_cut_and_not_moved() -> None:
    result = flatten_scene(scene_of(move_mesh(brick(10, 20, 30), 0, 0, 7)), 10)
    assert bounds(result).tolist() == [[0, 0, 17], [10, 20, 37]]
    assert volume(*soup(result)) == pytest.approx(10 * 20 * 20)
    assert measure_base_area(result) == pytest.approx(200)
    assert_valid(result)


@given(depth=st.floats(0.01, 19.9), segments=st.integers(4, 24).map(lambda half: 2 * half))
@settings(max_examples=60)
def test_a_sphere_cut_at_any_height_is_valid(depth: float, segments: int) -> None:
    mesh = sphere(10, segments)
    result = flatten_scene(scene_of(mesh), depth)
    lowest = mesh.vertices[:, 2].min()
    assert bounds(result)[0, 2] == lowest + depth
    assert_valid(result)
    rest = volume(*soup(result))
    solid = manifold3d.Manifold(manifold3d.Mesh64(mesh.vertices.copy(), mesh.faces.astype(np.uint64)))
    oracle = solid.trim_by_plane([0, 0, 1], lowest + depth).volume()
    assert rest == pytest.approx(oracle, rel=1e-5, abs=1e-3)


@given(seed=st.integers(0, 10_000), share=st.floats(0.02, 0.98), at_vertex=st.booleans())
@settings(max_examples=40)
def test_solids_with_cavities_and_overhangs_stay_valid(seed: int, share: float, at_vertex: bool) -> None:
    random = np.random.default_rng(seed)
    solid = manifold3d.Manifold()
    for _ in range(7):
        if random.random() < 0.5:
            piece = manifold3d.Manifold.cube(random.uniform(3, 9, 3).round(1).tolist())
        else:
            piece = manifold3d.Manifold.sphere(float(random.uniform(2, 5)), 16)
        piece = piece.rotate(random.choice([0, 30, 90], 3).tolist()).translate(
            random.uniform(-5, 5, 3).round(1).tolist()
        )
        solid = solid - piece if random.random() < 0.3 else solid + piece
    mesh = convert_manifold(solid)
    # occasionally two bodies touch along an edge, also above the cut
    assume(edge_counts(weld_as_stl(mesh.vertices, mesh.faces)[1]) == (0, 0))
    low, high = mesh.vertices[:, 2].min(), mesh.vertices[:, 2].max()
    plane = low + share * (high - low)
    if at_vertex:
        levels = np.unique(mesh.vertices[:, 2])
        plane = levels[np.clip(np.searchsorted(levels, plane), 1, len(levels) - 2)]
    result = flatten_scene(scene_of(mesh), plane - low)
    vertices, faces = soup(result)
    oracle = solid.trim_by_plane([0, 0, 1], float(plane)).volume()
    assert volume(vertices, faces) == pytest.approx(oracle, rel=1e-4, abs=1e-3)
    assert_valid(result)
    assert (vertices[faces][:, :, 2] >= low + (plane - low)).all()


def test_a_concave_section_with_a_hole_and_an_island_is_capped() -> None:
    mesh = build_prism(
        [
            [(0, 0), (30, 0), (30, 30), (20, 30), (20, 12), (10, 12), (10, 30), (0, 30)],
            [(2, 2), (28, 2), (28, 10), (2, 10)],
            [(5, 4), (9, 4), (9, 8), (5, 8)],
        ],
        10,
    )
    area = 30 * 30 - 10 * 18 - 26 * 8 + 16
    result = flatten_scene(scene_of(mesh), 4)
    assert measure_base_area(result) == pytest.approx(area)
    assert volume(*soup(result)) == pytest.approx(area * 6)
    assert_valid(result)


def test_sections_that_touch_at_a_point_are_capped() -> None:
    # two columns under one slab share an edge: their sections share a corner
    cube = manifold3d.Manifold.cube([10, 10, 10])
    other = cube.translate([10, 10, 0])
    wall = manifold3d.Manifold.cube([20, 20, 2]).translate([0, 0, 10])
    mesh = convert_manifold(cube + other + wall)
    result = flatten_scene(scene_of(mesh), 5)
    assert measure_base_area(result) == pytest.approx(200)
    assert volume(*soup(result)) == pytest.approx(200 * 5 + 20 * 20 * 2)


def test_a_cut_through_coplanar_faces_is_valid() -> None:
    # a step and an overhang end exactly at the height of the cut
    lower = manifold3d.Manifold.cube([10, 10, 5])
    upper = manifold3d.Manifold.cube([10, 10, 5]).translate([5, 0, 5])
    result = flatten_scene(scene_of(convert_manifold(lower + upper)), 5)
    assert measure_base_area(result) == pytest.approx(100)
    assert volume(*soup(result)) == pytest.approx(500)
    assert_valid(result)


def test_vertices_close_to_the_plane_give_no_slivers() -> None:
    mesh = sphere(10, 32)
    random = np.random.default_rng(1)
    ring = mesh.vertices[np.abs(mesh.vertices[:, 2] - mesh.vertices[20, 2]) < 1e-9][0, 2]
    noisy = mesh.vertices + np.where(np.abs(mesh.vertices[:, 2:] - ring) < 1e-9, [0, 0, 1e-6], 0) * random.uniform(
        -1, 1, (len(mesh.vertices), 1)
    )
    result = flatten_scene(scene_of(Mesh(noisy, mesh.faces)), ring - mesh.vertices[:, 2].min())
    assert_valid(result)
    assert len(np.unique(soup(result)[0][:, 2][soup(result)[0][:, 2] < ring + 1e-5])) == 1


def test_a_cavity_stays_a_cavity() -> None:
    hollow = sphere(6, 24)
    mesh = sphere(10, 24)
    both = Mesh(
        np.concatenate([mesh.vertices, hollow.vertices]),
        np.concatenate([mesh.faces, hollow.faces[:, ::-1] + len(mesh.vertices)]),
    )
    result = flatten_scene(scene_of(both), 10)
    assert_valid(result)
    assert volume(*soup(result)) == pytest.approx((volume(mesh.vertices, mesh.faces) * (1 - 0.216)) / 2, rel=1e-6)


def test_overlapping_bodies_get_separate_bases() -> None:
    first, second = brick(10, 10, 10), move_mesh(brick(10, 10, 10), 5, 5, 0)
    both = Mesh(np.concatenate([first.vertices, second.vertices]), np.concatenate([first.faces, second.faces + 8]))
    with collecting("cut") as remarks:
        result = flatten_scene(scene_of(both), 4)
    assert volume(*soup(result)) == pytest.approx(1200)
    assert measure_base_area(result) == pytest.approx(200)
    assert remarks.figures["bodies_after"] == 2
    assert remarks.notes == []


def test_a_scene_is_cut_at_one_height_and_loses_parts_below_it() -> None:
    scene = scene_of(
        move_mesh(brick(5, 5, 3, "low"), 0, 0, -8),
        move_mesh(brick(5, 5, 20, "tall"), 9, 0, -7),
        move_mesh(brick(), 30, 0, 5),
    )
    with collecting("cut") as remarks:
        result = flatten_scene(scene, 6)
    assert [part.name for part in result.parts] == ["tall", "brick"]
    assert bounds(result)[0, 2] == -2
    assert volume(*soup(result)) == pytest.approx(25 * 15 + 6000)
    assert [note.code for note in remarks.notes] == ["parts_below_cut"]
    assert "'low'" in remarks.notes[0].message
    assert remarks.figures["parts_cut"] == 1
    assert remarks.figures["parts_removed"] == 1
    assert len(result.meshes) == 2


def test_instances_with_equal_or_no_cuts_stay_shared() -> None:
    def at(x: float, z: float) -> np.ndarray:
        matrix = np.eye(4)
        matrix[:3, 3] = x, 0, z
        return matrix

    scene = Scene(
        (brick(),),
        (Part(0, at(0, 0)), Part(0, at(20, 0)), Part(0, at(40, 3)), Part(0, at(60, 50)), Part(0, at(80, 50))),
    )
    result = flatten_scene(scene, 10)
    assert [part.mesh for part in result.parts] == [1, 1, 2, 0, 0]
    assert [np.ptp(soup(replace(result, parts=(part,)))[0], axis=0)[2] for part in result.parts] == [20, 20, 23, 30, 30]
    assert [soup(replace(result, parts=(part,)))[0][:, 0].min() for part in result.parts] == [0, 20, 40, 60, 80]
    assert_valid(result)


def test_a_mirrored_and_rotated_instance_stays_outward() -> None:
    matrix = np.array([[0, -2.0, 0, 1], [-2, 0, 0, 2], [0, 0, 2, 3], [0, 0, 0, 1]])
    assert np.linalg.det(matrix[:3, :3]) < 0
    result = flatten_scene(Scene((sphere(5, 16),), (Part(0, matrix),)), 7)
    assert_valid(result)


@pytest.mark.parametrize("depth", [30, 31, 29.99999999])
def test_a_cut_above_the_model_is_rejected(depth: float) -> None:
    with pytest.raises(InvalidOption, match="flatten_base_mm"):
        flatten_scene(scene_of(brick()), depth)


def build_grid_tower() -> tuple[Scene, Mesh]:
    """Return a brick with split vertices at its edges and attributes that are functions of the position."""
    plain = brick(10, 10, 10)
    corners = plain.vertices[plain.faces].reshape(-1, 3)
    faces = np.arange(len(corners), dtype=np.int32).reshape(-1, 3)
    crossed = np.cross(corners[1::3] - corners[::3], corners[2::3] - corners[::3])
    normals = np.repeat(crossed / np.linalg.norm(crossed, axis=1)[:, None], 3, axis=0).astype(np.float32)
    mesh = Mesh(
        corners,
        faces,
        normals=normals,
        uv=(corners[:, [0, 2]] / 10).astype(np.float32),
        colors=np.stack([corners[:, 2] * 20, corners[:, 0] * 20, np.zeros(36), np.full(36, 255)], axis=1).astype(
            np.uint8
        ),
        face_material=(crossed[:, 0] > 0).astype(np.int32),
    )
    return Scene((mesh,), (Part(0),), (Material("walls"), Material("front"))), mesh


def test_attributes_are_interpolated_along_the_cut() -> None:
    scene, _ = build_grid_tower()
    result = flatten_scene(scene, 2.5)
    assert_valid(result)
    mesh = result.meshes[0]
    assert (
        mesh.uv is not None and mesh.colors is not None and mesh.normals is not None and mesh.face_material is not None
    )
    # the grid that vertices of the base snap to is finer than a millionth of the brick
    assert mesh.uv == pytest.approx(mesh.vertices[:, [0, 2]] / 10, abs=1e-5)
    assert np.abs(mesh.colors[:, 0] - mesh.vertices[:, 2] * 20).max() <= 1
    assert np.abs(mesh.colors[:, 1] - mesh.vertices[:, 0] * 20).max() <= 1
    assert np.linalg.norm(mesh.normals, axis=1) == pytest.approx(1, abs=1e-5)
    a, b, c = (mesh.vertices[mesh.faces[:, k]] for k in range(3))
    crossed = np.cross(b - a, c - a)
    crossed /= np.linalg.norm(crossed, axis=1)[:, None]
    for corner in range(3):
        assert mesh.normals[mesh.faces[:, corner]] == pytest.approx(crossed, abs=1e-4)
    front = crossed[:, 0] > 0.5
    assert (mesh.face_material == front).all()


def test_each_base_gets_the_material_of_its_surroundings() -> None:
    first, second = sphere(5, 16), move_mesh(sphere(5, 16), 20, 0, 0)
    mesh = Mesh(
        np.concatenate([first.vertices, second.vertices]),
        np.concatenate([first.faces, second.faces + len(first.vertices)]),
        face_material=np.repeat(np.array([1, 0], np.int32), [len(first.faces), len(second.faces)]),
    )
    result = flatten_scene(Scene((mesh,), (Part(0),), (Material("a"), Material("b"))), 4).meshes[0]
    assert result.face_material is not None
    right = result.vertices[result.faces].mean(axis=1)[:, 0] > 10
    assert (result.face_material == np.where(right, 0, 1)).all()


def test_an_open_surface_is_cut_and_noted() -> None:
    mesh = sphere(10, 24)
    holed = Mesh(mesh.vertices, mesh.faces[mesh.vertices[mesh.faces].mean(axis=1)[:, 0] < 8.5])
    with collecting("cut") as remarks:
        result = flatten_scene(scene_of(holed), 10)
    assert [note.code for note in remarks.notes] == ["open_section"]
    assert "repair" in remarks.notes[0].message
    assert bounds(result)[0, 2] == mesh.vertices[:, 2].min() + 10


def test_a_hole_away_from_the_cut_does_not_affect_the_base() -> None:
    mesh = sphere(10, 24)
    holed = Mesh(mesh.vertices, mesh.faces[mesh.vertices[mesh.faces].mean(axis=1)[:, 2] < 9])
    with collecting("cut") as remarks:
        result = flatten_scene(scene_of(holed), 4)
    assert remarks.notes == []
    assert remarks.figures["loops_closed"] == 1
    assert measure_base_area(result) > 100


@given(seed=st.integers(0, 1000))
@settings(max_examples=40)
def test_any_triangle_soup_is_cut_without_an_error(seed: int) -> None:
    random = np.random.default_rng(seed)
    vertices = random.integers(0, 4, (random.integers(4, 30), 3)).astype(np.float64)
    faces = random.integers(0, len(vertices), (random.integers(1, 60), 3))
    scene = scene_of(Mesh(vertices, faces))
    low, high = bounds(scene)
    depth = float(random.choice([0.5, 1, 1.5, 2]))
    if depth >= high[2] - low[2]:
        return
    try:
        result = flatten_scene(scene, depth)
    except InvalidOption:
        return
    assert bounds(result)[0, 2] >= low[2] + depth


def test_without_the_option_the_scene_is_unchanged() -> None:
    scene = scene_of(brick())
    assert run(scene, FlattenBaseOptions()) is scene


def join_meshes(*meshes: Mesh) -> Mesh:
    """Return one mesh with the faces of several."""
    starts = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    faces = [mesh.faces + np.int32(start) for mesh, start in zip(meshes, starts, strict=False)]
    return Mesh(np.concatenate([mesh.vertices for mesh in meshes]), np.concatenate(faces), name="both")


def flatten_and_collect(scene: Scene, depth: float) -> tuple[list[str], int, int]:
    with collecting("flatten-base") as remarks:
        flatten_scene(scene, depth)
    return (
        [note.code for note in remarks.notes],
        int(remarks.figures["shells_removed"]),
        int(remarks.figures["loops_closed"]),
    )


def test_a_shell_below_the_cut_and_a_missing_base_are_noted() -> None:
    low, high = brick(10, 10, 2), move_mesh(brick(10, 10, 10), 20, 0, 5)
    assert flatten_and_collect(scene_of(join_meshes(low, high)), 3) == (["shells_below_cut", "no_flat_base"], 1, 0)
    assert flatten_and_collect(scene_of(join_meshes(low, high)), 6) == (["shells_below_cut"], 1, 1)
    assert flatten_and_collect(scene_of(join_meshes(low, high)), 1) == ([], 0, 1)
    # separate parts are noted as parts
    assert flatten_and_collect(scene_of(low, high), 3) == (["parts_below_cut", "no_flat_base"], 0, 0)


def test_a_part_that_stands_on_the_plane_is_unchanged() -> None:
    low, high = brick(10, 10, 2), move_mesh(brick(10, 10, 10), 0, 0, 2)
    assert flatten_and_collect(scene_of(low, high), 2) == (["parts_below_cut"], 0, 0)
    tip = move_mesh(sphere(5, 16), 0, 0, 7)
    assert flatten_and_collect(scene_of(low, tip), 2) == (["parts_below_cut", "no_flat_base"], 0, 0)


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(2, 8))
def test_a_scene_is_cut_like_each_of_its_meshes_alone(seed: int, count: int) -> None:
    random = np.random.default_rng(seed)
    # these two fix the height of the cut and the size of the grid; one is removed, the other stays
    ground, sky = move_mesh(brick(1, 1, 1), 1000, 0, 0), move_mesh(brick(1, 1, 1), 1000, 0, 30)
    meshes = []
    for _ in range(count):
        mesh = join_meshes(sphere(random.uniform(2, 6), 8), move_mesh(brick(3, 3, 1), 0, 0, random.uniform(0, 7)))
        is_kept = random.random(len(mesh.faces)) < random.choice([0.9, 2])
        meshes.append(Mesh(mesh.vertices + [0, 0, random.uniform(6, 9)], mesh.faces[is_kept]))
    with collecting("flatten-base") as remarks:
        together = flatten_scene(scene_of(ground, sky, *meshes), 6)
    left = iter([together.meshes[part.mesh] for part in together.parts[1:]])
    alone: dict[str, float] = dict.fromkeys(("bodies_after", "shells_removed", "loops_closed"), 0)
    for mesh in meshes:
        with collecting("flatten-base") as mesh_remarks:
            for part in (result := flatten_scene(scene_of(ground, sky, mesh), 6)).parts[1:]:
                other = next(left)
                assert other.vertices.tobytes() == result.meshes[part.mesh].vertices.tobytes()
                assert other.faces.tobytes() == result.meshes[part.mesh].faces.tobytes()
        alone = {name: total + float(str(mesh_remarks.figures[name])) for name, total in alone.items()}
    assert next(left, None) is None
    alone["bodies_after"] -= count - 1  # the sky is one in all of them
    assert {name: remarks.figures[name] for name in alone} == alone
