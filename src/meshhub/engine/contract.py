"""What every engine does: take a task, give back its answer or raise a coded error."""

from __future__ import annotations

import contextlib
import os
from typing import Protocol

from msgspec import Struct

from meshhub.chain import Chain
from meshhub.report import Inspection, Report
from meshhub.source import Source, Target


class Task(Struct, frozen=True, kw_only=True):
    """A chain, what it reads, and where it writes; an inspection when there is no target."""

    chain: Chain
    source: Source
    target: Target | None = None


class Cancel:
    """A way to stop a task from another thread, now or before it starts. Close it when the task is over."""

    def __init__(self) -> None:
        """A pipe, so that an engine can wait for it beside its worker."""
        self._read, self._write = os.pipe()
        self.requested = False

    def __call__(self) -> None:
        """Stop the task."""
        if not self.requested:
            self.requested = True
            with contextlib.suppress(OSError):
                os.write(self._write, b"!")

    def fileno(self) -> int:
        """What becomes readable when stopping was asked for."""
        return self._read

    def close(self) -> None:
        """Let go of the pipe."""
        if self._read >= 0:
            os.close(self._read)
            os.close(self._write)
            self._read = self._write = -1


class Engine(Protocol):
    """Runs tasks; safe to call from several threads."""

    def run(self, task: Task, *, timeout: float | None = None, cancel: Cancel | None = None) -> Report | Inspection:
        """The task's answer. Raises MeshhubError, EngineError among them; nothing else."""

    def close(self) -> None:
        """Stop taking tasks and let go of every process and file."""


def perform(task: Task) -> Report | Inspection:
    """Run a task right here."""
    from meshhub import run

    if task.target is None:
        return run.inspect(task.chain, task.source)
    return run.run(task.chain, task.source, task.target)
