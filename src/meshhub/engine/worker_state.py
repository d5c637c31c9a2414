"""State of a worker process that one task could leave to the next: compared before the worker is used again."""

from __future__ import annotations

import builtins
import contextlib
import gc
import locale
import os
import signal
import sys
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from meshhub.engine.limits import MAX_GROWTH_BYTES, MAX_REUSED_CPU_S, read_mapped_bytes

_UNSTABLE = frozenset({"meshhub.engine.preload", "meshhub.engine.preload_libraries", "meshhub.pipeline.fork_lock"})
"""Modules that are not compared: the first two are incomplete when the variables are recorded, and each fork changes
the last."""

_CONTAINERS = (dict, list, set)
"""Types of global variables whose length is also compared."""


class GlobalVariables:
    """Global variables of the modules of meshhub, and the built-in names."""

    def __init__(self) -> None:
        """Record the variables. Call this once before workers are forked: the first access to shared pages is slow."""
        names = [name for name in sys.modules if name.partition(".")[0] == "meshhub" and name not in _UNSTABLE]
        modules = [builtins, *map(sys.modules.__getitem__, names)]
        self._recorded = [(module, {**vars(module)}) for module in modules]
        self._lengths = [
            (value, len(value))
            for _, variables in self._recorded
            for value in variables.values()
            if type(value) in _CONTAINERS
        ]

    def find_change(self) -> str:
        """Return the name of a module with a variable or a container that has changed since, or ""."""
        if any(len(container) != length for container, length in self._lengths):
            return "a container in a module"
        return next((module.__name__ for module, variables in self._recorded if _is_changed(module, variables)), "")


def _is_changed(module: ModuleType, recorded: dict[str, object]) -> bool:
    """Return whether a variable has changed or was added; an import adds the module to its package."""
    variables = vars(module)
    try:
        if not recorded.items() <= variables.items():
            return True
    except Exception:
        # a different value whose comparison with the recorded one fails, such as an array
        return True
    return len(recorded) != len(variables) and not all(
        isinstance(variables[name], ModuleType) for name in variables.keys() - recorded.keys()
    )


class WorkerState:
    """State of this process before its first task. Linux only."""

    def __init__(self, global_variables: GlobalVariables) -> None:
        """Record the state of this process, which has applied its limits."""
        self._global_variables = global_variables
        self._values = _read_values()
        self._mapped_bytes = read_mapped_bytes(os.getpid())

    def find_change(self) -> str:
        """Free objects in reference cycles, and return the name of a part of the state that the task changed, or "".

        Modules that the task imported do not count, because they are the same for all tasks.
        """
        gc.collect()
        values = _read_values()
        changed = next((name for name, value in self._values.items() if values[name] != value), "")
        if changed or _has_children():
            return changed or "child processes"
        if read_mapped_bytes(os.getpid()) - self._mapped_bytes > MAX_GROWTH_BYTES:
            return "memory"
        if time.process_time() > MAX_REUSED_CPU_S:
            return "processor time"
        return self._global_variables.find_change()


def _read_values() -> Mapping[str, object]:
    """Return the state of the process and of its interpreter, without that of modules, by name."""
    mask = os.umask(0)
    os.umask(mask)
    return {
        "working directory": Path.cwd(),
        "umask": mask,
        "environment": dict(os.environ),
        "open files": _read_descriptors(),
        "threads": sorted(os.listdir("/proc/self/task")),
        "resource limits": _read_limits(),
        "signal handlers": [signal.getsignal(number) for number in signal.valid_signals()],
        "blocked signals": signal.pthread_sigmask(signal.SIG_BLOCK, ()),
        "timers": [signal.getitimer(kind)[0] > 0 for kind in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL)],
        "priority": os.getpriority(os.PRIO_PROCESS, 0),
        "locale": locale.setlocale(locale.LC_ALL),
        "import system": ([*sys.path], [*sys.meta_path], [*sys.path_hooks]),
        "streams": (sys.stdin, sys.stdout, sys.stderr),
        "interpreter": (sys.getrecursionlimit(), sys.gettrace(), sys.getprofile(), sys.excepthook, sys.displayhook),
        "garbage collector": (gc.isenabled(), gc.get_threshold(), [*gc.callbacks]),
        "warnings": [*warnings.filters],
    }


def _read_descriptors() -> dict[str, str]:
    """Return the target of each descriptor, except that of the listing itself, which no longer exists."""
    targets = {}
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            targets[number] = os.fspath(Path(f"/proc/self/fd/{number}").readlink())
    return targets


def _read_limits() -> list[tuple[int, ...]]:
    """Return all resource limits; for those that each task sets anew, only the hard limit."""
    import resource

    renewed = (resource.RLIMIT_AS, resource.RLIMIT_CPU)
    return [resource.getrlimit(kind)[kind in renewed :] for kind in range(resource.RLIMIT_RTPRIO)]


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True
