"""Steps that repeat until they are stopped."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from meshhub.errors import JobStoreUnavailable, ShuttingDown

log = logging.getLogger("meshhub.http")

_RETRY_S = 1.0
"""Seconds until another attempt after a failure."""

Step = tuple[Callable[[], Awaitable[None]], float]
"""Function to repeat, and the seconds between two calls."""


class Loops:
    """Steps that repeat; for one event loop."""

    def __init__(self) -> None:
        """Begin without steps."""
        self._tasks: list[asyncio.Task[None]] = []
        self._is_failing = False

    @property
    def is_running(self) -> bool:
        """Whether the steps were started."""
        return bool(self._tasks)

    def start(self, *steps: Step) -> None:
        """Start to repeat steps."""
        self._tasks += [asyncio.create_task(self._repeat(step, pause_s)) for step, pause_s in steps]

    async def stop(self) -> None:
        """Stop all steps, and wait for their ends."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _repeat(self, step: Callable[[], Awaitable[None]], pause_s: float) -> None:
        """Repeat a step; log a failure, and try again."""
        while True:
            try:
                await step()
            except ShuttingDown:
                return
            except Exception as error:
                self._log_failure(error)
                await asyncio.sleep(_RETRY_S)
            else:
                self._is_failing = False
            await asyncio.sleep(pause_s)

    def _log_failure(self, error: Exception) -> None:
        if isinstance(error, JobStoreUnavailable):
            if not self._is_failing:
                log.warning("%s; jobs wait until it is available", error.message)
            self._is_failing = True
        else:
            log.error("a repeated step failed, and continues", exc_info=error)
