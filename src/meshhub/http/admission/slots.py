"""Slots for conversions and hooks, and the queue for them. Slots are shared among callers, not among requests."""

# why this way: docs/decisions/0008-turns.md
from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from meshhub.engine.task_slots import shutdown_error
from meshhub.errors import MeshhubError, ServerBusy
from meshhub.service.sharing import LONG_S, SlotLimits, SlotUse, has_key


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
    """

    caller: str
    long_at: float


@dataclass(eq=False)
class _Waiting:
    """Ticket in the queue, and the future that ends its wait."""

    ticket: Ticket
    slot: asyncio.Future[Slot] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class SlotQueue:
    """Slots that callers share by the rule of `service.sharing`, and a queue for the requests without a slot; for one
    event loop.

    The next slot goes to the caller with the fewest slots; of several, to the caller whose last slot was granted
    longest ago. When the queue is full, the newest request of the caller with the most queued requests is rejected; of
    several callers, one without a key.
    """

    def __init__(self, limits: SlotLimits, queue_size: float, long_s: float = LONG_S) -> None:
        """Create free slots.

        Args:
            limits: Numbers of slots.
            queue_size: Maximum number of requests that wait for their first slot.
            long_s: Seconds after which a conversion counts as long.
        """
        self._limits = limits
        self._queue_size = queue_size
        self._long_s = long_s
        self._waiting: list[_Waiting] = []
        # in the order of `long_at`
        self._slots: dict[Slot, None] = {}
        self._held: Counter[str] = Counter()
        self._last_grants: dict[str, int] = {}
        self._grant_count = 0
        self._timer: asyncio.TimerHandle | None = None
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
        if self._queue_size == 0 or (queued.total() >= self._queue_size and not can_displace):
            raise _queue_full()

    async def acquire(self, ticket: Ticket, deadline: float | None) -> Slot:
        """Wait for a slot until `deadline`, in the event loop's clock. Raises ServerBusy, ShuttingDown."""
        if self._is_stopped:
            raise shutdown_error()
        if ticket.rejection is not None:
            raise ticket.rejection
        entry = _Waiting(ticket)
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
        while ready := [
            entry for entry in self._waiting if not entry.slot.done() and self.can_start(entry.ticket.caller)
        ]:
            entry = min(ready, key=self._rank)
            self._waiting.remove(entry)
            caller = entry.ticket.caller
            self._held[caller] += 1
            self._grant_count += 1
            self._last_grants[caller] = self._grant_count
            entry.ticket.has_started = True
            slot = Slot(caller, asyncio.get_running_loop().time() + self._long_s)
            self._slots[slot] = None
            entry.slot.set_result(slot)
        self._set_timer()

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
        if len(queued) <= self._queue_size:
            return
        counts = Counter(ticket.caller for ticket in queued)
        newest = max(reversed(queued), key=lambda ticket: (counts[ticket.caller], not has_key(ticket.caller)))
        newest.rejection = _queue_full()
        self._reject([entry for entry in self._waiting if entry.ticket is newest], _queue_full)

    def _reject(self, entries: list[_Waiting], make_error: Callable[[], MeshhubError]) -> None:
        for entry in list(entries):
            self._waiting.remove(entry)
            if not entry.slot.done():
                entry.slot.set_exception(make_error())


def _queue_full() -> MeshhubError:
    return ServerBusy("too many requests are waiting for a worker; try again in a moment")
