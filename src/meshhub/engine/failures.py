"""Failures of third-party hooks, and the hooks that are disabled for a while because of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

from msgspec import Struct

CALLERS_COUNT = 3
"""Callers for whom a hook must fail before it is disabled for all, so that one caller cannot disable it for others."""

OFF_S = 60.0
"""Seconds for which a hook is disabled; it is tried again afterwards."""

_REMEMBERED_S = 600.0
"""Seconds for which a failure counts, so that rare failures over days do not add up."""


class HookName(Struct, frozen=True):
    """Hook of a plug-in; `title`, for messages and metrics, is the hook, or "sniff" and the format's id."""

    plugin: str
    origin: str
    title: str


class _Off(Struct, frozen=True):
    until: float
    why: str


class Failures:
    """Failures of hooks, counted by caller. Safe to use from several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Start without failures; `clock` returns seconds."""
        self._clock = clock
        self._lock = threading.Lock()
        self._times: dict[HookName, dict[str, list[float]]] = {}
        self._off: dict[HookName, _Off] = {}

    def add(self, hook: HookName, caller: str, why: str) -> bool:
        """Count a failure; return whether it disables the hook for all callers."""
        now = self._clock()
        with self._lock:
            callers = {
                name: recent
                for name, times in self._times.get(hook, {}).items()
                if (recent := [moment for moment in times if moment > now - _REMEMBERED_S])
            }
            callers[caller] = [*callers.get(caller, ()), now][-CALLERS_COUNT:]
            self._times[hook] = callers
            if len(callers) < CALLERS_COUNT:
                return False
            # restart the count, because the first failure after OFF_S must not disable the hook again
            del self._times[hook]
            self._off[hook] = _Off(now + OFF_S, why)
            return True

    def is_off(self, hook: HookName, caller: str) -> bool:
        """Return whether a hook is disabled now, either for all callers or for this one, whose calls keep failing."""
        now = self._clock()
        with self._lock:
            times = self._times.get(hook, {}).get(caller, [])
            fails_for_caller = len(times) == CALLERS_COUNT and times[-1] > now - OFF_S
            return fails_for_caller or hook in self._off_at(now)

    def is_off_for_all(self, hook: HookName) -> bool:
        """Return whether a hook is disabled now for all callers."""
        with self._lock:
            return hook in self._off_at(self._clock())

    def forget(self, hook: HookName) -> None:
        """Drop the failures of a hook that is not disabled."""
        with self._lock:
            self._times.pop(hook, None)

    def off(self) -> Iterator[tuple[HookName, str]]:
        """Yield the hooks that are disabled for all callers, each with its last failure."""
        with self._lock:
            hooks = self._off_at(self._clock())
        yield from ((hook, off.why) for hook, off in hooks.items())

    def _off_at(self, now: float) -> dict[HookName, _Off]:
        self._off = {hook: off for hook, off in self._off.items() if off.until > now}
        return self._off
