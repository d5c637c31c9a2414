"""Comparison of results with each other, and the colors of pieces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from page_visits import Visit, convert, draw, operation, pick, replace_number

pytest.importorskip("litestar", reason="needs the extra 'http'")
pytestmark = pytest.mark.once

EXAMPLES = Path(__file__).parents[2] / "examples"


def read_table(page: Any) -> dict[str, list[str]]:
    """Return the values before and after a conversion by their names."""
    rows = page.locator(".changes tbody tr").evaluate_all(
        "rows => rows.map((row) => [...row.children].map((cell) => cell.textContent))"
    )
    return {name: values for name, *values in rows}


def test_a_result_is_compared_with_an_earlier_one(visit: Visit) -> None:
    page = visit.open()
    pick(page, EXAMPLES / "bracket-clean.stl")
    page.get_by_role("heading", name="Closed").wait_for()
    convert(page, "Convert to 3MF")
    page.get_by_role("row", name="Watertight yes yes").wait_for()
    # nothing to compare with
    assert page.get_by_label("Compare with").count() == 0
    operation(page, "Scale").check(force=True)
    replace_number(page.get_by_role("textbox", name="Scale").first, "2")
    convert(page, "Convert to 3MF")
    choice = page.get_by_label("Compare with")
    choice.wait_for()
    before = read_table(page)
    choice.select_option(index=1)
    page.locator(".pane-label.before", has_text="bracket-clean.3mf").wait_for()
    earlier = read_table(page)
    assert earlier["Size, mm"] == before["Size, mm"]
    # the file of the earlier result is not that of the model
    assert earlier["File"][0] != before["File"][0]
    assert earlier["File"][1] == before["File"][1]
    choice.select_option(index=0)
    page.locator(".pane-label.before", has_text="Before").wait_for()
    assert read_table(page) == before


def test_the_pieces_of_a_divided_model_have_colors(visit: Visit) -> None:
    page = visit.open()
    pick(page, EXAMPLES / "bracket-clean.stl")
    page.get_by_role("heading", name="Closed").wait_for()
    operation(page, "Cut at planes").check(force=True)
    convert(page, "Convert to 3MF")
    page.get_by_role("group", name="Compare").get_by_role("button", name="After", exact=True).click()
    pixels = draw(page).reshape(-1, draw(page).shape[-1])[:, :3].astype(int)
    is_orange = (pixels[:, 0] > pixels[:, 2] + 60) & (pixels[:, 0] > pixels[:, 1] + 20)
    is_blue = pixels[:, 2] > pixels[:, 0] + 60
    assert np.count_nonzero(is_orange) > 1000
    assert np.count_nonzero(is_blue) > 1000


def test_a_repair_says_how_large_the_holes_were(visit: Visit) -> None:
    page = visit.open()
    page.get_by_role("button", name="A scan with holes").click()
    page.get_by_role("heading", name="Needs repair").wait_for()
    convert(page, "Repair and save as 3MF")
    page.get_by_text("6 holes closed (the largest 23.1 mm wide)").wait_for()
    page.get_by_role("list", name="Highlight changes").get_by_text("New").wait_for()
