"""The engine that runs a chain where it is called."""

from __future__ import annotations

from meshhub.engine.contract import Cancel, Task, perform
from meshhub.errors import Cancelled
from meshhub.report import Inspection, Report


class InProcess:
    """Runs in the calling process and thread.

    There is no deadline: native code cannot be stopped from inside its own process. What needs one
    runs in an `Isolated` engine.
    """

    def run(self, task: Task, *, timeout: float | None = None, cancel: Cancel | None = None) -> Report | Inspection:
        """The task's answer; `timeout` has no effect here, and `cancel` only before the start."""
        del timeout
        if cancel is not None and cancel.requested:
            raise Cancelled("the caller left before the conversion started")
        return perform(task)

    def close(self) -> None:
        """Nothing is held."""
