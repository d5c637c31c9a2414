"""The engine that gives every task a process of its own on this machine."""

from __future__ import annotations

import contextlib
import errno
import logging
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from multiprocessing import forkserver, resource_tracker, spawn
from multiprocessing import process as processes
from pathlib import Path
from typing import Any

import msgspec

from meshhub.engine import descendants as marks
from meshhub.engine.contract import Cancel, Task
from meshhub.engine.logs import REQUEST, Kind
from meshhub.engine.results import staged, told
from meshhub.engine.scratch import Scratch, remove_tree, sweep
from meshhub.engine.supervision import TaskNotStarted, Worker, answer_of
from meshhub.engine.worker import Limits, serve
from meshhub.errors import EngineError, ServerBusy, ShuttingDown, WorkerCrashed
from meshhub.model.report import Inspection, Report
from meshhub.pipeline.fork_lock import ForkLock

log = logging.getLogger(__name__)

PRELOAD = ("meshhub.engine.preload",)
"""What the fork server imports once, so that no job has to."""

_WORKER, _WORKER_WITH_MAIN = "meshhub-worker", "meshhub-worker-with-main"
"""Names of processes; the first are started without the main program."""

_PATIENCE = 0.75
"""Seconds for which an answer waits until its job is gone and its folders are removed."""

_PATIENCE_FOR_A_RESULT = 10.0
"""Seconds, within the deadline, for which a result waits until nobody can write it any more: where a machine has much
to do, killed processes take their time to die, and that is not their caller's fault."""

_MOMENT = 0.05
"""Seconds before what failed for a moment is tried again."""

_LONGEST_PATH = 60
"""Characters of a temporary folder: a socket's path has about a hundred, and Python adds some thirty."""

_SHORT = "/tmp"  # noqa: S108 - only a folder that nobody else may enter is made in it

_LONGEST_DYING = 60.0
"""Seconds after which a killed process is given up."""

SINGLE_THREADED = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "ARROW_IO_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
"""The preloaded parent of all workers must not have threads when it forks."""


_NO_PROCESSES = frozenset({errno.ENOSYS, errno.EPERM, errno.EACCES, errno.ENOTSUP})
"""Errors of a system that starts no process for this program, now or later."""

_STARTING = ForkLock()
"""Held while a process is started, which changes what all engines share: the environment, the temporary folder, and
Python's own record of this process."""


class Isolated:
    """A process for every task, with limits, killed with all its children when it is over.

    After a fork of its program an engine starts workers of its own in the child; those of the parent stay the parent's.

    workers: tasks at once
    queue:   how many more may wait, each as long as its timeout, before `server_busy`; None: any number, without end
    method:  "forkserver" for a service (libraries are loaded once), "fork" for a program that has
             loaded nothing heavy and runs no thread (the command line), "spawn" where neither exists.
    folder:  where workers have their temporary folders; the system's unless told
    log:     how workers log to standard error, where Python's own way is not wanted
    """

    def __init__(
        self,
        *,
        workers: int | None = None,
        queue: int | None = 64,
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
        self._closed = False
        self._workers: set[Worker] = set()
        # started ahead, each for one task
        self._spares: deque[Worker] = deque()
        self._ahead = self.workers if self._context.get_start_method() == "forkserver" else 0
        self._begin()
        # for a program that ends without closing it
        weakref.finalize(self, _kill, self._workers, self._spares)
        _ENGINES.add(self)

    def _begin(self) -> None:
        """Set what belongs to one process: nothing runs, waits or is held. A forked child forgets the parent's."""
        for worker in (*self._workers, *self._spares):
            worker.forget()
        self._workers.clear()
        self._spares.clear()
        self._swept = False
        self._loaded = False
        self._free = threading.Condition()
        self._running = 0
        self._waiting = 0
        self._refilling = threading.Lock()

    def run(self, task: Task, *, timeout: float | None = None, cancel: Cancel | None = None) -> Report | Inspection:
        """The task's answer. The deadline runs from its turn; before the first task libraries are loaded, uncounted.

        Raises MeshhubError: what the task raised, or ServerBusy, ShuttingDown, ConversionTimeout,
        WorkerCrashed, Cancelled.
        """
        self._take_turn(timeout)
        folders = contextlib.ExitStack()
        worker = None
        try:
            with _room():
                self._load()
                begun = time.monotonic()
                scratch = self._scratch()
                folders.callback(scratch.remove)
                written = None
                watched = [scratch.path]
                if task.target is not None:
                    written = staged(task.target, scratch.path)
                    if written.folder is not None and task.target.folder is not None:
                        folders.callback(remove_tree, written.folder)
                        watched.append(written.folder)
                deadline = None if timeout is None else begun + timeout
                given = msgspec.structs.replace(task, target=written, deadline=deadline)
                worker = self._worker(given, scratch.path)
            self._workers.add(worker)
            if self._closed:
                # while this worker was started; whoever closed has not seen it
                raise _shutting_down()
            try:
                answer = answer_of(worker, self._limits, watched, begun, timeout, cancel, task.chain)
            except TaskNotStarted:
                self._workers.discard(worker)
                worker.end(_LONGEST_DYING)
                with _room():
                    worker = self._worker(given, scratch.path)
                self._workers.add(worker)
                answer = answer_of(worker, self._limits, watched, begun, timeout, cancel, task.chain)
            # nothing may still write what is looked at and taken
            if not worker.stop(_patience(begun, timeout)):
                raise WorkerCrashed("the conversion's process could not be stopped; try again")
            return told(answer, task.target, written)
        finally:
            # neither a process that the system does not let go of nor a million files hold up the answer
            clean = threading.Event()
            try:
                threading.Thread(target=self._clean_up, args=(worker, folders, clean)).start()
            except RuntimeError:
                self._clean_up(worker, folders, clean)
            clean.wait(_PATIENCE)

    def close(self) -> None:
        """Take no more tasks, kill what still runs."""
        with self._free:
            self._closed = True
            self._free.notify_all()
        while self._spares:
            with contextlib.suppress(IndexError):  # another thread may close, too
                self._spares.popleft().end(_LONGEST_DYING)
        _kill(self._workers)

    def _clean_up(self, worker: Worker | None, folders: contextlib.ExitStack, clean: threading.Event) -> None:
        """Stop a job's processes, remove its folders, give its turn to the next, and see the processes buried."""
        try:
            if worker is not None and not worker.stop(_LONGEST_DYING):
                log.error("a worker cannot be stopped: process %s", worker.process.pid)
            folders.close()
        finally:
            with self._free:
                self._running -= 1
                self._free.notify()
            clean.set()
        if worker is not None:
            worker.end(_LONGEST_DYING)
            self._workers.discard(worker)

    def _scratch(self) -> Scratch:
        """A folder for a task; before the first one, what killed programs left is removed."""
        if not self._swept:
            self._swept = True
            marks.sweep()
            sweep(self._folder)
        return Scratch("job", self._folder)

    def _load(self) -> None:
        """Before the first task, start a worker ahead: the fork server imports for seconds before it forks."""
        if self._ahead and not self._loaded:
            with self._refilling:
                if not self._loaded:
                    self._spares.append(self.start(with_main=False))
                    self._loaded = True

    def _take_turn(self, timeout: float | None) -> None:
        patience = None if self.queue is None else timeout
        with self._free:
            if self._running >= self.workers:
                if self.queue is not None and self._waiting >= self.queue:
                    raise ServerBusy(f"{self._running} conversions run and {self._waiting} wait; try again in a moment")
                self._waiting += 1
                try:
                    came = self._free.wait_for(lambda: self._closed or self._running < self.workers, patience)
                finally:
                    self._waiting -= 1
                if not came:
                    raise ServerBusy("no worker came free in time; try again in a moment")
            if self._closed:
                raise _shutting_down()
            self._running += 1

    def _worker(self, task: Task, scratch: Path) -> Worker:
        """A worker that has got the task: a spare one that still lives, or a new one."""
        worker = None
        while self._spares and worker is None and not _needs_main(task):
            with contextlib.suppress(IndexError):  # another thread may have been faster
                worker = _given(self._spares.popleft(), task, scratch)
        worker = worker or _given(self.start(_needs_main(task)), task, scratch)
        if worker is None:
            raise WorkerCrashed("the conversion's process ended before it started")
        if len(self._spares) < self._ahead and not self._refilling.locked():
            # RuntimeError: no thread can be started; the next task tries again
            with contextlib.suppress(RuntimeError):
                threading.Thread(target=self._refill, daemon=True).start()
        return worker

    def _refill(self) -> None:
        try:
            while len(self._spares) < self._ahead and not self._closed:
                # one at a time, or each thread would start what is missing
                with self._refilling:
                    if len(self._spares) < self._ahead:
                        self._spares.append(self.start(with_main=False))
        except (OSError, EOFError, EngineError) as error:
            # the next task tries again
            log.warning("no worker could be started ahead", exc_info=error)
        if self._closed:
            self.close()

    def start(self, with_main: bool, target: Callable[..., None] = serve, arguments: tuple[object, ...] = ()) -> Worker:
        """Start a process in `target`, which gets a pipe, the limits, a mark, how to log, and the arguments."""
        ours, theirs = self._context.Pipe()
        mark = marks.new_mark()
        with contextlib.closing(theirs), _STARTING.held():
            if self._context.get_start_method() != "fork":
                # Its start would unblock SIGINT.
                resource_tracker.ensure_running()
            with _environment(SINGLE_THREADED), _short_paths(), _children_allowed(), _no_interrupt():
                _leave_lost_fork_server()
                if self._context.get_start_method() == "forkserver":
                    self._context.set_forkserver_preload(list(PRELOAD))
                process = self._context.Process(  # type: ignore[attr-defined]
                    name=_WORKER_WITH_MAIN if with_main else _WORKER,
                    target=target,
                    args=(theirs, self._limits, mark, self._log, *arguments),
                    daemon=True,
                )
                _launch(process)
                _hide(process)
        return Worker(process, ours, mark)


_ENGINES: weakref.WeakSet[Isolated] = weakref.WeakSet()
"""The engines of this process, which a fork copies."""


def _begin_in_child() -> None:
    """Leave everything of the parent's to the parent: its workers, their pipes, its fork server, its folders."""
    processes.current_process()._config.pop("tempdir", None)  # type: ignore[attr-defined]
    if _fork_server()._forkserver_pid is not None:
        _leave_fork_server()
    for engine in list(_ENGINES):
        engine._begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_in_child)


def _fork_server() -> Any:
    return forkserver._forkserver


def _leave_lost_fork_server() -> None:
    """Let Python start another fork server where the one that it knows is not a child of this process.

    It belongs to the parent after a fork that came before this import, or a program that waits for all its children
    has reaped it. Otherwise Python raises ChildProcessError whenever it starts a process.
    """
    process = _fork_server()._forkserver_pid
    if process is not None:
        try:
            os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            _leave_fork_server()


def _leave_fork_server() -> None:
    """Forget the fork server, and close the pipe that keeps it alive."""
    server = _fork_server()
    os.close(server._forkserver_alive_fd)
    server._forkserver_address = server._forkserver_alive_fd = server._forkserver_pid = None


def _launch(process: processes.BaseProcess) -> None:
    """Start a process, the second time if the fork server has died: Python starts another as soon as it notices.

    Raises EngineError: this system starts no processes. OSError, EOFError: not now.
    """
    try:
        try:
            process.start()
        except (EOFError, ConnectionError):
            time.sleep(_MOMENT)
            process.start()
    except OSError as error:
        if error.errno not in _NO_PROCESSES:
            raise
        raise EngineError(
            f"no process can be started here ({error.strerror}); convert in this process: Registry() without Isolated"
        ) from error


@contextlib.contextmanager
def _children_allowed() -> Iterator[None]:
    """Let a daemonic process, as those of pools and task queues are, start workers.

    Python forbids it because children of a process that is terminated would stay behind. Workers end with their
    parent or its fork server, and a fork server ends with the process that holds its pipe.
    """
    config = processes.current_process()._config  # type: ignore[attr-defined]
    daemonic = config.pop("daemon", None)
    try:
        yield
    finally:
        if daemonic is not None:
            config["daemon"] = daemonic


def _hide(process: processes.BaseProcess) -> None:
    """Let nobody but its own thread ask how a process ended.

    Whenever a process is started, and in `multiprocessing.active_children`, Python asks all that it knows of.
    Between its two looks at one, another thread may have closed that one's pipe, and what it then reads
    from, for ever, is whatever got the pipe's number: a client's socket, or the line to another worker.
    """
    processes._children.discard(process)  # type: ignore[attr-defined]


def _kill(*groups: Iterable[Worker]) -> None:
    for worker in [one for group in groups for one in list(group)]:
        worker.kill()


def _shutting_down() -> ShuttingDown:
    return ShuttingDown("the service is shutting down; try again in a moment")


def _given(worker: Worker, task: Task, scratch: Path) -> Worker | None:
    """The worker with its task, or None when it died before it got one."""
    try:
        if not worker.process.is_alive():
            raise BrokenPipeError
        worker.line.send((task, scratch, REQUEST.get()))
    except OSError:
        worker.end(_LONGEST_DYING)
        return None
    return worker


def _patience(begun: float, timeout: float | None) -> float:
    """How long a result may wait for its worker's end."""
    left = _PATIENCE_FOR_A_RESULT if timeout is None else begun + timeout - time.monotonic()
    return max(_PATIENCE, min(_PATIENCE_FOR_A_RESULT, left))


@contextlib.contextmanager
def _room() -> Iterator[None]:
    """A machine that has no more processes, files or disk is busy, not broken."""
    try:
        yield
    except (OSError, EOFError) as error:
        log.error("no worker could be started", exc_info=error)
        reason = getattr(error, "strerror", None) or "a new process ended at once; a limit on processes may be reached"
        raise ServerBusy(
            f"no process or folder could be made for the conversion ({reason}); try again in a moment"
        ) from error


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


@contextlib.contextmanager
def _no_interrupt() -> Iterator[None]:
    """Block SIGINT in the processes started inside: a terminal sends Ctrl-C to all, and each prints a traceback."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _short_paths() -> Iterator[None]:
    """A temporary folder for the fork server's socket, whose path the system allows a hundred characters."""
    before = tempfile.tempdir
    if len(tempfile.gettempdir()) > _LONGEST_PATH and os.access(_SHORT, os.W_OK | os.X_OK):
        tempfile.tempdir = _SHORT
    try:
        yield
    finally:
        tempfile.tempdir = before


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
