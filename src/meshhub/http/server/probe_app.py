"""Probes and metrics of a process that serves nothing else: a worker of a cluster."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import uvicorn
from litestar import Litestar, Request, Response, get
from litestar.exceptions import HTTPException

from meshhub.http.context import Context, attach_context, choose_request_id
from meshhub.http.endpoints.health import Health, health_live
from meshhub.http.errors import ServiceError, answer_error
from meshhub.http.metrics import TEXT_FORMAT
from meshhub.http.server.connections import Peers
from meshhub.http.server.listeners import open_listeners
from meshhub.http.server.serving import create_config

_FINAL_RESPONSE_S = 5
"""Seconds to send the responses of probes that are still running at the end."""


@contextlib.asynccontextmanager
async def serve_probes(
    address: str, peers: Peers, check: Callable[[], Awaitable[None]], export: Callable[[], Awaitable[bytes]]
) -> AsyncIterator[int]:
    """Serve /health/live, /health/ready and /metrics in the `async with` block; yield the port.

    Args:
        address: Address host:port; the system chooses the port for 0.
        peers: Number of connections of each address.
        check: Raises MeshhubError if the process is not ready.
        export: Returns the metrics.
    Raises:
        OSError: The address is not available.
    """
    host, _, port = address.rpartition(":")
    with open_listeners(host.strip("[]"), int(port), None) as listeners:
        config = create_config(_create_app(check, export), peers)
        config.timeout_graceful_shutdown = _FINAL_RESPONSE_S
        config.load()
        # Server.serve would install signal handlers, but signals belong to the process
        server = uvicorn.Server(config)
        server.lifespan = config.lifespan_class(config)
        await server.startup(listeners)
        try:
            yield listeners[0].getsockname()[1]
        finally:
            await server.shutdown(listeners)


class _App(Litestar):
    """Litestar application that gives every request a context, and answers HEAD like GET."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            # uvicorn sends no body with the response to HEAD
            scope = {**scope, "method": "GET" if scope["method"] == "HEAD" else scope["method"], "state": {}}
            attach_context(scope, Context(choose_request_id(None), ""))
        await super().__call__(scope, receive, send)


def _create_app(check: Callable[[], Awaitable[None]], export: Callable[[], Awaitable[bytes]]) -> Litestar:
    @get("/health/ready")
    async def ready() -> Health:
        await check()
        return {"status": "ready"}

    @get("/metrics")
    async def metrics() -> Response[bytes]:
        return Response(await export(), headers={"Content-Type": TEXT_FORMAT, "Cache-Control": "no-store"})

    return _App(
        route_handlers=[health_live, ready, metrics],
        exception_handlers={HTTPException: _answer_routing_error, Exception: answer_error},
        openapi_config=None,
        logging_config=None,
        debug=False,
    )


def _answer_routing_error(request: Request[Any, Any, Any], error: HTTPException) -> Response[bytes]:
    """Return the response to a request for anything else."""
    if error.status_code >= 500:
        return answer_error(request, error)
    message = "this worker serves only GET /health/live, /health/ready and /metrics"
    code = "method_not_allowed" if error.status_code == 405 else "not_found"
    return answer_error(request, ServiceError(message, error_code=code, headers=error.headers))
