"""Progress of a running conversion: steps report it, a callback of the caller receives it.

Readers, writers and operations call `advance` or `track` anywhere below their `run`. A context variable holds the
reporter, so plug-ins do not pass it as an argument. If no caller listens, as in the tests of a plug-in, both cost next
to nothing and report nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, TypeVar

from msgspec import Struct, structs

from meshhub.model.chain import Chain, Inspect
from meshhub.model.report import StepKind

T = TypeVar("T")

MIN_INTERVAL_S = 0.1
"""Minimum seconds between two fractions of one step; more would slow the conversion, and no display shows them. """

INSPECTION = "inspection"
"""Id of the last step of an inspection, which is not part of its chain."""


class Progress(Struct, frozen=True, kw_only=True):
    """State of a running conversion."""

    step: str
    """Id of the running step: of the format, of the operation, or "inspection"."""

    kind: StepKind | Literal["inspect"]
    """Kind of the step."""

    label: str
    """Name of the step for people."""

    index: int
    """Number of the step, from 0."""

    count: int
    """Number of steps."""

    fraction: float | None = None
    """Finished share of the step, from 0 to 1; None until the step reports one. 1 for the last step: all is done."""


Listener = Callable[[Progress], None]
"""Callback of a caller."""

Send = Callable[[int, float | None], None]
"""Called with the number of a step and its fraction."""


class ListenerFailed(BaseException):
    """A listener raised an exception, which is the cause; it passes through the code of plug-ins as Ctrl-C does."""


def advance(fraction: float) -> None:
    """Report the finished share of the running step to the caller.

    Frequent calls are harmless: at most ten reports per second reach the caller, and a share that is not larger than an
    earlier one of the step is left out.

    Args:
        fraction: From 0 to 1.
    """
    reporter = _current.get()
    if reporter is not None:
        reporter.advance(fraction)


def track(items: Iterable[T], sizes: Iterable[float] | None = None) -> Iterator[T]:
    """Yield the items, and report the share of those that are finished.

    While the caller processes an item, `advance` and `track` report shares of this item.

    Args:
        items: Items that the step processes, one after the other.
        sizes: Work for each item, in any unit; the same for all by default.
    """
    items = list(items)
    weights = list(sizes) if sizes is not None else [1.0] * len(items)
    total, done = sum(weights) or 1.0, 0.0
    for item, weight in zip(items, weights, strict=True):
        with portion(done / total, (done + weight) / total):
            yield item
        done += weight
        advance(done / total)


@contextmanager
def portion(start: float, end: float) -> Iterator[None]:
    """Let the fractions that are reported inside refer to a portion of the work, from fraction `start` to `end`."""
    reporter = _current.get()
    if reporter is None:
        yield
        return
    outer = reporter.window
    reporter.window = outer[0] + start * (outer[1] - outer[0]), outer[0] + end * (outer[1] - outer[0])
    try:
        yield
    finally:
        reporter.window = outer


@contextmanager
def reporting(send: Send) -> Iterator[None]:
    """Send the progress of the steps that run inside."""
    token = _current.set(_Reporter(send))
    try:
        yield
    finally:
        _current.reset(token)


def begin_step(number: int) -> None:
    """Report that a step begins; for the host."""
    reporter = _current.get()
    if reporter is not None:
        reporter.begin(number)


class _Reporter:
    """Limits how often a step reports."""

    def __init__(self, send: Send) -> None:
        self.window = 0.0, 1.0
        self._send = send
        self._step = 0
        self._fraction = 0.0
        self._next_s = 0.0

    def begin(self, number: int) -> None:
        self._step, self._fraction, self._next_s, self.window = number, 0.0, 0.0, (0.0, 1.0)
        self._send(number, None)

    def advance(self, fraction: float) -> None:
        now = time.monotonic()
        # NaN compares false
        if now < self._next_s or not 0 <= fraction <= 1:
            return
        low, high = self.window
        fraction = min(low + fraction * (high - low), 1.0)
        if fraction > self._fraction:
            self._fraction, self._next_s = float(fraction), now + MIN_INTERVAL_S
            self._send(self._step, self._fraction)


_current: ContextVar[_Reporter | None] = ContextVar("meshhub_progress", default=None)


class Relay:
    """Calls a listener for the steps of one chain, whose reports may come from a worker process."""

    def __init__(self, chain: Chain, listener: Listener) -> None:
        self._states = [
            Progress(step=step.id, kind=step.kind, label=step.label, index=0, count=0) for step in chain.steps
        ]
        if isinstance(chain.ending, Inspect):
            self._states.append(Progress(step=INSPECTION, kind="inspect", label="Inspection", index=0, count=0))
        self._listener = listener
        self._step = -1
        self._next_s = 0.0

    def __call__(self, number: int, fraction: float | None) -> None:
        """Call the listener for the start of a step or for its fraction. Leave out fractions that come too often.

        Raises:
            ValueError: The step does not exist or is out of order, or the fraction is not between 0 and 1.
            ListenerFailed: The listener raised an exception, which is the cause.
        """
        if number != self._step + (fraction is None) or number >= len(self._states):
            raise ValueError(f"step {number} does not follow step {self._step}")
        now = time.monotonic()
        if fraction is None:
            self._step = number
        elif not 0 <= fraction <= 1:
            raise ValueError(f"{fraction} is not a fraction")
        elif now < self._next_s:
            return
        else:
            # half, because two reports of a worker may arrive closer together than it sent them
            self._next_s = now + MIN_INTERVAL_S / 2
        self._call(fraction)

    def restart(self) -> None:
        """Expect the first step: another worker runs the chain again."""
        self._step = -1

    def finish(self) -> None:
        """Call the listener for the end of the last step. Raises ListenerFailed."""
        self._call(1.0)

    def _call(self, fraction: float | None) -> None:
        state = structs.replace(self._states[self._step], index=self._step, count=len(self._states), fraction=fraction)
        try:
            self._listener(state)
        except Exception as error:
            raise ListenerFailed from error
