"""Rate limits: a moving window of one minute for each caller, exact under concurrency."""

from __future__ import annotations

import contextlib
import logging
import math
import time
from typing import Any, cast

from limits import RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import MovingWindowRateLimiter
from limits.storage import storage_from_string
from msgspec import Struct

log = logging.getLogger("meshhub.http")

_PATIENCE = {"socket_timeout": 2.0, "socket_connect_timeout": 2.0}
"""Seconds to wait for a Redis that says nothing."""


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
        own = MovingWindowRateLimiter(MemoryStorage())
        self._own = own
        self._shared = own if url.startswith("memory:") else _shared(url)

    async def hit(self, identity: str, per_minute: int) -> RateState:
        """Count one request of a caller."""
        item = RateLimitItemPerMinute(per_minute, namespace="meshhub")
        try:
            return await _hit(self._shared, item, identity, per_minute)
        except Exception as error:
            if self._shared is self._own:
                raise
            log.warning("rate limits cannot be shared (%s); this process counts for itself", type(error).__name__)
            return await _hit(self._own, item, identity, per_minute)

    async def close(self) -> None:
        """Let go of the connections to Redis."""
        bridge = getattr(self._shared.storage, "bridge", None)
        if bridge is not None:
            with contextlib.suppress(Exception):
                await bridge.get_connection().aclose()


async def _hit(limiter: MovingWindowRateLimiter, item: Any, identity: str, per_minute: int) -> RateState:
    passed = await limiter.hit(item, identity)
    window = await limiter.get_window_stats(item, identity)
    remaining = max(0, int(window.remaining)) if passed else 0
    resets_in = min(60, max(1, math.ceil(window.reset_time - time.time())))
    return RateState(passed, per_minute, remaining, resets_in)


def _shared(url: str) -> MovingWindowRateLimiter:
    if not url.startswith("async+"):
        url = "async+" + url
    options: dict[str, Any] = {**_PATIENCE, "implementation": "redispy"} if url.startswith("async+redis") else {}
    try:
        return MovingWindowRateLimiter(cast(Any, storage_from_string(url, **options)))
    except Exception as error:
        scheme = url.partition("://")[0].removeprefix("async+")
        raise ValueError(f"rate_limit_url ({scheme}://…) cannot be used: {error}") from None
