"""G-code by a real PrusaSlicer."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from slicer_models import make_box, make_scene, needs_prusa

from meshhub import InvalidOption, Registry, Report, Scene, Target

pytestmark = needs_prusa

MK3S = {"slicer_printer": "prusa-mk3s"}
BOX = make_scene(make_box(10, 20, 5))


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry()


def convert(registry: Registry, scene: Scene, **options: Any) -> tuple[str, Report]:
    target = Target("part.gcode")
    report = registry.write(scene, target, target="gcode", **{**MK3S, **options})
    return target.read().decode(), report


def figures_of(report: Report) -> dict[str, Any]:
    return report.steps[-1].figures


def setting_of(text: str, name: str) -> str:
    match = re.search(rf"^; {name} = (.*)$", text, re.MULTILINE)
    assert match is not None, name
    return match[1]


def test_the_print_is_that_of_the_profile(registry: Registry) -> None:
    text, report = convert(registry, BOX)
    figures = figures_of(report)
    assert setting_of(text, "printer_settings_id") == "Original Prusa i3 MK3S & MK3S+"
    assert setting_of(text, "print_settings_id") == "0.20mm QUALITY @MK3"
    assert 'M862.3 P "MK3S"' in text
    assert figures["layers"] == 25
    assert figures["filament_g"] == pytest.approx(float(setting_of(text, r"filament used \[g\]")), abs=0.02)
    assert figures["filament_mm"] == float(setting_of(text, r"filament used \[mm\]"))
    assert 60 < figures["seconds"] < 1200
    (sliced,) = [note for note in report.notes if note.code == "sliced"]
    assert sliced.values["height"] == 5.0


def test_equal_models_give_equal_comments_without_a_date(registry: Registry) -> None:
    # PrusaSlicer begins some lines at another corner: one of 8 files of a box differs
    first, second = (convert(registry, BOX)[0] for _ in range(2))
    comments = [{line for line in text.splitlines() if re.match(r";(?!.* time)", line)} for text in (first, second)]
    assert comments[0] == comments[1]
    assert "prepared by meshhub" in first[:65536]
    assert not re.search(r"20\d\d-\d\d-\d\d", first)


def test_options_reach_the_slicer(registry: Registry) -> None:
    text, _ = convert(
        registry,
        BOX,
        slicer_material="petg",
        slicer_quality="draft",
        slicer_supports="none",
        slicer_set="fill_density=35, perimeters=4",
    )
    assert setting_of(text, "filament_settings_id") == '"Generic PETG"'
    assert setting_of(text, "layer_height") == "0.3"
    assert setting_of(text, "fill_density") == "35%"
    assert setting_of(text, "perimeters") == "4"
    assert setting_of(text, "support_material") == "0"


def test_supports_are_where_they_are_needed(registry: Registry) -> None:
    table = make_scene(make_box(4, 4, 20, at=(8, 8, 0)), make_box(20, 20, 2, at=(0, 0, 20)))
    with_support, _ = convert(registry, table)
    without, _ = convert(registry, table, slicer_supports="none")
    assert ";TYPE:Support material" in with_support
    assert ";TYPE:Support material" not in without
    assert ";TYPE:Support material" not in convert(registry, BOX)[0]


def test_colors_become_tools(registry: Registry) -> None:
    scene = make_scene(make_box(10, 10, 2), make_box(10, 10, 2, at=(0, 0, 2)), colors=[(1, 0, 0, 1), (0, 0, 1, 1)])
    text, report = convert(registry, scene)
    figures = figures_of(report)
    assert re.search(r"^T1\b", text, re.MULTILINE)
    assert figures["tool_1_mm"] > 0
    assert figures["tool_2_mm"] > 0
    assert setting_of(text, "filament_colour").split(";")[:2] == ["#FF0000", "#0000FF"]
    assert "MMU2S" in setting_of(text, "printer_settings_id")
    # PrusaSlicer reads beyond shorter lists, and then moves to infinity
    for name in ("temperature", "filament_diameter", "filament_loading_speed", "retract_length"):
        assert setting_of(text, name).count(",") == 4, name


def test_a_printer_with_one_filament_prints_one(registry: Registry) -> None:
    scene = make_scene(make_box(10, 10, 2), make_box(10, 10, 2, at=(0, 0, 2)), colors=[(1, 0, 0, 1), (0, 0, 1, 1)])
    text, report = convert(registry, scene, slicer_printer="creality-ender-3")
    assert not re.search(r"^T1\b", text, re.MULTILINE)
    assert "slicer_one_filament" in {note.code for note in report.notes}


def test_more_colors_than_filaments_are_rejected(registry: Registry) -> None:
    boxes = [make_box(5, 5, 1, at=(0, 0, height)) for height in range(7)]
    scene = make_scene(*boxes, colors=[(number / 7, 0, 0, 1) for number in range(7)])
    with pytest.raises(InvalidOption, match=r"7 filaments, and Prusa MK3S\+ prints 5; use 'reduce_colors' = 5"):
        convert(registry, scene)


def test_a_printer_without_a_profile_gets_general_settings(registry: Registry) -> None:
    text, report = convert(registry, BOX, slicer_printer="bambu-a1-mini")
    assert "slicer_general_settings" in {note.code for note in report.notes}
    assert setting_of(text, "bed_shape") == "0x0,180x0,180x180,0x180"
    assert "G28" in text


def test_the_model_is_in_the_middle_and_turned_if_it_must_be(registry: Registry) -> None:
    wide, _ = convert(registry, make_scene(make_box(240, 20, 1)), slicer_set="skirts=0")
    deep, _ = convert(registry, make_scene(make_box(20, 240, 1)), slicer_set="skirts=0")
    for text in (wide, deep):
        body = text[text.index(";LAYER_CHANGE") : text.index("; Filament-specific end gcode")]
        xs = [float(x) for x in re.findall(r"^G1 X([\d.]+) Y[\d.]+ E[\d.]+", body, re.MULTILINE)]
        assert (min(xs) + max(xs)) / 2 == pytest.approx(125, abs=1)
        assert max(xs) - min(xs) == pytest.approx(240, abs=1)


def test_a_model_that_is_too_large_is_rejected(registry: Registry) -> None:
    with pytest.raises(InvalidOption, match=r"300 × 20 × 5 mm, and Prusa MK3S\+ prints 250 × 210 × 210 mm"):
        convert(registry, make_scene(make_box(300, 20, 5)))


def test_plates_become_files(registry: Registry, tmp_path: Path) -> None:
    scene = make_scene(make_box(10, 10, 1), make_box(20, 10, 2, at=(300, 0, 0)), plates=(0, 1))
    report = registry.write(scene, tmp_path / "parts.gcode", **MK3S)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["parts-bed2.gcode", "parts.gcode"]
    assert figures_of(report)["layers"] == 15


def test_figures_are_those_of_the_command_line(registry: Registry, tmp_path: Path) -> None:
    text, _ = convert(registry, BOX, slicer_supports="none")
    block = text[text.index("; prusaslicer_config = begin") :]
    settings = [line[2:] for line in block.splitlines() if line.startswith("; ") and " = " in line]
    (tmp_path / "all.ini").write_text("\n".join(setting for setting in settings if "prusaslicer_config" not in setting))
    registry.write(BOX, tmp_path / "box.stl")
    command = [
        "prusa-slicer",
        "--export-gcode",
        "--load",
        "all.ini",
        "--center",
        "125,105",
        "-o",
        "own.gcode",
        "box.stl",
    ]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    own = (tmp_path / "own.gcode").read_text()
    for name in (r"filament used \[mm\]", r"estimated printing time \(normal mode\)"):
        assert setting_of(own, name) == setting_of(text, name)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"slicer_printer": None}, "G-code is for one printer"),
        ({"slicer_printer": "acme"}, "acme"),
        ({"slicer_printer": "formlabs-form-4"}, "formlabs-form-4"),
        ({"slicer_material": "tpu", "slicer_printer": "creality-ender-3"}, "has no profile of tpu; use pla, petg, abs"),
        ({"slicer_set": "post_process=1"}, "'post_process' cannot be set"),
        ({"slicer_set": "layer_height=9"}, "layer_height must be from 0.03 to 1.2"),
        ({"slicer_set": "perimeters=1.5"}, "whole number"),
        ({"slicer_set": "layer_height"}, "is not key=number"),
        ({"slicer_program": "orca"}, "OrcaSlicer writes .gcode, and is not installed"),
    ],
)
def test_options_that_are_wrong(registry: Registry, options: dict[str, Any], message: str) -> None:
    from meshhub import MeshhubError

    with pytest.raises(MeshhubError, match=message):
        convert(registry, BOX, **options)


def test_binary_gcode_needs_a_later_version(registry: Registry) -> None:
    from meshhub.toolkit.slicers import SLICERS

    if tuple(map(int, SLICERS["prusa"].read_version().split(".")[:2])) >= (2, 7):
        pytest.skip("this PrusaSlicer writes binary G-code")
    with pytest.raises(InvalidOption, match=r"needs PrusaSlicer 2.7 or later, and 2\.\d\.\d is installed"):
        registry.write(BOX, Target("part.bgcode"), target="bgcode", **MK3S)
