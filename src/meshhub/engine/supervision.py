"""Watching one worker: until it answers, ends, takes too much or too long, or the caller leaves."""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import sys
import time
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

import msgspec

from meshhub.engine import descendants as marks
from meshhub.engine.contract import Cancel, late, left
from meshhub.engine.worker import LONGEST_ANSWER, Answer, Limits, unmapped_bytes
from meshhub.errors import (
    ConversionTimeout,
    MeshhubError,
    ModelTooComplex,
    PluginError,
    WorkerCrashed,
)
from meshhub.model.chain import Chain, Position

_BETWEEN_LOOKS = 0.2
"""Seconds after which a worker's files and processes are counted again."""

_LAST_WORDS = 0.5
"""Seconds in which a worker that hung up must have ended, to be asked how."""

_MOMENT = 0.0005
"""Seconds between two looks at a process that was killed."""

_PIECE = 1 << 16

_MUCH = 1 / 3
"""The share of its memory after which a crash is put down to it. Native code that gets no more often dies without a
word, and what grows by doubling gets no more from a third on."""


class Worker:
    """A process, the line to it, and the mark of all that it starts."""

    def __init__(self, process: BaseProcess, line: Connection, mark: int) -> None:
        """The process runs, and waits for its task."""
        self.process = process
        self.line = line
        self.mark = mark
        self.took = 0
        self._gone = False

    def weigh(self, limits: Limits) -> None:
        """Keep in `took` the most bytes of memory that it was seen to have taken of those that it may."""
        self.took = max(self.took, limits.memory_bytes - unmapped_bytes(self.process.pid or 0, limits))

    def kill(self) -> None:
        """End it and everything in its session, without waiting."""
        # ValueError: meanwhile another thread ended it
        with contextlib.suppress(ProcessLookupError, PermissionError, ValueError):
            if self.process.pid is not None and sys.platform != "win32":
                os.killpg(self.process.pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError, ValueError):
            self.process.kill()

    def forget(self) -> None:
        """Close this process's end of the line: after a fork the worker is the parent's."""
        self.line.close()

    def stop(self, patience: float) -> bool:
        """Kill it with all that it started; whether nothing of it does anything any more within `patience` seconds.

        What the system needs to take it apart is not waited for; `end` does.
        """
        if self._gone:
            return True
        self.line.close()
        self.kill()
        if sys.platform != "linux":
            self.process.join(patience)
            return not self.process.is_alive()
        until = time.monotonic() + patience
        while self.process.pid is not None and self.process.is_alive() and not marks.is_over(self.process.pid):
            if time.monotonic() > until:
                return False
            time.sleep(_MOMENT)
        return marks.end(self.mark, patience)

    def end(self, patience: float) -> bool:
        """Stop it, and wait until it is gone; whether it is within `patience` seconds."""
        if not self._gone and self.stop(patience):
            self.process.join(patience)
            if not self.process.is_alive():
                self._gone = True
                # lets go of its files now, not when the collector comes by
                self.process.close()
        return self._gone


_CLEAN_END = "exit status 0"
"""How a worker ends that could not receive its task."""


class TaskNotStarted(WorkerCrashed):
    """A worker ended by itself before it began its task; another worker can take it."""


def answer_of(
    worker: Worker,
    limits: Limits,
    folders: Sequence[Path],
    begun: float,
    timeout: float | None,
    cancel: Cancel | None,
    chain: Chain,
) -> Answer:
    """What the worker answers within `timeout` seconds from `begun`, which is of the monotonic clock.

    Raises MeshhubError: it crashed, took too long or too much, or nobody waits any more.
    Nothing that the worker does can hold this up: what comes is read as it comes, never waited for.
    """
    until = None if timeout is None else begun + timeout
    position = Position(chain)
    steps = iter(range(len(chain.steps)))
    look = time.monotonic() + _BETWEEN_LOOKS
    came = bytearray()
    with end_of(worker.process) as ended:
        sources: list[Connection | int] = [worker.line, ended]
        if cancel is not None:
            sources.append(cancel.fileno())
        while True:
            now = time.monotonic()
            if until is not None and now >= until:
                raise late(timeout, position)
            if now >= look:
                _look(worker, limits, folders, position)
                look = time.monotonic() + _BETWEEN_LOOKS
            ready = wait(sources, max(0.0, (look if until is None else min(look, until)) - now))
            if worker.line in ready:
                for answer in _heard(worker, limits, came, position):
                    if answer.step is None:
                        return answer
                    if answer.step != next(steps, None):
                        raise _senseless(position)
                    position = Position(chain, answer.step)
            elif ended in ready:
                raise _crashed(worker, limits, position)
            elif ready:
                raise left()


@contextlib.contextmanager
def end_of(process: BaseProcess) -> Iterator[int]:
    """What becomes readable when the process ends.

    A fork server tells it itself. Otherwise Python's own means is a pipe, which children of the
    worker that outlive it keep open.
    """
    if hasattr(os, "pidfd_open") and "forkserver" not in type(process).__name__.lower() and process.pid is not None:
        held = None
        with contextlib.suppress(OSError):
            held = os.pidfd_open(process.pid)
        if held is not None:
            try:
                yield held
            finally:
                os.close(held)
            return
    yield process.sentinel


def _heard(worker: Worker, limits: Limits, came: bytearray, position: Position) -> list[Answer]:
    """Return what the worker sent, as far as it came whole: steps that began, then the answer."""
    try:
        return [msgspec.json.decode(frame, type=Answer) for frame in received(worker.line, came)]
    except EOFError:
        raise _crashed(worker, limits, position) from None
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise _senseless(position) from None


def received(line: Connection, came: bytearray) -> Iterator[bytes]:
    """Read what a pipe holds now, without waiting, and yield the messages that are whole.

    came: what is left of an unfinished message, kept between calls.
    Raises EOFError at the end of the pipe, ValueError for what is not a message.
    """
    try:
        if sys.platform == "win32":
            yield line.recv_bytes(LONGEST_ANSWER)
            return
        piece = os.read(line.fileno(), _PIECE)
    except OSError:
        piece = b""
    if not piece:
        raise EOFError
    came += piece
    while len(came) >= 4:
        (length,) = struct.unpack_from("!i", came)
        if not 0 < length <= LONGEST_ANSWER:
            raise ValueError(f"a message of {length} bytes")
        if len(came) < 4 + length:
            return
        yield bytes(came[4 : 4 + length])
        del came[: 4 + length]


def _senseless(position: Position) -> WorkerCrashed:
    return WorkerCrashed(f"the conversion's process gave a meaningless answer{position.text}; {position.remedy}")


def how_it_ended(process: BaseProcess) -> str:
    """Describe the end of a process, which may still be under way."""
    process.join(_LAST_WORDS)
    code = process.exitcode
    if code is None:
        return "it hung up"
    return f"exit status {code}" if code >= 0 else f"killed by {_signal_name(-code)}"


def _crashed(worker: Worker, limits: Limits, position: Position) -> MeshhubError:
    """How a worker ended that has not answered."""
    how = how_it_ended(worker.process)
    if how.endswith("SIGXCPU"):
        return ConversionTimeout(
            f"the conversion took more processor time than it may{position.text} and was stopped; {position.reduction}",
            options=("optimize_target_faces",),
        )
    if worker.took > limits.memory_bytes * _MUCH:
        return ModelTooComplex(
            f"the conversion's process ended{position.text} ({how}); it had taken {worker.took:,} of "
            f"{limits.memory_bytes:,} bytes of memory; {position.reduction}",
            options=("optimize_target_faces",),
        )
    if how.endswith("SIGKILL") and not position.is_foreign:
        how += ", perhaps because the machine ran out of memory: reduce the model with {optimize_target_faces}"
    kind = WorkerCrashed if position.text or how != _CLEAN_END else TaskNotStarted
    return kind(
        f"the conversion's process ended{position.text}: {how}; {position.remedy}", options=("optimize_target_faces",)
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _look(worker: Worker, limits: Limits, folders: Sequence[Path], position: Position) -> None:
    """See that a job's files and processes are within its limits. Raises ModelTooComplex, PluginError."""
    files = size = 0
    for folder in folders:
        for one in _all_in(folder):
            files += 1
            size += one
            if files > limits.files:
                raise PluginError(f"more than {limits.files:,} files were written{position.text}; {position.remedy}")
    if size > limits.file_bytes:
        raise ModelTooComplex(
            f"the conversion wrote more than the {limits.file_bytes:,} bytes that one may{position.text}; "
            + position.reduction,
            options=("optimize_target_faces",),
        )
    worker.weigh(limits)
    processes = marks.bearing(worker.mark)
    if len(processes) > limits.processes:
        raise PluginError(f"more than {limits.processes} processes were started{position.text}; {position.remedy}")
    # the first sum is quick and counts what they share for each; the second is right
    if len(processes) > 1 and all(sum(map(one, processes)) > limits.memory_bytes for one in (_resident, _share)):
        raise ModelTooComplex(
            f"the conversion needs more memory than one may take{position.text}; {position.reduction}",
            options=("optimize_target_faces",),
        )


def _all_in(folder: Path) -> Iterator[int]:
    """The bytes on the disk of everything below a folder."""
    folders = [os.fspath(folder)]
    while folders:
        with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    told = entry.stat(follow_symlinks=False)
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    yield told.st_size if sys.platform == "win32" else told.st_blocks * 512


def _resident(process: int) -> int:
    """The bytes of memory that are not also a file's."""
    try:
        pages = Path(f"/proc/{process}/statm").read_text().split()
        return (int(pages[1]) - int(pages[2])) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _share(process: int) -> int:
    """Its share of the memory that it uses, where many use the same."""
    try:
        return int(Path(f"/proc/{process}/smaps_rollup").read_text().partition("\nPss:")[2].split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        return _resident(process)
