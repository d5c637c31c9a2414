"""Drafts in the 3D view: fewer triangles and fewer colors, while their sliders move, and the size of the file."""

# why the page draws first, and then the service: docs/decisions/0051-drafts.md

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from meshhub import Registry
from meshhub.model.scene import Mesh
from models import brick, scene_of, sphere
from page_visits import Visit, convert, download, draw, operation, pick

pytestmark = pytest.mark.once


def write_ball(path: Path) -> Path:
    Registry().write(scene_of(sphere(20, 64)), path)
    return path


def write_colored(path: Path) -> Path:
    """Write a plate whose upper side is half red, half blue, each in two shades."""
    shades = np.array([[255, 0, 0], [225, 30, 30], [0, 0, 255], [30, 30, 225]], np.uint8)
    plates = []
    for number, shade in enumerate(shades):
        plate = brick(20, 40, 4, name=f"plate-{number}")
        vertices = plate.vertices + [20.0 * number, 0, 0]
        colors = np.repeat(np.append(shade, 255)[None, :].astype(np.uint8), len(vertices), axis=0)
        plates.append(Mesh(vertices, plate.faces, name=plate.name, colors=colors))
    Registry().write(scene_of(*plates), path)
    return path


def slide(slider: Any, *values: int) -> None:
    """Move a slider without a rest; a loaded machine would rest between calls."""
    slider.evaluate(
        """(slider, values) => {
            for (const value of values) {
                slider.value = value;
                slider.dispatchEvent(new Event("input", { bubbles: true }));
            }
        }""",
        list(map(str, values)),
    )


def reduce(page: Any, *percent: int) -> None:
    """Reduce the faces with the slider."""
    switch = page.get_by_role("switch", name="Reduce faces")
    if not switch.is_checked():
        switch.check()
    slide(page.get_by_role("slider", name="Share of the triangles to keep"), *percent)


def note(page: Any) -> Any:
    return page.get_by_role("group", name="Preview")


def wait_for_exact(page: Any) -> str:
    """Wait until the service has drawn the draft, and return what it says."""
    page.locator(".draft[aria-busy=false]").wait_for()
    return str(note(page).inner_text())


def count_previews(visit: Visit) -> int:
    return len([line for line in visit.requests if line.endswith("/preview")])


def differ(one: np.ndarray, other: np.ndarray) -> float:
    """Return the share of the pixels in the middle of the view that differ."""
    height, width, _ = one.shape
    middle = np.s_[100 : height - 110, width // 4 : -width // 4]
    return float((np.abs(one[middle] - other[middle]).max(axis=2) > 8).mean())


def test_the_picture_follows_at_once_and_then_exactly(visit: Visit, tmp_path: Path) -> None:
    page = visit.open("#target=stl")
    pick(page, write_ball(tmp_path / "ball.stl"))
    page.emulate_media(reduced_motion="reduce")
    full = draw(page)
    reduce(page, 50)
    wait_for_exact(page)
    held: list[Any] = []
    page.route("**/preview", lambda route: held.append(route))
    reduce(page, 1)
    note(page).get_by_text("≈").wait_for()
    page.locator(".draft .spinner").wait_for()
    # before the service has answered
    assert differ(draw(page), full) > 0.1
    assert len(held) == 1
    held.pop().continue_()
    text = wait_for_exact(page)
    assert differ(draw(page), full) > 0.1
    shown = re.search(r"([\d,]+) → ([\d,]+) triangles · ([\d.]+) kB", text)
    assert shown and "≈" not in text, text
    before, after, size = (float(group.replace(",", "")) for group in shown.groups())
    assert (before, after) == (len(sphere(20, 64).faces), pytest.approx(before / 100, abs=2))
    convert(page, "Convert to STL")
    note(page).wait_for(state="detached")
    path = download(page, "Download", tmp_path)
    assert path.stat().st_size == 84 + 50 * after == pytest.approx(1024 * size, abs=60)


def test_only_settings_that_rest_are_asked_for_and_answers_are_kept(visit: Visit, tmp_path: Path) -> None:
    page = visit.open("#target=stl")
    pick(page, write_ball(tmp_path / "ball.stl"))
    assert count_previews(visit) == 1
    reduce(page, 50)
    wait_for_exact(page)
    start = count_previews(visit)
    reduce(page, *range(50, 9, -2))
    assert re.search(r"→ 39\d triangles", wait_for_exact(page))
    assert count_previews(visit) == start + 1
    # another format looks the same
    page.get_by_role("radiogroup").get_by_text("OBJ", exact=True).click()
    note(page).get_by_text("≈").wait_for()
    page.get_by_role("radiogroup").get_by_text("STL", exact=True).click()
    note(page).get_by_text("≈").wait_for(state="detached")
    assert count_previews(visit) == start + 1
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("button", name="Redo").click()
    wait_for_exact(page)
    assert count_previews(visit) <= start + 2


def test_the_original_can_be_compared(visit: Visit, tmp_path: Path) -> None:
    page = visit.open("#target=stl")
    pick(page, write_ball(tmp_path / "ball.stl"))
    full = draw(page)
    reduce(page, 1)
    wait_for_exact(page)
    button = note(page).get_by_role("button", name="Show the original")
    button.press("Enter")
    assert button.get_attribute("aria-pressed") == "true"
    assert differ(draw(page), full) < 0.001
    button.press("Enter")
    assert differ(draw(page), full) > 0.1
    page.get_by_role("switch", name="Reduce faces").uncheck()
    note(page).wait_for(state="detached")
    assert differ(draw(page), full) < 0.001


def test_colors_follow_their_number(visit: Visit, tmp_path: Path) -> None:
    page = visit.open("#target=3mf")
    pick(page, write_colored(tmp_path / "plates.glb"))
    page.get_by_role("button", name="View").click()
    page.get_by_role("button", name="Top").click()
    page.keyboard.press("Escape")

    def count_shades() -> int:
        pixels = draw(page)
        height, width, _ = pixels.shape
        row = pixels[height // 2, width // 8 : -width // 8]
        is_colored = row.max(axis=1) - row.min(axis=1) > 60
        shades = row[is_colored] // 6
        return len([shade for shade in np.unique(shades, axis=0) if (shades == shade).all(axis=1).sum() > 40])

    assert count_shades() >= 4
    page.get_by_role("switch", name="Reduce colors").check()
    slide(page.get_by_role("slider", name="Number of colors"), 2)
    assert "Reduce colors" in wait_for_exact(page)
    assert count_shades() == 2


def test_fewer_filaments_than_colors_are_all_used(visit: Visit, tmp_path: Path) -> None:
    page = visit.open("#target=3mf")
    pick(page, write_colored(tmp_path / "plates.glb"))
    page.get_by_role("switch", name="Reduce colors").check()
    number = page.get_by_label("Number of colors").first
    assert number.input_value() == "4"
    for count in ("1", "2"):
        page.get_by_role("button", name="Add a color").click()
        assert number.input_value() == count
    assert "kB" in wait_for_exact(page)
    assert note(page).get_by_role("alert").count() == 0


def test_a_failed_draft_is_asked_for_again(visit: Visit, tmp_path: Path) -> None:
    page = visit.open("#target=stl")
    pick(page, write_ball(tmp_path / "ball.stl"))
    body = json.dumps({"error": "stopped after 90 s", "error_code": "conversion_timeout"})
    page.route("**/preview", lambda route: route.fulfill(status=504, body=body))
    reduce(page, 20)
    alert = note(page).get_by_role("alert")
    alert.get_by_text("The conversion took too long.").wait_for()
    page.unroute("**/preview")
    alert.get_by_role("button", name="Try again").click()
    assert "≈" not in wait_for_exact(page)
    assert alert.count() == 0


def test_other_operations_make_the_size_an_estimate(visit: Visit, tmp_path: Path) -> None:
    page = visit.open("#target=stl&scale_percent=200")
    pick(page, write_ball(tmp_path / "ball.stl"))
    reduce(page, 50)
    assert "≈" in wait_for_exact(page)


def test_a_draft_does_not_change_the_measures_of_the_model(visit: Visit, tmp_path: Path) -> None:
    page = visit.open("#target=stl")
    pick(page, write_ball(tmp_path / "ball.stl"))
    page.emulate_media(reduced_motion="reduce")
    full = draw(page)
    page.route("**/preview", lambda route: None)
    reduce(page, 1)
    assert differ(draw(page), full) > 0.1
    page.get_by_role("button", name="Dimensions").click()
    handle = page.get_by_role("slider", name="Height of the model")
    assert handle.get_attribute("aria-valuetext") == "40 mm"
    operation(page, "Rotate").check()
    page.get_by_label("Rotate about X, degrees", exact=True).and_(page.locator("input[type=text]")).fill("90")
    draw(page)
    assert handle.get_attribute("aria-valuetext") == "40 mm"


def test_the_notice_of_a_limit_ends_with_the_draft(visit: Visit, tmp_path: Path) -> None:
    page = visit.open("#target=stl")
    pick(page, write_ball(tmp_path / "ball.stl"))
    body = json.dumps({"error": "60 requests per minute", "error_code": "rate_limit_exceeded"})
    page.route("**/preview", lambda route: route.fulfill(status=429, headers={"Retry-After": "80"}, body=body))
    reduce(page, 20)
    notice = page.get_by_text("Those were many requests at once.")
    notice.wait_for()
    page.get_by_role("switch", name="Reduce faces").uncheck()
    notice.wait_for(state="detached")
