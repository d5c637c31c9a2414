"""Beds on which a conversion arranged the objects, in the page."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from meshhub import Registry
from page_visits import Visit, convert, download, draw, pick

pytestmark = pytest.mark.once

BRACKET = Path(__file__).parents[2] / "examples" / "bracket-clean.stl"
SETTINGS = "#target=3mf&copies=4&arrange_bed=120x120"
"""Three brackets on one bed, and one on another."""


def arrange(visit: Visit, settings: str) -> tuple[Any, Any]:
    """Convert the bracket; return the page and its list of beds."""
    page = visit.open(settings)
    pick(page, BRACKET)
    convert(page, "Convert to 3MF")
    page.get_by_role("group", name="Compare").get_by_role("button", name="After", exact=True).click()
    return page, page.get_by_role("region", name="Beds")


def test_beds_of_one_file_are_outlined_and_can_be_looked_at(visit: Visit) -> None:
    page, beds = arrange(visit, SETTINGS)
    assert re.sub(r"\s+", " ", beds.inner_text()) == "Beds Bed 1 3 objects Bed 2 1 object"
    pictures = [draw(page)]
    for name in ("Bed 1", "Bed 2"):
        beds.get_by_role("button", name=name, exact=True).click()
        pictures.append(draw(page))
    for number, picture in enumerate(pictures):
        assert all((np.abs(picture - other).max(axis=2) > 40).sum() > 2000 for other in pictures[:number])


def test_a_bed_has_its_outline_around_the_objects(visit: Visit) -> None:
    page, _ = arrange(visit, "#target=3mf&arrange_bed=120x120")
    pixels = draw(page)
    # the model stands in the middle of the bed, whose corners are at the left and at the right of it
    is_line = np.abs(pixels - np.median(pixels, axis=(0, 1))).max(axis=2) > 40
    middle = is_line[200:-100]
    columns = np.flatnonzero(middle.any(axis=0))
    model = np.flatnonzero(middle.sum(axis=0) > 60)
    assert columns[0] < model[0] - 60 and columns[-1] > model[-1] + 60


def test_a_file_for_each_bed_is_shown_and_saved(visit: Visit, tmp_path: Path) -> None:
    page, beds = arrange(visit, f"{SETTINGS}&each_bed=true")
    first = draw(page)
    beds.get_by_role("button", name="Bed 2", exact=True).click()
    beds.locator("[aria-pressed=true]", has_text="Bed 2").wait_for()
    assert (np.abs(draw(page) - first).max(axis=2) > 40).sum() > 2000
    saved = download(page, "Download bracket-clean-bed2.3mf", tmp_path)
    assert len(Registry().read(saved).parts) == 1
    with zipfile.ZipFile(download(page, "Download bracket-clean.zip", tmp_path)) as archive:
        assert archive.namelist() == ["bracket-clean-bed1.3mf", "bracket-clean-bed2.3mf"]


def test_the_beds_of_a_format_with_companions_are_shown(visit: Visit, tmp_path: Path) -> None:
    page = visit.open(f"{SETTINGS.replace('3mf', 'obj')}&each_bed=true&reduce_colors=2")
    pick(page, BRACKET)
    convert(page, "Convert to OBJ")
    page.get_by_role("group", name="Compare").wait_for()
    page.get_by_role("region", name="Beds").get_by_role("button", name="Bed 2", exact=True).click()
    page.locator(".beds [aria-pressed=true]", has_text="Bed 2").wait_for()
