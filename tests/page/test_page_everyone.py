"""The first view, large text, high contrast, browsers without 3D, and further languages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from page_visits import Visit, chromium_only, convert, draw, operation, pick

pytestmark = pytest.mark.once

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("label", "heading"),
    [("A scan with holes", "Needs repair"), ("A colored figure", "Closed"), ("An assembly", "Closed")],
)
def test_an_example_loads_at_once(visit: Visit, label: str, heading: str) -> None:
    page = visit.open()
    page.get_by_role("img", name="A scan of a rabbit").wait_for()
    page.get_by_text("Your files stay on this machine.").wait_for()
    assert page.get_by_role("list", name="What it does").get_by_role("listitem").count() == 5
    page.get_by_role("button", name=label).click()
    page.get_by_role("heading", name=heading).wait_for()


def test_a_result_that_its_format_moves_is_compared_at_one_place(visit: Visit) -> None:
    """Projects of slicers stand in the middle of their plate."""
    page = visit.open()
    page.get_by_role("button", name="A colored figure").click()
    page.get_by_label("Recipe").select_option("3D print in color")
    convert(page, "Repair and save as 3MF")
    compare = page.get_by_role("group", name="Compare")
    pictures = []
    for mode in ("Before", "Slider"):
        compare.get_by_role("button", name=mode, exact=True).click()
        pictures.append(draw(page)[160:600])
    assert (np.abs(pictures[0] - pictures[1]).max(axis=2) > 60).mean() < 0.02


def test_at_200_percent_the_picture_has_half_of_the_height(browser: Any, address: str) -> None:
    visit = Visit(browser, address, viewport={"width": 640, "height": 400})
    page = visit.open()
    pick(page, EXAMPLES / "bracket.stl")
    for _ in range(2):
        assert page.locator("canvas").bounding_box()["height"] >= 200
        assert page.evaluate("document.documentElement.scrollWidth") == 640
        if page.get_by_role("button", name="Repair and save as 3MF").is_visible():
            convert(page, "Repair and save as 3MF")
            page.get_by_role("group", name="Compare").wait_for()
    visit.close()


@chromium_only(reason="high contrast cannot be set in Firefox")
def test_high_contrast_shows_states(browser: Any, address: str) -> None:
    visit = Visit(browser, address, forced_colors="active")
    page = visit.open()
    pick(page, EXAMPLES / "bracket.stl")
    convert(page, "Repair and save as 3MF")
    compare = page.get_by_role("group", name="Compare")
    compare.get_by_role("button", name="After", exact=True).click()

    def outline(name: str) -> str:
        button = compare.get_by_role("button", name=name, exact=True)
        return str(button.evaluate("element => getComputedStyle(element).outlineStyle"))

    assert (outline("After"), outline("Before")) == ("solid", "none")
    repair = page.get_by_role("switch", name="Repair", exact=True)
    place = operation(page, "Place on bed")
    colors = [each.evaluate("element => getComputedStyle(element).backgroundColor") for each in (repair, place)]
    assert colors[0] != colors[1]
    visit.close()


def test_without_webgl_pictures_have_views_defects_and_a_comparison(visit: Visit) -> None:
    visit.context.add_init_script("HTMLCanvasElement.prototype.getContext = () => null")
    page = visit.open()
    pick(page, EXAMPLES / "bracket.stl")
    picture = page.get_by_role("img", name="Picture of bracket.stl")
    picture.wait_for()

    def next_picture(act: Any) -> str:
        before = picture.get_attribute("src")
        act()
        page.wait_for_function("before => document.querySelector('.still').src !== before", arg=before)
        assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") > 100
        return str(picture.get_attribute("src"))

    views = page.get_by_role("group", name="Views")
    next_picture(lambda: views.get_by_role("button", name="Front", exact=True).click())
    next_picture(lambda: page.get_by_role("checkbox", name="Highlight problems").uncheck())
    convert(page, "Repair and save as 3MF")
    next_picture(lambda: page.get_by_role("checkbox", name="Compare").check())
    visit.problems = [line for line in visit.problems if "WebGL" not in line]


@pytest.mark.parametrize(
    ("locale", "choose", "closed", "error"),
    [
        ("fr-FR", "Choisir des fichiers", "Fermé", "notes.xyz n’est pas un fichier 3D"),
        ("es-ES", "Elegir archivos", "Cerrado", "notes.xyz no es un archivo 3D"),
        ("de-DE", "Dateien wählen", "Geschlossen", "notes.xyz ist keine 3D-Datei"),
    ],
)
def test_a_language_has_its_texts_and_errors(
    browser: Any, address: str, tmp_path: Path, locale: str, choose: str, closed: str, error: str
) -> None:
    visit = Visit(browser, address, locale=locale)
    page = visit.open()
    assert page.evaluate("document.documentElement.lang") == locale[:2]
    pick(page, EXAMPLES / "bracket-clean.stl", button=choose)
    page.get_by_role("heading", name=closed, exact=True).wait_for()
    unknown = tmp_path / "notes.xyz"
    unknown.write_text("no model")
    with page.expect_file_chooser() as chooser:
        page.locator(".file-strip > .icon-button").click()
    chooser.value.set_files(unknown)
    page.get_by_role("alert").get_by_text(error).wait_for()
    visit.close()
