"""Slots of an engine: the right to run a task, and the queue of the tasks that wait for it."""

from __future__ import annotations

import threading

from meshhub.errors import ServerBusy, ShuttingDown


class TaskSlots:
    """A fixed number of slots. Safe to use from several threads."""

    def __init__(self, count: int, queue: int | None) -> None:
        """Create free slots.

        Args:
            count: Maximum number of tasks that run in parallel.
            queue: Tasks that may wait for a slot; None for any number, without a deadline.
        """
        self._count = count
        self._queue = queue
        self.is_closed = False
        self.forget_tasks()

    def forget_tasks(self) -> None:
        """Free all slots, because the tasks of the parent do not run in a forked child."""
        self._changed = threading.Condition()
        self._running = 0
        self._waiting = 0

    def acquire(self, timeout_s: float | None) -> None:
        """Take a slot; wait for it if none is free.

        Raises:
            ServerBusy: The queue is full, or no slot became free in time.
            ShuttingDown: The slots are closed.
        """
        with self._changed:
            if self._running >= self._count:
                self._wait(timeout_s)
            if self.is_closed:
                raise shutdown_error()
            self._running += 1

    def release(self) -> None:
        """Return a slot."""
        with self._changed:
            self._running -= 1
            self._changed.notify()

    def close(self) -> None:
        """Reject further tasks."""
        with self._changed:
            self.is_closed = True
            self._changed.notify_all()

    def _wait(self, timeout_s: float | None) -> None:
        if self._queue is not None and self._waiting >= self._queue:
            raise ServerBusy(
                f"{self._running} conversions are running and {self._waiting} are waiting; try again in a moment"
            )
        self._waiting += 1
        try:
            is_ready = self._changed.wait_for(
                lambda: self.is_closed or self._running < self._count, None if self._queue is None else timeout_s
            )
        finally:
            self._waiting -= 1
        if not is_ready:
            raise ServerBusy("all workers stayed busy until the timeout; try again in a moment")


def shutdown_error() -> ShuttingDown:
    """Return the error of a task that arrives after the engine was closed."""
    return ShuttingDown("the service is shutting down; try again in a moment")
