"""The engine that gives every task a process of its own on this machine."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterator
from multiprocessing import spawn
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import NamedTuple

import msgspec

from meshhub import errors
from meshhub.engine.contract import Cancel, Task
from meshhub.engine.worker import Answer, Limits, serve
from meshhub.errors import (
    Cancelled,
    ConversionTimeout,
    EngineError,
    MeshhubError,
    ServerBusy,
    ShuttingDown,
    WorkerCrashed,
)
from meshhub.logs import Kind
from meshhub.report import Inspection, Report
from meshhub.scratch import Scratch, sweep
from meshhub.source import Target

PRELOAD = ("meshhub.engine.preload",)
"""What the fork server imports once, so that no job has to."""

_WORKER, _WORKER_WITH_MAIN = "meshhub-worker", "meshhub-worker-with-main"
"""Names of processes; the first are started without the main program."""

SINGLE_THREADED = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "ARROW_IO_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
"""The preloaded parent of all workers must not have threads when it forks."""


class Isolated:
    """A process for every task, with limits, killed with all its children when it is over.

    workers: tasks at once; queue: how many more may wait before `server_busy`.
    spares:  workers started ahead, each for one task; as many as `workers` with a fork server, none without.
    method:  "forkserver" for a service (libraries are loaded once), "fork" for a program that has
             loaded nothing heavy and runs no thread (the command line), "spawn" where neither exists.
    folder:  where workers have their temporary folders; the system's unless told
    log:     how workers log to standard error, where Python's own way is not wanted
    """

    def __init__(
        self,
        *,
        workers: int | None = None,
        queue: int = 64,
        spares: int | None = None,
        limits: Limits | None = None,
        method: str | None = None,
        folder: str | None = None,
        log: Kind | None = None,
    ) -> None:
        """Nothing is started before the first task."""
        offered = multiprocessing.get_all_start_methods()
        self._context = multiprocessing.get_context(
            method if method in offered else "forkserver" if "forkserver" in offered else "spawn"
        )
        self.workers = workers or os.cpu_count() or 1
        self.queue = queue
        self._limits = limits or Limits()
        self._folder = folder
        self._log = log
        self._swept = False
        self._free = threading.Condition()
        self._running = 0
        self._waiting = 0
        self._closed = False
        self._starting = threading.Lock()
        self._processes: set[BaseProcess] = set()
        self._spares: deque[_Worker] = deque()
        ahead = self.workers if self._context.get_start_method() == "forkserver" else 0
        self._ahead = ahead if spares is None else spares

    def run(self, task: Task, *, timeout: float | None = None, cancel: Cancel | None = None) -> Report | Inspection:
        """The task's answer. The deadline runs from the start of its worker.

        Raises MeshhubError: what the task raised, or ServerBusy, ShuttingDown, ConversionTimeout,
        WorkerCrashed, Cancelled.
        """
        self._take_turn(timeout)
        scratch: Scratch | None = None
        try:
            held = scratch = self._scratch()
            target = task.target
            if target is not None and target.folder is None:
                staged = Target("model", folder=held.path)
                answer = self._supervise(msgspec.structs.replace(task, target=staged), held.path, timeout, cancel)
                made = _told(answer, staged)
                target.take(staged)
                return made
            return _told(self._supervise(task, held.path, timeout, cancel), target)
        finally:
            if scratch is not None:
                scratch.remove()
            with self._free:
                self._running -= 1
                self._free.notify()

    def close(self) -> None:
        """Take no more tasks, kill what still runs."""
        with self._free:
            self._closed = True
            self._free.notify_all()
        while self._spares:
            self._spares.popleft().end()
        for process in list(self._processes):
            _kill(process)

    def _scratch(self) -> Scratch:
        """A folder for a task; before the first one, what killed programs left is removed."""
        if not self._swept:
            self._swept = True
            sweep(self._folder)
        return Scratch("job", self._folder)

    def _take_turn(self, timeout: float | None) -> None:
        with self._free:
            if self._running >= self.workers:
                if self._waiting >= self.queue:
                    raise ServerBusy(f"{self._running} conversions run and {self._waiting} wait; try again in a moment")
                self._waiting += 1
                try:
                    came = self._free.wait_for(lambda: self._closed or self._running < self.workers, timeout)
                finally:
                    self._waiting -= 1
                if not came:
                    raise ServerBusy("no worker came free in time; try again in a moment")
            if self._closed:
                raise ShuttingDown("the service is shutting down; try again in a moment")
            self._running += 1

    def _supervise(self, task: Task, scratch: Path, timeout: float | None, cancel: Cancel | None) -> Answer:
        worker = self._worker(task, scratch)
        self._processes.add(worker.process)
        try:
            ready = wait([worker.line] if cancel is None else [worker.line, cancel.fileno()], timeout)
            if worker.line in ready:
                return _received(worker)
            if ready:
                raise Cancelled("the caller left; the conversion was stopped")
            raise ConversionTimeout(
                f"the conversion took longer than {timeout:g} s and was stopped; "
                "a smaller model is faster: reduce it with optimize_target_faces"
            )
        finally:
            worker.end()
            self._processes.discard(worker.process)

    def _worker(self, task: Task, scratch: Path) -> _Worker:
        """A worker that has got the task: a spare one that still lives, or a new one."""
        worker = None
        while self._spares and worker is None and not _needs_main(task):
            with contextlib.suppress(IndexError):  # another thread may have been faster
                worker = _given(self._spares.popleft(), task, scratch)
        worker = worker or _given(self._start(_needs_main(task)), task, scratch)
        if worker is None:
            raise WorkerCrashed("the conversion's process ended before it started")
        if len(self._spares) < self._ahead:
            threading.Thread(target=self._refill, daemon=True).start()
        return worker

    def _refill(self) -> None:
        while len(self._spares) < self._ahead and not self._closed:
            self._spares.append(self._start(with_main=False))
        if self._closed:
            self.close()

    def _start(self, with_main: bool) -> _Worker:
        ours, theirs = self._context.Pipe()
        with self._starting, _environment(SINGLE_THREADED):
            if self._context.get_start_method() == "forkserver":
                self._context.set_forkserver_preload(list(PRELOAD))
            process = self._context.Process(  # type: ignore[attr-defined]
                name=_WORKER_WITH_MAIN if with_main else _WORKER,
                target=serve,
                args=(theirs, self._limits, self._log),
                daemon=True,
            )
            process.start()
        theirs.close()
        return _Worker(process, ours)


class _Worker(NamedTuple):
    """A process and the line to it."""

    process: BaseProcess
    line: Connection

    def end(self) -> None:
        """Kill it with everything in its session."""
        self.line.close()
        _kill(self.process)


def _given(worker: _Worker, task: Task, scratch: Path) -> _Worker | None:
    """The worker with its task, or None when it died before it got one."""
    try:
        worker.line.send((task, scratch))
    except OSError:
        worker.end()
        return None
    return worker


@contextlib.contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Environment variables for a process that is started inside; what is set already stays."""
    added = [name for name in values if name not in os.environ]
    os.environ.update({name: values[name] for name in added})
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def _needs_main(task: Task) -> bool:
    """Whether the task's functions are those of the main program itself."""
    named = (part for step in task.chain.steps for part in (step.run, step.options_type))
    return any(name.startswith("__main__:") for name in named)


def _prepared(name: str) -> dict[str, object]:
    """What multiprocessing tells a new process, without the main program for a worker that does not need it.

    A worker would import it again: that took longer than most conversions, and a script without
    an `if __name__ == "__main__"` would start all over. There is no setting for it, and hiding
    `sys.modules["__main__"]` meanwhile breaks whatever other threads unpickle.
    """
    told: dict[str, object] = _PREPARED_BY_PYTHON(name)
    if name == _WORKER:
        told.pop("init_main_from_name", None)
        told.pop("init_main_from_path", None)
    return told


_PREPARED_BY_PYTHON = spawn.get_preparation_data
spawn.get_preparation_data = _prepared


def _received(worker: _Worker) -> Answer:
    try:
        return msgspec.json.decode(worker.line.recv_bytes(), type=Answer)
    except (EOFError, OSError):
        worker.process.join(5)
        code = worker.process.exitcode
        how = f"killed by {signal.Signals(-code).name}" if code is not None and code < 0 else f"exit status {code}"
        raise WorkerCrashed(
            f"the conversion's process ended before it answered ({how}); the file may be damaged"
        ) from None
    except msgspec.DecodeError:
        raise WorkerCrashed("the conversion's process gave an answer that makes no sense") from None


def _told(answer: Answer, target: Target | None) -> Report | Inspection:
    if answer.report is not None and target is not None:
        target.found(answer.companions)
        return answer.report
    if answer.inspection is not None:
        return answer.inspection
    kind = getattr(errors, answer.error_class, EngineError)
    if not (isinstance(kind, type) and issubclass(kind, MeshhubError)):
        kind = EngineError
    raise kind(answer.error or "the conversion gave no answer", code=answer.error_code or None)


def _kill(process: BaseProcess) -> None:
    """End a worker and everything in its session."""
    if process.pid is not None and sys.platform != "win32":
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, ValueError):
        process.kill()
        process.join()
