"""`serve()` and `serve_app()`: run the service, or `meshhub app`, under uvicorn in this process until a signal."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import FrameType

import uvicorn

from meshhub.engine import logs
from meshhub.engine.scratch import Scratch
from meshhub.errors import InvalidSettings, KeyStoreUnavailable, ServerBusy
from meshhub.http.local_app import LocalApp
from meshhub.http.server.app import create_app, create_engine
from meshhub.http.server.connections import Connection, Peers
from meshhub.http.server.listeners import describe, listen_on_loopback, open_listeners
from meshhub.http.server.memory import freeze_objects, trim_heap, use_one_heap
from meshhub.http.server.temporary_folder import own_temporary_folder
from meshhub.http.server.tracing import add_tracing
from meshhub.http.state import ServiceState
from meshhub.service.settings import Loaded, Settings, load

log = logging.getLogger("meshhub.http")

_MAX_OPEN_FILES_COUNT = 65_536
"""Maximum open files and sockets; well above the need of the connections and uploads of one machine."""

_TRIM_INTERVAL_S = 60.0
"""Seconds between two calls of malloc_trim, which take milliseconds."""

_FINAL_RESPONSE_S = 5
"""Seconds to send the responses of conversions that the shutdown has stopped."""

_POLL_INTERVAL_S = 0.05
"""Seconds between two checks for running conversions during the shutdown."""

_KEEP_ALIVE_S = 15
"""Seconds that an idle connection stays open."""

_APP_SHUTDOWN_S = 1.0
"""Seconds that running requests of the app have: nobody waits for them after its last tab was closed."""

_MACHINE_SETTINGS = (
    "workers", "conversion_memory_bytes", "temporary_folder", "keep_free_bytes", "disabled_plugins", "rates_file",
)  # fmt: skip
"""Settings that also apply to the app; the others are for callers of a service."""


def serve(
    host: str = "127.0.0.1", port: int = 8000, settings: Settings | None = None, *, unix_socket: str | None = None
) -> None:
    """Serve until SIGINT or SIGTERM. Port 0 selects a free port, which the log reports.

    `unix_socket` is the path of a Unix socket, which replaces host and port. Sockets that a supervisor passes
    (`LISTEN_FDS`, see sd_listen_fds(3)) replace both.

    After the signal, waiting and new requests are rejected, and running conversions have `shutdown_seconds` before
    they are stopped. A second signal stops them at once.

    Raises:
        InvalidSettings: A setting has an invalid value.
        OSError: The address is not available.
    """
    loaded = Loaded(settings, {}) if settings is not None else load()
    logs.to_stderr(loaded.settings.log)
    _run(loaded, open_listeners(host, port, unix_socket), Server)


def serve_app(local_app: LocalApp, ports: Sequence[int], end_after_s: float, on_start: Callable[[int], None]) -> None:
    """Serve `meshhub app` on 127.0.0.1 until a signal, or until its last tab has been closed for a while.

    Args:
        local_app: State of the app.
        ports: Ports to try in this order; if none of them is free, the system selects one.
        end_after_s: Seconds without a tab after which the app ends.
        on_start: Called with the port when the app accepts connections.
    Raises:
        InvalidSettings: A setting has an invalid value.
        OSError: The address is not available.
    """
    loaded = load()
    logs.to_stderr(loaded.settings.log)
    # the owner sees the page, and needs no log of its requests
    logging.getLogger("meshhub").setLevel(logging.WARNING)

    def create_server(config: uvicorn.Config, state: ServiceState) -> Server:
        return _AppServer(config, state, local_app, end_after_s, on_start)

    with contextlib.ExitStack() as stack:
        # the next start removes what a killed app leaves
        scratch = Scratch("service", _choose_folder(loaded.settings))
        stack.callback(scratch.remove)
        folder = str(scratch.path)
        settings = Settings(
            **{name: getattr(loaded.settings, name) for name in _MACHINE_SETTINGS},
            database_url=f"sqlite:///{Path(folder, 'keys.sqlite3')}",
            jobs_folder=folder,
            metrics="off",
            shutdown_seconds=_APP_SHUTDOWN_S,
        )
        _run(Loaded(settings, loaded.origins), listen_on_loopback(ports), create_server, local_app)


def _choose_folder(settings: Settings) -> str | None:
    """Return the folder for temporary files; None for that of the system, also if `create_app` will reject it."""
    folder = settings.temporary_folder
    return folder if folder and os.access(folder, os.W_OK) else None


def _run(
    loaded: Loaded,
    listening: contextlib.AbstractContextManager[list[socket.socket]],
    create_server: Callable[[uvicorn.Config, ServiceState], Server],
    local_app: LocalApp | None = None,
) -> None:
    use_one_heap()
    with own_temporary_folder(loaded.settings) as settings:
        try:
            # importing a plug-in may print
            with _redirect_stdout_to_stderr():
                engine = create_engine(settings)
                app = create_app(settings, engine=engine, local_app=local_app)
        except InvalidSettings as error:
            raise loaded.located(error) from None
        state: ServiceState = app.state.service
        peers = Peers(settings.connections_per_address, state.trusted)
        server = create_server(create_config(add_tracing(app), peers), state)
        _raise_open_files_limit()
        freeze_objects()
        engine.start_ahead()
        with listening as listeners:
            server.run(sockets=listeners)


def create_config(app: object, peers: Peers) -> uvicorn.Config:
    """Return the uvicorn configuration: without proxy headers, its own logs, and a `Server` header.

    Args:
        app: ASGI application.
        peers: Number of connections of each address.
    """
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        # not httptools, even if it is installed, because Connection implements the timeouts
        http=partial(Connection, peers=peers),  # type: ignore[arg-type]
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        # the service logs what uvicorn's warnings report
        log_level="error",
        # the service evaluates X-Forwarded-For itself, with the trusted proxies of the settings
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_S,
    )


class Server(uvicorn.Server):
    """uvicorn server that starts a worker first, and shuts the service down in order."""

    def __init__(self, config: uvicorn.Config, state: ServiceState) -> None:
        """Serve the application of `config`, whose state is `state`."""
        super().__init__(config)
        self._state = state
        self._is_second_signal = False
        self._warm_up_task: asyncio.Future[None] | None = None
        self._trim_task: asyncio.Future[None] | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Stop at the first signal; stop running conversions too at the second.

        uvicorn would raise the signal again at the end. The service exits with status 0 instead.
        """
        self._is_second_signal = self.should_exit
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen, and log the address."""
        await super().startup(sockets)
        self._warm_up_task = asyncio.ensure_future(self._warm_up())
        self._trim_task = asyncio.ensure_future(self._trim_regularly())
        for listener in sockets or ():
            log.info("meshhub serves %s, described at /schema", describe(listener))

    async def _warm_up(self) -> None:
        """Check the key database, and convert a cube, so that the first caller does not wait for imports."""
        state = self._state
        try:
            await state.resources.threads.run_lookup(state.keys.look)
        except KeyStoreUnavailable as error:
            log.warning("%s; callers with a key get 503 until the database is available", error.message)
        with contextlib.suppress(ServerBusy):
            await state.probe.check()

    async def _trim_regularly(self) -> None:
        """Return free memory to the system at regular intervals."""
        while not self.should_exit:
            await asyncio.sleep(_TRIM_INTERVAL_S)
            trim_heap()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Reject waiting and new requests, give running conversions some time, then stop them.

        Accept connections until the running conversions have ended, so that new callers get an error response.
        """
        resources, loop = self._state.resources, asyncio.get_running_loop()
        resources.stop()
        if self._trim_task is not None:
            self._trim_task.cancel()
        deadline = loop.time() + self._state.settings.shutdown_seconds
        log.info("stopping; %d conversions still run", resources.slots.running)
        while resources.slots.running and not self._is_second_signal and loop.time() < deadline:
            await asyncio.sleep(_POLL_INTERVAL_S)
        if resources.slots.running:
            self._state.registry.close()
        remaining = 0.0 if self._is_second_signal else max(0.0, deadline - loop.time())
        self.config.timeout_graceful_shutdown = int(remaining + _FINAL_RESPONSE_S)
        await super().shutdown(sockets)
        log.info("stopped")


class _AppServer(Server):
    """Server of `meshhub app`, which ends when its last tab has been closed for a while."""

    def __init__(
        self,
        config: uvicorn.Config,
        state: ServiceState,
        local_app: LocalApp,
        end_after_s: float,
        on_start: Callable[[int], None],
    ) -> None:
        super().__init__(config, state)
        self._local_app = local_app
        self._end_after_s = end_after_s
        self._on_start = on_start
        self._end_task: asyncio.Future[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._end_task = asyncio.ensure_future(self._end_without_tab())
        for listener in sockets or ():
            self._on_start(listener.getsockname()[1])

    async def _end_without_tab(self) -> None:
        while self._local_app.seconds_without_tab < self._end_after_s:
            await asyncio.sleep(_POLL_INTERVAL_S)
        self.should_exit = True


@contextlib.contextmanager
def _redirect_stdout_to_stderr() -> Iterator[None]:
    """Redirect standard output to standard error, also for native code and child processes."""
    sys.stdout.flush()
    stdout = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(stdout, 1)
        os.close(stdout)


def _raise_open_files_limit() -> None:
    """Raise the soft limit of open files, which shells set too low for a server (1024)."""
    if sys.platform != "win32":
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        limit = _MAX_OPEN_FILES_COUNT if hard == resource.RLIM_INFINITY else min(hard, _MAX_OPEN_FILES_COUNT)
        if soft != resource.RLIM_INFINITY and soft < limit:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
