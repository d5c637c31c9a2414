from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import manifold3d
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshhub import InvalidOption, Registry
from meshhub.builtin_plugins.optimize import OptimizeOptions, bounded_error
from meshhub.builtin_plugins.optimize.operation import run
from meshhub.model.deadline import bounded_by
from meshhub.model.notes import Remarks, collecting
from meshhub.model.scene import Float64, Image, Material, Mesh, Part, Scene
from meshhub.toolkit.geometry import bounds_of_parts, soup
from models import assert_valid, brick, move_mesh, scene_of, sphere, volume

HEART_GEARS = "3MFConsortium+3mf-samples__examples_core_heartgears.3mf"

pytestmark = pytest.mark.once


def reduce(scene: Scene, target: int) -> tuple[Scene, Remarks]:
    with collecting("optimize") as remarks:
        result = run(scene, OptimizeOptions(optimize_target_faces=target))
    return result, remarks


def build_torus(around: int = 64, across: int = 32) -> Mesh:
    section = manifold3d.CrossSection.circle(3, across).translate([10, 0])
    result = manifold3d.Manifold.revolve(section, around).to_mesh()
    return Mesh(result.vert_properties[:, :3].astype(np.float64), result.tri_verts.astype(np.int32), name="torus")


def build_plate(steps: int = 60) -> Mesh:
    """Return an open flat square, 10 by 10, of steps × steps × 2 faces."""
    at = np.linspace(0, 10, steps + 1)
    x, y = np.meshgrid(at, at)
    corner = (np.arange(steps)[:, None] * (steps + 1) + np.arange(steps)).ravel()
    a, b, c, d = corner, corner + 1, corner + steps + 2, corner + steps + 1
    return Mesh(
        np.stack([x.ravel(), y.ravel(), np.zeros(x.size)], axis=1),
        np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)]),
        name="plate",
    )


@given(target=st.integers(4, 4000), shape=st.sampled_from([sphere(10, 48), build_torus()]))
@settings(max_examples=10)
def test_closed_stays_closed_and_the_target_is_met(target: int, shape: Mesh) -> None:
    result, remarks = reduce(scene_of(shape), target)
    assert_valid(result)
    if target >= len(shape.faces):
        assert result.face_count == len(shape.faces)
    elif target >= 60:
        assert abs(result.face_count - target) <= 1
        assert {note.code for note in remarks.notes} <= {"size_changed"}
    if target >= 400:
        assert volume(*soup(result)) == pytest.approx(volume(shape.vertices, shape.faces), rel=0.03)


def test_the_result_is_near_the_surface() -> None:
    def distance_to_sphere(points: Float64) -> Float64:
        return np.abs(np.linalg.norm(points, axis=1) - 10)

    def distance_to_torus(points: Float64) -> Float64:
        return np.abs(np.hypot(np.hypot(points[:, 0], points[:, 1]) - 10, points[:, 2]) - 3)

    for shape, target, off in ((sphere(10, 64), 500, distance_to_sphere), (build_torus(), 300, distance_to_torus)):
        result, remarks = reduce(scene_of(shape), target)
        assert abs(result.face_count - target) <= 1
        assert_valid(result)
        assert {note.code for note in remarks.notes} <= {"size_changed"}
        assert remarks.figures == {"faces_before": len(shape.faces), "faces_after": result.face_count}
        vertices = result.meshes[0].vertices
        middles = vertices[result.meshes[0].faces].mean(axis=1)
        assert off(vertices).max() < 0.3
        assert off(middles).max() < 0.6


def test_a_size_that_changes_by_more_than_a_percent_is_noted() -> None:
    scene = scene_of(sphere(10, 32))
    before = np.ptp(scene.meshes[0].vertices, axis=0)
    for target, is_noted in ((4, True), (1_000, False)):
        result, remarks = reduce(scene, target)
        change = np.ptp(result.meshes[0].vertices, axis=0) / before - 1
        messages = [remark.message for remark in remarks.notes if remark.code == "size_changed"]
        assert bool(messages) == is_noted == bool((np.abs(change) > 0.01).any())
        if messages:
            axis = int(np.abs(change).argmax())
            assert f"along {'XYZ'[axis]} by {change[axis]:+.1%}, from " in messages[0]


def test_a_mesh_below_the_target_is_unchanged() -> None:
    scene = scene_of(brick())
    for target in (12, 13, 10_000):
        result, remarks = reduce(scene, target)
        assert result is scene
        assert [note.code for note in remarks.notes] == ["already_below_target"]


def test_instances_count_and_stay_shared() -> None:
    there = np.eye(4)
    there[:3, 3] = 50, 0, 0
    ball = sphere(10, 48)
    scene = Scene((ball, build_torus()), (Part(0, name="a"), Part(0, there, name="b"), Part(1)))
    result, _ = reduce(scene, 2000)
    assert len(result.meshes) == 2
    assert [part.name for part in result.parts] == ["a", "b", ""]
    assert abs(result.face_count - 2000) <= 1
    assert_valid(result)


def test_meshes_get_the_faces_that_their_shape_needs() -> None:
    fine = manifold3d.Manifold.cube([20, 20, 20]).refine(24).to_mesh()
    cube = Mesh(fine.vert_properties[:, :3].astype(np.float64), fine.tri_verts.astype(np.int32))
    result, _ = reduce(scene_of(cube, move_mesh(sphere(10, 48), 40, 0, 0)), 1000)
    assert_valid(result)
    assert result.face_count == 1000
    assert len(result.meshes[0].faces) < 60


def test_every_body_survives() -> None:
    balls = [move_mesh(sphere(4, 16), 10 * (k % 5), 10 * (k // 5), 0) for k in range(25)]
    starts = np.cumsum([0, *(len(ball.vertices) for ball in balls)])
    body = Mesh(
        np.concatenate([ball.vertices for ball in balls]),
        np.concatenate([ball.faces + start for ball, start in zip(balls, starts, strict=False)]),
    )
    result, _ = reduce(scene_of(body), 1000)
    assert_valid(result)
    centers = np.round(result.meshes[0].vertices[result.meshes[0].faces].mean(axis=1) / 10).astype(int)
    assert len(np.unique(centers[:, :2], axis=0)) == 25
    apart, _ = reduce(scene_of(*balls), 1000)
    assert len(apart.parts) == 25
    assert abs(apart.face_count - 1000) <= 1
    assert_valid(apart)


def test_an_unreachable_target_is_noted() -> None:
    bricks = [move_mesh(brick(), 40 * k, 0, 0) for k in range(5)]
    result, remarks = reduce(scene_of(*bricks), 10)
    assert_valid(result)
    assert result.face_count >= 20
    (missed,) = [note for note in remarks.notes if note.code != "size_changed"]
    assert missed.code == "target_faces_missed"
    assert str(result.face_count) in missed.message


def test_flat_regions_are_reduced_without_deviation() -> None:
    fine = manifold3d.Manifold.cube([10, 20, 30]).refine(12).to_mesh()
    mesh = Mesh(fine.vert_properties[:, :3].astype(np.float64), fine.tri_verts.astype(np.int32))
    result, _ = reduce(scene_of(mesh), 100)
    assert_valid(result)
    assert volume(*soup(result)) == pytest.approx(6000, rel=1e-4)


def test_a_sheet_keeps_its_outline() -> None:
    result, _ = reduce(scene_of(build_plate()), 1500)
    vertices, faces = soup(result)
    assert result.face_count <= 1501
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    assert np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2 == pytest.approx(100, rel=1e-6)


def build_two_colored(mesh: Mesh) -> Scene:
    """Return the mesh with red faces on the left and blue ones on the right."""
    right = mesh.vertices[mesh.faces].mean(axis=1)[:, 0] > 5
    painted = replace(mesh, face_material=right.astype(np.int32))
    return Scene((painted,), (Part(0),), (Material("red"), Material("blue")))


def test_borders_between_materials_stay_exact() -> None:
    scene = build_two_colored(build_plate())
    result, remarks = reduce(scene, 2000)
    mesh = result.meshes[0]
    assert mesh.face_material is not None
    corners = mesh.vertices[mesh.faces][:, :, 0]
    middle = np.linspace(0, 10, 61)[30]
    assert (corners[mesh.face_material == 0] <= middle + 1e-9).all()
    assert (corners[mesh.face_material == 1] >= middle - 1e-9).all()
    assert remarks.notes == []


def test_materials_follow_the_surface_if_their_border_moves() -> None:
    ball = sphere(10, 64)
    result, remarks = reduce(build_two_colored(replace(ball, vertices=ball.vertices + [5, 0, 0])), 120)
    assert abs(result.face_count - 120) <= 1
    assert_valid(result)
    mesh = result.meshes[0]
    assert mesh.face_material is not None
    x = mesh.vertices[mesh.faces].mean(axis=1)[:, 0]
    assert (mesh.face_material[x > 7] == 1).all()
    assert (mesh.face_material[x < 3] == 0).all()
    assert [note.code for note in remarks.notes if note.code != "size_changed"] == ["seams_approximated"]


def test_smooth_colors_are_kept() -> None:
    ball = sphere(10, 96)
    colors = np.concatenate([(ball.vertices + 10) * 12, np.full((len(ball.vertices), 1), 255)], axis=1).astype(np.uint8)
    for target in (300, 6000):
        result, _ = reduce(scene_of(replace(ball, colors=colors)), target)
        assert_valid(result)
        mesh = result.meshes[0]
        assert mesh.colors is not None
        expected = np.clip((mesh.vertices + 10) * 12, 0, 255)
        assert np.abs(mesh.colors[:, :3] - expected).max() < 25
        assert (mesh.colors[:, 3] == 255).all()


def test_faces_with_one_color_keep_that_color() -> None:
    ball = sphere(10, 48)
    corners = ball.vertices[ball.faces].reshape(-1, 3)
    top = np.repeat(corners.reshape(-1, 3, 3)[:, :, 2].mean(axis=1) > 0, 3)
    colors = np.where(top[:, None], [255, 0, 0, 255], [0, 0, 255, 255]).astype(np.uint8)
    soupy = Mesh(corners, np.arange(len(corners)).reshape(-1, 3), colors=colors)
    result, _ = reduce(scene_of(soupy), 600)
    assert_valid(result)
    mesh = result.meshes[0]
    assert mesh.colors is not None
    assert {tuple(color) for color in mesh.colors.tolist()} == {(255, 0, 0, 255), (0, 0, 255, 255)}
    up = mesh.vertices[mesh.faces].mean(axis=1)[:, 2]
    red = mesh.colors[mesh.faces[:, 0], 0] == 255
    assert (mesh.colors[mesh.faces, 0] == mesh.colors[mesh.faces[:, :1], 0]).all()
    assert red[up > 1.5].all()
    assert not red[up < -1.5].any()


def build_textured_tube(segments: int = 96) -> Scene:
    """Return a tube with a texture around it, which has a seam where it begins."""
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
def test_a_texture_is_not_mirrored_across_its_seam(target: int) -> None:
    result, _ = reduce(build_textured_tube(), target)
    mesh = result.meshes[0]
    assert mesh.uv is not None and mesh.face_material is not None
    assert result.images and (mesh.face_material == 0).all()
    across = np.ptp(mesh.uv[mesh.faces][:, :, 0], axis=1)
    assert across.max() < 0.5
    u = np.mod(np.arctan2(mesh.vertices[:, 1], mesh.vertices[:, 0]) / (2 * np.pi), 1)
    off = np.abs(mesh.uv[:, 0] - u)
    assert np.minimum(off, 1 - off).max() < (0.01 if target == 1200 else 0.2)
    assert np.abs(mesh.uv[:, 1] - mesh.vertices[:, 2] / 20).max() < 0.05


def test_both_sides_of_a_thin_wall_keep_their_colors() -> None:
    fine = manifold3d.Manifold.cube([40, 40, 0.2]).refine(40).to_mesh()
    mesh = Mesh(fine.vert_properties[:, :3].astype(np.float64), fine.tri_verts.astype(np.int32))
    a, b, c = (mesh.vertices[mesh.faces[:, k]] for k in range(3))
    up = np.cross(b - a, c - a)[:, 2] > 0
    scene = Scene((replace(mesh, face_material=up.astype(np.int32)),), (Part(0),), (Material("a"), Material("b")))
    result, _ = reduce(scene, 40)
    thin = result.meshes[0]
    a, b, c = (thin.vertices[thin.faces[:, k]] for k in range(3))
    normal = np.cross(b - a, c - a)
    normal /= np.linalg.norm(normal, axis=1)[:, None]
    assert thin.face_material is not None
    assert (thin.face_material[normal[:, 2] > 0.9] == 1).all()
    assert (thin.face_material[normal[:, 2] < -0.9] == 0).all()


@given(seed=st.integers(0, 3000))
@settings(max_examples=12)
def test_any_triangle_soup_is_reduced_without_an_error(seed: int) -> None:
    random = np.random.default_rng(seed)
    vertices = random.integers(0, 4, (int(random.integers(3, 40)), 3)).astype(np.float64)
    faces = random.integers(0, len(vertices), (int(random.integers(5, 120)), 3)).astype(np.int32)
    kinds = random.integers(-1, 2, len(faces))
    mesh = Mesh(vertices, faces, face_material=kinds, colors=random.integers(0, 255, (len(vertices), 4)))
    scene = Scene((mesh,), (Part(0),), (Material("a"), Material("b")))
    result, _ = reduce(scene, int(random.integers(4, 40)))
    assert 0 < result.face_count <= len(faces)
    assert np.isfinite(soup(result)[0]).all()


def test_distant_and_tiny_models_are_reduced() -> None:
    ball = sphere(0.001, 48)
    result, _ = reduce(scene_of(ball), 200)
    assert abs(result.face_count - 200) <= 1
    assert volume(*soup(result)) == pytest.approx(volume(ball.vertices, ball.faces), rel=0.1)
    result, _ = reduce(scene_of(move_mesh(sphere(10, 48), 1e5, 1e5, 0)), 200)
    assert abs(result.face_count - 200) <= 1
    assert_valid(result)


def test_reduction_is_deterministic() -> None:
    first, _ = reduce(build_two_colored(build_torus()), 500)
    other, _ = reduce(build_two_colored(build_torus()), 500)
    assert first.meshes[0].vertices.tobytes() == other.meshes[0].vertices.tobytes()
    assert first.meshes[0].faces.tobytes() == other.meshes[0].faces.tobytes()


def test_without_the_option_the_scene_is_unchanged() -> None:
    scene = scene_of(sphere())
    assert run(scene, OptimizeOptions()) is scene


def test_normals_are_dropped_from_all_meshes_or_none() -> None:
    ball, small = sphere(10, 32), brick()
    scene = scene_of(
        replace(ball, normals=(ball.vertices / 10).astype(np.float32)),
        replace(small, normals=np.tile(np.array([0, 0, 1], np.float32), (8, 1))),
    )
    assert "normals" in reduce(scene, 10_000)[0].features()
    assert "normals" not in reduce(scene, 300)[0].features()


def limit(scene: Scene, error_mm: float, target: int | None = None) -> tuple[Scene, Remarks]:
    options = OptimizeOptions(optimize_max_error_mm=error_mm, optimize_target_faces=target)
    with collecting("optimize") as remarks:
        result = run(scene, options)
    return result, remarks


def measure_distance(before: Mesh, after: Mesh, sample_count: int = 20_000) -> float:
    """Return the largest distance of samples on either surface from the other, by pymeshlab."""
    pymeshlab = pytest.importorskip("pymeshlab", reason="the extra meshlab measures the distance")
    meshes = pymeshlab.MeshSet(verbose=False)
    for mesh in (before, after):
        meshes.add_mesh(pymeshlab.Mesh(mesh.vertices, mesh.faces))
    return max(
        meshes.get_hausdorff_distance(
            sampledmesh=sampled,
            targetmesh=1 - sampled,
            samplenum=sample_count,
            sampleedge=True,
            maxdist=pymeshlab.PercentageValue(50),
        )["max"]
        for sampled in (0, 1)
    )


@pytest.mark.parametrize(
    ("error_mm", "shape"), [(0.05, sphere(10, 24)), (1.5, sphere(10, 16)), (0.3, build_torus(16, 12))]
)
def test_the_distance_stays_within_the_limit(error_mm: float, shape: Mesh) -> None:
    result, remarks = limit(scene_of(shape), error_mm)
    assert_valid(result)
    assert measure_distance(shape, result.meshes[0]) <= error_mm
    assert remarks.figures["error_mm"] <= error_mm


@pytest.mark.large
def test_sides_of_long_triangles_stay_within_the_limit(corpus: Path) -> None:
    """Between two of its corners, a side of a gear is near another face, and farther than at any corner."""
    with Registry(entry_points=False) as registry:
        (gears,) = registry.read(corpus / "3mf" / HEART_GEARS).meshes
    result, remarks = limit(scene_of(gears), 0.05)
    assert not remarks.notes
    assert result.face_count < len(gears.faces) / 3
    assert measure_distance(gears, result.meshes[0], 100_000) <= 0.05


@pytest.fixture
def coarse_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure distances at a tenth of the samples, which take most of the time."""
    monkeypatch.setattr(bounded_error, "MAX_SPACING", 1.6)


@pytest.mark.usefixtures("coarse_samples")
def test_a_larger_limit_leaves_fewer_faces() -> None:
    counts = [limit(scene_of(sphere(10, 24)), error_mm)[0].face_count for error_mm in (0.2, 1)]
    assert counts[1] < counts[0] < len(sphere(10, 24).faces)


@pytest.mark.usefixtures("coarse_samples")
def test_the_first_of_target_and_limit_stops() -> None:
    ball = scene_of(sphere(10, 24))
    result, remarks = limit(ball, 2, 400)
    assert result.face_count == 400
    assert not [note for note in remarks.notes if note.code == "target_faces_missed"]
    result, remarks = limit(ball, 0.2, 20)
    assert result.face_count > 20
    (missed,) = [note for note in remarks.notes if note.code == "target_faces_missed"]
    assert "optimize_max_error_mm" in missed.message


@pytest.mark.usefixtures("coarse_samples")
def test_the_largest_instance_counts_for_the_limit() -> None:
    ball, large = sphere(10, 16), np.diag([10.0, 10, 10, 1])
    alone = limit(scene_of(ball), 0.2)[0].face_count
    result, remarks = limit(Scene((ball,), (Part(0), Part(0, large))), 0.2)
    assert len(result.meshes[0].faces) > alone
    assert remarks.figures["error_mm"] <= 0.2


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "1e9", "a lot"])
def test_wrong_limits_are_rejected(value: str) -> None:
    with Registry(entry_points=False) as registry, pytest.raises(InvalidOption, match="optimize_max_error_mm"):
        registry.read(scene_of(sphere()), optimize_max_error_mm=value)  # type: ignore[arg-type]


@pytest.mark.usefixtures("coarse_samples")
def test_an_error_limit_stops_at_the_deadline_with_a_note() -> None:
    ball = scene_of(sphere(segments=48))
    with collecting("optimize") as remarks, bounded_by(time.monotonic()):
        result = run(ball, OptimizeOptions(optimize_max_error_mm=0.05))
    assert "reduction_stopped" in {note.code for note in remarks.notes}
    assert_valid(result)
    with collecting("optimize") as remarks:
        complete = run(ball, OptimizeOptions(optimize_max_error_mm=0.05))
    assert "reduction_stopped" not in {note.code for note in remarks.notes}
    assert complete.face_count < result.face_count <= ball.face_count


def build_perforated(count: int = 16, segments: int = 32) -> Mesh:
    """Return a plate with count × count through holes."""
    hole = manifold3d.CrossSection.circle(1.2, segments)
    holes = [hole.translate((4 * x + 2, 4 * y + 2)) for x in range(count) for y in range(count)]
    section = manifold3d.CrossSection.square((4 * count, 4 * count))
    section -= manifold3d.CrossSection.batch_boolean(holes, manifold3d.OpType.Add)
    result = section.extrude(3).to_mesh64()
    return Mesh(result.vert_properties[:, :3], result.tri_verts.astype(np.int32), name="perforated")


def test_holes_that_need_more_faces_stop_the_reduction_soon() -> None:
    plate = build_perforated()
    begin = time.process_time()
    _, easy = reduce(scene_of(plate), 20 * 256)
    needed = time.process_time() - begin
    result, remarks = reduce(scene_of(plate, move_mesh(sphere(20, 64), 0, 0, 90)), 600)
    assert not easy.notes
    (missed,) = [note for note in remarks.notes if note.code == "target_faces_missed"]
    assert "its 256 through holes and handles need more faces" in missed.message
    assert result.face_count < 13 * 256
    assert time.process_time() - begin < 12 * needed
    assert_valid(result)


@pytest.mark.parametrize("target", [300, 1200, 6000])
@pytest.mark.parametrize("angle", [0, 90, 33], ids=lambda angle: f"turned by {angle}")
def test_bodies_keep_their_size(target: int, angle: float) -> None:
    bodies = [
        move_mesh(sphere(12, 64), 0, 0, 12),
        move_mesh(build_torus(), 40, 0, 3),
        move_mesh(build_perforated(6), 60, 0, 0),
    ]
    turn = np.eye(4)
    turn[1:3, 1:3] = [
        [np.cos(np.radians(angle)), -np.sin(np.radians(angle))],
        [np.sin(np.radians(angle)), np.cos(np.radians(angle))],
    ]
    scene = Scene(tuple(bodies), tuple(Part(number, turn) for number in range(len(bodies))))
    result, remarks = reduce(scene, target)
    assert bounds_of_parts(result) == pytest.approx(bounds_of_parts(scene), abs=1e-4)
    assert "size_changed" not in {note.code for note in remarks.notes}


def test_the_bodies_of_one_mesh_keep_their_size() -> None:
    vertices, faces = soup(scene_of(*(move_mesh(sphere(5 + k, 48), 30 * k, 0, 5 + k) for k in range(6))))
    result, _ = reduce(scene_of(Mesh(vertices, faces)), 600)
    assert result.face_count == pytest.approx(600, abs=1)
    points = soup(result)[0]
    for k in range(6):
        own = points[np.abs(points[:, 0] - 30 * k) < 15]
        assert np.ptp(own, axis=0) == pytest.approx([2 * (5 + k)] * 3, abs=1e-4)
        assert own[:, 2].min() == pytest.approx(0, abs=1e-4)
