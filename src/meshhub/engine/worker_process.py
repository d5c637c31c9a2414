"""A started worker process, from the side of its parent: its pipe, how to kill it, and how it ended."""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import struct
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, Union

from meshhub.engine import descendants
from meshhub.engine.worker import MAX_ANSWER_BYTES

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    from meshhub.engine.forked_process import ForkedProcess, PipeEnd

Process: TypeAlias = Union["ForkedProcess", "BaseProcess"]
"""Process of a worker."""

Pipe: TypeAlias = Union["PipeEnd", "Connection"]
"""This end of the pipe to a worker."""

LOST_ENDS = ("exit status 0", "exit status 255")
"""Ends of a worker that could not receive its task, and of one whose fork server has ended."""

_CRASHES = frozenset(
    getattr(signal, name) for name in ("SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV") if hasattr(signal, name)
)
"""Signals that native code causes by a fault of its own."""

_MIN_EXCEPTION_STATUS = 0xC0000000
"""Exit status from which Windows reports an exception of native code (NTSTATUS, severity "error")."""

_EXIT_S = 0.5
"""Seconds to wait for the exit status of a worker that closed its pipe."""

_POLL_S = 0.0005
"""Seconds between two checks whether a killed process has ended; most end within one."""

_FREEZE_S = 1.0
"""Seconds to wait for the stop of an idle worker, which is ended otherwise; a busy machine delays the stop."""

_READ_BYTES = 1 << 16
"""Bytes to read at once; most responses are smaller."""


class Worker:
    """A worker process, its pipe, and the mark that its children inherit.

    Attributes:
        task_count: Tasks that it has received.
        is_unchanged: Whether it reported that its last task left nothing behind.
        cpu_seconds_before: Processor time before its last task.
    """

    def __init__(self, process: Process, pipe: Pipe, mark: int) -> None:
        """Hold a running process, which waits for its task."""
        self.process = process
        self.pipe = pipe
        self.mark = mark
        self.task_count = 0
        self.is_unchanged = False
        self.cpu_seconds_before = 0.0
        self._cpu_seconds = 0.0
        self._is_pipe_closed = False
        self._is_gone = False

    def read_cpu_seconds(self) -> float:
        """Return the processor time of the process, and of its children that have ended. Linux only; 0 elsewhere.

        After the end of the process, return the last value.
        """
        process = self.process.pid
        if sys.platform == "linux" and process is not None and not self._is_gone:
            with contextlib.suppress(OSError, ValueError, IndexError):
                # the clock of that process, as clock_getcpuclockid(3) returns it, because /proc has a resolution of 10
                # ms
                own = time.clock_gettime((~process << 3) | 2)
                # the fields cutime and cstime (proc(5)); the list begins after the name, the second field
                fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
                children = (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
                self._cpu_seconds = max(self._cpu_seconds, own + children)
        return self._cpu_seconds

    def kill(self) -> None:
        """Kill the process and everything in its session, without waiting."""
        # ValueError: another thread has closed the process object
        with contextlib.suppress(ProcessLookupError, PermissionError, ValueError):
            if self.process.pid is not None and sys.platform != "win32":
                os.killpg(self.process.pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError, ValueError):
            self.process.kill()

    def close_pipe(self) -> None:
        """Close this process's end of the pipe."""
        # Set first, because a child that is forked while another thread closes the pipe must not close it again. By
        # then the number may belong to another file, such as the pipe through which that child receives its own task.
        if not self._is_pipe_closed:
            self._is_pipe_closed = True
            self.pipe.close()

    def stop(self, timeout_s: float) -> bool:
        """Kill the process with everything that it started. Return whether all these processes stopped within
        `timeout_s`.

        A stopped process runs no code, but the kernel may still be releasing its resources; `end` waits for that.
        """
        if self._is_gone:
            return True
        self.close_pipe()
        self.kill()
        if sys.platform != "linux":
            self.process.join(timeout_s)
            return not self.process.is_alive()
        deadline = time.monotonic() + timeout_s
        while self.process.pid is not None and self.process.is_alive() and not descendants.is_over(self.process.pid):
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_S)
        return descendants.kill_marked(self.mark, timeout_s)

    def freeze(self) -> bool:
        """Stop all threads of the process until `thaw`. Return whether it is stopped and has no other processes."""
        process = self.process.pid
        if sys.platform != "linux" or process is None or not self.process.is_alive():
            return False
        os.kill(process, signal.SIGSTOP)
        deadline = time.monotonic() + _FREEZE_S
        while not descendants.is_stopped(process):
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_S)
        return descendants.find_marked(self.mark) == [process]

    def thaw(self) -> None:
        """Let the process run again. It must not have been ended."""
        if sys.platform == "linux" and self.process.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, signal.SIGCONT)

    def end(self, timeout_s: float) -> bool:
        """Stop the process and wait until it is gone. Return whether it is gone within `timeout_s`."""
        if not self._is_gone and self.stop(timeout_s):
            self.process.join(timeout_s)
            if not self.process.is_alive():
                self._is_gone = True
                # releases the files of the process now instead of at the next garbage collection
                self.process.close()
        return self._is_gone


@contextlib.contextmanager
def watch_end(process: Process) -> Iterator[int]:
    """Open a descriptor that becomes readable when the process ends.

    A fork server reports the end itself. Elsewhere, the sentinel of Python is a pipe, which children of the worker that
    outlive it keep open, so a pidfd is used instead.
    """
    if hasattr(os, "pidfd_open") and "forkserver" not in type(process).__name__.lower() and process.pid is not None:
        pidfd = None
        with contextlib.suppress(OSError):
            pidfd = os.pidfd_open(process.pid)
        if pidfd is not None:
            try:
                yield pidfd
            finally:
                os.close(pidfd)
            return
    yield process.sentinel


def describe_end(process: Process) -> str:
    """Describe how a process ended; wait briefly if it is still ending."""
    process.join(_EXIT_S)
    code = process.exitcode
    if code is None:
        return "it closed its pipe"
    return f"exit status {code}" if code >= 0 else f"killed by {_name_signal(-code)}"


def has_crashed(process: Process) -> bool:
    """Return whether native code ended a process by a fault of its own."""
    code = process.exitcode
    return code is not None and (-code in _CRASHES or code >= _MIN_EXCEPTION_STATUS)


def wait_readable(sources: Sequence[Pipe | int], timeout_s: float | None) -> list[Pipe | int]:
    """Return the sources that can be read without waiting, as soon as there are some or the time is over."""
    if sys.platform == "win32":
        from multiprocessing.connection import wait

        return wait(sources, timeout_s)  # type: ignore[arg-type,return-value]
    poller = select.poll()
    for source in sources:
        poller.register(source, select.POLLIN)
    ready = {descriptor for descriptor, _ in poller.poll(None if timeout_s is None else math.ceil(1000 * timeout_s))}
    return [source for source in sources if (source if isinstance(source, int) else source.fileno()) in ready]


def read_messages(pipe: Pipe, unread: bytearray) -> Iterator[bytes]:
    """Read the data that is in a pipe now, without waiting, and yield the complete messages.

    Args:
        unread: Start of an incomplete message; kept between calls.
    Raises:
        EOFError: The pipe is closed.
        ValueError: The data is not a message.
    """
    try:
        if sys.platform == "win32":
            yield pipe.recv_bytes(MAX_ANSWER_BYTES)
            return
        data = os.read(pipe.fileno(), _READ_BYTES)
    except OSError:
        data = b""
    if not data:
        raise EOFError
    unread += data
    while len(unread) >= 4:
        (length,) = struct.unpack_from("!i", unread)
        if not 0 < length <= MAX_ANSWER_BYTES:
            raise ValueError(f"a message of {length} bytes")
        if len(unread) < 4 + length:
            return
        yield bytes(unread[4 : 4 + length])
        del unread[: 4 + length]


def _name_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
