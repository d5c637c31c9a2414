"""A real service and a real browser for the tests of the page."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from page_visits import FIREFOX_DOWNLOADS, IS_FIREFOX, Visit, serving

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
    """Start Chromium without a window, or Firefox on the screen if MESHHUB_TEST_BROWSER is `firefox`."""
    api = pytest.importorskip("playwright.sync_api", reason="needs the dependency group 'page'")
    start = start_firefox if IS_FIREFOX else start_chromium
    with api.sync_playwright() as playwright, start(playwright) as browser:
        yield browser


@contextlib.contextmanager
def start_chromium(playwright: Any) -> Iterator[Any]:
    executable = os.environ.get("MESHHUB_TEST_CHROMIUM") or shutil.which("chromium")
    if executable is None:
        pytest.skip("needs Chromium: install it, or set MESHHUB_TEST_CHROMIUM")
    browser = playwright.chromium.launch(executable_path=executable, args=BROWSER_ARGUMENTS)
    yield browser
    browser.close()


@contextlib.contextmanager
def start_firefox(playwright: Any) -> Iterator[Any]:
    executable = os.environ.get("MESHHUB_TEST_FIREFOX") or shutil.which("firefox-esr") or shutil.which("firefox")
    if executable is None:
        pytest.skip("needs Firefox: install it, or set MESHHUB_TEST_FIREFOX")
    FIREFOX_DOWNLOADS.mkdir()
    # without a window, Firefox has no WebGL
    browser = playwright.firefox.launch(
        channel="moz-firefox", executable_path=executable, headless=False, downloads_path=FIREFOX_DOWNLOADS
    )
    yield browser
    browser.close()
    shutil.rmtree(FIREFOX_DOWNLOADS)


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
