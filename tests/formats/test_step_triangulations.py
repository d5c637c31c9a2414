"""The surfaces of a part do not depend on how its triangles were split."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import manifold3d
import numpy as np
import pytest

from cad_parts import occ
from cad_parts.triangles import triangulate_occ
from meshhub.builtin_plugins.step import StepWriteOptions
from meshhub.builtin_plugins.step.recognition import noisy_regions
from meshhub.builtin_plugins.step.recognition.patch_parameters import cut_piece, flatten_disc
from meshhub.builtin_plugins.step.surfaces.patch_fit import FitPoints, fit_patch
from meshhub.builtin_plugins.step.writer import write
from meshhub.model.deadline import bounded_by
from meshhub.model.notes import Remarks, collecting
from meshhub.model.scene import Mesh
from meshhub.model.source import Target
from models import scene_of
from opencascade_report import measure_volume

pytestmark = [pytest.mark.large, pytest.mark.once, pytest.mark.process]

Solid = manifold3d.Manifold
KINDS = ("planes", "cylinders", "spheres", "cones", "tori", "bsplines")


def drilled_block() -> Any:
    """Return a block on a ball, with three holes and a countersink."""
    part = Solid.cube([40, 20, 8]) + Solid.sphere(6, 48).translate([20, 10, 12])
    part -= Solid.cylinder(10, 1, 4, 40).translate([34, 10, -1])
    for x, radius in ((5, 2.5), (10, 1.5)):
        part -= Solid.cylinder(20, radius, radius, 40).translate([x, 10, -5])
    return part


def mesh_of(solid: Any) -> Mesh:
    native = solid.to_mesh64()
    vertices = np.asarray(native.vert_properties)[:, :3].astype(np.float32).astype(np.float64)
    return Mesh(vertices, np.asarray(native.tri_verts, np.int32), name="part")


def with_needles(mesh: Mesh) -> Mesh:
    """Return a mesh with a triangle without area at an edge of every tenth triangle: the edge is split on one side."""
    faces = mesh.faces[::10]
    middles = mesh.vertices[faces[:, :2]].mean(axis=1)
    added = np.arange(len(faces), dtype=np.int32) + len(mesh.vertices)
    split = mesh.faces.copy()
    split[::10, 0] = added
    a, b, c = faces.T
    rest, needles = np.stack([a, added, c], axis=1), np.stack([a, b, added], axis=1)
    return Mesh(np.concatenate([mesh.vertices, middles]), np.concatenate([split, rest, needles]), name="part")


def write_step(mesh: Mesh, folder: Path) -> Remarks:
    with collecting("step") as remarks:
        write(scene_of(mesh), Target("model.step", folder=folder), StepWriteOptions())
    return remarks


def count_surfaces(remarks: Remarks) -> dict[str, int]:
    return {kind: int(remarks.figures.get(kind, 0)) for kind in KINDS}


@pytest.mark.parametrize("change", ["split", "needles"])
def test_points_on_flat_faces_and_straight_edges_change_nothing(tmp_path: Path, change: str) -> None:
    solid = drilled_block()
    mesh = mesh_of(solid.refine_to_length(2)) if change == "split" else with_needles(mesh_of(solid))
    clean = write_step(mesh_of(solid), tmp_path)
    remarks = write_step(mesh, tmp_path)
    assert count_surfaces(remarks) == count_surfaces(clean)
    assert count_surfaces(clean)["cylinders"] == 2
    volume = clean.figures["mesh_volume_mm3"] + clean.figures["volume_gained_mm3"]
    assert measure_volume(tmp_path / "model.step") == pytest.approx(volume, rel=1e-4)


def test_a_folded_face_keeps_its_volume(tmp_path: Path) -> None:
    # a box; its left side has a flap without area below the bottom, and points in the middle of three edges
    corners = [(0, 0, 0), (0, 4, 0), (0, 4, 8), (0, 0, 8), (10, 0, 0), (10, 4, 0), (10, 4, 8), (10, 0, 8)]
    points = np.array([*corners, (0, 2, -1), (0, 2, 8), (10, 2, 0)], np.float64)
    left = [(0, 8, 1), (8, 0, 9), (0, 3, 9), (1, 8, 9), (2, 1, 9)]
    rest = [(0, 1, 10), (4, 0, 10), (1, 5, 10), (3, 7, 9), (9, 7, 6), (9, 6, 2), (4, 10, 5), (4, 5, 6), (4, 6, 7)]
    sides = [(0, 4, 7), (0, 7, 3), (1, 2, 6), (1, 6, 5)]
    remarks = write_step(Mesh(points, np.array(left + rest + sides, np.int32), name="part"), tmp_path)
    assert remarks.figures["hausdorff_mm"] == pytest.approx(0, abs=1e-9)
    assert measure_volume(tmp_path / "model.step") == pytest.approx(320, rel=1e-6)


def bossed_plate() -> Any:
    """Return a plate with a boss and two holes."""
    part = Solid.cube([40, 20, 8]) + Solid.cylinder(14, 6, 6, 64).translate([20, 10, 0])
    for x, radius in ((6, 3.0), (33, 2.0)):
        part -= Solid.cylinder(20, radius, radius, 64).translate([x, 10, -5])
    return part


@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_a_piece_with_a_triangle_without_area_is_flattened(scale: float) -> None:
    x, y = (values.ravel() for values in np.meshgrid(np.linspace(0, 20, 6), np.linspace(0, 10, 6)))
    points = np.stack([x, y, (x - 10) ** 2 / 20 + y**2 / 50], axis=1) * scale
    corner = (6 * np.arange(5)[:, None] + np.arange(5)).ravel()
    offsets = np.array([[0, 1, 7], [0, 7, 6]])
    faces = (corner[:, None, None] + offsets).reshape(-1, 3)
    a, b, c = faces[0]
    points = np.concatenate([points, [(points[a] + points[b]) / 2]])
    added = len(points) - 1
    piece = cut_piece(np.concatenate([faces[1:], [[a, added, c], [added, b, c], [a, b, added]]]), points)
    assert piece is not None
    parameters = flatten_disc(piece)
    assert parameters is not None
    assert 0 < parameters.min() < parameters.max() < 1


def test_no_patch_passes_through_places_that_are_not_finite() -> None:
    parameters = np.random.default_rng(0).random((50, 2))
    position = np.concatenate([parameters, parameters**2], axis=1)[:, :3]
    held = np.zeros((50, 2), np.bool_)
    for value in (np.nan, np.inf):
        parameters[7, 0] = value
        points = FitPoints(parameters, position, held)
        assert fit_patch(points, (0.01, 0.1), is_closed=False, may_slide=True) is None


def test_surfaces_are_fitted_to_a_noisy_mesh(tmp_path: Path) -> None:
    noise = 0.05
    mesh = mesh_of(bossed_plate().refine_to_length(2))
    vertices = mesh.vertices + np.random.default_rng(1).normal(0, noise, mesh.vertices.shape)
    remarks = write_step(Mesh(vertices, mesh.faces, name="part"), tmp_path)
    surfaces = count_surfaces(remarks)
    assert (surfaces["planes"], surfaces["cylinders"]) == (7, 3)
    assert remarks.figures["valid_solids"] == 1
    text = (tmp_path / "model.step").read_text()
    radii = sorted(float(radius) for radius in re.findall(r"CYLINDRICAL_SURFACE\('',#\d+,([0-9.]+)\)", text))
    assert radii == pytest.approx([2, 3, 6], abs=2 * noise)
    # the distance includes the noise that was smoothed
    assert 2 * noise < remarks.figures["hausdorff_mm"] < 6 * noise
    assert [note.code for note in remarks.notes] == ["noise_smoothed"]


def split_to_length(shape: Any, distance: float, angle: float) -> Mesh:
    """Return the triangles of a shape of OpenCASCADE, with edges of at most 2 mm."""
    triangles = triangulate_occ(shape, distance, angle)
    points, index = np.unique(triangles.reshape(-1, 3).astype(np.float32), axis=0, return_inverse=True)
    return mesh_of(Solid(manifold3d.Mesh(points, index.reshape(-1, 3).astype(np.uint32))).refine_to_length(2))


def rounded_box(
    radius: float, size: tuple[float, float, float] = (10, 18, 14), distance: float = 0.02, angle: float = 0.3
) -> Mesh:
    """Return a box with a fillet along every edge, with edges of at most 2 mm."""
    from OCP.BRepFilletAPI import BRepFilletAPI_MakeFillet
    from OCP.TopAbs import TopAbs_EDGE
    from OCP.TopoDS import TopoDS

    box = occ.box(0, 0, 0, *size)
    fillet = BRepFilletAPI_MakeFillet(box)
    for edge in occ.list_shapes(box, TopAbs_EDGE):
        fillet.Add(radius, TopoDS.Edge(edge))
    return split_to_length(fillet.Shape(), distance, angle)


def test_strips_of_noisy_holes_are_joined_across_free_triangles(tmp_path: Path) -> None:
    noise, end, hole = 0.05, 4.8, 2.0
    bar = [occ.box(0, 0, 0, 4, 32, 2 * end), *(occ.cylinder(x, 0, 0, 4, end) for x in (-16, 16))]
    part = occ.cut(occ.unify(occ.join(*bar)), *(occ.cylinder(x, 0, -1, 6, hole) for x in (-16, 16)))
    mesh = split_to_length(occ.turn(part, (1, 2, 3), 25), 0.01, 0.2)
    vertices = mesh.vertices + np.random.default_rng(1).normal(0, noise, mesh.vertices.shape)
    remarks = write_step(Mesh(vertices, mesh.faces, name="part"), tmp_path)
    surfaces = count_surfaces(remarks)
    assert (surfaces["planes"], surfaces["cylinders"]) == (4, 4)
    text = (tmp_path / "model.step").read_text()
    radii = sorted(float(radius) for radius in re.findall(r"CYLINDRICAL_SURFACE\('',#\d+,([0-9.]+)\)", text))
    assert radii == pytest.approx([hole, hole, end, end], abs=2 * noise)


def test_a_point_that_is_spread_along_long_edges_stays_on_its_cylinder(tmp_path: Path) -> None:
    mesh = split_to_length(occ.unify(occ.join(occ.cylinder(0, 0, 0, 25, 5), occ.ball(0, 0, 30, 9))), 0.01, 0.2)
    vertices = mesh.vertices + np.random.default_rng(1).normal(0, 0.05, mesh.vertices.shape)
    surfaces = count_surfaces(write_step(Mesh(vertices, mesh.faces, name="part"), tmp_path))
    assert (surfaces["planes"], surfaces["cylinders"], surfaces["spheres"]) == (1, 1, 1)


def test_corners_of_fillets_are_spheres_of_their_radius(tmp_path: Path) -> None:
    noise, radius = 0.02, 3.0
    mesh = rounded_box(radius)
    vertices = mesh.vertices + np.random.default_rng(1).normal(0, noise, mesh.vertices.shape)
    remarks = write_step(Mesh(vertices, mesh.faces, name="part"), tmp_path)
    surfaces = count_surfaces(remarks)
    assert (surfaces["planes"], surfaces["cylinders"], surfaces["spheres"]) == (6, 12, 8)
    text = (tmp_path / "model.step").read_text()
    radii = re.findall(r"(?:CYLINDRICAL|SPHERICAL)_SURFACE\('',#\d+,([0-9.]+)\)", text)
    assert [float(text) for text in radii] == pytest.approx([radius] * 20, abs=2 * noise)
    assert remarks.figures["valid_solids"] == 1


def test_strips_of_flat_sides_do_not_widen_the_fillets_of_a_remeshed_box(tmp_path: Path) -> None:
    pymeshlab = pytest.importorskip("pymeshlab", reason="the extra meshlab remeshes the box")
    radius = 3.0
    meshes = pymeshlab.MeshSet(verbose=False)
    box = rounded_box(radius, (20, 40, 30), 0.01, 0.2)
    meshes.add_mesh(pymeshlab.Mesh(box.vertices, box.faces))
    meshes.meshing_isotropic_explicit_remeshing(targetlen=pymeshlab.PureValue(1.4), featuredeg=20)
    mesh = meshes.current_mesh()
    vertices = mesh.vertex_matrix().astype(np.float32).astype(np.float64)
    remarks = write_step(Mesh(vertices, mesh.face_matrix().astype(np.int32), name="part"), tmp_path)
    surfaces = count_surfaces(remarks)
    assert (surfaces["planes"], surfaces["cylinders"], surfaces["spheres"]) == (6, 12, 8)
    radii = re.findall(r"(?:CYLINDRICAL|SPHERICAL)_SURFACE\('',#\d+,([0-9.]+)\)", (tmp_path / "model.step").read_text())
    assert [float(text) for text in radii] == pytest.approx([radius] * 20, abs=0.01)


@pytest.mark.large
def test_surfaces_are_fitted_to_many_triangles(tmp_path: Path) -> None:
    mesh = mesh_of(bossed_plate().refine_to_length(0.5))
    assert len(mesh.faces) > 40_000
    vertices = mesh.vertices + np.random.default_rng(1).normal(0, 0.02, mesh.vertices.shape)
    clean = write_step(mesh, tmp_path)
    remarks = write_step(Mesh(vertices, mesh.faces, name="part"), tmp_path)
    assert "noise_smoothed" in [note.code for note in remarks.notes]
    assert count_surfaces(remarks) == count_surfaces(clean)


@pytest.mark.parametrize("left_s", [0.0, 3600.0], ids=["before", "while-regions-grow"])
def test_a_second_attempt_leaves_time_before_the_deadline(
    left_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mesh = mesh_of(bossed_plate().refine_to_length(2))
    vertices = mesh.vertices + np.random.default_rng(1).normal(0, 0.05, mesh.vertices.shape)
    # as if all of the time had passed once regions grow
    monkeypatch.setattr(noisy_regions, "_MIN_TIME_RATIO", 1.0)
    with bounded_by(time.monotonic() + left_s):
        remarks = write_step(Mesh(vertices, mesh.faces, name="part"), tmp_path)
    codes = [note.code for note in remarks.notes]
    assert "unsearched_facets" in codes
    assert "noise_smoothed" not in codes
    assert remarks.figures["cylinders"] == 0


def test_a_note_says_why_a_noisy_mesh_stays_flat(tmp_path: Path) -> None:
    mesh = mesh_of(bossed_plate().refine_to_length(2))
    vertices = mesh.vertices + np.random.default_rng(1).normal(0, 0.6, mesh.vertices.shape)
    remarks = write_step(Mesh(vertices, mesh.faces, name="part"), tmp_path)
    (remark,) = [remark for remark in remarks.notes if remark.code == "free_form_facets"]
    assert remark.message.endswith("no surface fits them; the model is free-form, or noisier than its features")
    assert remark.values["total"] == len(mesh.faces)
    assert len(mesh.faces) / 2 < remark.values["count"] <= len(mesh.faces)


def test_rectangles_are_no_facets_without_a_surface(tmp_path: Path) -> None:
    boxes = [Solid.cube((4, 4, 4)).translate((6 * (number % 6), 6 * (number // 6), 0)) for number in range(36)]
    remarks = write_step(mesh_of(Solid.compose(boxes)), tmp_path)
    assert remarks.figures["faces"] == 6 * 36
    assert not remarks.notes
