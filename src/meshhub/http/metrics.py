"""What the service counts for Prometheus. Every label has few values, whatever callers send."""

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
    from meshhub.http.admission.resources import Jobs

OTHER = "other"
"""What stands for whatever is not known beforehand."""

NOTHING = "none"
"""The target of an inspection."""

KILLS = {
    "conversion_timeout": "timeout",
    "worker_crashed": "crash",
    "cancelled": "client_gone",
    "shutting_down": "shutdown",
}
"""Outcomes in which a worker did not end by itself, and what they are called."""

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)


class Conversion:
    """One conversion while it runs; `source` is told when it is known, `began` when a worker was found."""

    def __init__(self, target: str) -> None:
        self.source = OTHER
        self.target = target
        self.began: float | None = None

    def begin(self) -> None:
        """It has got a worker: from here on its seconds count."""
        self.began = time.monotonic()


class Metrics:
    """The figures of one service; two in one program do not mix."""

    def __init__(self, registry: Registry, jobs: Jobs, paths: frozenset[str]) -> None:
        """`paths` are the endpoints; any other path counts as `other`."""
        self._formats = frozenset(registry.declarations.formats)
        self._paths = paths
        self._kept = kept = CollectorRegistry()
        ProcessCollector(registry=kept)
        self._requests = Counter("meshhub_requests", "Requests answered.", ("endpoint", "status"), registry=kept)
        self._conversions = Counter(
            "meshhub_conversions", "Conversions and inspections.", ("source", "target", "outcome"), registry=kept
        )
        self._seconds = Histogram(
            "meshhub_conversion_seconds",
            "From the worker's start to its answer.",
            ("source", "target"),
            registry=kept,
            buckets=_SECONDS,
        )
        self._kills = Counter("meshhub_kills", "Workers that did not end by themselves.", ("kind",), registry=kept)
        self._bytes = Counter("meshhub_bytes", "Bodies of requests and answers.", ("direction",), registry=kept)
        gauges = {
            "meshhub_queue_depth": ("Conversions that wait for a worker.", lambda: jobs.waiting),
            "meshhub_workers_busy": ("Conversions that run.", lambda: jobs.running),
            "meshhub_workers": ("Conversions that may run at once.", lambda: jobs.workers),
        }
        for name, (meaning, ask) in gauges.items():
            Gauge(name, meaning, registry=kept).set_function(ask)
        self._hooks = registry.hooks
        self._hooks_off = Gauge(
            "meshhub_hooks_off", "Hooks of plug-ins that are off.", ("plugin", "hook"), registry=kept
        )
        # what never happened is told as 0
        for kind in KILLS.values():
            self._kills.labels(kind)
        for direction in ("in", "out"):
            self._bytes.labels(direction)

    def text(self) -> bytes:
        """All of it, in Prometheus' text format."""
        self._hooks_off.clear()
        for fault in self._hooks.faults:
            self._hooks_off.labels(fault.plugin, fault.hook).set(1)
        return generate_latest(self._kept)

    def answered(self, path: str, status: int, came: int, went: int) -> None:
        """Count a request with the bytes of its body and of its answer."""
        self._requests.labels(path if path in self._paths else OTHER, str(status)).inc()
        self._bytes.labels("in").inc(came)
        self._bytes.labels("out").inc(went)

    @contextlib.contextmanager
    def conversion(self, target: str | None) -> Iterator[Conversion]:
        """Count a conversion by how what is inside ends; `target` is the id of a format, or None for a look."""
        mine = Conversion(NOTHING if target is None else self._known(target))
        outcome = "ok"
        try:
            yield mine
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
            source = self._known(mine.source)
            self._conversions.labels(source, mine.target, outcome).inc()
            if mine.began is not None:
                self._seconds.labels(source, mine.target).observe(time.monotonic() - mine.began)
                if outcome in KILLS:
                    self._kills.labels(KILLS[outcome]).inc()

    def _known(self, format_id: str) -> str:
        return format_id if format_id in self._formats else OTHER
