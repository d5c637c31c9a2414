"""Sweeps: jobs of lost workers run again, old jobs expire, and files without a job are removed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from meshhub.errors import JobStoreUnavailable
from meshhub.http.admission.threads import Threads
from meshhub.http.jobs.live import LiveJobs
from meshhub.http.jobs.runs import ignore
from meshhub.service.jobs.files import JobFiles
from meshhub.service.jobs.store import LEASE_S, JobStore

log = logging.getLogger("meshhub.http")

_ORPHAN_SWEEP_S = 600.0
"""Seconds between two searches for files without a job, which list all folders."""


class Sweeper:
    """Sweeps of one process; for one event loop."""

    def __init__(self, store: JobStore, files: JobFiles, threads: Threads, live: LiveJobs) -> None:
        """Sweep a store and its files."""
        self._store = store
        self._files = files
        self._threads = threads
        self._live = live
        self.on_requeue: Callable[[], None] = ignore
        self._last_sweep = self._last_orphan_sweep = -float("inf")
        self._sweep_after = 0.0

    async def sweep(self) -> None:
        """Sweep, except within one lease after an outage of this process or the store: all leases look lost then."""
        try:
            await self._sweep_after_lease()
        except JobStoreUnavailable:
            self._last_sweep = -float("inf")
            raise

    async def _sweep_after_lease(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._last_sweep > LEASE_S:
            self._sweep_after = now + LEASE_S
        self._last_sweep = now
        if now < self._sweep_after:
            # the lease starts again if the store does not respond
            await self._threads.run_job_storage(self._store.depth)
            return
        swept = await self._threads.run_job_storage(self._store.sweep)
        for job_id in (*swept.lost, *swept.expired):
            await self._threads.run_job_storage(self._files.remove_inputs, job_id)
            await self._threads.run_job_storage(self._files.remove_results, job_id)
            self._live.notify(job_id)
        if swept.requeued:
            log.warning("%d jobs lost their worker and run again", len(swept.requeued))
            self.on_requeue()
        if now - self._last_orphan_sweep > _ORPHAN_SWEEP_S:
            self._last_orphan_sweep = now
            await self._threads.run_job_storage(self._files.sweep, self._store.select_known)
