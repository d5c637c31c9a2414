"""Prometheus metrics of the service. Labels have a bounded number of values for any input."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from meshhub.errors import MeshhubError
from meshhub.http.errors import STATUS
from meshhub.registry import Registry

if TYPE_CHECKING:
    from meshhub.http.admission.resources import Resources

OTHER = "other"
"""Label value for all values that are not known beforehand."""

NO_TARGET = "none"
"""Target label of an inspection."""

PICTURE = "png"
"""Target label of a picture."""

KILLS = {
    "conversion_timeout": "timeout",
    "worker_crashed": "crash",
    "cancelled": "client_gone",
    "shutting_down": "shutdown",
}
"""Label of `meshhub_kills` by the outcome of a conversion whose worker was killed or crashed."""

_BUCKETS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
"""Seconds; from a tiny STL to the longest timeout of the usual plans."""


class Measurement:
    """Labels and start time of one running conversion. Set `source` when the format is known."""

    def __init__(self, target: str) -> None:
        self.source = OTHER
        self.target = target
        self.started: float | None = None

    def start(self) -> None:
        """Start the measurement of the time; call this when the conversion has a worker."""
        self.started = time.monotonic()


class Metrics:
    """Metrics of one service; two services in one process do not share them."""

    def __init__(self, registry: Registry, resources: Resources, paths: frozenset[str]) -> None:
        """Count requests by endpoint in `paths`; all other paths count as `other`."""
        self._formats = frozenset((*registry.declarations.formats, PICTURE))
        self._paths = paths
        self._hooks = registry.hooks
        self._collectors = collectors = CollectorRegistry()
        ProcessCollector(registry=collectors)
        self._requests = Counter("meshhub_requests", "Requests answered.", ("endpoint", "status"), registry=collectors)
        self._conversions = Counter(
            "meshhub_conversions",
            "Conversions, inspections and pictures.",
            ("source", "target", "outcome"),
            registry=collectors,
        )
        self._seconds = Histogram(
            "meshhub_conversion_seconds",
            "From the start of the worker to its result.",
            ("source", "target"),
            registry=collectors,
            buckets=_BUCKETS_S,
        )
        self._kills = Counter("meshhub_kills", "Workers that were killed or crashed.", ("kind",), registry=collectors)
        self._bytes = Counter(
            "meshhub_bytes", "Bytes of request and response bodies.", ("direction",), registry=collectors
        )
        gauges = {
            "meshhub_queue_depth": ("Conversions that wait for a worker.", lambda: resources.waiting),
            "meshhub_workers_busy": ("Conversions that run.", lambda: resources.running),
            "meshhub_workers": ("Maximum number of parallel conversions.", lambda: resources.workers),
        }
        for name, (description, read) in gauges.items():
            Gauge(name, description, registry=collectors).set_function(read)
        self._hooks_off = Gauge(
            "meshhub_hooks_off", "Disabled hooks of plug-ins.", ("plugin", "hook"), registry=collectors
        )
        # export 0 for events that have not occurred yet
        for kind in KILLS.values():
            self._kills.labels(kind)
        for direction in ("in", "out"):
            self._bytes.labels(direction)

    def export(self) -> bytes:
        """Return all metrics in the Prometheus text format."""
        self._hooks_off.clear()
        for fault in self._hooks.faults:
            self._hooks_off.labels(fault.plugin, fault.hook).set(1)
        return generate_latest(self._collectors)

    def count_request(self, path: str, status: int, bytes_in: int, bytes_out: int) -> None:
        """Count an answered request and the bytes of its body and of the response body."""
        self._requests.labels(path if path in self._paths else OTHER, str(status)).inc()
        self._bytes.labels("in").inc(bytes_in)
        self._bytes.labels("out").inc(bytes_out)

    @contextlib.contextmanager
    def measure(self, target: str | None) -> Iterator[Measurement]:
        """Count the conversion in the `with` block by its outcome; `target`: format id, None for an inspection."""
        measurement = Measurement(NO_TARGET if target is None else self._format_label(target))
        outcome = "ok"
        try:
            yield measurement
        except MeshhubError as error:
            outcome = error.code if error.code in STATUS or error.code in KILLS else OTHER
            raise
        except asyncio.CancelledError:
            outcome = "cancelled"
            raise
        except BaseException:
            outcome = "internal_error"
            raise
        finally:
            source = self._format_label(measurement.source)
            self._conversions.labels(source, measurement.target, outcome).inc()
            if measurement.started is not None:
                self._seconds.labels(source, measurement.target).observe(time.monotonic() - measurement.started)
                if outcome in KILLS:
                    self._kills.labels(KILLS[outcome]).inc()

    def _format_label(self, format_id: str) -> str:
        return format_id if format_id in self._formats else OTHER
