"""Idle workers that have run a task, each reserved for the caller of that task."""

# why this way: docs/decisions/0026-workers-of-one-caller.md
from __future__ import annotations

import contextlib
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator

from msgspec import Struct

from meshhub.engine.worker_process import Worker

_MAX_IDLE_S = 5.0
"""Seconds without a task after which a worker is ended, because its memory still holds parts of the last model."""

_MAX_ABSENCE_S = 60.0
"""Seconds between two tasks of a caller after which the second is treated as its first."""

_MAX_CALLERS = 10_000
"""Callers to remember, because anyone may call from many addresses."""

_END_S = 60.0
"""Seconds to wait for the end of a worker."""


class _Reserved(Struct, frozen=True):
    caller: str
    worker: Worker
    expires: float


class ReservedWorkers:
    """Stopped workers, by caller. Safe to use from several threads.

    A worker runs tasks of one caller only. While it is reserved, it is stopped and runs no code.
    """

    def __init__(self, count: int) -> None:
        """Reserve at most `count` workers."""
        self._count = count
        self._reserved: list[_Reserved] = []
        self._seen: OrderedDict[str, float] = OrderedDict()
        self.forget()

    def __iter__(self) -> Iterator[Worker]:
        """Return the workers."""
        return iter([reserved.worker for reserved in self._reserved])

    def forget(self) -> None:
        """Begin without workers, because those that a forked child inherits belong to the parent."""
        for worker in self:
            worker.close_pipe()
        self._reserved.clear()
        self._seen.clear()
        self._changed = threading.Condition()
        self._is_closed = self._is_watched = False

    def has_seen(self, caller: str) -> bool:
        """Return whether a caller had a task within the last minute, and record that it has one now.

        Most callers of a public service come once. For them, the record of the worker's state, its comparison and its
        idle memory would be wasted.
        """
        if not caller:
            return False
        now = time.monotonic()
        with self._changed:
            last = self._seen.pop(caller, -math.inf)
            self._seen[caller] = now
            if len(self._seen) > _MAX_CALLERS:
                self._seen.popitem(last=False)
        return now - last < _MAX_ABSENCE_S

    def take(self, caller: str) -> Worker | None:
        """Return a worker of a caller, which runs again; None if the caller has none."""
        with self._changed:
            # the latest, so that the others expire
            for reserved in reversed(self._reserved):
                if reserved.caller == caller:
                    self._reserved.remove(reserved)
                    reserved.worker.thaw()
                    return reserved.worker
        return None

    def add(self, caller: str, worker: Worker) -> None:
        """Reserve a stopped worker for the next task of a caller. End the oldest worker if there are too many."""
        surplus = None
        with self._changed:
            self._reserved.append(_Reserved(caller, worker, time.monotonic() + _MAX_IDLE_S))
            if self._is_closed or len(self._reserved) > self._count:
                surplus = self._reserved.pop(0).worker
            elif not self._is_watched:
                # RuntimeError: no thread can be started; the next call tries again
                with contextlib.suppress(RuntimeError):
                    threading.Thread(target=self._end_expired, daemon=True).start()
                    self._is_watched = True
        if surplus is not None:
            surplus.end(_END_S)

    def close(self) -> None:
        """End all workers, also those that are added later."""
        with self._changed:
            self._is_closed = True
            workers = [*self]
            self._reserved.clear()
            self._changed.notify()
        for worker in workers:
            worker.end(_END_S)

    def _end_expired(self) -> None:
        """End each worker that has been idle for too long; return when none is left."""
        while True:
            with self._changed:
                if not self._reserved:
                    self._is_watched = False
                    return
                oldest = self._reserved[0]
                self._changed.wait(max(0.0, oldest.expires - time.monotonic()))
                if oldest.expires > time.monotonic() or oldest not in self._reserved:
                    continue
                self._reserved.remove(oldest)
            oldest.worker.end(_END_S)
