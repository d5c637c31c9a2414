"""Workers that call sniffers and checks of options of installed plug-ins."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Iterator, Sequence

import msgspec
from msgspec import structs

from meshhub.engine.process_start import Starter
from meshhub.engine.spare_workers import SpareWorkers
from meshhub.engine.task_slots import TaskSlots, shutdown_error
from meshhub.engine.worker import Questions, serve
from meshhub.engine.worker_process import Worker, describe_end, read_messages, wait_readable, watch_end
from meshhub.pipeline.questions import Question, Reply

_IMPORT_S = 30.0
"""Seconds for the import of a plug-in's code, which may import large libraries."""

_END_S = 60.0
"""Seconds to wait for the end of a killed process."""

# made at import, because msgspec can crash if two threads decode a type for the first time
_REPLIES = msgspec.json.Decoder(Reply)


class QuestionWorkers:
    """Workers that are used again as long as no question fails, so that a plug-in is imported once and not for each
    file. Safe to use from several threads.
    """

    def __init__(self, count: int, starter: Starter, spares: SpareWorkers) -> None:
        """Use at most `count` workers: spare ones, or new ones of `starter`."""
        self._starter = starter
        self._spares = spares
        self._slots = TaskSlots(count, None)
        self._idle: deque[Worker] = deque()
        self._busy: set[Worker] = set()

    def __iter__(self) -> Iterator[Worker]:
        """Return the workers."""
        return iter([*self._idle, *self._busy])

    def forget(self) -> None:
        """Begin without workers, because those that a forked child inherits belong to the parent."""
        for worker in self:
            worker.close_pipe()
        self._idle.clear()
        self._busy.clear()
        self._slots.forget_tasks()

    def ask(self, questions: Sequence[Question]) -> list[Reply]:
        """Return the reply to each question. One that ends its process, or takes too long, harms no other.

        Raises:
            ShuttingDown: The workers are closed.
            EngineError, OSError, EOFError: No process can be started.
        """
        replies: list[Reply] = []
        if not questions:
            return replies
        self._slots.acquire(None)
        try:
            while len(replies) < len(questions):
                if self._slots.is_closed:
                    raise shutdown_error()
                replies += self._ask_worker(questions[len(replies) :])
        finally:
            self._slots.release()
        return replies

    def close(self) -> None:
        """End all workers, and answer no more questions."""
        self._slots.close()
        for worker in list(self._busy):
            # the thread that waits for it ends it
            worker.kill()
        while (idle := self._take_idle()) is not None:
            idle.end(_END_S)

    def _ask_worker(self, questions: Sequence[Question]) -> list[Reply]:
        """Return the replies of one worker, up to the first that ended its process."""
        worker = self._send(questions)
        replies: list[Reply] = []
        try:
            replies = _receive(worker, questions)
        finally:
            is_intact = len(replies) == len(questions) and not any(reply.error for reply in replies)
            if is_intact and not self._slots.is_closed:
                self._idle.append(worker)
            else:
                worker.end(_END_S)
            self._busy.discard(worker)
        return replies

    def _send(self, questions: Sequence[Question]) -> Worker:
        """Return a worker that has received the questions; one that ended while it was idle cannot."""
        while True:
            idle = self._take_idle()
            worker = idle or self._start()
            self._busy.add(worker)
            try:
                worker.pipe.send(Questions(tuple(questions)))
            except OSError:
                worker.end(_END_S)
                self._busy.discard(worker)
                if idle is None:
                    raise
            else:
                return worker

    def _take_idle(self) -> Worker | None:
        # another thread may have taken the last one
        with contextlib.suppress(IndexError):
            return self._idle.pop()
        return None

    def _start(self) -> Worker:
        self._spares.start_first(with_libraries=False)
        worker = self._spares.take(with_libraries=False) or self._starter.start(serve)
        self._spares.refill(with_libraries=False)
        return worker


def _receive(worker: Worker, questions: Sequence[Question]) -> list[Reply]:
    """Return the replies of a worker; the last one says how its process was lost, if it was."""
    replies: list[Reply] = []
    unread = bytearray()
    begun, has_begun = time.monotonic(), False
    with watch_end(worker.process) as end:
        while len(replies) < len(questions):
            timeout_s = questions[len(replies)].timeout_s if has_begun else _IMPORT_S
            left_s = None if timeout_s is None else max(0.0, begun + timeout_s - time.monotonic())
            ready = wait_readable([worker.pipe, end], left_s)
            now = time.monotonic()
            try:
                if worker.pipe in ready:
                    for message in read_messages(worker.pipe, unread):
                        reply = _REPLIES.decode(message)
                        if not reply.has_begun:
                            replies.append(structs.replace(reply, seconds=now - begun))
                        begun, has_begun = now, reply.has_begun
                    continue
                error = "" if ready else f"took longer than {timeout_s:g} s{'' if has_begun else ' to import'}"
            except EOFError:
                error = ""
            except (msgspec.MsgspecError, ValueError):
                error = "sent an invalid reply"
            error = error or f"ended its process ({describe_end(worker.process)})"
            replies.append(Reply(error=error, summary=error, seconds=now - begun, is_lost=True))
            break
    return replies
