"""Runs of the jobs that this process has claimed: their leases, their ends, and their files."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import secrets
import socket
from collections.abc import Callable

from msgspec import structs

from meshhub.engine.contract import CALLER, METER, Meter
from meshhub.engine.logs import REQUEST
from meshhub.engine.scratch import Scratch, sweep
from meshhub.errors import Canceled, JobStoreUnavailable, MeshhubError, ServerBusy
from meshhub.http.admission.resources import Resources
from meshhub.http.admission.slots import Ticket
from meshhub.http.errors import ServiceError, no_room
from meshhub.http.jobs.execution import JobConversions, ResultFile, Run
from meshhub.http.jobs.live import LiveJobs, LiveRun
from meshhub.http.metrics import JobMeasurement, Metrics
from meshhub.service.jobs.files import JobFiles
from meshhub.service.jobs.job import Job, JobProgress, Outcome
from meshhub.service.jobs.store import MAX_ATTEMPTS_COUNT, JobStore

log = logging.getLogger("meshhub.http")

_RETRY_S = 1.0
"""Seconds until another attempt after the store, the disk or the machine had no room."""

_MAX_FINISH_S = 120.0
"""Seconds to store the end of a job while the store does not respond; afterwards the job runs again on another worker.
"""

_MAX_HOST_CHARS = 20
"""Maximum characters of the host in a worker's name, which is part of a channel name (63 in PostgreSQL). """


class JobRuns:
    """Runs of this process; for one event loop."""

    def __init__(
        self,
        store: JobStore,
        files: JobFiles,
        conversions: JobConversions,
        resources: Resources,
        live: LiveJobs,
        metrics: Metrics,
    ) -> None:
        """Run jobs of a store under a name of this process."""
        self._store = store
        self._files = files
        self._conversions = conversions
        self._resources = resources
        self._live = live
        self._metrics = metrics
        host = re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname())[:_MAX_HOST_CHARS]
        self.worker = f"{host}-{os.getpid()}-{secrets.token_hex(4)}"
        self.on_end: Callable[[], None] = ignore
        self._tasks: set[asyncio.Task[None]] = set()

    def remove_leftovers(self) -> None:
        """Remove the temporary files of a killed service."""
        if self._files.folder is not None:
            sweep(self._files.folder)

    def start(self, job: Job, ticket: Ticket, stack: contextlib.AsyncExitStack) -> None:
        """Start the run of a claimed job, in the slot that the stack holds."""
        task = asyncio.create_task(self._run(job, ticket, stack))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @property
    def count(self) -> int:
        """Number of runs."""
        return len(self._tasks)

    async def stop(self) -> None:
        """Stop the runs, and return their jobs to the queue."""
        for run in self._live.runs.values():
            run.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def beat(self) -> None:
        """Renew the leases, and stop the runs that no longer belong to this process."""
        tokens = set(self._live.runs)
        if not tokens:
            return
        owned = await self._resources.threads.run_job_storage(self._store.beat, self.worker, self._live.take_news())
        for token in tokens - owned:
            run = self._live.runs.get(token)
            if run is not None:
                run.cancel()

    async def _run(self, job: Job, ticket: Ticket, stack: contextlib.AsyncExitStack) -> None:
        """Run a job in its slot, and store the end."""
        # the runner may have started in the context of another caller's request
        CALLER.set(job.caller if job.request.can_share_worker else "")
        REQUEST.set(f"job-{job.number}")
        meter = Meter()
        METER.set(meter)
        run = LiveRun(job)
        self._live.runs[job.token or ""] = run
        self._live.notify(job.id)
        try:
            async with stack:
                with self._metrics.measure_job(job) as measurement:
                    await self._run_to_end(run, ticket, measurement, meter)
        except Exception as error:
            log.error("a job could not be ended; it runs again after its lease", exc_info=error)
        finally:
            del self._live.runs[job.token or ""]
            run.cancel.close()
            self._live.notify(job.id)
            self.on_end()

    async def _run_to_end(self, run: LiveRun, ticket: Ticket, measurement: JobMeasurement, meter: Meter) -> None:
        job, token = run.job, run.job.token or ""
        loop = asyncio.get_running_loop()

        def relay(progress: JobProgress) -> None:
            loop.call_soon_threadsafe(self._live.update, run, progress)

        failure = None
        scratch = await self._resources.threads.run_job_storage(Scratch, "job", self._files.folder)
        try:
            result = await self._conversions.run(Run(job, scratch.path, ticket, run.cancel, relay))
            outcome = await self._resources.threads.run_job_storage(self._store_result, job, result)
        except Exception as raised:
            error = no_room(raised) or raised
            if self._resources.is_closing:
                await self._until_stored(self._store.release, job.id, token)
                return
            if isinstance(error, Canceled):
                # the row is canceled already, or another run has it
                measurement.outcome = "stale"
                await self._until_stored(self._store.record_canceled, job.id, token, meter.cpu_seconds)
                return
            if isinstance(error, JobStoreUnavailable):
                # the files cannot be reached, so the job waits, and its attempts do not count
                await asyncio.sleep(_RETRY_S)
                await self._until_stored(self._store.release, job.id, token)
                return
            if isinstance(error, ServerBusy) and job.attempt < MAX_ATTEMPTS_COUNT:
                await asyncio.sleep(_RETRY_S)
                await self._until_stored(self._store.release, job.id, token, counts=True)
                return
            outcome, failure = _describe_error(error), error
        finally:
            await self._resources.threads.run_job_storage(scratch.remove)
        outcome = structs.replace(outcome, cpu_seconds=meter.cpu_seconds)
        is_current = await self._finish(job, token, outcome)
        measurement.outcome = ("failed" if outcome.error_code else "done") if is_current else "stale"
        if not is_current:
            # a cancellation removes the files of a run, which may then fail before it is stopped
            await self._until_stored(self._store.record_canceled, job.id, token, meter.cpu_seconds)
        # a run that a cancellation overtakes may miss its inputs, which is not a failure
        if is_current and not isinstance(failure, MeshhubError | None):
            log.error("unexpected error in a job", exc_info=failure)

    def _store_result(self, job: Job, file: ResultFile) -> Outcome:
        result = file.describe()
        self._files.add_result(job.id, job.token or "", file.path)
        return Outcome(result=result)

    async def _finish(self, job: Job, token: str, outcome: Outcome) -> bool:
        """End a job in the store, and remove files that are not needed; return False if the token is stale."""
        is_current = await self._until_stored(self._store.finish, job.id, token, outcome)
        # the next job is chosen while files are removed
        self.on_end()
        if is_current:
            await self._resources.threads.run_job_storage(self._files.remove_inputs, job.id)
            await self._resources.threads.run_job_storage(self._files.remove_results, job.id, keep=token)
        else:
            await self._resources.threads.run_job_storage(self._files.remove_result, job.id, token)
        return is_current

    async def _until_stored(self, change: Callable[..., bool], *arguments: object, **keywords: object) -> bool:
        """Change the row of a job; repeat it while the store does not respond, because a change takes effect once."""
        deadline = asyncio.get_running_loop().time() + _MAX_FINISH_S
        while True:
            try:
                return await self._resources.threads.run_job_storage(change, *arguments, **keywords)
            except JobStoreUnavailable:
                if asyncio.get_running_loop().time() > deadline or self._resources.is_closing:
                    raise
                await asyncio.sleep(_RETRY_S)


def _describe_error(error: Exception) -> Outcome:
    if not isinstance(error, MeshhubError):
        return Outcome(error_code="internal_error", error="an unexpected error occurred in the service")
    details = error.details if isinstance(error, ServiceError) else None
    return Outcome(error_code=error.error_code, error=error.message, error_values=error.values, details=details)


def ignore() -> None:
    """Do nothing: the reaction to an event for which there is no handler."""
