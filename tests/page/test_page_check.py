"""The verdict on the page: will it print, where are the problems, and what helps."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from meshhub import Registry
from meshhub.model.scene import Mesh, Part, Scene
from page_visits import Visit, chromium_only, convert, draw, operation, pick

pytestmark = pytest.mark.once

EXAMPLES = Path(__file__).parents[2] / "examples"


def write_fins(path: Path, *thicknesses_mm: float, height_mm: float = 0.0) -> Path:
    """Write a plate at a height, with a fin for each thickness, as one closed profile along Y."""
    profile = [(0.0, 0.0), (20.0 * len(thicknesses_mm), 0.0)]
    top = [(0.0, 6.0)]
    for index, thickness in enumerate(thicknesses_mm):
        left, right = (20 * index + 10 + side * thickness / 2 for side in (-1, 1))
        top += [(left, 6.0), (left, 20.0), (right, 20.0), (right, 6.0)]
    top.append((profile[1][0], 6.0))
    profile += top[::-1]
    count = len(profile)
    corners = np.array([(x, y, z + height_mm) for y in (0.0, 24.0) for x, z in profile])
    # the plate is a fan from its first corner, and each fin is a rectangle
    plate = [0, 1, 2, *(k for i in range(len(thicknesses_mm)) for k in (3 + 4 * i, 6 + 4 * i)), count - 1]
    caps = [(plate[0], plate[k], plate[k + 1]) for k in range(1, len(plate) - 1)]
    for index in range(len(thicknesses_mm)):
        a, b, c, d = (3 + 4 * index + k for k in range(4))
        caps += [(a, b, c), (a, c, d)]
    sides = [(i, (i + 1) % count) for i in range(count)]
    faces = [
        *caps,
        *((a + count, c + count, b + count) for a, b, c in caps),
        *((i, i + count, j + count) for i, j in sides),
        *((i, j + count, j) for i, j in sides),
    ]
    mesh = Mesh(vertices=corners, faces=np.array(faces, dtype=np.int32))
    Registry().write(Scene(meshes=(mesh,), parts=(Part(0, np.eye(4)),)), path)
    assert Registry().inspect(path).model.watertight
    return path


def ask(page: Any, button: str = "Will it print?") -> Any:
    """Ask for the verdict, and return the region with it."""
    page.get_by_role("button", name=button).click()
    region = page.get_by_role("region", name="Druckprüfung" if button == "Druckbar?" else "Print check")
    region.locator(".verdict").wait_for()
    return region


def count_checks(visit: Visit) -> int:
    return len([line for line in visit.requests if line.endswith("/check")])


def test_a_thin_wall_is_found_shown_and_thickened(visit: Visit, tmp_path: Path) -> None:
    page = visit.open()
    pick(page, write_fins(tmp_path / "fin.stl", 0.4))
    # only the geometry was inspected
    page.get_by_role("heading", name="Closed").wait_for()
    assert page.get_by_text("Ready").count() == count_checks(visit) == 0
    region = ask(page)
    region.get_by_role("heading", name="Check this").wait_for()
    (finding,) = region.get_by_role("listitem").all()
    for text in ("Thin walls", "Warning", "0.4 mm · limit 0.45 mm · 1 place"):
        finding.get_by_text(text).wait_for()
    before = draw(page)
    finding.get_by_role("button", name="Show place").click()
    finding.get_by_role("button", name="Place 1 of 1").wait_for()
    page.locator(".label").get_by_text("0.4 mm").wait_for()
    after = draw(page)
    assert (np.abs(after - before).max(axis=2) > 40).sum() > 2_000
    # the mark is in the middle of the view
    height, width, _ = after.shape
    red, green, blue = np.moveaxis(after[height // 2 - 5 : height // 2 + 5, width // 2 - 5 : width // 2 + 5], -1, 0)
    assert ((red > green + 30) & (green > blue + 60)).sum() > 20
    finding.get_by_role("button", name="Set Thicken walls: 0.45 mm").click()
    region.get_by_role("heading", name="Ready").wait_for()
    region.get_by_text("Checked after: Thicken walls").wait_for()
    assert region.get_by_role("listitem").count() == 0
    page.locator(".label").wait_for(state="detached")
    assert page.get_by_label("Least wall, mm").input_value() == "0.45"
    page.get_by_role("status").filter(has_text="fin.stl: Ready").wait_for(state="attached")
    assert count_checks(visit) == 2


def test_buttons_lead_from_place_to_place(visit: Visit, tmp_path: Path) -> None:
    page = visit.open()
    pick(page, write_fins(tmp_path / "fins.stl", 0.1, 0.4))
    region = ask(page)
    region.get_by_role("heading", name="Will not print").wait_for()
    region.get_by_role("button", name="Show place: Thin walls").click()
    first = draw(page)
    region.get_by_role("button", name="Next place: Thin walls").press("Enter")
    region.get_by_role("button", name="Place 2 of 2").wait_for()
    assert (np.abs(draw(page) - first).max(axis=2) > 40).sum() > 2_000
    region.get_by_role("button", name="Next place: Thin walls").click()
    region.get_by_role("button", name="Place 1 of 2").wait_for()
    region.get_by_role("button", name="Previous place: Thin walls").click()
    region.get_by_role("button", name="Place 2 of 2").wait_for()


def test_the_verdict_is_german(browser: Any, address: str, tmp_path: Path) -> None:
    visit = Visit(browser, address, locale="de-DE")
    page = visit.open()
    pick(page, write_fins(tmp_path / "fin.stl", 0.4), button="Dateien wählen")
    region = ask(page, "Druckbar?")
    region.get_by_role("heading", name="Bitte prüfen").wait_for()
    region.get_by_text("Wände sind dünner als 0,45 mm, die dünnste 0,4 mm.").wait_for()
    region.get_by_text("0,4 mm · Grenzwert 0,45 mm · 1 Stelle").wait_for()
    assert region.get_by_label("Düse").get_attribute("placeholder") == "0,4"
    region.get_by_role("button", name="Wände verdicken: 0,45 mm setzen").click()
    region.get_by_role("heading", name="Bereit").wait_for()
    # a comma is a decimal mark
    region.get_by_label("Düse").fill("0,6")
    region.get_by_text("Grenzwert 0,68 mm").wait_for()
    visit.close()


def test_options_of_checks_change_the_verdict(visit: Visit, tmp_path: Path) -> None:
    page = visit.open()
    pick(page, write_fins(tmp_path / "fins.stl", *[3.0] * 10))
    region = ask(page)
    region.get_by_role("heading", name="Ready").wait_for()
    region.get_by_label("Printer", exact=True).select_option("bambu-a1-mini")
    region.get_by_role("heading", name="Will not print").wait_for()
    region.get_by_text("Does not fit on the printer").wait_for()
    checks = count_checks(visit)
    # a value that the service would reject is not sent
    region.get_by_label("Nozzle").fill("9")
    region.get_by_text("Enter 0.1 to 2.").wait_for()
    region.get_by_label("Nozzle").fill("")
    region.get_by_label("Printer", exact=True).select_option("any")
    region.get_by_role("heading", name="Ready").wait_for()
    # the first answer is kept
    assert count_checks(visit) == checks


@chromium_only(reason="Firefox does not tell which requests are canceled")
def test_an_outdated_question_is_canceled(visit: Visit, tmp_path: Path) -> None:
    page = visit.open()
    pick(page, write_fins(tmp_path / "fin.stl", 0.4))
    pending: list[Any] = []
    page.route("**/check", lambda route: route.continue_() if pending else pending.append(route))
    page.get_by_role("button", name="Will it print?").click()
    with page.expect_event("requestfailed", lambda request: request.url.endswith("/check")):
        operation(page, "Thicken walls").check()
    page.get_by_role("heading", name="Ready").wait_for()


def test_places_of_a_model_that_moves_are_in_its_result(visit: Visit, tmp_path: Path) -> None:
    """The view shows the result where the model was."""
    page = visit.open("#rotate_z_deg=90&place_on_bed=true")
    pick(page, write_fins(tmp_path / "fin.stl", 0.4, height_mm=500))
    region = ask(page)
    region.get_by_text("The settings move the model.").wait_for()
    assert region.get_by_role("button", name="Show place").count() == 0
    convert(page, "Convert to 3MF")
    page.get_by_role("group", name="Compare").wait_for()
    region.get_by_role("button", name="Show place").click()
    page.locator(".label").get_by_text("0.4 mm").wait_for()
    page.get_by_role("group", name="Compare").get_by_role("button", name="After", exact=True, pressed=True).wait_for()
    pixels = draw(page)
    height, width, _ = pixels.shape
    # the fin surrounds the mark
    beside = pixels[height // 2 + 30, width // 2]
    assert np.abs(beside - pixels[5, 5]).max() > 40


def test_a_failed_check_is_asked_again(visit: Visit, tmp_path: Path) -> None:
    page = visit.open()
    pick(page, EXAMPLES / "bracket-clean.stl")
    body = json.dumps({"error": "stopped after 90 s", "error_code": "conversion_timeout"})
    page.route("**/check", lambda route: route.fulfill(status=504, body=body))
    page.get_by_role("button", name="Will it print?").click()
    alert = page.get_by_role("alert")
    alert.get_by_text("The conversion took too long.").wait_for()
    page.unroute("**/check")
    page.route("**/check", lambda route: route.abort())
    alert.get_by_role("button", name="Try again").click()
    alert.get_by_text("The server does not answer").wait_for()
    page.unroute("**/check")
    alert.get_by_role("button", name="Try again").click()
    page.get_by_role("heading", name="Ready").wait_for()
    assert alert.count() == 0


def test_companions_are_sent(visit: Visit, tmp_path: Path) -> None:
    """A glTF file without its buffer cannot be read."""
    path = tmp_path / "part.gltf"
    Registry().convert(EXAMPLES / "bracket-clean.stl", path)
    page = visit.open()
    pick(page, path, *tmp_path.glob("*.bin"))
    ask(page).get_by_role("heading", name="Ready").wait_for()


def test_a_server_without_checks_has_no_panel(visit: Visit) -> None:
    def remove_check(route: Any) -> None:
        response = route.fetch()
        document = response.json()
        del document["paths"]["/check"]
        route.fulfill(response=response, body=json.dumps(document))

    visit.page.route("**/schema", remove_check)
    with visit.page.expect_response(re.compile("/schema$")):
        page = visit.open()
    pick(page, EXAMPLES / "bracket-clean.stl")
    page.get_by_role("heading", name="Closed").wait_for()
    assert page.get_by_role("region", name="Print check").count() == 0


@chromium_only(reason="Firefox has no taps")
def test_a_phone_shows_the_verdict(phone: Visit, tmp_path: Path) -> None:
    page = phone.open()
    pick(page, write_fins(tmp_path / "fins.stl", 0.1, 0.4))
    region = ask(page)
    # below the view, which takes the upper half and stays in place
    assert 370 <= page.get_by_role("heading", name="Print check").bounding_box()["y"] < 600
    region.get_by_role("button", name="Show place").tap()
    region.get_by_role("button", name="Next place: Thin walls").tap()
    region.get_by_role("button", name="Place 2 of 2").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    for button in region.get_by_role("button").all():
        bounds = button.bounding_box()
        assert bounds["x"] >= 0 and bounds["x"] + bounds["width"] <= 360
