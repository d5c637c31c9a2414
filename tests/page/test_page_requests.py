"""How much the page asks of the service, and what it does when the service does not answer."""

# why a result is drawn from its bytes, or not: docs/decisions/0050-what-the-page-leaves-out.md
from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

from page_visits import Visit, convert, download, draw, operation, pick, serving

pytestmark = pytest.mark.once

EXAMPLES = Path(__file__).parents[2] / "examples"
FIGURE = Path(__file__).parents[2] / "web/src/examples/penguin.glb"
MAX_REQUEST_COUNT = 8
"""Requests of a person who looks around with one file, of the 30 in a minute of the plan Free."""
COUNT_MODELS = """image => {
  const { naturalWidth: width, naturalHeight: height } = image;
  const context = document.createElement("canvas").getContext("2d");
  context.drawImage(image, 0, 0);
  const isOpaque = x => context.getImageData(x, 0, 1, height).data.some((value, at) => at % 4 === 3 && value === 255);
  return [...Array(width).keys()].filter(x => isOpaque(x) && !(x > 0 && isOpaque(x - 1))).length;
}"""
"""Return how many models stand side by side in an image without a background."""


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve with a rate limit that a person reaches."""
    pytest.importorskip("litestar", reason="needs the extra 'http'")
    folder = tmp_path_factory.mktemp("limited")
    with serving(folder, MESHHUB_PLAN_FREE_REQUESTS_PER_MINUTE="30") as url:
        yield url


def list_requests(visit: Visit) -> list[str]:
    """Return the requests to the service, without those for the files of the page."""
    paths = [(line.split()[0], urlsplit(line.split()[1])) for line in visit.requests]
    return [
        f"{method} {url.path}"
        for method, url in paths
        if url.scheme == "http" and url.path != "/" and not url.path.startswith("/assets/")
    ]


def test_looking_around_costs_few_requests(visit: Visit) -> None:
    """Five switches, five formats, and one conversion."""
    page = visit.open()
    pick(page, EXAMPLES / "bracket.stl")
    for name in ("Reduce faces", "Lay flat", "Scale to height", "Place on bed", "Flatten base"):
        operation(page, name).check()
        page.wait_for_timeout(500)
        operation(page, name).uncheck()
    for name in ("STL", "OBJ", "GLB", "PLY", "3MF"):
        page.get_by_role("radio", name=name, exact=True).check(force=True)
        page.wait_for_timeout(500)
    page.get_by_role("listitem").get_by_text("Repair", exact=True).wait_for()
    convert(page, "Repair and save as 3MF")
    page.get_by_role("group", name="Compare").wait_for()
    requests = list_requests(visit)
    assert len(requests) <= MAX_REQUEST_COUNT, requests


@pytest.mark.parametrize("name", ["bracket-clean.stl", "penguin.glb"])
def test_a_result_is_drawn_from_its_bytes(visit: Visit, name: str) -> None:
    """A GLB without operations costs no request for its picture, which equals that of the service."""
    source = EXAMPLES / name if name.endswith(".stl") else FIGURE
    page = visit.open()
    pick(page, source)
    page.get_by_role("radio", name="GLB", exact=True).check(force=True)
    convert(page, "Convert to GLB")
    page.get_by_role("row", name="Watertight yes yes").wait_for()
    after = page.get_by_role("group", name="Compare").get_by_role("button", name="After", exact=True)
    after.click()
    own = draw(page)
    requests = list_requests(visit)
    assert [line for line in requests if line.endswith("/preview")] == ["POST /preview"]
    assert len(requests) <= MAX_REQUEST_COUNT - 1, requests
    # the repair leaves a valid model as it is, but the page leaves its picture to the service
    page.get_by_role("switch", name="Repair", exact=True).check()
    with page.expect_response("**/preview"):
        page.get_by_role("button", name="Repair and save as GLB").click()
    page.get_by_text("with older settings").wait_for(state="detached")
    after.click()
    differs = np.abs(own - draw(page)).max(axis=2) > 30
    assert differs.mean() < 0.01


@pytest.mark.parametrize("target", ["STL", "PLY", "OBJ", "3MF"])
def test_a_closed_result_is_read_from_its_bytes(visit: Visit, tmp_path: Path, target: str) -> None:
    """The figures of a repaired model equal those of the service."""
    from meshhub import Registry

    page = visit.open()
    pick(page, EXAMPLES / "bracket.stl")
    page.get_by_role("radio", name=target, exact=True).check(force=True)
    convert(page, f"Repair and save as {target}")
    page.get_by_role("row", name="Watertight no yes").wait_for()
    assert [line for line in list_requests(visit) if line.endswith("/preview")] == ["POST /preview"]
    changes = dict(line.split("\t")[::2] for line in page.locator(".changes tbody").inner_text().splitlines())
    model = Registry().inspect(download(page, "Download", tmp_path)).model
    assert model.watertight and model.volume_mm3
    assert changes["Bodies"] == str(model.bodies) == "1"
    assert changes["Triangles"] == f"{model.faces:,}"
    assert changes["Volume"] == f"{model.volume_mm3 / 1000:.4g} cm³"


@pytest.mark.parametrize("target", ["STL", "PLY", "OBJ", "3MF"])
def test_a_result_from_its_bytes_looks_like_its_source(visit: Visit, target: str) -> None:
    page = visit.open()
    pick(page, EXAMPLES / "bracket-clean.stl")
    page.get_by_role("radio", name=target, exact=True).check(force=True)
    operation(page, "Place on bed").check()
    convert(page, f"Convert to {target}")
    compare = page.get_by_role("group", name="Compare")
    compare.get_by_role("button", name="Before", exact=True).click()
    before = draw(page)
    compare.get_by_role("button", name="After", exact=True).click()
    differs = np.abs(before - draw(page)).max(axis=2) > 30
    assert differs.mean() < 0.01
    assert [line for line in list_requests(visit) if line.endswith("/preview")] == ["POST /preview"]


def test_what_was_asked_once_is_kept(visit: Visit) -> None:
    page = visit.open()
    pick(page, EXAMPLES / "bracket-clean.stl")
    page.get_by_role("button", name="Will it print?").click()
    verdict = page.get_by_role("region", name="Print check").locator(".verdict:not(:has(.spinner))")
    verdict.wait_for()
    switch = operation(page, "Place on bed")
    for is_on in (True, False, True, False):
        switch.set_checked(is_on)
        page.wait_for_timeout(1000)
        verdict.wait_for()
    assert [line for line in list_requests(visit) if line.endswith("/check")] == ["POST /check"] * 2
    page.get_by_text("More options").click()
    unit = page.get_by_label("Unit of the file")
    for value, width in (("in", "1,524"), ("mm", "60"), ("in", "1,524")):
        unit.select_option(value)
        page.get_by_text(f"{width} ×").first.wait_for()
    assert [line for line in list_requests(visit) if line.endswith("/preview")] == ["POST /preview"] * 3


def test_at_the_limit_the_page_waits_and_goes_on(visit: Visit) -> None:
    page = visit.open()
    body = json.dumps({"error": "more than 30 requests", "error_code": "rate_limit_exceeded"})
    rejected: list[Any] = []

    def reject_once(route: Any) -> None:
        if rejected:
            route.continue_()
            return
        rejected.append(route)
        route.fulfill(status=429, headers={"Retry-After": "3"}, body=body)

    page.route("**/preview", reject_once)
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose files").click()
    chooser.value.set_files(EXAMPLES / "bracket-clean.stl")
    notice = page.get_by_role("status", name="Waiting")
    notice.get_by_text("It continues in").wait_for()
    page.get_by_role("heading", name="Closed").wait_for()
    notice.wait_for(state="detached")
    assert page.get_by_role("alert").count() == 0


def test_while_other_conversions_run_the_page_waits_and_goes_on(visit: Visit) -> None:
    page = visit.open()
    body = json.dumps({"error": "you have 5 unfinished jobs", "error_code": "too_many_jobs"})
    # long enough for a loaded machine to show the notice
    answer = {"status": 429, "headers": {"Retry-After": "5"}, "body": body}
    page.route("**/jobs", lambda route: route.fulfill(**answer), times=1)
    pick(page, EXAMPLES / "bracket-clean.stl")
    page.get_by_role("button", name="Convert to 3MF").click()
    page.get_by_text("Your other conversions are still running.").wait_for()
    page.get_by_role("region", name="Result").wait_for()
    assert page.get_by_role("alert").count() == 0


def test_a_page_that_is_opened_at_the_limit_heals(browser: Any, limited: str) -> None:
    first = Visit(browser, limited)
    first.open()
    # the remaining requests of this minute
    for _ in range(40):
        if first.page.evaluate("fetch('plan').then(({ status }) => status)") == 429:
            break
    first.close()
    visit = Visit(browser, limited)
    page = visit.page
    page.goto(limited)
    page.get_by_role("status", name="Waiting").wait_for()
    page.locator(".formats").wait_for(timeout=90_000)
    page.get_by_role("status", name="Waiting").wait_for(state="detached")
    visit.close()


def test_a_page_that_is_opened_during_a_restart_heals(visit: Visit) -> None:
    page = visit.page
    page.route("**/supported?*", lambda route: route.abort())
    page.goto(visit.address)
    page.get_by_role("alert").get_by_text("The server does not answer").wait_for()
    page.unroute("**/supported?*")
    page.locator(".formats").wait_for()
    assert page.get_by_role("alert").count() == 0


def test_a_job_survives_a_lost_connection(visit: Visit) -> None:
    page = visit.open()
    pick(page, EXAMPLES / "bracket.stl")
    page.route("**/jobs/*/events", lambda route: route.abort())
    page.get_by_role("button", name="Repair and save as 3MF").click()
    page.get_by_text("The server is still working").wait_for()
    page.unroute("**/jobs/*/events")
    page.get_by_role("region", name="Result").wait_for()
    assert page.get_by_role("alert").count() == 0


def test_results_survive_a_reload(visit: Visit, tmp_path: Path) -> None:
    page = visit.open()
    pick(page, EXAMPLES / "bracket.stl")
    convert(page, "Repair and save as 3MF")
    page.get_by_role("group", name="Compare").wait_for()
    page.get_by_role("button", name="1 result").click()
    thumbnail = page.get_by_role("dialog", name="Recent results").locator("img")
    thumbnail.wait_for()
    # the result alone
    assert thumbnail.evaluate(COUNT_MODELS) == 1
    page.reload()
    page.get_by_role("button", name="1 result").click()
    dialog = page.get_by_role("dialog", name="Recent results")
    dialog.get_by_text("bracket.3mf").wait_for()
    dialog.get_by_role("listitem").get_by_text("until").wait_for()
    result = download(page, dialog.get_by_role("button", name="Download bracket.3mf").click, tmp_path)
    assert result.read_bytes().startswith(b"PK")
    dialog.get_by_role("button", name="Open: bracket.3mf").click()
    page.get_by_role("heading", name="Closed").wait_for()


def test_a_running_job_survives_a_reload(visit: Visit) -> None:
    page = visit.open()
    pick(page, EXAMPLES / "bracket.stl")
    page.route("**/jobs/*/events", lambda route: route.abort())
    with page.expect_response("**/jobs"):
        page.get_by_role("button", name="Repair and save as 3MF").click()
    page.get_by_text("The server is still working").wait_for()
    page.reload()
    page.get_by_role("button", name="1 result").click()
    page.get_by_text("still running").wait_for()
    page.unroute("**/jobs/*/events")
    page.get_by_role("button", name="Download bracket.3mf").wait_for()


def test_leaving_during_an_upload_is_asked_about(visit: Visit) -> None:
    page = visit.open()
    questions: list[str] = []
    page.on("dialog", lambda dialog: (questions.append(dialog.type), dialog.accept()))
    page.route("**/preview", lambda route: None)
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose files").click()
    chooser.value.set_files(EXAMPLES / "bracket.stl")
    page.locator(".dot.busy").wait_for()
    page.reload()
    page.locator(".formats").wait_for()
    assert questions == ["beforeunload"]
    page.reload()
    assert questions == ["beforeunload"]


def test_a_result_with_older_settings_can_be_saved(visit: Visit, tmp_path: Path) -> None:
    page = visit.open()
    pick(page, EXAMPLES / "bracket.stl")
    convert(page, "Repair and save as 3MF")
    page.get_by_role("radio", name="STL", exact=True).check(force=True)
    page.get_by_role("region", name="Result").get_by_text("with older settings").wait_for()
    assert download(page, "with older settings", tmp_path).name == "bracket.3mf"
    page.get_by_role("radio", name="3MF", exact=True).check(force=True)
    page.get_by_role("button", name="Download bracket.3mf").wait_for()


def test_the_target_does_not_change_by_itself(visit: Visit, tmp_path: Path) -> None:
    from meshhub import Registry

    Registry().convert(EXAMPLES / "bracket-clean.stl", tmp_path / "plain.3mf")
    page = visit.open()
    pick(page, tmp_path / "plain.3mf")
    assert page.get_by_role("radio", name="3MF", exact=True).is_checked()
    shutil.copy(EXAMPLES / "bracket-clean.stl", tmp_path / "other.stl")
    pick(page, tmp_path / "other.stl", button="Add files")
    assert page.get_by_role("radio", name="3MF", exact=True).is_checked()


def test_a_result_is_compared_with_the_model_as_it_was_read(visit: Visit) -> None:
    page = visit.open("#target=stl")
    pick(page, EXAMPLES / "bracket-clean.stl")
    convert(page, "Convert to STL")
    volume = page.locator(".changes").get_by_role("row", name="Volume")
    volume.wait_for()
    page.get_by_text("More options").click()
    page.get_by_label("Unit of the file").select_option("in")
    # 25.4 times as large as the source of the result
    volume.wait_for(state="detached")
    page.locator(".changes").get_by_role("row", name="Triangles").wait_for()
    page.get_by_label("Unit of the file").select_option("mm")
    volume.wait_for()
