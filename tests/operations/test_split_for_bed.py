"""Operation split-for-bed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import manifold3d
import numpy as np
import pytest
import trimesh
from hypothesis import example, given, settings
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


def split(
    scene: Scene, bed: str, connectors: str = "none", clearance: float = 0.15, *, cuts: str | None = None
) -> tuple[Scene, Remarks]:
    options = SplitForBedOptions(
        split_for_bed=bed,
        split_for_bed_cuts=cuts,
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
@settings(max_examples=4, deadline=None)
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


def codes(remarks: Remarks) -> list[str]:
    return [note.code for note in remarks.notes]


def test_parts_are_cut_at_the_requested_planes() -> None:
    scene = scene_of(move_mesh(brick(400, 300, 100, name="box"), 10, 0, 0))
    result, remarks = split(scene, "220x220x250", cuts="x=200, y=40%")
    assert [part.name for part in result.parts] == ["box-a", "box-b", "box-c", "box-d"]
    assert bounds_of_parts(result).tolist() == [
        [[10, 0, 0], [200, 120, 100]],
        [[10, 120, 0], [200, 300, 100]],
        [[200, 0, 0], [410, 120, 100]],
        [[200, 120, 0], [410, 300, 100]],
    ]
    assert_valid(result)
    assert codes(remarks) == ["parts_cut_for_bed"]
    assert (remarks.figures["planes"], remarks.figures["cuts_added"]) == (2, 0)


def test_pieces_that_are_still_larger_than_the_bed_are_cut_further() -> None:
    result, remarks = split(scene_of(brick(500, 100, 100)), "220x220x250", cuts="x=100")
    assert sizes(result)[:, 0].tolist() == [100, 200, 200]
    assert codes(remarks) == ["parts_cut_for_bed", "cuts_added"]
    note = remarks.notes[1]
    assert note.values == {"count": 1}
    assert note.options == ("split_for_bed_cuts",) and "'split_for_bed_cuts'" in note.message
    assert remarks.figures["cuts_added"] == 1


@pytest.mark.parametrize(("kind", "count"), [("pegs", 3), ("dovetail", 3), ("dowels", 2), ("none", 2)])
def test_a_piece_and_its_connector_fit_the_bed(kind: str, count: int) -> None:
    # the lower piece has the length of the bed, without room for what protrudes from it
    result, remarks = split(scene_of(brick(420, 60, 60)), "220x220x250", kind, cuts="x=220")
    pieces = [part for part in result.parts if "dowel" not in part.name]
    assert len(pieces) == count
    assert (sizes(result) <= 220).all()
    assert ("cuts_added" in codes(remarks)) == (count == 3)
    assert 220 in bounds_of_parts(result)[:, 0, 0]
    assert_valid(result)


def test_bodies_that_a_cut_separates_become_pieces() -> None:
    # two legs below a plate
    table = Solid.cube([300, 60, 20]).translate([0, 0, 180])
    for x in (20, 250):
        table += Solid.cube([30, 60, 190]).translate([x, 0, 0])
    result, _ = split(scene_of(to_mesh(table)), "320x220x190", cuts="z=180")
    assert sorted(map(tuple, sizes(result).round(6).tolist())) == [(30, 60, 180), (30, 60, 180), (300, 60, 20)]


def test_only_parts_that_are_too_large_are_cut() -> None:
    matrix = np.eye(4)
    matrix[1, 3] = 300
    scene = Scene((brick(300, 20, 20), brick()), (Part(0, name="a"), Part(1, name="small"), Part(0, matrix, "b")))
    result, _ = split(scene, "220x220x250", cuts="x=5,x=120")
    assert [part.name for part in result.parts] == ["a-a", "a-b", "a-c", "small", "b-a", "b-b", "b-c"]
    assert [part.mesh for part in result.parts] == [1, 2, 3, 0, 1, 2, 3]
    # a plane that crosses one of two instances
    result, remarks = split(scene, "220x220x250", cuts="x=120,y=310")
    boxes = bounds_of_parts(result)
    assert [part.name for part in result.parts] == ["a-a", "a-b", "small", "b-a", "b-b", "b-c", "b-d"]
    assert (boxes[:, 1, 1] == [20, 20, 20, 310, 320, 310, 320]).all()
    assert codes(remarks) == ["parts_cut_for_bed"]


def test_planes_that_cut_nothing_have_notes() -> None:
    scene = scene_of(brick(300, 20, 20), move_mesh(brick(), 0, 100, 0))
    result, remarks = split(scene, "220x220x250", cuts="x=150,y=110,z=-7.5")
    assert len(result.parts) == 3
    unused = [note for note in remarks.notes if note.code == "cut_unused"]
    assert [note.values for note in unused] == [{"axis": "Y", "offset": 110.0}, {"axis": "Z", "offset": -7.5}]
    assert all("'split_for_bed_cuts'" in note.message for note in unused)
    _, remarks = split(scene, "220x220x250", cuts="x=150,y=91.234567%")
    assert remarks.notes[-1].message.startswith("the plane y=109.481 crosses no part")
    _, remarks = split(scene, "320x220x250", cuts="x=150")
    assert codes(remarks) == ["fits_bed"]


def test_thin_pieces_of_requested_cuts_have_a_note() -> None:
    result, remarks = split(scene_of(brick(300, 60, 60)), "220x220x250", cuts="x=150,x=153")
    assert sizes(result)[:, 0].tolist() == [150, 3, 147]
    assert codes(remarks) == ["parts_cut_for_bed", "thin_pieces"]
    assert remarks.notes[1].options == ("split_for_bed_cuts",)


def test_equal_planes_cut_once() -> None:
    result, _ = split(scene_of(brick(400, 20, 20)), "220x220x250", cuts="x=200,x=50%,x=200.000001")
    assert len(result.parts) == 2
    assert_valid(result)


@given(
    seed=st.integers(0, 10_000),
    kind=st.sampled_from(["none", "pegs", "dowels", "dovetail"]),
    cuts=st.lists(st.tuples(st.sampled_from("xyz"), st.integers(-90, 90)), min_size=1, max_size=4, unique=True),
)
# a dovetail left pairs of opposite faces, and a piece that touches itself
@example(seed=255, kind="dovetail", cuts=[("x", 4)])
@example(seed=255, kind="dovetail", cuts=[("x", -2)])
@settings(max_examples=6, deadline=None)
def test_requested_planes_give_closed_pieces_that_fit(seed: int, kind: str, cuts: list[tuple[str, int]]) -> None:
    random = np.random.default_rng(seed)
    solid = Solid.sphere(110, 32).scale(random.uniform(0.6, 1.2, 3).tolist()) - Solid.cube([60, 70, 400], center=True)
    solid = solid.rotate(random.uniform(0, 90, 3).tolist())
    scene = scene_of(to_mesh(solid))
    text = ",".join(f"{axis}={offset}" for axis, offset in cuts)
    result, remarks = split(scene, "120x110x100", kind, cuts=text)
    for part in result.parts:
        _, faces = weld_as_stl(*soup(replace(result, parts=(part,))))
        assert edge_counts(faces[(np.diff(np.sort(faces, axis=1), axis=1) > 0).all(axis=1)]) == (0, 0)
    assert (sizes(result) <= np.array([120, 110, 100]) * (1 + 1e-6)).all()
    change = remarks.figures["connector_volume_mm3"]
    assert isinstance(change, float)
    assert volume(*soup(result)) == pytest.approx(solid.volume() + change, rel=1e-6)
    if kind == "none":
        assert change == pytest.approx(0, abs=1e-6 * solid.volume())
        for axis, offset in cuts:
            low, high = bounds_of_parts(result)[:, :, "xyz".index(axis)].T
            # no piece crosses a requested plane, and pieces end at it if it crosses the model
            assert not ((low < offset - 1e-4) & (high > offset + 1e-4)).any()
            assert (offset in high.round(4)) == (low.min() < offset < high.max())


@pytest.mark.parametrize("text", ["x", "x=50%,", "w=3", "x=100%", ",".join(f"x={at}" for at in range(33))])
def test_cuts_that_are_no_planes_are_rejected(text: str, tmp_path: Path) -> None:
    with Registry(entry_points=False) as registry, pytest.raises(InvalidOption, match="split_for_bed_cuts"):
        registry.convert(
            "examples/bracket.stl", tmp_path / "a.3mf", split_for_bed="220x220x250", split_for_bed_cuts=text
        )


def test_cuts_without_a_bed_are_rejected(tmp_path: Path) -> None:
    with Registry(entry_points=False) as registry, pytest.raises(InvalidOption, match="set 'split_for_bed'"):
        registry.convert("examples/bracket.stl", tmp_path / "a.3mf", split_for_bed_cuts="x=10")


def test_too_many_requested_pieces_are_rejected() -> None:
    cuts = ",".join(f"{axis}={at}" for axis in "xyz" for at in range(10, 100, 10))
    with pytest.raises(InvalidOption, match="'split_for_bed_cuts' would make over 500 pieces"):
        split(scene_of(brick(100, 100, 100)), "50x50x50", cuts=cuts)
