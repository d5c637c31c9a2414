"""Operation arrange."""

from __future__ import annotations

import re
import zipfile
from dataclasses import replace
from pathlib import Path

import manifold3d
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshhub import ConversionFailed, InvalidOption, Registry
from meshhub.builtin_plugins.arrange import ArrangeOptions, operation
from meshhub.model.notes import collecting
from meshhub.model.scene import Material, Mesh, Part, Scene
from meshhub.toolkit.geometry import bounds, soup
from models import brick, move_mesh, scene_of, sphere, volume

pytestmark = [pytest.mark.once, pytest.mark.process]

BED = "100x80"


def arrange(scene: Scene, bed: str = BED, **options: object) -> Scene:
    return operation.run(scene, ArrangeOptions(arrange_bed=bed, **options))  # type: ignore[arg-type]


def corner(arm: float = 40, width: float = 10) -> Mesh:
    """Return an L of two arms, 5 mm high."""
    outline = [[0, 0], [arm, 0], [arm, width], [width, width], [width, arm], [0, arm]]
    solid = manifold3d.CrossSection([outline]).extrude(5).to_mesh64()
    return Mesh(np.asarray(solid.vert_properties)[:, :3], np.asarray(solid.tri_verts), name="corner")


def shadows(scene: Scene) -> list[manifold3d.CrossSection]:
    """Return the exact shadow of each part."""
    result = []
    for part in scene.parts:
        vertices, faces = soup(replace(scene, parts=(part,)))
        result.append(manifold3d.Manifold(manifold3d.Mesh64(vertices.copy(), faces.astype(np.uint64))).project())
    return result


def assert_apart(scene: Scene, gap: float) -> None:
    """Check that parts on one bed are at least a gap apart, seen from above."""
    flats = shadows(scene)
    for first in range(len(flats)):
        wide = flats[first].offset(gap - 0.01, manifold3d.JoinType.Round) if gap > 0.01 else flats[first]
        for second in range(first + 1, len(flats)):
            assert (wide ^ flats[second]).area() < 1e-6, (first, second)


@given(
    sizes=st.lists(
        st.tuples(st.floats(1, 40), st.floats(1, 40), st.sampled_from(["box", "ball", "corner"])),
        min_size=1,
        max_size=9,
    ),
    gap=st.sampled_from([0.0, 1.0, 5.0]),
    turns=st.sampled_from(["none", "right-angles", "any"]),
)
@settings(max_examples=5)
@pytest.mark.large
def test_objects_stand_on_the_bed_apart_and_whole(
    sizes: list[tuple[float, float, str]], gap: float, turns: str
) -> None:
    meshes = [
        brick(x, y, 5)
        if kind == "box"
        else sphere(x / 2, 16)
        if kind == "ball"
        else corner(max(x, y), 1 + min(x, y) / 3)
        for x, y, kind in sizes
    ]
    scene = scene_of(*(move_mesh(mesh, 3 * n, 7, n - 4) for n, mesh in enumerate(meshes)))
    result = arrange(scene, arrange_gap_mm=gap, arrange_turns=turns)
    assert sorted(volume(*soup(replace(result, parts=(part,)))) for part in result.parts) == pytest.approx(
        sorted(volume(*soup(scene_of(mesh))) for mesh in meshes)
    )
    for plate in {part.plate for part in result.parts}:
        on_plate = replace(result, parts=tuple(part for part in result.parts if part.plate == plate))
        box = bounds(on_plate)
        assert (np.ptp(box, axis=0)[:2] <= np.array([100, 80]) + 1e-6).all()
        assert_apart(on_plate, gap)
    for part in result.parts:
        assert bounds(replace(result, parts=(part,)))[0, 2] == pytest.approx(0, abs=1e-9)


def test_one_bed_has_its_middle_at_the_origin() -> None:
    box = bounds(arrange(scene_of(brick(), brick(), move_mesh(brick(), 500, 500, 500))))
    assert box[:, :2].sum(axis=0) == pytest.approx([0, 0], abs=0.5)


def test_what_finds_no_room_goes_on_further_beds() -> None:
    scene = scene_of(*[brick(60, 60, 5)] * 3)
    with collecting("arrange") as remarks:
        result = arrange(scene)
    assert [part.plate for part in result.parts] == [0, 1, 2]
    (note,) = remarks.notes
    assert note.code == "several_beds" and "3 beds" in note.message
    middles = [bounds(replace(result, parts=(part,))).mean(axis=0)[:2] for part in result.parts]
    assert np.linalg.norm(np.array(middles[1]) - middles[0]) == pytest.approx(120, abs=1)
    assert np.linalg.norm(np.array(middles[2]) - middles[0]) == pytest.approx(96, abs=1)


def test_one_bed_alone_stands_at_the_origin() -> None:
    scene = scene_of(*(brick(60, 60, height) for height in (5, 6, 7)))
    heights = []
    for number in (1, 2, 3):
        box = bounds(arrange(scene, arrange_plate=number))
        assert box[:, :2].sum(axis=0) == pytest.approx([0, 0], abs=0.5)
        heights.append(box[1, 2])
    assert sorted(heights) == pytest.approx([5, 6, 7])
    with pytest.raises(InvalidOption, match="need only 3 beds"):
        arrange(scene, arrange_plate=4)


def test_a_side_of_the_length_of_the_bed_fits() -> None:
    assert len(arrange(scene_of(brick(100, 80, 5))).parts) == 1
    assert len({part.plate for part in arrange(scene_of(*[brick(50, 40, 5)] * 4), arrange_gap_mm=0).parts}) == 1


@pytest.mark.parametrize(
    ("bed", "side", "gap", "count"),
    [
        ("60x50", 50, 5, 1),
        ("105x105", 50, 5, 4),
        ("180x180", 56, 6, 9),
        ("76x250", 36, 4, 12),
        ("210x70", 66.5, 5, 3),
        ("100x100", 33.3, 0.05, 9),
        ("105x105", 49.99, 5.02, 4),
        ("200.1x50", 33.35, 0, 6),
    ],
)
def test_objects_that_fill_the_bed_exactly_fit(bed: str, side: float, gap: float, count: int) -> None:
    plate = Mesh(brick().vertices / [10, 20, 30] * [side, side, 4], brick().faces)
    result = arrange(Scene((plate,), (Part(0),) * count), bed, arrange_gap_mm=gap)
    assert {part.plate for part in result.parts} <= {None, 0}
    width, depth = (float(length) for length in bed.split("x"))
    size = np.ptp(bounds(result), axis=0)
    assert size[0] <= width + 1e-6 and size[1] <= depth + 1e-6
    assert_apart(result, gap)


def test_rectangles_of_several_sizes_fill_the_bed_exactly() -> None:
    sizes = [(61.7, 80.0), (38.2, 41.3), (38.2, 38.6)]
    meshes = [Mesh(brick().vertices / [10, 20, 30] * [x, y, 4], brick().faces) for x, y in sizes]
    result = arrange(scene_of(*meshes), arrange_gap_mm=0.1)
    assert {part.plate for part in result.parts} <= {None, 0}
    assert_apart(result, 0.1)


def test_round_outlines_fill_the_bed_exactly() -> None:
    result = arrange(scene_of(*[sphere(24.995, 32)] * 4), "105x105", arrange_gap_mm=5.02)
    assert {part.plate for part in result.parts} <= {None, 0}
    assert_apart(result, 5.02)


def test_a_long_part_is_turned_or_refused() -> None:
    assert len(arrange(scene_of(brick(70, 95, 5))).parts) == 1
    with pytest.raises(ConversionFailed, match=r"'brick' is 70 × 95 mm, larger than the bed"):
        arrange(scene_of(brick(70, 95, 5)), arrange_turns="none")
    with pytest.raises(ConversionFailed, match="split_for_bed"):
        arrange(scene_of(brick(101, 81, 5)))


def test_corners_nest_in_one_another() -> None:
    """Two corners with 40 mm arms fit 40 × 60 mm only if outlines count, not boxes."""
    result = arrange(scene_of(corner(), corner()), bed="54x54", arrange_gap_mm=1)
    assert {part.plate for part in result.parts} == {0}


def test_many_objects_of_any_turn_are_placed_with_fewer_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operation, "MAX_TRIED_PLACES", 1)
    scene = scene_of(*(corner() for _ in range(12)))
    result = arrange(scene, "400x400", arrange_turns="any", arrange_gap_mm=2.0)
    assert len(result.parts) == 12
    assert_apart(result, 2.0)


def test_parts_of_an_object_stay_together_unless_they_are_placed_alone() -> None:
    scene = scene_of(brick(), move_mesh(brick(), 10, 0, 0), move_mesh(brick(), 60, 0, 0))
    parts = tuple(replace(part, path=path) for part, path in zip(scene.parts, [("a",), ("a",), ("b",)], strict=True))
    together = arrange(replace(scene, parts=parts), arrange_turns="none")
    first, second = (bounds(replace(together, parts=(part,)))[0] for part in together.parts if part.path == ("a",))
    assert sorted([abs(second - first)[0], 0]) == pytest.approx([0, 10])
    alone = arrange(replace(scene, parts=parts), arrange_by="parts")
    assert_apart(alone, 5)
    assert sorted(part.path[0] for part in alone.parts) == ["a-1", "a-2", "b-3"]


def test_a_group_around_everything_is_no_object() -> None:
    scene = scene_of(brick(), brick())
    parts = tuple(replace(part, path=("root", name)) for part, name in zip(scene.parts, "ab", strict=True))
    result = arrange(replace(scene, parts=parts))
    assert_apart(result, 5)
    assert [part.path for part in result.parts] == [("a",), ("b",)]


def test_instances_stay_shared_and_materials_stay() -> None:
    mesh = brick()
    parts = (Part(0, material=0), Part(0, np.diag([-1.0, 1, 1, 1])), Part(0, np.diag([2.0, 2, 2, 1])))
    result = arrange(Scene((mesh,), parts, materials=(Material("red", (1, 0, 0, 1)),)))
    assert len(result.meshes) == 1
    assert sorted(part.material is None for part in result.parts) == [False, True, True]
    assert_apart(result, 5)


@pytest.mark.parametrize(
    "bed", ["220", "220x", "x", "220x220x220", "5x220", "220 by 220", "-1x220", "1e3x10", "20000x20"]
)
def test_an_invalid_bed_is_rejected(bed: str) -> None:
    with pytest.raises(InvalidOption, match="arrange_bed"):
        Registry(entry_points=False).convert(scene_of(brick()), Path("x.stl"), arrange_bed=bed)


def test_a_gap_needs_a_bed() -> None:
    with pytest.raises(InvalidOption, match="objects need a bed"):
        Registry(entry_points=False).convert_bytes(scene_of(brick()), "stl", arrange_gap_mm=3)


def test_bambu_studio_gets_a_plate_for_each_bed(tmp_path: Path) -> None:
    """The plates of a project name the objects on them, and the first plate is in its place."""
    red = Material("red", (1, 0, 0, 1))
    scene = scene_of(*(brick(200, 200, height) for height in (5, 6, 7)))
    scene = replace(scene, materials=(red,), parts=tuple(replace(part, material=0) for part in scene.parts))
    Registry(entry_points=False).convert(scene, tmp_path / "out.3mf", arrange_bed="256x256", threemf_profile="bambu")
    config = zipfile.ZipFile(tmp_path / "out.3mf").read("Metadata/model_settings.config").decode()
    plates = re.findall(r"<plate>(.*?)</plate>", config, re.DOTALL)
    objects = [re.findall(r'key="object_id" value="(\d+)"', plate) for plate in plates]
    assert [len(ids) for ids in objects] == [1, 1, 1]
    assert len({ids[0] for ids in objects}) == 3
    with zipfile.ZipFile(tmp_path / "out.3mf") as archive:
        model = archive.read("3D/3dmodel.model").decode()
    places = [
        tuple(map(float, transform.split()[-3:-1]))
        for transform in re.findall(r"<item [^>]*transform=\"([^\"]*)\"", model)
    ]
    assert len(places) == 3
    assert [part.plate for part in Registry(entry_points=False).read(tmp_path / "out.3mf").parts] == [0, 1, 2]


def test_plates_are_those_of_their_numbers_in_any_order(tmp_path: Path) -> None:
    """BambuStudio writes plates in the order of their making, which need not be that of their numbers."""
    scene = scene_of(*(brick(200, 200, height) for height in (5, 6, 7)))
    Registry(entry_points=False).convert(scene, tmp_path / "a.3mf", arrange_bed="256x256", threemf_profile="bambu")
    numbers = {b"1": b"1", b"2": b"3", b"3": b"2"}

    def renumber(match: re.Match[bytes]) -> bytes:
        return match[1] + numbers[match[2]]

    with zipfile.ZipFile(tmp_path / "a.3mf") as old, zipfile.ZipFile(tmp_path / "b.3mf", "w") as new:
        for name in old.namelist():
            text = old.read(name)
            if name == "Metadata/model_settings.config":
                text = re.sub(rb'(key="plater_id" value=")(\d)', renumber, text)
            new.writestr(name, text)
    registry = Registry(entry_points=False)
    plates = [[part.plate for part in registry.read(tmp_path / name).parts] for name in ("a.3mf", "b.3mf")]
    assert plates == [[0, 1, 2], [0, 2, 1]]


@pytest.mark.parametrize("options", [{}, {"arrange_plate": 2}])
def test_the_report_has_the_places_of_the_beds(options: dict[str, object]) -> None:
    plates = [brick(70, 60, 5), brick(60, 60, 5), brick(60, 50, 5)]
    with collecting("arrange") as remarks:
        result = arrange(scene_of(*plates), **options)
    middles = np.reshape(remarks.figures["bed_middles_mm"], (-1, 2)) + bounds(result)[:, :2].mean(axis=0)
    assert remarks.figures["bed_mm"] == [100, 80]
    assert remarks.figures["bed_objects"] == [1] * len(middles)
    assert len(middles) == (1 if options else 3) == len(result.parts)
    for part in result.parts:
        low, high = bounds(replace(result, parts=(part,)))[:, :2]
        assert (np.abs(middles[part.plate] - (low + high) / 2) < 1).all()
