"""Start a process with `multiprocessing`, adapted to programs with threads, forks and daemonic processes."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing import forkserver, resource_tracker, spawn
from multiprocessing import process as processes
from multiprocessing.connection import Connection
from typing import Any

from meshhub.engine.descendants import is_stopped
from meshhub.engine.start_environment import SINGLE_THREADED, block_interrupt, set_environment

log = logging.getLogger(__name__)

_NAME, _NAME_WITH_MAIN = "meshhub-worker", "meshhub-worker-with-main"
"""Names of processes; a process with the first name does not import the main program."""

_RETRY_S = 0.05
"""Seconds until a failed start is tried again; Python notices the end of its fork server at the next start."""

IMPORT_TIMEOUT_S = 60.0
"""Seconds that a fork server may do nothing before it has started its first process."""

FORK_TIMEOUT_S = 20.0
"""Seconds that a fork server may do nothing at each further start."""

_CHECK_INTERVAL_S = 2.0
"""Seconds between two checks of a start; most take milliseconds."""

_LATE_S = 10.0
"""Seconds without progress after which a start counts as a fault."""

_CLOSING_S = 1.0
"""Seconds that a start has left when its engine is closed."""

_MAX_PATH_LENGTH = 60
"""Maximum characters of a temporary folder's path; that of a socket may have about 100, and Python adds about 30."""

_SERVERS: Mapping[bool, Any] = {False: forkserver.ForkServer(), True: forkserver._forkserver}
"""Fork servers without and with the large libraries. The fork and the end of a process take time in proportion to its
memory, and the libraries need four times as much as everything else. The second is that of Python.
"""

_STARTS: dict[Any, _Start] = {}
"""The start that waits for each fork server."""

_USED: dict[Any, int] = {}
"""Process of each fork server that has started another process, and therefore imported its modules."""

_SHORT_FOLDER = "/tmp"  # noqa: S108 - Python makes a folder in it that other users cannot open


def start_process(
    method: str,
    target: Callable[..., None],
    arguments: tuple[object, ...],
    preload: Sequence[str],
    *,
    with_main: bool,
    with_libraries: bool,
    is_closed: Callable[[], bool],
) -> tuple[processes.BaseProcess, Connection]:
    """Start a process that calls a function with its end of a pipe; return the process and the other end.

    Args:
        method: "forkserver" or "spawn".
        target: Function to call.
        arguments: Further arguments of the function.
        preload: Modules that the fork server imports.
        with_main: Import the main program in the process.
        with_libraries: Fork server to use, which `preload` is for.
        is_closed: Whether the process is no longer needed, so that a start that failed is not repeated.
    Raises:
        OSError, EOFError: The process cannot be started, or not in time.
    """
    context: Any = multiprocessing.get_context(method)
    ours, theirs = context.Pipe()
    with contextlib.closing(theirs):
        if sys.platform != "win32":
            # before block_interrupt, because its start unblocks SIGINT
            resource_tracker.ensure_running()
        with set_environment(SINGLE_THREADED), _shorten_paths(), _allow_children(), block_interrupt():
            server = _SERVERS[with_libraries]
            _forget_lost_fork_server(server)
            server.set_forkserver_preload(list(preload))
            process: processes.BaseProcess = context.Process(
                name=_NAME_WITH_MAIN if with_main else _NAME, target=target, args=(theirs, *arguments), daemon=True
            )
            with _choose(server):
                try:
                    _start(process, server)
                except (EOFError, ConnectionError):
                    # the fork server has died; Python starts another as soon as it notices
                    time.sleep(_RETRY_S)
                    if is_closed():
                        raise
                    _start(process, server)
            _hide_from_python(process)
    return process, ours


def leave_fork_server() -> None:
    """Let the fork server serve only the parent; call this in a forked child."""
    processes.current_process()._config.pop("tempdir", None)  # type: ignore[attr-defined]
    _STARTS.clear()
    for server in _SERVERS.values():
        if server._forkserver_pid is not None:
            _forget_fork_server(server)


def find_fault() -> str:
    """Return why processes cannot be started now, or "": a fork server does nothing, or is stopped."""
    for start in list(_STARTS.values()):
        if start.idle_s >= _LATE_S:
            return f"a fork server that should start a process has done nothing for {start.idle_s:.0f} s"
    for server in _list_stopped():
        return f"a fork server is stopped: process {server._forkserver_pid}"
    return ""


def hasten_start() -> None:
    """End the start that is waiting soon, because nobody needs its process."""
    for start in list(_STARTS.values()):
        start.call_later(_CLOSING_S, start.kill)


def kill_stopped_servers() -> None:
    """Kill the fork servers that are stopped: none of their processes can end before they continue."""
    for server in _list_stopped():
        _kill(server)


def _list_stopped() -> list[Any]:
    """Return the fork servers that are stopped; only Linux says so."""
    servers = [server for server in _SERVERS.values() if server._forkserver_pid is not None]
    return [server for server in servers if sys.platform == "linux" and is_stopped(server._forkserver_pid)]


def _kill(server: Any) -> None:
    """Kill a fork server, which may have ended meanwhile."""
    if server._forkserver_pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(server._forkserver_pid, signal.SIGKILL)


class _Start:
    """The start of a process by a fork server, which may be stopped, or wait for a disk: Python waits without a limit.

    A fork server that uses processor time is slow, not lost: on a busy machine, its imports take minutes.
    """

    def __init__(self, server: Any, limit_s: float) -> None:
        """Kill a fork server that does nothing for `limit_s`, after which Python raises EOFError."""
        self._server = server
        self._limit_s = limit_s
        self._cpu_s = 0.0
        self.idle_s = 0.0
        self.call_later(_CHECK_INTERVAL_S, self._check)

    def call_later(self, seconds: float, function: Callable[[], None]) -> None:
        """Call a function in a thread, unless no thread can be started."""
        self._timer = threading.Timer(seconds, function)
        self._timer.daemon = True
        with contextlib.suppress(RuntimeError):
            self._timer.start()

    def end(self) -> None:
        """End the checks."""
        self._timer.cancel()

    def kill(self) -> None:
        """Kill the fork server if it has not yet started the process."""
        if _STARTS.get(self._server) is self:
            _kill(self._server)

    def _check(self) -> None:
        if _STARTS.get(self._server) is not self:
            return
        cpu_s = _read_cpu_seconds(self._server._forkserver_pid)
        has_advanced, self._cpu_s = cpu_s > self._cpu_s, cpu_s
        self.idle_s = 0.0 if has_advanced else self.idle_s + _CHECK_INTERVAL_S
        if self.idle_s >= self._limit_s:
            log.error("a fork server was killed, because it did nothing for %.0f s", self.idle_s)
            self.kill()
        else:
            self.call_later(_CHECK_INTERVAL_S, self._check)


def _read_cpu_seconds(process: int | None) -> float:
    """Return the processor time of a process; 0 where the system does not report it."""
    if sys.platform == "linux" and process is not None:
        with contextlib.suppress(OSError):
            # the clock of that process, as clock_getcpuclockid(3) returns it
            return time.clock_gettime((~process << 3) | 2)
    return 0.0


def _start(process: processes.BaseProcess, server: Any) -> None:
    """Start a process. Raises EOFError if its fork server does nothing."""
    has_started_one = server._forkserver_pid is not None and server._forkserver_pid == _USED.get(server)
    start = _STARTS[server] = _Start(server, FORK_TIMEOUT_S if has_started_one else IMPORT_TIMEOUT_S)
    try:
        process.start()
        _USED[server] = server._forkserver_pid
    finally:
        del _STARTS[server]
        start.end()


def _forget_lost_fork_server(server: Any) -> None:
    """Let Python start another fork server if the known one is not a child of this process.

    The known fork server belongs to the parent if this process was forked before it imported this module. It was reaped
    if the program waits for all its children. In both cases, Python raises ChildProcessError at each start of a
    process.
    """
    process = server._forkserver_pid
    if process is not None:
        try:
            os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            _forget_fork_server(server)


def _forget_fork_server(server: Any) -> None:
    """Forget a fork server, and close the pipe that keeps it alive."""
    os.close(server._forkserver_alive_fd)
    server._forkserver_address = server._forkserver_alive_fd = server._forkserver_pid = None


def _hide_from_python(process: processes.BaseProcess) -> None:
    """Let only the thread that supervises a process ask how it ended.

    `multiprocessing` polls all known processes at each start and in `active_children`. Meanwhile another thread may
    close the pipe of a process. Then Python reads from another file that got the same number, such as the socket of a
    client or the pipe of another worker, and may block forever.
    """
    processes._children.discard(process)  # type: ignore[attr-defined]


@contextlib.contextmanager
def _allow_children() -> Iterator[None]:
    """Let a daemonic process, such as a worker of a pool or a task queue, start workers.

    Python forbids it because children of a terminated process would remain. Our workers end with their parent or its
    fork server, and a fork server ends with the process that holds its pipe.
    """
    config = processes.current_process()._config  # type: ignore[attr-defined]
    daemonic = config.pop("daemon", None)
    try:
        yield
    finally:
        if daemonic is not None:
            config["daemon"] = daemonic


@contextlib.contextmanager
def _choose(server: Any) -> Iterator[None]:
    """Let processes that this thread starts inside come from a fork server."""
    _CHOSEN.server = server
    try:
        yield
    finally:
        del _CHOSEN.server


@contextlib.contextmanager
def _shorten_paths() -> Iterator[None]:
    """Use a temporary folder with a short path for the socket of the fork server."""
    previous = tempfile.tempdir
    if len(tempfile.gettempdir()) > _MAX_PATH_LENGTH and os.access(_SHORT_FOLDER, os.W_OK | os.X_OK):
        tempfile.tempdir = _SHORT_FOLDER
    try:
        yield
    finally:
        tempfile.tempdir = previous


def _prepare_worker(name: str) -> dict[str, object]:
    """Return the data that multiprocessing sends to a new process, without the main program unless a worker needs it.

    A worker would import the main program again. That import took longer than most conversions, and a script without
    `if __name__ == "__main__"` would start again. `multiprocessing` has no setting for this. Hiding
    `sys.modules["__main__"]` during the start breaks unpickling in other threads.
    """
    data: dict[str, object] = _PREPARE(name)
    if name == _NAME:
        data.pop("init_main_from_name", None)
        data.pop("init_main_from_path", None)
    return data


def _connect_to_new_process(fds: Sequence[int]) -> tuple[int, int]:
    """Ask the chosen fork server for a process; `multiprocessing` knows one fork server only."""
    server = getattr(_CHOSEN, "server", forkserver._forkserver)
    connection: tuple[int, int] = server.connect_to_new_process(fds)
    return connection


_CHOSEN = threading.local()
_PREPARE = spawn.get_preparation_data
spawn.get_preparation_data = _prepare_worker
forkserver.connect_to_new_process = _connect_to_new_process
