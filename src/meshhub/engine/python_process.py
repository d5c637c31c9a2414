"""Start a process with `multiprocessing`, adapted to programs with threads, forks and daemonic processes."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing import forkserver, resource_tracker, spawn
from multiprocessing import process as processes
from multiprocessing.connection import Connection
from typing import Any

from meshhub.engine.process_start import SINGLE_THREADED, block_interrupt, set_environment

_NAME, _NAME_WITH_MAIN = "meshhub-worker", "meshhub-worker-with-main"
"""Names of processes; a process with the first name does not import the main program."""

_RETRY_S = 0.05
"""Seconds until a failed start is tried again; Python notices the end of its fork server at the next start."""

_MAX_PATH_LENGTH = 60
"""Maximum characters of a temporary folder's path; that of a socket may have about 100, and Python adds about 30."""

_SERVERS: Mapping[bool, Any] = {False: forkserver.ForkServer(), True: forkserver._forkserver}
"""Fork servers without and with the large libraries. The fork and the end of a process take time in proportion to its
memory, and the libraries need four times as much as everything else. The second is that of Python.
"""

_SHORT_FOLDER = "/tmp"  # noqa: S108 - Python makes a folder in it that other users cannot open


def start_process(
    method: str,
    target: Callable[..., None],
    arguments: tuple[object, ...],
    preload: Sequence[str],
    *,
    with_main: bool,
    with_libraries: bool,
) -> tuple[processes.BaseProcess, Connection]:
    """Start a process that calls a function with its end of a pipe; return the process and the other end.

    Args:
        method: "forkserver" or "spawn".
        target: Function to call.
        arguments: Further arguments of the function.
        preload: Modules that the fork server imports.
        with_main: Import the main program in the process.
        with_libraries: Fork server to use, which `preload` is for.
    Raises:
        OSError, EOFError: The process cannot be started.
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
                    process.start()
                except (EOFError, ConnectionError):
                    # the fork server has died; Python starts another as soon as it notices
                    time.sleep(_RETRY_S)
                    process.start()
            _hide_from_python(process)
    return process, ours


def leave_fork_server() -> None:
    """Let the fork server serve only the parent; call this in a forked child."""
    processes.current_process()._config.pop("tempdir", None)  # type: ignore[attr-defined]
    for server in _SERVERS.values():
        if server._forkserver_pid is not None:
            _forget_fork_server(server)


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
