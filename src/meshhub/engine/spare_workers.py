"""Workers that were started ahead, and wait for their first task."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import deque
from collections.abc import Iterator

from meshhub.engine.process_start import Starter
from meshhub.engine.worker import serve
from meshhub.engine.worker_process import Worker
from meshhub.errors import EngineError, ShuttingDown

log = logging.getLogger(__name__)

_END_S = 60.0
"""Seconds to wait for the end of a killed process."""


class SpareWorkers:
    """Workers of both fork servers, each with or without the libraries. Safe to use from several threads."""

    def __init__(self, starter: Starter, count: int) -> None:
        """Keep `count` workers of each fork server that is in use; 0 if there is none."""
        self._starter = starter
        self._count = count
        self._workers: dict[bool, deque[Worker]] = {False: deque(), True: deque()}
        self.forget()

    def __iter__(self) -> Iterator[Worker]:
        """Return the workers."""
        return iter([worker for workers in self._workers.values() for worker in list(workers)])

    def forget(self) -> None:
        """Begin without workers, because those that a forked child inherits belong to the parent."""
        for worker in self:
            worker.close_pipe()
        for workers in self._workers.values():
            workers.clear()
        self._started: set[bool] = set()
        self._starting = {False: threading.Lock(), True: threading.Lock()}
        self._is_closed = False

    def start_first(self, *, with_libraries: bool) -> None:
        """Start a worker if this fork server has not yet started one, because it first imports modules for seconds.

        Raises:
            EngineError, OSError, EOFError: No process can be started.
        """
        if self._count and with_libraries not in self._started:
            with self._starting[with_libraries]:
                if with_libraries not in self._started:
                    self._workers[with_libraries].append(self._starter.start(serve, with_libraries=with_libraries))
                    self._started.add(with_libraries)

    def take(self, *, with_libraries: bool) -> Worker | None:
        """Return a worker; None if none waits."""
        # another thread may have taken the last one
        with contextlib.suppress(IndexError):
            return self._workers[with_libraries].popleft()
        return None

    def refill(self, *, with_libraries: bool) -> None:
        """Start the missing workers in a thread."""
        if len(self._workers[with_libraries]) < self._count and not self._starting[with_libraries].locked():
            # RuntimeError: no thread can be started; the next task tries again
            with contextlib.suppress(RuntimeError):
                threading.Thread(target=self._start_missing, args=(with_libraries,), daemon=True).start()

    def close(self) -> None:
        """End all workers, also those that are being started."""
        self._is_closed = True
        for workers in self._workers.values():
            while workers:
                # another thread may close, too
                with contextlib.suppress(IndexError):
                    workers.popleft().end(_END_S)

    def _start_missing(self, with_libraries: bool) -> None:
        workers = self._workers[with_libraries]
        try:
            while len(workers) < self._count and not self._is_closed:
                # one thread at a time, because otherwise each thread would start all missing workers
                with self._starting[with_libraries]:
                    if len(workers) < self._count:
                        workers.append(self._starter.start(serve, with_libraries=with_libraries))
                        self._started.add(with_libraries)
        except (OSError, EOFError, EngineError) as error:
            # the next task tries again
            if not isinstance(error, ShuttingDown):
                log.warning("no spare worker could be started", exc_info=error)
        if self._is_closed:
            self.close()
