"""What every engine does: take a task, give back its answer or raise a coded error."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from meshhub.errors import Cancelled, ConversionTimeout
from meshhub.model.chain import Chain, Position
from meshhub.model.deadline import bounded_by
from meshhub.model.report import Inspection, Report
from meshhub.model.source import Source, Target


class Task(Struct, frozen=True, kw_only=True):
    """A chain with its source and target; an inspection if there is no target.

    deadline: when the engine stops the task, in seconds of the monotonic clock; engines set it
    """

    chain: Chain
    source: Source
    target: Target | None = None
    deadline: float | None = None


class Cancel:
    """A way to stop a task from another thread, now or before it starts. Close it when the task is over.

    A forked process has a copy of its own, which stops nothing in the parent.
    """

    def __init__(self) -> None:
        """A pipe, so that an engine can wait for it beside its worker."""
        self._read, self._write = os.pipe()
        self._process = os.getpid()
        self.requested = False

    def __call__(self) -> None:
        """Stop the task."""
        self._leave_parents_pipe()
        if not self.requested:
            self.requested = True
            self._signal()

    def fileno(self) -> int:
        """What becomes readable when stopping was asked for."""
        self._leave_parents_pipe()
        return self._read

    def close(self) -> None:
        """Let go of the pipe."""
        if self._read >= 0:
            os.close(self._read)
            os.close(self._write)
            self._read = self._write = -1

    def _signal(self) -> None:
        with contextlib.suppress(OSError):
            os.write(self._write, b"!")

    def _leave_parents_pipe(self) -> None:
        """After a fork, take a pipe of this process's own."""
        if self._process == os.getpid() or self._read < 0:
            return
        self.close()
        self._read, self._write = os.pipe()
        self._process = os.getpid()
        if self.requested:
            self._signal()


class Engine(Protocol):
    """Runs tasks; safe to call from several threads."""

    def run(self, task: Task, *, timeout: float | None = None, cancel: Cancel | None = None) -> Report | Inspection:
        """The task's answer. Raises MeshhubError, EngineError among them; nothing else."""

    def close(self) -> None:
        """Stop taking tasks and let go of every process and file."""


def perform(task: Task, check: Callable[[int], None] = lambda _: None) -> Report | Inspection:
    """Run a task right here.

    check: is called with the number of each step before it, and with their count after the last; what it raises stops
           the task
    """
    from meshhub.pipeline.execute import execute, execute_inspection

    with bounded_by(task.deadline):
        if task.target is None:
            return execute_inspection(task.chain, task.source, check)
        return execute(task.chain, task.source, task.target, check)


def late(seconds: float | None, position: Position) -> ConversionTimeout:
    """The error of a task whose time is up."""
    return ConversionTimeout(
        f"the conversion took longer than {seconds:g} s{position.text} and was stopped; {position.reduction}",
        options=("optimize_target_faces",),
    )


def left() -> Cancelled:
    """The error of a task that its caller stopped."""
    return Cancelled("the caller left; the conversion was stopped")
