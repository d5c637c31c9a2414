"""What happened: every request by kind and outcome, what was wrong, and the tables."""

from __future__ import annotations

import statistics
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Sequence

from benchmarks.soak.server import MEGABYTE, Sample

_SHOWN = 20

GOOD, REFUSED, BUSY, LEFT, WRONG = "good", "refused", "busy", "left", "wrong"
OUTCOMES = (GOOD, REFUSED, BUSY, LEFT, WRONG)
"""A right result, a right refusal, no worker free, a client that did not wait for it, and what must not be."""


class Wrong(Exception):
    """An answer that is not what it must be."""


class Record:
    """Counts; for many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()
        self._seconds: defaultdict[str, list[float]] = defaultdict(list)
        self._started = time.monotonic()
        self.wrong: list[str] = []

    def note(self, kind: str, outcome: str, seconds: float | None = None) -> None:
        """One request that ended so; `seconds` until its whole answer, when one was waited for at full speed."""
        with self._lock:
            self._counts[kind, outcome] += 1
            if seconds is not None:
                self._seconds[kind].append(seconds)

    def fault(self, kind: str, text: str) -> None:
        """One that was wrong."""
        with self._lock:
            self._counts[kind, WRONG] += 1
            self.wrong.append(f"{time.monotonic() - self._started:.0f} s, {kind}: {text}")
            if len(self.wrong) <= _SHOWN:
                print("WRONG", self.wrong[-1], flush=True)

    @property
    def requests(self) -> int:
        """How many there were."""
        return sum(self._counts.values())

    def of(self, outcome: str) -> int:
        """How many ended so."""
        return sum(count for (_, ended), count in self._counts.items() if ended == outcome)

    def table(self) -> str:
        """Requests by kind and outcome, and how long they took."""
        kinds = sorted({kind for kind, _ in self._counts}, key=lambda kind: -sum(self._row(kind)))
        lines = [
            f"| requests | {' | '.join(OUTCOMES)} | p50 s | p95 s | p99 s |",
            "|---|" + "---|" * (len(OUTCOMES) + 3),
        ]
        lines += [self._line(kind, self._row(kind), self._seconds[kind]) for kind in kinds]
        every = [seconds for kind in kinds for seconds in self._seconds[kind]]
        lines.append(self._line("all", [self.of(outcome) for outcome in OUTCOMES], every))
        return "\n".join(lines)

    def _row(self, kind: str) -> list[int]:
        return [self._counts[kind, outcome] for outcome in OUTCOMES]

    @staticmethod
    def _line(kind: str, row: list[int], seconds: list[float]) -> str:
        if len(seconds) > 1:
            cuts = statistics.quantiles(seconds, n=100, method="inclusive")
            spread = " | ".join(f"{cuts[at - 1]:.2f}" for at in (50, 95, 99))
        else:
            spread = "– | – | –"
        return f"| {kind} | {' | '.join(str(count) if count else '–' for count in row)} | {spread} |"


def memory_table(samples: Sequence[tuple[str, Sample]]) -> str:
    """What the service took at quiet moments."""
    lines = [
        "| quiet moment | listening MB | its own | fork server MB | its own | all processes MB | files | threads |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for word, one in samples:
        sizes = (one.memory, one.listening, one.sparing, one.forking, one.proportional)
        shown = " | ".join(f"{size / MEGABYTE:.1f}" for size in sizes)
        lines.append(f"| {word} | {shown} | {one.files} | {one.threads} |")
    return "\n".join(lines)


def drift(values: Sequence[float]) -> float:
    """The growth over the whole of evenly spaced values, as a share of where they begin.

    By Theil and Sen's line: the median of the slopes between all pairs, which no single outlier moves.
    """
    if len(values) < 2:
        return 0.0
    pairs = [(b - a) / (j - i) for i, a in enumerate(values) for j, b in enumerate(values) if i < j]
    slope = statistics.median(pairs)
    begin = statistics.median(value - slope * number for number, value in enumerate(values))
    return slope * (len(values) - 1) / begin
