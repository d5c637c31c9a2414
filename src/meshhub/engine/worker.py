"""Code of a worker process: receive one task, run it, respond, and wait to be killed."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import pickle
import signal
import sys
import tempfile
from contextvars import copy_context
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeAlias, Union

import msgspec
from msgspec import Struct, structs

from meshhub import errors
from meshhub.engine import logs
from meshhub.engine.contract import Task, perform
from meshhub.engine.descendants import set_mark
from meshhub.engine.forked_process import PipeEnd
from meshhub.engine.limits import Limits, apply_limits, release_reserve
from meshhub.engine.worker_state import WorkerState
from meshhub.errors import ErrorValue, MeshhubError, ModelTooComplex, PluginError, printable
from meshhub.model.chain import Chain, Position
from meshhub.model.report import Inspection, Report
from meshhub.model.verdict import Verdict
from meshhub.pipeline.declarations import load
from meshhub.pipeline.questions import Question, Reply, answer

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

log = logging.getLogger(__name__)

Pipe: TypeAlias = Union[PipeEnd, "Connection"]
"""The worker's end of the pipe to its parent."""

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
"""Numbers of prctl(2); Python has no names for them."""

_FAULT_STATUS = 70
"""Exit status of a worker after a fault of meshhub itself: EX_SOFTWARE of sysexits.h."""

MAX_ANSWER_BYTES = 8 << 20
"""Maximum bytes of a response; a report has a few thousand, and the parent holds the whole response in memory."""

_UNLIMITED_CPU_S = 1 << 30
"""Processor seconds of a worker that answers questions."""

_NOT_JSON = "returned a message that is not text"
"""How a check of options failed whose error JSON cannot hold."""

_MAX_RECORD_COUNT = 200
"""Maximum log records from one worker, because a plug-in that logs in a loop must not fill the log."""


class Answer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Message of a worker, as JSON, because a corrupt message, unlike a pickle, cannot run code in the parent.

    Attributes:
        step: Number of the step that begins, if the response follows later.
        progress: Number of a step and its fraction, if the response follows later.
        is_unchanged: Whether the task left the worker unchanged; sent before the response.
        report: Report of a conversion.
        companions: Names of the companions that were written.
        beds: Number of files of beds after the first.
        error_class: Class of the error in `meshhub.errors`; "" without an error.
        error: Message of the error, with option names in braces.
        options: Options that the error is about.
        values: Numbers and names in the message.
        notes: Notes of the error.
        details: Exception of the plug-in that failed.
    """

    step: int | None = None
    progress: tuple[int, float | None] | None = None
    is_unchanged: bool = False
    report: Report | None = None
    inspection: Inspection | None = None
    verdict: Verdict | None = None
    companions: tuple[str, ...] = ()
    beds: int = 0
    error_class: str = ""
    error_code: str = ""
    error: str = ""
    options: tuple[str, ...] = ()
    values: dict[str, ErrorValue] = {}
    notes: tuple[str, ...] = ()
    details: str = ""


class Assignment(Struct, frozen=True, kw_only=True):
    """A task for a worker.

    Attributes:
        task: The task, without its callback.
        request: Id of the request, for the log.
        has_listener: Whether to report the progress.
        is_reusable: Whether the worker may get another task if this one leaves it unchanged.
    """

    task: Task
    scratch: Path
    request: str
    has_listener: bool
    is_reusable: bool


class Questions(Struct, frozen=True):
    """Questions for a worker, which runs no task after them."""

    items: tuple[Question, ...]


def serve(connection: Pipe, limits: Limits, mark: int, log_as: logs.Kind | None = None) -> None:
    """Receive tasks or questions, run them and respond; never returns.

    A worker gets another task only if the last one succeeded and left the worker unchanged. Otherwise it waits until
    the parent kills its session. While the leader of a session lives, `killpg` of the parent cannot hit another
    process. On Linux, the kernel kills the worker when its parent ends, even during a task.

    Args:
        connection: Pipe to the parent.
        mark: Number that marks the processes of this job.
        log_as: Format of the log; None for no log.
    """
    _settle(mark, log_as)
    preloaded = sys.modules.get("meshhub.engine.preload")
    state: WorkerState | None = None
    while True:
        assignment = _receive(connection)
        if isinstance(assignment, Questions):
            _answer_questions(connection, assignment, limits)
        try:
            if assignment.is_reusable and preloaded is not None and state is None:
                preloaded.start_threads()
            apply_limits(limits, is_reusable=assignment.is_reusable)
            if assignment.is_reusable and preloaded is not None:
                state = state or WorkerState(preloaded.GLOBAL_VARIABLES)
            # variables of the context end with the task
            answer = copy_context().run(_perform, assignment, connection)
            is_unchanged = state is not None and not answer.error_class and not _find_change(state)
            encoded = _encode(answer)
        except Exception:
            log.exception("a worker failed before or after its task")
            os._exit(_FAULT_STATUS)
        with contextlib.suppress(OSError):
            if is_unchanged:
                connection.send_bytes(msgspec.json.encode(Answer(is_unchanged=True)))
            connection.send_bytes(encoded)
        if not is_unchanged:
            _wait_for_end(connection)


def _wait_for_end(connection: Pipe) -> NoReturn:
    """Wait to be killed; end if the parent is killed, which only Linux reports with a signal."""
    if isinstance(connection, PipeEnd):
        with contextlib.suppress(OSError):
            connection.wait_for_close()
        os._exit(0)
    from multiprocessing import parent_process

    parent = parent_process()
    if parent is not None:
        parent.join()
    os._exit(0)


def _find_change(state: WorkerState) -> str:
    change = state.find_change()
    if change:
        log.debug("a worker is not used again: its task changed %s", change)
    return change


def _answer_questions(connection: Pipe, questions: Questions | Assignment, limits: Limits) -> NoReturn:
    """Answer questions until the parent ends this process."""
    # processor time adds up over days, and each question has a deadline
    apply_limits(structs.replace(limits, cpu_seconds=_UNLIMITED_CPU_S))
    while isinstance(questions, Questions):
        for question in questions.items:
            # the answer reports an import that fails
            with contextlib.suppress(Exception, SystemExit):
                load(question.code)
            _send_reply(connection, Reply(has_begun=True))
            _send_reply(connection, answer(question))
        questions = _receive(connection)
    os._exit(_FAULT_STATUS)


def _send_reply(connection: Pipe, reply: Reply) -> None:
    try:
        encoded = msgspec.json.encode(reply)
    except (TypeError, ValueError):
        encoded = msgspec.json.encode(Reply(error=_NOT_JSON, summary=_NOT_JSON))
    with contextlib.suppress(OSError):
        connection.send_bytes(encoded)


def _receive(connection: Pipe) -> Assignment | Questions:
    """Return the next assignment; end the process if the parent has ended or has no task for it."""
    try:
        assignment: Assignment | Questions = pickle.loads(connection.recv_bytes())  # noqa: S301 - the parent sends it
    except (EOFError, OSError):
        os._exit(0)
    except Exception:
        log.exception("a worker failed before or after its task")
        os._exit(_FAULT_STATUS)
    return assignment


def _perform(assignment: Assignment, connection: Pipe) -> Answer:
    """Run a task with its own temporary folder, and return the response."""
    logs.REQUEST.set(assignment.request)
    task = assignment.task
    progress = _Progress(connection, task.chain, has_listener=assignment.has_listener)
    previous = os.environ.get("TMPDIR")
    # for Python, and for libraries and programs that read the environment
    tempfile.tempdir = os.environ["TMPDIR"] = str(assignment.scratch)
    try:
        return _answer(task, progress)
    finally:
        tempfile.tempdir = None
        if previous is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = previous


def _settle(mark: int, log_as: logs.Kind | None) -> None:
    """Let this process end with its parent, mark it, and redirect its output to the log or discard it."""
    if sys.platform != "win32":
        with contextlib.suppress(OSError):
            os.setsid()
        # the parent has blocked the signal, and no terminal sends it to a process in its own session; one that arrived
        # before is discarded by ignoring it
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, handler)
        for number in (signal.SIGTERM, signal.SIGHUP):
            # a handler of the program would end a forked process with another status
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_DFL)
    _die_with_parent()
    _release_fork_server()
    set_mark(mark)
    _redirect_output(log_as)


class _Progress:
    """Callback that reports each step to the parent before the step, so that a later crash or timeout names it."""

    def __init__(self, connection: Pipe, chain: Chain, *, has_listener: bool) -> None:
        self._connection = connection
        self._chain = chain
        self.has_listener = has_listener
        self.position = Position(chain)

    def __call__(self, step: int) -> None:
        if step == len(self._chain.steps):
            return
        self.position = Position(self._chain, step)
        self._send(Answer(step=step))

    def send(self, step: int, fraction: float | None) -> None:
        """Report the progress of a step."""
        self._send(Answer(progress=(step, fraction)))

    def _send(self, answer: Answer) -> None:
        with contextlib.suppress(OSError):
            self._connection.send_bytes(msgspec.json.encode(answer))


def _answer(task: Task, progress: _Progress) -> Answer:
    """Run the task, and return the response."""
    try:
        return _run(task, progress)
    except MeshhubError as error:
        return _refuse(error)
    except MemoryError:
        # the task or the error may still hold the memory
        release_reserve()
        return Answer(
            error_class=ModelTooComplex.__name__,
            error_code=ModelTooComplex.error_code,
            error=f"the model needs more memory than one conversion may take{progress.position.text}; "
            + progress.position.reduction,
            options=progress.position.options,
        )
    except KeyboardInterrupt as error:
        # no terminal reaches this process: the step has raised it, or sent SIGINT to itself
        from meshhub.pipeline.running import attributed

        position = progress.position
        return _refuse(attributed(error, str(position.step), position))


def _refuse(error: MeshhubError) -> Answer:
    return Answer(
        error_class=_find_public_class(type(error)),
        error_code=error.error_code,
        error=error.template,
        options=error.options,
        values=error.values,
        notes=tuple(getattr(error, "__notes__", ())),
        details=error.details if isinstance(error, PluginError) else "",
    )


def _encode(answer: Answer) -> bytes:
    """Return the response to send."""
    try:
        encoded = msgspec.json.encode(answer)
    except (TypeError, ValueError):
        return _encode_plugin_error("a note, figure or finding is neither a number nor text; its plug-in is broken")
    if len(encoded) > MAX_ANSWER_BYTES:
        return _encode_plugin_error(f"the report has more than {MAX_ANSWER_BYTES:,} bytes; a plug-in is broken")
    return encoded


def _encode_plugin_error(message: str) -> bytes:
    return msgspec.json.encode(
        Answer(error_class=PluginError.__name__, error_code=PluginError.error_code, error=message)
    )


def _run(task: Task, progress: _Progress) -> Answer:
    result = perform(task, progress, progress.send if progress.has_listener else None)
    if isinstance(result, Report):
        return Answer(report=result, companions=task.target.names[1:], beds=len(task.target.beds))
    return Answer(inspection=result) if isinstance(result, Inspection) else Answer(verdict=result)


def _find_public_class(kind: type[MeshhubError]) -> str:
    """Return the name of an error class, or of its nearest base class in `meshhub.errors`."""
    public: type[BaseException] = next(base for base in kind.__mro__ if getattr(errors, base.__name__, None) is base)
    return public.__name__


def _redirect_output(log_as: logs.Kind | None) -> None:
    """Let the log reach standard error, and discard everything else that is printed.

    This is necessary, because libraries print to the output of the program, which may be a model or JSON.
    """
    if log_as is None:
        # without a handler, Python's last resort would print tracebacks between the lines of the program
        logging.getLogger("meshhub").addHandler(logging.NullHandler())
    else:
        sys.stderr = os.fdopen(os.dup(2), "w", buffering=1, errors="backslashreplace")
        # after a fork, the handlers of the parent write to descriptors that are redirected below
        logging.getLogger().handlers.clear()
        logs.to_stderr(log_as)
        for handler in logging.getLogger().handlers:
            handler.addFilter(_RecordLimit())
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    sys.stdout = sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - open until the process ends


class _RecordLimit(logging.Filter):
    """Filter that passes the first records, each as printable text of limited length."""

    _count = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log the record."""
        self._count += 1
        record.msg, record.args = printable(record.getMessage()), ()
        return self._count <= _MAX_RECORD_COUNT


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        # if memory runs out, the system kills this process before the service
        with contextlib.suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000")


def _release_fork_server() -> None:
    """Close the inherited end of the pipe that keeps the fork server alive.

    Python passes this end to each child, so that children can start children. If the program were killed, its fork
    server would wait until this end is closed, and a worker that hangs ends only with its fork server.
    """
    server = getattr(sys.modules.get("multiprocessing.forkserver"), "_forkserver", None)
    descriptor = getattr(server, "_forkserver_alive_fd", None)
    if server is not None and descriptor is not None:
        server._forkserver_alive_fd = None
        os.close(descriptor)


def adopt_orphans() -> None:
    """Make this process the parent of processes whose own parent has ended."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
