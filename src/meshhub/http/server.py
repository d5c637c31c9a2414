"""`serve()`: the service under uvicorn, in this process, until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import sys

import uvicorn

from meshhub import logs
from meshhub.errors import ServerBusy
from meshhub.http.app import create_app, isolated
from meshhub.http.connections import Connection
from meshhub.http.shared import Shared
from meshhub.http.tracing import traced
from meshhub.settings import Settings

log = logging.getLogger("meshhub.http")

_LAST_SECONDS = 5
"""What is left for answers to go out, after the conversions that still ran were stopped."""


def serve(host: str = "127.0.0.1", port: int = 8000, settings: Settings | None = None) -> None:
    """Serve until SIGINT or SIGTERM. Port 0 takes a free one; the log tells which.

    Then no connection is accepted any more, waiting requests are refused, running ones have
    `shutdown_seconds`, and what still runs is stopped.

    Raises InvalidSettings for settings that make no sense, OSError when the address cannot be had.
    """
    settings = settings or Settings.from_environment()
    logs.to_stderr(settings.log)
    app = create_app(settings, engine=isolated(settings))
    server = Server(configured(traced(app), settings), app.state.shared)
    with contextlib.closing(_listening(host, port)) as listener:
        server.run(sockets=[listener])


def configured(app: object, settings: Settings) -> uvicorn.Config:
    """How uvicorn is run: it believes no proxy, writes no log of its own, and says not what it is."""
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        # whatever else is installed: headers and readers are waited for as Connection says
        http=Connection,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        log_level="warning",
        # X-Forwarded-For is read by the service, which knows whom to trust
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=int(settings.shutdown_seconds + _LAST_SECONDS),
    )


class Server(uvicorn.Server):
    """A uvicorn server that tells the service when it stops."""

    def __init__(self, config: uvicorn.Config, shared: Shared) -> None:
        """`shared` are the parts of the service that the configuration names."""
        super().__init__(config)
        self._shared = shared
        self._warming: asyncio.Future[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, and log where."""
        await super().startup(sockets)
        self._warming = asyncio.ensure_future(self._warm())
        for listener in sockets or ():
            address = listener.getsockname()
            shown = f"[{address[0]}]" if ":" in address[0] else address[0]
            log.info("meshhub serves http://%s:%d, described at /schema", shown, address[1])

    async def _warm(self) -> None:
        """Convert a cube, so that the first caller need not wait until the libraries are loaded."""
        with contextlib.suppress(ServerBusy):
            await self._shared.probe.check()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Refuse what waits, let what runs finish for a while, stop the rest."""
        self._shared.jobs.stop()
        last = asyncio.get_running_loop().call_later(
            self._shared.settings.shutdown_seconds, self._shared.registry.engine.close
        )
        await super().shutdown(sockets)
        last.cancel()


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        if sys.platform != "win32":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise OSError(error.errno, f"{host}:{port} cannot be listened on: {error.strerror or error}") from error
    return listener
