"""B-spline faces in STEP files; OpenCASCADE reads and checks them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import manifold3d
import numpy as np
import pytest
from numpy.typing import NDArray

from meshhub.builtin_plugins.step import StepWriteOptions, writer
from meshhub.builtin_plugins.step.facets.skin import build_skin
from meshhub.builtin_plugins.step.kernel.kernel_check import KernelSolid, Verdict, read_back
from meshhub.builtin_plugins.step.recognition.regions import Regions
from meshhub.builtin_plugins.step.solids.patch_check import find_bad_patches
from meshhub.builtin_plugins.step.surfaces.patches import Patch, PatchPool
from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceArray, SurfaceKind
from meshhub.builtin_plugins.step.surfaces.surfaces import distances, gradients
from meshhub.model.notes import Remarks, collecting
from meshhub.model.scene import Mesh
from meshhub.model.source import Target
from models import scene_of
from opencascade_report import judge_files, measure_volume

pytestmark = [pytest.mark.large, pytest.mark.once, pytest.mark.process]

Points = NDArray[np.float64]


def grid_faces(rows: int, columns: int, first: int = 0, *, closed: bool = False) -> NDArray[np.int32]:
    """Return the triangles of a grid of points; a closed one connects its last column with its first."""
    i, j = np.meshgrid(np.arange(rows - 1), np.arange(columns if closed else columns - 1), indexing="ij")
    a, b = first + i * columns + j, first + i * columns + (j + 1) % columns
    quads = np.stack([a, b, b + columns, a + columns], axis=-1).reshape(-1, 4)
    return np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]]).astype(np.int32)


def mesh_of(points: Points, faces: NDArray[np.int32]) -> Mesh:
    """Return the mesh that a binary STL file would hold."""
    return Mesh(points.astype(np.float32).astype(np.float64), faces)


def hill(noise: float = 0.0, count: int = 24) -> Mesh:
    """Return a box of 40 × 30 with a wavy top."""
    x, y = np.meshgrid(np.linspace(0, 40, count), np.linspace(0, 30, count))
    height = 10 + 2 * np.sin(x / 9) * np.cos(y / 8) + 0.02 * x * y / 10
    height += noise * np.random.default_rng(1).uniform(-1, 1, height.shape)
    top = np.stack([x, y, height], axis=-1).reshape(-1, 3)
    number = np.arange(count * count).reshape(count, count)
    rim = np.concatenate([number[0, :-1], number[:-1, -1], number[-1, :0:-1], number[:0:-1, 0]])
    foot = len(top) + np.arange(len(rim))
    after, foot_after = np.roll(rim, -1), np.roll(foot, -1)
    walls = np.concatenate([np.stack([rim, foot, after], axis=1), np.stack([after, foot, foot_after], axis=1)])
    middle = len(top) + len(rim)
    floor = np.stack([np.full(len(rim), middle), foot_after, foot], axis=1)
    points = np.concatenate([top, top[rim] * [1, 1, 0], [[20.0, 15.0, 0.0]]])
    return mesh_of(points, np.concatenate([grid_faces(count, count), walls, floor]).astype(np.int32))


def tube(around: int = 48, levels: int = 20) -> Mesh:
    """Return a body whose section changes from a rounded triangle to a rounded square, between flat ends."""
    angle = np.arange(around) * 2 * np.pi / around
    share = np.linspace(0, 1, levels)[:, None]
    radius = 12 + 1.5 * (1 - share) * np.cos(3 * angle) + 1.2 * share * np.cos(4 * angle)
    x, y = radius * np.cos(angle) + 4 * share**2, radius * np.sin(angle)
    side = np.stack([x, y, np.broadcast_to(30 * share, x.shape)], axis=-1).reshape(-1, 3)
    last = (levels - 1) * around
    bottom, top = len(side), len(side) + 1
    ring = np.arange(around)
    after = np.roll(ring, -1)
    floor = np.stack([np.full(around, bottom), after, ring], axis=1)
    lid = np.stack([np.full(around, top), last + ring, last + after], axis=1)
    points = np.concatenate([side, [[0.0, 0.0, 0.0], [4.0, 0.0, 30.0]]])
    faces = np.concatenate([grid_faces(levels, around, closed=True), floor, lid])
    return mesh_of(points, faces.astype(np.int32))


PARTS = {"hill": (hill(), 6, 1), "tube": (tube(), 3, 1)}
"""Parts, and the faces and B-spline faces in their files."""


def write_step(
    mesh: Mesh, folder: Path | None = None, name: str = "part.step", tolerance_mm: float | None = None
) -> tuple[Target, Remarks]:
    target = Target(name, folder=folder)
    with collecting("step") as remarks:
        writer.write(scene_of(mesh), target, StepWriteOptions(step_surfaces="freeform", step_tolerance_mm=tolerance_mm))
    return target, remarks


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Return the verdict of OpenCASCADE and our remarks for each part."""
    pytest.importorskip("OCP.STEPControl", reason="OpenCASCADE judges these files")
    folder = tmp_path_factory.mktemp("patches")
    reports = {}
    for number, (part, (mesh, *_)) in enumerate(PARTS.items()):
        target, remarks = write_step(mesh, folder, f"{number}.step")
        reports[part] = {"path": folder / target.name, "remarks": remarks}
    answers = judge_files([report["path"] for report in reports.values()])
    return {part: report | verdict for (part, report), verdict in zip(reports.items(), answers, strict=True)}


@pytest.mark.parametrize("part", PARTS)
def test_smooth_pieces_become_bspline_faces_of_a_valid_solid(verdicts: Any, part: str) -> None:
    _, faces, bsplines = PARTS[part]
    verdict = verdicts[part]
    figures = verdict["remarks"].figures
    assert (figures["faces"], figures["bsplines"]) == (faces, bsplines)
    assert verdict["valid"]
    assert verdict["valid_solids"] == verdict["solids"] == 1
    expected = figures["mesh_volume_mm3"] + figures["volume_gained_mm3"]
    assert measure_volume(verdict["path"]) == pytest.approx(expected, rel=1e-3)
    assert verdict["tolerance"] < 1e-2
    assert figures["max_deviation_mm"] < 2e-3
    gained = abs(figures["volume_gained_mm3"]) / figures["mesh_volume_mm3"]
    assert [note.code for note in verdict["remarks"].notes] == ["volume_changed"] * (gained > 5e-4)


def test_a_closed_patch_follows_the_curve_between_the_corners(verdicts: Any) -> None:
    # π R² + π/2 (a² + b²) over the height, with a = 1.5 (1 - t) and b = 1.2 t
    exact = 30 * (144 * np.pi + np.pi / 2 * (1.5**2 + 1.2**2) / 3)
    figures = verdicts["tube"]["remarks"].figures
    assert figures["mesh_volume_mm3"] < 0.998 * exact
    assert figures["mesh_volume_mm3"] + figures["volume_gained_mm3"] == pytest.approx(exact, rel=5e-5)


def test_noise_stays_facets() -> None:
    _, remarks = write_step(hill(noise=0.2))
    assert "bsplines" not in remarks.figures
    assert remarks.figures["faces"] > 900


def test_noise_within_the_tolerance_bends_no_face_beyond_it() -> None:
    """A few facets of this noise fit a B-spline face that bulges by 0.34 mm."""
    part = manifold3d.Manifold.cylinder(8, 4, 4, 24).refine_to_length(3).to_mesh64()
    points = np.asarray(part.vert_properties)[:, :3]
    noisy = points + np.random.default_rng(9).normal(0, 0.05, points.shape)
    _, remarks = write_step(mesh_of(noisy, np.asarray(part.tri_verts, np.int32)), tolerance_mm=0.2)
    assert remarks.figures["hausdorff_mm"] < 0.2


def test_a_face_beyond_the_tolerance_becomes_facets() -> None:
    _, remarks = write_step(hill(count=12), tolerance_mm=0.001)
    assert remarks.figures["hausdorff_mm"] <= 0.001
    assert "bsplines" not in remarks.figures
    (found,) = remarks.notes
    assert found.code == "flat_faces"
    assert found.values["facets"] > 100
    assert write_step(hill(count=12), tolerance_mm=1.0)[1].figures["bsplines"] == 1


def test_a_volume_that_free_form_faces_change_has_a_note() -> None:
    figures, notes = (remarks := write_step(hill(count=12))[1]).figures, remarks.notes
    gained = abs(figures["volume_gained_mm3"]) / figures["mesh_volume_mm3"]
    assert ("volume_changed" in {note.code for note in notes}) == (gained > 5e-4)


@pytest.mark.parametrize("surfaces", ["analytic", "planar"])
def test_other_surfaces_than_freeform_have_no_patches(surfaces: Any) -> None:
    with collecting("step") as remarks:
        writer.write(scene_of(hill()), Target("part.step"), StepWriteOptions(step_surfaces=surfaces))
    assert "bsplines" not in remarks.figures


def test_a_rejected_patch_becomes_facets_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("OCP.STEPControl", reason="OpenCASCADE checks these files")
    files = []

    def reject_first(data: bytes, seconds: float, volumes: Sequence[float]) -> Verdict | None:
        files.append(data)
        verdict = read_back(data, seconds, volumes)
        if len(files) > 1 or verdict is None:
            return verdict
        return Verdict(False, tuple(KernelSolid(False, solid.volume) for solid in verdict.solids))

    monkeypatch.setattr(writer, "read_back", reject_first)
    _, remarks = write_step(hill(count=12))
    assert b"B_SPLINE_SURFACE" in files[0]
    assert b"B_SPLINE_SURFACE" not in files[1]
    assert remarks.figures["valid_solids"] == 1
    assert [found.code for found in remarks.notes] == ["flat_faces"]


def test_a_body_with_many_facets_in_place_of_a_rejected_patch_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the patch, the file is too large to be checked again."""
    monkeypatch.setattr(writer, "is_available", lambda: True)
    monkeypatch.setattr(writer, "MAX_FACES_COUNT", 100)
    monkeypatch.setattr(writer, "read_back", lambda data, seconds, volumes: Verdict(False, (KernelSolid(False, 0.0),)))
    _, remarks = write_step(hill(count=12))
    assert "bsplines" not in remarks.figures
    assert remarks.figures["faces"] > 100
    assert [found.code for found in remarks.notes] == ["flat_faces", "step_unchecked"]


def flat_patch(poles: int = 8) -> Patch:
    """Return the unit square in the plane Z = 0."""
    knots = np.concatenate([np.zeros(3), np.linspace(0, 1, poles - 2), np.ones(3)])
    place = np.convolve(knots[1:-1], np.ones(3) / 3, "valid")
    x, y = np.meshgrid(place, place, indexing="ij")
    return Patch(knots, knots, np.stack([x, y, np.zeros_like(x)], axis=-1))


def as_surface(patch: Patch) -> SurfaceArray:
    zero, shape = np.zeros(1), np.empty(1, np.object_)
    shape[0] = patch
    kind = np.array([SurfaceKind.PATCH], np.int8)
    return SurfaceArray(kind, np.zeros((1, 3)), np.array([[0.0, 0.0, 1.0]]), zero, zero, shape)


def check_square(patch: Patch, *, outward: bool = True) -> list[int]:
    """Check a patch over a mesh of the unit square in the plane Z = 0."""
    x, y = np.meshgrid(np.linspace(0.1, 0.9, 5), np.linspace(0.1, 0.9, 5))
    points = np.stack([x, y, np.zeros_like(x)], axis=-1).reshape(-1, 3)
    faces = grid_faces(5, 5)
    skin = build_skin(points, faces, np.zeros(len(faces), np.int32))
    regions = Regions(
        np.zeros(len(faces), np.int32), as_surface(patch), np.array([1e-6]), np.array([outward]), np.zeros(1, np.intp)
    )
    return find_bad_patches(skin, regions).tolist()


def test_the_check_accepts_a_patch_on_the_mesh() -> None:
    assert check_square(flat_patch()) == []


def test_the_check_finds_a_patch_that_faces_the_other_way() -> None:
    assert check_square(flat_patch(), outward=False) == [0]


def test_the_check_finds_a_bump_between_corners() -> None:
    patch = flat_patch(40)
    poles = patch.poles.copy()
    nearest = np.abs(poles[:, 0, :1] - [0.4, 0.5]).argmin(axis=0)
    poles[nearest[0], nearest[1], 2] = 0.05
    assert check_square(replace(patch, poles=poles)) == [0]


def test_the_check_finds_a_fold() -> None:
    patch = flat_patch(40)
    poles = patch.poles.copy()
    # between the corners at 0.3 and 0.5
    poles[14:17] = poles[16:13:-1]
    assert check_square(replace(patch, poles=poles)) == [0]


def test_distances_and_normals_of_a_patch() -> None:
    points = np.array([[0.3, 0.6, 0.2], [0.5, 0.5, -0.1], [0.2, 0.9, 0.0], [1.5, 0.5, 0.0]])
    surfaces = as_surface(flat_patch()).take(np.zeros(4, np.intp))
    value, normal = gradients(surfaces, points)
    assert value[:3] == pytest.approx([0.2, -0.1, 0.0])
    assert normal[:3] == pytest.approx(np.tile([0.0, 0.0, 1.0], (3, 1)))
    # beside the patch
    assert abs(distances(surfaces, points)[3]) == pytest.approx(0.5, rel=0.01)


def test_points_have_the_same_place_on_a_face_alone_and_among_others() -> None:
    # a bent tube with flutes; the poles at its seam appear twice
    around, along = np.meshgrid(np.linspace(0, 2 * np.pi, 25), np.linspace(0, 1, 12), indexing="ij")
    radius = 4 + 0.8 * np.cos(4 * around)
    poles = np.stack([radius * np.cos(around) + 8 * along**2, radius * np.sin(around), 30 * along], axis=-1)
    poles[-1] = poles[0]
    u_knots, v_knots = (np.concatenate([np.zeros(3), np.linspace(0, 1, count - 2), np.ones(3)]) for count in (25, 12))
    tube, sheet = Patch(u_knots, v_knots, poles), Patch(v_knots, v_knots, poles[5:17])
    random = np.random.default_rng(0)
    points = tube.evaluate(random.uniform(0, 1, (300, 2))) + random.normal(scale=2.0, size=(300, 3))
    first, second = np.zeros(300, np.intp), np.ones(300, np.intp)
    owner, both = np.concatenate([first, second]), np.concatenate([points, points])
    for pair in ((tube, sheet), (sheet, tube)):
        together = PatchPool(list(pair)).locate(owner, both)
        alone = np.concatenate([patch.locate(points) for patch in pair])
        assert together == pytest.approx(alone, abs=1e-9)
