"""The parent's side of one hook process: questions from many threads, replies as they come, and its end."""

from __future__ import annotations

import contextlib
import itertools
import logging
import math
import os
import sys
import threading
import time
from collections.abc import Sequence
from multiprocessing.connection import wait

import msgspec

from meshhub.engine.descendants import kill_marked
from meshhub.engine.hook_worker import LOADING, Question, Reply, serve_hooks
from meshhub.engine.process_start import Starter
from meshhub.engine.scratch import Scratch
from meshhub.engine.worker_process import describe_end, read_messages, watch_end

log = logging.getLogger(__name__)

_START_S = 30.0
"""Seconds in which a process starts and loads its plug-ins; a fork server loads libraries first."""

_BEGIN_S = 0.5
"""Seconds beyond its budget for which a call waits to begin in a process that runs: one before it times out first."""

_END_S = 10.0
"""Seconds in which killed processes end; after them they are given up."""

_STOPPED = "it was stopped"
"""How a process ended that another call was to blame for."""


class HookFailed(Exception):
    """A hook took too long, or ended its process."""


class HookLate(HookFailed):
    """A hook took longer than its budget."""


class CallLost(Exception):
    """The process ended during a call that is not certainly to blame.

    began: whether the hook had been called, so that it may be to blame
    late:  whether it used up its budget
    """

    def __init__(self, *, began: bool, late: bool = False) -> None:
        super().__init__("the process of plug-ins ended")
        self.began = began
        self.late = late


class _Call:
    """A question under way. Seconds are of the monotonic clock."""

    def __init__(self) -> None:
        self.asked = time.monotonic()
        self.began: float | None = None
        self.reply: Reply | None = None


class HookConnection:
    """A hook process and the calls under way in it. Safe to use from several threads.

    No thread of its own reads: one of those that wait does. The command line forks workers and must run no thread then.
    """

    def __init__(self, starter: Starter, points: Sequence[tuple[str, str]], folder: str | None) -> None:
        """Start it. Raises OSError, EOFError, EngineError where no process can be started."""
        self.maker = os.getpid()
        self._held = contextlib.ExitStack()
        scratch = Scratch("job", folder)
        self._held.callback(scratch.remove)
        try:
            arguments = (list(points), list(sys.path), str(scratch.path))
            self._worker = starter.start(serve_hooks, arguments)
            self._ended = self._held.enter_context(watch_end(self._worker.process))
        except BaseException:
            self._held.close()
            raise
        self._changed = threading.Condition()
        self._sending = threading.Lock()
        self._ending = threading.Lock()
        self._numbers = itertools.count(LOADING + 1)
        self._loading = _Call()
        self._loaded: float | None = None
        self._calls: dict[int, _Call] = {LOADING: self._loading}
        self._unread = bytearray()
        self._is_reading = False
        self._is_closed = False
        self._suspects: frozenset[int] = frozenset()
        self.end = ""

    def load(self, budget: float) -> None:
        """Wait until all plug-ins are loaded. Raises HookFailed when they end the process or take too long."""
        with self._changed:
            while self._loading.reply is None:
                if self.end:
                    raise HookFailed(f"ends the process that loads it ({self.end})")
                if not self._read_until(self._due(self._loading, budget)):
                    raise HookFailed(f"takes longer than {budget:g} s to load")

    def ask(self, question: Question, budget: float | None) -> Reply:
        """Return the reply, which comes within `budget` seconds after the hook was called.

        Raises HookFailed when the hook is to blame, CallLost when another may be.
        """
        number = next(self._numbers)
        call = self._calls[number] = _Call()
        try:
            self._send(msgspec.structs.replace(question, number=number))
            with self._changed:
                while call.reply is None and not self.end:
                    if not self._read_until(self._due(call, budget)):
                        raise self._late(number, call, budget)
                if call.reply is not None:
                    return call.reply
                if self._suspects == {number} and self.end != _STOPPED:
                    raise HookFailed(f"ended its process ({self.end})")
                raise CallLost(began=number in self._suspects)
        finally:
            del self._calls[number]

    def close(self) -> None:
        """Kill the process with all that it started, and remove its folder."""
        with self._ending:
            if self._is_closed or self.maker != os.getpid():
                return
            self._is_closed = True
            # children that hold the pipe open must end before the threads that send and read notice
            self._worker.kill()
            kill_marked(self._worker.mark, _END_S)
            with self._changed:
                self._finish(_STOPPED)
                self._changed.wait_for(lambda: not self._is_reading, _END_S)
            with self._sending:
                if not self._worker.end(_END_S):
                    log.error("the process of plug-ins cannot be stopped: %s", self._worker.process.pid)
                self._held.close()

    def _send(self, question: Question) -> None:
        frame = msgspec.msgpack.encode(question)
        with self._sending:
            if self._is_closed:
                raise CallLost(began=False)
            # a process that has ended is noticed on reading
            with contextlib.suppress(OSError):
                self._worker.pipe.send_bytes(frame)

    def _late(self, number: int, call: _Call, budget: float | None) -> Exception:
        """Return who is to blame for a call that is late: its hook, or another, that lets no other run.

        The process is of no more use. From here on no other call that is late can take this one's blame.
        """
        self._finish(_STOPPED)
        if call.began is None:
            return CallLost(began=False)
        if any(other.began is not None for name, other in self._calls.items() if name not in (number, LOADING)):
            return CallLost(began=True, late=True)
        return HookLate(f"took longer than {budget or 0:g} s")

    def _read_until(self, due: float) -> bool:
        """Read, or wait for the thread that reads, until something changes; return False when `due` has passed.

        The caller holds `_changed`.
        """
        left = due - time.monotonic()
        if left <= 0:
            return False
        if self._is_reading:
            self._changed.wait(None if left == math.inf else left)
            return True
        self._is_reading = True
        self._changed.release()
        replies: list[Reply] = []
        end = ""
        try:
            replies, end = self._read(None if left == math.inf else left)
        finally:
            self._changed.acquire()
            self._is_reading = False
            for reply in replies:
                self._take(reply)
            if end:
                self._finish(end)
            self._changed.notify_all()
        return True

    def _read(self, left: float | None) -> tuple[list[Reply], str]:
        """Return what came within `left` seconds, and how the process ended, if it did."""
        ready = wait([self._worker.pipe, self._ended], left)
        replies: list[Reply] = []
        try:
            if self._worker.pipe in ready:
                for frame in read_messages(self._worker.pipe, self._unread):
                    replies.append(msgspec.msgpack.decode(frame, type=Reply))  # noqa: PERF401 - kept if the next fails
                return replies, ""
        except EOFError:
            pass
        except (msgspec.MsgspecError, ValueError):
            return replies, "it sent what is not a reply"
        return replies, describe_end(self._worker.process) if ready else ""

    def _take(self, reply: Reply) -> None:
        call = self._calls.get(reply.number)
        if call is None:
            return
        if reply.state == "began":
            call.began = time.monotonic()
        else:
            call.reply = reply
            if call is self._loading:
                self._loaded = time.monotonic()

    def _finish(self, end: str) -> None:
        if not self.end:
            self.end = end
            self._suspects = frozenset(
                number
                for number, call in self._calls.items()
                if call.began is not None and call.reply is None and number != LOADING
            )
        self._changed.notify_all()

    def _due(self, call: _Call, budget: float | None) -> float:
        """Return until when a call must be answered, or until when it must begin."""
        if budget is None:
            return math.inf
        if call.began is not None:
            return call.began + budget
        if self._loaded is None:
            return call.asked + _START_S
        return max(call.asked, self._loaded) + budget + _BEGIN_S
