"""Wrong API keys: an address that sends many is not asked for more for a while."""

from __future__ import annotations

import hashlib
from collections import OrderedDict

from meshhub.http.admission.rates import RateLimits, RateState

_REMEMBERED = 10_000


class Guesses:
    """Counts wrong keys by address, in the same place as requests, and allows as many as requests without a key.

    A key that was right since the service started is always looked up, so that whoever shares an
    address with somebody who guesses goes on. What is remembered opens nothing: the database is asked
    whether the key still holds.
    """

    def __init__(self, rates: RateLimits, per_minute: int | None) -> None:
        """`rates` counts; so many a minute from one address are looked up."""
        self._rates = rates
        self._per_minute = per_minute
        self._good: OrderedDict[bytes, None] = OrderedDict()

    async def refused(self, address: str, key: str) -> RateState | None:
        """Where an address stands that may not try this key now; None when it may."""
        if self._per_minute is None or _digest(key) in self._good:
            return None
        state = await self._rates.peek(f"wrong-key:{address}", self._per_minute)
        return None if state.passed else state

    async def wrong(self, address: str, key: str) -> None:
        """Count a key that was not right, or is so no longer."""
        self._good.pop(_digest(key), None)
        if self._per_minute is not None:
            await self._rates.hit(f"wrong-key:{address}", self._per_minute)

    def right(self, key: str) -> None:
        """Remember a key that was right."""
        self._good[_digest(key)] = None
        self._good.move_to_end(_digest(key))
        if len(self._good) > _REMEMBERED:
            self._good.popitem(last=False)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
