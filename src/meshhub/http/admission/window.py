"""A moving window of one minute, kept in this process.

The package `limits` has one too. It looks through every caller it knows after each request, with a
hop to a thread for each: from a thousand callers on that took 20 of every 25 milliseconds.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections.abc import Callable

SECONDS = 60.0

_SWEEP_SECONDS = 15.0


class Window:
    """When each caller's last requests came. For one event loop: nothing in it waits, so nothing comes between."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` tells seconds."""
        self._clock = clock
        self._times: dict[str, list[float]] = {}
        self._sweep_at = 0.0

    def __len__(self) -> int:
        """How many callers are known."""
        return len(self._times)

    def ask(self, identity: str, most: int, *, count: bool) -> tuple[bool, int, int]:
        """Whether a request passes, how many more would, and in how many seconds the oldest one is forgotten.

        Only what passes is counted, and only if it should be.
        """
        now = self._clock()
        self._sweep(now)
        times = self._times.get(identity, [])
        del times[: bisect_right(times, now - SECONDS)]
        passed = len(times) < most
        if passed and count:
            times.append(now)
            self._times[identity] = times
        resets_in = math.ceil(times[0] + SECONDS - now) if times else 0
        return passed, max(0, most - len(times)), resets_in

    def _sweep(self, now: float) -> None:
        """Forget callers who have not come for a minute."""
        if now < self._sweep_at:
            return
        self._sweep_at = now + _SWEEP_SECONDS
        old = now - SECONDS
        # a look that does not count may have left none
        self._times = {identity: times for identity, times in self._times.items() if times and times[-1] > old}
