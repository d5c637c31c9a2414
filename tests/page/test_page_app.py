"""The page of `meshhub app` in a real browser: files that are open from the start, and results beside them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from meshhub import Registry
from page_visits import START_TIMEOUT_S, TIMEOUT_MS, Visit, convert, download, pick

pytest.importorskip("litestar", reason="needs the extra 'http'")
pytestmark = pytest.mark.once

EXAMPLES = Path(__file__).parents[2] / "examples"


class LocalApp:
    """App that runs in a folder, with the bracket open."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        self._environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
        shutil.copy(EXAMPLES / "bracket.stl", folder)
        self.process = self.start("bracket.stl", "--no-browser", "--end-after", "1", *arguments)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().decode().strip()
        assert self.address.startswith("http://127.0.0.1:"), self.process.communicate()

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "meshhub", "app", *arguments]
        return subprocess.Popen(
            command, cwd=self.folder, env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def app(tmp_path: Path) -> Iterator[LocalApp]:
    app = LocalApp(tmp_path)
    yield app
    app.end()


@pytest.fixture
def window(browser: Any, app: LocalApp) -> Iterator[Visit]:
    visit = Visit(browser, app.address, viewport={"width": 1280, "height": 720})
    yield visit
    visit.close()


def open_page(window: Visit) -> Any:
    """Open the page, and wait until the bracket is read."""
    window.page.goto(window.address)
    window.page.get_by_role("heading", name="Needs repair").wait_for()
    return window.page


def test_a_model_goes_from_the_command_line_to_a_repaired_file_beside_it(window: Visit, app: LocalApp) -> None:
    page = open_page(window)
    # the token is not left in the address, where screenshots and the history would have it
    assert "#" not in page.url
    convert(page, "Repair and save as 3MF")
    page.get_by_role("button", name="Save beside the original").click()
    page.get_by_text(f"Saved as {app.folder / 'bracket.3mf'}").first.wait_for()
    assert Registry().inspect(app.folder / "bracket.3mf").model.watertight
    page.get_by_role("button", name="Save beside the original").click()
    page.get_by_text(f"Saved as {app.folder / 'bracket-2.3mf'}").first.wait_for()


def test_the_page_has_no_plans_keys_and_locks(window: Visit) -> None:
    page = open_page(window)
    for text in ("plan", "API key", "Locked"):
        assert page.get_by_text(text, exact=False).locator("visible=true").filter(has_not_text="plane").count() == 0
    assert page.locator('.panel path[d^="M6 11h12v9H6z"]').count() == 0
    page.get_by_role("radio", name="STEP").check(force=True)
    assert page.get_by_role("button", name="Repair and save as STEP").is_enabled()


def test_a_second_command_opens_its_file_here(window: Visit, app: LocalApp) -> None:
    page = open_page(window)
    shutil.copy(EXAMPLES / "bracket-clean.stl", app.folder / "second.stl")
    second = app.start("second.stl")
    assert second.wait(START_TIMEOUT_S) == 0
    second.communicate()
    page.get_by_role("button", name="second.stl Closed").wait_for()
    # loaded again, the tab shows what is open, and not what was removed
    page.get_by_role("button", name="Remove bracket.stl").click()
    page.get_by_role("button", name="bracket.stl Needs repair").wait_for(state="detached")
    page.reload()
    page.get_by_role("button", name="second.stl Closed").wait_for()
    assert page.locator(".file-tab").count() == 1


def test_a_file_that_is_opened_again_is_read_again(window: Visit, app: LocalApp) -> None:
    page = open_page(window)
    shutil.copy(EXAMPLES / "bracket-clean.stl", app.folder / "bracket.stl")
    again = app.start("bracket.stl")
    again.communicate()
    page.get_by_role("heading", name="Closed").wait_for()
    assert page.locator(".file-tab").count() == 1


def open_tab(window: Visit, address: str) -> Any:
    """Open a further tab of the browser, and wait until it shows the bracket."""
    page = window.context.new_page()
    page.set_default_timeout(TIMEOUT_MS)
    page.goto(address)
    page.get_by_role("button", name="Remove bracket.stl").wait_for()
    return page


def test_eight_tabs_get_what_is_opened_and_the_app_ends_with_the_last(window: Visit, app: LocalApp) -> None:
    # a stream for each tab would take all connections that a browser has for the app
    pages = [open_page(window), *(open_tab(window, window.address) for _ in range(7))]
    # the other tabs go on without that which holds the stream
    for name in ("second.stl", "third.stl"):
        shutil.copy(EXAMPLES / "bracket-clean.stl", app.folder / name)
        second = app.start(name)
        assert second.communicate(timeout=START_TIMEOUT_S)[1:] == (b"opened in the window of the running app\n",)
        for page in pages:
            page.get_by_role("button", name=f"{name} Closed").wait_for()
        pages.pop(0).close()
    assert app.process.poll() is None
    for page in pages:
        page.close()
    assert app.process.wait(START_TIMEOUT_S) == 0


def test_a_file_that_one_tab_removes_stays_in_the_others(window: Visit, app: LocalApp) -> None:
    page = open_page(window)
    other = open_tab(window, window.address)
    page.get_by_role("button", name="Remove bracket.stl").click()
    page.locator(".formats").wait_for()
    other.reload()
    other.get_by_role("heading", name="Needs repair").wait_for()
    convert(other, "Repair and save as 3MF")
    other.get_by_role("button", name="Save beside the original").click()
    other.get_by_text(f"Saved as {app.folder / 'bracket.3mf'}").first.wait_for()
    # a tab that has not shown it before does not show it
    other.reload()
    other.get_by_role("button", name="Remove bracket.stl").wait_for()
    page.reload()
    page.locator(".formats").wait_for()
    assert page.locator(".file-tab").count() == 0


def test_a_watched_folder_shows_new_models_and_no_results(browser: Any, tmp_path: Path) -> None:
    downloads = tmp_path / "downloads"
    downloads.mkdir()
    app = LocalApp(tmp_path, "--watch", "downloads")
    window = Visit(browser, app.address, viewport={"width": 1280, "height": 720})
    try:
        page = open_page(window)
        convert(page, "Repair and save as 3MF")
        path = download(page, "Download bracket.3mf", downloads)
        path.rename(path.with_name("bracket (1).3mf"))
        shutil.copy(EXAMPLES / "bracket-clean.stl", downloads / "new.stl")
        # it is seen at the same time as the result, and after it by name
        page.get_by_role("button", name="new.stl Closed").wait_for()
        assert page.locator(".file-tab").count() == 2
        window.close()
    finally:
        app.end()


def test_dropped_files_are_downloaded(window: Visit, tmp_path: Path) -> None:
    page = open_page(window)
    shutil.copy(EXAMPLES / "bracket.stl", tmp_path / "dropped.stl")
    pick(page, tmp_path / "dropped.stl", button="Add files")
    page.get_by_role("button", name="Convert 2 files to 3MF").click()
    page.get_by_role("button", name="Download dropped.3mf").wait_for()
    path = download(page, "Save beside the originals", tmp_path)
    assert path.name == "dropped.3mf"
    page.get_by_text("1 result was downloaded: dropped.3mf.").wait_for()
    page.get_by_role("button", name="bracket.stl").first.click()
    page.get_by_text(f"Saved as {tmp_path / 'bracket.3mf'}").first.wait_for()


def test_a_tab_keeps_its_settings_and_shows_the_next_start(window: Visit, app: LocalApp, tmp_path: Path) -> None:
    page = open_page(window)
    page.evaluate("localStorage.setItem('kept', 'yes')")
    app.process.terminate()
    page.get_by_text("The app has ended").wait_for()
    again = LocalApp(tmp_path)
    try:
        # the addresses differ only behind the #, so that the browser does not load the page again by itself
        page.goto(again.address)
        page.get_by_role("heading", name="Needs repair").wait_for()
        assert page.evaluate("localStorage.getItem('kept')") == "yes"
        assert page.get_by_text("The app has ended").count() == 0
    finally:
        again.end()


def test_a_page_of_another_origin_gets_nothing(window: Visit, app: LocalApp, browser: Any) -> None:
    open_page(window)
    origin = app.address.partition("#")[0]
    context = browser.new_context()
    try:
        page = context.new_page()
        page.goto("data:text/html,elsewhere")
        ask = "async (url) => { try { return (await fetch(url)).status } catch { return 'blocked' } }"
        assert page.evaluate(ask, f"{origin}plan") == "blocked"
        # a person who opens the address without the token is told what to do
        page.goto(origin)
        page.get_by_text("lacks its token").wait_for()
    finally:
        context.close()


def test_the_app_ends_with_its_tab_and_the_page_says_so(window: Visit, app: LocalApp) -> None:
    page = open_page(window)
    page.goto("about:blank")
    assert app.process.wait(START_TIMEOUT_S) == 0


def test_the_page_reports_that_the_app_has_ended(window: Visit, app: LocalApp) -> None:
    page = open_page(window)
    app.process.terminate()
    page.get_by_text("The app has ended").wait_for()
