"""Which hooks of third parties are not called for a while, because they failed before."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

from msgspec import Struct

CALLERS_COUNT = 3
"""Callers for whom a hook must fail before it is off for all: one caller alone cannot switch it off for others."""

OFF_S = 60.0
"""Seconds for which a hook is off."""

_REMEMBERED_S = 600.0
"""Seconds for which a failure counts: rare failures over days do not add up."""


class HookName(Struct, frozen=True):
    """A hook of a plug-in. `title` is for messages and metrics: the hook, or "sniff" with the format's id."""

    plugin: str
    origin: str
    title: str


class _Off(Struct, frozen=True):
    until: float
    why: str


class Failures:
    """Counts the failures of hooks by caller. Safe to use from several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` returns seconds."""
        self._clock = clock
        self._lock = threading.Lock()
        self._times: dict[HookName, dict[str, list[float]]] = {}
        self._off: dict[HookName, _Off] = {}

    def add(self, hook: HookName, caller: str, why: str) -> bool:
        """Count a failure. Return whether it puts the hook out of use for all callers."""
        now = self._clock()
        with self._lock:
            known = {
                name: recent
                for name, times in self._times.get(hook, {}).items()
                if (recent := [moment for moment in times if moment > now - _REMEMBERED_S])
            }
            known[caller] = [*known.get(caller, ()), now][-CALLERS_COUNT:]
            self._times[hook] = known
            if len(known) < CALLERS_COUNT:
                return False
            # after its time off it is like new: the first failure then must not switch it off again
            del self._times[hook]
            self._off[hook] = _Off(now + OFF_S, why)
            return True

    def is_off(self, hook: HookName, caller: str) -> bool:
        """Return whether a hook must not be called now, for anybody or for this caller, whose calls keep failing."""
        now = self._clock()
        with self._lock:
            times = self._times.get(hook, {}).get(caller, [])
            own = len(times) == CALLERS_COUNT and times[-1] > now - OFF_S
            return own or hook in self._off_at(now)

    def is_off_for_all(self, hook: HookName) -> bool:
        """Return whether a hook must not be called now for any caller."""
        with self._lock:
            return hook in self._off_at(self._clock())

    def forget(self, hook: HookName) -> None:
        """Forget the failures of a hook that is not off."""
        with self._lock:
            self._times.pop(hook, None)

    def off(self) -> Iterator[tuple[HookName, str]]:
        """Yield the hooks that are off for all callers, and how each failed last."""
        with self._lock:
            found = self._off_at(self._clock())
        yield from ((hook, off.why) for hook, off in found.items())

    def _off_at(self, now: float) -> dict[HookName, _Off]:
        self._off = {hook: off for hook, off in self._off.items() if off.until > now}
        return self._off
