"""Operation split-for-bed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import manifold3d
import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st

from meshhub import ConversionFailed, InvalidOption, Registry
from meshhub.builtin_plugins.split_for_bed import SplitForBedOptions
from meshhub.builtin_plugins.split_for_bed.operation import run
from meshhub.model.notes import Remarks, collecting
from meshhub.model.scene import Mesh, Part, Scene
from meshhub.toolkit.geometry import bounds, bounds_of_parts, soup
from models import assert_valid, brick, edge_counts, move_mesh, scene_of, sphere, volume, weld_as_stl

pytestmark = [pytest.mark.once, pytest.mark.process]

Solid = manifold3d.Manifold


def split(scene: Scene, bed: str, connectors: str = "none", clearance: float = 0.15) -> tuple[Scene, Remarks]:
    options = SplitForBedOptions(
        split_for_bed=bed,
        split_for_bed_connectors=connectors,  # type: ignore[arg-type]
        split_for_bed_clearance_mm=clearance,
    )
    with collecting("split-for-bed") as remarks:
        result = run(scene, options)
    return result, remarks


def sizes(scene: Scene) -> np.ndarray:
    return np.ptp(bounds_of_parts(scene), axis=1)


def to_mesh(solid: Solid, name: str = "model") -> Mesh:
    native = solid.to_mesh64()
    return Mesh(native.vert_properties[:, :3], native.tri_verts.astype(np.int32), name=name)


def to_solids(scene: Scene) -> list[Solid]:
    solids = []
    for part in scene.parts:
        points, faces = soup(replace(scene, parts=(part,)))
        points, index = np.unique(points, axis=0, return_inverse=True)
        solids.append(Solid(manifold3d.Mesh64(points, index.ravel()[faces].astype(np.uint64))))
    return solids


def test_pieces_are_equal_and_few() -> None:
    result, _ = split(scene_of(brick(500, 200, 260, name="box")), "220x220x250")
    assert [part.name for part in result.parts] == [f"box-{letter}" for letter in "abcdef"]
    assert np.allclose(sizes(result), [500 / 3, 200, 130])
    assert volume(*soup(result)) == pytest.approx(500 * 200 * 260, rel=1e-12)
    assert_valid(result)


@pytest.mark.parametrize("kind", ["pegs", "dowels", "dovetail"])
@pytest.mark.parametrize("box", [(300, 100, 60), (100, 300, 60), (60, 100, 300), (430, 430, 40)])
def test_connectors_fit_into_their_holes_and_pieces_onto_the_bed(kind: str, box: tuple[int, int, int]) -> None:
    scene = scene_of(brick(*box, name="box"))
    result, remarks = split(scene, "220x220x220", kind)
    assert_valid(result)
    assert (sizes(result) <= 220).all()
    assert remarks.figures["connectors"]
    assert [note.code for note in remarks.notes] == ["parts_cut_for_bed"]
    solids = to_solids(result)
    total = sum(solid.volume() for solid in solids)
    # no two pieces overlap
    assert Solid.batch_boolean(solids, manifold3d.OpType.Add).volume() == pytest.approx(total, rel=1e-9)
    change = remarks.figures["connector_volume_mm3"]
    assert isinstance(change, float) and -0.001 * total < change < 0
    assert total == pytest.approx(np.prod(box) + change)
    # connectors stay inside of the box
    assert np.allclose(bounds(result), bounds(scene))


@pytest.mark.parametrize("clearance", [0, 0.3])
def test_the_clearance_is_the_distance_of_peg_and_hole(clearance: float) -> None:
    result, _ = split(scene_of(brick(300, 60, 60)), "220x220x220", "pegs", clearance)
    low, high = to_solids(result)
    peg = low ^ Solid.cube([20, 60, 60]).translate([150.5, 0, 0])
    around = peg.decompose()[0]
    assert around.min_gap(high, 5) == pytest.approx(clearance, abs=0.02)


def test_there_are_no_pegs_where_material_is_missing() -> None:
    # a thin-walled tube has no room for pegs, and a rod has
    tube = Solid.cube([300, 60, 60]) - Solid.cube([302, 56, 56]).translate([-1, 2, 2])
    result, remarks = split(scene_of(to_mesh(tube)), "220x220x220", "pegs")
    assert remarks.figures["connectors"] == 0
    assert [note.code for note in remarks.notes] == ["parts_cut_for_bed", "no_room_for_connectors"]
    assert_valid(result)
    _, remarks = split(scene_of(brick(300, 9, 9)), "220x220x220", "pegs")
    assert remarks.figures["connectors"] == 1


def test_a_plane_is_moved_so_that_no_sliver_is_left() -> None:
    # a fin begins 3 mm before the middle
    solid = Solid.cube([300, 40, 40]) + Solid.cube([143, 40, 40]).translate([147 - 137, 0, 30])
    block = (
        Solid.cube([300, 40, 40])
        - Solid.cube([200, 42, 20]).translate([-1, -1, 30])
        + Solid.cube([60, 40, 40]).translate([93, 0, 45])
    )
    for shape in (solid, block):
        result, remarks = split(scene_of(to_mesh(shape)), "220x220x220")
        assert "thin_pieces" not in [note.code for note in remarks.notes]
        assert all(min(np.ptp(np.array(body.bounding_box()).reshape(2, 3), axis=0)) > 9 for piece in to_solids(result)
                   for body in piece.decompose())  # fmt: skip


def test_separate_bodies_need_only_their_own_cuts() -> None:
    table = Solid.cube([400, 400, 20]).translate([0, 0, 180])
    for x in (10, 360):
        for y in (10, 360):
            table += Solid.cube([30, 30, 200]).translate([x, y, 0])
    result, _ = split(scene_of(to_mesh(table)), "220x420x150")
    assert len(result.parts) <= 8
    assert (sizes(result) <= [220, 420, 150]).all()
    assert volume(*soup(result)) == pytest.approx(table.volume(), rel=1e-9)


def test_a_part_that_fits_stays_and_instances_share_pieces() -> None:
    matrix = np.eye(4)
    matrix[1, 3] = 300
    scene = Scene((brick(300, 20, 20), brick()), (Part(0, name="a"), Part(1, name="small"), Part(0, matrix, "b")))
    result, _ = split(scene, "220x220x250", "pegs")
    assert [part.name for part in result.parts] == ["a-a", "a-b", "small", "b-a", "b-b"]
    assert [part.mesh for part in result.parts] == [1, 2, 0, 1, 2]
    unchanged, remarks = split(scene, "300x220x250")
    assert len(unchanged.parts) == 3
    assert [note.code for note in remarks.notes] == ["fits_bed"]


def test_colors_are_kept_and_connectors_have_that_of_the_nearest_surface() -> None:
    mesh = replace(brick(300, 60, 60), colors=np.tile(np.uint8([9, 99, 199, 255]), (8, 1)))
    for kind in ("pegs", "dowels", "dovetail"):
        result, _ = split(scene_of(mesh), "220x220x250", kind)
        assert all((result.meshes[part.mesh].colors == [9, 99, 199, 255]).all() for part in result.parts)


@given(seed=st.integers(0, 10_000), kind=st.sampled_from(["none", "pegs", "dowels", "dovetail"]))
@settings(max_examples=6, deadline=None)
def test_any_solid_gives_closed_pieces_that_fit(seed: int, kind: str) -> None:
    random = np.random.default_rng(seed)
    solid = Solid()
    for _ in range(5):
        shape = Solid.cube(random.uniform(40, 200, 3).tolist()) if random.random() < 0.5 else Solid.sphere(60, 24)
        shape = shape.rotate(random.uniform(0, 90, 3).tolist()).translate(random.uniform(-90, 90, 3).tolist())
        solid = solid - shape if random.random() < 0.25 else solid + shape
    if solid.is_empty():
        return
    scene = scene_of(to_mesh(solid))
    result, remarks = split(scene, "120x110x100", kind)
    for part in result.parts:
        _, faces = weld_as_stl(*soup(replace(result, parts=(part,))))
        # rounding may collapse faces of irregular dovetails, which leaves the surface closed
        assert edge_counts(faces[(np.diff(np.sort(faces, axis=1), axis=1) > 0).all(axis=1)]) == (0, 0)
    assert (sizes(result) <= np.array([120, 110, 100]) * (1 + 1e-6)).all()
    change = remarks.figures.get("connector_volume_mm3", 0.0)
    assert volume(*soup(result)) == pytest.approx(solid.volume() + change, rel=1e-6)
    assert abs(change) < 0.05 * solid.volume()
    if kind == "none":
        assert change == pytest.approx(0, abs=1e-6 * solid.volume())


def test_too_many_pieces_and_open_parts_are_rejected() -> None:
    with pytest.raises(InvalidOption, match="over 500 pieces"):
        split(scene_of(brick(9000, 9000, 9000)), "30x30x30")
    with pytest.raises(ConversionFailed, match="repair"):
        split(scene_of(replace(sphere(150), faces=sphere(150).faces[1:])), "220x220x250")


@pytest.mark.parametrize("text", ["220", "220x220", "20x220x220", "-1x220x220", "220x220x220x220", "axbxc"])
def test_a_bed_that_is_none_is_rejected(text: str, tmp_path: Path) -> None:
    with Registry(entry_points=False) as registry, pytest.raises(InvalidOption, match="split_for_bed"):
        registry.convert("examples/bracket.stl", tmp_path / "a.3mf", split_for_bed=text)


def test_connectors_without_a_bed_are_rejected(tmp_path: Path) -> None:
    with Registry(entry_points=False) as registry, pytest.raises(InvalidOption, match="split_for_bed"):
        registry.convert("examples/bracket.stl", tmp_path / "a.3mf", split_for_bed_connectors="pegs")


@pytest.mark.parametrize("kind", ["pegs", "dowels", "dovetail"])
def test_files_have_closed_pieces(kind: str, tmp_path: Path) -> None:
    trimesh.creation.torus(150, 40).export(tmp_path / "ring.stl")
    with Registry(entry_points=False) as registry:
        registry.convert(
            tmp_path / "ring.stl", tmp_path / "a.3mf", split_for_bed="220x220x250", split_for_bed_connectors=kind
        )
    pieces = list(trimesh.load_scene(tmp_path / "a.3mf").geometry.values())
    assert len(pieces) >= 4
    assert all(piece.is_watertight and piece.volume > 0 for piece in pieces)


def test_scene_of_shifted_parts_keeps_places() -> None:
    scene = scene_of(move_mesh(brick(300, 50, 50), -1000, 50, 7))
    result, _ = split(scene, "220x220x250", "dowels")
    assert np.allclose(bounds(result), bounds(scene))
