"""Prometheus metrics of the service. Labels have a bounded number of values for any input."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from meshhub.errors import MeshhubError
from meshhub.http.errors import STATUS
from meshhub.pipeline.purposes import PURPOSES
from meshhub.registry import Registry
from meshhub.service.jobs.job import Job, Statistics

if TYPE_CHECKING:
    from meshhub.http.admission.resources import Resources

TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"
"""Media type of Prometheus' text format."""

OTHER = "other"
"""Label value that stands for all values that are not known in advance."""

NO_TARGET = "none"
"""Target label of an inspection."""

CACHED = "cached"
"""Outcome of a conversion whose result is in the cache."""

KILLS = {
    "conversion_timeout": "timeout",
    "worker_crashed": "crash",
    "canceled": "client_gone",
    "shutting_down": "shutdown",
}
"""Label of `meshhub_kills` by the outcome of a conversion whose worker was killed or crashed."""

LABEL_VALUES = {
    "endpoint": "path of an endpoint, or `other`",
    "status": "HTTP status; 499 means that the client left",
    "source": "format id, or `other`",
    "target": "format id, or `other`; `none` for an inspection, `png` for a picture",
    "outcome": "of a conversion: `ok`, `cached`, an [error code](errors.md), or `canceled`; of a job: `done`, "
    "`failed`, `released` to the queue, or `stale`: canceled, or running elsewhere; of a message: `delivered`, "
    "`failed` if it will be sent again, or `given_up`",
    "result": "`hit` or `miss`",
    "attempt": "number of the run of a job, from 1",
    "state": "`queued` or `running`",
    "kind": "why a worker was killed: `timeout`, `crash`, `client_gone`, `shutdown`",
    "direction": "`in` for request bodies, `out` for response bodies",
    "version": "version of meshhub",
}
"""Values of each label, in Markdown, for the reference."""

_JOB_BUCKETS_S = (0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 900, 3600)
"""Seconds; from a free worker to an hour of waiting."""

_BUCKETS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
"""Seconds; from a tiny STL to the longest timeout of the usual plans."""


_Kind = TypeVar("_Kind", Counter, Gauge, Histogram)


class MetricDescription(NamedTuple):
    """Metric as the reference lists it.

    Attributes:
        name: Name in the text format.
        kind: "counter", "gauge" or "histogram".
        labels: Names of its labels.
        meaning: Sentence for operators.
    """

    name: str
    kind: str
    labels: tuple[str, ...]
    meaning: str


class Measurement:
    """Labels and start time of one running conversion.

    Set `source` when the format is known, and `is_cached` if its result is in the cache.
    """

    def __init__(self, target: str) -> None:
        self.source = OTHER
        self.target = target
        self.started: float | None = None
        self.is_cached = False

    def start(self) -> None:
        """Start the time measurement; call this when the conversion has a worker."""
        self.started = time.monotonic()


class JobMeasurement:
    """Outcome of one run of a job: `done`, `failed`, `stale` if another process owns the job, otherwise `released`."""

    def __init__(self) -> None:
        self.outcome = "released"


class Metrics:
    """Metrics of one service; two services in one process do not share them."""

    def __init__(
        self,
        registry: Registry,
        resources: Resources,
        paths: frozenset[str],
        cache_bytes: Callable[[], int],
    ) -> None:
        """Count requests by endpoint in `paths`; all other paths count as `other`.

        `cache_bytes` returns the size of the cache of results.
        """
        self._formats = registry.declarations.formats.keys() | {
            purpose.output.id for purpose in PURPOSES.values() if purpose.output is not None
        }
        self._paths = paths
        self._collectors = CollectorRegistry()
        self.descriptions: list[MetricDescription] = []
        ProcessCollector(registry=self._collectors)
        self._requests = self._add(Counter, "meshhub_requests", "Requests answered.", ("endpoint", "status"))
        self._conversions = self._add(
            Counter,
            "meshhub_conversions",
            "Conversions, inspections and pictures.",
            ("source", "target", "outcome"),
        )
        self._seconds = self._add(
            Histogram,
            "meshhub_conversion_seconds",
            "From the start of the worker to its result.",
            ("source", "target"),
            buckets=_BUCKETS_S,
        )
        self._kills = self._add(Counter, "meshhub_kills", "Workers that were killed or crashed.", ("kind",))
        self._bytes = self._add(Counter, "meshhub_bytes", "Bytes of request and response bodies.", ("direction",))
        gauges = {
            "meshhub_queue_depth": ("Conversions that wait for a worker.", lambda: resources.slots.waiting),
            "meshhub_workers_busy": ("Conversions that run.", lambda: resources.slots.running),
            "meshhub_disk_free_bytes": (
                "Free bytes for uploads and results, beyond `keep_free_bytes`.",
                lambda: resources.disk.free_bytes(),
            ),
            "meshhub_cache_bytes": ("Size of the cache of results.", cache_bytes),
            "meshhub_workers": ("Maximum number of parallel conversions.", lambda: resources.workers),
        }
        self._lookups = self._add(Counter, "meshhub_cache_lookups", "Lookups in the cache of results.", ("result",))
        self._add_job_metrics()
        for name, (description, read) in gauges.items():
            self._add(Gauge, name, description).set_function(read)
        # export 0 for events that have not occurred yet
        for kind in KILLS.values():
            self._kills.labels(kind)
        for outcome in ("delivered", "failed", "given_up"):
            self._webhooks.labels(outcome)
        for direction in ("in", "out"):
            self._bytes.labels(direction)
        for result in ("hit", "miss"):
            self._lookups.labels(result)

    def _add(self, kind: type[_Kind], name: str, meaning: str, labels: tuple[str, ...] = (), **keywords: Any) -> _Kind:
        full_name = f"{name}_total" if kind is Counter else name
        self.descriptions.append(MetricDescription(full_name, kind.__name__.lower(), labels, meaning))
        return kind(name, meaning, labels, registry=self._collectors, **keywords)

    def _add_job_metrics(self) -> None:
        self._jobs = self._add(Gauge, "meshhub_jobs", "Unfinished jobs of all processes.", ("state",))
        self._jobs_oldest = self._add(
            Gauge, "meshhub_jobs_oldest_seconds", "Seconds for which the oldest queued job has waited."
        )
        self._job_workers = self._add(Gauge, "meshhub_job_workers", "Workers of the cluster that live.")
        self._job_slots = self._add(Gauge, "meshhub_job_slots", "Jobs that the workers of the cluster can run at once.")
        self._job_wait = self._add(
            Histogram,
            "meshhub_job_wait_seconds",
            "From the submission of a job to its first start, in this process.",
            buckets=_JOB_BUCKETS_S,
        )
        self._job_run = self._add(
            Histogram,
            "meshhub_job_run_seconds",
            "From the start of a run to its end, in this process.",
            ("outcome",),
            buckets=_JOB_BUCKETS_S,
        )
        self._job_attempts = self._add(
            Counter, "meshhub_job_attempts", "Runs that have started in this process.", ("attempt",)
        )
        self._store_faults = self._add(
            Gauge, "meshhub_job_store_faults", "Stores of jobs, the database and the files, that cannot be used now."
        )
        self._webhooks = self._add(
            Counter, "meshhub_webhook_attempts", "Attempts to deliver a message by this process.", ("outcome",)
        )
        build = self._add(Gauge, "meshhub_build_info", "Version of meshhub; the value is 1.", ("version",))
        build.labels(metadata.version("meshhub")).set(1)

    def set_store_faults(self, count: int) -> None:
        """Record how many stores of jobs cannot be used."""
        self._store_faults.set(count)

    def count_webhook(self, outcome: str) -> None:
        """Count an attempt to deliver a message: `delivered`, `failed` if it is repeated, or `given_up`."""
        self._webhooks.labels(outcome).inc()

    def set_jobs(self, statistics: Statistics) -> None:
        """Record the state of the queue."""
        self._jobs.labels("queued").set(statistics.queued)
        self._jobs.labels("running").set(statistics.running)
        self._jobs_oldest.set(statistics.oldest_s)
        self._job_workers.set(len(statistics.workers))
        self._job_slots.set(sum(node.slots or 0 for node in statistics.workers))

    @contextlib.contextmanager
    def measure_job(self, job: Job) -> Iterator[JobMeasurement]:
        """Count the run in the `with` block."""
        self._job_attempts.labels(str(job.attempt)).inc()
        if job.attempt == 1 and job.started is not None:
            self._job_wait.observe(job.started - job.created)
        measurement, started = JobMeasurement(), time.monotonic()
        try:
            yield measurement
        finally:
            self._job_run.labels(measurement.outcome).observe(time.monotonic() - started)

    def export(self) -> bytes:
        """Return all metrics in the Prometheus text format."""
        return generate_latest(self._collectors)

    def count_request(self, path: str, status: int, bytes_in: int, bytes_out: int) -> None:
        """Count an answered request and the bytes of its body and of the response body."""
        self._requests.labels(path if path in self._paths else OTHER, str(status)).inc()
        self._bytes.labels("in").inc(bytes_in)
        self._bytes.labels("out").inc(bytes_out)

    def count_lookup(self, *, is_hit: bool) -> None:
        """Count a lookup in the cache."""
        self._lookups.labels("hit" if is_hit else "miss").inc()

    @contextlib.contextmanager
    def measure(self, target: str | None) -> Iterator[Measurement]:
        """Count the conversion in the `with` block by its outcome; `target`: format id, None for an inspection."""
        measurement = Measurement(NO_TARGET if target is None else self._format_label(target))
        outcome = "ok"
        try:
            yield measurement
            if measurement.is_cached:
                outcome = CACHED
        except MeshhubError as error:
            outcome = error.error_code if error.error_code in STATUS or error.error_code in KILLS else OTHER
            raise
        except asyncio.CancelledError:
            outcome = "canceled"
            raise
        except BaseException:
            outcome = "internal_error"
            raise
        finally:
            source = self._format_label(measurement.source)
            self._conversions.labels(source, measurement.target, outcome).inc()
            if measurement.started is not None and outcome != CACHED:
                self._seconds.labels(source, measurement.target).observe(time.monotonic() - measurement.started)
                if outcome in KILLS:
                    self._kills.labels(KILLS[outcome]).inc()

    def _format_label(self, format_id: str) -> str:
        return format_id if format_id in self._formats else OTHER
