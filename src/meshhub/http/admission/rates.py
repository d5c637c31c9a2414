"""Rate limits: a moving window of a minute, or of a day, for each caller, exact under concurrency."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Sequence
from typing import Any, cast

from limits import RateLimitItemPerDay, RateLimitItemPerMinute
from limits.aio.strategies import MovingWindowRateLimiter
from limits.storage import storage_from_string
from msgspec import Struct

from meshhub.http.admission.addresses import Counted
from meshhub.http.admission.window import DAY_S, MINUTE_S, Window
from meshhub.service.redaction import redact_error

log = logging.getLogger("meshhub.http")

_REDIS_TIMEOUT_S = 0.4
"""Seconds for Redis to count one request, including retries of its driver; usually a millisecond."""

_REDIS_RETRY_S = 5.0
"""Seconds without a query after Redis failed; otherwise every request would wait for the timeout."""


class RateState(Struct, frozen=True):
    """Rate limit of a caller after a request."""

    passed: bool
    limit: int
    remaining: int
    resets_in: int
    """Seconds until the oldest counted request leaves the window."""

    def headers(self) -> dict[str, str]:
        """Return the RateLimit response headers."""
        return {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(self.remaining),
            "RateLimit-Reset": str(self.resets_in),
        }


class RateLimits:
    """Request counts in memory, or in Redis for several servers.

    While Redis is unreachable, this process counts alone, because a limit that is slightly too generous does less harm
    than an outage.
    """

    def __init__(self, url: str = "memory://") -> None:
        """Count in the storage at `url`, as the package `limits` writes it. Raises ValueError if it is invalid."""
        self._windows = {seconds: Window(seconds=seconds) for seconds in (MINUTE_S, DAY_S)}
        self._is_redis_down = False
        self._retry_at = 0.0
        self._limiter = None if url.removeprefix("async+").startswith("memory:") else _shared_limiter(url)

    async def hit(self, identity: str, per_minute: int) -> RateState:
        """Count a request of a caller."""
        return await self._query(identity, per_minute, MINUTE_S, count=True)

    async def hit_daily(self, identity: str, per_day: int) -> RateState:
        """Count a request of a caller with a limit for a day."""
        return await self._query(identity, per_day, DAY_S, count=True)

    async def peek_daily(self, identity: str, per_day: int) -> RateState:
        """Return the state of a limit for a day without counting."""
        return await self._query(identity, per_day, DAY_S, count=False)

    async def hit_all(self, counted: Sequence[Counted], per_minute: int) -> RateState:
        """Count a request under several names; return the first state that rejects it, or the state with the fewest
        requests left.

        A request that a wider network rejects has already been counted in the narrower ones; this uses up only the
        limit of its sender.
        """
        states: list[RateState] = []
        for identity, factor in counted:
            states.append(await self.hit(identity, per_minute * factor))
            if not states[-1].passed:
                return states[-1]
        return min(states, key=lambda state: state.remaining)

    async def peek(self, identity: str, per_minute: int) -> RateState:
        """Return the rate state of a caller without counting."""
        return await self._query(identity, per_minute, MINUTE_S, count=False)

    async def _query(self, identity: str, limit: int, seconds: float, *, count: bool) -> RateState:
        if self._limiter is not None and time.monotonic() >= self._retry_at:
            if self._is_redis_down:
                # one request retries Redis, and the others do not wait for it
                self._retry_at = time.monotonic() + _REDIS_RETRY_S
            try:
                async with asyncio.timeout(_REDIS_TIMEOUT_S):
                    state = await _query_limiter(self._limiter, identity, limit, seconds, count)
            except Exception as error:
                if not self._is_redis_down:
                    log.warning(
                        "the shared request counter failed (%s); this process counts alone", type(error).__name__
                    )
                self._is_redis_down, self._retry_at = True, time.monotonic() + _REDIS_RETRY_S
            else:
                if self._is_redis_down:
                    log.warning("the shared request counter works again")
                self._is_redis_down, self._retry_at = False, 0.0
                return state
        passed, remaining, resets_in = self._windows[seconds].query(identity, limit, count=count)
        return _rate_state(passed, limit, remaining, resets_in, seconds)

    async def close(self) -> None:
        """Close the connections to Redis."""
        bridge = getattr(self._limiter.storage, "bridge", None) if self._limiter is not None else None
        if bridge is not None:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(_REDIS_TIMEOUT_S):
                    await bridge.get_connection().aclose()


async def _query_limiter(
    limiter: MovingWindowRateLimiter, identity: str, limit: int, seconds: float, count: bool
) -> RateState:
    item = (RateLimitItemPerMinute if seconds == MINUTE_S else RateLimitItemPerDay)(limit, namespace="meshhub")
    passed = await (limiter.hit if count else limiter.test)(item, identity)
    window = await limiter.get_window_stats(item, identity)
    return _rate_state(passed, limit, int(window.remaining), math.ceil(window.reset_time - time.time()), seconds)


def _rate_state(passed: bool, limit: int, remaining: int, resets_in: int, seconds: float) -> RateState:
    return RateState(passed, limit, max(0, remaining) if passed else 0, min(int(seconds), max(1, resets_in)))


def _shared_limiter(url: str) -> MovingWindowRateLimiter:
    if not url.startswith("async+"):
        url = "async+" + url
    options: dict[str, Any] = {"implementation": "redispy"} if url.startswith("async+redis") else {}
    try:
        return MovingWindowRateLimiter(cast(Any, storage_from_string(url, **options)))
    except Exception as error:
        scheme, separator, _ = url.removeprefix("async+").partition("://")
        if not separator:
            # text without a scheme may be a password
            raise ValueError("rate_limit_url is not a URL; write it as redis://host:6379") from None
        reason = redact_error(str(error), url)
        raise ValueError(f"rate_limit_url ({scheme}://…) is not usable: {reason}") from None
