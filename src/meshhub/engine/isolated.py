"""Engine that runs each task in a worker process on this machine, and kills the process when the task is over."""

# why this way: docs/decisions/0006-engines.md
from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from meshhub.engine.contract import CALLER, METER, Cancel, Task
from meshhub.engine.descendants import sweep_processes
from meshhub.engine.limits import Limits
from meshhub.engine.logs import REQUEST, Kind
from meshhub.engine.process_start import Starter, leave_fork_server
from meshhub.engine.question_workers import QuestionWorkers
from meshhub.engine.reserved_workers import ReservedWorkers
from meshhub.engine.results import stage_target, take_result
from meshhub.engine.scratch import Scratch, remove_tree, sweep
from meshhub.engine.spare_workers import SpareWorkers
from meshhub.engine.supervision import ReaderCrashed, Supervision, TaskLost
from meshhub.engine.task_slots import TaskSlots, shutdown_error
from meshhub.engine.worker import Answer, Assignment, serve
from meshhub.engine.worker_process import Worker
from meshhub.errors import EngineError, ServerBusy, WorkerCrashed
from meshhub.model.chain import BUILT_IN, Chain, Inspect, Write
from meshhub.model.notes import Note
from meshhub.model.progress import ListenerFailed, Relay
from meshhub.model.verdict import Result
from meshhub.pipeline.questions import Question, Reply

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

log = logging.getLogger(__name__)

_CLEAN_UP_S = 0.75
"""Maximum seconds that a response waits for the end of its processes and the removal of its folders."""

_MAX_STOP_S = 10.0
"""Maximum seconds, within the deadline, that a result waits until no process can write to it. On a busy machine, killed
processes end late."""

_MAX_SHARED_BYTES = 1 << 20
"""Maximum bytes of a source whose tasks may share a worker; the start of a process is a small part of a larger task."""

_LIBRARIES_DELAY_S = 5.0
"""Seconds after which the large libraries are imported, unless a task needs them before. On a small machine, their
import would delay the start of the service by seconds."""

_END_S = 60.0
"""Seconds to wait for the end of a killed process, which may be waiting for a disk."""


ANYONE = "*"
"""Name of all callers together; no rate limit key begins like this."""


class WorkerSharing(msgspec.Struct, frozen=True, kw_only=True):
    """Which small tasks of built-in plug-ins run in one worker, one after the other."""

    tasks: int = 1
    """Maximum tasks of a worker."""

    callers: Literal["caller", "all"] = "caller"
    """Whether they are of one caller, or of all."""


class Isolated:
    """Runs each task in a worker process with limits, and kills it with all its children when the task is over.

    A worker may run several small tasks of the same caller (`CALLER`), or of all callers, if only built-in plug-ins
    run, each task succeeds, and each leaves the process unchanged.

    After a fork of its program, an engine starts its own workers in the child, because those of the parent serve the
    parent.
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
        sharing: WorkerSharing | None = None,
    ) -> None:
        """Create an engine; its first task starts the first process.

        Args:
            workers: Maximum parallel tasks (default: number of CPU cores).
            queue: Tasks that may wait for a worker, each until its timeout; further ones fail with `server_busy`. None:
                any number, each without a timeout.
            method: "forkserver" for a service (libraries are loaded once), "fork" for a program that has loaded only
                light modules and runs no threads (the command line), "spawn" where neither exists.
            folder: Folder for the temporary folders of workers (default: that of the system).
            log: How workers log to standard error; None for Python's default.
            sharing: Which small tasks share a worker of a fork server; default: none. Linux only.
        """
        self.workers = workers or os.cpu_count() or 1
        self.queue = queue
        self._limits = limits or Limits()
        self._starter = Starter(method, self._limits, log)
        self._folder = folder
        self._slots = TaskSlots(self.workers, queue)
        self._workers: set[Worker] = set()
        self._reserved = ReservedWorkers(self.workers)
        has_fork_server = self._starter.method == "forkserver"
        self._spares = SpareWorkers(self._starter, self.workers if has_fork_server else 0)
        self._sharing = (
            sharing if sharing is not None and has_fork_server and sys.platform == "linux" else WorkerSharing()
        )
        self._questions = QuestionWorkers(self.workers, self._starter, self._spares)
        self._forget_tasks()
        # for a program that ends without closing the engine
        weakref.finalize(self, _kill, self._workers, self._spares, self._reserved, self._questions)
        _ENGINES.add(self)

    def start_ahead(self) -> None:
        """Start both fork servers and their workers in threads, so that no task waits for their imports."""
        self._spares.refill(with_libraries=False)
        later = threading.Timer(_LIBRARIES_DELAY_S, self._spares.refill, kwargs={"with_libraries": True})
        later.daemon = True
        later.start()

    def run(self, task: Task, *, timeout: float | None = None, cancel: Cancel | None = None) -> Result:
        """Run a task in a worker process; see `Engine.run`.

        The timeout starts when the task has a slot and libraries are loaded.
        """
        self._slots.acquire(timeout)
        is_simple = _can_share_worker(task)
        caller = self._name_caller() if self._sharing.tasks > 1 and is_simple else ""
        job = _Job(
            caller=caller,
            # a caller that may not return needs no worker of its own
            may_reserve=self._reserved.has_seen(caller),
            with_libraries=not is_simple or _needs_libraries(task),
        )
        try:
            with _report_busy():
                self._spares.start_first(with_libraries=job.with_libraries)
                deadline = None if timeout is None else time.monotonic() + timeout
                target = task.target
                task = self._stage(job, msgspec.structs.replace(task, deadline=deadline))
            supervision = Supervision(
                chain=task.chain,
                limits=self._limits,
                folders=job.watched,
                timeout_s=timeout,
                deadline=deadline,
                cancel=cancel,
                relay=None if task.progress is None else Relay(task.chain, task.progress),
            )
            result = take_result(self._run_in_worker(job, task, supervision), task, target)
            if supervision.relay is not None:
                supervision.relay.finish()
            return result
        except ListenerFailed as failure:
            assert failure.__cause__ is not None
            raise failure.__cause__ from None
        finally:
            if job.is_worker_reserved:
                self._clean_up_reserved(job)
            else:
                self._clean_up_in_thread(job)

    def ask(self, questions: Sequence[Question]) -> list[Reply]:
        """Call code of plug-ins in a worker process that runs no tasks; see `Engine.ask`."""
        with _report_busy():
            return self._questions.ask(questions)

    def find_fault(self) -> str:
        """Return why no worker can be started now, or ""; see `Engine.find_fault`."""
        return self._starter.find_fault()

    def close(self) -> None:
        """Reject further tasks, kill all workers, and remove the folders of tasks."""
        self._slots.close()
        self._starter.close()
        self._questions.close()
        self._reserved.close()
        if self._cleaning is not None:
            self._cleaning.shutdown()
        self._spares.close()
        _kill(self._workers)

    def _name_caller(self) -> str:
        """Return whose tasks may share a worker with a task of this context; "" if none may."""
        return ANYONE if self._sharing.callers == "all" else CALLER.get()

    def _forget_tasks(self) -> None:
        """Begin without tasks, workers and folders, because those that a forked child inherits belong to the parent."""
        for worker in self._workers:
            worker.close_pipe()
        self._workers.clear()
        self._spares.forget()
        self._reserved.forget()
        self._questions.forget()
        self._slots.forget_tasks()
        self._cleaning = _create_thread() if self._sharing.tasks > 1 else None
        self._is_swept = False

    def _stage(self, job: _Job, task: Task) -> Task:
        """Return the task with a target to which the worker may write, in the folders of the job."""
        scratch = self._create_scratch()
        job.folders.callback(scratch.remove)
        job.scratch = scratch.path
        job.watched.append(scratch.path)
        target = stage_target(task.target, scratch.path)
        if target.folder is not None and task.target.folder is not None:
            job.folders.callback(remove_tree, target.folder)
            job.watched.append(target.folder)
        return msgspec.structs.replace(task, target=target)

    def _create_scratch(self) -> Scratch:
        """Create the folder of a task; before the first task, remove leftovers of killed programs."""
        if not self._is_swept:
            self._is_swept = True
            sweep_processes()
            sweep(self._folder)
        return Scratch("job", self._folder)

    def _run_in_worker(self, job: _Job, task: Task, supervision: Supervision, *, retries: int = 1) -> Answer:
        """Return the response of a worker that has stopped; use another worker if the first does not begin the task."""
        with _report_busy():
            worker = job.worker = self._assign_worker(job, task)
        self._workers.add(worker)
        if self._slots.is_closed:
            # the engine was closed while this worker started, so `close` did not kill it
            raise shutdown_error()
        try:
            with _metering(worker):
                answer = supervision.wait_for_answer(worker)
        except TaskLost as lost:
            if retries == 0:
                raise lost.error from None
            self._discard(worker)
            return self._run_in_worker(job, task, supervision, retries=retries - 1)
        except ReaderCrashed as crash:
            self._discard(worker)
            log.warning("a file is read again: %s", crash.error)
            if supervision.relay is not None:
                supervision.relay.restart()
            task = msgspec.structs.replace(task, chain=_read_otherwise(task.chain, crash.end))
            return self._run_in_worker(job, task, msgspec.structs.replace(supervision, chain=task.chain))
        # the files are checked and moved next, so no process may write to them any longer
        may_reserve = job.may_reserve and worker.is_unchanged and worker.task_count < self._sharing.tasks
        job.is_worker_reserved = may_reserve and worker.freeze()
        if job.is_worker_reserved:
            return answer
        if not worker.stop(_stop_timeout(supervision.deadline)):
            raise WorkerCrashed("the conversion's process could not be stopped; try again")
        return answer

    def _discard(self, worker: Worker) -> None:
        """End a worker that has no result."""
        self._workers.discard(worker)
        worker.end(_END_S)

    def _assign_worker(self, job: _Job, task: Task) -> Worker:
        """Return a worker that has received the task: one reserved for the caller, a spare worker, or a new one."""
        if job.caller:
            worker = self._reserved.take(job.caller)
            if worker is not None and _send_task(worker, job, task):
                return worker
        needs_main = _needs_main(task)
        if needs_main and self._starter.method != "fork" and not _is_main_importable():
            raise EngineError(
                "a worker cannot import functions of a notebook or an interactive program; put them into a module, or "
                'use Isolated(method="fork")',
                error_code="internal_error",
            )
        worker = None
        while not needs_main and worker is None and (spare := self._spares.take(with_libraries=job.with_libraries)):
            worker = _send_task(spare, job, task)
        if worker is None:
            started = self._starter.start(serve, with_main=needs_main, with_libraries=job.with_libraries)
            worker = _send_task(started, job, task)
        if worker is None:
            raise WorkerCrashed("the conversion's process ended before it started; try again")
        self._spares.refill(with_libraries=job.with_libraries)
        return worker

    def _clean_up_reserved(self, job: _Job) -> None:
        """Free the slot of a job that has ended, reserve its worker for the same caller, and remove its folders.

        The response does not wait for the folders, because some disks need milliseconds to remove one.
        """
        assert job.worker is not None
        assert self._cleaning is not None
        self._slots.release()
        self._workers.discard(job.worker)
        self._reserved.add(job.caller, job.worker)
        try:
            self._cleaning.submit(job.folders.close)
        except RuntimeError:
            # the engine is closed, or no thread can be started
            job.folders.close()

    def _clean_up_in_thread(self, job: _Job) -> None:
        """Clean up after a job, and wait a moment for it.

        A process that does not end, or a million files, must not delay the response.
        """
        is_clean = threading.Event()
        try:
            threading.Thread(target=self._clean_up, args=(job, is_clean)).start()
        except RuntimeError:
            self._clean_up(job, is_clean)
        is_clean.wait(_CLEAN_UP_S)

    def _clean_up(self, job: _Job, is_clean: threading.Event) -> None:
        """Stop the processes of a job, remove its folders, free its slot, and wait until its processes are gone."""
        worker = job.worker
        try:
            if worker is not None and not worker.stop(_END_S):
                log.error("a worker cannot be stopped: process %s", worker.process.pid)
            job.folders.close()
        finally:
            self._slots.release()
            is_clean.set()
        if worker is not None:
            worker.end(_END_S)
            self._workers.discard(worker)


class _Job:
    """A task in a slot: its folders, and its worker once it has one.

    Attributes:
        caller: Caller whose tasks may share a worker with this one; "" if none may.
        may_reserve: Whether the worker may stay for the next task of the caller.
        with_libraries: Whether the worker comes from the fork server with the large libraries.
        is_worker_reserved: Whether the worker is stopped, and stays for the next task of the caller.
    """

    def __init__(self, *, caller: str, may_reserve: bool, with_libraries: bool) -> None:
        self.caller = caller
        self.may_reserve = may_reserve
        self.with_libraries = with_libraries
        self.is_worker_reserved = False
        self.folders = contextlib.ExitStack()
        self.scratch = Path()
        self.watched: list[Path] = []
        self.worker: Worker | None = None


_ENGINES: weakref.WeakSet[Isolated] = weakref.WeakSet()
"""The engines of this process, which a fork copies."""


def _forget_parents_tasks() -> None:
    """Leave all workers, pipes and the fork server to the parent; called in a forked child."""
    leave_fork_server()
    for engine in list(_ENGINES):
        engine._forget_tasks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parents_tasks)


def _create_thread() -> ThreadPoolExecutor:
    """Return a thread that removes folders; one thread is kept, because a thread for each task would take half a
    millisecond more.
    """
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(1, thread_name_prefix="meshhub-cleaning")


def _kill(*groups: Iterable[Worker]) -> None:
    for worker in [worker for group in groups for worker in list(group)]:
        worker.kill()


@contextlib.contextmanager
def _metering(worker: Worker) -> Iterator[None]:
    """Add the processor time of a task to the meter of the caller, however the task ends."""
    try:
        yield
    finally:
        meter = METER.get()
        if meter is not None:
            meter.add(worker.read_cpu_seconds() - worker.cpu_seconds_before)


def _send_task(worker: Worker, job: _Job, task: Task) -> Worker | None:
    """Send the task to a worker and return the worker; None if it has already ended."""
    try:
        if not worker.process.is_alive():
            raise BrokenPipeError
        worker.task_count += 1
        worker.cpu_seconds_before = worker.read_cpu_seconds()
        worker.is_unchanged = False
        worker.pipe.send(
            Assignment(
                # the callback stays in this process, to which it belongs
                task=msgspec.structs.replace(task, progress=None),
                scratch=job.scratch,
                request=REQUEST.get(),
                has_listener=task.progress is not None,
                is_reusable=job.may_reserve,
            )
        )
    except OSError:
        worker.end(_END_S)
        return None
    return worker


def _read_otherwise(chain: Chain, end: str) -> Chain:
    """Return a chain whose reader has its options for another try, with a note.

    Args:
        chain: Chain whose reader crashed.
        end: How its process ended.
    """
    read, *others = chain.steps
    options = ", ".join(f"'{name}={value}'" for name, value in read.crash_options.items())
    message = f"{read} crashed ({end}), so the file was read again with {options}; compare the result with the file"
    again = Note("read_again", message, options=tuple(read.crash_options))
    read = msgspec.structs.replace(read, options={**read.options, **read.crash_options}, crash_options={})
    return msgspec.structs.replace(chain, steps=(read, *others), notes=(*chain.notes, again))


def _needs_libraries(task: Task) -> bool:
    """Return whether a step imports a large library, which takes longer than the fork of a process that has it."""
    return not isinstance(task.chain.ending, Write | Inspect) or any(step.needs for step in task.chain.steps)


def _can_share_worker(task: Task) -> bool:
    """Return whether a worker may run another task of the caller after this one, or before it."""
    if not all(step.origin == BUILT_IN and not step.keeps_state for step in task.chain.steps):
        return False
    # the worker reports a source that was removed
    with contextlib.suppress(OSError):
        return task.source.size <= _MAX_SHARED_BYTES
    return False


def _stop_timeout(deadline: float | None) -> float:
    """Return the seconds for which a result may wait until its worker has stopped."""
    remaining = _MAX_STOP_S if deadline is None else deadline - time.monotonic()
    return max(_CLEAN_UP_S, min(_MAX_STOP_S, remaining))


def _needs_main(task: Task) -> bool:
    """Return whether the main program itself defines functions of the task."""
    references = (reference for step in task.chain.steps for reference in (step.run, step.options_type))
    return any(reference.startswith("__main__:") for reference in references)


def _is_main_importable() -> bool:
    """Return whether another process can import the main program: a script or a module, but not a notebook."""
    main = sys.modules.get("__main__")
    return getattr(main, "__spec__", None) is not None or Path(getattr(main, "__file__", None) or "").is_file()


@contextlib.contextmanager
def _report_busy() -> Iterator[None]:
    """Turn a lack of processes, files or disk into ServerBusy, because the machine is busy, not broken."""
    try:
        yield
    except (OSError, EOFError) as error:
        log.error("no worker could be started", exc_info=error)
        reason = getattr(error, "strerror", None) or "a new process ended at once; a limit on processes may be reached"
        raise ServerBusy(
            f"no process or folder could be made for the conversion ({reason}); try again in a moment"
        ) from error
