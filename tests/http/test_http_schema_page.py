"""Interactive documentation at /schema, and its vendored files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from http_serving import Running
from meshhub.http.description import page_assets

FOLDER = Path(page_assets.__file__).parent / "swagger_ui"


def test_the_scripts_are_those_of_this_version() -> None:
    assert f'"{page_assets.VERSION}"' in (FOLDER / "swagger-ui-bundle.js").read_text(encoding="utf-8")
    assert page_assets.VERSION.encode() in page_assets.PAGE
    assert page_assets.VERSION in (FOLDER / "README.md").read_text(encoding="utf-8").splitlines()[0]
    assert "Apache License" in (FOLDER / "LICENSE").read_text(encoding="utf-8")
    assert "SmartBear" in (FOLDER / "NOTICE").read_text(encoding="utf-8")


def test_scripts_and_styles_are_not_counted(serve: Callable[..., Running]) -> None:
    service = serve(plan_limits={"free": {"requests_per_minute": 2}}, page="off")
    for path, file in page_assets.load_assets().items():
        answer = service.get(path)
        assert answer.status_code == 200
        assert hashlib.sha256(answer.content).digest() == hashlib.sha256(file.contents[""]).digest()
        assert answer.headers["content-encoding"] == "br"
        assert ("immutable" in answer.headers["cache-control"]) == (page_assets.VERSION in path)
    assert service.get("/plan").json()["usage"]["requests_remaining"] == 1


@pytest.mark.parametrize(
    ("base_url", "expected"),
    [(None, "connect-src 'self';"), ("https://api.example:8443/mesh", "connect-src 'self' https://api.example:8443;")],
)
def test_the_page_may_call_the_service_alone(
    serve: Callable[..., Running], base_url: str | None, expected: str
) -> None:
    policy = serve(base_url=base_url).get("/schema", headers={"Accept": "text/html"}).headers["content-security-policy"]
    assert expected in policy
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
