"""Interface of every engine: it takes a task and returns its report, or raises a coded error."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Protocol

from msgspec import Struct, field

from meshhub.errors import Canceled, ConversionTimeout
from meshhub.model.chain import Chain, Position
from meshhub.model.deadline import bounded_by
from meshhub.model.progress import Listener, Send, reporting
from meshhub.model.source import Source, Target
from meshhub.model.verdict import Result
from meshhub.pipeline.fork_lock import IMPORTING
from meshhub.pipeline.questions import Question, Reply

CALLER: ContextVar[str] = ContextVar("meshhub_caller", default="")
"""Public id of the caller for whom tasks run; a worker may run several tasks of one caller. Default: unknown."""


class Meter:
    """Processor time that tasks have used; safe to use from several threads."""

    def __init__(self) -> None:
        """Begin at 0."""
        self._lock = threading.Lock()
        self.cpu_seconds = 0.0

    def add(self, cpu_seconds: float) -> None:
        """Count the processor time of a task."""
        with self._lock:
            self.cpu_seconds += cpu_seconds


METER: ContextVar[Meter | None] = ContextVar("meshhub_meter", default=None)
"""Meter to which engines add the processor time of the tasks of this context, including failed ones."""


class Task(Struct, frozen=True, kw_only=True):
    """A chain with its source and target.

    Attributes:
        chain: Steps to run.
        source: Input.
        target: Output; an inspection writes nothing to it, and a check only if it marks its findings.
        deadline: When the engine stops the task, in seconds of the monotonic clock; set by the engine.
        progress: Callback for the progress, called in the thread that called the engine. If it raises an exception, the
            engine stops the task and raises the same exception.
    """

    chain: Chain
    source: Source
    target: Target = field(default_factory=Target)
    deadline: float | None = None
    progress: Listener | None = None


class Cancel:
    """Signal that stops a task from another thread, now or before it starts. Close it when the task is over.

    A forked process has its own copy, which does not stop the tasks of the parent.
    """

    def __init__(self) -> None:
        """Open a pipe, which an engine can wait for together with its worker."""
        self._read, self._write = os.pipe()
        self._process = os.getpid()
        self.requested = False

    def __call__(self) -> None:
        """Stop the task."""
        self._replace_inherited_pipe()
        if not self.requested:
            self.requested = True
            self._signal()

    def fileno(self) -> int:
        """Return a descriptor that becomes readable when the task is to stop."""
        self._replace_inherited_pipe()
        return self._read

    def close(self) -> None:
        """Close the pipe."""
        pipe = self._read, self._write
        # first, so that a child that is forked during the close does not close the same descriptor numbers again
        self._read = self._write = -1
        for descriptor in pipe:
            if descriptor >= 0:
                os.close(descriptor)

    def _signal(self) -> None:
        with contextlib.suppress(OSError):
            os.write(self._write, b"!")

    def _replace_inherited_pipe(self) -> None:
        """Open another pipe in a forked child."""
        if self._process == os.getpid() or self._read < 0:
            return
        self.close()
        self._read, self._write = os.pipe()
        self._process = os.getpid()
        if self.requested:
            self._signal()


class Engine(Protocol):
    """Runs tasks; safe to call from several threads."""

    workers: int
    """Maximum tasks at a time."""

    def run(self, task: Task, *, timeout: float | None = None, cancel: Cancel | None = None) -> Result:
        """Run a task.

        Args:
            timeout: Seconds; None for no deadline.
            cancel: Stops the task.
        Returns:
            The report; the inspection or the verdict for a chain that inspects or checks.
        Raises:
            MeshhubError: Error of the task, or an EngineError: queue full, engine closed, deadline passed, crash, or
                canceled.
            Exception: The callback for the progress raised it. No other exception is raised.
        """

    def ask(self, questions: Sequence[Question]) -> list[Reply]:
        """Call code of plug-ins that a request needs before its chain is resolved: sniffers and checks of options.

        Returns:
            Reply to each question. If a call fails, the others are still made.
        Raises:
            EngineError: The engine is closed, or no process can be started.
        """

    def find_fault(self) -> str:
        """Return why no task can start now, for the log of an operator, or ""."""

    def close(self) -> None:
        """Reject further tasks, and release all processes and files."""


def perform(task: Task, check: Callable[[int], None] = lambda _: None, send: Send | None = None) -> Result:
    """Run a task in this thread.

    Args:
        task: Task to run; its callback for the progress is not called.
        check: Called with the number of each step before it, and with the number of steps after the last one. An
            exception from it stops the task.
        send: Called with the progress.
    """
    with IMPORTING.held():
        from meshhub.pipeline.execute import execute

    with bounded_by(task.deadline), reporting(send) if send is not None else contextlib.nullcontext():
        return execute(task.chain, task.source, task.target, check)


def deadline_error(timeout_s: float | None, position: Position) -> ConversionTimeout:
    """Return the error of a task whose deadline has passed."""
    if not position.text:
        return ConversionTimeout(
            f"the conversion did not begin within {timeout_s:g} s, because the machine is busy; try again later",
            values={"seconds": timeout_s or 0.0},
        )
    return ConversionTimeout(
        f"the conversion took longer than {timeout_s:g} s{position.text} and was stopped; {position.reduction}",
        options=position.options,
        values={"seconds": timeout_s or 0.0},
    )


def cancellation_error() -> Canceled:
    """Return the error of a task that its caller stopped."""
    return Canceled("the conversion was stopped, because its caller canceled it")
