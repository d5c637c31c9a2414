"""Estimate and price beside the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from page_visits import Visit, pick, replace_number, serving

pytestmark = pytest.mark.once

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve with a rate card."""
    pytest.importorskip("litestar", reason="needs the extra 'http'")
    with serving(tmp_path_factory.mktemp("shop"), MESHHUB_RATES_FILE=str(EXAMPLES / "rates.toml")) as url:
        yield url


def count_quotes(visit: Visit) -> int:
    return len([line for line in visit.requests if line.endswith("/quote")])


def read_amount(row: Any) -> float:
    """Return the amount of a row such as "12.34 EUR"."""
    return float(row.text_content().removesuffix(" EUR").replace(",", ""))


def test_a_price_follows_quantity_and_material(browser: Any, shop: str) -> None:
    visit = Visit(browser, shop)
    page = visit.open()
    pick(page, EXAMPLES / "bracket-clean.stl")
    assert count_quotes(visit) == 0
    page.get_by_role("button", name="Will it print?").click()
    region = page.get_by_role("region", name="Print check")
    region.get_by_text("Price of 1 piece", exact=True).wait_for()
    region.get_by_text("g PLA").wait_for()
    region.get_by_text("≈").wait_for()
    region.get_by_text("How the price adds up").click()
    amounts = [read_amount(row) for row in region.locator(".price dd").all()]
    assert len(amounts) == 7
    assert sum(amounts) == pytest.approx(read_amount(region.locator(".price strong")), abs=0.001)
    replace_number(region.get_by_label("Quantity"), "100")
    region.get_by_text("Price of 100 pieces", exact=True).wait_for()
    region.get_by_text("Per piece").wait_for()
    assert count_quotes(visit) == 2
    # a value that the service would reject is not sent
    replace_number(region.get_by_label("Quantity"), "0")
    region.get_by_label("Material").last.select_option("resin")
    replace_number(region.get_by_label("Quantity"), "2")
    region.get_by_text("Price of 2 pieces", exact=True).wait_for()
    region.get_by_text("g RESIN").wait_for()
    assert count_quotes(visit) == 3
    visit.close()


def test_a_price_is_german_and_fits_a_phone(browser: Any, shop: str) -> None:
    visit = Visit(browser, shop, locale="de-DE", viewport={"width": 360, "height": 740}, has_touch=True)
    page = visit.open()
    pick(page, EXAMPLES / "bracket-clean.stl", button="Dateien wählen")
    page.get_by_role("button", name="Druckbar?").click()
    page.get_by_text("Preis für 1 Stück", exact=True).wait_for()
    assert "," in page.locator(".price strong").text_content()
    page.get_by_text("So setzt sich der Preis zusammen").click()
    page.get_by_text("Mengenrabatt").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    visit.close()


def test_a_failed_quote_is_asked_again(browser: Any, shop: str) -> None:
    visit = Visit(browser, shop)
    page = visit.open()
    pick(page, EXAMPLES / "bracket-clean.stl")
    page.route("**/quote", lambda route: route.abort())
    page.get_by_role("button", name="Will it print?").click()
    alert = page.get_by_role("alert")
    alert.get_by_text("The server does not answer").wait_for()
    page.unroute("**/quote")
    alert.get_by_role("button", name="Try again").click()
    page.get_by_text("Price of 1 piece", exact=True).wait_for()
    visit.close()


def test_without_a_rate_card_there_is_an_estimate(visit: Visit) -> None:
    page = visit.open()
    pick(page, EXAMPLES / "bracket-clean.stl")
    page.get_by_role("button", name="Will it print?").click()
    region = page.get_by_role("region", name="Print check")
    region.get_by_text("Print time").wait_for()
    region.get_by_text("g PLA").wait_for()
    assert region.locator(".price").count() == count_quotes(visit) == 0
