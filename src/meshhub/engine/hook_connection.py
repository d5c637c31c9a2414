"""Parent side of one hook process: calls from many threads, their replies, and the end of the process."""

from __future__ import annotations

import contextlib
import itertools
import logging
import math
import sys
import threading
import time
from collections.abc import Sequence

import msgspec

from meshhub.engine.descendants import is_stopped, kill_marked
from meshhub.engine.hook_worker import LOADING, Question, Reply, serve_hooks
from meshhub.engine.process_start import Starter
from meshhub.engine.scratch import Scratch
from meshhub.engine.worker_process import describe_end, read_messages, wait_readable, watch_end

log = logging.getLogger(__name__)

_START_S = 30.0
"""Seconds for a process to start and load its plug-ins; a fork server loads libraries first."""

_BEGIN_S = 0.5
"""Seconds beyond its budget that a call may wait to begin in a running process; calls that block it time out earlier.
"""

_END_S = 10.0
"""Seconds to wait for the end of killed processes."""

_STOPPED = "it was stopped"
"""End of a process that was killed because of another call."""


class HookFailed(Exception):
    """Failure of a hook: it took too long or ended its process."""


class HookLate(HookFailed):
    """Failure of a hook that took longer than its budget."""


class CallLost(Exception):
    """Loss of a call whose process ended, perhaps because of another call.

    began: whether the hook had been called, so that it may be the cause
    late:  whether it used up its budget
    """

    def __init__(self, *, began: bool, late: bool = False) -> None:
        super().__init__("the hook process ended")
        self.began = began
        self.late = late


class _Call:
    """Pending call; times are seconds of the monotonic clock."""

    def __init__(self) -> None:
        self.asked = time.monotonic()
        self.began: float | None = None
        self.reply: Reply | None = None


class HookConnection:
    """Hook process and its pending calls. Safe to use from several threads.

    One of the waiting threads reads the pipe. A separate reader thread is not possible, because the command line forks
    workers.
    """

    def __init__(self, starter: Starter, points: Sequence[tuple[str, str]], folder: str | None) -> None:
        """Start the process. Raises OSError, EOFError or EngineError if it cannot be started."""
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
        """Wait until all plug-ins are loaded. Raises HookFailed if they end the process or take too long."""
        with self._changed:
            while self._loading.reply is None:
                if self.end:
                    raise HookFailed(f"its import ended the process ({self.end})")
                if not self._read_until(self._due(self._loading, budget)):
                    if is_stopped(self._worker.process.pid or 0):
                        raise HookFailed("its import stopped the process (SIGSTOP)")
                    raise HookFailed(f"its import took longer than {budget:g} s")
            if self._loading.reply.state == "failed":
                raise HookFailed(f"its import {self._loading.reply.error}")

    def ask(self, question: Question, budget: float | None) -> Reply:
        """Return the reply to a question within `budget` seconds after the call of the hook.

        Raises HookFailed if this hook is the cause of a failure, CallLost if another hook may be the cause.
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
        """Kill the process and all processes that it started, and remove its folder."""
        with self._ending:
            if self._is_closed:
                return
            self._is_closed = True
            # the threads that send and read notice the end only after all children that hold the pipe open have ended
            self._worker.kill()
            kill_marked(self._worker.mark, _END_S)
            with self._changed:
                self._finish(_STOPPED)
                self._changed.wait_for(lambda: not self._is_reading, _END_S)
            with self._sending:
                if not self._worker.end(_END_S):
                    log.error("the hook process %s cannot be stopped", self._worker.process.pid)
                self._held.close()

    def _send(self, question: Question) -> None:
        frame = msgspec.msgpack.encode(question)
        with self._sending:
            if self._is_closed:
                raise CallLost(began=False)
            # the reading thread detects the end of the process
            with contextlib.suppress(OSError):
                self._worker.pipe.send_bytes(frame)

    def _late(self, number: int, call: _Call, budget: float | None) -> Exception:
        """Return the error of a late call: its own hook is the cause, or another hook that blocks the process.

        The process receives no further calls. Later timeouts do not change the suspects that are recorded here.
        """
        has_stopped = is_stopped(self._worker.process.pid or 0)
        self._finish(_STOPPED)
        if call.began is None:
            return CallLost(began=False)
        if any(other.began is not None for name, other in self._calls.items() if name not in (number, LOADING)):
            return CallLost(began=True, late=True)
        if has_stopped:
            return HookFailed("stopped its process (SIGSTOP)")
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
                # if a process is killed because of one call, the other calls are not the cause of its end
                self._finish(_STOPPED if self._is_closed else end)
            self._changed.notify_all()
        return True

    def _read(self, left: float | None) -> tuple[list[Reply], str]:
        """Return the replies of the next `left` seconds, and how the process ended, if it did."""
        ready = wait_readable([self._worker.pipe, self._ended], left)
        replies: list[Reply] = []
        try:
            if self._worker.pipe in ready:
                for frame in read_messages(self._worker.pipe, self._unread):
                    replies.append(msgspec.msgpack.decode(frame, type=Reply))  # noqa: PERF401 - kept if the next fails
                return replies, ""
        except EOFError:
            pass
        except (msgspec.MsgspecError, ValueError):
            return replies, "it sent an invalid reply"
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
        """Return the deadline of a call's reply or, if it has not begun, of its start."""
        if budget is None:
            return math.inf
        if call.began is not None:
            return call.began + budget
        if self._loaded is None:
            return call.asked + _START_S
        return max(call.asked, self._loaded) + budget + _BEGIN_S
