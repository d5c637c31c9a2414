"""Lock that protects work which a forked child cannot finish."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class _Blocks:
    """Blocks that run now, counted by thread. A fork waits until every other thread has left them, or forks itself.

    While a fork waits, blocks may begin, and a thread in a block may fork: otherwise two threads could wait for each
    other.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._count: Counter[int] = Counter()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._acquire, after_in_parent=lambda: self._condition.release(), after_in_child=self._renew
            )

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Count the block."""
        thread = threading.get_ident()
        with self._condition:
            self._count[thread] += 1
        try:
            yield
        finally:
            with self._condition:
                self._count[thread] -= 1
                self._condition.notify_all()

    def _acquire(self) -> None:
        self._condition.acquire()
        thread = threading.get_ident()
        count, self._count[thread] = self._count[thread], 0
        self._condition.notify_all()
        while any(self._count.values()):
            self._condition.wait()
        self._count[thread] = count

    def _renew(self) -> None:
        self._condition = threading.Condition()
        # only the thread that forked lives on, perhaps in a block
        thread = threading.get_ident()
        self._count = Counter({thread: self._count[thread]})


_BLOCKS = _Blocks()


class ForkLock:
    """Reentrant lock that no other thread holds while this process forks.

    A child has only the thread that forked. A lock that another thread held at that moment stays locked in the child
    for ever, and Python does not release its own: those of imports, of `tempfile` and of `multiprocessing`.
    """

    def __init__(self) -> None:
        """Create a lock that lives as long as the process: handlers of forks cannot be removed."""
        self._lock = threading.RLock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock."""
        # a child that is forked inside leaves the block with the lock of its parent
        with self._lock, _BLOCKS.entered():
            yield

    def _renew(self) -> None:
        self._lock = threading.RLock()
