"""Turns: who may use a worker now, who waits, and who is next. Callers take turns, not requests."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from meshhub.errors import MeshhubError, ServerBusy, ShuttingDown


@dataclass(eq=False)
class Ticket:
    """One request of one caller; it may take several turns.

    caller:  what the caller is counted by
    begun:   whether it has had a turn; then it is never refused for want of room
    refused: why it gets no turn any more
    """

    caller: str
    begun: bool = False
    refused: MeshhubError | None = None


@dataclass(eq=False)
class _Waiting:
    ticket: Ticket
    turn: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Turns:
    """So many turns at once, and one more for a caller who has none; the rest waits, a line for each caller.

    The next turn is for the caller who has the fewest, of those for the one whose last is the longest
    ago. When the waiting room is full, the last request of whoever fills it most makes way.
    """

    def __init__(self, at_once: int, queue: int) -> None:
        """`queue` is how many requests may wait for their first turn."""
        self._at_once = at_once
        self._queue = queue
        self._waiting: list[_Waiting] = []
        self._held: Counter[str] = Counter()
        self._last: dict[str, int] = {}
        self._given = 0
        self._stopped = False

    @property
    def running(self) -> int:
        """How many turns are taken."""
        return self._held.total()

    @property
    def waiting(self) -> int:
        """How many turns are waited for."""
        return len(self._waiting)

    def check(self, caller: str) -> None:
        """See whether a new request of a caller would be let in. Raises ServerBusy, ShuttingDown."""
        if self._stopped:
            raise _shutting_down()
        if self._may_have(caller):
            return
        guests = Counter(ticket.caller for ticket in self._guests())
        makes_way = max(guests.values(), default=0) > guests[caller] + 1
        if self._queue == 0 or (guests.total() >= self._queue and not makes_way):
            raise _no_room()

    async def take(self, ticket: Ticket, deadline: float | None) -> None:
        """Wait for a turn; `deadline` is of the loop's clock. Raises ServerBusy, ShuttingDown."""
        if self._stopped:
            raise _shutting_down()
        if ticket.refused is not None:
            raise ticket.refused
        mine = _Waiting(ticket)
        self._waiting.append(mine)
        self._hand_out()
        if not mine.turn.done():
            self._make_room()
        try:
            async with asyncio.timeout_at(deadline):
                await mine.turn
        except BaseException as error:
            if mine.turn.done() and not mine.turn.cancelled() and mine.turn.exception() is None:
                self.give_back(ticket)
            with contextlib.suppress(ValueError):
                self._waiting.remove(mine)
            if isinstance(error, TimeoutError):
                raise ServerBusy("no worker came free in time; try again in a moment") from None
            raise

    def give_back(self, ticket: Ticket) -> None:
        """Let the next one have the turn."""
        self._held[ticket.caller] -= 1
        self._hand_out()
        caller = ticket.caller
        if not self._held[caller]:
            del self._held[caller]
            if all(one.ticket.caller != caller for one in self._waiting):
                self._last.pop(caller, None)

    def stop(self) -> None:
        """Refuse everybody who waits, and who comes."""
        self._stopped = True
        self._refuse(self._waiting, _shutting_down)

    def _may_have(self, caller: str) -> bool:
        return self.running < self._at_once + (not self._held[caller])

    def _hand_out(self) -> None:
        while able := [one for one in self._waiting if not one.turn.done() and self._may_have(one.ticket.caller)]:
            following = min(able, key=self._rank)
            self._waiting.remove(following)
            caller = following.ticket.caller
            self._held[caller] += 1
            self._given += 1
            self._last[caller] = self._given
            following.ticket.begun = True
            following.turn.set_result(None)

    def _rank(self, one: _Waiting) -> tuple[int, int]:
        caller = one.ticket.caller
        return self._held[caller], self._last.get(caller, 0)

    def _guests(self) -> list[Ticket]:
        """The requests that wait for their first turn, in the order they came."""
        return list(dict.fromkeys(one.ticket for one in self._waiting if not one.ticket.begun))

    def _make_room(self) -> None:
        """Refuse a request when one too many waits: the latest of the caller who has the most."""
        guests = self._guests()
        if len(guests) <= self._queue:
            return
        count = Counter(ticket.caller for ticket in guests)
        leaving = max(reversed(guests), key=lambda ticket: count[ticket.caller])
        leaving.refused = _no_room()
        self._refuse([one for one in self._waiting if one.ticket is leaving], _no_room)

    def _refuse(self, waiting: list[_Waiting], why: Callable[[], MeshhubError]) -> None:
        for one in list(waiting):
            self._waiting.remove(one)
            if not one.turn.done():
                one.turn.set_exception(why())


def _no_room() -> MeshhubError:
    return ServerBusy("too many requests wait for a worker already; try again in a moment")


def _shutting_down() -> MeshhubError:
    return ShuttingDown("the service is shutting down; try again in a moment")
