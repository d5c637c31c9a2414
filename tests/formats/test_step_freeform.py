"""Extruded and turned curves in STEP files; OpenCASCADE reads and checks them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import manifold3d
import numpy as np
import pytest
from numpy.typing import NDArray

from meshhub.builtin_plugins.step import StepWriteOptions, writer
from meshhub.builtin_plugins.step.kernel.kernel_check import KernelSolid, Verdict
from meshhub.model.notes import Remarks, collecting
from meshhub.model.scene import Mesh
from meshhub.model.source import Target
from models import scene_of
from opencascade_report import judge_files, measure_volume

pytestmark = [pytest.mark.large, pytest.mark.once, pytest.mark.process]

Solid = manifold3d.Manifold
Points = NDArray[np.float64]


def mesh_of(solid: Any) -> Mesh:
    """Return the mesh that a binary STL file would hold."""
    native = solid.to_mesh64()
    vertices = np.asarray(native.vert_properties)[:, :3].astype(np.float32).astype(np.float64)
    return Mesh(vertices, np.asarray(native.tri_verts, np.int32))


def extruded(outline: Points, height: float = 6.0) -> Any:
    return Solid.extrude(manifold3d.CrossSection([outline]), height)


def lobes(count: int = 90) -> Points:
    angle = np.linspace(0, 2 * np.pi, count, endpoint=False)
    radius = 20 + 2 * np.cos(3 * angle)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def wave(count: int = 40) -> Points:
    """Return a rectangle of 30 × 10 with one wavy side."""
    x = np.linspace(30, 0, count)
    return np.concatenate([[[0, 0], [30, 0]], np.stack([x, 10 + np.sin(x / 4)], axis=1)])


def vase_profile(count: int = 30) -> Points:
    height = np.linspace(0, 30, count)
    return np.stack([10 + 3 * np.sin(height / 6), height], axis=1)


def turned(degrees: float = 360.0) -> Any:
    outline = np.concatenate([[[4, 0]], vase_profile(), [[4, 30]]])
    return Solid.revolve(manifold3d.CrossSection([outline]), 64, degrees)


def star() -> Any:
    """Return a ring of teeth with curved flanks and flat tops, as on a gear."""
    flank = np.linspace(0, 1, 9)
    teeth = []
    for tooth in range(8):
        rise = np.stack([15 + 4 * flank, -0.20 + 0.08 * flank**2], axis=1)
        fall = rise[::-1] * [1, -1]
        polar = np.concatenate([rise, fall]) + [0, tooth * np.pi / 4]
        teeth.append(np.stack([polar[:, 0] * np.cos(polar[:, 1]), polar[:, 0] * np.sin(polar[:, 1])], axis=1))
    return extruded(np.concatenate(teeth))


def hexagon(height: float = 6.0) -> Any:
    return Solid.cylinder(height, 8, 8, 6)


PARTS: dict[str, tuple[Any, dict[str, int]]] = {
    "lobes": (extruded(lobes()), {"faces": 3, "bsplines": 1}),
    "lobes, turned": (extruded(lobes()).rotate([20, 50, 70]).translate([30, -20, 5]), {"faces": 3, "bsplines": 1}),
    "lobes with a hexagonal hole": (extruded(lobes()) - hexagon(20), {"faces": 9, "bsplines": 1}),
    "wave": (extruded(wave()), {"faces": 6, "bsplines": 1}),
    "gear": (star(), {"bsplines": 16}),
    "vase": (turned(), {"faces": 4, "bsplines": 1, "cylinders": 1}),
    # each ring of its facets is a cone
    "sector of a vase": (turned(120), {"faces": 34, "cones": 29, "cylinders": 1}),
}
"""Parts and the expected figures of their reports."""


def write_step(solid: Any, folder: Path | None = None, name: str = "part.step") -> tuple[Target, Remarks]:
    target = Target(name, folder=folder)
    with collecting("step") as remarks:
        writer.write(scene_of(mesh_of(solid)), target, StepWriteOptions(step_surfaces="freeform"))
    return target, remarks


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Return the verdict of OpenCASCADE and our remarks for each part."""
    # load OpenCASCADE now, so that the writer's check forks this process instead of loading it for each file
    pytest.importorskip("OCP.STEPControl", reason="OpenCASCADE judges these files")
    folder = tmp_path_factory.mktemp("freeform")
    reports = {}
    for number, (part, (solid, _)) in enumerate(PARTS.items()):
        target, remarks = write_step(solid, folder, f"{number}.step")
        reports[part] = {"path": folder / target.name, "remarks": remarks}
    answers = judge_files([report["path"] for report in reports.values()])
    return {part: report | verdict for (part, report), verdict in zip(reports.items(), answers, strict=True)}


@pytest.mark.parametrize("part", PARTS)
def test_swept_curves_become_single_faces_of_a_valid_solid(verdicts: Any, part: str) -> None:
    verdict = verdicts[part]
    figures = verdict["remarks"].figures
    assert {name: figures.get(name) for name in PARTS[part][1]} == PARTS[part][1]
    assert verdict["valid"]
    assert verdict["valid_solids"] == verdict["solids"] == 1
    # the integral over B-spline faces is inexact
    written = figures["mesh_volume_mm3"] + figures["volume_gained_mm3"]
    assert measure_volume(verdict["path"]) == pytest.approx(written, rel=1e-3)
    assert verdict["tolerance"] < 1e-3
    # curves between the corners enclose more than their chords
    gained = abs(figures["volume_gained_mm3"]) / figures["mesh_volume_mm3"]
    is_reported = gained > (5e-4 if figures.get("bsplines") else 5e-3)
    assert [note.code for note in verdict["remarks"].notes] == ["volume_changed"] * is_reported


def test_the_profile_follows_the_curve_between_the_corners(verdicts: Any) -> None:
    # ½ ∫ (20 + 2 cos 3φ)² dφ = 402 π, over a height of 6
    figures = verdicts["lobes"]["remarks"].figures
    assert figures["mesh_volume_mm3"] + figures["volume_gained_mm3"] == pytest.approx(402 * np.pi * 6, rel=1e-6)
    assert measure_volume(verdicts["lobes"]["path"]) == pytest.approx(402 * np.pi * 6, rel=3e-4)


def test_the_distance_of_a_free_form_face_is_that_of_curve_and_chord(verdicts: Any) -> None:
    curve, corner = lobes(9000), lobes()
    index = np.arange(len(curve)) // 100
    chord = np.roll(corner, -1, axis=0)[index] - corner[index]
    away = curve - corner[index]
    off = np.abs(chord[:, 0] * away[:, 1] - chord[:, 1] * away[:, 0]) / np.linalg.norm(chord, axis=1)
    figures = verdicts["lobes"]["remarks"].figures
    assert figures["hausdorff_mm"] == pytest.approx(off.max(), rel=0.05)
    assert 0 < figures["rms_mm"] < figures["hausdorff_mm"]


@pytest.mark.parametrize(("solid", "planes"), [(hexagon(), 8), (Solid.cube([10, 20, 30]), 6)], ids=["hexagon", "box"])
def test_prisms_stay_flat(solid: Any, planes: int) -> None:
    _, remarks = write_step(solid)
    assert remarks.figures["faces"] == remarks.figures["planes"] == planes


def test_leaning_triangles_belong_to_their_extrusion() -> None:
    """Half of the lines of a wall end at mid height: triangles between three lines lean."""
    outline = lobes(60)
    low, high = (np.column_stack([outline, np.full(60, height)]) for height in (0.0, 2.0))
    middle = np.column_stack([outline[::2], np.full(30, 1.0)])
    points = np.concatenate([low, middle, high]).astype(np.float32).astype(np.float64)
    even, odd, following = np.arange(0, 60, 2), np.arange(1, 60, 2), (np.arange(0, 60, 2) + 2) % 60
    here, there = 60 + even // 2, 60 + following // 2
    walls = [
        (even, odd, here),
        (odd, there, here),
        (odd, following, there),
        (90 + odd, 90 + even, here),
        (there, 90 + odd, here),
        (90 + following, 90 + odd, there),
    ]
    fan = np.stack([np.zeros(58, np.intp), np.arange(1, 59), np.arange(2, 60)], axis=1)
    faces = np.concatenate([*(np.stack(corners, axis=1) for corners in walls), 90 + fan, fan[:, ::-1]])
    with collecting("step") as remarks:
        writer.write(scene_of(Mesh(points, faces.astype(np.int32))), Target("part.step"), StepWriteOptions())
    assert (remarks.figures["faces"], remarks.figures["bsplines"]) == (3, 1)


def test_walls_beside_a_curve_stay_planes() -> None:
    x = np.linspace(30, 10, 30)
    curve = np.stack([x, 12 - (x - 10) ** 4 / 8e4], axis=1)
    outline = np.concatenate([[[0, 0], [30, 0]], curve, [[0, 12]]])
    _, remarks = write_step(extruded(outline))
    assert remarks.figures["bsplines"] == 1
    assert remarks.figures["planes"] == 6


def test_rejected_free_form_faces_become_flat_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("OCP.STEPControl", reason="OpenCASCADE checks these files")
    read_back, files = writer.read_back, []

    def reject_first(data: bytes, seconds: float, volumes: Sequence[float]) -> Verdict | None:
        files.append(data)
        verdict = read_back(data, seconds, volumes)
        if len(files) > 1 or verdict is None:
            return verdict
        return Verdict(False, tuple(KernelSolid(False, solid.volume) for solid in verdict.solids))

    monkeypatch.setattr(writer, "read_back", reject_first)
    _, remarks = write_step(extruded(lobes()))
    assert [note.code for note in remarks.notes] == ["flat_faces"]
    assert "bsplines" not in remarks.figures
    assert remarks.figures["valid_solids"] == remarks.figures["solids"] == 1
