"""Jobs of the service: submission, access, events, cancellation."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import structs

from meshhub.errors import JobStoreUnavailable, ServerBusy
from meshhub.http.admission.resources import Resources
from meshhub.http.errors import ServiceError
from meshhub.http.jobs.live import LiveJobs
from meshhub.http.jobs.runner import Runner
from meshhub.http.jobs.store_probe import StoreProbe
from meshhub.http.jobs.webhooks import Webhooks
from meshhub.http.translating import encode_json
from meshhub.model.plans import Caller
from meshhub.model.translations import Texts
from meshhub.service.jobs.description import JobDescription, describe_job
from meshhub.service.jobs.files import JobFiles, hash_file
from meshhub.service.jobs.job import Job, NewJob, Statistics, too_many_jobs
from meshhub.service.jobs.store import JobStore
from meshhub.service.settings import Settings

T = TypeVar("T")

log = logging.getLogger("meshhub.http")

_FILES_DEADLINE_S = 4.0
"""Seconds for the check of the files of jobs; slightly longer than the timeout of the store itself."""

_POLL_S = 1.0
"""Seconds between two looks at a job that another process runs."""

_MIN_EVENT_INTERVAL_S = 0.1
"""Minimum seconds between two events of a stream; a display cannot show more."""

_HEARTBEAT_S = 15.0
"""Seconds without an event until a comment is sent, because proxies close silent connections."""


class Jobs:
    """Jobs of one service."""

    def __init__(
        self,
        settings: Settings,
        store: JobStore,
        files: JobFiles,
        resources: Resources,
        webhooks: Webhooks,
        runner: Runner,
        live: LiveJobs,
    ) -> None:
        """Use a store and a runner, which share `live`."""
        self._settings = settings
        self._store = store
        self._files = files
        self._resources = resources
        self._live = live
        self.webhooks = webhooks
        self.runner = runner
        self._stores = StoreProbe(self._check_stores)

    async def resume(self) -> None:
        """Continue with the jobs that an earlier process of the service left."""
        if await self._call(self._store.exists):
            self.runner.start()

    async def check_capacity(self, caller: Caller, identity: str, *, is_repetition: bool) -> None:
        """Check that a job of a caller would be accepted, before its body is received.

        Args:
            caller: Sender.
            identity: Rate limit key of the caller.
            is_repetition: Whether the request may repeat one that was accepted.
        Raises:
            TooManyJobs: The caller already has the maximum number of unfinished jobs.
            ServerBusy: The queue or the disk is full.
        """
        await self.check_files()
        depth = await self._ask(self._store.depth)
        self._check_disk(depth.bytes)
        if depth.queued >= self._settings.job_queue:
            raise ServerBusy("too many jobs are waiting; try again in a moment")
        limit = caller.plan.limits.max_unfinished_jobs
        if limit is None or is_repetition:
            return
        own = await self._ask(self._store.depth, identity)
        if own.queued + own.running >= limit:
            raise too_many_jobs(own.queued + own.running, limit)

    async def check_files(self) -> None:
        """Check that the files of jobs can be used. Raises JobStoreUnavailable within seconds."""
        await self._resources.threads.run_job_query(_FILES_DEADLINE_S, self._files.check)

    async def find_faults(self) -> list[str]:
        """Return why jobs wait or are rejected now, for operators; wait a moment for the stores at most."""
        return [*self.runner.faults, *await self.find_store_faults()]

    async def find_store_faults(self) -> list[str]:
        """Return which stores of jobs cannot be used; wait a moment for them at most."""
        return await self._stores.find_faults()

    async def _check_stores(self) -> list[str]:
        """Return which stores cannot be used; why, which may name hosts, is only for the log."""
        results = await asyncio.gather(self.check_files(), self.statistics(), return_exceptions=True)
        faults = []
        for name, result in zip(("files", "database"), results, strict=True):
            if isinstance(result, JobStoreUnavailable):
                log.error("%s", result.message)
                faults.append(f"the {name} of jobs cannot be used, so jobs are rejected")
            elif isinstance(result, BaseException):
                raise result
        return faults

    async def submit(self, new: NewJob, paths: list[Path]) -> Job:
        """Store the inputs of a job, whose files are at these paths, and add it to the queue.

        Raises:
            TooManyJobs: The caller already has the maximum number of unfinished jobs.
            ServerBusy: The queue or the disk is full.
            ServiceError: A different request was sent with the same idempotency key.
        """
        if new.idempotency_key is not None:
            new = structs.replace(new, fingerprint=await self._call(_hash_request, new, paths))
        self._check_disk(2 * sum(file.bytes for file in new.request.files))
        try:
            await self._call(self._files.add_inputs, new.id, paths)
            job, is_new = await self._ask(self._store.submit, new, max_queued=self._settings.job_queue)
        except JobStoreUnavailable:
            # the store may have accepted the job before the connection broke; if not, a sweep removes its inputs
            raise
        except BaseException:
            await self._call(self._files.remove_inputs, new.id)
            raise
        if not is_new:
            await self._call(self._files.remove_inputs, new.id)
            if job.fingerprint != new.fingerprint:
                raise ServiceError(
                    "another request was sent with this Idempotency-Key; use a new key for a new job",
                    error_code="idempotency_conflict",
                )
        self.runner.start()
        self.runner.wake()
        return job

    async def get(self, job_id: str, caller: Caller) -> Job:
        """Return a job that a caller may see. Raises ServiceError."""
        job = await self._ask(self._store.get, job_id)
        # the id of a job without a key is itself a secret
        if job is None or job.key_id not in ("", caller.id):
            raise ServiceError(
                "the job does not exist or belongs to another key; check the id and the key", error_code="job_not_found"
            )
        return self._live.refresh(job)

    async def list_jobs(self, key_id: str, limit: int, before: Job | None) -> list[Job]:
        """Return the latest jobs of a key, the newest first."""
        number = before.number if before is not None else None
        jobs = await self._ask(self._store.list_jobs, key_id, limit=limit, before=number)
        return [self._live.refresh(job) for job in jobs]

    async def describe(self, job: Job) -> JobDescription:
        """Return the JSON object of a job, with its place in the queue."""
        position = missing = None
        if job.state == "queued":
            position = await self._ask(self._store.position, job)
            if self._settings.is_cluster:
                missing = await self._ask(self._store.missing_memory, job)
        return describe_job(job, position, missing_memory_bytes=missing, root_path=self._settings.root_path)

    async def cancel(self, job: Job) -> Job:
        """Cancel an unfinished job, or delete the result of a finished one."""
        changed = await self._ask(self._store.cancel, job.id)
        self._live.stop(job.id)
        await self._call(self._files.remove_inputs, job.id)
        await self._call(self._files.remove_results, job.id)
        return changed or job

    async def read_result(self, job: Job, start: int, size: int) -> bytes:
        """Return a part of a result. Raises FileNotFoundError."""
        return await self._call(self._files.read_result, job.id, job.token or "", start, size)

    async def stream_events(
        self, job: Job, caller: Caller, texts: Texts, may_follow: Callable[[], Awaitable[bool]]
    ) -> AsyncIterator[bytes]:
        """Yield the state of a job as server-sent events, until it has ended or the service stops.

        Args:
            job: Row of the job.
            caller: Sender of the request.
            texts: Texts in the language of the request.
            may_follow: Checks again and again whether the stream should continue.
        """
        loop = asyncio.get_running_loop()
        event, last, last_sent = b"", b"", loop.time()
        with self._live.watch(job.id) as changed:
            while True:
                changed.clear()
                # the position is unknown if the store does not respond
                with contextlib.suppress(JobStoreUnavailable):
                    event = encode_json(await self.describe(job), texts)
                if event != last:
                    last, last_sent = event, loop.time()
                    yield b"data: " + event + b"\n\n"
                elif loop.time() - last_sent > _HEARTBEAT_S:
                    last_sent = loop.time()
                    yield b": still waiting\n\n"
                if job.is_finished or self._resources.is_closing:
                    return
                await asyncio.sleep(_MIN_EVENT_INTERVAL_S)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_POLL_S):
                        await changed.wait()
                if not await may_follow():
                    return
                try:
                    job = await self.get(job.id, caller)
                except JobStoreUnavailable:
                    continue
                except ServiceError:
                    # the row was deleted
                    return

    async def statistics(self) -> Statistics:
        """Return the state of the queue. Raises JobStoreUnavailable."""
        if not await self._call(self._store.exists):
            return Statistics(queued=0, running=0, oldest_s=0.0)
        return await self._ask(self._store.statistics)

    async def close(self) -> None:
        """Return running jobs to the queue, and close the store."""
        await self.runner.stop()
        await self._call(self._store.close)

    def _check_disk(self, required_bytes: int) -> None:
        free = self._files.free_bytes()
        if free is not None and free - self._settings.keep_free_bytes < required_bytes:
            raise ServerBusy("the service has too little disk space for jobs now; try again in a moment")

    async def _ask(self, function: Callable[..., T], *arguments: Any, **keywords: Any) -> T:
        """Call a function of the store for a request. Raises JobStoreUnavailable at the deadline of the store."""
        return await self._resources.threads.run_job_query(self._store.deadline_s, function, *arguments, **keywords)

    async def _call(self, function: Callable[..., T], *arguments: Any, **keywords: Any) -> T:
        return await self._resources.threads.run_job_storage(function, *arguments, **keywords)


def _hash_request(new: NewJob, paths: list[Path]) -> str:
    """Return a hash of all parts of a request that determine its result."""
    request = new.request
    facts = [
        new.kind,
        request.field,
        sorted(request.texts.items()),
        [(file.name, hash_file(path)) for file, path in zip(request.files, paths, strict=True)],
        new.webhook_url,
    ]
    return hashlib.sha256(msgspec.json.encode(facts)).hexdigest()
