"""Start worker processes: fork this program, or let `multiprocessing` start another Python."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Iterator, Mapping

from meshhub.engine.descendants import new_mark
from meshhub.engine.forked_process import fork_process
from meshhub.engine.limits import Limits
from meshhub.engine.logs import Kind
from meshhub.engine.start_environment import SINGLE_THREADED, block_interrupt, set_environment
from meshhub.engine.task_slots import shutdown_error
from meshhub.engine.worker_process import Worker
from meshhub.errors import EngineError
from meshhub.pipeline.fork_lock import IMPORTING, ForkLock, precede_executors

PRELOAD: Mapping[bool, tuple[str, ...]] = {
    False: ("meshhub.engine.preload",),
    True: ("meshhub.engine.preload", "meshhub.engine.preload_libraries"),
}
"""Modules that the fork server without and that with the large libraries import once for all jobs."""

_NO_PROCESSES = frozenset({errno.ENOSYS, errno.EPERM, errno.EACCES, errno.ENOTSUP})
"""Errors of systems that do not let this program start processes."""

_STARTING = ForkLock(1)
"""Held while a process is started. A start changes state that all engines share: the environment, the temporary folder,
and Python's own record of this process."""

Target = Callable[..., None]
"""Function that a process runs; it takes a pipe, the limits, a mark and the log format."""


class Starter:
    """Starts processes with one method, limits and log format."""

    def __init__(self, method: str | None, limits: Limits, log: Kind | None) -> None:
        """Choose how to start processes.

        Args:
            method: "forkserver", "fork" or "spawn"; "forkserver" by default where it exists.
            limits: Limits of each process.
            log: How each process logs to standard error; None for no log.
        """
        self.method = method if method == "fork" and hasattr(os, "fork") else _choose_method(method)
        self._limits = limits
        self._log = log
        self._is_closed = self._is_starting = False

    def find_fault(self) -> str:
        """Return why no process can be started now, or ""."""
        python_process = sys.modules.get("meshhub.engine.python_process")
        return python_process.find_fault() if python_process is not None else ""

    def close(self) -> None:
        """Start no more processes, and do not wait for a fork server that does not respond."""
        self._is_closed = True
        python_process = sys.modules.get("meshhub.engine.python_process")
        if python_process is not None:
            python_process.kill_stopped_servers()
            if self._is_starting:
                python_process.hasten_start()

    def start(
        self,
        target: Target,
        *,
        with_main: bool = False,
        with_libraries: bool = False,
    ) -> Worker:
        """Start a process.

        Args:
            target: Function to run.
            with_main: Import the main program in the process.
            with_libraries: Let the fork server import large libraries once for all such processes.
        Raises:
            EngineError: This system does not let the program start processes.
            ShuttingDown: The starter is closed.
            OSError, EOFError: No process can be started now.
        """
        with _STARTING.held(), _explaining_refusal():
            self._is_starting = True
            try:
                return self._start(target, with_main=with_main, with_libraries=with_libraries)
            except (OSError, EOFError):
                if self._is_closed:
                    raise shutdown_error() from None
                raise
            finally:
                self._is_starting = False

    def _start(self, target: Target, *, with_main: bool, with_libraries: bool) -> Worker:
        if self._is_closed:
            raise shutdown_error()
        mark = new_mark()
        own = (self._limits, mark, self._log)
        if self.method == "fork":
            with IMPORTING.held():
                precede_executors()
            with set_environment(SINGLE_THREADED), block_interrupt():
                return Worker(*fork_process(lambda pipe: target(pipe, *own)), mark)
        with IMPORTING.held():
            from meshhub.engine import python_process
        process, pipe = python_process.start_process(
            self.method,
            target,
            own,
            PRELOAD.get(with_libraries, ()),
            with_main=with_main,
            with_libraries=with_libraries,
            is_closed=lambda: self._is_closed,
        )
        return Worker(process, pipe, mark)


def leave_fork_server() -> None:
    """Let the fork server serve only the parent; call this in a forked child."""
    python_process = sys.modules.get("meshhub.engine.python_process")
    if python_process is not None:
        python_process.leave_fork_server()


def _choose_method(method: str | None) -> str:
    from multiprocessing import get_all_start_methods

    available = get_all_start_methods()
    if method in available:
        return method
    return "forkserver" if "forkserver" in available else "spawn"


@contextlib.contextmanager
def _explaining_refusal() -> Iterator[None]:
    """Raise EngineError if this system does not let the program start processes."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_PROCESSES:
            raise
        raise EngineError(
            f"no process can be started here ({error.strerror}); convert in this process: Registry() without Isolated",
            error_code="internal_error",
        ) from error
