"""`repair_self_intersections`, `repair_fragments_mm` and `repair_wrap_mm`: results, notes, and what stays unchanged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import trimesh

from meshhub import Progress, Registry
from meshhub.builtin_plugins.repair import RepairOptions, meshlab
from meshhub.builtin_plugins.repair.operation import run
from meshhub.errors import ModelTooComplex
from meshhub.model.notes import Remarks, collecting
from meshhub.model.scene import Mesh, Part, Scene
from meshhub.toolkit.geometry import soup
from models import assert_valid, brick, move_mesh, scene_of, sphere, volume

pytestmark = pytest.mark.once


def repair(scene: Scene | Mesh, **options: Any) -> tuple[Scene, Remarks]:
    with collecting("repair") as remarks:
        result = run(scene if isinstance(scene, Scene) else scene_of(scene), RepairOptions(**options))
    return result, remarks


def join(*meshes: Mesh) -> Mesh:
    first = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    faces = [mesh.faces + start for mesh, start in zip(meshes, first, strict=False)]
    return Mesh(np.concatenate([mesh.vertices for mesh in meshes]), np.concatenate(faces).astype(np.int32))


def flip(mesh: Mesh) -> Mesh:
    return replace(mesh, faces=mesh.faces[:, ::-1])


def knot(radius: float) -> Mesh:
    """Return a tube along a trefoil; one with a radius over 0.8 passes through itself."""
    t = np.linspace(0, 2 * np.pi, 96, endpoint=False)
    path = np.stack([np.sin(t) + 2 * np.sin(2 * t), np.cos(t) - 2 * np.cos(2 * t), -np.sin(3 * t)], axis=1)
    tangent = np.roll(path, -1, 0) - np.roll(path, 1, 0)
    tangent /= np.linalg.norm(tangent, axis=1, keepdims=True)
    first = np.cross(tangent, path + [0, 0, 5])
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    second = np.cross(tangent, first)
    angle = np.linspace(0, 2 * np.pi, 16, endpoint=False)[:, None, None]
    points = path + radius * (np.cos(angle) * first + np.sin(angle) * second)
    index = np.arange(16 * 96).reshape(16, 96)
    a, b = index.ravel(), np.roll(index, -1, 1).ravel()
    c, d = np.roll(index, -1, 0).ravel(), np.roll(index, (-1, -1), (0, 1)).ravel()
    mesh = Mesh(points.reshape(-1, 3), np.concatenate([np.stack([a, b, d], 1), np.stack([a, d, c], 1)]))
    return mesh if volume(mesh.vertices, mesh.faces) > 0 else flip(mesh)


def total(scene: Scene) -> float:
    return volume(*soup(scene))


def count_bodies(scene: Scene) -> int:
    return len(trimesh.Trimesh(*soup(scene)).split(only_watertight=False))


def test_overlapping_bodies_become_one() -> None:
    boxes = join(brick(10, 10, 10), move_mesh(brick(10, 10, 10), 5, 3, 2))
    result, remarks = repair(boxes, repair_self_intersections=True)
    assert_valid(result)
    assert total(result) == pytest.approx(2000 - 5 * 7 * 8)
    assert count_bodies(result) == remarks.figures["bodies_after"] == 1
    assert remarks.figures["self_intersections_united"] == 1


def test_progress_is_reported_before_bodies_are_united(monkeypatch: pytest.MonkeyPatch) -> None:
    """A union reports no progress, so that its caller decides before it begins."""
    monkeypatch.setattr("meshhub.model.progress.MIN_INTERVAL_S", 0.0)
    monkeypatch.setattr("meshhub.builtin_plugins.repair.operation.unite_bodies", lambda *_: pytest.fail("has begun"))

    class StoppedError(Exception):
        pass

    def stop(progress: Progress) -> None:
        if progress.kind == "operation" and progress.fraction is not None:
            raise StoppedError

    boxes = scene_of(join(brick(), move_mesh(brick(), 1, 0, 0)))
    with Registry(entry_points=False) as registry, pytest.raises(StoppedError):
        registry.convert_bytes(boxes, "stl", repair=True, repair_self_intersections=True, progress=stop)


def test_cavities_stay_where_bodies_are_united() -> None:
    hollow = join(sphere(10), flip(sphere(6)))
    result, _ = repair(join(hollow, move_mesh(sphere(3), 11, 0, 0)), repair_self_intersections=True)
    assert_valid(result)
    alone = [abs(volume(each.vertices, each.faces)) for each in (sphere(10), sphere(6), sphere(3))]
    assert alone[0] - alone[1] < total(result) < alone[0] - alone[1] + alone[2]
    assert count_bodies(result) == 2


@pytest.mark.parametrize("has_meshlab", [True, False])
def test_a_body_that_passes_through_itself_is_united(has_meshlab: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_meshlab:
        monkeypatch.setattr(meshlab, "is_usable", lambda: False)
    mesh = knot(0.9)
    result, remarks = repair(mesh, repair_self_intersections=True)
    assert_valid(result)
    # the exact union of libigl has this volume
    assert total(result) == pytest.approx(68.3647, abs=1e-3)
    assert remarks.figures["self_intersections_united"] == 1
    assert not [each for each in remarks.notes if each.code == "self_intersections_left"]


def test_bodies_whose_faces_lie_in_common_planes_are_united() -> None:
    # no edge goes through the inside of a face
    result, remarks = repair(join(brick(), move_mesh(brick(), 4, 0, 0)), repair_self_intersections=True)
    assert_valid(result)
    assert total(result) == pytest.approx(8400)
    assert remarks.figures["self_intersections_united"] == 1


def test_a_large_body_without_crossings_stays_the_same_object() -> None:
    mesh = sphere(30, 200)
    assert len(mesh.faces) > 30_000
    result, _ = repair(join(mesh, flip(sphere(10))), repair_self_intersections=True)
    assert total(result) == pytest.approx(volume(mesh.vertices, mesh.faces) - volume(*soup(scene_of(sphere(10)))))
    result, _ = repair(mesh, repair_self_intersections=True)
    assert result.meshes[0] is mesh


@pytest.mark.parametrize(
    "mesh",
    [knot(0.35), join(sphere(10), flip(sphere(6)), sphere(3)), join(brick(), move_mesh(brick(), 40, 0, 0))],
    ids=["knot", "body in a cavity", "bodies apart"],
)
def test_a_model_without_overlaps_stays_the_same_object(mesh: Mesh) -> None:
    result, remarks = repair(mesh, repair_self_intersections=True)
    assert result.meshes[0] is mesh
    assert [each.code for each in remarks.notes] == ["already_sound"]


def test_an_open_part_is_not_united_but_noted() -> None:
    square = Mesh([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], [[0, 1, 2], [0, 2, 3]])
    result, remarks = repair(square, repair_self_intersections=True)
    assert result.meshes[0] is square
    assert [each.code for each in remarks.notes] == ["open_surface", "self_intersections_left"]


def test_shells_under_a_size_disappear_whatever_their_unit() -> None:
    mesh = join(brick(), move_mesh(sphere(1), 30, 0, 0), move_mesh(sphere(3), 40, 0, 0))
    tenfold = np.diag([10.0, 10, 10, 1])
    for part, limit in ((Part(0), 4.0), (Part(0, tenfold), 40.0)):
        result, remarks = repair(Scene((mesh,), (part,)), repair_fragments_mm=limit)
        assert remarks.figures["fragments_removed"] == 1
        assert count_bodies(result) == 2
        assert remarks.figures["bodies_after"] == 2


def test_the_largest_shell_stays_below_any_size() -> None:
    result, _ = repair(join(sphere(1), move_mesh(sphere(2), 30, 0, 0)), repair_fragments_mm=1000.0)
    assert count_bodies(result) == 1
    assert total(result) == pytest.approx(volume(sphere(2).vertices, sphere(2).faces))


def shatter(mesh: Mesh, seed: int) -> Mesh:
    """Remove one face of ten, and separate the others by small gaps."""
    chance = np.random.default_rng(seed)
    faces = mesh.faces[chance.random(len(mesh.faces)) > 0.1]
    corners = mesh.vertices[faces]
    corners = corners + chance.normal(0, 0.1, (len(faces), 1, 3))
    return Mesh(corners.reshape(-1, 3), np.arange(3 * len(faces), dtype=np.int32).reshape(-1, 3))


@pytest.mark.parametrize("has_meshlab", [True, False])
@pytest.mark.large
def test_a_wrap_closes_what_no_repair_can(has_meshlab: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if has_meshlab:
        pytest.importorskip("pymeshlab", reason="alpha wraps need pymeshlab")
    else:
        monkeypatch.setattr(meshlab, "is_usable", lambda: False)
    ball = sphere(20, 32)
    result, remarks = repair(shatter(ball, 0), repair_wrap_mm=8.0)
    assert_valid(result)
    assert count_bodies(result) == 1
    assert total(result) == pytest.approx(volume(ball.vertices, ball.faces), rel=0.2)
    assert [each.code for each in remarks.notes] == ["wrapped"]
    rms, greatest = (remarks.figures[f"wrap_deviation_{kind}_mm"] for kind in ("rms", "max"))
    assert isinstance(rms, float)
    assert isinstance(greatest, float)
    # the judge: distances of the written vertices, measured by trimesh
    broken = shatter(ball, 0)
    near = trimesh.proximity.closest_point_naive(trimesh.Trimesh(*soup(scene_of(broken))), soup(result)[0][::97])[1]
    assert greatest >= near.max() - 1e-6
    assert 0 < rms <= greatest < 8


def test_a_wrap_keeps_colors_and_materials_of_the_nearest_faces() -> None:
    box = brick()
    colors = np.repeat(np.array([[255, 0, 0, 255], [0, 0, 255, 255]], np.uint8), [4, 4], axis=0)
    painted = replace(box, colors=colors, face_material=np.zeros(12, np.int32))
    result, _ = repair(painted, repair_wrap_mm=8.0)
    mesh = result.meshes[0]
    assert mesh.colors is not None
    assert {tuple(color) for color in mesh.colors.tolist()} == {(255, 0, 0, 255), (0, 0, 255, 255)}
    assert mesh.face_material is not None


@pytest.mark.parametrize("is_installed", [True, False])
def test_a_wrap_that_is_too_fine_is_rejected(monkeypatch: pytest.MonkeyPatch, is_installed: bool) -> None:
    if not is_installed:
        monkeypatch.setattr(meshlab, "is_usable", lambda: False)
    with pytest.raises(ModelTooComplex, match="repair_wrap_mm"):
        repair(sphere(500), repair_wrap_mm=0.05)


def test_nothing_is_wrapped_by_default() -> None:
    _, remarks = repair(shatter(sphere(20, 12), 0), repair=True)
    assert "wrapped" not in [each.code for each in remarks.notes]
