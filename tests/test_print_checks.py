"""Checks of prints on shapes whose walls, gaps, overhangs and contacts are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import manifold3d
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from manifold3d import Manifold

from meshhub import Finding, Material, Mesh, Part, Registry, Scene, Verdict
from meshhub.builtin_plugins.print import layering
from meshhub.errors import InvalidOption
from translated_findings import TranslatedRegistry

pytestmark = pytest.mark.once

RELATIVE = 0.03
"""Error that the measures may have."""


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with TranslatedRegistry() as registry:
        yield registry


def scene(*solids: Manifold) -> Scene:
    """Each solid as a part."""
    meshes = []
    for solid in solids:
        mesh = solid.to_mesh64()
        meshes.append(Mesh(np.asarray(mesh.vert_properties)[:, :3], np.asarray(mesh.tri_verts).astype(np.int32)))
    return Scene(meshes=tuple(meshes), parts=tuple(Part(number) for number in range(len(meshes))))


def block(x: float, y: float, z: float, at: tuple[float, float, float] = (0, 0, 0)) -> Manifold:
    """A block with its lower corner at a point."""
    return Manifold.cube((x, y, z)).translate(at)


def find(verdict: Verdict, code: str) -> Finding | None:
    return next((finding for finding in verdict.findings if finding.code == code), None)


def figures(verdict: Verdict, check: str) -> dict[str, object]:
    return dict(next(report for report in verdict.checks if report.step == check).figures)


@settings(max_examples=3)
@given(
    thickness=st.floats(0.1, 0.55),
    turn=st.tuples(*[st.floats(0, 180)] * 3),
    edge=st.sampled_from([1.0, 4.0, 100.0]),
)
def test_a_plate_is_as_thick_as_it_is(
    registry: Registry, thickness: float, turn: tuple[float, float, float], edge: float
) -> None:
    plate = block(20, 15, thickness).refine_to_length(edge).rotate(turn)
    finding = find(registry.check(scene(plate), checks="walls", print_process="resin"), "thin_walls")
    assert finding is not None
    assert finding.amount == pytest.approx(thickness, rel=RELATIVE)
    assert finding.share == pytest.approx(600 / (600 + 70 * thickness), rel=RELATIVE)
    assert finding.severity == ("error" if thickness < 0.18 else "warning")
    assert finding.places_found == 1


@pytest.mark.parametrize(
    ("angle", "thickness", "is_thin"),
    # the level cut of a plate is as wide as its thickness by the sine of its angle
    [(90, 0.4, True), (90, 0.5, False), (60, 0.35, True), (60, 0.42, False), (0, 0.3, False), (0, 0.05, True)],
)
def test_filament_prints_walls_as_wide_as_a_line_in_their_layers(
    registry: Registry, angle: float, thickness: float, is_thin: bool
) -> None:
    plate = block(20, 15, thickness).rotate((angle, 0, 30))
    assert (find(registry.check(scene(plate), checks="walls"), "thin_walls") is not None) == is_thin


def test_a_knife_edge_and_a_run_out_are_not_walls(registry: Registry) -> None:
    blade = Manifold.hull_points([(x, y, z) for z in (0, 10) for x, y in ((0, 0), (0, 3), (20, 0))])
    run_out = block(20, 20, 10) - Manifold.cylinder(30, 15, circular_segments=256).translate((10, -14.9, -5))
    for solid in (blade, run_out):
        assert find(registry.check(scene(solid), checks="walls"), "thin_walls") is None


@settings(max_examples=3)
@given(size=st.floats(1.0, 60), turn=st.tuples(*[st.floats(0, 180)] * 3), edge=st.sampled_from([0.8, 100.0]))
def test_thick_bodies_have_no_thin_walls(
    registry: Registry, size: float, turn: tuple[float, float, float], edge: float
) -> None:
    body = block(size, size, size).refine_to_length(max(edge, size / 50)).rotate(turn)
    ball = Manifold.sphere(size, 64).translate((3 * size, 0, 0))
    assert find(registry.check(scene(body, ball), checks="walls"), "thin_walls") is None


def fin() -> Scene:
    """A cube with a fin of no thickness, whose sides are divided along different diagonals."""
    (cube,) = scene(block(20, 20, 20)).meshes
    corners = np.array([[10, 0, 20], [10, 20, 20], [10, 20, 40], [10, 0, 40]], np.float64)
    faces = np.array([[0, 1, 2], [0, 2, 3], [1, 0, 3], [1, 3, 2]], np.int32) + np.int32(len(cube.vertices))
    mesh = Mesh(np.concatenate([cube.vertices, corners]), np.concatenate([cube.faces, faces]))
    return Scene(meshes=(mesh,), parts=(Part(0),))


@pytest.mark.parametrize(
    ("model", "thickness"),
    [(fin(), 0.0), (scene(block(20, 20, 0.0004)), 0.0), (scene(block(20, 20, 0.0009)), 0.0009)],
    ids=["fin", "foil", "plate"],
)
def test_a_wall_without_thickness_is_an_error(registry: Registry, model: Scene, thickness: float) -> None:
    finding = find(registry.check(model, checks="walls"), "thin_walls")
    assert finding is not None
    assert (finding.severity, finding.places_found) == ("error", 1)
    assert finding.amount == pytest.approx(thickness, rel=RELATIVE)


@pytest.mark.parametrize("gap", [-0.0002, 0.0, 0.0002])
def test_bodies_that_touch_have_no_wall_between_them(registry: Registry, gap: float) -> None:
    pair = scene(block(20, 20, 20), block(20, 20, 20, (20 + gap, 5, 0)))
    assert registry.check(pair, checks="walls,gaps").findings == ()


@pytest.mark.parametrize("radius", [1.0, 2.5])
@pytest.mark.large
def test_a_round_gap_and_a_round_wall_on_a_large_model_are_as_wide_as_they_are(
    registry: Registry, radius: float
) -> None:
    large, at = block(250, 250, 250), (100, 100, 240)
    hole, pin = (Manifold.cylinder(12, width, circular_segments=128).translate(at) for width in (radius + 0.12, radius))
    gap = find(registry.check(scene(large - hole, pin), checks="gaps"), "narrow_gaps")
    tube = Manifold.cylinder(12, radius + 0.4, circular_segments=128).translate(at) - pin.translate((0, 0, 10))
    wall = find(registry.check(scene(large + tube.translate((0, 0, 9.9))), checks="walls"), "thin_walls")
    assert gap is not None
    assert wall is not None
    assert gap.amount == pytest.approx(0.12, rel=RELATIVE)
    assert wall.amount == pytest.approx(0.4, rel=RELATIVE)
    assert wall.severity == "warning"


@pytest.mark.parametrize(("radius", "segments"), [(0.1, 24), (0.1, 96), (0.15, 24), (0.2, 24)])
def test_a_pin_is_as_thick_as_it_is(registry: Registry, radius: float, segments: int) -> None:
    pin = Manifold.cylinder(12, radius, radius, segments).translate((10, 10, 5)) + block(20, 20, 5.1)
    finding = find(registry.check(scene(pin), checks="walls"), "thin_walls")
    assert finding is not None
    # between opposite faces of the polygon
    assert finding.amount == pytest.approx(2 * radius * np.cos(np.pi / segments), rel=RELATIVE)
    assert finding.places[0].position_mm[2] > 5


def in_rows(detail: Manifold) -> Manifold:
    """A hundred copies on a square of 250 mm, at its height."""
    moved = [detail.translate((20 + 20 * i, 20 + 20 * j, 249.9)) for i in range(10) for j in range(10)]
    return Manifold.batch_boolean(moved, manifold3d.OpType.Add)


@pytest.mark.parametrize(
    "detail",
    [
        Manifold.cylinder(3.1, 0.2, circular_segments=16),
        Manifold.cylinder(5.1, 0.15, circular_segments=16),
        block(0.4, 1.5, 2.1),
    ],
    ids=["pin", "thin pin", "rib"],
)
@pytest.mark.large
def test_small_details_of_a_large_model_are_found(registry: Registry, detail: Manifold) -> None:
    large = scene(block(250, 250, 250) + in_rows(detail))
    verdict = registry.check(large, checks="walls")
    assert [(finding.code, finding.places_found) for finding in verdict.findings] == [("thin_walls", 100)]


@pytest.mark.large
def test_a_check_says_which_details_it_cannot_see(registry: Registry) -> None:
    fine = block(250, 250, 250).refine_to_length(3)
    coarse = find(registry.check(scene(fine), checks="walls"), "coarse_examination")
    assert coarse is not None
    assert coarse.severity == "info"
    assert coarse.amount is not None
    size = float(coarse.amount)
    ribs = scene(fine + in_rows(block(0.4, size, size + 0.1)))
    thin = find(registry.check(ribs, checks="walls"), "thin_walls")
    assert thin is not None
    assert thin.places_found == 100
    cells = find(registry.check(scene(block(250, 250, 250)), checks="islands"), "coarse_examination")
    assert cells is not None
    assert cells.amount == pytest.approx(250 / 400)
    small = scene(block(60, 60, 60).refine_to_length(1))
    assert registry.check(small, checks="walls,islands").findings == ()
    # a low model has few layers, but each face meets all cells of a layer
    sheet = find(registry.check(scene(block(20_000, 20_000, 0.3)), checks="islands"), "coarse_examination")
    assert sheet is not None
    assert sheet.amount == pytest.approx(11.6, rel=0.05)
    slanted = scene(block(20_000, 0.1, 0.3).rotate((0, 0, 45)))
    bar = find(registry.check(slanted, checks="islands"), "coarse_examination")
    assert bar is not None
    assert bar.amount == pytest.approx(5.77, rel=0.05)
    line = registry.check(scene(block(1e12, 1e-3, 1)), checks="islands,spans,cups")
    assert find(line, "check_failed") is None


@pytest.mark.parametrize(("process", "limit"), [("fdm", 0.45), ("resin", 0.6), ("sls", 0.7)])
def test_limits_depend_on_the_process(registry: Registry, process: str, limit: float) -> None:
    for share, is_thin in ((0.95, True), (1.05, False)):
        verdict = registry.check(
            scene(block(20, share * limit, 20)), checks="walls", options={"print_process": process}
        )
        assert (find(verdict, "thin_walls") is not None) == is_thin


def test_their_remedy_fixes_thin_walls(registry: Registry) -> None:
    part = block(30, 30, 3) + block(30, 0.4, 20)
    finding = find(registry.check(scene(part), checks="walls"), "thin_walls")
    assert finding is not None
    assert find(registry.check(scene(part), checks="walls", **finding.remedy), "thin_walls") is None  # type: ignore[arg-type]


@settings(max_examples=2)
@given(width=st.floats(0.05, 0.14), turn=st.floats(0, 180))
def test_a_gap_between_parts_is_as_wide_as_it_is(registry: Registry, width: float, turn: float) -> None:
    parts = [block(10, 10, 10).rotate((0, 0, turn)), block(10, 10, 10, (10 + width, 0, 0)).rotate((0, 0, turn))]
    finding = find(registry.check(scene(*parts), checks="gaps"), "narrow_gaps")
    assert finding is not None
    assert finding.amount == pytest.approx(width, rel=RELATIVE)
    assert find(registry.check(scene(parts[0]), checks="gaps"), "narrow_gaps") is None


def test_a_gap_within_a_part_is_found_and_a_wide_one_is_not(registry: Registry) -> None:
    for width, is_narrow in ((0.1, True), (0.2, False)):
        part = block(20, 20, 10) - block(width, 20, 8, (10, 0, 2))
        assert (find(registry.check(scene(part), checks="gaps"), "narrow_gaps") is not None) == is_narrow


def table(length: float, legs: tuple[float, ...]) -> Manifold:
    """A plate of some length and 10 mm of depth at a height of 20 mm, on legs of 4 mm at places along X."""
    return manifold3d.Manifold.batch_boolean(
        [block(length, 10, 2, (0, 0, 20)), *(block(4, 10, 20.5, (x, 0, 0)) for x in legs)], manifold3d.OpType.Add
    )


def test_a_bridge_and_a_cantilever_have_their_length(registry: Registry) -> None:
    bridge = find(registry.check(scene(table(40, (0, 36))), checks="spans"), "long_bridges")
    assert bridge is not None
    assert bridge.amount == pytest.approx(32, abs=0.8)
    assert bridge.places[0].position_mm[2] == pytest.approx(20.1, abs=0.2)
    verdict = registry.check(scene(table(40, (0,))), checks="overhangs,spans")
    cantilever = find(verdict, "overhangs")
    assert cantilever is not None
    assert cantilever.amount == pytest.approx(36, abs=0.8)
    assert find(verdict, "long_bridges") is None
    assert registry.check(scene(table(12, (0, 8))), checks="spans").findings == ()


def test_a_hanging_leg_is_an_island(registry: Registry) -> None:
    part = table(40, (0, 36)) + block(3, 3, 15, (18, 4, 6))
    finding = find(registry.check(scene(part), checks="islands"), "islands")
    assert finding is not None
    assert finding.places_found == 1
    assert finding.places[0].position_mm == pytest.approx((19.5, 5.5, 6.1), abs=0.3)
    assert finding.amount == pytest.approx(9, rel=0.1)
    # slicers put the lowest point on the bed
    below = find(registry.check(scene(part.translate((0, 0, -50))), checks="islands"), "islands")
    assert below is not None
    assert "1 place begins in the air, 6.1 mm above the bed" in below.message
    assert registry.check(scene(table(40, (0, 36))), checks="islands").findings == ()
    assert registry.check(scene(part), checks="islands", options={"print_process": "sls"}).findings == ()


def test_a_tooth_in_the_air_is_an_island_and_ends_a_bridge(registry: Registry) -> None:
    arm = block(10, 10, 30) + block(60, 10, 5, (0, 0, 30)) + block(4, 4, 10, (45, 3, 20))
    verdict = registry.check(scene(arm), checks="islands,overhangs,spans")
    found = {finding.code: finding for finding in verdict.findings}
    assert set(found) == {"islands", "long_bridges", "overhangs"}
    assert found["islands"].places_found == 1
    # from the column to the tooth, and from the tooth to the end
    assert found["long_bridges"].amount == pytest.approx(35, rel=RELATIVE)
    assert found["overhangs"].amount == pytest.approx(11, rel=RELATIVE)
    assert [place.position_mm[2] for place in found["overhangs"].places] == pytest.approx([30.1])
    teeth = block(6, 6, 20, (0, 0, 10)) + block(6, 6, 20, (30, 0, 10)) + block(36, 6, 6, (0, 0, 30))
    verdict = registry.check(scene(teeth + block(6, 6, 36, (15, 0, 0))), checks="islands,spans")
    assert [(finding.code, finding.places_found) for finding in verdict.findings] == [("islands", 2)]


def test_a_large_ball_has_no_bridge(registry: Registry) -> None:
    ball = scene(Manifold.sphere(150, 256))
    assert find(registry.check(ball, checks="spans"), "long_bridges") is None


def test_each_side_of_a_pillar_has_a_bridge(registry: Registry) -> None:
    pillars = block(10, 10, 30) + block(10, 10, 30, (70, 0, 0)) + block(4, 4, 30, (45, 3, 0))
    finding = find(registry.check(scene(pillars + block(80, 10, 5, (0, 0, 30))), checks="spans"), "long_bridges")
    assert finding is not None
    assert finding.amount == pytest.approx(35, rel=RELATIVE)


@pytest.mark.parametrize(("angle", "is_flat"), [(25, True), (40, False)])
def test_flat_slopes_overhang_where_they_reach_far(registry: Registry, angle: float, is_flat: bool) -> None:
    slope = float(np.tan(np.deg2rad(angle)))
    for reach, is_far in ((30, True), (8, False)):
        rise = reach * slope
        points = [(0, 0), (10, 0), (10 + reach, rise), (10 + reach, rise + 5), (0, rise + 5)]
        leaning = Manifold.hull_points([(x, y, z) for x, z in points for y in (0, 10)])
        finding = find(registry.check(scene(leaning), checks="overhangs"), "overhangs")
        assert (finding is not None) == (is_flat and is_far)


def test_what_printers_bridge_needs_no_support(registry: Registry) -> None:
    holes = block(30, 20, 40)
    for diameter, z in ((3, 5), (6, 12), (14, 28)):
        holes -= Manifold.cylinder(40, diameter / 2, circular_segments=64).rotate((90, 0, 0)).translate((15, 30, z))
    # a screw head that hangs over its hole, and a ledge of a few lines
    holes -= Manifold.cylinder(3, 3, circular_segments=48).translate((5, 5, 0))
    holes -= Manifold.cylinder(60, 1.7, circular_segments=48).translate((5, 5, 0))
    holes += block(2, 20, 3, (30, 0, 20))
    verdict = registry.check(scene(holes), checks="islands,overhangs,spans,estimate")
    assert verdict.findings == ()
    assert verdict.estimate is not None
    assert verdict.estimate.support_mm3 == 0


def test_support_that_is_drawn_into_the_model_holds(registry: Registry) -> None:
    arch = block(60, 10, 3, (0, 0, 20)) + block(5, 10, 20.5)
    pillars = [block(2, 10, 19.8, (x, 0, 0)) for x in range(8, 60, 3)]
    assert find(registry.check(scene(arch), checks="overhangs"), "overhangs") is not None
    assert find(registry.check(scene(arch, *pillars), checks="overhangs"), "overhangs") is None


@pytest.mark.parametrize("extension", ["stl", "ply", "glb", "obj", "3mf"])
@pytest.mark.parametrize(("angle", "is_steep"), [(36.0, False), (25.0, True)])
def test_a_face_at_the_limit_does_not_overhang_in_any_file(
    registry: Registry, extension: str, angle: float, is_steep: bool, tmp_path: Path
) -> None:
    rise = 20 * float(np.tan(np.deg2rad(angle)))
    corners = [(x, y, z) for y in (0, 20) for x, z in ((0, 0), (10, 0), (30, rise), (30, rise + 5), (0, rise + 5))]
    file = tmp_path / f"wedge.{extension}"
    for turn in range(7, 360, 90):
        solids = [Manifold.hull_points(corners).rotate((0, 0, turn))]
        if not is_steep:
            solids.append(block(20, 20, 20).rotate((45, 0, turn)).translate((60, 33.3, 0)))
        for solid in solids:
            registry.convert(scene(solid), file, overwrite=True)
            finding = find(registry.check(file, checks="overhangs"), "overhangs")
            assert (finding is not None) == is_steep


def test_a_model_that_tips_over_and_one_that_hardly_touches_the_bed(registry: Registry) -> None:
    tipping = find(registry.check(scene(table(60, (0,))), checks="standing"), "tips_over")
    assert tipping is not None
    slender = find(registry.check(scene(block(2, 2, 60)), checks="standing"), "small_contact")
    assert slender is not None
    assert slender.amount == pytest.approx(4)
    assert slender.remedy == {"lay_flat": True}
    assert registry.check(scene(block(20, 20, 60)), checks="standing").findings == ()


def as_mesh(*solids: Manifold) -> Scene:
    """The solids as bodies of one mesh."""
    meshes = scene(*solids).meshes
    starts = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    faces = [mesh.faces + start for mesh, start in zip(meshes, starts, strict=False)]
    joined = Mesh(np.concatenate([mesh.vertices for mesh in meshes]), np.concatenate(faces).astype(np.int32))
    return Scene(meshes=(joined,), parts=(Part(0),))


@pytest.mark.parametrize("join", [scene, as_mesh])
def test_each_body_stands_by_itself_but_with_those_that_touch_it(
    registry: Registry, join: Callable[..., Scene]
) -> None:
    slab, bar = block(100, 100, 5), block(10, 10, 60).rotate((0, 30, 0)).translate((150, 0, 5))

    def check(*solids: Manifold) -> list[Finding]:
        return list(registry.check(join(*solids), checks="standing").findings)

    alone = check(slab, block(3, 3, 150, (101, 0, 0)), bar)
    assert [(finding.code, finding.places_found) for finding in alone] == [("tips_over", 1), ("small_contact", 1)]
    assert alone[0].places[0].position_mm[0] > 150
    assert alone[1].places[0].position_mm == pytest.approx((102.5, 1.5, 0))
    for at in ((100, 20, 0), (20, 20, 0), (20, 20, 5)):
        assert not check(slab, block(3, 3, 150, at))
    # a body on another one, and one in the air
    assert [finding.code for finding in check(block(20, 20, 10), block(90, 20, 5, (0, 0, 10)))] == ["tips_over"]
    assert not check(block(20, 20, 10), block(90, 20, 5, (0, 0, 12)))


@pytest.mark.parametrize("turn", [(0, 0), (0, 30), (5, 30)])
def test_their_remedy_makes_models_stand(registry: Registry, turn: tuple[float, float]) -> None:
    for size in ((3, 3, 40), (10, 10, 150)):
        model = scene(block(*size).rotate((0, *turn)))
        finding = registry.check(model, checks="standing").findings[0]
        if finding.limit is not None:
            assert finding.amount is not None
            assert finding.amount < finding.limit
        assert not registry.check(model, checks="standing", **finding.remedy).findings  # type: ignore[arg-type]


def test_a_small_part_that_lies_flat_needs_a_brim_and_a_sheet_does_not_stand(registry: Registry) -> None:
    small = find(registry.check(scene(block(3, 3, 1)), checks="standing"), "small_contact")
    assert small.remedy == {}
    assert "brim" in small.message
    assert "lay_flat" not in small.message
    sheet = Mesh(np.array([[0, 0, 0], [9, 0, 0], [0, 0, 9]], np.float64), np.array([[0, 1, 2]], np.int32))
    assert registry.check(Scene(meshes=(sheet,), parts=(Part(0),)), checks="standing").findings == ()


def test_cups_and_cavities_matter_for_resin_alone(registry: Registry) -> None:
    cup = block(20, 20, 20) - block(16, 16, 20, (2, 2, 2))
    hollow = block(20, 20, 20) - block(16, 16, 16, (2, 2, 2))
    resin = {"print_process": "resin"}
    suction = find(registry.check(scene(cup), checks="cups", options=resin), "suction_cups")
    assert suction is not None
    assert suction.amount == pytest.approx(16 * 16 * 18, rel=0.05)
    trapped = find(registry.check(scene(hollow), checks="cups", options=resin), "trapped_volume")
    assert trapped is not None
    assert trapped.amount == pytest.approx(16**3, rel=0.01)
    both_inward = [block(16, 16, 16, (2, 2, 2)), block(20, 20, 20)]
    (inner, outer) = (Mesh(mesh.vertices, mesh.faces[:, ::-1]) for mesh in scene(*both_inward).meshes)
    faces = np.concatenate([outer.faces, inner.faces + len(outer.vertices)])
    inward = Mesh(np.concatenate([outer.vertices, inner.vertices]), faces)
    model = Scene(meshes=(inward,), parts=(Part(0),))
    for options in (resin, {**resin, "repair": True}):
        trapped = find(registry.check(model, checks="cups", options=options), "trapped_volume")
        assert trapped is not None
        assert trapped.amount == pytest.approx(16**3, rel=0.01)
    vented = cup - block(4, 30, 4, (8, -5, 2))
    assert registry.check(scene(vented), checks="cups", options=resin).findings == ()
    assert registry.check(scene(cup, hollow.translate((30, 0, 0))), checks="cups").findings == ()


@pytest.mark.large
def test_their_remedy_opens_suction_cups(registry: Registry) -> None:
    cup, hollow = block(20, 20, 20) - block(16, 16, 20, (2, 2, 2)), block(20, 20, 20) - block(16, 16, 16, (2, 2, 2))
    ball = Manifold.sphere(12, 48) - Manifold.sphere(10, 48)
    tube = Manifold.cylinder(20, 10, 10, 48) - Manifold.cylinder(20, 8, 8, 48).translate((0, 0, 2))
    options = {"print_process": "resin", "print_layer_mm": 0.1}
    for solid in (cup, hollow, ball, tube, cup.rotate((0, 180, 0)), hollow + cup.translate((18, 0, 0))):
        finding = find(registry.check(scene(solid), checks="cups", options=options), "suction_cups")
        assert finding is not None
        after = registry.check(scene(solid), checks="cups", options=options, **finding.remedy)  # type: ignore[arg-type]
        assert not after.findings
        assert ("drain_holes_mm" in finding.remedy) == ("drain_holes_mm" in finding.options)


def test_a_trial_of_a_turn_searches_for_no_other_turn(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    searches: list[object] = []
    search = layering._try_turns
    monkeypatch.setattr(layering, "_try_turns", lambda *arguments: searches.append(arguments) or search(*arguments))
    # both sides of a mushroom hang, the narrow one less
    arms = block(60, 60, 3, (0, 0, 40)) + block(6, 6, 40, (27, 27, 0)) + block(30, 6, 3, (12, 27, 15))
    assert find(registry.check(scene(arms), checks="overhangs"), "overhangs") is not None
    assert len(searches) == 1


def test_a_cavity_holds_what_no_other_body_fills(registry: Registry) -> None:
    def trapped(model: Scene) -> Finding | None:
        finding = find(registry.check(model, checks="cups", options={"print_process": "sls"}), "trapped_volume")
        if finding is not None:
            after = registry.check(model, checks="cups", options={"print_process": "sls"}, **finding.remedy)  # type: ignore[arg-type]
            assert find(after, "trapped_volume") is None
        return finding

    cage, core = block(20, 20, 20) - block(16, 16, 16, (2, 2, 2)), block(16, 16, 16, (2, 2, 2))
    empty = trapped(scene(cage, block(5, 5, 5, (40, 0, 0))))
    assert empty is not None
    assert empty.amount == pytest.approx(16**3)
    assert [(place.position_mm, place.part, place.amount) for place in empty.places] == [((10, 10, 10), 0, 16**3)]
    assert trapped(scene(cage, core)) is None
    ball = block(6, 6, 6, (8, 8, 2))
    for model in (scene(cage, ball), as_mesh(cage, ball)):
        finding = find(registry.check(model, checks="cups", options={"print_process": "sls"}), "trapped_volume")
        assert finding is not None
        assert finding.amount == pytest.approx(16**3 - 6**3)
    shell = block(14, 14, 14, (3, 3, 3)) - block(10, 10, 10, (5, 5, 5))
    for model in (scene(cage, shell), as_mesh(cage, shell)):
        finding = find(registry.check(model, checks="cups", options={"print_process": "sls"}), "trapped_volume")
        assert finding is not None
        assert finding.amount == pytest.approx(16**3 - 14**3 + 10**3)


def test_the_printers_on_which_a_model_fits(registry: Registry) -> None:
    verdict = registry.check(scene(block(200, 215, 100)), checks="size")
    fitting = figures(verdict, "size")["printers"]
    assert isinstance(fitting, list)
    assert {"prusa-mk4", "bambu-a1"} - {*fitting} == {"prusa-mk4"} - {*fitting}
    assert "prusa-mini" not in fitting
    small = {"print_printer": "bambu-a1-mini"}
    finding = find(registry.check(scene(block(200, 215, 100)), checks="size", options=small), "does_not_fit")
    assert finding is not None
    assert finding.severity == "error"
    assert find(registry.check(scene(block(900, 20, 20)), checks="size"), "does_not_fit") is not None


@pytest.mark.parametrize("paths", [("",), ("a",), ("a", "b"), ("a", "a"), ("a", "a", "b")])
@pytest.mark.parametrize("side", [100, 300])
def test_what_does_not_fit_is_cut_or_arranged_by_its_remedy(
    registry: Registry, paths: tuple[str, ...], side: float
) -> None:
    def check(**remedy: object) -> Verdict:
        return registry.check(model, checks="size", options={"print_printer": "bambu-a1"}, **remedy)  # type: ignore[arg-type]

    parts = scene(*(block(side, 90, 50, (400 * number, 0, 0)) for number in range(len(paths))))
    placed = zip(parts.parts, paths, strict=True)
    model = replace(parts, parts=tuple(replace(part, path=(path,) if path else ()) for part, path in placed))
    finding = find(check(), "does_not_fit")
    if side == 100 and len(paths) == 1:
        assert finding is None
        return
    assert finding is not None
    assert finding.severity == "error"
    assert ("split_for_bed" in finding.remedy) == (side == 300)
    assert ("arrange_by" in finding.remedy) == (paths.count("a") > 1)
    assert check(**finding.remedy).findings == ()


def test_each_bed_and_not_all_of_them_must_fit(registry: Registry) -> None:
    model = scene(block(200, 200, 9), block(200, 200, 9, (300, 0, 0)))
    options = {"print_printer": "bambu-a1"}
    assert find(registry.check(model, checks="size", options=options), "does_not_fit") is not None
    beds = replace(model, parts=tuple(replace(part, plate=number) for number, part in enumerate(model.parts)))
    assert registry.check(beds, checks="size", options=options).findings == ()


@pytest.mark.parametrize("extension", ["stl", "glb", "3mf", "obj"])
@pytest.mark.parametrize("offset", [0, -77.7, 1000.1])
def test_a_model_as_large_as_the_printer_fits(
    registry: Registry, extension: str, offset: float, tmp_path: Path
) -> None:
    file = tmp_path / f"block.{extension}"
    registry.convert(scene(block(256, 256, 256, (offset, offset, 0))), file)
    options = {"print_printer": "bambu-a1"}
    assert registry.check(file, checks="size", options=options).findings == ()
    large = scene(block(300, 300, 299))
    assert registry.check(large, checks="size", options=options, fit_mm="256x256x256").findings == ()
    assert registry.check(scene(block(256.01, 9, 9)), checks="size", options=options).findings


@pytest.mark.parametrize(("side", "factor"), [(0.3, 1000), (1.5, 25.4), (5000, 0.001)])
def test_the_size_of_a_wrong_unit_has_a_factor_and_a_reason(registry: Registry, side: float, factor: float) -> None:
    finding = find(registry.check(scene(block(side, side / 2, side / 2)), checks="size"), "doubtful_unit")
    assert finding is not None
    assert f"factor is probably {factor} (" in finding.message
    fixed = registry.check(scene(block(side, side / 2, side / 2)), checks="size", **finding.remedy)  # type: ignore[arg-type]
    assert find(fixed, "doubtful_unit") is None
    assert fixed.source.size_mm is not None
    assert max(fixed.source.size_mm) == pytest.approx(side * factor)


@pytest.mark.parametrize("side", [2, 300, 2000])
def test_usual_sizes_have_no_doubtful_unit(registry: Registry, side: float) -> None:
    assert find(registry.check(scene(block(side, 1, 1)), checks="size"), "doubtful_unit") is None


def test_edges_on_which_only_solids_meet_are_information(registry: Registry) -> None:
    cubes = block(20, 20, 20), block(20, 20, 20, (20, 20, 0))
    finding = find(registry.check(as_mesh(*cubes), checks="mesh"), "nonmanifold_edges")
    assert finding is not None
    assert (finding.severity, finding.amount) == ("info", 1)


@pytest.mark.parametrize("side", [0.3, 1.5])
def test_a_doubtful_unit_is_all_that_is_said_of_a_tiny_cube(registry: Registry, side: float) -> None:
    findings = registry.check(scene(block(side, side, side))).findings
    assert [finding.code for finding in findings] == ["doubtful_unit"]


def test_an_own_printer_is_described_by_its_volume(registry: Registry) -> None:
    def check(size: tuple[float, float, float], volume: str, **options: object) -> Verdict:
        return registry.check(scene(block(*size)), checks="size", print_volume_mm=volume, **options)  # type: ignore[arg-type]

    assert check((480, 390, 590), "400x500x600").findings == ()
    assert check((480, 390, 590), "400 × 500 X 600").findings == ()
    finding = find(check((480, 410, 590), "400x500x600"), "does_not_fit")
    assert finding is not None
    assert finding.severity == "error"
    assert "the printer (400 x 500 x 600 mm)" in finding.message
    assert check((480, 410, 590), "400x500x600", **finding.remedy).findings == ()
    with pytest.raises(InvalidOption, match="three lengths from 30"):
        check((20, 20, 20), "400x500")
    with pytest.raises(InvalidOption, match="exclude each other"):
        check((20, 20, 20), "400x500x600", print_printer="bambu-a1")


def test_a_printer_has_a_number_of_filaments(registry: Registry) -> None:
    solids = scene(*(block(5, 5, 5, (6 * number, 0, 0)) for number in range(5)))
    colors = tuple(Material(base_color=(number / 5, 0, 0, 1)) for number in range(5))
    model = replace(solids, materials=colors, parts=tuple(replace(p, material=n) for n, p in enumerate(solids.parts)))

    def check(printer: str, **options: object) -> Finding | None:
        options |= {"print_printer": printer}
        return find(registry.check(model, checks="size", options=options), "too_many_colors")

    finding = check("bambu-a1")
    assert finding is not None
    assert (finding.amount, finding.limit, finding.remedy) == (5, 4, {"reduce_colors": 4})
    assert check("bambu-a1", **finding.remedy) is None
    assert check("prusa-xl") is None
    assert check("bambu-a1", print_filaments=8) is None
    assert find(registry.check(model, checks="size", print_filaments=4), "too_many_colors") is not None
    assert find(registry.check(model, checks="size", print_filaments=5), "too_many_colors") is None
    assert check("prusa-xl", print_filaments=2) is not None
    assert check("prusa-xl", print_process="resin") is None
    assert find(registry.check(model, checks="size"), "too_many_colors") is None
    xl: dict[str, object] = {"print_printer": "prusa-xl"}

    def color(values: Callable[[Mesh, int], np.ndarray]) -> Finding | None:
        meshes = (replace(mesh, colors=values(mesh, number)) for number, mesh in enumerate(solids.meshes))
        return find(registry.check(replace(solids, meshes=tuple(meshes)), checks="size", options=xl), "too_many_colors")

    # the vertices of a face differ, all are equal, or each mesh has one color
    shades = color(lambda mesh, _: np.arange(4 * len(mesh.vertices), dtype=np.uint8).reshape(-1, 4))
    assert shades is not None
    assert shades.amount is None
    assert color(lambda mesh, _: np.full((len(mesh.vertices), 4), 255, np.uint8)) is None
    assert color(lambda mesh, number: np.full((len(mesh.vertices), 4), number, np.uint8)) is None
    xl["print_printer"] = "bambu-a1"
    five = color(lambda mesh, number: np.full((len(mesh.vertices), 4), number, np.uint8))
    assert five is not None
    assert five.amount == 5


@settings(max_examples=6)
@given(step=st.integers(4, 40), height=st.sampled_from([0.1, 0.2, 0.25]), lowest=st.sampled_from([0.0, 0.1, 7.3]))
def test_an_underside_in_the_middle_of_a_layer_is_in_one_layer(step: int, height: float, lowest: float) -> None:
    # half layers, where rounding decides on which side a layer begins
    bottom = lowest + (step + 0.5) * height
    column = block(10, 10, bottom - lowest + 2, (0, 0, lowest))
    shelf = Manifold.batch_boolean([column, block(40, 10, 2, (0, 0, bottom))], manifold3d.OpType.Add)
    bridge = Manifold.batch_boolean(
        [column, column.translate((50, 0, 0)), block(60, 10, 2, (0, 0, bottom))], manifold3d.OpType.Add
    )
    with Registry(entry_points=False) as registry:
        for model, code, length in ((shelf, "overhangs", 30), (bridge, "long_bridges", 40)):
            verdict = registry.check(scene(model), checks="islands,overhangs,spans", print_layer_mm=height)
            assert [finding.code for finding in verdict.findings] == [code]
            finding = verdict.findings[0]
            assert finding.places_found == 1
            assert finding.amount == pytest.approx(length, rel=0.03)


@pytest.mark.parametrize("process", ["fdm", "resin", "sls"])
def test_a_box_without_a_lid_has_no_price(registry: Registry, process: str) -> None:
    box = scene(block(40, 40, 40))
    mesh = box.meshes[0]
    is_lid = (mesh.vertices[mesh.faces][:, :, 2] == 40).all(axis=1)
    opened = replace(box, meshes=(Mesh(mesh.vertices, mesh.faces[~is_lid]),))
    assert find(registry.check(opened, checks="estimate", print_process=process), "no_volume") is not None
    repaired = registry.check(opened, checks="estimate", print_process=process, repair=True)
    assert repaired.estimate is not None
    assert repaired.estimate.volume_mm3 == pytest.approx(64_000)


@pytest.mark.parametrize("process", ["fdm", "resin"])
@pytest.mark.large
def test_bodies_that_are_inside_out_are_judged_as_slicers_turn_them(registry: Registry, process: str) -> None:
    outward = scene(table(60, (0, 56)), block(30, 30, 30, (100, 0, 0)) - block(20, 20, 20, (105, 5, 5)))
    inward = replace(outward, meshes=tuple(Mesh(mesh.vertices, mesh.faces[:, ::-1]) for mesh in outward.meshes))
    verdicts = [registry.check(model, skip_checks="mesh", print_process=process) for model in (outward, inward)]
    assert [finding.code for finding in verdicts[0].findings]
    assert [(finding.code, finding.amount) for finding in verdicts[0].findings] == [
        (finding.code, pytest.approx(finding.amount)) for finding in verdicts[1].findings
    ]


def test_verdicts_are_deterministic_and_places_are_within_the_model(registry: Registry) -> None:
    part = table(40, (0, 36)) + block(0.4, 3, 15, (18, 4, 6))
    first, second = (registry.check(scene(part)) for _ in range(2))
    assert first.findings == second.findings
    for finding in first.findings:
        for place in finding.places:
            assert all(-0.3 <= value <= side + 0.3 for value, side in zip(place.position_mm, (40, 10, 22), strict=True))


def test_a_sheet_gets_a_thickness_by_its_remedy(registry: Registry) -> None:
    points = np.array([[0, 0, 0], [30, 0, 0], [30, 20, 4], [0, 20, 0]], float)
    sheet = Mesh(points, np.array([[0, 1, 2], [0, 2, 3]], np.int32))
    model = scene(block(10, 10, 10, at=(50, 0, 0)))
    model = Scene(meshes=(*model.meshes, sheet), parts=(*model.parts, Part(1)))
    verdict = registry.check(model, checks="mesh")
    finding = find(verdict, "open_surface")
    assert finding is not None
    assert (finding.severity, finding.amount, finding.places[0].part) == ("error", 1, 1)
    assert find(verdict, "open_edges") is None
    after = registry.check(model, checks="mesh,walls", **finding.remedy)
    assert not after.findings


@pytest.mark.parametrize(("bend", "has_same_edges", "turn_deg"), [(0, True, 0), (0, False, 25), (0.01, True, 25)])
def test_a_closed_surface_without_volume_is_a_sheet(
    registry: Registry, bend: float, has_same_edges: bool, turn_deg: float, tmp_path: Path
) -> None:
    x, y = (side.ravel() * 4.0 for side in np.meshgrid(np.arange(6), np.arange(6)))
    cosine, sine = np.cos(np.deg2rad(turn_deg)), np.sin(np.deg2rad(turn_deg))
    points = np.stack([x, y, bend * (x - 8) ** 2], axis=1) @ [[cosine, 0, sine], [0, 1, 0], [-sine, 0, cosine]]
    grid = np.arange(36).reshape(6, 6)
    a, b, c, d = (corner.ravel() for corner in (grid[:-1, :-1], grid[:-1, 1:], grid[1:, 1:], grid[1:, :-1]))
    front = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    other = np.concatenate([np.stack([a, d, b], axis=1), np.stack([b, d, c], axis=1)])
    faces = np.concatenate([front, front[:, ::-1] if has_same_edges else other]).astype(np.int32)
    file = tmp_path / "sheet.stl"
    registry.convert(Scene(meshes=(Mesh(points, faces),), parts=(Part(0),)), file)
    verdict = registry.check(file)
    sheet, volume = find(verdict, "open_surface"), find(verdict, "no_volume")
    assert sheet is not None
    assert volume is not None
    assert (verdict.verdict, sheet.severity) == ("will_not_print", "error")
    assert sheet.remedy == volume.remedy
    # one case shows that the sheet needs no repair
    for remedy in (sheet.remedy, {"thicken_mm": 0.9}) if turn_deg == 0 else (sheet.remedy,):
        after = registry.check(file, checks="mesh,walls,estimate,overlaps", **remedy)  # type: ignore[arg-type]
        assert not after.findings
        assert after.estimate is not None
        assert after.estimate.volume_mm3 == pytest.approx(400 * 0.9, rel=0.1)


def test_a_rolled_sheet_has_no_finding_but_that_it_is_a_sheet(registry: Registry) -> None:
    angle, height = (values.ravel() for values in np.meshgrid(np.linspace(0, 5.5, 25), np.linspace(0, 40, 3)))
    corner = (np.arange(2)[:, None] * 25 + np.arange(24)).ravel()
    a, b, c, d = corner, corner + 1, corner + 26, corner + 25
    faces = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)]).astype(np.int32)
    roll = Mesh(np.stack([20 * np.cos(angle), 20 * np.sin(angle), height], axis=1), faces)
    verdict = registry.check(Scene(meshes=(roll,), parts=(Part(0),)))
    assert [finding.code for finding in verdict.findings] == ["open_surface", "no_volume"]
    assert verdict.findings[0].remedy == {"repair": True, "thicken_mm": 0.9}


def test_a_solid_with_a_hole_is_not_a_sheet(registry: Registry) -> None:
    cup = scene(block(20, 20, 20) - block(16, 16, 20, at=(2, 2, 2))).meshes[0]
    # a cup without its bottom
    bottom = cup.vertices[cup.faces][:, :, 2].max(axis=1) < 1e-9
    model = Scene(meshes=(Mesh(cup.vertices, cup.faces[~bottom]),), parts=(Part(0),))
    verdict = registry.check(model, checks="mesh")
    assert [finding.code for finding in verdict.findings] == ["open_edges"]
