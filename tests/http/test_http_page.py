"""The page: its files, headers and settings, and services below a path."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import brotli
import httpx
import pytest

from http_serving import Running, check_error
from meshhub.errors import InvalidSettings
from meshhub.http.responses import page_files
from meshhub.service.settings import Settings
from waiting import wait_until

INDEX = b'<!doctype html><title>Page</title><script type="module" src="./assets/index-Ab12.js"></script>'
SCRIPT = b"console.log('meshhub');" * 100


BROTLI = brotli.compress(SCRIPT, quality=11)


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Build a tiny page."""
    folder = tmp_path / "page"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_bytes(INDEX)
    (folder / "icon.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    (folder / "assets" / "index-Ab12.js").write_bytes(SCRIPT)
    (folder / "assets" / "index-Ab12.js.br").write_bytes(BROTLI)
    (folder / "assets" / "index-Ab12.js.gz").write_bytes(gzip.compress(SCRIPT, mtime=0))
    (folder / "assets" / "style-Cd34.css").write_bytes(b"body{margin:0}" * 200)
    (folder / "assets" / "core-Ef56.wasm").write_bytes(b"\0asm")
    monkeypatch.setattr(page_files, "FOLDER", folder)
    return folder


def test_the_page_is_served_with_its_security_headers(built: Path, serve: Callable[..., Running]) -> None:
    service = serve()
    answer = service.get("/")
    assert (answer.status_code, answer.content) == (200, INDEX)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self' 'wasm-unsafe-eval'"
    assert policy["frame-ancestors"] == "'none'"
    assert "unsafe-inline" not in str(policy)
    assert "http" not in str(policy)
    assert answer.headers["x-content-type-options"] == "nosniff"
    head = service.client.head("/")
    assert (head.status_code, head.content) == (200, b"")
    again = service.get("/", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    (built / "index.html").write_bytes(b"changed")
    assert serve().get("/", headers={"If-None-Match": answer.headers["etag"]}).content == b"changed"


def test_hashed_files_are_cached_forever_and_compressed(built: Path, serve: Callable[..., Running]) -> None:
    service = serve()

    def fetch(path: str, encoding: str) -> tuple[str | None, bytes]:
        with service.client.stream("GET", path, headers={"Accept-Encoding": encoding}) as answer:
            assert answer.status_code == 200
            assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
            assert "Accept-Encoding" in answer.headers["vary"]
            return answer.headers.get("content-encoding"), b"".join(answer.iter_raw())

    script = "/assets/index-Ab12.js"
    assert fetch(script, "gzip, br") == ("br", BROTLI)
    assert fetch(script, "gzip, br;q=0") == ("gzip", gzip.compress(SCRIPT, mtime=0))
    assert fetch(script, "identity") == (None, SCRIPT)
    # without copies, the service compresses
    for encoding, decompress in (("br", brotli.decompress), ("gzip", gzip.decompress)):
        used, content = fetch("/assets/style-Cd34.css", encoding)
        assert (used, decompress(content)) == (encoding, b"body{margin:0}" * 200)
    assert (
        service.get(script, headers={"Accept-Encoding": ""}).headers["content-type"] == "text/javascript; charset=utf-8"
    )
    assert service.get("/assets/core-Ef56.wasm").headers["content-type"] == "application/wasm"
    check_error(service.get("/assets/index-Ab12.js.br"), 404, "not_found")
    check_error(service.get("/assets/../settings.py"), 404, "not_found")
    check_error(service.get("/assets/nothing.js"), 404, "not_found")


def test_files_of_the_page_need_no_key_and_do_not_count(built: Path, serve: Callable[..., Running]) -> None:
    service = serve(plan_limits={"free": {"requests_per_minute": 2}})
    for _ in range(5):
        answer = service.get("/", headers={"X-Api-Key": "wrong"})
        assert (answer.status_code, "ratelimit-limit" in answer.headers) == (200, False)
    assert service.get("/plan").json()["usage"]["requests_remaining"] == 1


def test_the_page_can_be_switched_off(built: Path, serve: Callable[..., Running]) -> None:
    service = serve(page="off")
    check_error(service.get("/"), 404, "not_found")
    check_error(service.get("/assets/index-Ab12.js"), 404, "not_found")


def test_other_pages_may_embed_the_page_if_the_operator_allows_it(built: Path, serve: Callable[..., Running]) -> None:
    service = serve(frame_ancestors=("https://shop.example", "https://b.example:8443"))
    policy = service.get("/").headers["content-security-policy"]
    assert policy.endswith("frame-ancestors https://shop.example https://b.example:8443")


def test_the_page_loads_models_from_the_origins_of_the_operator(built: Path, serve: Callable[..., Running]) -> None:
    for origins, sources in (
        ((), "'self' blob:"),
        (("https://models.example", "https://b.example"), "'self' blob: https://models.example https://b.example"),
    ):
        policy = serve(model_origins=origins).get("/").headers["content-security-policy"]
        assert f"connect-src {sources};" in policy


def test_a_service_below_a_path(built: Path, serve: Callable[..., Running]) -> None:
    service = serve(root_path="/tools/mesh")
    answer = service.get("/tools/mesh")
    assert (answer.status_code, answer.headers["location"]) == (308, "/tools/mesh/")
    # whether or not the proxy removes the prefix
    for prefix in ("/tools/mesh", ""):
        assert service.get(f"{prefix}/").content == INDEX
        assert service.get(f"{prefix}/assets/index-Ab12.js").content == SCRIPT or prefix is None
        assert service.get(f"{prefix}/plan").json()["plan"] == "free"
        assert service.post(f"{prefix}/convert", {"file": ("a.toy", b"toy")}, {"target": "toy"}).status_code == 200
    answer = service.post("/tools/mesh/jobs", {"file": ("a.toy", b"toy")}, {"kind": "convert", "target": "toy"})
    url = f"/tools/mesh/jobs/{answer.json()['id']}"
    assert answer.headers["location"] == url
    wait_until(lambda: service.get(url).json()["state"] == "done")
    assert service.get(url).json()["result"]["url"] == f"{url}/result"
    check_error(service.get("/tools/meshes/plan"), 404, "not_found")
    for prefix in ("/tools/mesh", ""):
        error = check_error(service.get(f"{prefix}/nothing"), 404, "not_found")["error"]
        assert error == "there is no endpoint '/tools/mesh/nothing'; /tools/mesh/schema lists the endpoints"
    assert service.get("/schema/openapi.json").json()["servers"][0]["url"] == "/tools/mesh"
    assert 'endpoint="/plan"' in service.get("/tools/mesh/metrics").text


def test_the_document_names_the_public_address(serve: Callable[..., Running]) -> None:
    service = serve(base_url="https://api.example/mesh")
    assert service.get("/schema/openapi.json").json()["servers"][0]["url"] == "https://api.example/mesh"


@pytest.mark.parametrize(
    "setting",
    [
        {"root_path": "tools"},
        {"root_path": "/tools/"},
        {"base_url": "api.example"},
        {"frame_ancestors": ("shop.example",)},
        {"frame_ancestors": ("*",)},
        {"frame_ancestors": ("https://a.example; script-src *",)},
        {"cors_origins": ("https://a.example/path",)},
        {"model_origins": ("*",)},
        {"model_origins": ("https://a.example/models",)},
        {"cors_origins": ("*", "https://a.example")},
        {"allowed_hosts": ("https://a.example",)},
    ],
)
def test_wrong_addresses_are_rejected(setting: dict[str, object]) -> None:
    with pytest.raises(InvalidSettings, match=next(iter(setting))):
        Settings(**setting)  # type: ignore[arg-type]


def test_text_responses_are_compressed_and_files_are_not(service: Running) -> None:
    def fetch(path: str, encoding: str) -> httpx.Response:
        return service.get(path, headers={"Accept-Encoding": encoding})

    for path in ("/supported", "/schema/openapi.json"):
        plain = fetch(path, "identity")
        assert "content-encoding" not in plain.headers
        for encoding in ("gzip", "br"):
            packed = fetch(path, encoding)
            assert packed.headers["content-encoding"] == encoding
            assert int(packed.headers["content-length"]) < len(plain.content) / 3
            assert packed.content == plain.content
            assert packed.headers["vary"].count("Accept-Encoding") == 1
            head = service.client.head(path, headers={"Accept-Encoding": encoding})
            assert head.headers["content-encoding"] == encoding
            assert head.headers["content-length"] == packed.headers["content-length"]
    etag = fetch("/supported", "gzip").headers["etag"]
    assert service.get("/supported", headers={"If-None-Match": etag}).status_code == 304
    assert "content-encoding" not in fetch("/plan", "gzip").headers
    converted = service.convert(headers={"Accept-Encoding": "gzip"}, toy_weight="5000")
    assert "content-encoding" not in converted.headers
    gltf = service.convert(target="gltf", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in gltf.headers


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("", ""),
        ("gzip, br", "br"),
        ("gzip, deflate", "gzip"),
        ("br;q=0.5, gzip;q=0.9", "gzip"),
        ("br;q=0, gzip", "gzip"),
        ("br;q=0.000, *", "gzip"),
        ("*", "br"),
        ("*;q=0", ""),
        ("gzip;q=0.1, identity;q=1", ""),
        ("GZIP ; Q=1.0, identity;q=0.5", "gzip"),
        ("zstd", ""),
        ("x-gzip", ""),
    ],
)
def test_the_encoding_is_that_which_the_client_prefers(service: Running, accepted: str, encoding: str) -> None:
    for path in ("/schema/openapi.json", "/schema/start.js"):
        answer = service.get(path, headers={"Accept-Encoding": accepted})
        assert answer.status_code == 200
        assert answer.headers.get("content-encoding", "") == encoding
        assert "Accept-Encoding" in answer.headers["vary"]


def test_parts_of_results_are_not_compressed(service: Running) -> None:
    answer = service.post("/jobs", {"file": ("a.toy", b"toy")}, {"kind": "inspect"})
    url = f"/jobs/{answer.json()['id']}"
    wait_until(lambda: service.get(url).json()["state"] == "done")
    part = service.get(f"{url}/result", headers={"Range": "bytes=0-9", "Accept-Encoding": "br, gzip"})
    assert (part.status_code, len(part.content)) == (206, 10)
    assert "content-encoding" not in part.headers
