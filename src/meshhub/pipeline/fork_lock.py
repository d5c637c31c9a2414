"""Lock that protects work which a forked child cannot finish."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class ForkLock:
    """Reentrant lock that no other thread holds while this process forks.

    A child has only the thread that forked. A lock that another thread held at that moment stays locked in the child
    for ever, and Python does not release its own: those of imports, of `tempfile` and of `multiprocessing`.
    """

    def __init__(self) -> None:
        """Create a lock that lives as long as the process: handlers of forks cannot be removed."""
        self._lock = threading.RLock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=lambda: self._lock.acquire(),
                after_in_parent=lambda: self._lock.release(),
                after_in_child=self._renew,
            )

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock."""
        # a child that is forked inside leaves the block with the lock of its parent
        with self._lock:
            yield

    def _renew(self) -> None:
        self._lock = threading.RLock()
