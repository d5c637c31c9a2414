"""Invalid API keys: after too many from one address, further keys are rejected for a while without a lookup."""

# why this way: docs/decisions/0016-wrong-keys.md
from __future__ import annotations

import hashlib
from collections import OrderedDict

from meshhub.http.admission.addresses import count_networks
from meshhub.http.admission.rates import RateLimits, RateState

_MAX_VALID_KEYS_COUNT = 10_000
"""Maximum digests of valid keys to remember: about 1 MB, for more customers than one process serves. """


class FailedKeys:
    """Count of invalid keys by address; an address may send as many per minute as requests without a key.

    The store of request counts also holds these counts. A key that was valid since the service started is always looked
    up, so that a customer can go on while another caller at the same address guesses keys. A remembered key grants
    nothing, because the database still decides whether it is valid.
    """

    def __init__(self, rates: RateLimits, per_minute: int | None) -> None:
        """Count with `rates`; allow `per_minute` invalid keys from one address (None: unlimited)."""
        self._rates = rates
        self._per_minute = per_minute
        self._valid: OrderedDict[bytes, None] = OrderedDict()

    async def check(self, address: str, key: str) -> RateState | None:
        """Return the rate state of an address that may not try this key now; None if it may."""
        if self._per_minute is None or _digest(key) in self._valid:
            return None
        for identity, factor in count_networks(address):
            state = await self._rates.peek(f"wrong-key:{identity}", self._per_minute * factor)
            if not state.passed:
                return state
        return None

    async def count_invalid(self, address: str, key: str) -> None:
        """Count a key that is unknown, expired or revoked."""
        self._valid.pop(_digest(key), None)
        if self._per_minute is not None:
            for identity, factor in count_networks(address):
                await self._rates.hit(f"wrong-key:{identity}", self._per_minute * factor)

    def remember_valid(self, key: str) -> None:
        """Remember a valid key."""
        self._valid[_digest(key)] = None
        self._valid.move_to_end(_digest(key))
        if len(self._valid) > _MAX_VALID_KEYS_COUNT:
            self._valid.popitem(last=False)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
