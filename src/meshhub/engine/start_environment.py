"""Environment in which worker processes and fork servers start."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator

SINGLE_THREADED = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "ARROW_IO_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    "MALLOC_ARENA_MAX": "2",
}
"""Environment of the fork server, which must not have threads when it forks. Each further arena of glibc would take 64
MB of the limited address space of a process.
"""


@contextlib.contextmanager
def set_environment(values: dict[str, str]) -> Iterator[None]:
    """Set environment variables for processes that are started inside; keep those that are already set."""
    added = [name for name in values if name not in os.environ]
    os.environ.update({name: values[name] for name in added})
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


@contextlib.contextmanager
def block_interrupt() -> Iterator[None]:
    """Block SIGINT in processes that are started inside; Ctrl-C goes to all, and each would print a traceback."""
    if sys.platform == "win32":
        yield
        return
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)
