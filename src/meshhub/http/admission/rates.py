"""Rate limits: a moving window of one minute for each caller, exact under concurrency."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from typing import Any, cast

from limits import RateLimitItemPerMinute
from limits.aio.strategies import MovingWindowRateLimiter
from limits.storage import storage_from_string
from msgspec import Struct

from meshhub.http.admission.window import Window
from meshhub.service.redaction import redact_error

log = logging.getLogger("meshhub.http")

_REDIS_TIMEOUT_S = 0.4
"""Seconds for Redis to count one request, retries of its driver included; usually a millisecond."""

_ALONE_SECONDS = 5.0
"""How long a Redis that did not answer is left alone, or every request would wait for it."""


class RateState(Struct, frozen=True):
    """Where a caller stands after a request was counted."""

    passed: bool
    limit: int
    remaining: int
    resets_in: int

    def headers(self) -> dict[str, str]:
        """The RateLimit headers of an answer."""
        return {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(self.remaining),
            "RateLimit-Reset": str(self.resets_in),
        }


class RateLimits:
    """Counts requests in memory, or in Redis for several servers.

    When Redis cannot be reached, this process counts for itself until it is back: a limit that is a
    little too generous hurts less than a service that is down.
    """

    def __init__(self, url: str = "memory://") -> None:
        """`url` is one of the package `limits`. Raises ValueError when it makes no sense."""
        self._own = Window()
        self._alone = False
        self._alone_until = 0.0
        self._shared = None if url.removeprefix("async+").startswith("memory:") else _shared(url)

    async def hit(self, identity: str, per_minute: int) -> RateState:
        """Count one request of a caller."""
        return await self._ask(identity, per_minute, count=True)

    async def peek(self, identity: str, per_minute: int) -> RateState:
        """Where a caller stands, without counting."""
        return await self._ask(identity, per_minute, count=False)

    async def _ask(self, identity: str, per_minute: int, *, count: bool) -> RateState:
        if self._shared is not None and time.monotonic() >= self._alone_until:
            if self._alone:
                # one request looks whether Redis is back; the others do not wait for it
                self._alone_until = time.monotonic() + _ALONE_SECONDS
            try:
                async with asyncio.timeout(_REDIS_TIMEOUT_S):
                    state = await _state(self._shared, identity, per_minute, count)
            except Exception as error:
                if not self._alone:
                    log.warning(
                        "requests cannot be counted together (%s); this process counts for itself", type(error).__name__
                    )
                self._alone, self._alone_until = True, time.monotonic() + _ALONE_SECONDS
            else:
                if self._alone:
                    log.warning("requests are counted together again")
                self._alone, self._alone_until = False, 0.0
                return state
        passed, remaining, resets_in = self._own.ask(identity, per_minute, count=count)
        return _told(passed, per_minute, remaining, resets_in)

    async def close(self) -> None:
        """Let go of the connections to Redis."""
        bridge = getattr(self._shared.storage, "bridge", None) if self._shared is not None else None
        if bridge is not None:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(_REDIS_TIMEOUT_S):
                    await bridge.get_connection().aclose()


async def _state(limiter: MovingWindowRateLimiter, identity: str, per_minute: int, count: bool) -> RateState:
    item = RateLimitItemPerMinute(per_minute, namespace="meshhub")
    passed = await (limiter.hit if count else limiter.test)(item, identity)
    window = await limiter.get_window_stats(item, identity)
    return _told(passed, per_minute, int(window.remaining), math.ceil(window.reset_time - time.time()))


def _told(passed: bool, limit: int, remaining: int, resets_in: int) -> RateState:
    return RateState(passed, limit, max(0, remaining) if passed else 0, min(60, max(1, resets_in)))


def _shared(url: str) -> MovingWindowRateLimiter:
    if not url.startswith("async+"):
        url = "async+" + url
    options: dict[str, Any] = {"implementation": "redispy"} if url.startswith("async+redis") else {}
    try:
        return MovingWindowRateLimiter(cast(Any, storage_from_string(url, **options)))
    except Exception as error:
        scheme, separator, _ = url.removeprefix("async+").partition("://")
        if not separator:
            # without a scheme it may be a password
            raise ValueError("rate_limit_url cannot be used: write it as redis://host:6379") from None
        what = redact_error(str(error), url)
        raise ValueError(f"rate_limit_url ({scheme}://…) cannot be used: {what}") from None
