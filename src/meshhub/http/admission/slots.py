"""Slots for conversions and hooks, and the queue for them. Slots are shared among callers, not among requests."""

# why this way: docs/decisions/0008-turns.md
from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from meshhub.engine.task_slots import shutdown_error
from meshhub.errors import MeshhubError, ServerBusy
from meshhub.service.sharing import LONG_S, SlotLimits, SlotUse, has_key

_MAX_QUEUE_FACTOR = 8
"""Maximum requests in the queue, per request of its size; each has a connection, and its upload is on the disk."""

_MAX_WAIT_S = 10.0
"""Estimated seconds of waiting up to which the queue may be longer than its size."""

_MAX_RETRY_AFTER_S = 60
"""Maximum seconds after which a rejected request should be repeated."""

_MEAN_RATIO = 0.1
"""Weight of the latest conversion in the mean of durations."""

_PACE_COUNT, _MIN_PACE_COUNT = 256, 8
"""Latest ends of conversions, and fewest, whose distance is the pace of a busy service: four seconds of small ones. A
burst of uploads slows the next second."""

_START_S, _START_COUNT = 5.0, 64
"""Seconds of the first conversions, and how many, that say nothing about later ones, because workers start."""

_MAX_OVERTAKING_S = 10.0
"""Seconds for which others overtake a conversion whose memory is not free; then all that follow wait, too."""


@dataclass(eq=False)
class Ticket:
    """Request of a caller; it may use several slots.

    Attributes:
        caller: Rate limit key of the caller.
        has_started: Whether the request has had a slot; from then on a full queue does not reject it.
        rejection: Why the request gets no further slot.
    """

    caller: str
    has_started: bool = False
    rejection: MeshhubError | None = None


@dataclass(frozen=True, eq=False)
class Slot:
    """Right of a caller to run one conversion.

    Attributes:
        caller: Rate limit key of the caller.
        long_at: When the conversion counts as long, in the event loop's clock.
        memory_bytes: Memory that the conversion needs.
    """

    caller: str
    long_at: float
    memory_bytes: int


@dataclass(eq=False)
class _Waiting:
    """Ticket in the queue, the memory of its conversion, and the future that ends its wait."""

    ticket: Ticket
    memory_bytes: int = 0
    since: float = field(default_factory=lambda: asyncio.get_running_loop().time())
    slot: asyncio.Future[Slot] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class SlotQueue:
    """Slots that callers share by the rule of `service.sharing`, and a queue for the requests without a slot; for one
    event loop.

    The next slot goes to the caller with the fewest slots; of several, to the caller whose last slot was granted
    longest ago. A conversion whose memory is not free waits, and others overtake it for some seconds.

    When the queue is full, and its requests will not all have slots within seconds, the newest request of the caller
    with the most queued requests is rejected; of several callers, one without a key.
    """

    def __init__(
        self,
        limits: SlotLimits,
        queue_size: float,
        long_s: float = LONG_S,
        memory_bytes: float = math.inf,
        least_s: float = math.inf,
    ) -> None:
        """Create free slots.

        Args:
            limits: Numbers of slots.
            queue_size: Maximum number of requests that wait for their first slot.
            long_s: Seconds after which a conversion counts as long.
            memory_bytes: Memory of all conversions together. One that needs more runs alone.
            least_s: Seconds of a small conversion, which the queue expects before one has ended.
        """
        self._least_s = least_s
        self._limits = limits
        self._queue_size = queue_size
        self._long_s = long_s
        self._memory_bytes = memory_bytes
        self._waiting: list[_Waiting] = []
        # in the order of `long_at`
        self._slots: dict[Slot, None] = {}
        self._held: Counter[str] = Counter()
        self._last_grants: dict[str, int] = {}
        self._grant_count = 0
        self._timer: asyncio.TimerHandle | None = None
        self._mean_s = 0.0
        self._ended_count = 0
        # while requests wait
        self._ends: deque[float] = deque(maxlen=_PACE_COUNT)
        self._is_stopped = False

    @property
    def running(self) -> int:
        """Number of slots in use."""
        return len(self._slots)

    @property
    def waiting(self) -> int:
        """Number of conversions that wait for a slot."""
        return len(self._waiting)

    def check(self, caller: str) -> None:
        """Check whether the queue would accept a new request of a caller. Raises ServerBusy, ShuttingDown."""
        if self._is_stopped:
            raise shutdown_error()
        if self.can_start(caller):
            return
        queued = Counter(ticket.caller for ticket in self._queued_tickets())
        own = queued[caller] + 1
        can_displace = any(
            count > own or (count == own and has_key(caller) and not has_key(other)) for other, count in queued.items()
        )
        if self._queue_size == 0 or (self._is_too_long(queued.total() + 1) and not can_displace):
            raise self._queue_full()

    async def acquire(self, ticket: Ticket, deadline: float | None, memory_bytes: int = 0) -> Slot:
        """Wait for a slot until `deadline`, in the event loop's clock. Raises ServerBusy, ShuttingDown."""
        if self._is_stopped:
            raise shutdown_error()
        if ticket.rejection is not None:
            raise ticket.rejection
        entry = _Waiting(ticket, memory_bytes)
        self._waiting.append(entry)
        self._grant_slots()
        if not entry.slot.done():
            self._shrink_queue()
        try:
            async with asyncio.timeout_at(deadline):
                return await entry.slot
        except BaseException as error:
            if entry.slot.done() and not entry.slot.cancelled() and entry.slot.exception() is None:
                self.release(entry.slot.result())
            with contextlib.suppress(ValueError):
                self._waiting.remove(entry)
            if isinstance(error, TimeoutError):
                raise ServerBusy("no worker was free in time; try again in a moment") from None
            raise

    def release(self, slot: Slot) -> None:
        """Return a slot, and grant it to the next request."""
        caller = slot.caller
        del self._slots[slot]
        now = asyncio.get_running_loop().time()
        if self._waiting:
            self._ends.append(now)
        else:
            self._ends.clear()
        seconds = now - (slot.long_at - self._long_s)
        self._ended_count += 1
        self._mean_s += (seconds - self._mean_s) * (_MEAN_RATIO if self._mean_s else 1)
        self._held[caller] -= 1
        self._grant_slots()
        if not self._held[caller]:
            del self._held[caller]
            if all(entry.ticket.caller != caller for entry in self._waiting):
                self._last_grants.pop(caller, None)

    def stop(self) -> None:
        """Reject all waiting and future requests."""
        self._is_stopped = True
        self._reject(self._waiting, shutdown_error)
        if self._timer is not None:
            self._timer.cancel()

    def can_start(self, caller: str) -> bool:
        """Return whether a slot is free for a caller now."""
        own_class = sum(count for other, count in self._held.items() if has_key(other) == has_key(caller))
        use = SlotUse(total=self.running, own=self._held[caller], own_class=own_class, long=self._count_long())
        return not self._is_stopped and self._limits.can_start(use)

    def _count_long(self) -> int:
        now = asyncio.get_running_loop().time()
        return sum(1 for _ in itertools.takewhile(lambda slot: slot.long_at <= now, self._slots))

    def _grant_slots(self) -> None:
        """Grant slots to requests that can start, and look again when the next conversion counts as long."""
        while (entry := self._choose()) is not None:
            self._waiting.remove(entry)
            caller = entry.ticket.caller
            self._held[caller] += 1
            self._grant_count += 1
            self._last_grants[caller] = self._grant_count
            entry.ticket.has_started = True
            slot = Slot(caller, asyncio.get_running_loop().time() + self._long_s, entry.memory_bytes)
            self._slots[slot] = None
            entry.slot.set_result(slot)
        self._set_timer()

    def _choose(self) -> _Waiting | None:
        """Return the next request that can start; None if there is none."""
        ready = [entry for entry in self._waiting if not entry.slot.done() and self.can_start(entry.ticket.caller)]
        used = sum(slot.memory_bytes for slot in self._slots)
        latest = asyncio.get_running_loop().time() - _MAX_OVERTAKING_S
        for entry in sorted(ready, key=self._rank):
            if not self._slots or used + entry.memory_bytes <= self._memory_bytes:
                return entry
            if entry.since < latest:
                return None
        return None

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        loop = asyncio.get_running_loop()
        next_long_at = next((slot.long_at for slot in self._slots if slot.long_at > loop.time()), None)
        if self._waiting and self._limits.overlap and next_long_at is not None:
            self._timer = loop.call_at(next_long_at, self._grant_slots)

    def _rank(self, entry: _Waiting) -> tuple[int, int]:
        caller = entry.ticket.caller
        return self._held[caller], self._last_grants.get(caller, 0)

    def _queued_tickets(self) -> list[Ticket]:
        """Return the requests that wait for their first slot, in order of arrival."""
        return list(dict.fromkeys(entry.ticket for entry in self._waiting if not entry.ticket.has_started))

    def _shrink_queue(self) -> None:
        """If the queue is too long, reject the newest request of the caller with the most queued."""
        queued = self._queued_tickets()
        if not self._is_too_long(len(queued)):
            return
        counts = Counter(ticket.caller for ticket in queued)
        newest = max(reversed(queued), key=lambda ticket: (counts[ticket.caller], not has_key(ticket.caller)))
        newest.rejection = self._queue_full()
        self._reject([entry for entry in self._waiting if entry.ticket is newest], self._queue_full)

    def _is_too_long(self, count: int) -> bool:
        """Return whether `count` requests are too many for the queue; short conversions may be more."""
        if count <= self._queue_size:
            return False
        return count > _MAX_QUEUE_FACTOR * self._queue_size or self._estimate_wait(count) > _MAX_WAIT_S

    def _estimate_wait(self, count: int) -> float:
        """Return the seconds until `count` requests have had a slot, if they take as long as the latest.

        The pace of a busy service counts: its conversions share cores, so that each takes longer than alone, and
        callers without a slot get additional ones.
        """
        shared = max(1, self._limits.shared)
        if len(self._ends) >= _MIN_PACE_COUNT:
            interval = (self._ends[-1] - self._ends[0]) / (len(self._ends) - 1)
        else:
            interval = (self._mean_s or math.inf) / shared
        if self._ended_count < _START_COUNT:
            interval = min(interval, self._first_s() / shared)
        return count * interval

    def _first_s(self) -> float:
        """Return the seconds of a conversion before enough have ended: those of a small one, unless some take long."""
        now = asyncio.get_running_loop().time()
        elapsed = [now - slot.long_at + self._long_s for slot in self._slots]
        return max([self._least_s, *(seconds for seconds in elapsed if seconds > _START_S)])

    def _queue_full(self) -> MeshhubError:
        error = ServerBusy("too many requests are waiting for a worker; try again in a moment")
        wait_s = min(_MAX_RETRY_AFTER_S, self._estimate_wait(len(self._queued_tickets())))
        error.retry_after_s = math.ceil(wait_s) or None
        return error

    def _reject(self, entries: list[_Waiting], make_error: Callable[[], MeshhubError]) -> None:
        for entry in list(entries):
            self._waiting.remove(entry)
            if not entry.slot.done():
                entry.slot.set_exception(make_error())
