"""Counts of requests by kind and outcome, wrong responses, and the tables."""

from __future__ import annotations

import statistics
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Sequence

from benchmarks.soak.server import MEGABYTE, Sample

_MAX_PRINTED_COUNT = 20
"""Wrong responses that are printed when they occur; the rest are only counted."""

GOOD, REJECTED, BUSY, LEFT, WRONG = "good", "rejected", "busy", "left", "wrong"
OUTCOMES = (GOOD, REJECTED, BUSY, LEFT, WRONG)
"""Correct result, correct rejection, no free worker, client that left before the response, wrong response."""


class WrongResponse(Exception):
    """Raised for a response that differs from the expected one."""


class Recorder:
    """Thread-safe counts of requests."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()
        self._seconds: defaultdict[str, list[float]] = defaultdict(list)
        self._started = time.monotonic()
        self.wrong: list[str] = []

    def add(self, kind: str, outcome: str, seconds: float | None = None) -> None:
        """Count a request; `seconds` is the time to the whole response, for clients that read at full speed."""
        with self._lock:
            self._counts[kind, outcome] += 1
            if seconds is not None:
                self._seconds[kind].append(seconds)

    def add_wrong(self, kind: str, text: str) -> None:
        """Count a wrong response, and print the first ones."""
        with self._lock:
            self._counts[kind, WRONG] += 1
            self.wrong.append(f"{time.monotonic() - self._started:.0f} s, {kind}: {text}")
            if len(self.wrong) <= _MAX_PRINTED_COUNT:
                print("WRONG", self.wrong[-1], flush=True)

    @property
    def requests(self) -> int:
        """Number of requests."""
        return sum(self._counts.values())

    def count(self, outcome: str) -> int:
        """Return the number of requests with this outcome."""
        return sum(count for (_, actual), count in self._counts.items() if actual == outcome)

    def table(self) -> str:
        """Return a Markdown table of the requests by kind and outcome, with their times."""
        kinds = sorted({kind for kind, _ in self._counts}, key=lambda kind: -sum(self._row(kind)))
        lines = [
            f"| requests | {' | '.join(OUTCOMES)} | p50 s | p95 s | p99 s |",
            "|---|" + "---|" * (len(OUTCOMES) + 3),
        ]
        lines += [self._line(kind, self._row(kind), self._seconds[kind]) for kind in kinds]
        all_seconds = [seconds for kind in kinds for seconds in self._seconds[kind]]
        lines.append(self._line("all", [self.count(outcome) for outcome in OUTCOMES], all_seconds))
        return "\n".join(lines)

    def _row(self, kind: str) -> list[int]:
        return [self._counts[kind, outcome] for outcome in OUTCOMES]

    @staticmethod
    def _line(kind: str, row: list[int], seconds: list[float]) -> str:
        if len(seconds) > 1:
            cuts = statistics.quantiles(seconds, n=100, method="inclusive")
            percentiles = " | ".join(f"{cuts[percent - 1]:.2f}" for percent in (50, 95, 99))
        else:
            percentiles = "– | – | –"
        return f"| {kind} | {' | '.join(str(count) if count else '–' for count in row)} | {percentiles} |"


def memory_table(samples: Sequence[tuple[str, Sample]]) -> str:
    """Return a Markdown table of the samples of the idle service."""
    lines = [
        "| quiet moment | server process MB | private | fork server MB | private | all processes MB | files "
        "| threads |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for moment, sample in samples:
        sizes = (
            sample.server_bytes,
            sample.server_private_bytes,
            sample.fork_server_bytes,
            sample.fork_server_private_bytes,
            sample.total_bytes,
        )
        cells = " | ".join(f"{size / MEGABYTE:.1f}" for size in sizes)
        lines.append(f"| {moment} | {cells} | {sample.open_files} | {sample.threads} |")
    return "\n".join(lines)


def drift(values: Sequence[float]) -> float:
    """Return the growth over a series of evenly spaced values, as a ratio to its start.

    It is the slope of the Theil-Sen line: the median slope of all pairs, which a single outlier does not change.
    """
    if len(values) < 2:
        return 0.0
    pairs = [(b - a) / (j - i) for i, a in enumerate(values) for j, b in enumerate(values) if i < j]
    slope = statistics.median(pairs)
    begin = statistics.median(value - slope * number for number, value in enumerate(values))
    return slope * (len(values) - 1) / begin
