"""Health and metrics of a worker of a cluster, on a real port."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

import httpx
import pytest

from http_serving import receive_all
from meshhub.errors import ServerBusy
from meshhub.http.server.connections import Peers
from meshhub.http.server.probe_app import serve_probes

pytestmark = pytest.mark.once

METRICS = b"meshhub_job_slots 2.0\n"


class Process:
    """State of the process whose probes are served."""

    is_ready = True

    async def check(self) -> None:
        if not self.is_ready:
            raise ServerBusy("no worker can convert now")

    async def export(self) -> bytes:
        return METRICS


def run(exchange: Callable[[httpx.AsyncClient, Process, int], Awaitable[None]], *, connections: int = 10) -> None:
    """Serve probes, and run a function with a client, the process and the port."""

    async def serve() -> None:
        process = Process()
        async with (
            serve_probes("127.0.0.1:0", Peers(connections, ()), process.check, process.export) as port,
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=300) as client,
        ):
            await exchange(client, process, port)

    asyncio.run(serve())


def send_raw(port: int, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=300) as connection:
        connection.sendall(data)
        return receive_all(connection)


def test_probes_and_metrics_are_served() -> None:
    async def exchange(client: httpx.AsyncClient, process: Process, _port: int) -> None:
        assert (await client.get("/health/live")).json() == {"status": "live"}
        assert (await client.get("/health/ready")).json() == {"status": "ready"}
        metrics = await client.get("/metrics")
        assert metrics.content == METRICS
        assert metrics.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        process.is_ready = False
        answer = await client.get("/health/ready")
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) > 0
        body = answer.json()
        assert (body["error_code"], body["error"]) == ("server_busy", "no worker can convert now")
        assert (await client.get("/health/live")).status_code == 200

    run(exchange)


def test_head_is_answered_like_get_without_a_body() -> None:
    async def exchange(client: httpx.AsyncClient, process: Process, _port: int) -> None:
        for path in ("/health/live", "/health/ready", "/metrics"):
            answer = await client.head(path)
            assert (answer.status_code, answer.content) == (200, b"")
        process.is_ready = False
        answer = await client.head("/health/ready")
        assert (answer.status_code, answer.content) == (503, b"")

    run(exchange)


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [("GET", "/convert", 404, "not_found"), ("POST", "/health/live", 405, "method_not_allowed")],
)
def test_other_requests_get_an_error(method: str, path: str, status: int, code: str) -> None:
    async def exchange(client: httpx.AsyncClient, _process: Process, _port: int) -> None:
        answer = await client.request(method, path)
        assert (answer.status_code, answer.json()["error_code"]) == (status, code)
        assert "this worker serves only" in answer.json()["error"]
        assert answer.json()["request_id"]

    run(exchange)


@pytest.mark.parametrize("head", [b"no HTTP at all", b"GET /metrics", b"GET / HTTP/1.1\r\nHost: a\r\nX: \0"])
def test_malformed_requests_get_a_json_error(head: bytes) -> None:
    async def exchange(client: httpx.AsyncClient, _process: Process, port: int) -> None:
        answer = await asyncio.to_thread(send_raw, port, head + b"\r\n\r\n")
        headers, _, body = answer.partition(b"\r\n\r\n")
        assert headers.startswith(b"HTTP/1.1 400")
        assert b"application/json" in headers
        assert b'"error_code":"bad_request"' in body
        assert (await client.get("/health/live")).status_code == 200

    run(exchange)


def test_an_address_has_a_limited_number_of_connections() -> None:
    async def exchange(client: httpx.AsyncClient, _process: Process, port: int) -> None:
        assert (await client.get("/health/live")).status_code == 200
        answer = await asyncio.to_thread(send_raw, port, b"GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 503")
        assert b'"error_code":"server_busy"' in answer

    run(exchange, connections=1)


def test_the_port_is_closed_at_the_end() -> None:
    ports = []

    async def exchange(_client: httpx.AsyncClient, _process: Process, port: int) -> None:
        ports.append(port)

    run(exchange)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", ports[0]), timeout=300)


def test_an_occupied_address_is_an_error() -> None:
    async def serve(port: int) -> None:
        async with serve_probes(f"127.0.0.1:{port}", Peers(1, ()), Process().check, Process().export):
            pass

    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{port}"):
            asyncio.run(serve(port))
