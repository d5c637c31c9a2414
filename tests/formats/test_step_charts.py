"""Scans and sculptures as B-spline faces in STEP files; OpenCASCADE reads and checks them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import manifold3d
import numpy as np
import pytest
import trimesh

from meshhub.builtin_plugins.step import StepReadOptions, StepWriteOptions, reader, writer
from meshhub.builtin_plugins.step.kernel.kernel_check import KernelSolid, Verdict
from meshhub.model.notes import Remarks, collecting
from meshhub.model.scene import Float64, Mesh, Scene
from meshhub.model.source import Source, Target
from models import scene_of
from opencascade_report import judge_files

pytestmark = [pytest.mark.once, pytest.mark.process]

TOLERANCE_MM = 0.15
"""Allowed distance of the faces from models that are about 40 mm wide."""


def sculpture(seed: int = 0, subdivisions: int = 4) -> trimesh.Trimesh:
    """A ball with bumps all over, as a scanner would triangulate it: no corner is exact."""
    random = np.random.default_rng(seed)
    ball = trimesh.creation.icosphere(subdivisions, radius=20.0)
    way = ball.vertices / 20.0
    bumps = sum(
        np.sin(way @ (random.normal(size=3) * 3) + random.uniform(0, 6)) * random.uniform(0.5, 1.5) for _ in range(6)
    )
    noise = random.normal(scale=0.01, size=ball.vertices.shape)
    vertices = ball.vertices + way * bumps[:, None] + noise
    return trimesh.Trimesh(vertices.astype(np.float32), ball.faces, process=False)


def creased() -> trimesh.Trimesh:
    """A sculpture that a plane cuts in two: the sharp rim around the cut stays sharp."""
    whole = sculpture(3)
    native = manifold3d.Mesh(np.asarray(whole.vertices, np.float32), np.asarray(whole.faces, np.uint32))
    half = manifold3d.Manifold(native).trim_by_plane((0.2, 0.1, 1.0), -4.0).to_mesh64()
    return trimesh.Trimesh(np.asarray(half.vert_properties)[:, :3], half.tri_verts, process=False)


def handled() -> trimesh.Trimesh:
    """A bent ring with bumps: charts of it must not close around the hole."""
    ring = trimesh.creation.torus(20.0, 7.0, major_sections=64, minor_sections=32)
    x, y, _ = ring.vertices.T
    ring.vertices[:, 2] += 3 * np.sin(x / 6) + 2 * np.cos(y / 5)
    ring.vertices += np.random.default_rng(1).normal(scale=0.01, size=ring.vertices.shape)
    return ring


MODELS = {"sculpture": sculpture(), "fine sculpture": sculpture(2, 5), "creased": creased(), "handled": handled()}


def to_mesh(model: trimesh.Trimesh) -> Mesh:
    vertices = np.asarray(model.vertices, np.float32).astype(np.float64)
    return Mesh(vertices=vertices, faces=np.asarray(model.faces, np.int32))


def write_step(
    scene: Scene, folder: Path | None = None, name: str = "part.step", **options: Any
) -> tuple[Target, Remarks]:
    target = Target(name, folder=folder)
    with collecting("step") as remarks:
        writer.write(scene, target, StepWriteOptions(**options))
    return target, remarks


def read_back(data: bytes) -> Scene:
    pytest.importorskip("OCP.STEPControl", reason="OpenCASCADE reads these files")
    with collecting("step"):
        return reader.read(Source.from_bytes(data, "part.step"), StepReadOptions(step_deviation_mm=0.005))


def to_surface(scene: Scene) -> trimesh.Trimesh:
    (mesh,) = scene.meshes
    return trimesh.Trimesh(mesh.vertices, mesh.faces, process=False)


def measure_farthest(model: trimesh.Trimesh, other: trimesh.Trimesh) -> float:
    """Return the millimeters between the vertex of a model that is farthest from another model, and the latter."""
    pymeshlab = pytest.importorskip("pymeshlab", reason="MeshLab measures these distances")
    both = pymeshlab.MeshSet()
    for part in (model, other):
        both.add_mesh(pymeshlab.Mesh(np.asarray(part.vertices, np.float64), np.asarray(part.faces, np.int32)))
    distances = both.get_hausdorff_distance(
        sampledmesh=0, targetmesh=1, sampleedge=False, sampleface=False, samplevert=True
    )
    return float(distances["max"])


def measure_distances(path: Path, points: Float64) -> list[float]:
    """Return the distances of points (n, 3) from the faces of a STEP file as OpenCASCADE measures them."""
    from OCP.BRepBuilderAPI import BRepBuilderAPI_MakeVertex
    from OCP.BRepExtrema import BRepExtrema_DistShapeShape
    from OCP.gp import gp_Pnt
    from OCP.STEPControl import STEPControl_Reader

    file = STEPControl_Reader()
    file.ReadFile(str(path))
    file.TransferRoots()
    shape = file.OneShape()
    corners = [BRepBuilderAPI_MakeVertex(gp_Pnt(*point)).Vertex() for point in points.tolist()]
    return [BRepExtrema_DistShapeShape(corner, shape).Value() for corner in corners]


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Return the verdict of OpenCASCADE and our remarks for each model."""
    pytest.importorskip("OCP.STEPControl", reason="OpenCASCADE judges these files")
    folder = tmp_path_factory.mktemp("charts")
    reports = {}
    for number, (name, model) in enumerate(MODELS.items()):
        target, remarks = write_step(scene_of(to_mesh(model)), folder, f"{number}.step", step_tolerance_mm=TOLERANCE_MM)
        reports[name] = {"path": folder / target.name, "remarks": remarks}
    answers = judge_files([report["path"] for report in reports.values()])
    return {name: report | verdict for (name, report), verdict in zip(reports.items(), answers, strict=True)}


@pytest.mark.parametrize("name", MODELS)
def test_a_scan_becomes_few_faces_of_a_valid_solid(verdicts: Any, name: str) -> None:
    verdict, model = verdicts[name], MODELS[name]
    figures = verdict["remarks"].figures
    assert verdict["valid"]
    assert verdict["valid_solids"] == verdict["solids"] == 1
    assert figures["faces"] < 0.1 * len(model.faces)
    assert figures["bsplines"] > 0.3 * figures["faces"]
    assert figures["max_deviation_mm"] <= TOLERANCE_MM
    assert sum(verdict["volumes"]) == pytest.approx(model.volume, rel=2e-3)
    assert {note.code for note in verdict["remarks"].notes} <= {"flat_faces"}


@pytest.mark.parametrize("name", MODELS)
def test_the_faces_follow_the_scan(verdicts: Any, name: str) -> None:
    path, vertices = verdicts[name]["path"], MODELS[name].vertices
    sample = np.random.default_rng(0).permutation(len(vertices))[:50]
    assert max(measure_distances(path, vertices[sample])) <= TOLERANCE_MM
    # triangles between the edges of the faces, too
    assert measure_farthest(to_surface(read_back(path.read_bytes())), MODELS[name]) <= 2 * TOLERANCE_MM


def test_without_a_tolerance_a_scan_keeps_its_triangles() -> None:
    _, remarks = write_step(scene_of(to_mesh(MODELS["sculpture"])))
    assert "bsplines" not in remarks.figures
    assert remarks.figures["faces"] == len(MODELS["sculpture"].faces)


def test_analytic_surfaces_alone_leave_a_scan_as_it_is() -> None:
    scene = scene_of(to_mesh(MODELS["sculpture"]))
    _, remarks = write_step(scene, step_surfaces="analytic", step_tolerance_mm=TOLERANCE_MM)
    assert "bsplines" not in remarks.figures
    assert remarks.figures["faces"] == len(MODELS["sculpture"].faces)


def test_the_deviation_is_the_one_that_was_asked_for() -> None:
    scene = scene_of(to_mesh(MODELS["fine sculpture"]))
    _, coarse = write_step(scene, step_tolerance_mm=0.5)
    _, fine = write_step(scene, step_tolerance_mm=0.05)
    assert fine.figures["max_deviation_mm"] <= 0.05 < coarse.figures["max_deviation_mm"]


def test_the_border_of_an_open_scan_stays() -> None:
    model = sculpture(4)
    upper = model.submesh([np.flatnonzero(model.triangles_center[:, 2] > 0)], append=True)
    target, remarks = write_step(scene_of(to_mesh(upper)), step_tolerance_mm=TOLERANCE_MM)
    assert [note.code for note in remarks.notes] == ["open_surface"]
    assert remarks.figures["bsplines"] > 0.3 * remarks.figures["faces"]
    surface = to_surface(read_back(target.read()))
    assert surface.area == pytest.approx(upper.area, rel=5e-3)
    assert measure_farthest(upper, surface) <= 2 * TOLERANCE_MM


def test_charts_end_where_the_color_changes() -> None:
    model = MODELS["sculpture"]
    is_red = model.triangles_center[:, 0] > 3.0
    colors = np.where(is_red[:, None], (255, 0, 0, 255), (0, 0, 255, 255)).astype(np.uint8)
    vertices = model.vertices[model.faces].reshape(-1, 3)
    mesh = Mesh(vertices, np.arange(len(vertices)).reshape(-1, 3), colors=np.repeat(colors, 3, axis=0))
    target, remarks = write_step(scene_of(mesh), step_tolerance_mm=TOLERANCE_MM)
    assert remarks.figures["faces"] < 0.2 * len(model.faces)
    scene = read_back(target.read())
    assert scene.meshes[0].face_material is not None
    seems_red = np.array([material.base_color[0] > 0.5 for material in scene.materials])[scene.meshes[0].face_material]
    surface = to_surface(scene)
    red, expected = surface.area_faces[seems_red].sum(), model.area_faces[is_red].sum()
    assert red == pytest.approx(expected, rel=0.01)


def test_rejected_charts_leave_the_triangles_of_the_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("OCP.STEPControl", reason="OpenCASCADE checks these files")
    files = []

    def reject(data: bytes, seconds: float, volumes: Sequence[float]) -> Verdict | None:
        files.append(data)
        return Verdict(False, (KernelSolid(False, MODELS["sculpture"].volume),)) if len(files) == 1 else None

    monkeypatch.setattr(writer, "read_back", reject)
    _, remarks = write_step(scene_of(to_mesh(MODELS["sculpture"])), step_tolerance_mm=TOLERANCE_MM)
    assert "bsplines" not in remarks.figures
    assert remarks.figures["faces"] == len(MODELS["sculpture"].faces)
    assert "flat_faces" in [note.code for note in remarks.notes]
