"""G-code by a real CuraEngine, with the definitions of Cura."""

from __future__ import annotations

import re
import shutil
from typing import Any

import pytest
from meshhub_slicer.cura import find_definitions
from slicer_models import make_box, make_scene

from meshhub import InvalidOption, Registry, Report, Scene, Target

ENDER = {"slicer_program": "cura", "slicer_printer": "creality-ender-3"}
BOX = make_scene(make_box(10, 20, 5))


def _is_installed() -> bool:
    try:
        return shutil.which("CuraEngine") is not None and bool(find_definitions())
    except InvalidOption:
        return False


needs_cura = pytest.mark.skipif(not _is_installed(), reason="CuraEngine or the definitions of Cura are not installed")


def convert(scene: Scene = BOX, **options: Any) -> tuple[str, Report]:
    target = Target("part.gcode")
    report = Registry().write(scene, target, target="gcode", **{**ENDER, **options})
    return target.read().decode(), report


@needs_cura
def test_figures_are_those_of_the_engine() -> None:
    text, report = convert()
    figures = report.steps[-1].figures
    assert figures["layers"] == 25
    # 1.0 g of plastic with full walls and a fifth of the inside
    assert 0.5 < figures["filament_g"] < 1.3
    assert f";TIME:{figures['seconds']:.0f}\n" in text
    assert "Ender 3 Custom Start" in text
    (sliced,) = [note for note in report.notes if note.code == "sliced"]
    assert sliced.values["height"] == 5.0
    assert convert()[0] == text


@needs_cura
def test_the_model_is_in_the_middle_of_the_bed() -> None:
    text, _ = convert(slicer_set="skirts=0")
    body = text[text.index(";LAYER:0") :]
    xs = [float(x) for x in re.findall(r"^G1 .*X([\d.]+) Y[\d.]+ E", body, re.MULTILINE)]
    assert (min(xs) + max(xs)) / 2 == pytest.approx(117.5, abs=0.3)


@needs_cura
def test_density_and_layers_change_the_print() -> None:
    cube = make_scene(make_box(20, 20, 20))
    empty, full = (convert(cube, slicer_set=f"fill_density={density}")[1] for density in (0, 100))
    assert full.steps[-1].figures["filament_g"] > 2 * empty.steps[-1].figures["filament_g"]
    # 8 cm³ of PLA
    assert full.steps[-1].figures["filament_g"] == pytest.approx(8 * 1.24, rel=0.06)
    assert convert(cube, slicer_quality="fine")[1].steps[-1].figures["layers"] > 190


@needs_cura
def test_supports_are_where_they_are_needed() -> None:
    table = make_scene(make_box(4, 4, 20, at=(8, 8, 0)), make_box(20, 20, 2, at=(0, 0, 20)))
    assert ";TYPE:SUPPORT" in convert(table)[0]
    assert ";TYPE:SUPPORT" not in convert(table, slicer_supports="none")[0]
    assert ";TYPE:SUPPORT" not in convert()[0]


@needs_cura
def test_other_printers_get_general_settings() -> None:
    text, report = convert(slicer_printer="prusa-mini")
    assert "slicer_general_settings" in {note.code for note in report.notes}
    assert "{" not in text


@needs_cura
def test_a_model_that_is_too_large_is_rejected() -> None:
    with pytest.raises(InvalidOption, match="Creality Ender-3 prints 220 × 220 × 250 mm; use 'split_for_bed'"):
        convert(make_scene(make_box(300, 20, 5)))


def test_missing_definitions_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("meshhub_slicer.cura._FOLDERS", ())
    monkeypatch.setenv("CURA_ENGINE_SEARCH_PATH", "/nowhere")
    with pytest.raises(InvalidOption, match="apt-get install cura"):
        find_definitions()
