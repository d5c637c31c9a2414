"""Runner of jobs on one machine: it claims them in turns of their callers while the service accepts requests."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Protocol

from meshhub.http.admission.resources import Resources
from meshhub.http.admission.slots import Ticket
from meshhub.http.jobs.runs import JobRuns
from meshhub.http.jobs.sweeping import Sweeper
from meshhub.http.jobs.webhooks import Webhooks
from meshhub.http.loops import Loops
from meshhub.service.jobs.store import BEAT_S, SWEEP_S, JobStore

POLL_S = 1.0
"""Seconds between two looks for jobs that other processes submitted; a process wakes its own runner for its own jobs.
"""

_CANDIDATE_COUNT = 20
"""Callers to consider for a free slot; the first who can start gets it."""


class Runner(Protocol):
    """Part of the service that lets queued jobs run in this process or in others; for one event loop."""

    @property
    def faults(self) -> Sequence[str]:
        """Reasons for which queued jobs do not start, for operators."""

    def start(self) -> None:
        """Start, unless it has started."""

    def wake(self) -> None:
        """Look for jobs now."""

    async def stop(self) -> None:
        """Stop the runs in this process, and return their jobs to the queue."""


class JobRunner:
    """Runner that runs the jobs in this process."""

    def __init__(
        self, store: JobStore, runs: JobRuns, sweeper: Sweeper, webhooks: Webhooks, resources: Resources
    ) -> None:
        """Claim jobs of a store for `runs`."""
        self._store = store
        self._runs = runs
        self._sweeper = sweeper
        self._webhooks = webhooks
        self._resources = resources
        self._has_work = asyncio.Event()
        self._loops = Loops()
        runs.on_end = sweeper.on_requeue = self.wake

    @property
    def faults(self) -> Sequence[str]:
        """Do nothing, because this process runs the jobs."""
        return ()

    def start(self) -> None:
        """Start to claim, beat and sweep."""
        if self._loops.is_running:
            return
        self._runs.remove_leftovers()
        self._loops.start(
            (self._dispatch, 0.0),
            (self._runs.beat, BEAT_S),
            (self._sweeper.sweep, SWEEP_S),
            (self._webhooks.deliver_due, POLL_S),
        )

    def wake(self) -> None:
        """Look for jobs now."""
        self._has_work.set()

    async def stop(self) -> None:
        """Stop the runs, and return their jobs to the queue."""
        await self._runs.stop()
        await self._loops.stop()

    async def _dispatch(self) -> None:
        """Start the next job, or wait until there may be one."""
        self._has_work.clear()
        caller = await self._choose_caller()
        if caller is None:
            await self._wait_for_work()
            return
        ticket = Ticket(caller, has_started=True)
        async with contextlib.AsyncExitStack() as stack:
            if not await self._acquire(stack, ticket):
                return
            job = await self._resources.threads.run_job_storage(self._store.claim, self._runs.worker, caller)
            if job is not None:
                self._runs.start(job, ticket, stack.pop_all())

    async def _wait_for_work(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(POLL_S):
                await self._has_work.wait()

    async def _choose_caller(self) -> str | None:
        """Return the first caller in turn for whom a slot is free; if no slot is free, the first in turn."""
        callers = await self._resources.threads.run_job_storage(self._store.waiting_callers, _CANDIDATE_COUNT)
        ready = (caller for caller in callers if self._resources.slots.can_start(caller))
        return next(ready, callers[0] if callers else None)

    async def _acquire(self, stack: contextlib.AsyncExitStack, ticket: Ticket) -> bool:
        """Wait for a slot; return False if another caller should have it first. Raises ShuttingDown."""
        slot = asyncio.ensure_future(stack.enter_async_context(self._resources.slot(ticket, None)))
        try:
            while not slot.done():
                news = asyncio.ensure_future(self._wait_for_work())
                await asyncio.wait({slot, news}, return_when=asyncio.FIRST_COMPLETED)
                news.cancel()
                if not slot.done():
                    self._has_work.clear()
                    if await self._choose_caller() != ticket.caller:
                        break
            return slot.done() and slot.result() is None
        finally:
            slot.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await slot
