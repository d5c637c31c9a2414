from __future__ import annotations

from dataclasses import replace

import manifold3d
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshhub.builtin_plugins.optimize import OptimizeOptions, meshlab
from meshhub.builtin_plugins.optimize.operation import run
from meshhub.model.notes import Remarks, collecting
from meshhub.model.scene import Float64, Image, Int32, Material, Mesh, Part, Scene
from meshhub.toolkit.geometry import soup
from models import brick, edge_counts, moved_by, scene_of, sphere, volume

pytestmark = pytest.mark.once


@pytest.fixture(params=["meshlab", "base"])
def half(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With the better half of reduction, and without it."""
    if request.param == "meshlab":
        pytest.importorskip("pymeshlab", reason="the second stage needs the extra meshlab")
    else:
        monkeypatch.setattr(meshlab, "is_available", lambda: False)
    return str(request.param)


def reduced(scene: Scene, target: int) -> tuple[Scene, Remarks]:
    with collecting("optimize") as heard:
        made = run(scene, OptimizeOptions(optimize_target_faces=target))
    return made, heard


def welded_as_stl(vertices: Float64, faces: Int32) -> tuple[Float64, Int32]:
    points, index = np.unique(vertices.astype(np.float32) + np.float32(0), axis=0, return_inverse=True)
    return points.astype(np.float64), index.ravel()[faces]


def assert_closed(scene: Scene) -> None:
    for part in scene.parts:
        points, faces = welded_as_stl(*soup(replace(scene, parts=(part,))))
        assert (np.diff(np.sort(faces, axis=1), axis=1) > 0).all()
        assert edge_counts(faces) == (0, 0)
        directed = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
        assert len(np.unique(directed, axis=0)) == len(directed)
        assert volume(points, faces) > 0


def torus(around: int = 64, across: int = 32) -> Mesh:
    section = manifold3d.CrossSection.circle(3, across).translate([10, 0])
    made = manifold3d.Manifold.revolve(section, around).to_mesh()
    return Mesh(made.vert_properties[:, :3].astype(np.float64), made.tri_verts.astype(np.int32), name="torus")


def plate(steps: int = 60) -> Mesh:
    """A flat square, 10 by 10, of steps × steps × 2 faces; open."""
    at = np.linspace(0, 10, steps + 1)
    x, y = np.meshgrid(at, at)
    corner = (np.arange(steps)[:, None] * (steps + 1) + np.arange(steps)).ravel()
    a, b, c, d = corner, corner + 1, corner + steps + 2, corner + steps + 1
    return Mesh(
        np.stack([x.ravel(), y.ravel(), np.zeros(x.size)], axis=1),
        np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)]),
        name="plate",
    )


@given(target=st.integers(4, 4000), shape=st.sampled_from([sphere(10, 48), torus()]))
@settings(max_examples=40, deadline=None)
def test_closed_stays_closed_and_the_target_is_met(target: int, shape: Mesh) -> None:
    made, heard = reduced(scene_of(shape), target)
    assert_closed(made)
    if target >= len(shape.faces):
        assert made.face_count == len(shape.faces)
    elif target >= 60:
        assert abs(made.face_count - target) <= 1
        assert heard.notes == []
    if target >= 400:
        assert volume(*soup(made)) == pytest.approx(volume(shape.vertices, shape.faces), rel=0.03)


def test_both_halves_meet_the_target(half: str) -> None:
    def off_sphere(points: Float64) -> Float64:
        return np.abs(np.linalg.norm(points, axis=1) - 10)

    def off_torus(points: Float64) -> Float64:
        return np.abs(np.hypot(np.hypot(points[:, 0], points[:, 1]) - 10, points[:, 2]) - 3)

    for shape, target, off in ((sphere(10, 64), 500, off_sphere), (torus(), 300, off_torus)):
        made, heard = reduced(scene_of(shape), target)
        assert abs(made.face_count - target) <= 1
        assert_closed(made)
        assert heard.notes == []
        assert heard.figures == {"faces_before": len(shape.faces), "faces_after": made.face_count}
        vertices = made.meshes[0].vertices
        middles = vertices[made.meshes[0].faces].mean(axis=1)
        assert off(vertices).max() < 0.3
        assert off(middles).max() < 0.6


def test_enough_is_left_alone() -> None:
    scene = scene_of(brick())
    for target in (12, 13, 10_000):
        made, heard = reduced(scene, target)
        assert made is scene
        assert [note.code for note in heard.notes] == ["already_below_target"]


def test_instances_count_and_stay_shared(half: str) -> None:
    there = np.eye(4)
    there[:3, 3] = 50, 0, 0
    ball = sphere(10, 48)
    scene = Scene((ball, torus()), (Part(0, name="a"), Part(0, there, name="b"), Part(1)))
    made, _ = reduced(scene, 2000)
    assert len(made.meshes) == 2
    assert [part.name for part in made.parts] == ["a", "b", ""]
    assert abs(made.face_count - 2000) <= 1
    assert_closed(made)
    # each keeps its share
    assert len(made.meshes[0].faces) / len(ball.faces) == pytest.approx(2000 / scene.face_count, rel=0.02)


def test_every_body_survives(half: str) -> None:
    balls = [moved_by(sphere(4, 16), 10 * (k % 5), 10 * (k // 5), 0) for k in range(25)]
    starts = np.cumsum([0, *(len(ball.vertices) for ball in balls)])
    one = Mesh(
        np.concatenate([ball.vertices for ball in balls]),
        np.concatenate([ball.faces + start for ball, start in zip(balls, starts, strict=False)]),
    )
    made, _ = reduced(scene_of(one), 1000)
    assert_closed(made)
    centres = np.round(made.meshes[0].vertices[made.meshes[0].faces].mean(axis=1) / 10).astype(int)
    assert len(np.unique(centres[:, :2], axis=0)) == 25
    apart, _ = reduced(scene_of(*balls), 1000)
    assert len(apart.parts) == 25
    assert abs(apart.face_count - 1000) <= 1
    assert_closed(apart)


def test_what_cannot_be_reached_is_said(half: str) -> None:
    bricks = [moved_by(brick(), 40 * k, 0, 0) for k in range(5)]
    made, heard = reduced(scene_of(*bricks), 10)
    assert_closed(made)
    assert made.face_count >= 20
    assert [note.code for note in heard.notes] == ["target_faces_missed"]
    assert str(made.face_count) in heard.notes[0].message


def test_flat_faces_cost_nothing(half: str) -> None:
    fine = manifold3d.Manifold.cube([10, 20, 30]).refine(12).to_mesh()
    mesh = Mesh(fine.vert_properties[:, :3].astype(np.float64), fine.tri_verts.astype(np.int32))
    made, _ = reduced(scene_of(mesh), 100)
    assert_closed(made)
    assert volume(*soup(made)) == pytest.approx(6000, rel=1e-4)


def test_a_sheet_keeps_its_outline(half: str) -> None:
    made, _ = reduced(scene_of(plate()), 1500)
    vertices, faces = soup(made)
    assert made.face_count <= 1501
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    assert np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2 == pytest.approx(100, rel=1e-6)


def halves(mesh: Mesh) -> Scene:
    """Red on the left, blue on the right."""
    right = mesh.vertices[mesh.faces].mean(axis=1)[:, 0] > 5
    painted = replace(mesh, face_material=right.astype(np.int32))
    return Scene((painted,), (Part(0),), (Material("red"), Material("blue")))


def test_materials_keep_their_border_to_the_last_bit(half: str) -> None:
    scene = halves(plate())
    made, heard = reduced(scene, 2000)
    mesh = made.meshes[0]
    assert mesh.face_material is not None
    corners = mesh.vertices[mesh.faces][:, :, 0]
    middle = np.linspace(0, 10, 61)[30]
    assert (corners[mesh.face_material == 0] <= middle + 1e-9).all()
    assert (corners[mesh.face_material == 1] >= middle - 1e-9).all()
    assert heard.notes == []


def test_materials_follow_the_surface_when_the_border_must_move(half: str) -> None:
    ball = sphere(10, 64)
    made, heard = reduced(halves(replace(ball, vertices=ball.vertices + [5, 0, 0])), 120)
    assert abs(made.face_count - 120) <= 1
    assert_closed(made)
    mesh = made.meshes[0]
    assert mesh.face_material is not None
    x = mesh.vertices[mesh.faces].mean(axis=1)[:, 0]
    assert (mesh.face_material[x > 7] == 1).all()
    assert (mesh.face_material[x < 3] == 0).all()
    assert [note.code for note in heard.notes] == ["seams_approximated"]


def test_smooth_colours_survive(half: str) -> None:
    ball = sphere(10, 96)
    colors = np.concatenate([(ball.vertices + 10) * 12, np.full((len(ball.vertices), 1), 255)], axis=1).astype(np.uint8)
    for target in (300, 6000):
        made, _ = reduced(scene_of(replace(ball, colors=colors)), target)
        assert_closed(made)
        mesh = made.meshes[0]
        assert mesh.colors is not None
        wanted = np.clip((mesh.vertices + 10) * 12, 0, 255)
        assert np.abs(mesh.colors[:, :3] - wanted).max() < 25
        assert (mesh.colors[:, 3] == 255).all()


def test_faces_of_one_colour_each_keep_clean_colours(half: str) -> None:
    ball = sphere(10, 48)
    corners = ball.vertices[ball.faces].reshape(-1, 3)
    top = np.repeat(corners.reshape(-1, 3, 3)[:, :, 2].mean(axis=1) > 0, 3)
    colors = np.where(top[:, None], [255, 0, 0, 255], [0, 0, 255, 255]).astype(np.uint8)
    soupy = Mesh(corners, np.arange(len(corners)).reshape(-1, 3), colors=colors)
    made, _ = reduced(scene_of(soupy), 600)
    assert_closed(made)
    mesh = made.meshes[0]
    assert mesh.colors is not None
    assert {tuple(color) for color in mesh.colors.tolist()} == {(255, 0, 0, 255), (0, 0, 255, 255)}
    up = mesh.vertices[mesh.faces].mean(axis=1)[:, 2]
    red = mesh.colors[mesh.faces[:, 0], 0] == 255
    assert (mesh.colors[mesh.faces, 0] == mesh.colors[mesh.faces[:, :1], 0]).all()
    assert red[up > 1.5].all()
    assert not red[up < -1.5].any()


def wrapped(segments: int = 96) -> Scene:
    """A tube whose texture goes around it once, with a seam where it begins."""
    around, up = segments, 24
    u, v = np.meshgrid(np.linspace(0, 1, around + 1), np.linspace(0, 1, up + 1))
    angle = np.where(u == 1, 0, u) * 2 * np.pi
    vertices = np.stack([10 * np.cos(angle), 10 * np.sin(angle), 20 * v], axis=2).reshape(-1, 3)
    corner = (np.arange(up)[:, None] * (around + 1) + np.arange(around)).ravel()
    a, b, c, d = corner, corner + 1, corner + around + 2, corner + around + 1
    mesh = Mesh(
        vertices,
        np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)]),
        uv=np.stack([u.ravel(), v.ravel()], axis=1),
        face_material=np.zeros(2 * around * up, np.int32),
    )
    picture = Image(b"\x89PNG", "image/png")
    return Scene((mesh,), (Part(0),), (Material("skin", base_color_image=0),), (picture,))


@pytest.mark.parametrize("target", [1200, 60])
def test_a_texture_never_runs_backward_across_its_seam(half: str, target: int) -> None:
    made, _ = reduced(wrapped(), target)
    mesh = made.meshes[0]
    assert mesh.uv is not None and mesh.face_material is not None
    assert made.images and (mesh.face_material == 0).all()
    across = np.ptp(mesh.uv[mesh.faces][:, :, 0], axis=1)
    assert across.max() < 0.5
    u = np.mod(np.arctan2(mesh.vertices[:, 1], mesh.vertices[:, 0]) / (2 * np.pi), 1)
    off = np.abs(mesh.uv[:, 0] - u)
    assert np.minimum(off, 1 - off).max() < (0.01 if target == 1200 else 0.2)
    assert np.abs(mesh.uv[:, 1] - mesh.vertices[:, 2] / 20).max() < 0.05


def test_the_far_side_of_a_thin_wall_keeps_its_own_colour(half: str) -> None:
    fine = manifold3d.Manifold.cube([40, 40, 0.2]).refine(40).to_mesh()
    mesh = Mesh(fine.vert_properties[:, :3].astype(np.float64), fine.tri_verts.astype(np.int32))
    a, b, c = (mesh.vertices[mesh.faces[:, k]] for k in range(3))
    up = np.cross(b - a, c - a)[:, 2] > 0
    scene = Scene((replace(mesh, face_material=up.astype(np.int32)),), (Part(0),), (Material("a"), Material("b")))
    made, _ = reduced(scene, 40)
    thin = made.meshes[0]
    a, b, c = (thin.vertices[thin.faces[:, k]] for k in range(3))
    normal = np.cross(b - a, c - a)
    normal /= np.linalg.norm(normal, axis=1)[:, None]
    assert thin.face_material is not None
    assert (thin.face_material[normal[:, 2] > 0.9] == 1).all()
    assert (thin.face_material[normal[:, 2] < -0.9] == 0).all()


@given(seed=st.integers(0, 3000))
@settings(max_examples=60, deadline=None)
def test_any_soup_of_triangles_is_reduced_without_a_fault(seed: int) -> None:
    random = np.random.default_rng(seed)
    vertices = random.integers(0, 4, (int(random.integers(3, 40)), 3)).astype(np.float64)
    faces = random.integers(0, len(vertices), (int(random.integers(5, 120)), 3)).astype(np.int32)
    kinds = random.integers(-1, 2, len(faces))
    mesh = Mesh(vertices, faces, face_material=kinds, colors=random.integers(0, 255, (len(vertices), 4)))
    scene = Scene((mesh,), (Part(0),), (Material("a"), Material("b")))
    made, _ = reduced(scene, int(random.integers(4, 40)))
    assert 0 < made.face_count <= len(faces)
    assert np.isfinite(soup(made)[0]).all()


def test_far_away_and_tiny_models(half: str) -> None:
    ball = sphere(0.001, 48)
    made, _ = reduced(scene_of(ball), 200)
    assert abs(made.face_count - 200) <= 1
    assert volume(*soup(made)) == pytest.approx(volume(ball.vertices, ball.faces), rel=0.1)
    made, _ = reduced(scene_of(moved_by(sphere(10, 48), 1e5, 1e5, 0)), 200)
    assert abs(made.face_count - 200) <= 1
    assert_closed(made)


def test_the_same_again(half: str) -> None:
    one, _ = reduced(halves(torus()), 500)
    other, _ = reduced(halves(torus()), 500)
    assert one.meshes[0].vertices.tobytes() == other.meshes[0].vertices.tobytes()
    assert one.meshes[0].faces.tobytes() == other.meshes[0].faces.tobytes()


def test_without_the_option_nothing_happens() -> None:
    scene = scene_of(sphere())
    assert run(scene, OptimizeOptions()) is scene


def test_normals_go_from_all_or_from_none() -> None:
    ball, small = sphere(10, 32), brick()
    scene = scene_of(
        replace(ball, normals=(ball.vertices / 10).astype(np.float32)),
        replace(small, normals=np.tile(np.array([0, 0, 1], np.float32), (8, 1))),
    )
    assert "normals" in reduced(scene, 10_000)[0].features()
    assert "normals" not in reduced(scene, 300)[0].features()
