"""Disk for uploads: what each request holds, which one waits for room, and which one is rejected for another."""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from meshhub.errors import ServerBusy
from meshhub.http.context import Context

_WAIT_S = 4.0
"""Seconds to wait for room; many clients give up after 5 in which nothing moves."""

_LOOK_S = 0.05
"""Seconds between two looks at the disk, which other programs fill and empty too."""


@dataclass(eq=False)
class _Hold:
    """What one request holds.

    promised:  bytes that are still to come on the disk
    stored:    bytes that lie there until the answer is taken
    waiting:   whether it waits for room
    receiving: what ends the reception of its body; None before and after
    rejected:  whether it is to end for the sake of another request
    """

    promised: int = 0
    stored: int = 0
    waiting: bool = False
    receiving: asyncio.Timeout | None = None
    rejected: bool = False

    @property
    def held(self) -> int:
        """Bytes that count against the caller."""
        return self.promised + self.stored


class Disk:
    """Promises disk to requests, first come, first served.

    When there is no room for what arrives, an upload that came later is rejected, or one of a caller who holds
    more, downloads included. A request for which no other is rejected waits for some seconds.
    """

    def __init__(self, folder: Callable[[], Path], keep_free_bytes: int) -> None:
        """`folder` is where uploads and results lie."""
        self._folder = folder
        self._keep_free_bytes = keep_free_bytes
        # in the order of arrival
        self._holds: dict[Context, _Hold] = {}

    @property
    def promised(self) -> int:
        """Bytes promised to all requests."""
        return sum(hold.promised for hold in self._holds.values())

    def free_bytes(self) -> int:
        """Return the bytes that uploads may still take, promised ones included."""
        return shutil.disk_usage(self._folder()).free - self._keep_free_bytes

    async def take(self, context: Context, more: int, *, room: int) -> None:
        """Wait until `room` bytes fit, and promise `more` of them until the answer. Raises ServerBusy."""
        if context not in self._holds:
            self._holds[context] = _Hold()
            context.cleanup.callback(self._holds.pop, context, None)
        hold = self._holds[context]
        end = asyncio.get_running_loop().time() + _WAIT_S
        try:
            while not self._fits(context, room):
                self._reject_for(context, room)
                alone = not any(other.held for other in self._holds.values() if other is not hold)
                if alone or hold.rejected or asyncio.get_running_loop().time() >= end:
                    raise self.no_room()
                hold.waiting = True
                await asyncio.sleep(_LOOK_S)
        finally:
            hold.waiting = False
        hold.promised += more

    def receive(self, context: Context, timeout: asyncio.Timeout | None) -> None:
        """Note that a body arrives, and what ends its reception; None afterwards."""
        if context in self._holds:
            self._holds[context].receiving = timeout

    def answer(self, context: Context, size: int) -> None:
        """Note that a request's answer of `size` bytes lies on the disk, and no more comes."""
        if context in self._holds:
            hold = self._holds[context]
            hold.promised, hold.stored = 0, hold.promised + size

    def is_rejected(self, context: Context) -> bool:
        """Return whether a request was rejected for the sake of another one."""
        return context in self._holds and self._holds[context].rejected

    @staticmethod
    def no_room() -> ServerBusy:
        """Return the error for a request without room."""
        return ServerBusy("the service has too little disk space for this upload now; try again in a moment")

    def _fits(self, context: Context, room: int) -> bool:
        for other, hold in self._holds.items():
            if other is context:
                break
            if hold.waiting:
                return False
        return self.free_bytes() >= self.promised + room

    def _reject_for(self, context: Context, room: int) -> None:
        """Reject an upload for this request: one that came later, or one of a caller who holds more.

        Of those, the newest one of the caller who holds the most.
        """
        if any(hold.rejected and hold.receiving is not None for hold in self._holds.values()):
            # its room is about to come free
            return
        held: Counter[str] = Counter()
        for other, hold in self._holds.items():
            held[other.identity] += hold.held
        came_later = False
        found: tuple[int, _Hold, asyncio.Timeout] | None = None
        for other, hold in self._holds.items():
            came_later |= other is context
            holds = held[other.identity]
            if other is context or hold.receiving is None or hold.receiving.expired() or not hold.promised:
                continue
            if (came_later or holds > held[context.identity] + room) and (found is None or holds >= found[0]):
                found = holds, hold, hold.receiving
        if found is not None:
            found[1].rejected = True
            found[2].reschedule(0)
