"""A real service and a real browser for the tests of the page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from page_visits import Visit, serving

BROWSER_ARGUMENTS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"]
"""WebGL in software, so that pictures are equal on machines with and without a graphics card."""


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve with the default plans, except for the rate limit."""
    pytest.importorskip("litestar", reason="needs the extra 'http'")
    with serving(tmp_path_factory.mktemp("page")) as url:
        yield url


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Start Chromium without a window."""
    api = pytest.importorskip("playwright.sync_api", reason="needs the dependency group 'page'")
    executable = os.environ.get("MESHHUB_TEST_CHROMIUM") or shutil.which("chromium")
    if executable is None:
        pytest.skip("needs Chromium: install it, or set MESHHUB_TEST_CHROMIUM")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=BROWSER_ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser: Any, address: str) -> Iterator[Visit]:
    """Visit the page in a desktop window."""
    visit = Visit(browser, address)
    yield visit
    visit.close()


@pytest.fixture
def phone(browser: Any, address: str) -> Iterator[Visit]:
    """Visit the page with a small phone, in the dark."""
    visit = Visit(browser, address, viewport={"width": 360, "height": 740}, color_scheme="dark", has_touch=True)
    yield visit
    visit.close()
