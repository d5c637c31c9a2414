"""Threads of the service, with a limit for each kind of work, so that no kind can take the threads of another."""

# why this way: docs/decisions/0032-threads.md
from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

from meshhub.errors import JobStoreUnavailable, KeyStoreUnavailable, MeshhubError
from meshhub.http.admission.slots import SlotQueue, Ticket
from meshhub.service.sharing import SlotLimits

T = TypeVar("T")

_SHORT_COUNT = 8
"""Threads for short work without a limit: reads of results, and removals of folders."""

_ENTITLEMENT_COUNT = 8
"""Maximum parallel calls of plug-ins that grant entitlements; slow ones do not block conversions."""

_ARCHIVE_COUNT = 4
"""Maximum archives packed or unpacked in parallel; each takes seconds, and batches must not block other requests. """

_JOB_COUNT = 4
"""Maximum parallel calls of the database and the files of jobs, which conversions must not delay."""

_LOOKUP_COUNT = 4
"""Threads for the key database; if it hangs, callers without a key are still served."""

_PRINTER_COUNT = 8
"""Threads for printers on the network, of which each may take a minute to respond."""

_QUERY_COUNT = 4
"""Threads for requests to a server with jobs, which uploads to a store of files must not delay."""

_LOOKUP_TIMEOUT_S = 1.4
"""Seconds for a lookup, including the wait for a thread; slightly longer than the database's own timeout."""


class Threads:
    """Threads of the service; for one event loop."""

    def __init__(self, conversion_count: int) -> None:
        """Create no thread before the first call; `conversion_count` of them are for conversions."""
        self._entitlement_slots = SlotQueue(SlotLimits(shared=_ENTITLEMENT_COUNT), math.inf)
        self._archive_limit = asyncio.Semaphore(_ARCHIVE_COUNT)
        self._job_limit = asyncio.Semaphore(_JOB_COUNT)
        # the queue has one extra slot
        limited_count = _ENTITLEMENT_COUNT + 1 + _ARCHIVE_COUNT + _JOB_COUNT
        self._pool = ThreadPoolExecutor(conversion_count + _SHORT_COUNT + limited_count, "meshhub")
        self._lookup_pool = ThreadPoolExecutor(_LOOKUP_COUNT, "meshhub-keys")
        self._query_pool = ThreadPoolExecutor(_QUERY_COUNT, "meshhub-queries")
        self._printer_pool = ThreadPoolExecutor(_PRINTER_COUNT, "meshhub-printers")

    async def run(self, function: Callable[..., T], *arguments: Any, **keywords: Any) -> T:
        """Run a function in a thread. A canceled call waits for its end, so that nothing runs unobserved."""
        future = _start(self._pool, function, *arguments, **keywords)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            # a second cancellation can interrupt the wait below; then nothing else would retrieve the exception
            future.add_done_callback(lambda future: future.cancelled() or future.exception())
            await asyncio.wait({future})
            raise

    async def run_entitlement(self, caller: str, function: Callable[..., T], *arguments: Any) -> T:
        """Run a function that asks plug-ins for entitlements.

        Callers take turns, so the slow hooks of one caller do not delay the others.
        """
        slot = await self._entitlement_slots.acquire(Ticket(caller), None)
        try:
            return await self.run(function, *arguments)
        finally:
            self._entitlement_slots.release(slot)

    async def run_printer(self, function: Callable[..., T], *arguments: Any, **keywords: Any) -> T:
        """Run a function that waits for printers on the network."""
        return await _start(self._printer_pool, function, *arguments, **keywords)

    async def run_archive(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a function that packs or unpacks an archive."""
        async with self._archive_limit:
            return await self.run(function, *arguments)

    async def run_job_storage(self, function: Callable[..., T], *arguments: Any, **keywords: Any) -> T:
        """Run a function of the store or the files of jobs."""
        async with self._job_limit:
            return await self.run(function, *arguments, **keywords)

    async def run_lookup(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a query of the key database. Raises KeyStoreUnavailable after a timeout."""
        error = KeyStoreUnavailable(f"the key database did not respond within {_LOOKUP_TIMEOUT_S:g} s")
        return await _abandon(_start(self._lookup_pool, function, *arguments), _LOOKUP_TIMEOUT_S, error)

    async def run_job_query(
        self, deadline_s: float | None, function: Callable[..., T], *arguments: Any, **keywords: Any
    ) -> T:
        """Run a function of the store of jobs, as `run_job_storage` does. Raises JobStoreUnavailable at the deadline.

        The thread continues after the deadline; the store has its own deadline for each statement.
        """
        if deadline_s is None:
            return await self.run_job_storage(function, *arguments, **keywords)
        error = JobStoreUnavailable(f"the store of jobs did not respond within {deadline_s:g} s")
        return await _abandon(_start(self._query_pool, function, *arguments, **keywords), deadline_s, error)

    def run_unobserved(self, function: Callable[[], object]) -> None:
        """Run a function without waiting for its end; in this thread if no other thread is available."""
        try:
            self._pool.submit(function)
        except RuntimeError:
            function()

    def close(self) -> None:
        """Wait for the running functions, and end the threads."""
        for pool in (self._pool, self._lookup_pool, self._query_pool, self._printer_pool):
            pool.shutdown(wait=True, cancel_futures=True)


def _start(pool: Executor, function: Callable[..., T], *arguments: Any, **keywords: Any) -> asyncio.Future[T]:
    call = partial(function, *arguments, **keywords)
    return asyncio.get_running_loop().run_in_executor(pool, copy_context().run, call)


async def _abandon(future: asyncio.Future[T], timeout_s: float, error: MeshhubError) -> T:
    """Return the result of a thread; after the timeout, raise the error while the thread continues."""
    try:
        async with asyncio.timeout(timeout_s):
            return await future
    except TimeoutError:
        raise error from None
