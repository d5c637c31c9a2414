"""Finding every process that a job has started, however it hides.

A child that calls setsid and is orphaned by a second fork is in no group and no family of its worker
any more, and neither cgroups nor namespaces of processes are there for every user. What a child keeps
through fork, setsid and exec are its limits: so a worker gets a number of its own as the limit of
something that Linux has not limited since 2.4.25 (file locks), and whatever bears that number
belongs to the job. On other systems nothing is marked, and killing the worker's session has to do.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from meshhub.engine.scratch import lives

_LIMIT = 10
"""RLIMIT_LOCKS; see getrlimit(2)."""

_OURS = 0x4D48
"""The highest 15 bits of a mark. Below are 22 bits of its maker's process id, and 26 random ones."""

_EXITING = 0x4
"""PF_EXITING among the flags of a thread, see proc_pid_stat(5)."""

_SHORTEST, _LONGEST = 0.0005, 0.05
"""Seconds between two looks at processes that are dying."""


def new_mark() -> int:
    """A number for the processes of one job."""
    return _OURS << 48 | (os.getpid() & 0x3FFFFF) << 26 | secrets.randbits(26)


def bear(mark: int) -> None:
    """Mark this process, and all that it will start."""
    if sys.platform == "linux":
        import resource

        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(_LIMIT, (mark, mark))


def bearing(mark: int) -> list[int]:
    """The processes with a mark that still run."""
    return _found(lambda one: one == mark)


def end(mark: int, patience: float) -> bool:
    """Kill all processes with a mark and wait until they do nothing more; whether that is within `patience` seconds."""
    return _end(lambda one: one == mark, patience)


def is_over(process: int) -> bool:
    """Whether it does nothing any more: it is dead, or the system takes it apart, which can take a while."""
    try:
        threads = os.listdir(f"/proc/{process}/task")
    except OSError:
        return True
    return all(_leaves(Path(f"/proc/{process}/task/{thread}/stat")) for thread in threads)


def sweep() -> None:
    """Kill what jobs of programs that were themselves killed have left."""
    if sys.platform != "linux":
        return
    here = _namespace("self")
    _end(
        lambda mark: mark >> 48 == _OURS and not lives(mark >> 26 & 0x3FFFFF), 1.0, lambda one: _namespace(one) == here
    )


def _end(wanted: Callable[[int], bool], patience: float, also: Callable[[int], bool] | None = None) -> bool:
    until = time.monotonic() + patience
    pause = _SHORTEST
    while found := [one for one in _found(wanted) if also is None or also(one)]:
        for process in found:
            _kill(process, wanted)
        if time.monotonic() > until:
            return False
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST)
    return True


def _found(wanted: Callable[[int], bool]) -> list[int]:
    if sys.platform != "linux":
        return []
    try:
        processes = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []
    return [one for one in processes if wanted(_mark_of(one)) and not is_over(one)]


def _mark_of(process: int) -> int:
    """The mark of a process; 0 of one that is gone, or another user's."""
    if sys.platform != "linux":
        return 0
    import resource

    try:
        return resource.prlimit(process, _LIMIT)[1]
    except (OSError, ValueError):
        return 0


def _leaves(told: Path) -> bool:
    """Whether a thread has left its program for good. The first may end before others: all must be asked."""
    try:
        state, *_, flags = told.read_bytes().rpartition(b")")[2].split()[:7]
    except (OSError, ValueError):
        return True
    return state in (b"Z", b"X") or bool(int(flags) & _EXITING)


def _kill(process: int, wanted: Callable[[int], bool]) -> None:
    """Kill it, unless the number meanwhile is another process's."""
    with contextlib.suppress(OSError):
        if wanted(_mark_of(process)):
            os.kill(process, signal.SIGKILL)


def _namespace(process: int | str) -> str:
    """What tells process numbers of containers apart."""
    try:
        return str(Path(f"/proc/{process}/ns/pid").readlink())
    except OSError:
        return ""
