"""Printers: one table for all options, other names, and the file of an operator."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from meshhub import InvalidOption, Registry
from meshhub.model.plans import Caller, Plan
from meshhub.supported import supported
from meshhub.toolkit.geometry import bounds
from meshhub.toolkit.printers import ALIASES, PRINTERS, find_printer
from support.models import brick, scene_of

REGISTRY = Registry(entry_points=False)
PRINT_OPTIONS = REGISTRY.declarations.check_fields()

TEXTS = {
    "prusa-mk4": "prusa-mk4",
    "MK4": "prusa-mk4",
    "Prusa  mk4": "prusa-mk4",
    "mk4s": "prusa-mk4",
    "p2s": "bambu-p2s",
    "Bambu Lab A1 mini": "bambu-a1-mini",
    "ender_3": "creality-ender-3",
}


@pytest.mark.parametrize("text", TEXTS)
def test_every_option_finds_a_printer_by_other_names(text: str) -> None:
    assert find_printer(text) is PRINTERS[TEXTS[text]]
    assert PRINT_OPTIONS["print_printer"].parse(text) == TEXTS[text]


def test_the_name_of_several_printers_is_that_of_none() -> None:
    assert not ALIASES.keys() & PRINTERS.keys()
    assert find_printer("prusa") is None
    with pytest.raises(InvalidOption, match=r"print_printer.*must be one of.*prusa-mk4"):
        PRINT_OPTIONS["print_printer"].parse("prusa")


def test_the_service_lists_the_other_names_of_each_printer() -> None:
    known = {
        printer["id"]: printer
        for printer in supported(REGISTRY, Caller(plan=Plan(id="free", label="Free")))["printers"]
    }
    assert known["prusa-mk4"]["aliases"] == ["mk4", "mk4s"]
    assert {"p2s", "bambu-lab-p2s"} <= set(known["bambu-p2s"]["aliases"])
    assert {alias: key for key, printer in known.items() for alias in printer["aliases"]} == ALIASES


def test_all_options_and_the_service_know_the_same_printers() -> None:
    known = supported(REGISTRY, Caller(plan=Plan(id="free", label="Free")))
    checks = next(check for check in known["checks"] if check["id"] == "size")
    titles = {choice["const"]: choice["title"] for choice in checks["options"]["properties"]["print_printer"]["oneOf"]}
    assert titles == {printer["id"]: printer["name"] for printer in known["printers"]}
    projects = REGISTRY.options["threemf_printer"].choices
    assert set(projects) == {name for name, printer in PRINTERS.items() if printer.presets} < titles.keys()


@pytest.mark.parametrize(
    ("option", "size"),
    [("fit_mm", (210, 210, 210)), ("arrange_bed", (100, 100, 100)), ("split_for_bed", (250, 210, 220))],
)
def test_a_bed_may_be_that_of_a_printer(option: str, size: tuple[float, float, float]) -> None:
    """The MK4 prints 250 × 210 × 220 mm."""
    side = 400.0 if option == "split_for_bed" else 100.0
    scene = REGISTRY.read(scene_of(brick(side, side, side)), **{option: "Prusa MK4"})
    low, high = bounds(scene)
    if option == "split_for_bed":
        assert len(scene.parts) == 2 * 2 * 2
    else:
        assert tuple(high - low) == pytest.approx(size)
    with pytest.raises(InvalidOption, match=rf"{option}.*or a printer, such as prusa-mk4, got 'mk99'"):
        REGISTRY.read(scene_of(brick()), **{option: "mk99"})


def list_printers(folder: Path) -> tuple[list[str], str]:
    """Return the ids and sizes that a new process with this configuration folder knows, and what it logs."""
    program = (
        "from meshhub.toolkit.printers import PRINTERS\n"
        "for key, known in PRINTERS.items(): print(key, *known.volume_mm)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "XDG_CONFIG_HOME": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines(), done.stderr


def test_a_file_of_the_operator_adds_and_replaces_printers(tmp_path: Path) -> None:
    file = tmp_path / "meshhub" / "printers.toml"
    file.parent.mkdir()
    file.write_text(
        '[acme-one]\nname = "Acme One"\nvolume_mm = [100, 100, 100]\n'
        '[prusa-mk4]\nname = "Our MK4"\nvolume_mm = [250, 210, 200.5]\n'
    )
    listed, log = list_printers(tmp_path)
    assert {"acme-one 100.0 100.0 100.0", "prusa-mk4 250.0 210.0 200.5"} < set(listed) and not log
    assert len(listed) == len(PRINTERS) + 1


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[acme-one", "end of document"),
        ('[acme-one]\nname = "Acme"', "volume_mm"),
        ('[acme-one]\nname = "Acme"\nvolume_mm = [1, 2]', "length 3"),
        ('[acme-one]\nname = "Acme"\nvolume_mm = [1, 2, 0]', "volume_mm"),
        ('["Acme One"]\nname = "Acme"\nvolume_mm = [9, 9, 9]', "kebab-case"),
        ('[acme-one]\nname = "Acme"\nvolume_mm = [9, 9, 9]\nbed = 3', "bed"),
    ],
)
def test_a_wrong_file_is_left_out_with_its_reason(tmp_path: Path, content: str, reason: str) -> None:
    file = tmp_path / "meshhub" / "printers.toml"
    file.parent.mkdir()
    file.write_text(content)
    listed, log = list_printers(tmp_path)
    assert len(listed) == len(PRINTERS)
    assert "left out the printers of" in log and str(file) in log and reason in log


def test_each_material_has_an_english_title() -> None:
    known = supported(REGISTRY, Caller(plan=Plan(id="free", label="Free")))
    checks = next(check for check in known["checks"] if check["id"] == "estimate")
    choices = checks["options"]["properties"]["print_material"]["oneOf"]
    assert [choice for choice in choices if choice["title"] == choice["const"]] == []
