"""Fork a worker process, with a pipe to it: the part of `multiprocessing` that a command needs.

`multiprocessing` and its fork server import forty modules, a tenth of the time of a short conversion.
"""

# why this way: docs/decisions/0041-start.md
from __future__ import annotations

import contextlib
import gc
import logging
import os
import pickle
import select
import signal
import struct
import sys
import time
from collections.abc import Callable

log = logging.getLogger(__name__)

_MAX_SHORT_BYTES = 0x7FFFFFFF
"""Maximum bytes of a message whose length has 4 bytes; that of a longer one follows -1, in 8 bytes."""

_FAULT_STATUS = 1
"""Exit status of a process whose function raised an exception."""

_MIN_PAUSE_S, _MAX_PAUSE_S = 0.0005, 0.02
"""Seconds between two checks whether a process has ended; doubled after each check."""


class PipeEnd:
    """One end of a pipe in both directions, with the methods and the messages of `multiprocessing.Connection`."""

    def __init__(self, read: int, write: int) -> None:
        """Own two descriptors."""
        self._descriptors: tuple[int, ...] = read, write

    def fileno(self) -> int:
        """Return the descriptor that becomes readable. Raises OSError after `close`."""
        return self._open()[0]

    def poll(self, timeout_s: float = 0.0) -> bool:
        """Return whether data, or the end of the other process, can be read within `timeout_s`."""
        poller = select.poll()
        poller.register(self.fileno(), select.POLLIN)
        return bool(poller.poll(1000 * timeout_s))

    def send(self, message: object) -> None:
        """Send an object, which the other end receives as bytes of pickle. Raises OSError."""
        self.send_bytes(pickle.dumps(message))

    def send_bytes(self, content: bytes) -> None:
        """Send a message. Raises OSError."""
        size = len(content)
        header = struct.pack("!i", size) if size <= _MAX_SHORT_BYTES else struct.pack("!iQ", -1, size)
        for part in (header, content):
            view = memoryview(part)
            while view:
                view = view[os.write(self._open()[1], view) :]

    def recv_bytes(self) -> bytes:
        """Wait for a message. Raises EOFError if the other end is closed, OSError."""
        (size,) = struct.unpack("!i", self._receive(4))
        if size == -1:
            (size,) = struct.unpack("!Q", self._receive(8))
        return self._receive(size)

    def wait_for_close(self) -> None:
        """Wait until the other end is closed; ignore messages."""
        while os.read(self.fileno(), 1 << 16):
            pass

    def close(self) -> None:
        """Close the descriptors."""
        # first, so that a child that is forked during the close does not close the same numbers again
        descriptors, self._descriptors = self._descriptors, ()
        for descriptor in descriptors:
            os.close(descriptor)

    def _open(self) -> tuple[int, int]:
        match self._descriptors:
            case read, write:
                return read, write
        raise OSError("the pipe is closed")

    def _receive(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            part = os.read(self.fileno(), size - len(received))
            if not part:
                raise EOFError
            received += part
        return bytes(received)


class ForkedProcess:
    """A forked process, with the methods of `multiprocessing.Process`.

    Attributes:
        sentinel: Descriptor that becomes readable at the end of the process, or of its children if they outlive it.
        exitcode: Exit status, or the negative number of the signal that ended it; None before that, or if another part
            of the program has asked for it.
    """

    def __init__(self, pid: int, sentinel: int) -> None:
        """Watch a child of this process."""
        self.pid = pid
        self.sentinel = sentinel
        self.exitcode: int | None = None
        self._is_over = False

    def is_alive(self) -> bool:
        """Return whether the process has not ended."""
        if not self._is_over:
            try:
                ended, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                # another thread or the program itself has waited for it
                self._is_over = True
            else:
                if ended:
                    self.exitcode = os.waitstatus_to_exitcode(status)
                    self._is_over = True
        return not self._is_over

    def join(self, timeout_s: float) -> None:
        """Wait for the end of the process."""
        deadline = time.monotonic() + timeout_s
        pause = _MIN_PAUSE_S
        while self.is_alive() and time.monotonic() < deadline:
            time.sleep(pause)
            pause = min(2 * pause, _MAX_PAUSE_S)

    def kill(self) -> None:
        """Kill the process."""
        if not self._is_over:
            os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Do nothing: the process has ended, and there is nothing else to release."""


def fork_process(run: Callable[[PipeEnd], None]) -> tuple[ForkedProcess, PipeEnd]:
    """Fork a process that calls a function with its end of a pipe; return the process and the other end.

    Raises:
        OSError: The process cannot be started.
    """
    for stream in (sys.stdout, sys.stderr):
        # a program may have closed or replaced it
        with contextlib.suppress(AttributeError, ValueError):
            stream.flush()
    pipes = [os.pipe()]
    try:
        pipes.append(os.pipe())
        pid = os.fork()
    except OSError:
        for descriptor in (descriptor for pipe in pipes for descriptor in pipe):
            os.close(descriptor)
        raise
    (our_read, their_write), (their_read, our_write) = pipes
    if pid == 0:
        # the process never returns to the code of its parent
        try:
            os.close(our_read)
            os.close(our_write)
            # a collection would write to, and thereby copy, the pages that are shared with the parent
            gc.freeze()
            run(PipeEnd(their_read, their_write))
            os._exit(0)
        except BaseException:
            log.exception("a forked process failed")
        finally:
            os._exit(_FAULT_STATUS)
    os.close(their_read)
    os.close(their_write)
    return ForkedProcess(pid, our_read), PipeEnd(our_read, our_write)
