"""The inside of a worker process: one task, one answer, then it waits to be killed."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import signal
import sys
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec
from msgspec import Struct

from meshhub import logs
from meshhub.engine.contract import Task, perform
from meshhub.errors import MeshhubError, ModelTooComplex
from meshhub.report import Inspection, Report

log = logging.getLogger(__name__)

_PR_SET_PDEATHSIG = 1
_FAULT = 70


class Limits(Struct, frozen=True, kw_only=True):
    """What one worker may take, beyond what is mapped before it starts."""

    memory_bytes: int = 6 << 30
    file_bytes: int = 4 << 30
    open_files: int = 512
    cpu_seconds: int = 600


class Answer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a worker sends back, as JSON: a worker that went astray cannot make its parent run anything."""

    report: Report | None = None
    inspection: Inspection | None = None
    companions: tuple[str, ...] = ()
    error_class: str = ""
    error_code: str = ""
    error: str = ""


def serve(connection: Connection, limits: Limits, log_as: logs.Kind | None = None) -> None:
    """Take one task from the connection, run it and answer; never returns.

    Having answered, the worker waits to be killed with its whole session: while its leader lives,
    the parent's `killpg` cannot hit a stranger. A worker whose parent is gone ends by itself.
    """
    with contextlib.suppress(OSError):
        os.setsid()
    _die_with_parent()
    if log_as is not None:
        logs.to_stderr(log_as)
    else:
        # nobody asked for a log: Python's last resort would print tracebacks between a program's own lines
        logging.getLogger("meshhub").addHandler(logging.NullHandler())
    try:
        task, scratch = connection.recv()
    except (EOFError, OSError):
        os._exit(0)
    _limit(limits)
    tempfile.tempdir = str(scratch)
    try:
        answer = _answer(task)
    except MeshhubError as error:
        answer = Answer(error_class=type(error).__name__, error_code=error.code, error=error.message)
    except MemoryError:
        answer = Answer(
            error_class=ModelTooComplex.__name__,
            error_code=ModelTooComplex.code,
            error="the model needs more memory than one conversion may take; reduce it first (optimize_target_faces)",
        )
    except Exception:
        log.exception("a task ended in a fault of meshhub's own")
        os._exit(_FAULT)
    with contextlib.suppress(OSError):
        connection.send_bytes(msgspec.json.encode(answer))
    while True:
        signal.pause()


def _answer(task: Task) -> Answer:
    made = perform(task)
    if isinstance(made, Report):
        return Answer(report=made, companions=task.target.names[1:] if task.target is not None else ())
    return Answer(inspection=made)


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _limit(limits: Limits) -> None:
    if sys.platform == "win32":
        return
    import resource

    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_CPU: limits.cpu_seconds,
    }
    mapped = _mapped_bytes()
    if mapped:
        wanted[resource.RLIMIT_AS] = mapped + limits.memory_bytes
    for what, bound in wanted.items():
        _, hard = resource.getrlimit(what)
        bound = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
        resource.setrlimit(what, (bound, bound))
    # past the file size limit a write fails with an error instead of a deadly signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def _mapped_bytes() -> int:
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
