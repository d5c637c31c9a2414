"""Runners of a cluster: one only places jobs on workers; the other also runs the jobs that are placed on it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence

from meshhub.http.admission.resources import Resources
from meshhub.http.admission.slots import Ticket
from meshhub.http.admission.threads import Threads
from meshhub.http.jobs.runner import POLL_S
from meshhub.http.jobs.runs import JobRuns
from meshhub.http.jobs.sweeping import Sweeper
from meshhub.http.jobs.webhooks import Webhooks
from meshhub.http.loops import Loops
from meshhub.service.jobs.delivery import JobDelivery
from meshhub.service.jobs.job import Placement, WorkerNode
from meshhub.service.jobs.store import BEAT_S, SWEEP_S, ClusterStore

log = logging.getLogger("meshhub.http")


class Placer:
    """Placement of queued jobs on workers as soon as there are slots; for one event loop.

    Every process of a cluster does this. Processes that place jobs at the same time wait for each other in the
    database.
    """

    def __init__(self, store: ClusterStore, delivery: JobDelivery, threads: Threads) -> None:
        """Place the jobs of a store."""
        self._store = store
        self._delivery = delivery
        self._threads = threads
        self._has_work = asyncio.Event()
        # before the first look, assume that workers can start all jobs
        self.fault = ""

    def wake(self) -> None:
        """Look for jobs now."""
        self._has_work.set()

    async def place(self) -> None:
        """Wait until there may be jobs or slots, place jobs, and deliver them."""
        await self._delivery.send(await self.place_when_due())

    async def place_when_due(self) -> list[Placement]:
        """Wait until there may be jobs or slots, and place jobs."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(POLL_S):
                await self._has_work.wait()
        self._has_work.clear()
        return await self._threads.run_job_storage(self._store.place_jobs)

    async def repeat_deliveries(self) -> None:
        """Repeat deliveries to workers that stopped meanwhile."""
        statistics = await self._threads.run_job_storage(self._store.statistics)
        self.fault = "; ".join(statistics.cluster_fault or ())
        await self._delivery.repeat_stalled({node.worker for node in statistics.workers})


class ClusterAcceptor:
    """Runner of a server that only accepts jobs."""

    def __init__(self, placer: Placer, delivery: JobDelivery, sweeper: Sweeper, webhooks: Webhooks) -> None:
        """Place jobs, sweep, and send webhooks."""
        self._placer = placer
        self._delivery = delivery
        self._sweeper = sweeper
        self._webhooks = webhooks
        self._loops = Loops()
        sweeper.on_requeue = placer.wake

    @property
    def faults(self) -> Sequence[str]:
        """Why workers cannot start queued jobs; known since the last look."""
        return (self._placer.fault,) if self._placer.fault else ()

    def start(self) -> None:
        """Start to place jobs."""
        if not self._loops.is_running:
            self._loops.start(
                (self._placer.place, 0.0),
                (self._sweeper.sweep, SWEEP_S),
                (self._repeat_deliveries, SWEEP_S),
                (self._webhooks.deliver_due, POLL_S),
            )

    def wake(self) -> None:
        """Look for jobs now."""
        self._placer.wake()

    async def _repeat_deliveries(self) -> None:
        """Repeat deliveries, and log why workers cannot start jobs; a worker that starts or ends is not one of them."""
        known = self._placer.fault
        await self._placer.repeat_deliveries()
        if self._placer.fault not in ("", known):
            log.warning("%s", self._placer.fault)

    async def stop(self) -> None:
        """Stop to place jobs."""
        await self._loops.stop()
        await self._delivery.close()


class ClusterWorker:
    """Runner of a worker: it runs the jobs that are placed on it."""

    def __init__(
        self,
        store: ClusterStore,
        placer: Placer,
        delivery: JobDelivery,
        sweeper: Sweeper,
        runs: JobRuns,
        resources: Resources,
        node: WorkerNode,
    ) -> None:
        """Run jobs as the worker `node`."""
        self._store = store
        self._placer = placer
        self._delivery = delivery
        self._sweeper = sweeper
        self._runs = runs
        self._resources = resources
        self._node = node
        self._loops = Loops()
        self._receiving = Loops()
        runs.on_end = sweeper.on_requeue = placer.wake

    @property
    def count(self) -> int:
        """Number of runs."""
        return self._runs.count

    def start(self) -> None:
        """Start to receive, beat and sweep."""
        self._runs.remove_leftovers()
        self._loops.start(
            (self._place, 0.0),
            (self._runs.beat, BEAT_S),
            (self._sweeper.sweep, SWEEP_S),
            (self._placer.repeat_deliveries, SWEEP_S),
        )
        self._receiving.start((self._announce, BEAT_S), (self._receive, 0.0))

    async def drain(self) -> None:
        """Start no more jobs; those that run continue."""
        await self._receiving.stop()
        await self._resources.threads.run_job_storage(self._store.retire, self._node.worker)

    async def stop(self) -> None:
        """Stop the runs, and return their jobs to the queue."""
        await self._runs.stop()
        await self._loops.stop()
        await self._receiving.stop()
        await self._delivery.close()

    async def _place(self) -> None:
        """Place jobs: start those of this worker, and deliver the others.

        A separate delivery costs a worker 8 ms of processor time, so a busy worker takes its next job itself.
        """
        placements = await self._placer.place_when_due()
        own = [placement.job_id for placement in placements if placement.worker == self._node.worker]
        others = [placement for placement in placements if placement.worker != self._node.worker]
        await asyncio.gather(self._delivery.send(others), *map(self._start_job, own))

    async def _announce(self) -> None:
        await self._resources.threads.run_job_storage(self._store.announce, self._node)
        self._placer.wake()

    async def _receive(self) -> None:
        # creates the tables of the engine
        await self._resources.threads.run_job_storage(self._store.announce, self._node)
        await self._delivery.receive(self._node.worker, self._node.slots or 1, self._start_job)

    async def _start_job(self, job_id: str) -> None:
        """Claim a job in a slot, and start its run; the delivery ends with the claim."""
        ticket = Ticket(self._node.worker, has_started=True)
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(self._resources.slot(ticket, None))
            job = await self._resources.threads.run_job_storage(self._store.claim_placed, self._node.worker, job_id)
            if job is not None:
                self._runs.start(job, ticket, stack.pop_all())
