"""The inside of a worker process: one task, one answer, then it waits to be killed."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import signal
import sys
import tempfile
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec
from msgspec import Struct

from meshhub import errors
from meshhub.engine import descendants as marks
from meshhub.engine import logs
from meshhub.engine.contract import Task, perform
from meshhub.errors import MeshhubError, ModelTooComplex, PluginError, printable
from meshhub.model.chain import Chain, Position
from meshhub.model.report import Inspection, Report

log = logging.getLogger(__name__)

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_FAULT = 70

LONGEST_ANSWER = 8 << 20
"""Bytes; a report has a few thousand."""

_MOST_RECORDS = 200
"""Lines that one worker may log."""

_RESERVE = 64 << 20
"""Bytes of memory beyond the limit, to tell that it was reached."""


class Limits(Struct, frozen=True, kw_only=True):
    """What one job may take.

    memory_bytes: beyond what is mapped before it starts; of each of its processes, and of all together
    file_bytes:   of one file, and of all files in its folders
    files:        in its folders
    open_files:   at once
    processes:    at once, the worker itself counted
    cpu_seconds:  of each of its processes
    """

    memory_bytes: int = 6 << 30
    file_bytes: int = 4 << 30
    files: int = 10_000
    open_files: int = 512
    processes: int = 64
    cpu_seconds: int = 600


class Answer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a worker sends back, as JSON: a worker that went astray cannot make its parent run anything.

    step: the number of the step that begins; the answer proper follows later
    """

    step: int | None = None
    report: Report | None = None
    inspection: Inspection | None = None
    companions: tuple[str, ...] = ()
    error_class: str = ""
    error_code: str = ""
    error: str = ""
    options: tuple[str, ...] = ()


def serve(connection: Connection, limits: Limits, mark: int, log_as: logs.Kind | None = None) -> None:
    """Take one task from the connection, run it and answer; never returns.

    Having answered, the worker waits to be killed with its whole session: while its leader lives,
    the parent's `killpg` cannot hit a stranger. A worker whose parent is gone ends by itself, in the
    middle of its task, too.
    """
    settle(mark, log_as)
    preloaded = sys.modules.get("meshhub.engine.preload")
    if preloaded is not None and not connection.poll():
        # a spare has the time
        preloaded.warm_up()
    try:
        task, scratch, request = connection.recv()
    except (EOFError, OSError):
        os._exit(0)
    logs.REQUEST.set(request)
    limit(limits)
    # for Python, and for libraries and programs that ask the environment
    tempfile.tempdir = os.environ["TMPDIR"] = str(scratch)
    try:
        answer = _encoded(task, _Progress(connection, task.chain))
    except Exception:
        log.exception("a task ended in a fault of meshhub's own")
        os._exit(_FAULT)
    with contextlib.suppress(OSError):
        connection.send_bytes(answer)
    while True:
        signal.pause()


def settle(mark: int, log_as: logs.Kind | None) -> None:
    """Make this process one that ends with its parent, bears the mark, and prints nowhere but to the log."""
    with contextlib.suppress(OSError):
        os.setsid()
    if sys.platform != "win32":
        # blocked by the parent, until no terminal can send it
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    _die_with_parent()
    _let_the_fork_server_end()
    marks.bear(mark)
    _log_apart(log_as)


class _Progress:
    """Reports each step to the parent as it begins, so that a crash or a timeout names it."""

    def __init__(self, connection: Connection, chain: Chain) -> None:
        self._connection = connection
        self._chain = chain
        self.position = Position(chain)

    def __call__(self, step: int) -> None:
        if step == len(self._chain.steps):
            return
        self.position = Position(self._chain, step)
        with contextlib.suppress(OSError):
            self._connection.send_bytes(msgspec.json.encode(Answer(step=step)))


def _encoded(task: Task, progress: _Progress) -> bytes:
    """The answer as it is sent."""
    try:
        answer = _answer(task, progress)
    except MeshhubError as error:
        answer = Answer(
            error_class=_known(type(error)),
            error_code=error.code,
            error=error.template,
            options=error.options,
        )
    except MemoryError:
        # what fills it may still be held, by itself or by the error
        _take_the_reserve()
        answer = Answer(
            error_class=ModelTooComplex.__name__,
            error_code=ModelTooComplex.code,
            error=f"the model needs more memory than one conversion may take{progress.position.text}; "
            + progress.position.reduction,
            options=("optimize_target_faces",),
        )
    try:
        encoded = msgspec.json.encode(answer)
    except (TypeError, ValueError):
        return _broken("a step told something that is neither a number nor text; its plug-in is broken")
    return encoded if len(encoded) <= LONGEST_ANSWER else _broken("a step told far too much; its plug-in is broken")


def _broken(what: str) -> bytes:
    return msgspec.json.encode(Answer(error_class=PluginError.__name__, error_code=PluginError.code, error=what))


def _answer(task: Task, progress: _Progress) -> Answer:
    made = perform(task, progress)
    if isinstance(made, Report):
        return Answer(report=made, companions=task.target.names[1:] if task.target is not None else ())
    return Answer(inspection=made)


def _known(kind: type[MeshhubError]) -> str:
    """The class of an error, or the nearest above it that the parent knows too."""
    known: type[BaseException] = next(one for one in kind.__mro__ if getattr(errors, one.__name__, None) is one)
    return known.__name__


def _log_apart(log_as: logs.Kind | None) -> None:
    """Let the log reach standard error, the first lines of it, and let what is printed go nowhere.

    Libraries print what they like; a program's output and its log are not theirs.
    """
    if log_as is None:
        # nobody asked for a log: Python's last resort would print tracebacks between a program's own lines
        logging.getLogger("meshhub").addHandler(logging.NullHandler())
    else:
        sys.stderr = os.fdopen(os.dup(2), "w", buffering=1, errors="backslashreplace")
        # after a fork: the parent's handlers write to descriptors that lead nowhere here
        logging.getLogger().handlers.clear()
        logs.to_stderr(log_as)
        for handler in logging.getLogger().handlers:
            handler.addFilter(_Few())
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    sys.stdout = sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115


class _Few(logging.Filter):
    """Lets the first records through, each cut where nobody reads on."""

    _count = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is logged."""
        self._count += 1
        record.msg, record.args = printable(record.getMessage()), ()
        return self._count <= _MOST_RECORDS


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        # when memory runs out, the system takes it from here, not from the service or from strangers
        with contextlib.suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000")


def _let_the_fork_server_end() -> None:
    """Close this worker's end of the pipe by which its fork server sees that it is still needed.

    Python gives one to each child, so that children can have children. A fork server whose program was
    killed would wait for its workers, and a worker that hangs for its fork server's end, for ever.
    """
    server = getattr(forkserver, "_forkserver", None)
    held = getattr(server, "_forkserver_alive_fd", None)
    if server is not None and held is not None:
        server._forkserver_alive_fd = None
        os.close(held)


def adopt_orphans() -> None:
    """Become the parent of what dead children leave."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def limit(limits: Limits) -> None:
    """Bind this process to the limits, from what it has mapped now."""
    if sys.platform == "win32":
        return
    import resource

    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NOFILE: limits.open_files,
    }
    for what, bound in wanted.items():
        bound = _allowed(what, bound)
        resource.setrlimit(what, (bound, bound))
    mapped = _mapped_bytes(os.getpid())
    if mapped:
        bound = _allowed(resource.RLIMIT_AS, mapped + limits.memory_bytes + _RESERVE)
        resource.setrlimit(resource.RLIMIT_AS, (bound - _RESERVE, bound))
    # the first bound ends it with a signal of its own name, which tells why; the second for good
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if hard == resource.RLIM_INFINITY or hard > limits.cpu_seconds:
        resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_seconds, limits.cpu_seconds + 1))
    # past the file size limit a write fails with an error instead of a deadly signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def _allowed(what: int, bound: int) -> int:
    """The bound, or what the system allows at most."""
    import resource

    _, hard = resource.getrlimit(what)
    return bound if hard == resource.RLIM_INFINITY else min(bound, hard)


def _take_the_reserve() -> None:
    if sys.platform != "win32":
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def unmapped_bytes(process: int, limits: Limits) -> int:
    """What a worker may still take of its memory: all of it before it has bound itself, and where nobody can tell.

    How much it had mapped when it bound itself only its bound tells: it may map a gigabyte while it warms up.
    """
    if sys.platform != "linux":
        return limits.memory_bytes
    import resource

    with contextlib.suppress(OSError, ValueError):
        bound, last = resource.prlimit(process, resource.RLIMIT_AS)
        _, mine = resource.getrlimit(resource.RLIMIT_AS)
        # as long as it has the last bound of all processes here it has not set its own, or could not
        if last != mine:
            return bound - _mapped_bytes(process)
    return limits.memory_bytes


def _mapped_bytes(process: int) -> int:
    """What counts for the limit on a process's memory; 0 where the system does not tell."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
