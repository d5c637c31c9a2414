"""Real servers on real ports, and checks of their responses."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import socket
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import uvicorn

import service_plugins
from meshhub.engine.contract import Engine
from meshhub.http.local_app import LocalApp
from meshhub.http.responses import page_files
from meshhub.http.server.app import create_app
from meshhub.http.server.connections import Peers
from meshhub.http.server.listeners import open_listeners
from meshhub.http.server.serving import Server, create_config
from meshhub.pipeline.hooks import Hooks
from meshhub.registry import Registry
from meshhub.service.keys import KeyStore
from meshhub.service.settings import Settings
from waiting import MAX_WAIT_S, wait_until

ASCII_STL = b"""solid t
facet normal 0 0 0
outer loop
vertex 0 0 0
vertex 10 0 0
vertex 0 20 0
endloop
endfacet
facet normal 0 0 0
outer loop
vertex 10 20 1
vertex 0 20 0
vertex 10 0 0
endloop
endfacet
endsolid t
"""
"""Two triangles that share an edge: an almost flat sheet, which is fast to check."""

# a quarter of the time in which a service starts; hundreds start here
page_files.COMPRESSORS = {encoding: functools.cache(compress) for encoding, compress in page_files.COMPRESSORS.items()}

GENEROUS = {plan: {"requests_per_minute": 100_000, "job_requests_per_minute": 100_000} for plan in ("free", "pro")}


@dataclass
class Running:
    """Running server and its components."""

    port: int
    server: uvicorn.Server
    registry: Registry
    keys: KeyStore
    temporary: Path
    client: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        self.client = httpx.Client(base_url=self.url, timeout=MAX_WAIT_S)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def leftovers(self) -> list[str]:
        """Return the names in the folders of requests."""
        return [name for folder in self.temporary.iterdir() for name in os.listdir(folder)]

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.client.get(path, **more)

    def post(self, path: str, files: Any = None, data: Any = None, **more: Any) -> httpx.Response:
        return self.client.post(path, files=files, data=data, **more)

    def convert(self, content: bytes = b"toy", name: str = "my toy.toy", target: str = "toy", **more: Any) -> Any:
        headers = more.pop("headers", None)
        return self.post("/convert", {"file": (name, content)}, {"target": target, **more}, headers=headers)

    def many(self, *contents: tuple[str, bytes], target: str = "toy", **more: Any) -> httpx.Response:
        headers = more.pop("headers", None)
        return self.post(
            "/convert-many", [("files", file) for file in contents], {"target": target, **more}, headers=headers
        )

    def batch(self, archive: bytes, target: str = "toy", **more: Any) -> httpx.Response:
        headers = more.pop("headers", None)
        return self.post(
            "/convert-batch", {"archive": ("models.zip", archive)}, {"target": target, **more}, headers=headers
        )

    def raw(self, data: bytes) -> bytes:
        """Write to a new socket; return everything that it sends back."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=300) as connection:
            with contextlib.suppress(ConnectionError):
                connection.sendall(data)
            return receive_all(connection)


@contextlib.contextmanager
def serving(
    temporary: Path,
    settings: dict[str, Any],
    engine: Engine | None = None,
    plugins: tuple[object, ...] = (),
    hooks: Hooks | None = None,
    keys: KeyStore | None = None,
    local_app: LocalApp | None = None,
) -> Iterator[Running]:
    """Run a server in a thread and stop it as a signal does.

    With `hooks`, it also loads installed plug-ins; with `local_app`, it is that of `meshhub app`.
    """
    (temporary / "work").mkdir(exist_ok=True)
    folders = {"temporary_folder": str(temporary / "work"), "jobs_folder": str(temporary / "jobs")}
    all_settings = Settings(**{"plan_limits": GENEROUS, **folders, **settings})
    registry = Registry(plugins=[service_plugins, *plugins], entry_points=hooks is not None, engine=engine, hooks=hooks)
    keys = keys or KeyStore(f"sqlite:///{temporary / 'keys.sqlite3'}")
    app = create_app(all_settings, registry, keys, local_app=local_app)
    peers = Peers(all_settings.connections_per_address, app.state.service.trusted)
    server = Server(create_config(app, peers), app.state.service)
    with open_listeners("127.0.0.1", 0, None) as listeners:
        thread = threading.Thread(target=server.run, kwargs={"sockets": listeners})
        thread.start()
        try:
            running = Running(listeners[0].getsockname()[1], server, registry, keys, temporary / "work")
            with running.client:
                wait_until(lambda: server.started)
                yield running
        finally:
            server.should_exit = True
            thread.join()
            keys.close()


def zip_files(contents: dict[str, bytes]) -> bytes:
    """Return a ZIP archive of files, by name."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def unzip_response(response: httpx.Response) -> dict[str, bytes]:
    """Return the entries of a ZIP response."""
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(response.content)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def read_report(response: httpx.Response) -> dict[str, Any]:
    """Return the report in the response header."""
    text = response.headers["x-meshhub-report"]
    assert text.isascii()
    assert len(text) <= 4096
    report: dict[str, Any] = json.loads(text)
    return report


def check_error(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """Check an error response; return its body."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    body: dict[str, Any] = response.json()
    assert body["error_code"] == code, body
    assert body["request_id"] == response.headers["x-request-id"]
    assert body["error"]
    assert "Traceback" not in body["error"]
    return body


def receive_all(connection: socket.socket) -> bytes:
    """Receive until the other side closes or resets the connection."""
    received = b""
    with contextlib.suppress(ConnectionError):
        while chunk := connection.recv(65_536):
            received += chunk
    return received
