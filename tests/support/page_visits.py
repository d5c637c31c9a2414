"""A running service, and visits of its page."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

START_TIMEOUT_S = 300
"""Seconds for the service to start on a loaded machine."""

TIMEOUT_MS = 60_000
"""Milliseconds that a step in the browser may take on a loaded machine."""

REST_TIMEOUT_S = 240
"""Seconds for a view to come to rest on a loaded machine without a graphics card."""

STILL_MS = 300
"""Milliseconds between pictures of a view; longer than the view rests before it draws all pixels."""

STILL_PICTURE_COUNT = 2
"""Pictures in a row that equal the one before, after which a view is at rest."""

IS_FIREFOX = os.environ.get("MESHHUB_TEST_BROWSER") == "firefox"
"""Whether the tests run in Firefox instead of Chromium."""

chromium_only = functools.partial(pytest.mark.skipif, IS_FIREFOX)
"""Mark of a test that needs what Playwright cannot do in Firefox, with the reason."""

FIREFOX_DOWNLOADS = Path(tempfile.gettempdir()) / f"meshhub-firefox-{os.getpid()}"
"""Folder in which Firefox saves downloads."""

SETTINGS = """
[plans.free]
requests_per_minute = 100000
"""


@contextlib.contextmanager
def serving(folder: Path, port: int = 0, **environment: str) -> Iterator[str]:
    """Run `meshhub serve` and yield its address; 0: at a free port."""
    folder.joinpath("settings.toml").write_text(SETTINGS)
    log = folder / "log"
    variables = {
        **os.environ,
        "MESHHUB_SETTINGS": str(folder / "settings.toml"),
        "MESHHUB_DATABASE_URL": f"sqlite:///{folder / 'keys.sqlite3'}",
        **environment,
    }
    with log.open("wb") as output:
        command = [sys.executable, "-m", "meshhub", "serve", "--port", str(port)]
        process = subprocess.Popen(command, stderr=output, stdout=output, env=variables)
    try:
        yield _wait_for_address(process, log)
    finally:
        process.terminate()
        process.wait(START_TIMEOUT_S)


def _wait_for_address(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        if match := re.search(r"serves (http://\S+?),", log.read_text()):
            return match[1] + "/"
        time.sleep(0.05)
    pytest.fail(f"the service did not start: {log.read_text()}")


class Visit:
    """Visit of the page that records what a user would not see."""

    def __init__(self, browser: Any, address: str, **context: Any) -> None:
        self.address = address
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.context = browser.new_context(**{"locale": "en-US", "viewport": {"width": 1280, "height": 800}, **context})
        self.page = self.context.new_page()
        self.page.set_default_timeout(TIMEOUT_MS)
        self.page.on("console", self._record_console)
        self.page.on("pageerror", self._record_error)
        self.page.on("request", lambda request: self.requests.append(f"{request.method} {request.url}"))

    def _record_error(self, error: Any) -> None:
        # for a picture, Playwright inserts a style into the page, which its policy forbids in Firefox
        if not (IS_FIREFOX and "blocked an inline style (style-src-elem)" in str(error)):
            self.problems.append(f"page error: {error}")

    def _record_console(self, message: Any) -> None:
        # Chromium reports each response of 4xx and 5xx; the tests of errors cause them on purpose.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.problems.append(f"console: {message.text}")

    def open(self, query: str = "") -> Any:
        """Open the page, and return it when it is ready for files."""
        self.page.goto(self.address + query)
        self.page.locator(".formats").wait_for()
        return self.page

    def close(self) -> None:
        """Close the page, and check that it had no errors and requested nothing from other hosts."""
        self.context.close()
        host = urlsplit(self.address).netloc
        others = [line for line in self.requests if urlsplit(line.split()[1]).netloc not in ("", host)]
        assert (self.problems, others) == ([], []), (self.problems, others)


def pick(page: Any, *files: Path, button: str = "Choose files") -> None:
    """Choose files with the file dialog, and wait until they are read."""
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name=button).click()
    chooser.value.set_files(list(files))
    page.locator(".dot.busy").first.wait_for(state="detached")


def operation(page: Any, name: str) -> Any:
    """Return the switch of an operation, also if only *All operations* shows it."""
    page.locator("details:has-text('All operations')").evaluate_all("list => list.forEach((each) => each.open = true)")
    return page.get_by_role("switch", name=name, exact=True)


def convert(page: Any, button: str, result: str = "Result") -> None:
    """Convert the models, and wait for the first result."""
    page.get_by_role("button", name=button).click()
    page.get_by_role("region", name=result).wait_for()


def download(page: Any, button: str | Callable[[], object], folder: Path) -> Path:
    """Click a button, or call what starts a download; save it in a folder, and return its path."""
    start = page.get_by_role("button", name=button).click if isinstance(button, str) else button
    if IS_FIREFOX:
        return _move_download(start, folder)
    with page.expect_download() as started:
        start()
    path = folder / str(started.value.suggested_filename)
    started.value.save_as(path)
    return path


def _move_download(start: Callable[[], object], folder: Path) -> Path:
    """Move the file that Firefox saves, which its protocol does not report."""
    known = set(FIREFOX_DOWNLOADS.iterdir())
    start()
    deadline = time.monotonic() + TIMEOUT_MS / 1000
    while time.monotonic() < deadline:
        names = {path.name for path in set(FIREFOX_DOWNLOADS.iterdir()) - known}
        # beside a file that is not complete, its rest grows in one with another extension
        if names and not any(name.endswith(".part") for name in names):
            (name,) = names
            return Path(shutil.move(FIREFOX_DOWNLOADS / name, folder / name))
        time.sleep(0.05)
    pytest.fail("Firefox saved no file")


def replace_number(field: Any, number: str) -> None:
    """Replace the number in a field; in Firefox, `fill` adds to one that is not empty."""
    field.fill("")
    field.fill(number)


def draw(page: Any) -> np.ndarray:
    """Return the pixels of the 3D view, after its motion."""
    from PIL import Image

    deadline = time.monotonic() + REST_TIMEOUT_S
    last, equal_count = np.zeros(()), 0
    while equal_count < STILL_PICTURE_COUNT and time.monotonic() < deadline:
        page.wait_for_timeout(STILL_MS)
        content = page.locator("canvas").screenshot()
        pixels = np.asarray(Image.open(io.BytesIO(content)).convert("RGB")).astype(int)
        # the compositor rounds single pixels differently
        is_equal = pixels.shape == last.shape and (np.abs(pixels - last) > 2).sum() < pixels.size / 10_000
        last, equal_count = pixels, equal_count + 1 if is_equal else 0
    assert equal_count == STILL_PICTURE_COUNT, "the view does not come to rest"
    return last
