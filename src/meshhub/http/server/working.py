"""`work()`: run the jobs of a cluster in this process, without HTTP, until SIGINT or SIGTERM."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Iterator
from typing import cast

from meshhub.engine import logs
from meshhub.errors import InvalidSettings, MeshhubError, ShuttingDown
from meshhub.http.admission.addresses import networks
from meshhub.http.admission.resources import Resources
from meshhub.http.conversions.probe import Probe
from meshhub.http.conversions.result_cache import measure_cache, open_cache
from meshhub.http.conversions.runner import Conversions
from meshhub.http.jobs.cluster import ClusterWorker, Placer
from meshhub.http.jobs.execution import JobConversions
from meshhub.http.jobs.live import LiveJobs
from meshhub.http.jobs.runs import JobRuns
from meshhub.http.jobs.sweeping import Sweeper
from meshhub.http.metrics import Metrics
from meshhub.http.server.app import create_engine, create_hooks
from meshhub.http.server.connections import Peers
from meshhub.http.server.memory import freeze_objects, use_one_heap
from meshhub.http.server.probe_app import serve_probes
from meshhub.http.server.temporary_folder import own_temporary_folder
from meshhub.registry import Registry
from meshhub.service.jobs.delivery import JobDelivery
from meshhub.service.jobs.job import WorkerNode
from meshhub.service.jobs.opening import open_files, open_store
from meshhub.service.jobs.store import ClusterStore
from meshhub.service.settings import Loaded, Settings, load
from meshhub.service.sharing import SlotLimits

log = logging.getLogger("meshhub.http")

_POLL_INTERVAL_S = 0.05
"""Seconds between checks for signals and, during the shutdown, for running jobs."""


def work(settings: Settings | None = None, registry: Registry | None = None) -> None:
    """Run jobs until SIGINT or SIGTERM.

    After the signal, no job starts, and running jobs have `shutdown_seconds` before they return to the queue. A second
    signal returns them at once.

    Args:
        settings: Default: from the environment.
        registry: Default: built-in and installed plug-ins; it is closed at the end.
    Raises:
        InvalidSettings: A setting has an invalid value, or the settings describe no cluster.
        OSError: The address is not available.
    """
    use_one_heap()
    loaded = Loaded(settings, {}) if settings is not None else load()
    if not loaded.settings.is_cluster:
        raise InvalidSettings("jobs_database_url is not set; a worker needs the database of jobs that servers use")
    logs.to_stderr(loaded.settings.log)
    with own_temporary_folder(loaded.settings) as settings:
        try:
            worker = _Worker(settings, registry)
        except InvalidSettings as error:
            raise loaded.located(error) from None
        freeze_objects()
        asyncio.run(worker.run())


class _Worker:
    """Components of a worker."""

    def __init__(self, settings: Settings, registry: Registry | None) -> None:
        self._settings = settings
        self._registry = registry or Registry(
            engine=create_engine(settings), hooks=create_hooks(), disabled=settings.disabled_plugins
        )
        plans = settings.in_force(self._registry.plans)
        # the database decides how many jobs run in parallel
        self._resources = Resources(settings, SlotLimits(shared=settings.most_at_once))
        self._store = cast(ClusterStore, open_store(settings))
        self._files = open_files(settings)
        self._cache = open_cache(settings)
        self._metrics = Metrics(self._registry, self._resources, frozenset(), measure_cache(self._cache))
        conversions = Conversions(
            self._registry, self._resources, self._metrics, settings.batch_worker_count, self._cache
        )
        self._conversions = JobConversions(self._registry, self._resources, conversions, self._files, plans)
        self._probe = Probe(self._registry, self._resources)
        self._signal_count = 0

    async def run(self) -> None:
        """Run jobs until a signal, then drain."""
        settings, live = self._settings, LiveJobs()
        runs = JobRuns(self._store, self._files, self._conversions, self._resources, live, self._metrics)
        delivery = JobDelivery(settings.jobs_database_url or "")
        node = WorkerNode(runs.worker, settings.worker_count, settings.job_memory_bytes)
        runner = ClusterWorker(
            self._store,
            Placer(self._store, delivery, self._resources.threads),
            delivery,
            Sweeper(self._store, self._files, self._resources.threads, live),
            runs,
            self._resources,
            node,
        )
        with self._counting_signals():
            async with self._serve_probes():
                # the first job must not wait for imports
                with contextlib.suppress(MeshhubError):
                    await self._probe.check()
                runner.start()
                if self._cache is not None:
                    self._cache.start(self._resources.threads)
                log.info("meshhub runs jobs as %s: %d slots", node.worker, node.slots)
                while not self._signal_count:
                    await asyncio.sleep(_POLL_INTERVAL_S)
                await self._drain(runner)
        log.info("stopped")

    def _serve_probes(self) -> contextlib.AbstractAsyncContextManager[object]:
        """Serve health and metrics at the address of the settings, if there is one."""
        settings = self._settings
        if settings.worker_address is None:
            return contextlib.nullcontext()
        peers = Peers(settings.connections_per_address, networks(settings.trusted_proxies))
        return serve_probes(settings.worker_address, peers, self._check_ready, self._export_metrics)

    async def _drain(self, runner: ClusterWorker) -> None:
        """Start no more jobs, give running ones some time, then return them to the queue."""
        log.info("stopping; %d jobs still run", runner.count)
        try:
            await runner.drain()
        except MeshhubError as error:
            # the placements end with the lease of this worker
            log.warning("%s", error.message)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._settings.shutdown_seconds
        while runner.count and self._signal_count == 1 and loop.time() < deadline:
            await asyncio.sleep(_POLL_INTERVAL_S)
        self._resources.stop()
        await runner.stop()
        if self._cache is not None:
            await self._cache.close()
        self._registry.close()
        self._store.close()
        self._resources.close()

    @contextlib.contextmanager
    def _counting_signals(self) -> Iterator[None]:
        """Count SIGINT and SIGTERM. A handler that set an event could deadlock with the loop that it interrupts."""

        def count(_number: int, _frame: object) -> None:
            self._signal_count += 1

        previous = {number: signal.signal(number, count) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    async def _check_ready(self) -> None:
        """Check that this process accepts jobs, converts, and reaches the database. Raises MeshhubError."""
        if self._signal_count:
            raise ShuttingDown("the worker is shutting down")
        self._resources.disk.check()
        await self._probe.check()
        await self._resources.threads.run_job_query(self._store.deadline_s, self._store.statistics)
        await self._resources.threads.run_job_query(self._store.deadline_s, self._files.check)

    async def _export_metrics(self) -> bytes:
        ask = self._resources.threads.run_job_query
        statistics, files = await asyncio.gather(
            ask(self._store.deadline_s, self._store.statistics),
            ask(self._store.deadline_s, self._files.check),
            return_exceptions=True,
        )
        if not isinstance(statistics, BaseException):
            self._metrics.set_jobs(statistics)
        self._metrics.set_store_faults(sum(isinstance(each, MeshhubError) for each in (statistics, files)))
        return self._metrics.export()
