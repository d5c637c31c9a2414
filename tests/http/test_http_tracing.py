"""Requests as spans of OpenTelemetry."""

from __future__ import annotations

import gzip
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest

from meshhub.http.server import tracing

pytestmark = pytest.mark.once


def test_without_an_endpoint_requests_are_not_traced() -> None:
    app = object()
    assert tracing.add_tracing(app, {}) is app
    assert tracing.add_tracing(app, {tracing.ENDPOINT_VARIABLES[0]: ""}) is app


def test_a_missing_package_for_tracing_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    monkeypatch.setitem(sys.modules, "opentelemetry.instrumentation.asgi", None)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    app = object()
    assert tracing.add_tracing(app, {tracing.ENDPOINT_VARIABLES[0]: "http://127.0.0.1:1"}) is app
    assert 'pip install "opentelemetry-' in caplog.text


@pytest.fixture
def collected() -> Iterator[tuple[str, list[bytes]]]:
    """Start a collector of spans; yield its URL and the bodies that it receives."""
    bodies: list[bytes] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            bodies.append(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", bodies
        server.shutdown()
        thread.join()


@pytest.mark.skipif(find_spec("opentelemetry") is None, reason="the extra opentelemetry is not installed")
def test_each_request_is_exported_as_a_span(tmp_path: Path, collected: tuple[str, list[bytes]]) -> None:
    url, bodies = collected
    environment = {
        **os.environ,
        "XDG_DATA_HOME": str(tmp_path),
        "MESHHUB_TEMPORARY_FOLDER": str(tmp_path),
        "MESHHUB_WORKERS": "1",
        "OTEL_EXPORTER_OTLP_ENDPOINT": url,
    }
    command = [sys.executable, "-m", "meshhub", "serve", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stderr is not None
        try:
            match = re.search(r"http://127\.0\.0\.1:\d+", process.stderr.readline())
            assert match is not None
            with httpx.Client(base_url=match[0], timeout=300) as client:
                assert client.get("/health/live").status_code == 200
                assert client.get("/plan", headers={"X-Api-Key": "verysecret"}).status_code == 401
        finally:
            process.send_signal(signal.SIGTERM)
            process.stderr.read()
            process.wait(300)
    data = b"".join(bodies)
    assert b"/plan" in data
    assert b"meshhub" in data
    assert b"/health" not in data
    assert b"verysecret" not in data
