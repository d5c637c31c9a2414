"""Origins of publishable keys, for requests without a key: browsers send a preflight request before the key."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable

from meshhub.errors import KeyStoreUnavailable
from meshhub.http.admission.threads import Threads
from meshhub.service.keys import KeyStore

_LIFETIME_S = 5.0
"""Seconds to remember the origins; bounds the lookups, because the requests that need them have no rate limit. """


class PublishedOrigins:
    """Origins of the active publishable keys, from the key database."""

    def __init__(self, keys: KeyStore, threads: Threads, clock: Callable[[], float] = time.monotonic) -> None:
        """Look up in `keys`; read the time in seconds from `clock`."""
        self._keys = keys
        self._threads = threads
        self._clock = clock
        self._origins: frozenset[str] = frozenset()
        self._lookup = asyncio.Lock()
        self._lookup_at = 0.0

    async def include(self, origin: str) -> bool:
        """Return whether an active publishable key has the origin; an unavailable database changes nothing."""
        async with self._lookup:
            now = self._clock()
            if now >= self._lookup_at:
                with contextlib.suppress(KeyStoreUnavailable):
                    self._origins = await self._threads.run_lookup(self._keys.published_origins)
                self._lookup_at = now + _LIFETIME_S
        return origin in self._origins
