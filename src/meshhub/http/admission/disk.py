"""Disk space for uploads: reservations by request, the wait for space, and which request is rejected for another."""

from __future__ import annotations

import asyncio
import itertools
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from meshhub.errors import ServerBusy
from meshhub.http.context import Context

_SPACE_TIMEOUT_S = 4.0
"""Seconds to wait for space; many clients give up after 5 seconds without progress."""

_POLL_INTERVAL_S = 0.05
"""Seconds between two checks of the free space, because other programs change it too."""


@dataclass(eq=False)
class _Reservation:
    """Disk space of one request.

    Attributes:
        promised: Bytes that are still to be written.
        stored: Bytes of the response, on disk until the client has received it.
        is_waiting: Whether the request waits for space.
        is_rejected: Whether the request must end in favor of another one.
    """

    promised: int = 0
    stored: int = 0
    is_waiting: bool = False
    is_rejected: bool = False

    @property
    def total(self) -> int:
        """Bytes that count against the caller."""
        return self.promised + self.stored


class Disk:
    """Disk space that requests reserve for their uploads and results, first come, first served.

    If the space for an upload is not free, another upload is rejected: one that came later, or one of a caller who uses
    more space. If there is none, the request waits for some seconds.
    """

    def __init__(self, get_folder: Callable[[], Path], keep_free_bytes: int) -> None:
        """Measure the free space in the folder of uploads and results, and leave `keep_free_bytes` of it free."""
        self._get_folder = get_folder
        self._keep_free_bytes = keep_free_bytes
        # in order of arrival
        self._reservations: dict[Context, _Reservation] = {}

    @property
    def promised(self) -> int:
        """Bytes promised to all requests."""
        return sum(reservation.promised for reservation in self._reservations.values())

    def free_bytes(self) -> int:
        """Return the bytes that uploads may still use, including promised bytes."""
        return shutil.disk_usage(self._get_folder()).free - self._keep_free_bytes

    async def reserve(self, context: Context, size: int, *, required: int) -> None:
        """Wait until `required` bytes are free, then promise `size` of them until the response. Raises ServerBusy."""
        if context not in self._reservations:
            self._reservations[context] = _Reservation()
            context.cleanup.callback(self._reservations.pop, context, None)
        reservation = self._reservations[context]
        deadline = asyncio.get_running_loop().time() + _SPACE_TIMEOUT_S
        try:
            while (is_queued := self._is_queued(context)) or self.free_bytes() < self.promised + required:
                if not is_queued:
                    self._reject_for(context, required)
                has_others = any(other.total for other in self._reservations.values() if other is not reservation)
                is_late = asyncio.get_running_loop().time() >= deadline
                if not has_others or reservation.is_rejected or is_late:
                    raise self.no_space()
                reservation.is_waiting = True
                await asyncio.sleep(_POLL_INTERVAL_S)
        finally:
            reservation.is_waiting = False
        reservation.promised += size

    def check(self) -> None:
        """Check that there would be space for uploads once the current requests end. Raises ServerBusy.

        If requests fill the disk for a while, the service is busy but not unhealthy.
        """
        if self.free_bytes() + self.promised < 0:
            raise ServerBusy("the service has too little disk space for uploads now")

    def record_response(self, context: Context, size: int) -> None:
        """Record that a response of `size` bytes is on disk, and that the request writes no more."""
        if context in self._reservations:
            reservation = self._reservations[context]
            reservation.promised, reservation.stored = 0, reservation.promised + size

    def is_rejected(self, context: Context) -> bool:
        """Return whether a request was rejected in favor of another one."""
        return context in self._reservations and self._reservations[context].is_rejected

    @staticmethod
    def no_space() -> ServerBusy:
        """Return the error for a request without space."""
        return ServerBusy("the service has too little disk space for this upload now; try again in a moment")

    def _is_queued(self, context: Context) -> bool:
        """Return whether an earlier request waits for space."""
        earlier = itertools.takewhile(lambda other: other is not context, self._reservations)
        return any(self._reservations[other].is_waiting for other in earlier)

    def _reject_for(self, context: Context, required: int) -> None:
        """Reject an upload in favor of this request: one that came later, or one whose caller holds more.

        If there are several, reject the newest one of the caller that holds the most.
        """
        if any(entry.is_rejected for entry in self._reservations.values()):
            # a rejected upload frees its space with its response
            return
        totals: Counter[str] = Counter()
        for other, reservation in self._reservations.items():
            totals[other.identity] += reservation.total
        is_later = False
        victim: tuple[int, _Reservation, asyncio.Timeout] | None = None
        for other, reservation in self._reservations.items():
            is_later |= other is context
            timeout = other.receiving
            if other is context or timeout is None or timeout.expired() or not reservation.promised:
                continue
            total = totals[other.identity]
            can_reject = is_later or total > totals[context.identity] + required
            if can_reject and (victim is None or total >= victim[0]):
                victim = total, reservation, timeout
        if victim is not None:
            _, reservation, timeout = victim
            reservation.is_rejected = True
            timeout.reschedule(0)
