"""Wait for the response of one worker, and notice deadline, cancellation, crash and exceeded limits."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from meshhub.engine.contract import Cancel, cancellation_error, deadline_error
from meshhub.engine.limits import Limits
from meshhub.engine.usage import Usage
from meshhub.engine.worker import Answer
from meshhub.engine.worker_process import (
    LOST_ENDS,
    Pipe,
    Worker,
    describe_end,
    has_crashed,
    read_messages,
    wait_readable,
    watch_end,
)
from meshhub.errors import ConversionTimeout, MeshhubError, ModelTooComplex, WorkerCrashed
from meshhub.model.chain import Chain, Position
from meshhub.model.progress import Relay

_CHECK_INTERVAL_S = 0.2
"""Seconds between two checks of files and processes of a job; a check takes milliseconds."""

# made at import, because msgspec can crash if two threads decode a type for the first time
_ANSWERS = msgspec.json.Decoder(Answer)


class TaskLost(Exception):
    """End of a worker before it began its task; another worker can run the task.

    Attributes:
        error: Error to report if the next worker is lost, too.
    """

    def __init__(self, error: WorkerCrashed) -> None:
        super().__init__(str(error))
        self.error = error


class ReaderCrashed(Exception):
    """Crash of native code in a reader that can read the file in another way.

    Attributes:
        error: Error to report if it cannot.
        end: How the process ended.
    """

    def __init__(self, error: WorkerCrashed, end: str) -> None:
        super().__init__(str(error))
        self.error = error
        self.end = end


class Supervision(Struct, frozen=True, kw_only=True):
    """Limits and signals to watch while a worker runs a task.

    Attributes:
        chain: Steps of the task.
        limits: Limits of the job.
        folders: Folders that the worker may write to.
        timeout_s: Seconds, for the message of the deadline.
        deadline: When the task must be done, in seconds of the monotonic clock; None for no deadline.
        cancel: Stops the task.
        relay: Receives the progress; None if the worker reports none.
    """

    chain: Chain
    limits: Limits
    folders: Sequence[Path] = ()
    timeout_s: float | None = None
    deadline: float | None = None
    cancel: Cancel | None = None
    relay: Relay | None = None

    def wait_for_answer(self, worker: Worker) -> Answer:
        """Wait until a worker has responded to its task. The caller ends the worker.

        The worker cannot block this method, because data is read as it arrives.

        Raises:
            MeshhubError: The worker crashed or exceeded a limit, or the task was canceled.
            TaskLost: The worker ended before it began the task.
            ReaderCrashed: The reader crashed, and has options for another try.
            ListenerFailed: The callback for the progress raised an exception.
        """
        return _Wait(self, worker).run()


class _Wait:
    """The wait for one worker."""

    def __init__(self, supervision: Supervision, worker: Worker) -> None:
        self._supervision = supervision
        self._worker = worker
        self._usage = Usage(worker, supervision.limits, supervision.folders)
        self._position = Position(supervision.chain)
        self._steps = iter(range(len(supervision.chain.steps)))
        self._unread = bytearray()

    def run(self) -> Answer:
        pipe, cancel, deadline = self._worker.pipe, self._supervision.cancel, self._supervision.deadline
        next_check = time.monotonic() + _CHECK_INTERVAL_S
        with watch_end(self._worker.process) as end:
            sources: list[Pipe | int] = [pipe, end]
            # Windows cannot wait for the descriptor of a pipe, so the next check of `requested` notices the signal
            if cancel is not None and sys.platform != "win32":
                sources.append(cancel.fileno())
            while True:
                now = time.monotonic()
                if cancel is not None and cancel.requested:
                    raise cancellation_error()
                if deadline is not None and now >= deadline:
                    return self._end_at_deadline()
                if now >= next_check:
                    self._usage.check(self._position)
                    self._worker.read_cpu_seconds()
                    next_check = time.monotonic() + _CHECK_INTERVAL_S
                wake = next_check if deadline is None else min(next_check, deadline)
                ready = wait_readable(sources, max(0.0, wake - now))
                if pipe in ready:
                    answer = self._receive()
                    if answer is not None:
                        return answer
                elif end in ready:
                    raise self._explain_crash()
                elif ready:
                    raise cancellation_error()

    def _end_at_deadline(self) -> Answer:
        """Return a response that arrived in time, even if this thread could not run. Raises ConversionTimeout."""
        answer = self._receive() if self._worker.pipe.poll() else None
        if answer is None:
            raise deadline_error(self._supervision.timeout_s, self._position)
        return answer

    def _receive(self) -> Answer | None:
        """Read the messages of the worker: the steps that began, then the response."""
        try:
            for message in read_messages(self._worker.pipe, self._unread):
                answer = _ANSWERS.decode(message)
                if answer.progress is not None:
                    if self._supervision.relay is None:
                        raise self._invalid_response()
                    self._supervision.relay(*answer.progress)
                    continue
                if answer.is_unchanged:
                    self._worker.is_unchanged = True
                    continue
                if answer.step is None:
                    return answer
                if answer.step != next(self._steps, None):
                    raise self._invalid_response()
                self._position = Position(self._supervision.chain, answer.step)
        except EOFError:
            raise self._explain_crash() from None
        except (msgspec.MsgspecError, ValueError, RecursionError):
            raise self._invalid_response() from None
        return None

    def _invalid_response(self) -> WorkerCrashed:
        position = self._position
        return WorkerCrashed(f"the conversion's process sent an invalid response{position.text}; {position.remedy}")

    def _explain_crash(self) -> MeshhubError | TaskLost | ReaderCrashed:
        """Return the error of a worker that ended without a response."""
        position, limits = self._position, self._supervision.limits
        end = describe_end(self._worker.process)
        if end.endswith("SIGXCPU"):
            return ConversionTimeout(
                f"the conversion exceeded its processor time{position.text} and was stopped; {position.reduction}",
                options=position.options,
            )
        if self._usage.is_near_memory_limit:
            return ModelTooComplex(
                f"the conversion's process ended{position.text} ({end}); it had used "
                f"{self._usage.peak_memory_bytes:,} of {limits.memory_bytes:,} bytes of memory; "
                f"{position.reduction}",
                options=position.options,
            )
        is_lost = end in LOST_ENDS and not position.text
        if end.endswith("SIGKILL") and not position.is_foreign:
            end += f", perhaps because the machine ran out of memory: {position.reduction}"
        error = WorkerCrashed(
            f"the conversion's process ended{position.text}: {end}; {position.remedy}",
            options=position.options,
        )
        if position.text and position.step.crash_options and has_crashed(self._worker.process):
            return ReaderCrashed(error, end)
        return TaskLost(error) if is_lost else error
