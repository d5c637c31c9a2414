"""Runner of jobs: it claims them in turns of their callers, keeps their leases, ends them, and sweeps."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import socket
from collections.abc import Awaitable, Callable

from meshhub.engine.contract import CALLER
from meshhub.engine.logs import REQUEST
from meshhub.engine.scratch import Scratch, sweep
from meshhub.errors import Cancelled, JobStoreUnavailable, MeshhubError, ServerBusy, ShuttingDown
from meshhub.http.admission.resources import Resources
from meshhub.http.admission.slots import Ticket
from meshhub.http.errors import ServiceError, no_room
from meshhub.http.jobs.execution import JobConversions, ResultFile, Run
from meshhub.http.jobs.live import LiveJobs, LiveRun
from meshhub.http.jobs.webhooks import Webhooks
from meshhub.service.jobs.files import JobFiles
from meshhub.service.jobs.job import Job, JobProgress, Outcome
from meshhub.service.jobs.store import BEAT_S, LEASE_S, MAX_ATTEMPTS_COUNT, SWEEP_S, JobStore

log = logging.getLogger("meshhub.http")

_POLL_S = 1.0
"""Seconds between two looks for jobs that other processes submitted; this process wakes its runner itself."""

_CANDIDATE_COUNT = 20
"""Callers to consider for a free slot; the first who can start gets it."""

_RETRY_S = 1.0
"""Seconds until another attempt after the store, the disk or the machine had no room."""

_MAX_FINISH_S = 120.0
"""Seconds to store the end of a job while the store does not respond; then the job runs again elsewhere."""

_ORPHAN_SWEEP_S = 600.0
"""Seconds between two searches for files without a job, which list all folders."""


class JobRunner:
    """Runs jobs while the service accepts requests."""

    def __init__(
        self,
        store: JobStore,
        files: JobFiles,
        conversions: JobConversions,
        webhooks: Webhooks,
        resources: Resources,
        live: LiveJobs,
    ) -> None:
        """Claim jobs of a store under a name of this process."""
        self._store = store
        self._files = files
        self._conversions = conversions
        self._webhooks = webhooks
        self._resources = resources
        self._live = live
        self._worker = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self._has_work = asyncio.Event()
        self._loops: list[asyncio.Task[None]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._last_sweep = self._last_orphan_sweep = -float("inf")
        self._sweep_after = 0.0
        self._is_failing = False

    def start(self) -> None:
        """Start to claim, beat and sweep."""
        if self._loops:
            return
        folder = self._files.folder
        if folder is not None:
            # leftovers of a killed service
            sweep(folder)
        steps = (
            (self._dispatch, 0.0),
            (self._beat, BEAT_S),
            (self._sweep, SWEEP_S),
            (self._webhooks.deliver_due, _POLL_S),
        )
        self._loops = [asyncio.create_task(self._repeat(step, pause_s)) for step, pause_s in steps]

    def wake(self) -> None:
        """Look for jobs now."""
        self._has_work.set()

    async def stop(self) -> None:
        """Stop the runs, and return their jobs to the queue."""
        for run in self._live.runs.values():
            run.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for loop in self._loops:
            loop.cancel()
        if self._loops:
            await asyncio.wait(self._loops)

    async def _repeat(self, step: Callable[[], Awaitable[None]], pause_s: float) -> None:
        """Repeat a step; a failure is logged, and the next attempt follows."""
        while True:
            try:
                await step()
            except ShuttingDown:
                return
            except Exception as error:
                self._log_failure(error)
                await asyncio.sleep(_RETRY_S)
            else:
                self._is_failing = False
            await asyncio.sleep(pause_s)

    def _log_failure(self, error: Exception) -> None:
        if isinstance(error, JobStoreUnavailable):
            if not self._is_failing:
                log.warning("%s; jobs wait until it is available", error.message)
            self._is_failing = True
        else:
            log.error("the runner of jobs failed, and continues", exc_info=error)

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
            job = await self._resources.run_job_storage(self._store.claim, self._worker, caller)
            if job is None:
                return
            task = asyncio.create_task(self._run(job, ticket, stack.pop_all()))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _wait_for_work(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_POLL_S):
                await self._has_work.wait()

    async def _choose_caller(self) -> str | None:
        """Return the first caller in turn for whom a slot is free; without a free slot, the first in turn."""
        callers = await self._resources.run_job_storage(self._store.waiting_callers, _CANDIDATE_COUNT)
        ready = (caller for caller in callers if self._resources.can_start(caller))
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

    async def _run(self, job: Job, ticket: Ticket, stack: contextlib.AsyncExitStack) -> None:
        """Run a job in its slot, and store the end."""
        # the runner may have begun in the request of another caller; callers without a key share no worker, because an
        # address may be that of several people
        CALLER.set(job.caller if job.key_id else "")
        REQUEST.set(f"job-{job.number}")
        run = LiveRun(job)
        self._live.runs[job.token or ""] = run
        self._live.notify(job.id)
        try:
            async with stack:
                await self._run_to_end(run, ticket)
        except Exception as error:
            log.error("a job could not be ended; it runs again after its lease", exc_info=error)
        finally:
            del self._live.runs[job.token or ""]
            run.cancel.close()
            self._live.notify(job.id)
            self.wake()

    async def _run_to_end(self, run: LiveRun, ticket: Ticket) -> None:
        job, token = run.job, run.job.token or ""
        loop = asyncio.get_running_loop()

        def relay(progress: JobProgress) -> None:
            loop.call_soon_threadsafe(self._live.update, run, progress)

        failure = None
        scratch = await self._resources.run_job_storage(Scratch, "job", self._files.folder)
        try:
            result = await self._conversions.run(Run(job, scratch.path, ticket, run.cancel, relay))
            outcome = await self._resources.run_job_storage(self._store_result, job, result)
        except Exception as raised:
            error = no_room(raised) or raised
            if self._resources.is_closing:
                await self._until_stored(self._store.release, job.id, token)
                return
            if isinstance(error, Cancelled):
                # the row is canceled already, or another run has it
                return
            if isinstance(error, JobStoreUnavailable):
                # the files cannot be reached: the job waits, and its attempts do not count
                await asyncio.sleep(_RETRY_S)
                await self._until_stored(self._store.release, job.id, token)
                return
            if isinstance(error, ServerBusy) and job.attempt < MAX_ATTEMPTS_COUNT:
                await asyncio.sleep(_RETRY_S)
                await self._until_stored(self._store.release, job.id, token, counts=True)
                return
            outcome, failure = _describe_error(error), error
        finally:
            await self._resources.run_job_storage(scratch.remove)
        # a run that a cancellation overtakes may miss its inputs, which is not a failure
        if await self._finish(job, token, outcome) and not isinstance(failure, MeshhubError | None):
            log.error("unexpected error in a job", exc_info=failure)

    def _store_result(self, job: Job, file: ResultFile) -> Outcome:
        result = file.describe()
        self._files.add_result(job.id, job.token or "", file.path)
        return Outcome(result=result)

    async def _finish(self, job: Job, token: str, outcome: Outcome) -> bool:
        """End a job in the store, and remove files that are not needed; return False if the token is stale."""
        is_current = await self._until_stored(self._store.finish, job.id, token, outcome)
        if is_current:
            await self._resources.run_job_storage(self._files.remove_inputs, job.id)
            await self._resources.run_job_storage(self._files.remove_results, job.id, keep=token)
        else:
            await self._resources.run_job_storage(self._files.remove_result, job.id, token)
        return is_current

    async def _until_stored(self, change: Callable[..., bool], *arguments: object, **keywords: object) -> bool:
        """Change the row of a job; repeat it while the store does not respond, because a change takes effect once."""
        deadline = asyncio.get_running_loop().time() + _MAX_FINISH_S
        while True:
            try:
                return await self._resources.run_job_storage(change, *arguments, **keywords)
            except JobStoreUnavailable:
                if asyncio.get_running_loop().time() > deadline or self._resources.is_closing:
                    raise
                await asyncio.sleep(_RETRY_S)

    async def _beat(self) -> None:
        """Renew the leases, and stop the runs that this process does not own any more."""
        tokens = set(self._live.runs)
        if not tokens:
            return
        owned = await self._resources.run_job_storage(self._store.beat, self._worker, self._live.take_news())
        for token in tokens - owned:
            run = self._live.runs.get(token)
            if run is not None:
                run.cancel()

    async def _sweep(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._last_sweep > LEASE_S:
            # the start, or an outage of this process: the leases of others may only look lost
            self._sweep_after = now + LEASE_S
        self._last_sweep = now
        if now < self._sweep_after:
            return
        swept = await self._resources.run_job_storage(self._store.sweep)
        for job_id in (*swept.lost, *swept.expired):
            await self._resources.run_job_storage(self._files.remove_inputs, job_id)
            await self._resources.run_job_storage(self._files.remove_results, job_id)
            self._live.notify(job_id)
        if swept.requeued:
            log.warning("%d jobs lost their worker and run again", len(swept.requeued))
            self.wake()
        if now - self._last_orphan_sweep > _ORPHAN_SWEEP_S:
            self._last_orphan_sweep = now
            await self._resources.run_job_storage(self._files.sweep, self._store.select_known)


def _describe_error(error: Exception) -> Outcome:
    if not isinstance(error, MeshhubError):
        return Outcome(error_code="internal_error", error="an unexpected error occurred in the service")
    details = error.details if isinstance(error, ServiceError) else None
    return Outcome(error_code=error.code, error=error.message, details=details)
