"""Turns: who may use a worker now, who waits, in the order they came."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque

from meshhub.errors import MeshhubError, ServerBusy, ShuttingDown


class Turns:
    """So many turns at once; the rest waits, and is refused when the service stops.

    Unlike a semaphore it tells how many wait, and can send them home.
    """

    def __init__(self, at_once: int, queue: int) -> None:
        """`queue` is how many requests may wait; `free` is how many turns nobody has."""
        self.free = at_once
        self._queue = queue
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._stopped = False

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def check(self) -> None:
        """See whether a new request would be let in. Raises ServerBusy, ShuttingDown."""
        if self._stopped:
            raise _shutting_down()
        if self.free <= 0 and len(self._waiting) >= self._queue:
            raise ServerBusy(f"{len(self._waiting)} conversions wait already; try again in a moment")

    async def take(self, deadline: float | None) -> None:
        """Wait for a turn; `deadline` is of the loop's clock. Raises ServerBusy, ShuttingDown."""
        if self._stopped:
            raise _shutting_down()
        if self.free > 0 and not self._waiting:
            self.free -= 1
            return
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(mine)
        try:
            async with asyncio.timeout_at(deadline):
                await mine
        except BaseException as error:
            if mine.done() and not mine.cancelled() and mine.exception() is None:
                self.give_back()
            with contextlib.suppress(ValueError):
                self._waiting.remove(mine)
            if isinstance(error, TimeoutError):
                raise ServerBusy("no worker came free in time; try again in a moment") from None
            raise

    def give_back(self) -> None:
        """Let the next one have the turn."""
        while self._waiting:
            following = self._waiting.popleft()
            if not following.done():
                following.set_result(None)
                return
        self.free += 1

    def stop(self) -> None:
        """Refuse everybody who waits, and who comes."""
        self._stopped = True
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_exception(_shutting_down())


def _shutting_down() -> MeshhubError:
    return ShuttingDown("the service is shutting down; try again in a moment")
