"""Endpoints of `meshhub app`: only its own page can use them, and the service does not have them."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote_from_bytes

import pytest

from http_serving import Running, check_error, serving
from meshhub.http.local_app import LocalApp
from waiting import MAX_WAIT_S, wait_until

FILES = "/local/files"


class App:
    """Running app, with the header that its page sends."""

    def __init__(self, running: Running, state: LocalApp) -> None:
        self.running, self.state = running, state
        self.headers = {"X-Meshhub-Token": state.token}

    def get(self, path: str, **headers: str) -> Any:
        return self.running.get(path, headers={**self.headers, **headers})

    def post(self, path: str, content: bytes, **more: Any) -> Any:
        return self.running.client.post(path, content=content, headers=self.headers, **more)

    def open(self, path: Path) -> dict[str, Any]:
        """Open a file; return what tabs are informed of it."""
        self.state.open(path)
        return self.read_events(len(self.state.files))[-1]

    def read_events(self, count: int, after: int = 0) -> list[dict[str, Any]]:
        """Return the next opened files that a tab is informed of."""
        with self.running.client.stream("GET", f"{FILES}/events?after={after}", headers=self.headers) as response:
            files: list[dict[str, Any]] = []
            lines = (line for line in response.iter_lines() if line.startswith("data: "))
            while len(files) < count:
                files += json.loads(next(lines).removeprefix("data: "))
            return files


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    state = LocalApp()
    # with the limits of the Free plan, if any applied
    with serving(tmp_path_factory.mktemp("app"), {"plan_limits": {}}, local_app=state) as running:
        yield App(running, state)


@pytest.mark.parametrize("path", ["/plan", "/supported", FILES, f"{FILES}/events", "/schema", f"{FILES}/1"])
@pytest.mark.parametrize("headers", [{}, {"X-Meshhub-Token": "x" * 32}, {"X-Api-Key": "mh_aaaaaaaaaaaa_" + "x" * 43}])
def test_a_request_without_the_token_is_rejected(app: App, path: str, headers: dict[str, str]) -> None:
    check_error(app.running.get(path, headers=headers), 403, "app_token_required")


def test_a_page_of_another_site_can_neither_send_nor_read(app: App) -> None:
    elsewhere = {"Origin": "https://evil.example"}
    check_error(app.running.post("/convert", {"file": ("a.toy", b"toy")}, headers=elsewhere), 403, "origin_not_allowed")
    # a name that its owner changes to this address
    check_error(app.get("/plan", Host=f"evil.example:{app.running.port}"), 421, "host_not_allowed")
    asked = {**elsewhere, "Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "x-meshhub-token"}
    preflight = app.running.client.options("/plan", headers=asked)
    assert "access-control-allow-origin" not in preflight.headers
    assert "access-control-allow-origin" not in app.get("/plan", **elsewhere).headers


def test_the_owner_has_no_limits(app: App) -> None:
    for _ in range(40):
        plan = app.get("/plan").json()
    assert plan["plan"] == "local"
    assert set(plan["limits"].values()) == {None}
    formats = app.get("/supported").json()["formats"]
    assert all(entry["allowed"] for entry in formats.values())
    many = [("files", (f"{number}.toy", b"toy" + b" " * number)) for number in range(5)]
    answer = app.running.post("/convert-many", many, {"target": "toy"}, headers=app.headers)
    assert (answer.status_code, answer.headers["x-meshhub-converted"]) == (200, "5")
    large = app.running.post("/inspect", {"file": ("a.toy", b"toy" + b" " * (30 << 20))}, headers=app.headers)
    assert large.status_code == 200


def test_opened_files_reach_the_tab_with_their_companions(app: App, tmp_path: Path) -> None:
    model, material = tmp_path / "cube.obj", tmp_path / "cube.mtl"
    model.write_text("mtllib cube.mtl\n")
    material.write_text("newmtl red\n")
    last = max(app.state.files, default=0)
    answer = app.post(FILES, json.dumps([str(model)]).encode())
    assert answer.json() == {"tabs": 0}
    (event,) = app.read_events(1, after=last)
    assert (event["name"], event["folder"], event["companions"]) == ("cube.obj", str(tmp_path), ["cube.mtl"])
    path = f"{FILES}/{event['id']}"
    assert app.get(path).content == model.read_bytes()
    assert app.get(f"{path}?companion=cube.mtl").content == material.read_bytes()
    check_error(app.get(f"{path}?companion=../secret"), 404, "not_found")
    # opened again, it replaces its earlier version
    app.post(FILES, json.dumps([str(model)]).encode())
    (again,) = app.read_events(1, after=event["id"])
    assert [file["id"] for file in app.get(f"{FILES}?after={last}").json()] == [again["id"]]
    check_error(app.get(f"{FILES}/{again['id'] + 1}"), 404, "not_found")
    # a tab that has not received the later version can still read the file, and save beside it
    assert app.get(path).content == model.read_bytes()
    assert app.post(f"{path}/results", b"x", params={"name": "cube.stl"}).status_code == 201


def test_a_file_that_one_tab_removes_stays_in_the_others(app: App, tmp_path: Path) -> None:
    (tmp_path / "part.stl").write_bytes(b"solid")
    event = app.open(tmp_path / "part.stl")
    before = event["id"] - 1
    assert event["closed"] is False
    assert app.running.client.delete(f"{FILES}/{event['id']}", headers=app.headers).status_code == 204
    # a new tab does not show it; the others read it, also when they are loaded again
    assert app.get(f"{FILES}?after={before}").json() == [{**event, "closed": True}]
    assert app.get(f"{FILES}/{event['id']}").content == b"solid"
    saved = app.post(f"{FILES}/{event['id']}/results", b"x", params={"name": "part.3mf"})
    assert saved.status_code == 201
    # opened again, every tab shows it
    assert app.open(tmp_path / "part.stl")["closed"] is False
    assert len(app.get(f"{FILES}?after={before}").json()) == 1


def test_a_long_search_for_companions_delays_no_answer(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_found = threading.Event()

    def find_slowly(_: Path) -> dict[str, Path]:
        is_found.wait(MAX_WAIT_S)
        return {}

    monkeypatch.setattr("meshhub.http.local_app.find_companions", find_slowly)
    (tmp_path / "large.obj").write_text("v 0 0 0\n")
    last = max(app.state.files, default=0)
    assert app.post(FILES, json.dumps([str(tmp_path / "large.obj")]).encode()).status_code == 200
    assert max(app.state.files, default=0) == last
    is_found.set()
    assert app.read_events(1, after=last)[0]["name"] == "large.obj"


def test_a_file_that_is_searched_longer_than_the_next_one_is_shown(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_found = threading.Event()

    def find(path: Path) -> dict[str, Path]:
        if path.name == "large.obj":
            is_found.wait(MAX_WAIT_S)
        return {}

    monkeypatch.setattr("meshhub.http.local_app.find_companions", find)
    last = max(app.state.files, default=0)
    for name in ("large.obj", "small.obj"):
        (tmp_path / name).write_text("v 0 0 0\n")
        app.post(FILES, json.dumps([str(tmp_path / name)]).encode())
    (small,) = app.read_events(1, after=last)
    is_found.set()
    (large,) = app.read_events(1, after=small["id"])
    assert (small["name"], large["name"]) == ("small.obj", "large.obj")


def test_a_file_that_is_opened_late_gets_time_for_its_tab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0
    monkeypatch.setattr("meshhub.http.local_app.time", SimpleNamespace(monotonic=lambda: now_s))
    local_app = LocalApp()
    assert local_app.seconds_without_tab == 0
    local_app.expect_tab(60)
    now_s = 215.0
    assert local_app.seconds_without_tab == 55
    (tmp_path / "a.stl").write_bytes(b"solid")
    local_app.open_soon([tmp_path / "a.stl"])
    assert local_app.seconds_without_tab == 0


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_a_result_is_saved_in_a_folder_that_is_not_utf_8(app: App, tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"\xff")
    folder.mkdir()
    (folder / "a.stl").write_bytes(b"solid")
    last = max(app.state.files, default=0)
    app.post(FILES, json.dumps([quote_from_bytes(os.fsencode(folder / "a.stl"))]).encode())
    (event,) = app.read_events(1, after=last)
    answer = app.post(f"{FILES}/{event['id']}/results?name=a.3mf", b"3MF")
    assert (answer.status_code, answer.json()["name"]) == (201, "a.3mf")
    assert (folder / "a.3mf").read_bytes() == b"3MF"
    assert app.state.find_saved(answer.json()["path"]) == folder / "a.3mf"


@pytest.mark.parametrize("body", [b"", b"{}", b'["/does/not/exist.stl"]', b"[1]"])
def test_what_cannot_be_opened_is_an_error(app: App, body: bytes) -> None:
    answer = app.post(FILES, body)
    assert answer.status_code in (400, 422), answer.text


def test_a_result_is_saved_beside_its_input_and_replaces_nothing(app: App, tmp_path: Path) -> None:
    (tmp_path / "part.stl").write_bytes(b"solid")
    (tmp_path / "part.3mf").write_bytes(b"mine")
    event = app.open(tmp_path / "part.stl")
    content = os.urandom(3 << 20)
    for name in ("part.3mf", "../../part.3mf"):
        answer = app.post(f"{FILES}/{event['id']}/results", content, params={"name": name})
        assert answer.status_code == 201, answer.text
    assert answer.json() == {"path": str(tmp_path / "part-3.3mf"), "name": "part-3.3mf"}
    assert (tmp_path / "part.3mf").read_bytes() == b"mine"
    assert (tmp_path / "part-2.3mf").read_bytes() == (tmp_path / "part-3.3mf").read_bytes() == content


def test_a_watched_folder_does_not_show_results(app: App, tmp_path: Path) -> None:
    folder, linked = tmp_path / "parts", tmp_path / "linked"
    folder.mkdir()
    linked.symlink_to(folder, target_is_directory=True)
    (folder / "part.stl").write_bytes(b"solid")
    event = app.open(folder / "part.stl")
    app.post(f"{FILES}/{event['id']}/results", b"saved", params={"name": "part.3mf"})
    download = {"size": 10, "sha256": hashlib.sha256(b"downloaded").hexdigest()}
    assert app.post("/local/downloads", json.dumps(download).encode()).status_code == 204
    check_error(app.post("/local/downloads", b'{"size": 10}'), 400, "bad_request")
    # the browser chooses another name
    (folder / "part (1).3mf").write_bytes(b"downloaded")
    (folder / "new.3mf").write_bytes(b"DOWNLOADED")
    for name in ("part.3mf", "part (1).3mf", "new.3mf"):
        app.state.open_arrival(linked / name)
    assert [file["name"] for file in app.get(f"{FILES}?after={event['id']}").json()] == ["new.3mf"]
    # another program has changed it
    (folder / "part.3mf").write_bytes(b"sliced")
    app.state.open_arrival(linked / "part.3mf")
    assert [file["name"] for file in app.get(f"{FILES}?after={event['id']}").json()] == ["new.3mf", "part.3mf"]


def test_a_watched_folder_does_not_show_a_result_that_is_not_complete(app: App, tmp_path: Path) -> None:
    (tmp_path / "part.stl").write_bytes(b"solid")
    event = app.open(tmp_path / "part.stl")
    with app.state.saving(event["id"], "part.3mf") as result:
        result.write(b"half")
        app.state.open_arrival(result.path)
    assert app.get(f"{FILES}?after={event['id']}").json() == []


@pytest.mark.skipif(sys.platform == "win32", reason="the slicer is a script of the shell")
def test_a_saved_result_opens_in_an_installed_slicer(app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slicer, opened = tmp_path / "bin/orca-slicer", tmp_path / "opened"
    slicer.parent.mkdir()
    slicer.write_text(f'#!/bin/sh\necho "$1" > {opened}.new && mv {opened}.new {opened}\n')
    slicer.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slicer.parent}:{os.environ['PATH']}")
    assert app.get("/local/slicers").json()["orca"] == "OrcaSlicer"
    (tmp_path / "part.stl").write_bytes(b"solid")
    event = app.open(tmp_path / "part.stl")
    # a file that the app has not saved is not passed to a program
    refused = app.post("/local/slicers/orca", b"", params={"path": str(tmp_path / "part.stl")})
    check_error(refused, 404, "not_found")
    saved = app.post(f"{FILES}/{event['id']}/results", b"x", params={"name": "part.3mf"}).json()
    check_error(app.post("/local/slicers/none", b"", params=saved), 404, "not_found")
    assert app.post("/local/slicers/orca", b"", params=saved).status_code == 204
    wait_until(opened.exists)
    assert opened.read_text() == f"{tmp_path / 'part.3mf'}\n"


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root writes into any folder")
def test_a_folder_that_is_not_writable_is_an_error(app: App, tmp_path: Path) -> None:
    (tmp_path / "part.stl").write_bytes(b"solid")
    event = app.open(tmp_path / "part.stl")
    tmp_path.chmod(0o500)
    answer = app.post(f"{FILES}/{event['id']}/results", b"x", params={"name": "part.3mf"})
    check_error(answer, 409, "save_failed")


def test_a_folder_that_is_gone_is_an_error(app: App, tmp_path: Path) -> None:
    folder = tmp_path / "stick"
    folder.mkdir()
    (folder / "part.stl").write_bytes(b"solid")
    event = app.open(folder / "part.stl")
    (folder / "part.stl").unlink()
    folder.rmdir()
    answer = app.post(f"{FILES}/{event['id']}/results", b"x", params={"name": "part.3mf"})
    check_error(answer, 409, "save_failed")
    check_error(app.get(f"{FILES}/{event['id']}"), 404, "not_found")


def test_a_tab_counts_as_long_as_it_is_connected(app: App) -> None:
    wait_until(lambda: app.state.tabs == 0)
    ended = threading.Event()

    def stay() -> None:
        with app.running.client.stream("GET", f"{FILES}/events", headers=app.headers):
            ended.wait()

    tab = threading.Thread(target=stay)
    tab.start()
    wait_until(lambda: app.state.tabs == 1)
    assert app.state.seconds_without_tab == 0
    ended.set()
    tab.join()
    wait_until(lambda: app.state.seconds_without_tab > 0)


def test_a_service_has_no_such_endpoints(service: Running) -> None:
    for path in (FILES, f"{FILES}/1"):
        check_error(service.get(path), 404, "not_found")
    assert not any(path.startswith("/local") for path in service.get("/schema").json()["paths"])


@pytest.mark.parametrize(
    ("language", "start"), [("de", "Keine Datei"), ("fr", "Aucun fichier"), ("es", "Ningún archivo")]
)
def test_errors_of_the_app_are_in_the_language_of_the_page(app: App, language: str, start: str) -> None:
    error = app.get(f"{FILES}/99999", **{"Accept-Language": language}).json()["error"]
    assert error.startswith(start)
    assert "open it again" not in error
