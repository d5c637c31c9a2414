"""Listener for probes and metrics of a process that serves nothing else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from http import HTTPStatus

from meshhub.errors import MeshhubError
from meshhub.http.metrics import TEXT_FORMAT

_TIMEOUT_S = 30.0
"""Seconds for a request and its response; a probe converts a cube."""

_MAX_HEADER_BYTES = 16_384
"""Bytes of a request, which has no body."""


class ProbeListener:
    """HTTP listener with the endpoints /health/live, /health/ready and /metrics."""

    def __init__(self, check: Callable[[], Awaitable[None]], export: Callable[[], Awaitable[bytes]]) -> None:
        """Respond with the results of functions.

        Args:
            check: Raises MeshhubError if the process is not ready.
            export: Returns the metrics.
        """
        self._check = check
        self._export = export
        self._server: asyncio.Server | None = None

    async def open(self, address: str) -> int:
        """Listen on an address host:port; return the port, which the system chooses for 0. Raises OSError."""
        host, _, port = address.rpartition(":")
        self._server = await asyncio.start_server(self._respond, host.strip("[]"), int(port), limit=_MAX_HEADER_BYTES)
        number: int = self._server.sockets[0].getsockname()[1]
        return number

    async def close(self) -> None:
        """Stop to listen."""
        if self._server is not None:
            self._server.close()

    async def _respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Respond to the one request of a connection."""
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                request = await reader.readuntil(b"\r\n\r\n")
                method, path, *_ = request.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
                status, media_type, body = await self._answer(method, path.partition("?")[0])
                lines = (
                    f"HTTP/1.1 {status.value} {status.phrase}",
                    f"Content-Type: {media_type}",
                    f"Content-Length: {len(body)}",
                    "Cache-Control: no-store",
                    "Connection: close",
                )
                writer.write("\r\n".join(lines).encode("ascii") + b"\r\n\r\n" + (b"" if method == "HEAD" else body))
                await writer.drain()
        except (OSError, ValueError, EOFError, asyncio.LimitOverrunError):
            # the client has left, or sent something else
            pass
        finally:
            writer.close()

    async def _answer(self, method: str, path: str) -> tuple[HTTPStatus, str, bytes]:
        if method not in ("GET", "HEAD") or path not in ("/health/live", "/health/ready", "/metrics"):
            return (
                HTTPStatus.NOT_FOUND,
                "application/json",
                _to_json(
                    {
                        "error": "this process serves only /health/live, /health/ready and /metrics",
                        "error_code": "not_found",
                    }
                ),
            )
        if path == "/metrics":
            return HTTPStatus.OK, TEXT_FORMAT, await self._export()
        if path == "/health/ready":
            try:
                await self._check()
            except MeshhubError as error:
                body = {"error": error.message, "error_code": error.code}
                return HTTPStatus.SERVICE_UNAVAILABLE, "application/json", _to_json(body)
        return HTTPStatus.OK, "application/json", _to_json({"status": path.rpartition("/")[2]})


def _to_json(body: dict[str, str]) -> bytes:
    return json.dumps(body).encode()
