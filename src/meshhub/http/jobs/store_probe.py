"""Readiness of the stores of jobs, which may not respond at all."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable

_CACHE_S = 5.0
"""Seconds for which a result is valid, because several systems may probe often."""

_WAIT_S = 0.9
"""Seconds that a probe waits for the check: longer than a database has, and shorter than probes of Kubernetes wait."""


class StoreProbe:
    """Check of the stores: at most one runs at a time, and none runs while the last result is valid."""

    def __init__(self, check: Callable[[], Awaitable[list[str]]]) -> None:
        """Use a function that returns the faults."""
        self._check = check
        self._running: asyncio.Task[None] | None = None
        self._last_run = -_CACHE_S
        self._faults: list[str] = []

    async def find_faults(self) -> list[str]:
        """Return the faults; those of the last check if this one takes too long."""
        if self._running is None and time.monotonic() - self._last_run >= _CACHE_S:
            self._running = asyncio.create_task(self._run())
        if self._running is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_WAIT_S):
                    await asyncio.shield(self._running)
        return self._faults

    async def _run(self) -> None:
        try:
            self._faults = await self._check()
        finally:
            self._last_run, self._running = time.monotonic(), None
