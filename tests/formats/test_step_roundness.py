"""Flats are not written as round surfaces, and round surfaces are; OpenCASCADE measures the files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import manifold3d
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from meshhub.builtin_plugins.step import StepWriteOptions, writer
from meshhub.builtin_plugins.step.kernel import kernel_check
from meshhub.builtin_plugins.step.part21.part21 import format_real, format_reals
from meshhub.builtin_plugins.step.solids import builder, seams
from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceKind
from meshhub.builtin_plugins.step.writer import write
from meshhub.errors import ConversionFailed
from meshhub.model.notes import Remarks, collecting
from meshhub.model.scene import Mesh
from meshhub.model.source import Target
from meshhub.toolkit.distances import closest_points
from models import scene_of, volume
from opencascade_report import measure_volume

pytestmark = [pytest.mark.large, pytest.mark.once, pytest.mark.process]

Solid = manifold3d.Manifold


def extruded(outline: np.ndarray, height: float = 15) -> Any:
    return Solid.extrude(manifold3d.CrossSection([outline]), height)


def mesh_of(solid: Any) -> Mesh:
    native = solid.to_mesh64()
    vertices = np.asarray(native.vert_properties)[:, :3].astype(np.float32).astype(np.float64)
    return Mesh(vertices, np.asarray(native.tri_verts, np.int32), name="part")


def write_step(mesh: Mesh, folder: Path | None = None) -> tuple[Target, Remarks]:
    target = Target("model.step", folder=folder)
    with collecting("step") as remarks:
        write(scene_of(mesh), target, StepWriteOptions())
    return target, remarks


def curved_faces(remarks: Remarks) -> int:
    return int(remarks.figures["faces"] - remarks.figures["planes"])


def bend(count: int, degrees: float, thickness: float = 5, leg: float = 20, width: float = 6) -> Any:
    """Return a bent sheet: two legs, and flats between them that all turn by one angle, as the legs do."""
    turn = np.radians(degrees) * np.arange(count + 2)
    lengths = np.array([leg, *[width] * count, leg])
    steps = lengths[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    outer = np.concatenate([[[0, 0]], np.cumsum(steps, axis=0)])
    normal = np.stack([-np.sin(turn), np.cos(turn)], axis=1)
    miter = normal[:-1] + normal[1:]
    miter /= np.einsum("ij,ij->i", miter, normal[1:])[:, None]
    inner = outer + thickness * np.concatenate([normal[:1], miter, normal[-1:]])
    return extruded(np.concatenate([outer, inner[::-1]]))


def sector(count: int, degrees: float, inner: float = 0.0) -> Any:
    """Return flats around a bend of radius 20 mm, closed by a chord, or by flats `inner` mm from the center."""
    turn = np.radians(degrees) * np.arange(count + 1)
    around = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    return extruded(np.concatenate([20 * around, inner * around[::-1]]) if inner else 20 * around)


def rounded_box(count: int) -> Any:
    """Return a box of 30 x 20 mm whose upright edges are fillets of radius 8 mm, each of some flats."""
    turn = np.radians(np.linspace(0, 90, count + 1))
    corners = [
        np.array([x, y]) + 8 * np.stack([np.cos(turn + start), np.sin(turn + start)], axis=1)
        for start, x, y in zip(np.pi / 2 * np.arange(4), (7, -7, -7, 7), (2, 2, -2, -2), strict=True)
    ]
    return extruded(np.concatenate(corners))


def vary(solid: Any, seed: int) -> Any:
    """Return a solid mirrored or not, rotated, scaled and moved at random."""
    generator = np.random.default_rng(seed)
    turn = Rotation.random(random_state=seed).as_matrix() * np.exp(generator.uniform(-1.5, 1.5))
    turn[:, 0] *= generator.choice([-1, 1])
    return solid.transform(np.column_stack([turn, generator.uniform(-50, 50, 3)]))


FLATS = {
    "three flats of 25°": lambda: bend(3, 25),
    "three flats of 10°": lambda: bend(3, 10),
    "four flats of 30°": lambda: bend(4, 30),
    "six flats of 15°": lambda: bend(6, 15),
    "thin bend": lambda: bend(4, 20, thickness=1),
    "bend beside a fine hole": lambda: (
        bend(3, 25) - Solid.cylinder(40, 3, 3, 96).rotate([90, 0, 0]).translate([9, 20, 8])
    ),
    "four flats and a chord": lambda: sector(4, 30),
    "three flats and a chord": lambda: sector(3, 20),
    "arch of five flats": lambda: sector(5, 20, inner=17),
    "wedge between flats": lambda: rounded_box(2),
    "tapered arch": lambda: Solid.extrude(sector(5, 20, inner=17).slice(1), 15, scale_top=(0.6, 0.6)),
    "socket": lambda: Solid.cube([40, 40, 12], True) - Solid.cylinder(30, 8, 6, 7).translate([0, 0, -9]),
}
"""Solids whose flats have their corners on cylinders."""


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("part", FLATS)
def test_flats_around_a_bend_stay_flat(part: str, seed: int) -> None:
    solid = FLATS[part]()
    _, remarks = write_step(mesh_of(vary(solid, seed) if seed else solid))
    holes = 1 if "hole" in part else 0
    assert (curved_faces(remarks), remarks.figures["cylinders"]) == (holes, holes)
    assert abs(remarks.figures["volume_gained_mm3"]) < 3e-3 * remarks.figures["mesh_volume_mm3"]


@pytest.mark.parametrize("count", [4, 5, 7])
def test_tangent_fillets_of_few_flats_are_round(tmp_path: Path, count: int) -> None:
    pytest.importorskip("OCP.STEPControl", reason="OpenCASCADE measures the volume")
    mesh = mesh_of(vary(rounded_box(count), count))
    target, remarks = write_step(mesh, tmp_path)
    assert (remarks.figures["planes"], remarks.figures["cylinders"]) == (6, 4)
    flat = 30 * 20 - (4 - 4 * count * np.sin(np.pi / 2 / count) / 2) * 64
    true_ratio = (30 * 20 - (4 - np.pi) * 64) / flat
    measured = measure_volume(tmp_path / target.name)
    assert measured / abs(volume(mesh.vertices, mesh.faces)) == pytest.approx(true_ratio, rel=1e-4)


def test_few_flats_as_fine_as_a_round_face_of_the_mesh_are_round() -> None:
    arch = sector(5, 7.5, inner=17).translate([-18, -5, 0])
    _, remarks = write_step(mesh_of(arch))
    assert remarks.figures["cylinders"] == 0
    _, remarks = write_step(mesh_of(arch + Solid.cylinder(15, 4, 4, 48).translate([9, 9, 0])))
    assert remarks.figures["cylinders"] == 3


@pytest.mark.parametrize(("segments", "percent"), [(16, "+2.62%"), (64, None)])
def test_a_changed_volume_has_a_note_with_the_figure(segments: int, percent: str | None) -> None:
    _, remarks = write_step(mesh_of(Solid.cylinder(10, 10, 10, segments)))
    assert remarks.figures["cylinders"] == 1
    messages = [note.message for note in remarks.notes if note.code == "volume_changed"]
    assert len(messages) == (percent is not None)
    assert all(percent in message and "'part'" in message for message in messages)  # type: ignore[operator]


def test_the_distance_includes_edges_of_surfaces_that_meet_at_a_small_angle() -> None:
    """The arcs of a lens of two 30-gons meet farther outside than they are from their chords."""
    disk = Solid.cylinder(10, 30, 30, 30)
    mesh = mesh_of(disk.translate([12, 0, 0]) ^ disk.translate([-12, 0, 0]))
    _, remarks = write_step(mesh)
    assert remarks.figures["cylinders"] == 2
    tip = np.array([[0, np.sqrt(30**2 - 12**2), 5]])
    gap = tip - closest_points(np.repeat(tip, len(mesh.faces), axis=0), mesh.vertices[mesh.faces])
    assert 30 * (1 - np.cos(np.pi / 30)) < 0.165
    assert remarks.figures["hausdorff_mm"] == pytest.approx(np.linalg.norm(gap, axis=1).min(), rel=0.01)
    assert remarks.figures["hausdorff_mm"] > 0.178


def test_the_kernel_checks_thousands_of_faces() -> None:
    assert writer.MAX_FACES_COUNT == kernel_check.MAX_FACES_COUNT >= 6000


def test_directions_of_two_rims_at_right_angles_give_finite_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounding may give the two rims of a countersink directions that differ by 90°."""
    monkeypatch.setattr(writer, "is_available", lambda: False)

    def alternate(axis: np.ndarray) -> np.ndarray:
        return np.eye(3)[np.arange(len(axis)) % 2]

    monkeypatch.setattr(seams, "common_directions", alternate)
    plate = Solid.cube([30, 30, 4], True) - Solid.cylinder(4, 2, 4, 32, True)
    target, remarks = write_step(mesh_of(plate))
    text = target.read()
    assert remarks.figures["cones"] == 1
    assert b"nan" not in text
    assert b"inf" not in text
    # of the plate, its two rims, and the seam between them
    assert text.count(b"=EDGE_CURVE(") == 12 + 2 + 1


def test_a_surface_with_undefined_numbers_becomes_flat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "is_available", lambda: False)
    place = seams.place_seams

    def place_badly(skin: Any, regions: Any, *others: Any) -> Any:
        placed = place(skin, regions, *others)
        is_cone = regions.surfaces.kind == SurfaceKind.CONE
        return replace(placed, reference=np.where(is_cone[:, None], np.nan, placed.reference))

    monkeypatch.setattr(builder, "place_seams", place_badly)
    plate = Solid.cube([30, 30, 4], True) - Solid.cylinder(4, 2, 4, 32, True)
    target, remarks = write_step(mesh_of(plate + Solid.cylinder(9, 3, 3, 48).translate([10, 10, 0])))
    assert (remarks.figures["cones"], remarks.figures["cylinders"]) == (0, 1)
    assert b"nan" not in target.read()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_never_written(value: float) -> None:
    with pytest.raises(ConversionFailed, match="not finite"):
        format_reals(np.array([1.0, value]), 6)
    with pytest.raises(ConversionFailed, match="not finite"):
        format_real(value)


def test_a_flat_within_an_arc_that_touches_planes_ends_no_conversion() -> None:
    """The flat splits a recognized cylinder into two faces with one axis; only one of them has the corners."""
    half = np.linspace(90, 170, 17)
    turn = np.radians(np.concatenate([half, 360 - half[::-1]]))
    arc = 10 * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    _, remarks = write_step(mesh_of(extruded(np.concatenate([[[20, -10], [20, 10]], arc]), 12)))
    assert (remarks.figures["cylinders"], remarks.figures["planes"]) == (2, 6)
