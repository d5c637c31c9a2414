"""Links that open the page with a model of another site."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from page_visits import Visit, serving

pytestmark = pytest.mark.once

EXAMPLES = Path(__file__).parents[2] / "examples"
MAX_FILE_BYTES = 100_000


class Models(http.server.SimpleHTTPRequestHandler):
    """Site with models: other sites may read all but those in `private/`."""

    def end_headers(self) -> None:
        """Allow other sites to read."""
        if not self.path.startswith("/private/"):
            self.send_header("Access-Control-Allow-Origin", "*")
        super().end_headers()

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
        """Keep the output of the tests short."""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("models")
    (folder / "private").mkdir()
    for name in ("a part.stl", "private/part.stl"):
        (folder / name).write_bytes((EXAMPLES / "bracket-clean.stl").read_bytes())
    (folder / "large.stl").write_bytes(bytes(MAX_FILE_BYTES + 1))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Models, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def visit_link(browser: Any, address: str, url: str, **context: Any) -> Any:
    """Open the page by a link, and return it. Requests to the other site are wanted."""
    visit = Visit(browser, address, **context)
    visit.page.goto(f"{address}?url={url}#target=obj")
    return visit.page


def test_a_link_opens_a_model(browser: Any, models: str, tmp_path: Path) -> None:
    pytest.importorskip("litestar", reason="needs the extra 'http'")
    limits = {"MESHHUB_PLAN_FREE_MAX_FILE_BYTES": str(MAX_FILE_BYTES)}
    with serving(tmp_path, MESHHUB_MODEL_ORIGINS=models, **limits) as url:
        page = visit_link(browser, url, f"{models}/a%20part.stl")
        page.get_by_role("heading", name="Closed").wait_for()
        page.get_by_role("button", name="a part.stl", exact=False).first.wait_for()
        assert page.get_by_role("radio", name="OBJ", exact=True).is_checked()
        host = models.removeprefix("http://")
        for path, message in (
            ("missing.stl", f"{host} does not have missing.stl (error 404)"),
            ("private/part.stl", f"{host} does not answer, or does not let other websites read its files"),
            ("large.stl", "large.stl is larger than the 98 kB per file"),
            ("", "The link does not name the address of a model."),
        ):
            page = visit_link(browser, url, f"{models}/{path}")
            page.get_by_role("alert").get_by_text(message).wait_for()
            page.get_by_role("button", name="Choose files").wait_for()


def test_other_sites_are_not_asked_by_default(browser: Any, address: str, models: str) -> None:
    asked: list[str] = []
    visit = Visit(browser, address, locale="de-DE")
    visit.page.on("response", lambda response: asked.append(response.url))
    visit.page.goto(f"{address}?url={models}/a%20part.stl")
    host = models.removeprefix("http://")
    visit.page.get_by_role("alert").get_by_text(f"Dieser Server öffnet keine Modelle von {host}.").wait_for()
    assert not [url for url in asked if url.startswith(models)]
    visit.context.close()
