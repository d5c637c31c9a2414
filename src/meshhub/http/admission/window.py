"""Moving window, in the memory of this process.

The package `limits` has one too. After each request, that window scans every caller and switches to a thread for each:
with 1000 callers, this took 20 of every 25 milliseconds.
"""

# why this way: docs/decisions/0018-rates-in-memory.md
from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections.abc import Callable

MINUTE_S = 60.0
"""Seconds; plans limit requests per minute."""

DAY_S = 86_400.0
"""Seconds; publishable keys also limit requests per day."""

_SWEEP_INTERVAL_S = 15.0
"""Seconds between two scans for callers without recent requests; bounds the cost of a scan per request."""


class Window:
    """Times of each caller's recent requests.

    Use it on one event loop only. No method awaits, so no other request can run in between.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, seconds: float = MINUTE_S) -> None:
        """Count the requests of some seconds; read the time in seconds from `clock`."""
        self._clock = clock
        self._seconds = seconds
        self._times: dict[str, list[float]] = {}
        self._sweep_at = 0.0

    def __len__(self) -> int:
        """Return the number of callers in memory."""
        return len(self._times)

    def query(self, identity: str, limit: int, *, count: bool) -> tuple[bool, int, int]:
        """Check a request against the limit, and count it if it passes and `count` is set.

        Returns:
            Whether the request passes; how many more would pass; seconds until the oldest request leaves the window.
        """
        now = self._clock()
        self._sweep(now)
        times = self._times.get(identity, [])
        del times[: bisect_right(times, now - self._seconds)]
        passed = len(times) < limit
        if passed and count:
            times.append(now)
            self._times[identity] = times
        resets_in = math.ceil(times[0] + self._seconds - now) if times else 0
        return passed, max(0, limit - len(times)), resets_in

    def _sweep(self, now: float) -> None:
        """Remove callers without a request in the window."""
        if now < self._sweep_at:
            return
        self._sweep_at = now + _SWEEP_INTERVAL_S
        oldest = now - self._seconds
        # a query that does not count may leave an empty list
        self._times = {identity: times for identity, times in self._times.items() if times and times[-1] > oldest}
