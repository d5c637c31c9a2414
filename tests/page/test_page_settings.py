"""Controls of the settings: undo, sliders and swatches."""

from __future__ import annotations

from pathlib import Path

import pytest

from meshhub import Registry
from page_visits import Visit, convert, download, operation, pick

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PENGUIN = ROOT / "web" / "src" / "examples" / "penguin.glb"


def test_every_setting_can_be_undone_and_redone(visit: Visit) -> None:
    page = visit.open()
    pick(page, EXAMPLES / "bracket-clean.stl")
    undo, redo = (page.get_by_role("button", name=name, exact=True) for name in ("Undo", "Redo"))
    assert undo.is_disabled() and redo.is_disabled()
    page.get_by_role("switch", name="Scale to height").check()
    page.get_by_label("Target height in mm").fill("40")
    page.get_by_role("radio", name="STL", exact=True).check(force=True)
    page.get_by_label("Recipe").select_option("3D print")
    undo.click()
    assert page.get_by_label("Recipe").input_value() == ""
    assert not operation(page, "Place on bed").is_checked()
    undo.click()
    assert page.get_by_role("radio", name="3MF", exact=True).is_checked()
    page.locator("canvas").focus()
    page.keyboard.press("Control+z")
    page.get_by_label("Target height in mm").wait_for(state="detached")
    for _ in range(3):
        page.keyboard.press("Control+Shift+z")
    assert page.get_by_label("Target height in mm").input_value() == "40"
    assert page.get_by_label("Recipe").input_value() == "print"
    assert redo.is_disabled()


def test_a_slider_sets_the_share_of_triangles_that_stay(visit: Visit) -> None:
    page = visit.open()
    pick(page, EXAMPLES / "bracket-clean.stl")
    page.get_by_role("switch", name="Reduce faces").check()
    slider = page.get_by_role("slider", name="Share of the triangles to keep")
    assert slider.input_value() == "50"
    slider.fill("25")
    faces = int(page.get_by_label("Target number of faces").input_value())
    page.get_by_text("25 % of the triangles").wait_for()
    page.get_by_label("Target number of faces").fill(str(2 * faces))
    assert slider.input_value() == "50"
    slider.fill("25")
    convert(page, "Convert to 3MF")
    page.get_by_role("row", name="Triangles").get_by_text(f"{faces:,}", exact=True).wait_for()


def test_filaments_are_swatches_that_the_browser_keeps(visit: Visit, tmp_path: Path) -> None:
    page = visit.open()
    page.get_by_role("button", name="A colored figure").click()
    page.get_by_role("switch", name="Reduce colors").check()
    number = page.get_by_role("slider", name="Number of colors")
    number.fill("3")
    assert page.get_by_role("textbox", name="Number of colors").input_value() == "3"
    filaments = page.get_by_role("group", name="Filaments")
    filaments.get_by_text("Colors that suit the model").wait_for()
    for count, color in enumerate(["#202838", "#f5f5f0", "#f09628"], start=1):
        filaments.get_by_role("button", name="Add a color").click()
        filaments.get_by_label(f"Color {count}").fill(color)
    convert(page, "Convert to 3MF")
    palette = page.get_by_role("region", name="Filaments")
    assert palette.get_by_role("listitem").count() == 3
    page.reload()
    page.get_by_role("button", name="A colored figure").click()
    page.get_by_role("switch", name="Reduce colors").check()
    filaments.get_by_role("button", name="Own filaments (3)").click()
    assert filaments.get_by_label("Color 3").input_value() == "#f09628"
    filaments.get_by_role("button", name="Remove the color #f09628").click()
    slicer = tmp_path / "filaments.ini"
    slicer.write_text("filament_colour = #AA0000;#00BB00;#0000CC;#FFFFFF\n")
    with page.expect_file_chooser() as chooser:
        filaments.get_by_role("button", name="Read a file of filaments").click()
    chooser.value.set_files(slicer)
    filaments.get_by_label("Color 4").wait_for()
    assert filaments.get_by_label("Color 1").input_value() == "#aa0000"


def test_an_operation_starts_with_a_value(visit: Visit) -> None:
    page = visit.open()
    pick(page, EXAMPLES / "bracket-clean.stl")
    for name in ("Rotate", "Mirror", "Scale", "Combine parts", "Fill holes", "Merge parts"):
        operation(page, name).check()
        page.get_by_role("listitem").get_by_text(name, exact=True).wait_for()
    assert page.get_by_role("textbox", name="Rotate about X, degrees").input_value() == "0"
    assert page.get_by_role("combobox", name="Mirror").locator("option").all_inner_texts() == ["x", "y", "z"]


def test_a_painted_model_is_converted_as_it_is_shown(visit: Visit, tmp_path: Path) -> None:
    painted = tmp_path / "penguin.3mf"
    Registry().convert(PENGUIN, painted, reduce_colors=4, threemf_profile="prusa")
    page = visit.open()
    pick(page, painted)
    convert(page, "Convert to 3MF")
    (tmp_path / "result").mkdir()
    result = download(page, "Download penguin.3mf", tmp_path / "result")
    # the slicer's paint divides triangles
    assert Registry().inspect(result).model.faces > Registry().inspect(PENGUIN).model.faces
