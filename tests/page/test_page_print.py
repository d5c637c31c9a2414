"""The inspection sheets that the page prints."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from page_visits import Visit, chromium_only, convert, pick, serving

pytestmark = pytest.mark.once

EXAMPLES = Path(__file__).parents[2] / "examples"


def print_pages(page: Any) -> list[Any]:
    """Print the page as Chromium does, and return the pages of the PDF."""
    pypdf = pytest.importorskip("pypdf", reason="needs the dependency group 'page'")
    return list(pypdf.PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True))).pages)


def read_text(sheet: Any) -> str:
    """Return the text of a page, without line breaks."""
    return " ".join(sheet.extract_text().split())


def is_drawn(picture: Any) -> bool:
    """Return whether a picture shows more than its background."""
    pixels = np.asarray(picture.image.convert("RGB")).astype(int)
    return bool((np.abs(pixels - pixels[0, 0]).max(axis=2) > 20).mean() > 0.05)


@chromium_only(reason="the style for paper cannot be set in Firefox")
def test_one_file_is_one_page(browser: Any, tmp_path: Path) -> None:
    pytest.importorskip("litestar", reason="needs the extra 'http'")
    with serving(tmp_path, MESHHUB_RATES_FILE=str(EXAMPLES / "rates.toml")) as url:
        visit = Visit(browser, url)
        page = visit.open()
        pick(page, EXAMPLES / "bracket.stl")
        page.get_by_role("switch", name="Repair", exact=True).uncheck()
        page.get_by_role("button", name="Will it print?").click()
        page.get_by_text("Price of 1 piece", exact=True).wait_for()
        pages = print_pages(page)
        text = read_text(pages[0])
        for part in (
            "bracket.stl",
            "Inspection sheet",
            "Will not print",
            "62.4 × 40 × 50 mm",
            "Watertight no",
            "open edges: gaps in the surface",
            "Error: ",
            "Price of 1 piece",
            "EUR",
            "Print time",
        ):
            assert part in text, (part, text)
        # no controls
        for part in ("Repair and save", "API key", "Show place", "More options"):
            assert part not in text
        assert [is_drawn(picture) for picture in pages[0].images] == [True, True]
        assert len(pages) == 1
        # the page goes on as before
        convert(page, "Convert to 3MF")
        page.get_by_role("group", name="Compare").wait_for()
        pages = print_pages(page)
        assert "Result bracket.3mf" in read_text(pages[0])
        assert len(pages) == 1
        visit.close()


@chromium_only(reason="the style for paper cannot be set in Firefox")
def test_marked_files_are_a_page_each(browser: Any, address: str) -> None:
    visit = Visit(browser, address, locale="de-DE", color_scheme="dark")
    page = visit.open()
    pick(page, EXAMPLES / "bracket.stl", EXAMPLES / "bracket-clean.stl", button="Dateien wählen")
    page.get_by_role("button", name="Tabelle").click()
    page.locator(".file-table tbody img").nth(1).wait_for()
    texts = [read_text(sheet) for sheet in print_pages(page)]
    assert [("bracket.stl" in text, "bracket-clean.stl" in text) for text in texts] == [(True, False), (False, True)]
    assert all("Prüfblatt" in text for text in texts)
    page.get_by_role("checkbox", name="bracket-clean.stl markieren").check()
    pages = print_pages(page)
    assert ["bracket-clean.stl" in read_text(sheet) for sheet in pages] == [True]
    assert is_drawn(pages[0].images[0])
    visit.close()
