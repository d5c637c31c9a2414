"""The engine that runs a chain where it is called."""

from __future__ import annotations

import time

from msgspec import structs

from meshhub.engine.contract import Cancel, Task, late, left, perform
from meshhub.model.chain import Position
from meshhub.model.report import Inspection, Report


class InProcess:
    """Runs in the calling process and thread.

    A step that has begun runs to its end: native code cannot be stopped from inside its own process. Deadlines and
    cancellation take effect between steps. An `Isolated` engine stops a step in the middle.
    """

    def run(self, task: Task, *, timeout: float | None = None, cancel: Cancel | None = None) -> Report | Inspection:
        """The task's answer.

        Raises MeshhubError: what the task raised, or ConversionTimeout, Cancelled before a step or after the last one.
        """
        until = None if timeout is None else time.monotonic() + timeout

        def check(step: int) -> None:
            if cancel is not None and cancel.requested:
                raise left()
            if until is not None and time.monotonic() >= until:
                raise late(timeout, Position(task.chain, step - 1 if step else None))

        return perform(structs.replace(task, deadline=until), check)

    def close(self) -> None:
        """Nothing is held."""
