"""Threads for the hooks of installed plug-ins: calls with a time limit, and listeners for which nothing waits."""

# why this way: docs/decisions/0053-line-of-trust.md
from __future__ import annotations

import contextlib
import math
import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import TypeVar

from meshhub.pipeline.fork_lock import ForkLock

T = TypeVar("T")

MAX_LATE_COUNT = 100
"""Calls of one plug-in that may still run after their time limit; each holds a thread, which cannot be stopped."""

_MAX_WAITING_REPORTS_COUNT = 1000
"""Maximum reports that wait for the listener of one plug-in; further ones are dropped to bound the memory."""

_COUNTING = ForkLock(4)
"""Held while late calls are counted."""


class LimitedCalls:
    """Calls of hooks, each for a limited time. Safe to use from several threads."""

    def __init__(self) -> None:
        """Start without late calls."""
        self._late: dict[str, list[threading.Thread]] = {}

    def call(self, plugin: str, timeout_s: float, function: Callable[[], T]) -> T:
        """Call a function of a plug-in in a thread, and return its result.

        Raises:
            TimeoutError: The call took longer, or many earlier ones have not ended. It goes on in its thread.
            BaseException: The function raised it.
        """
        if len(self._count_late(plugin)) >= MAX_LATE_COUNT:
            raise TimeoutError(f"was not called, because {MAX_LATE_COUNT} earlier calls have not ended")
        results: list[T] = []
        errors: list[BaseException] = []

        def run() -> None:
            try:
                results.append(function())
            except BaseException as error:
                errors.append(error)

        # daemonic, so that the program can end
        thread = threading.Thread(target=copy_context().run, args=(run,), name=f"meshhub-{plugin}", daemon=True)
        thread.start()
        thread.join(timeout_s)
        for error in errors:
            raise error
        for result in results:
            return result
        self._count_late(plugin, thread)
        raise TimeoutError(f"took longer than {timeout_s:g} s")

    def _count_late(self, plugin: str, *threads: threading.Thread) -> list[threading.Thread]:
        """Add late calls of a plug-in, and return those that still run."""
        with _COUNTING.held():
            late = self._late[plugin] = [
                thread for thread in (*self._late.get(plugin, ()), *threads) if thread.is_alive()
            ]
        return late


class ListenerThread:
    """Thread that calls the listener of one plug-in for one report after the other; other listeners do not wait."""

    def __init__(self) -> None:
        """Start the thread."""
        self._calls: queue.Queue[Callable[[], None] | None] = queue.Queue(_MAX_WAITING_REPORTS_COUNT)
        self._thread = threading.Thread(target=self._run, name="meshhub-listener", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs; not in a forked child."""
        return self._thread.is_alive()

    def add(self, call: Callable[[], None]) -> bool:
        """Call the listener later. Return False if too many reports wait."""
        try:
            self._calls.put_nowait(call)
        except queue.Full:
            return False
        return True

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            call()


def finish(listeners: Sequence[ListenerThread], timeout_s: float | None) -> None:
    """Wait until the listeners have handled their waiting reports, for `timeout_s` at most."""
    deadline = math.inf if timeout_s is None else time.monotonic() + timeout_s
    for listener in listeners:
        with contextlib.suppress(queue.Full):
            listener._calls.put(None, timeout=_seconds_until(deadline))
    for listener in listeners:
        listener._thread.join(_seconds_until(deadline))


def _seconds_until(deadline: float) -> float | None:
    return None if deadline == math.inf else max(0.0, deadline - time.monotonic())
