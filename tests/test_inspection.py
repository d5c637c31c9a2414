"""Inspection of models with known figures."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st

from meshhub import Registry, Target
from meshhub.model.scene import Material, Mesh, Part, Scene
from meshhub.pipeline.inspection import inspect
from models import brick, move_mesh, scene_of, sphere

pytestmark = pytest.mark.once


def join_meshes(*meshes: Mesh) -> Mesh:
    first = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    return Mesh(
        np.concatenate([mesh.vertices for mesh in meshes]),
        np.concatenate([mesh.faces + start for mesh, start in zip(meshes, first, strict=False)]),
    )


def test_a_brick_is_described_exactly() -> None:
    inspection = inspect(scene_of(move_mesh(brick(10, 20, 30), 1, 2, 3)))
    assert inspection.size_mm == (10, 20, 30)
    assert inspection.bounds_mm == ((1, 2, 3), (11, 22, 33))
    assert (inspection.faces, inspection.vertices, inspection.parts, inspection.bodies, inspection.holes) == (
        12,
        8,
        1,
        1,
        0,
    )
    assert (
        inspection.open_edges,
        inspection.nonmanifold_edges,
        inspection.inconsistent_edges,
        inspection.degenerate_faces,
    ) == (0, 0, 0, 0)
    assert inspection.watertight
    assert inspection.volume_mm3 == pytest.approx(6000)
    assert inspection.area_mm2 == pytest.approx(2200)
    assert inspection.features == ("names",)


def test_seams_are_not_holes() -> None:
    mesh = brick()
    corners = mesh.vertices[mesh.faces].reshape(-1, 3)
    inspection = inspect(scene_of(Mesh(corners, np.arange(36).reshape(-1, 3), uv=np.zeros((36, 2), np.float32))))
    assert inspection.watertight
    assert inspection.vertices == 8
    assert "uv" in inspection.features


def test_holes_are_loops_of_open_edges() -> None:
    mesh = sphere(10, 16)
    middle = mesh.vertices[mesh.faces].mean(axis=1)
    inspection = inspect(scene_of(Mesh(mesh.vertices, mesh.faces[np.abs(middle[:, 2]) < 9])))
    assert (inspection.holes, inspection.open_edges, inspection.bodies) == (2, 32, 1)
    assert not inspection.watertight
    assert inspection.volume_mm3 is None
    # two faces that share an edge leave one hole
    solid = brick()
    assert inspect(scene_of(Mesh(solid.vertices, solid.faces[2:]))).holes == 1


def test_non_manifold_and_inconsistent_edges_are_counted() -> None:
    mesh = brick()
    flipped = mesh.faces.copy()
    flipped[0] = flipped[0, ::-1]
    inspection = inspect(scene_of(Mesh(mesh.vertices, flipped)))
    assert (inspection.open_edges, inspection.inconsistent_edges, inspection.watertight, inspection.volume_mm3) == (
        0,
        3,
        False,
        None,
    )
    beside = inspect(scene_of(join_meshes(mesh, move_mesh(mesh, 10, 20, 0))))
    assert (beside.nonmanifold_edges, beside.open_edges, beside.watertight) == (1, 0, False)
    # yet every edge is run through as often one way as the other: there is a volume
    assert beside.volume_mm3 == pytest.approx(12_000)


def test_degenerate_faces_are_counted_and_otherwise_ignored() -> None:
    mesh = brick()
    inspection = inspect(scene_of(Mesh(mesh.vertices, np.concatenate([mesh.faces, [[0, 0, 1], [3, 3, 3]]]))))
    assert inspection.degenerate_faces == 2
    assert inspection.watertight
    assert inspection.volume_mm3 == pytest.approx(6000)


def test_bodies_are_counted_per_part_and_instance() -> None:
    mesh = join_meshes(brick(), move_mesh(brick(), 50, 0, 0), Mesh(brick(4, 4, 4).vertices + 2, brick().faces[:, ::-1]))
    doubled = np.diag([2.0, 2, 2, 1])
    mirrored = np.diag([-1.0, 1, 1, 1])
    stretched = np.diag([1.0, 1, 3, 1])
    scene = Scene((mesh,), (Part(0), Part(0, doubled), Part(0, mirrored), Part(0, stretched)))
    inspection = inspect(scene)
    own = 12_000 - 64
    assert (inspection.parts, inspection.bodies, inspection.cavities, inspection.faces) == (4, 8, 4, 144)
    assert [(part.bodies, part.cavities) for part in inspection.parts_listed] == [(2, 1)] * 4
    assert inspection.volume_mm3 == pytest.approx(own * (1 + 8 + 1 + 3))
    assert [part.volume_mm3 for part in inspection.parts_listed] == pytest.approx([own, own * 8, own, own * 3])
    area = 4400 + 96
    tall = 2 * (2 * (10 * 20 + 10 * 90 + 20 * 90)) + 2 * 16 + 4 * 48
    assert inspection.area_mm2 == pytest.approx(area * (1 + 4 + 1) + tall)
    assert inspection.parts_listed[1].size_mm == (120, 40, 60)
    assert inspection.features == ("instances",)


def invert(mesh: Mesh) -> Mesh:
    return Mesh(mesh.vertices, mesh.faces[:, ::-1])


def build_cube(size: float, margin: float, turned: bool = False) -> Mesh:
    """Return a cube whose lowest corner has this distance from the origin along each axis."""
    cube = move_mesh(brick(size, size, size), margin, margin, margin)
    return invert(cube) if turned else cube


def test_a_cavity_is_not_a_body() -> None:
    hollow = join_meshes(build_cube(10, 0), build_cube(8, 1, turned=True))
    inspection = inspect(scene_of(hollow))
    assert (inspection.bodies, inspection.cavities, inspection.watertight) == (1, 1, True)
    assert inspection.volume_mm3 == pytest.approx(1000 - 512)
    inside_out = inspect(scene_of(invert(hollow)))
    assert (inside_out.bodies, inside_out.cavities) == (1, 1)
    # a ball in a rattle is a body, and may be hollow too
    rattle = inspect(scene_of(join_meshes(hollow, build_cube(6, 2), build_cube(4, 3, turned=True))))
    assert (rattle.bodies, rattle.cavities) == (2, 2)
    two = inspect(scene_of(join_meshes(hollow, build_cube(0.5, 9.2, turned=True))))
    assert (two.bodies, two.cavities) == (1, 2)


def test_a_cavity_lies_in_a_closed_outward_shell_of_its_mesh() -> None:
    beside = join_meshes(build_cube(10, 0), build_cube(4, 20, turned=True))
    within_another_mesh = scene_of(build_cube(10, 0), build_cube(8, 1, turned=True))
    outward = join_meshes(build_cube(10, 0), build_cube(8, 1))
    opened = build_cube(8, 1, turned=True)
    inner_open = join_meshes(build_cube(10, 0), Mesh(opened.vertices, opened.faces[1:]))
    outer = build_cube(10, 0)
    outer_open = join_meshes(Mesh(outer.vertices, outer.faces[1:]), build_cube(8, 1, turned=True))
    for scene in (within_another_mesh, *map(scene_of, (beside, outward, inner_open, outer_open))):
        inspection = inspect(scene)
        assert (inspection.bodies, inspection.cavities) == (2, 0)


def test_many_cavities_of_one_body_are_counted() -> None:
    bubbles = [
        invert(move_mesh(brick(1, 1, 1), 1 + 2 * x, 1 + 2 * y, 1 + 2 * z))
        for x in range(9) for y in range(9) for z in range(9)
    ]  # fmt: skip
    inspection = inspect(scene_of(join_meshes(brick(20, 20, 20), *bubbles)))
    assert (inspection.bodies, inspection.cavities) == (1, 729)


def test_coincident_meshes_are_separate_bodies() -> None:
    inspection = inspect(scene_of(brick(), brick()))
    assert inspection.watertight
    assert (inspection.bodies, inspection.nonmanifold_edges, inspection.vertices) == (2, 0, 16)


def test_the_list_of_parts_is_truncated() -> None:
    inspection = inspect(Scene((brick(),), tuple(Part(0, name=f"p{k}") for k in range(150))))
    assert inspection.parts == 150
    assert [part.name for part in inspection.parts_listed] == [f"p{k}" for k in range(100)]


def test_volumes_far_from_the_origin_are_exact() -> None:
    assert inspect(scene_of(move_mesh(brick(), 1e7, -1e7, 1e7))).volume_mm3 == pytest.approx(6000, rel=1e-6)


def test_an_inside_out_body_has_a_negative_volume() -> None:
    assert inspect(scene_of(Mesh(brick().vertices, brick().faces[:, ::-1]))).volume_mm3 == pytest.approx(-6000)


def test_an_inspection_lists_features_and_becomes_json() -> None:
    mesh = Mesh(brick().vertices, brick().faces, face_material=np.zeros(12, np.int32))
    inspection = inspect(Scene((mesh,), (Part(0, name="lid"),), (Material("red"),)))
    assert inspection.features == ("materials", "names")
    payload = msgspec.json.decode(msgspec.json.encode(inspection))
    assert payload["parts_listed"][0]["name"] == "lid"


@given(radius=st.floats(0.1, 1000), segments=st.integers(3, 20).map(lambda half: 2 * half))
@settings(deadline=None)
def test_figures_of_spheres_agree_with_trimesh(radius: float, segments: int) -> None:
    mesh = sphere(radius, segments)
    judge = trimesh.Trimesh(mesh.vertices, mesh.faces, process=False)
    inspection = inspect(scene_of(mesh))
    assert inspection.volume_mm3 == pytest.approx(judge.volume)
    assert inspection.area_mm2 == pytest.approx(judge.area)
    assert inspection.watertight == judge.is_watertight
    assert inspection.volume_mm3 is not None and inspection.volume_mm3 < 4 / 3 * math.pi * radius**3


@given(seed=st.integers(0, 5000))
@settings(deadline=None, max_examples=60)
def test_figures_of_any_triangle_soup_agree_with_trimesh(seed: int) -> None:
    random = np.random.default_rng(seed)
    vertices = random.integers(0, 4, (12, 3)).astype(np.float64)
    faces = random.integers(0, 12, (random.integers(1, 40), 3))
    inspection = inspect(scene_of(Mesh(vertices, faces)))
    judge = trimesh.Trimesh(vertices, faces, process=False)
    judge.merge_vertices()
    proper_faces = judge.faces[(np.diff(np.sort(judge.faces, axis=1), axis=1) > 0).all(axis=1)]
    _, counts = np.unique(np.sort(trimesh.geometry.faces_to_edges(proper_faces), axis=1), axis=0, return_counts=True)
    assert inspection.open_edges == (counts == 1).sum()
    assert inspection.nonmanifold_edges == (counts > 2).sum()
    assert inspection.area_mm2 == pytest.approx(judge.area)
    assert (inspection.holes > 0) == (inspection.open_edges > 0)
    if len(proper_faces):
        bodies = trimesh.graph.connected_components(
            trimesh.graph.face_adjacency(proper_faces) if len(proper_faces) > 1 else np.empty((0, 2), int),
            nodes=np.arange(len(proper_faces)),
        )
        assert inspection.bodies <= len(bodies)


@pytest.mark.parametrize("offset", [0.0, 100.1])
def test_sizes_have_no_noise_of_float32(offset: float) -> None:
    """0.02 m in float32 is 20.000000298 mm."""
    meters = (np.array([[0, 0, 0], [0.02, 0, 0], [0, 0.0303, 0], [0, 0, 0.1]]) + offset / 1000).astype(np.float32)
    mesh = Mesh(meters.astype(np.float64) * 1000, np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]]))
    scene = Scene((mesh,), (Part(0),))
    with Registry(entry_points=False) as registry:
        model = registry.inspect(scene).model
        report = registry.convert(scene, Target(), target="stl")
    assert model.size_mm == model.parts_listed[0].size_mm == (20.0, 30.3, 100.0)
    assert model.bounds_mm == ((offset,) * 3, (offset + 20, offset + 30.3, offset + 100))
    assert report.source.size_mm == report.target.size_mm == (20.0, 30.3, 100.0)
