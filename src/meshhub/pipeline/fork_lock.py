"""Locks around work that a forked child could not finish."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache


class ForkLock:
    """Reentrant lock that no other thread holds while this process forks.

    A child has only the thread that forked. If another thread holds a lock at that moment, the lock stays locked in the
    child forever. Python does not release its own locks there: those of imports, of `tempfile` and of
    `multiprocessing`.
    """

    def __init__(self, order: int) -> None:
        """Create a lock that lives as long as the process.

        Args:
            order: A fork acquires all locks in ascending order. A thread that holds a lock may acquire one of a
                higher order, but never one of a lower order, because two threads could then wait for each other; for
                the same reason, it may fork only with the lock of the lowest order.
        """
        self._lock = threading.RLock()
        self._order = order
        _LOCKS.append(self)
        _LOCKS.sort(key=lambda lock: lock._order)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock."""
        # if a child is forked inside the block, it leaves the block with the lock of its parent
        with self._lock:
            yield


_LOCKS: list[ForkLock] = []

_acquired: list[tuple[int, tuple[ForkLock, ...]]] = []
"""Thread that forks, and the locks that it acquired, for each call of `_acquire_all`."""


def _acquire_all() -> None:
    locks = tuple(_LOCKS)
    for lock in locks:
        lock._lock.acquire()
    _acquired.append((threading.get_ident(), locks))


def _release_all() -> None:
    # functions that were registered during a fork are called after it, but were not before it
    if _acquired and _acquired[-1][0] == threading.get_ident():
        for lock in reversed(_acquired.pop()[1]):
            lock._lock.release()


def _renew_all() -> None:
    _acquired.clear()
    for lock in _LOCKS:
        lock._lock = threading.RLock()


IMPORTING = ForkLock(3)
"""Lock for imports in a conversion, because Python's own lock of a module would stay locked in a forked child. """


@cache
def precede_executors() -> None:
    """Let a fork acquire these locks before that of `concurrent.futures`; call this before a thread forks with a lock.

    A fork acquires first what was registered last. If the executors are imported after this module, a thread that forks
    holds their lock and waits for these, and a thread that forks with one of these waits for theirs.
    """
    import concurrent.futures.thread  # noqa: F401

    _register()


def _register() -> None:
    os.register_at_fork(before=_acquire_all, after_in_parent=_release_all, after_in_child=_renew_all)


if hasattr(os, "register_at_fork"):
    _register()
