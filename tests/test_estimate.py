"""Estimates of prints on shapes whose volume, walls and support are known, and those of PrusaSlicer."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import manifold3d
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from manifold3d import Manifold

from meshhub import (
    LOCAL,
    ConversionFailed,
    InvalidOption,
    Isolated,
    Mesh,
    MissingDependency,
    Part,
    PremiumRequired,
    Registry,
    Scene,
)

pytestmark = pytest.mark.once

RELATIVE = 0.03
"""Error of known volumes."""

MAX_OVERLAP = 1.035
"""Material of full infill per volume: PrusaSlicer deposits 1.001 to 1.05 of printed parts, most of small ones."""

needs_slicer = pytest.mark.skipif(shutil.which("prusa-slicer") is None, reason="PrusaSlicer is not installed")


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with Registry(entry_points=False) as registry:
        yield registry


def mesh_of(solid: Manifold) -> Mesh:
    mesh = solid.to_mesh64()
    return Mesh(np.asarray(mesh.vert_properties)[:, :3], np.asarray(mesh.tri_verts).astype(np.int32))


def scene(*solids: Manifold) -> Scene:
    """Each solid as a part."""
    return Scene(meshes=tuple(map(mesh_of, solids)), parts=tuple(Part(number) for number in range(len(solids))))


def block(x: float, y: float, z: float, at: tuple[float, float, float] = (0, 0, 0)) -> Manifold:
    """A block with its lower corner at a point."""
    return Manifold.cube((x, y, z)).translate(at)


@pytest.mark.parametrize(("process", "density"), [("resin", 1.15), ("sls", 1.01)])
def test_a_solid_print_weighs_as_much_as_its_volume(registry: Registry, process: str, density: float) -> None:
    estimate = registry.estimate(scene(block(20, 20, 20)), options={"print_process": process})
    assert estimate.volume_mm3 == pytest.approx(8000)
    assert estimate.area_mm2 == pytest.approx(2400)
    assert estimate.size_mm == (20, 20, 20)
    assert estimate.weight_g == pytest.approx(8 * density)
    assert (estimate.seconds is None) == (process == "sls")


@settings(max_examples=5)
@given(size=st.tuples(*[st.floats(5, 40)] * 3))
def test_a_full_infill_weighs_as_much_as_the_volume(registry: Registry, size: tuple[float, float, float]) -> None:
    estimate = registry.estimate(scene(block(*size)), print_infill_percent=100)
    # PrusaSlicer deposits 2.4 % more for a cube of 5 mm and 0.9 % for one of 20 mm: infill overlaps the walls
    assert 0.995 < estimate.material_mm3 / float(np.prod(size)) < MAX_OVERLAP
    assert estimate.weight_g == pytest.approx(estimate.material_mm3 * 1.24 / 1000)
    assert estimate.support_material_mm3 == 0


def test_walls_and_solid_layers_of_a_box_without_infill(registry: Registry) -> None:
    estimate = registry.estimate(scene(block(40, 40, 40)), print_infill_percent=0, print_shell_lines=2)
    # lines of 0.45 mm with round sides are 0.407 mm apart; four layers of 0.2 mm at each end
    inner = 40 - 4 * (0.45 - 0.2 * (1 - np.pi / 4))
    assert estimate.material_mm3 == pytest.approx(40**3 - inner**2 * (40 - 1.6), rel=RELATIVE)


def test_a_hollow_with_thin_walls_is_printed_whole(registry: Registry) -> None:
    hollow = block(30, 30, 30) - block(28.4, 28.4, 28.4, (0.8, 0.8, 0.8))
    estimate = registry.estimate(scene(hollow))
    assert estimate.volume_mm3 == pytest.approx(30**3 - 28.4**3)
    assert estimate.material_mm3 == pytest.approx(estimate.volume_mm3, rel=RELATIVE)


@settings(max_examples=8)
@given(low=st.integers(0, 9), more=st.integers(1, 10), lines=st.integers(1, 4))
@pytest.mark.large
def test_more_infill_and_more_walls_weigh_more(registry: Registry, low: int, more: int, lines: int) -> None:
    box = scene(block(20, 15, 10))
    less, heavier = (
        registry.estimate(box, print_infill_percent=percent, print_shell_lines=lines)
        for percent in (10 * low, min(100, 10 * (low + more)))
    )
    walled = registry.estimate(box, print_infill_percent=10 * low, print_shell_lines=lines + 1)
    assert less.weight_g <= heavier.weight_g
    assert less.weight_g <= walled.weight_g


def test_support_stands_under_a_beam(registry: Registry) -> None:
    pillar = block(10, 10, 20, (15, 0, 0)) + block(40, 10, 5, (0, 0, 20))
    estimate = registry.estimate(scene(pillar))
    # two columns of 15 mm, 1.5 mm wider all around, 0.3 mm beside the pillar, one layer below the beam
    assert estimate.support_mm3 == pytest.approx(2 * (15 + 1.5 - 0.3) * 13 * 19.8, rel=0.05)
    assert 0 < estimate.support_material_mm3 < estimate.support_mm3
    assert estimate.support_weight_g == pytest.approx(estimate.support_material_mm3 * 1.24 / 1000)
    lying = registry.estimate(scene(pillar.rotate((90, 0, 0))))
    assert lying.support_mm3 == 0


def test_support_everywhere_is_that_of_slicers(registry: Registry) -> None:
    # a shelf of 3 mm that lines hold, a bridge of 15 mm, and a table that needs support in any case
    shelf = block(10, 10, 20) + block(13, 10, 5, (0, 0, 15))
    bridge = block(5, 10, 20) + block(5, 10, 20, (20, 0, 0)) + block(25, 10, 5, (0, 0, 15))
    table = block(10, 10, 20, (15, 0, 0)) + block(40, 10, 5, (0, 0, 20))
    needed, everywhere = (
        [registry.estimate(scene(solid), print_support=places).support_mm3 for solid in (shelf, bridge, table)]
        for places in ("needed", "everywhere")
    )
    assert needed[:2] == [0, 0]
    assert everywhere[0] == pytest.approx((3 + 1.5 - 0.3) * 13 * 14.8, rel=0.1)
    assert everywhere[1] == 0
    assert everywhere[2] == pytest.approx(needed[2], rel=0.05)


@needs_slicer
def test_a_slicer_places_support_everywhere_at_the_shelf_and_not_below_the_bridge(registry: Registry) -> None:
    shelf = scene(block(10, 10, 20) + block(13, 10, 5, (0, 0, 15)))
    bridge = scene(block(5, 10, 20) + block(5, 10, 20, (20, 0, 0)) + block(25, 10, 5, (0, 0, 15)))
    sliced, model = (
        registry.estimate(shelf, print_support="everywhere", slicer=slicer).support_material_mm3
        for slicer in (True, False)
    )
    assert model == pytest.approx(sliced, rel=0.4)
    assert registry.estimate(shelf, slicer=True).support_material_mm3 == 0
    assert registry.estimate(bridge, print_support="everywhere", slicer=True).support_material_mm3 == 0


def test_parts_have_their_own_weights_and_copies_the_same(registry: Registry) -> None:
    cube, moved = np.eye(4), np.eye(4)
    moved[0, 3] = 40
    other = block(10, 10, 10, (0, 40, 0))
    parts = (Part(0, cube, "a"), Part(0, moved, "b"), Part(1, np.eye(4), "c"))
    estimate = registry.estimate(Scene(meshes=(mesh_of(block(20, 20, 20)), mesh_of(other)), parts=parts))
    first, second, third = estimate.parts
    assert [part.name for part in estimate.parts] == ["a", "b", "c"]
    assert first.weight_g == second.weight_g
    assert third.volume_mm3 == pytest.approx(1000)
    assert third.size_mm == pytest.approx((10, 10, 10))
    assert sum(part.weight_g for part in estimate.parts) == pytest.approx(estimate.weight_g, rel=0.05)


def test_bodies_in_one_place_count_once_however_many(registry: Registry) -> None:
    one = Scene(meshes=(mesh_of(block(5, 5, 5)),), parts=(Part(0),))
    many = Scene(meshes=one.meshes, parts=one.parts * 128)
    expected = registry.estimate(one)
    estimate = registry.estimate(many)
    assert estimate.material_mm3 == pytest.approx(expected.material_mm3, rel=RELATIVE)
    assert estimate.seconds == pytest.approx(expected.seconds, rel=RELATIVE)


def joined(*meshes: Mesh) -> Mesh:
    """All meshes in one."""
    starts = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    faces = [mesh.faces + np.int32(start) for mesh, start in zip(meshes, starts, strict=False)]
    return Mesh(np.concatenate([mesh.vertices for mesh in meshes]), np.concatenate(faces))


def inverted(solid: Manifold) -> Mesh:
    """A solid that is inside out."""
    mesh = mesh_of(solid)
    return Mesh(mesh.vertices, mesh.faces[:, ::-1])


HOLLOW = block(20, 20, 20) - block(16, 16, 16, (2, 2, 2))
NO_FACES = Mesh(np.empty((0, 3)), np.empty((0, 3), np.int32))


# a slicing by layers takes a second
@pytest.mark.parametrize(("process", "as_parts"), [("fdm", True), ("sls", False), ("sls", True)])
@pytest.mark.parametrize(
    ("meshes", "volume"),
    [
        ([mesh_of(block(20, 20, 20)), inverted(block(19, 19, 19, (30, 0, 0)))], 8000 + 19**3),
        ([mesh_of(block(40, 40, 40)), inverted(block(20, 40, 40, (40, 0, 0)))], 96000),
        ([mesh_of(block(20, 20, 20)), inverted(block(20, 20, 20, (20, 20, 0)))], 16000),
        ([inverted(block(20, 20, 20))], 8000),
        ([inverted(HOLLOW)], 8000 - 4096),
        ([mesh_of(block(20, 20, 20)), mesh_of(block(20, 20, 20, (1, 0, 0)))], 8400),
        ([mesh_of(block(20, 20, 20)), mesh_of(block(20, 20, 20))], 8000),
        ([mesh_of(block(20, 20, 20)), mesh_of(block(5, 5, 5, (5, 5, 5)))], 8000),
        ([mesh_of(HOLLOW), mesh_of(block(5, 5, 5, (5, 5, 5)))], 8000 - 4096 + 125),
        ([mesh_of(HOLLOW), mesh_of(block(18, 18, 18, (1, 1, 1)))], 8000),
        ([mesh_of(block(30, 30, 30) - block(29.2, 29.2, 40, (0.4, 0.4, 0.4)))], 30**3 - 29.2**2 * 29.6),
        ([mesh_of(block(20, 20, 20)), NO_FACES], 8000),
        ([mesh_of(block(20, 20, 0.0005))], 0.2),
    ],
    ids=[
        "inverted",
        "wall",
        "edge",
        "alone",
        "hollow",
        "overlap",
        "twice",
        "nested",
        "cavity",
        "filled",
        "thin",
        "empty",
    ]
    + ["foil"],
)
def test_material_is_the_volume_of_the_union(
    registry: Registry, meshes: list[Mesh], volume: float, as_parts: bool, process: str
) -> None:
    own = meshes if as_parts else [joined(*meshes)]
    model = Scene(meshes=tuple(own), parts=tuple(Part(number) for number in range(len(own))))
    estimate = registry.estimate(model, print_process=process, print_infill_percent=100, print_layer_mm=0.2)
    assert estimate.volume_mm3 == pytest.approx(volume, rel=2e-3)
    assert 0.995 < estimate.material_mm3 / volume < (MAX_OVERLAP if process == "fdm" else 1.005)
    assert all(part.weight_g >= 0 for part in estimate.parts)


@given(shift=st.tuples(*[st.floats(-30, 30)] * 3), turn=st.floats(0, 90))
@settings(max_examples=5, deadline=None)
def test_the_union_of_two_bodies_weighs_what_manifold_says(
    registry: Registry, shift: tuple[float, float, float], turn: float
) -> None:
    first, second = block(20, 30, 20), Manifold.sphere(12, 32).translate(shift) + block(4, 4, 9).rotate((turn, 0, 9))
    estimate = registry.estimate(scene(first, second), print_process="sls")
    assert estimate.material_mm3 == pytest.approx((first + second).volume(), rel=2e-3)


def test_the_time_has_a_range_and_follows_the_speed(registry: Registry) -> None:
    cube = scene(block(30, 30, 30))
    slow, fast = (registry.estimate(cube, print_speed_mm_s=speed).seconds for speed in (30, 90))
    assert slow is not None
    assert fast is not None
    assert 1.5 < slow / fast < 3
    estimate = registry.estimate(cube)
    assert "±" in estimate.describe_time()
    assert estimate.method == "model"


@pytest.mark.parametrize(
    "options",
    [
        {"print_layer_mm": 1, "print_nozzle_mm": 0.1},
        {"print_layer_mm": 0.02, "print_nozzle_mm": 2},
        {"print_solid_layers": 0, "print_infill_percent": 0},
        {"print_solid_layers": 100, "print_shell_lines": 20},
        {"print_speed_mm_s": 5},
        {"print_process": "resin", "print_layer_mm": 0.02},
    ],
)
def test_extreme_options_give_plausible_figures(registry: Registry, options: dict[str, object]) -> None:
    estimate = registry.estimate(scene(block(8, 8, 8)), options=options)
    assert 0 < estimate.material_mm3 <= 1.1 * estimate.volume_mm3
    assert estimate.seconds is not None
    assert 10 < estimate.seconds < 1e6


def test_operations_come_first(registry: Registry) -> None:
    cube = scene(block(10, 10, 10))
    assert registry.estimate(cube, target_height_mm=20, print_process="sls").volume_mm3 == pytest.approx(8000)


def test_open_models_have_a_note_and_flat_ones_an_error(registry: Registry) -> None:
    cube = mesh_of(block(10, 10, 10))
    lid = Scene(meshes=(Mesh(cube.vertices, cube.faces[:-1]),), parts=(Part(0),))
    assert "open_estimate" in [note.code for note in registry.quote(lid).notes]
    assert registry.quote(scene(block(10, 10, 10))).notes[-1].code == "no_rates"
    tilted = np.array([[0, 0, 7], [9, 0, 8], [9, 9, 9], [0, 9, 8]], np.float64) / 3
    flat = Scene(meshes=(Mesh(tilted, np.array([[0, 1, 2], [0, 2, 3]], np.int32)),), parts=(Part(0),))
    # its volume depends on where its opening is closed
    tray = Scene(meshes=(Mesh(cube.vertices, cube.faces[:6]),), parts=(Part(0),))
    for model in (flat, tray):
        with pytest.raises(ConversionFailed, match="'repair'"):
            registry.estimate(model)
        verdict = registry.check(model)
        (finding,) = [finding for finding in verdict.findings if finding.check == "estimate"]
        assert (finding.code, finding.severity, verdict.estimate) == ("no_volume", "warning", None)
        assert "cannot be estimated; use --repair" in finding.spelled(lambda name: f"--{name}")
        assert "check_failed" not in {finding.code for finding in verdict.findings}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"print_infill_percent": 101}, "print_infill_percent"),
        ({"print_infill_percent": float("inf")}, "print_infill_percent"),
        ({"print_material": "wood"}, "print_material"),
        ({"material": "pla"}, "there is none"),
        ({"quantity": 0}, "quantity"),
        ({"checks": "walls"}, "checks"),
    ],
)
def test_invalid_options_are_rejected(registry: Registry, options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        registry.estimate(scene(block(10, 10, 10)), options=options)


def test_a_worker_estimates_alike_and_a_check_includes_the_estimate(registry: Registry) -> None:
    cube = scene(block(10, 10, 10))
    with Registry(entry_points=False, engine=Isolated(method="fork")) as apart:
        assert apart.estimate(cube) == registry.estimate(cube)
    verdict = registry.check(cube)
    assert verdict.estimate == registry.estimate(cube)
    assert "slicer" not in [check.step for check in verdict.checks]


@needs_slicer
def test_a_slicer_replaces_material_and_time(registry: Registry) -> None:
    cube = scene(block(20, 20, 20))
    estimate, model = registry.estimate(cube, slicer=True), registry.estimate(cube)
    assert estimate.method.startswith("PrusaSlicer ")
    assert estimate.material_mm3 == pytest.approx(model.material_mm3, rel=0.05)
    assert estimate.seconds == pytest.approx(model.seconds, rel=0.5)
    assert estimate.seconds_error is None
    with pytest.raises(InvalidOption, match="fdm"):
        registry.estimate(cube, slicer=True, print_process="sls")


@needs_slicer
def test_a_check_states_the_estimate_of_a_slicer_on_request(registry: Registry) -> None:
    cube = scene(block(20, 20, 20))
    for options, steps in (({}, {"slicer", "walls"}), ({"checks": "walls"}, {"walls"})):
        verdict = registry.check(cube, slicer=True, **options)
        ran = {check.step for check in verdict.checks}
        assert steps <= ran
        assert "estimate" not in ran
    estimate = registry.check(cube, slicer=True).estimate
    assert estimate is not None
    assert estimate.material_mm3 == registry.estimate(cube, slicer=True).material_mm3


def test_a_slicer_that_is_not_installed_is_named(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingDependency, match="prusa-slicer"):
        registry.estimate(scene(block(10, 10, 10)), slicer=True)


def test_a_slicer_that_makes_no_file_is_an_error(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "prusa-slicer"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConversionFailed, match="PrusaSlicer failed with status 1"):
        registry.estimate(scene(block(10, 10, 10)), slicer=True)


def test_a_slicer_needs_an_entitlement(registry: Registry) -> None:
    from msgspec import structs

    caller = structs.replace(LOCAL, plan=registry.plans["free"])
    with pytest.raises(PremiumRequired, match="'slicer'"):
        registry.estimate(scene(block(10, 10, 10)), slicer=True, caller=caller)


def test_known_volumes_of_a_mesh_library(registry: Registry) -> None:
    torus = manifold3d.CrossSection.circle(4, 48).translate((12, 0)).revolve(64)
    estimate = registry.estimate(scene(torus), print_process="sls")
    assert estimate.volume_mm3 == pytest.approx(torus.volume())
    assert estimate.area_mm2 == pytest.approx(torus.surface_area())
