"""A target that is a step: its options, what the print takes, and its layers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import distributions
import slicing_plugin
from page_visits import Visit, convert, draw, pick, serving

pytest.importorskip("litestar", reason="needs the extra 'http'")
pytestmark = pytest.mark.once

MODEL = Path(__file__).parents[2] / "examples" / "bracket-clean.stl"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the printers."""
    return tmp_path_factory.mktemp("bench")


@pytest.fixture(scope="module")
def address(bench: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve with the plug-in that slices and has printers."""
    folder = tmp_path_factory.mktemp("slicing")
    distributions.install(folder / "site", "meshhub-slicing", slicing="slicing_plugin")
    path = os.pathsep.join(
        [str(folder / "site"), str(Path(slicing_plugin.__file__).parent), os.environ.get("PYTHONPATH", "")]
    )
    with serving(folder, PYTHONPATH=path, BENCH=str(bench), BENCH_FOR="everybody") as url:
        yield url


def slice_model(visit: Visit) -> Any:
    page = visit.open()
    pick(page, MODEL)
    page.get_by_role("switch", name="Slice").check(force=True)
    page.get_by_label("Printer of the layers").select_option("Prusa MK4")
    convert(page, "Slice")
    return page


def test_a_model_is_sliced_and_its_layers_are_shown(visit: Visit) -> None:
    page = slice_model(visit)
    rows = page.get_by_role("region", name="Result").get_by_role("row").all_inner_texts()
    assert [row.replace("\t", " ") for row in rows] == [
        "Print time 1 h 30 min",
        "Weight 12.5 g",
        "Filament 4.2 m",
        "Layers 3",
        "Price of 1 piece 3.25 EUR",
    ]
    layers = page.get_by_role("slider", name="Layers")
    layers.wait_for()
    whole = draw(page)
    layers.press("Home")
    assert layers.get_attribute("aria-valuetext") == "Layer 1 of 3, 10 mm"
    # two of three layers are gone
    assert (abs(draw(page) - whole).max(axis=2) > 20).mean() > 0.02
    layers.press("End")
    assert abs(draw(page) - whole).max() <= 2


def test_the_step_states_what_is_missing(visit: Visit) -> None:
    page = visit.open()
    pick(page, MODEL)
    step = page.get_by_role("switch", name="Slice")
    step.check(force=True)
    # the other options of the format stay behind "More options"
    assert page.get_by_label("Speed of the layers").is_hidden()
    page.get_by_role("button", name="Slice", exact=True).click()
    page.get_by_text("set “Printer of the layers”").wait_for()
    step.uncheck(force=True)
    assert page.get_by_role("radio", name="3MF").is_checked()


def test_a_result_goes_to_a_printer_and_is_printed_once(visit: Visit, bench: Path) -> None:
    page = slice_model(visit)
    printers = page.get_by_role("combobox", name="Send to a printer")
    assert printers.locator("option").all_inner_texts() == ["left · ready", "busy · printing", "off · off is off"]
    printers.select_option("busy · printing")
    page.get_by_role("button", name="Send and print").click()
    page.get_by_text("busy is printing, so nothing was sent").wait_for()
    printers.select_option("left · ready")
    page.get_by_role("button", name="Send and print").dblclick()
    page.get_by_text("left prints bracket-clean.layers.").first.wait_for()
    assert page.get_by_role("button", name="Send and print").is_disabled()
    assert (bench / "left" / "starts").read_text() == "bracket-clean.layers\n"
    # another slice has the same name
    page.get_by_label("Printer of the layers").select_option("K1")
    convert(page, "Slice")
    page.get_by_role("button", name="Send", exact=True).click()
    page.get_by_text("The printer already has a file of this name.").wait_for()
    page.get_by_role("button", name="Replace it", exact=True).click()
    page.get_by_text("bracket-clean.layers is on left.").first.wait_for()
    assert (bench / "left" / "starts").read_text() == "bracket-clean.layers\n"


def test_a_bed_or_an_opened_file_is_sent(visit: Visit, bench: Path, tmp_path: Path) -> None:
    page = visit.open("#target=layers&layers_printer=k1&copies=4&arrange_bed=120x120")
    pick(page, MODEL)
    convert(page, "Slice")
    page.get_by_role("combobox", name="File to send").select_option("bracket-clean-bed2.layers")
    page.get_by_role("combobox", name="Send to a printer").select_option("left · ready")
    page.get_by_role("button", name="Send", exact=True).click()
    page.get_by_text("bracket-clean-bed2.layers is on left.").first.wait_for()
    assert (bench / "left" / "bracket-clean-bed2.layers").exists()

    (tmp_path / "own.layers").write_text("; of another slicer\n")
    page = visit.open()
    pick(page, tmp_path / "own.layers")
    page.get_by_role("combobox", name="Send to a printer").select_option("left · ready")
    page.get_by_role("button", name="Send and print").click()
    page.get_by_text("left prints own.layers.").first.wait_for()
    assert (bench / "left" / "own.layers").read_text() == "; of another slicer\n"
