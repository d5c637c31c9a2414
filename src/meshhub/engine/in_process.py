"""Engine that runs a task in the calling thread."""

from __future__ import annotations

import time
from collections.abc import Sequence

from msgspec import structs

from meshhub.engine.contract import Cancel, Task, cancellation_error, deadline_error, perform
from meshhub.model.chain import Position
from meshhub.model.progress import ListenerFailed, Relay
from meshhub.model.verdict import Result
from meshhub.pipeline.questions import Question, Reply, answer_all


class InProcess:
    """Runs in the calling process and thread.

    A step that has begun runs to its end, because native code cannot be stopped from inside its process. Deadlines and
    cancellation take effect between steps. An `Isolated` engine stops a step in the middle.
    """

    workers = 1
    """Tasks of `Registry.convert_many` at a time; other callers choose their own threads."""

    def run(self, task: Task, *, timeout: float | None = None, cancel: Cancel | None = None) -> Result:
        """Run a task; see `Engine.run`. Deadline and `cancel` are checked before each step and after the last one."""
        deadline = None if timeout is None else time.monotonic() + timeout

        def check(step: int) -> None:
            if cancel is not None and cancel.requested:
                raise cancellation_error()
            if deadline is not None and time.monotonic() >= deadline:
                raise deadline_error(timeout, Position(task.chain, step - 1 if step else None))

        relay = None if task.progress is None else Relay(task.chain, task.progress)
        try:
            result = perform(structs.replace(task, deadline=deadline), check, relay)
            if relay is not None:
                relay.finish()
        except ListenerFailed as failure:
            assert failure.__cause__ is not None
            raise failure.__cause__ from None
        return result

    def ask(self, questions: Sequence[Question]) -> list[Reply]:
        """Call code of plug-ins in this thread, without a deadline; see `Engine.ask`."""
        return answer_all(questions)

    def find_fault(self) -> str:
        """Return "", because this engine starts no processes."""
        return ""

    def close(self) -> None:
        """Do nothing: this engine holds no processes and no files."""
