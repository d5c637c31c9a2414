"""Find and kill every process that a job started, even if it has detached.

This is necessary, because a child that calls setsid and is orphaned by a second fork leaves the process group and the
family of its worker, and not every user may use cgroups or process namespaces. A child keeps its resource limits
through fork, setsid and exec. Therefore, each worker gets a unique number as its limit of file locks, which Linux has
ignored since 2.4.25. Every process with that number belongs to the job. On other systems, processes are not marked;
killing the session of the worker must suffice there.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from meshhub.engine.scratch import is_running

_RLIMIT_LOCKS = 10
"""Number of the resource limit, see getrlimit(2); Python has no name for it."""

_PREFIX = 0x4D48
"""Highest 15 bits of each mark; 22 bits for the process id of the program and 26 random bits follow."""

_PF_EXITING = 0x4
"""Flag of a thread that exits, see proc_pid_stat(5)."""

_MAX_STAT_BYTES = 4096
"""Bytes to read from /proc/PID/stat, which has about 50 numbers."""

_MIN_PAUSE_S, _MAX_PAUSE_S = 0.0005, 0.05
"""Seconds between two checks whether killed processes have ended; doubled after each check."""

_SWEEP_S = 1.0
"""Seconds to wait for the end of processes that dead programs left; only the first task waits."""


def new_mark() -> int:
    """Return a number that marks the processes of one job."""
    return _PREFIX << 48 | (os.getpid() & 0x3FFFFF) << 26 | int.from_bytes(os.urandom(4), "big") >> 6


def set_mark(mark: int) -> None:
    """Mark this process and all processes that it will start."""
    if sys.platform == "linux":
        import resource

        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(_RLIMIT_LOCKS, (mark, mark))


def find_marked(mark: int) -> list[int]:
    """Return the running processes with a mark."""
    return _find(lambda other: other == mark)


def kill_marked(mark: int, timeout_s: float) -> bool:
    """Kill all processes with a mark. Return whether all of them stopped within `timeout_s`."""
    return _kill_all(lambda other: other == mark, timeout_s)


def is_over(process: int) -> bool:
    """Return whether a process has stopped running code: it is dead, or the kernel is releasing its resources."""
    try:
        threads = os.listdir(f"/proc/{process}/task")
    except OSError:
        return True
    return all(_is_exiting(f"/proc/{process}/task/{thread}/stat") for thread in threads)


def is_stopped(process: int) -> bool:
    """Return whether a process lives, and a signal has stopped all its threads."""
    try:
        threads = os.listdir(f"/proc/{process}/task")
    except OSError:
        return False
    return all(_read_stat(f"/proc/{process}/task/{thread}/stat")[0] == b"T" for thread in threads)


def sweep_processes() -> None:
    """Kill the processes that jobs of killed programs left behind."""
    if sys.platform != "linux":
        return
    namespace = _read_namespace("self")
    _kill_all(
        lambda mark: mark >> 48 == _PREFIX and not is_running(mark >> 26 & 0x3FFFFF),
        _SWEEP_S,
        # the same id belongs to another process in another container
        lambda process: _read_namespace(process) == namespace,
    )


def _kill_all(
    is_match: Callable[[int], bool], timeout_s: float, is_candidate: Callable[[int], bool] = lambda _: True
) -> bool:
    deadline = time.monotonic() + timeout_s
    pause = _MIN_PAUSE_S
    while processes := [process for process in _find(is_match) if is_candidate(process)]:
        for process in processes:
            _kill(process, is_match)
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
        pause = min(2 * pause, _MAX_PAUSE_S)
    return True


def _find(is_match: Callable[[int], bool]) -> list[int]:
    if sys.platform != "linux":
        return []
    try:
        processes = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []
    return [process for process in processes if is_match(_read_mark(process)) and not is_over(process)]


def _read_mark(process: int) -> int:
    """Return the mark of a process; 0 for a process that has ended or belongs to another user."""
    if sys.platform != "linux":
        return 0
    import resource

    try:
        return resource.prlimit(process, _RLIMIT_LOCKS)[1]
    except (OSError, ValueError):
        return 0


def _is_exiting(stat: str) -> bool:
    """Return whether a thread has ended. The first thread may end before the others, so all must be checked."""
    state, flags = _read_stat(stat)
    return state in (b"Z", b"X") or bool(flags & _PF_EXITING)


def _read_stat(stat: str) -> tuple[bytes, int]:
    """Return the state and the flags of a thread; a thread that has ended is dead (X)."""
    try:
        # Path.read_bytes would take five times as long, and each small task reads several of these files
        descriptor = os.open(stat, os.O_RDONLY | os.O_CLOEXEC)
        try:
            text = os.read(descriptor, _MAX_STAT_BYTES)
        finally:
            os.close(descriptor)
        state, *_, flags = text.rpartition(b")")[2].split(None, 7)[:7]
        return state, int(flags)
    except (OSError, ValueError):
        return b"X", 0


def _kill(process: int, is_match: Callable[[int], bool]) -> None:
    """Kill a process, unless its id now belongs to another process."""
    with contextlib.suppress(OSError):
        if is_match(_read_mark(process)):
            os.kill(process, signal.SIGKILL)


def _read_namespace(process: int | str) -> str:
    """Return the namespace of process ids, which differs between containers."""
    try:
        return str(Path(f"/proc/{process}/ns/pid").readlink())
    except OSError:
        return ""
