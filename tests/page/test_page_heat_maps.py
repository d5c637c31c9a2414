"""Heat maps in the 3D view: walls and overhangs in the colors of a scale, with a legend."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from meshhub import Registry
from models import brick, scene_of
from page_visits import Visit, chromium_only, convert, draw, operation, pick

pytestmark = pytest.mark.once

EXAMPLES = Path(__file__).parents[2] / "examples"


def write_plate(path: Path, thickness_mm: float) -> Path:
    Registry().write(scene_of(brick(40, 40, thickness_mm)), path)
    return path


def show(page: Any, label: str, group: str = "Show") -> None:
    """Choose what the surface is colored by, and wait for the scale."""
    page.get_by_role("group", name=group, exact=True).get_by_role("button", name=label).click()
    page.locator(".coloring .scale").wait_for()
    page.locator(".coloring .spinner").wait_for(state="detached")


def middle(page: Any) -> tuple[int, int, int]:
    """Return the color in the middle of the view."""
    pixels = draw(page)
    row, column = pixels.shape[0] // 2, pixels.shape[1] // 2
    red, green, blue = np.median(pixels[row - 4 : row + 4, column - 4 : column + 4], axis=(0, 1))
    return int(red), int(green), int(blue)


def count_previews(visit: Visit) -> int:
    return len([line for line in visit.requests if line.endswith("/preview")])


def test_walls_are_colored_on_demand_and_kept(visit: Visit, tmp_path: Path) -> None:
    page = visit.open()
    pick(page, write_plate(tmp_path / "thick.stl", 8))
    assert count_previews(visit) == 1
    red, green, blue = middle(page)
    assert blue > red
    show(page, "Wall thickness")
    page.get_by_role("img", name="0 mm – 3.2 mm or more, limit 0.8 mm").wait_for()
    page.get_by_role("status").filter(has_text="Wall thickness is shown as colors.").wait_for(state="attached")
    # yellow: as thick as the scale goes
    red, green, blue = middle(page)
    assert min(red, green) > 3 * blue
    show(page, "Overhangs")
    page.get_by_role("heading", name="Overhang, angle from the bed").wait_for()
    page.get_by_text("no overhang", exact=True).wait_for()
    assert count_previews(visit) == 3
    # what has been asked for is kept
    choice = page.get_by_role("group", name="Show", exact=True)
    choice.get_by_role("button", name="Model").press("Enter")
    page.locator(".coloring .scale").wait_for(state="detached")
    red, green, blue = middle(page)
    assert blue > red
    show(page, "Wall thickness")
    red, green, blue = middle(page)
    assert min(red, green) > 3 * blue
    assert count_previews(visit) == 3


def test_a_finding_is_shown_with_its_limit(visit: Visit, tmp_path: Path) -> None:
    page = visit.open()
    path = tmp_path / "upright.stl"
    Registry().write(scene_of(brick(0.5, 40, 40)), path)
    pick(page, path)
    page.get_by_role("button", name="Will it print?").click()
    page.get_by_label("Nozzle").fill("0.6")
    button = page.get_by_role("button", name="Show in 3D: Wall thickness")
    button.click()
    page.get_by_role("img", name="0 mm – 2.7 mm or more, limit 0.68 mm").wait_for()
    assert button.get_attribute("aria-pressed") == "true"
    # violet
    _, green, blue = middle(page)
    assert blue > 1.3 * green
    page.get_by_role("button", name="Show place: Thin walls").click()
    page.locator(".label").get_by_text("0.5 mm").wait_for()
    button.click()
    page.locator(".coloring .scale").wait_for(state="detached")


def test_colors_are_those_of_the_model_that_is_shown(visit: Visit, tmp_path: Path) -> None:
    page = visit.open("#scale_percent=1000")
    pick(page, write_plate(tmp_path / "thin.stl", 0.5))
    show(page, "Wall thickness")
    page.get_by_text("Colors of the file as it was read, without: Scale").wait_for()
    _, green, blue = middle(page)
    assert blue > 1.3 * green
    convert(page, "Convert to 3MF")
    compare = page.get_by_role("group", name="Compare")
    compare.get_by_role("button", name="After", exact=True).click()
    page.locator(".coloring .spinner").wait_for(state="detached")
    red, green, blue = middle(page)
    assert min(red, green) > 2 * blue
    assert page.get_by_text("Colors of the file as it was read").count() == 0
    operation(page, "Thicken walls").check()
    page.get_by_text("Colors of the result with its earlier settings").wait_for()


def test_a_failed_heat_map_is_asked_for_again(visit: Visit) -> None:
    page = visit.open()
    pick(page, EXAMPLES / "bracket-clean.stl")
    body = json.dumps({"error": "stopped after 90 s", "error_code": "conversion_timeout"})
    page.route("**/preview", lambda route: route.fulfill(status=504, body=body))
    page.get_by_role("button", name="Overhangs").click()
    alert = page.locator(".coloring").get_by_role("alert")
    alert.get_by_text("The conversion took too long.").wait_for()
    page.unroute("**/preview")
    alert.get_by_role("button", name="Try again").click()
    page.locator(".coloring .scale").wait_for()
    assert alert.count() == 0


@chromium_only(reason="Firefox does not tell which requests are canceled")
def test_a_request_that_is_not_needed_any_more_is_canceled(visit: Visit) -> None:
    page = visit.open()
    pick(page, EXAMPLES / "bracket-clean.stl")
    pending: list[Any] = []
    page.route("**/preview", lambda route: route.continue_() if pending else pending.append(route))
    page.get_by_role("button", name="Overhangs").click()
    page.get_by_text("Measuring …").wait_for()
    with page.expect_event("requestfailed", lambda request: request.url.endswith("/preview")):
        page.get_by_role("button", name="Model", exact=True).click()
    show(page, "Overhangs")


def test_the_choice_is_german_and_fits_a_phone(browser: Any, address: str, tmp_path: Path) -> None:
    visit = Visit(browser, address, locale="de-DE", viewport={"width": 360, "height": 740}, has_touch=True)
    page = visit.open()
    pick(page, write_plate(tmp_path / "thin.stl", 0.5), button="Dateien wählen")
    show(page, "Wandstärke", "Anzeigen")
    page.get_by_role("img", name="0 mm – ab 3,2 mm, Grenzwert 0,8 mm").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    for button in page.locator(".coloring").get_by_role("button").all():
        bounds = button.bounding_box()
        assert bounds["x"] >= 0 and bounds["x"] + bounds["width"] <= 360
    visit.close()
