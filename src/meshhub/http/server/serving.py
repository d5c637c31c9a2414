"""`serve()`: the service under uvicorn, in this process, until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from multiprocessing.util import Finalize
from types import FrameType

import uvicorn
from msgspec import structs

from meshhub.engine import logs
from meshhub.engine.scratch import Scratch, sweep
from meshhub.errors import InvalidSettings, KeyStoreUnavailable, ServerBusy
from meshhub.http.server.app import create_app, isolated
from meshhub.http.server.connections import Connection, Peers
from meshhub.http.server.memory import give_back, one_heap, settle
from meshhub.http.server.tracing import traced
from meshhub.http.state import Shared
from meshhub.service.settings import Loaded, Settings, load

log = logging.getLogger("meshhub.http")

_MOST_FILES = 65_536

_LONGEST_PATH = 60
"""Characters: those of a socket's path are few, and Python adds some thirty."""

_TIDY_SECONDS = 60.0

_LAST_SECONDS = 5
"""What is left for answers to go out, after the conversions that still ran were stopped."""


def serve(host: str = "127.0.0.1", port: int = 8000, settings: Settings | None = None) -> None:
    """Serve until SIGINT or SIGTERM. Port 0 takes a free one; the log tells which.

    Then requests that wait or come are refused, running ones have `shutdown_seconds`, and what still
    runs is stopped, at a second signal at once.

    Raises InvalidSettings for settings that make no sense, OSError when the address cannot be had.
    """
    one_heap()
    loaded = Loaded(settings, {}) if settings is not None else load()
    settings = loaded.settings
    logs.to_stderr(settings.log)
    with _temporary_files_in_a_folder_of_ours(settings) as settings:
        try:
            # a plug-in may print as it is imported
            with _stdout_to_stderr():
                app = create_app(settings, engine=isolated(settings))
        except InvalidSettings as error:
            raise loaded.located(error) from None
        shared: Shared = app.state.shared
        server = Server(configured(traced(app), shared), shared)
        _may_open_as_many_files_as_it_can()
        settle()
        with contextlib.closing(_listening(host, port)) as listener:
            server.run(sockets=[listener])


def configured(app: object, shared: Shared) -> uvicorn.Config:
    """How uvicorn is run: it believes no proxy, writes no log of its own, and says not what it is."""
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        # whatever else is installed: headers and readers are waited for as Connection says
        http=partial(Connection, peers=Peers(shared.settings.connections_per_address, shared.trusted)),  # type: ignore[arg-type]
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        # its warnings tell what the service tells itself
        log_level="error",
        # X-Forwarded-For is read by the service, which knows whom to trust
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=15,
    )


class Server(uvicorn.Server):
    """A uvicorn server that tells the service when it stops."""

    def __init__(self, config: uvicorn.Config, shared: Shared) -> None:
        """`shared` are the parts of the service that the configuration names."""
        super().__init__(config)
        self._shared = shared
        self._hurried = False
        self._warming: asyncio.Future[None] | None = None
        self._tidying: asyncio.Future[None] | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Stop at the first signal; at the second, stop what still runs too.

        uvicorn's own would raise the signal once more when all is over: the service ends well, with exit
        status 0 and not by the signal.
        """
        self._hurried = self.should_exit
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, and log where."""
        await super().startup(sockets)
        self._warming = asyncio.ensure_future(self._warm())
        self._tidying = asyncio.ensure_future(self._tidy())
        for listener in sockets or ():
            address = listener.getsockname()
            shown = f"[{address[0]}]" if ":" in address[0] else address[0]
            log.info("meshhub serves http://%s:%d, described at /schema", shown, address[1])

    async def _warm(self) -> None:
        """Convert a cube, so that the first caller need not wait until the libraries are loaded; look for the keys."""
        shared = self._shared
        try:
            await shared.jobs.look_up(shared.keys.look)
        except KeyStoreUnavailable as error:
            log.warning("%s; callers with a key get 503 until it can be", error.message)
        with contextlib.suppress(ServerBusy):
            await shared.probe.check()

    async def _tidy(self) -> None:
        """Give memory back now and then, for as long as the service runs."""
        while not self.should_exit:
            await asyncio.sleep(_TIDY_SECONDS)
            give_back()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Refuse what waits and what comes, let what runs finish for a while, stop the rest.

        Until what runs is done, connections are still taken, so that whoever comes is told.
        """
        jobs, loop = self._shared.jobs, asyncio.get_running_loop()
        jobs.stop()
        if self._tidying is not None:
            self._tidying.cancel()
        end = loop.time() + self._shared.settings.shutdown_seconds
        log.info("stopping; %d conversions still run", jobs.running)
        while jobs.running and not self._hurried and loop.time() < end:
            await asyncio.sleep(0.05)
        if jobs.running:
            self._shared.registry.close()
        left = 0.0 if self._hurried else max(0.0, end - loop.time())
        self.config.timeout_graceful_shutdown = int(left + _LAST_SECONDS)
        await super().shutdown(sockets)
        log.info("stopped")


@contextlib.contextmanager
def _stdout_to_stderr() -> Iterator[None]:
    """Send what this process prints to standard error, also from native code and child processes."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


@contextlib.contextmanager
def _temporary_files_in_a_folder_of_ours(settings: Settings) -> Iterator[Settings]:
    """Settings whose folder is told, while Python's own temporary files go where the next start removes them.

    The fork server's socket is one of them, and `kill -9` leaves it behind.
    """
    try:
        usual = tempfile.gettempdir()
        sweep()
        own = Scratch("service")
    except OSError:
        # what cannot be written is told where the settings are checked
        yield settings
        return
    # as the program ends: after multiprocessing (-100) has removed its own folder in it, which must be there
    Finalize(None, own.remove, exitpriority=-200)
    before = tempfile.tempdir
    if len(str(own.path)) <= _LONGEST_PATH:
        tempfile.tempdir = str(own.path)
    try:
        yield structs.replace(settings, temporary_folder=settings.temporary_folder or usual)
    finally:
        tempfile.tempdir = before


def _may_open_as_many_files_as_it_can() -> None:
    """Raise the limit that shells set low for programs of long ago."""
    if sys.platform != "win32":
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


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
