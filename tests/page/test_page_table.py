"""Many files as a table: settings, verdicts, prices, conversions, and how their results are saved."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from meshhub import Registry
from meshhub.model.scene import Mesh, Part, Scene
from page_visits import Visit, download, operation, serving

pytestmark = pytest.mark.once

EXAMPLES = Path(__file__).parents[2] / "examples"
FILE_COUNT = 50
BATCH_MS = 180_000
"""Milliseconds for fifty files on a loaded machine."""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve with a rate card, and a plan with batches as a shop has them."""
    pytest.importorskip("litestar", reason="needs the extra 'http'")
    folder = tmp_path_factory.mktemp("shop")
    rates = str(EXAMPLES / "rates.toml")
    with serving(folder, MESHHUB_RATES_FILE=rates, MESHHUB_PLAN_FREE_MAX_BATCH_FILES="100") as url:
        yield url


@pytest.fixture
def shop_visit(browser: Any, shop: str) -> Iterator[Visit]:
    visit = Visit(browser, shop)
    yield visit
    visit.close()


def write_boxes(folder: Path, count: int) -> list[Path]:
    """Write boxes of different heights; every fifth one lacks a side."""
    corners = np.array([[x, y, z] for x in (0, 20) for y in (0, 15) for z in (0, 1)], dtype=np.float64)
    quads = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    faces = np.array([[quad[k] for k in triple] for quad in quads for triple in ((0, 1, 2), (0, 2, 3))], dtype=np.int32)
    paths = []
    for index in range(count):
        part = faces[2:] if index % 5 == 4 else faces
        mesh = Mesh(vertices=corners * (1, 1, 5 + index), faces=part)
        paths.append(folder / f"box-{index:02}.stl")
        Registry().write(Scene(meshes=(mesh,), parts=(Part(0, np.eye(4)),)), paths[-1])
    return paths


def pick_files(page: Any, paths: list[Path], button: str = "Choose files") -> Any:
    """Choose files, and return the table when all are read."""
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name=button).click()
    chooser.value.set_files(paths)
    table = page.get_by_role("region", name="Files")
    table.get_by_role("row").nth(len(paths)).wait_for()
    wait_for_states(page, "Read", len(paths))
    return table


def wait_for_states(page: Any, state: str, count: int) -> None:
    """Wait until a number of rows has a state."""
    script = """([state, count]) => [...document.querySelectorAll(".file-table td")]
        .filter(cell => cell.textContent === state).length === count"""
    page.wait_for_function(script, arg=[state, count], timeout=BATCH_MS)


def test_fifty_files_are_checked_converted_and_saved(shop_visit: Visit, tmp_path: Path) -> None:
    page = shop_visit.open()
    table = pick_files(page, write_boxes(tmp_path, FILE_COUNT))
    table.locator("tbody img").nth(FILE_COUNT - 1).wait_for(timeout=BATCH_MS)
    assert table.locator("tbody .poor").count() == FILE_COUNT // 5
    table.get_by_text("20 × 15 × 54 mm").wait_for()
    table.get_by_role("button", name="Check 50 files").click()
    table.get_by_role("button", name="Check 50 files").wait_for(timeout=BATCH_MS)
    # the repair is on by default, because some of them need it
    assert table.get_by_text("Ready").count() == FILE_COUNT
    assert table.get_by_text("EUR").count() == FILE_COUNT
    page.get_by_role("button", name="Convert 50 files to 3MF").click()
    wait_for_states(page, "Converted", FILE_COUNT)
    with zipfile.ZipFile(download(page, "Download all (50)", tmp_path)) as archive:
        assert archive.testzip() is None
        assert sorted(archive.namelist()) == [f"box-{index:02}.3mf" for index in range(FILE_COUNT)]
        archive.extract("box-04.3mf", tmp_path)
    # the missing side was closed
    assert Registry().inspect(tmp_path / "box-04.3mf").model.watertight
    # a row leads to its model, with its verdict and its result
    table.get_by_role("button", name="box-04.stl", exact=True).click()
    page.get_by_role("region", name="Result").wait_for()
    page.get_by_role("heading", name="Ready", exact=True).wait_for()
    page.get_by_role("group", name="Compare").wait_for()


def test_marked_files_have_their_own_settings(visit: Visit, tmp_path: Path) -> None:
    page = visit.open()
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose files").click()
    chooser.value.set_files(write_boxes(tmp_path, 3))
    page.get_by_role("button", name="Table").click()
    wait_for_states(page, "Read", 3)
    page.get_by_text("For all files.").wait_for()
    page.get_by_role("checkbox", name="Mark box-01.stl").check()
    page.get_by_text("For the marked file", exact=True).wait_for()
    page.get_by_role("radio", name="GLB", exact=True).check(force=True)
    operation(page, "Place on bed").check()
    page.get_by_role("checkbox", name="Mark box-01.stl").uncheck()
    assert page.get_by_role("radio", name="3MF", exact=True).is_checked()
    assert page.get_by_text("own settings").count() == 1
    page.get_by_role("button", name="Convert 3 files").click()
    wait_for_states(page, "Converted", 3)
    with zipfile.ZipFile(download(page, "Download all (3)", tmp_path)) as archive:
        assert sorted(archive.namelist()) == ["box-00.3mf", "box-01.glb", "box-02.3mf"]
    # undo reaches the settings of the marked file, and its result then has older ones
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("button", name="Undo").click()
    assert page.get_by_text("own settings").count() == 0
    page.get_by_text("with older settings").wait_for()
    page.get_by_role("button", name="Convert 1 file").wait_for()
    # a file that is looked at shows its own settings
    page.get_by_role("button", name="Redo").click()
    page.get_by_role("button", name="Picture", exact=True).click()
    page.get_by_role("navigation", name="Files").get_by_role("button", name="box-01.stl").first.click()
    page.get_by_text("This file has its own settings.").wait_for()
    assert page.get_by_role("radio", name="GLB", exact=True).is_checked()
    page.get_by_role("button", name="Use those of all files").click()
    assert page.get_by_role("radio", name="3MF", exact=True).is_checked()


def test_presets_are_kept_and_exchanged_as_files(visit: Visit, tmp_path: Path) -> None:
    page = visit.open()
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose files").click()
    chooser.value.set_files(write_boxes(tmp_path, 2))
    page.get_by_text("Presets", exact=True).click()
    operation(page, "Place on bed").check()
    page.get_by_role("radio", name="OBJ", exact=True).check(force=True)
    page.get_by_label("Name of the preset").fill("Catalog")
    page.get_by_role("button", name="Keep these settings").click()
    path = download(page, "Save all as a file", tmp_path)
    assert json.loads(path.read_text()) == {
        "presets": [{"name": "Catalog", "target": "obj", "options": {"place_on_bed": True}}]
    }
    page.get_by_role("radio", name="STL", exact=True).check(force=True)
    operation(page, "Place on bed").uncheck()
    page.get_by_role("button", name="Catalog", exact=True).click()
    assert page.get_by_role("radio", name="OBJ", exact=True).is_checked()
    assert operation(page, "Place on bed").is_checked()
    page.get_by_role("button", name="Undo").click()
    assert page.get_by_role("radio", name="STL", exact=True).is_checked()
    # they survive a reload, and another browser reads them from the file
    page.reload()
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose files").click()
    chooser.value.set_files(tmp_path / "box-00.stl")
    page.get_by_text("Presets", exact=True).click()
    page.get_by_role("button", name="Remove Catalog").click()
    for name, content in (("notes.json", "{}"), (path.name, path.read_text())):
        (tmp_path / name).write_text(content)
        with page.expect_file_chooser() as chooser:
            page.get_by_role("button", name="Read a file of presets").click()
        chooser.value.set_files(tmp_path / name)
        if name == "notes.json":
            page.get_by_role("alert").get_by_text("notes.json holds no presets.").wait_for()
    page.get_by_role("button", name="Catalog", exact=True).wait_for()
    assert page.get_by_role("alert").count() == 0


def test_at_the_limit_the_table_waits_and_goes_on(visit: Visit, tmp_path: Path) -> None:
    """Every fourth request is rejected, as by a plan with few of them."""
    page = visit.open()
    body = json.dumps({"error": "more than 30 requests", "error_code": "rate_limit_exceeded"})
    sent: list[str] = []

    def reject_some(route: Any) -> None:
        sent.append(route.request.url)
        if len(sent) % 4 == 3:
            route.fulfill(status=429, headers={"Retry-After": "3"}, body=body)
        else:
            route.continue_()

    for path in ("preview", "jobs", "check"):
        page.route(f"**/{path}", reject_some)
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose files").click()
    chooser.value.set_files(write_boxes(tmp_path, 3))
    page.get_by_role("button", name="Table").click()
    page.get_by_role("status", name="Waiting").get_by_text("It continues in").wait_for()
    wait_for_states(page, "Read", 3)
    page.get_by_role("button", name="Check 3 files").click()
    page.get_by_role("button", name="Check 3 files").wait_for()
    page.get_by_role("button", name="Convert 3 files to 3MF").click()
    wait_for_states(page, "Converted", 3)
    assert len(sent) > 9
    assert page.get_by_role("alert").count() == 0


def test_results_are_written_into_a_folder(visit: Visit, tmp_path: Path) -> None:
    """The folder is that of the browser's own storage; what it holds stays."""
    visit.context.add_init_script("window.showDirectoryPicker = () => navigator.storage.getDirectory()")
    page = visit.open()
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose files").click()
    chooser.value.set_files(write_boxes(tmp_path, 2))
    page.get_by_role("button", name="Table").click()
    wait_for_states(page, "Read", 2)
    page.get_by_role("button", name="Convert 2 files to 3MF").click()
    wait_for_states(page, "Converted", 2)
    names = """async () => {
        const folder = await navigator.storage.getDirectory();
        const names = [];
        for await (const [name, handle] of folder.entries()) names.push([name, (await handle.getFile()).size > 500]);
        return names.sort();
    }"""
    for files in (["box-00.3mf", "box-01.3mf"], ["box-00-2.3mf", "box-00.3mf", "box-01-2.3mf", "box-01.3mf"]):
        page.get_by_role("button", name="Save into a folder").click()
        # while a file is written, the folder also has its temporary one
        expected = json.dumps([[name, True] for name in files], separators=(",", ":"))
        page.wait_for_function(f"() => ({names})().then(names => JSON.stringify(names) === '{expected}')")
    page.evaluate("() => { window.showDirectoryPicker = () => Promise.reject(new Error('the disk is full')) }")
    page.get_by_role("button", name="Save into a folder").click()
    page.get_by_role("alert").get_by_text("the disk is full").wait_for()


def test_a_failed_file_does_not_stop_the_others(visit: Visit, tmp_path: Path) -> None:
    broken = tmp_path / "broken.stl"
    broken.write_bytes(b"solid nothing\nfacet normal 0 0")
    page = visit.open()
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose files").click()
    chooser.value.set_files([broken, *write_boxes(tmp_path, 2)])
    page.get_by_role("button", name="Table").click()
    row = page.get_by_role("row", name="broken.stl")
    row.get_by_text("cannot be read").wait_for()
    row.get_by_role("button", name="Try again: broken.stl").wait_for()
    wait_for_states(page, "Read", 2)
    page.get_by_role("button", name="Convert 2 files to 3MF").click()
    wait_for_states(page, "Converted", 2)
    page.get_by_role("checkbox", name="Mark broken.stl").check()
    page.get_by_role("button", name="Remove the marked file").click()
    assert page.get_by_role("row").count() == 3


@pytest.mark.parametrize("color_scheme", ["light", "dark"])
def test_a_phone_shows_the_table(browser: Any, address: str, tmp_path: Path, color_scheme: str) -> None:
    size = {"width": 360, "height": 740}
    visit = Visit(browser, address, viewport=size, has_touch=True, color_scheme=color_scheme)
    page = visit.open()
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose files").click()
    chooser.value.set_files(write_boxes(tmp_path, 3))
    page.get_by_role("button", name="Table").click()
    wait_for_states(page, "Read", 3)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    page.get_by_role("button", name="Convert 3 files to 3MF").click()
    wait_for_states(page, "Converted", 3)
    axe = EXAMPLES.parent / "web/node_modules/axe-core/axe.min.js"
    if axe.is_file():
        page.evaluate(axe.read_text())
        violations = page.evaluate(
            "axe.run().then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes[0].html]))"
        )
        assert violations == []
    visit.close()


def test_on_a_phone_the_rows_show_all_columns(shop_visit: Visit, tmp_path: Path) -> None:
    page = shop_visit.page
    page.set_viewport_size({"width": 390, "height": 844})
    shop_visit.open()
    table = pick_files(page, write_boxes(tmp_path, 5))
    page.get_by_role("button", name="Check 5 files").click()
    row = table.get_by_role("row").filter(has_text="box-04.stl")
    row.get_by_text("EUR").wait_for()
    assert page.locator(".table-scroll").evaluate("({ scrollWidth, clientWidth }) => scrollWidth - clientWidth") <= 0
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    # the widest column is in the window
    box = row.locator("td[data-label=State]").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
