"""Child side of the hook process: it loads third-party plug-ins and replies to calls until it is killed."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
import time
import traceback
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct

from meshhub.engine import logs
from meshhub.engine.limits import Limits, apply_limits
from meshhub.engine.worker import Pipe, adopt_orphans, settle
from meshhub.model.chain import Chain
from meshhub.model.options import Value, find_problem
from meshhub.model.plans import Caller, Objection
from meshhub.model.report import Report
from meshhub.pipeline.collecting import collect
from meshhub.pipeline.declarations import load
from meshhub.pipeline.identify import score_of
from meshhub.pipeline.loading import GROUP, LISTENER, Plugins
from meshhub.pipeline.plugin_errors import (
    InvalidDeclaration,
    describe_failure,
    name_type,
    own_traceback,
    summarize_failure,
)

SNIFF = "sniff"
"""Name of the call of a sniffer, which replaces the name of a hook."""

CHECK = "check of options"
"""Name of the call of a check; its result is empty, or the message and the options that it names."""

LOADING = 0
"""Number of the replies that report when the loading of plug-ins begins and ends; questions have higher numbers."""

_SIGSTOP = 19
"""Number of the signal on Linux, which Windows does not have."""

_POLL_S = 0.0005
"""Seconds between two looks at the pending signals."""

_THREADS_COUNT = 16
"""Maximum concurrent calls, so that a hook that waits for the network does not delay others."""


class Question(Struct, frozen=True, array_like=True):
    """Call of a hook of `plugin`; `arguments` are a Struct of `ARGUMENTS` as msgpack."""

    number: int
    hook: str = ""
    plugin: str = ""
    arguments: bytes = b""


class Reply(Struct, frozen=True, array_like=True):
    """Progress or result of a call.

    state:  "began" at the start, then "done" or "failed"
    result: value of the type in `RESULTS`, as msgpack
    error:  how the hook failed, as a predicate; `summary` without the text of an exception
    traceback: its traceback in the plug-in
    has_children: child processes remain, and no other call is running that may use them
    """

    number: int
    state: str
    result: bytes = b""
    error: str = ""
    summary: str = ""
    traceback: str = ""
    has_children: bool = False


class Sniffing(Struct, frozen=True, array_like=True):
    """Arguments of a sniffer; `sniff` is "package.module:function"."""

    sniff: str
    head: bytes
    size: int


class Checking(Struct, frozen=True, array_like=True):
    """Arguments of the check of options; `options_type` is "package.module:class"."""

    options_type: str
    options: dict[str, Value]


class Granting(Struct, frozen=True):
    """Arguments of `meshhub_grants`."""

    caller: Caller


class Reviewing(Struct, frozen=True):
    """Arguments of `meshhub_review`."""

    chain: Chain
    caller: Caller


class Listening(Struct, frozen=True):
    """Arguments of `meshhub_finished`."""

    report: Report


ARGUMENTS: dict[str, type[Struct]] = {
    SNIFF: Sniffing,
    CHECK: Checking,
    "meshhub_grants": Granting,
    "meshhub_review": Reviewing,
    LISTENER: Listening,
}

RESULTS: dict[str, Any] = {
    SNIFF: int,
    CHECK: list[str],
    "meshhub_grants": list[str],
    "meshhub_review": list[Objection],
    LISTENER: list[None],
}
"""Result types of the hooks that run for requests."""


def serve_hooks(
    connection: Pipe,
    limits: Limits,
    mark: int,
    log_as: logs.Kind | None,
    points: list[tuple[str, str]],
    path: list[str],
    folder: str,
) -> None:
    """Load the plug-ins of entry points (name, value), then reply to questions; never return.

    path:   `sys.path` of the parent, which a fork server does not have
    folder: for temporary files
    """
    settle(mark, log_as)
    adopt_orphans()
    apply_limits(limits)
    sys.path[:] = path
    tempfile.tempdir = os.environ["TMPDIR"] = folder
    _Server(connection).serve(points)


class _Server:
    """Threads that reply to the questions from one pipe."""

    def __init__(self, connection: Pipe) -> None:
        self._connection = connection
        self._process = os.getpid()
        self._reading = threading.Lock()
        self._sending = threading.Lock()
        self._counting = threading.Lock()
        self._running = 0
        self._watches = False

    def serve(self, points: list[tuple[str, str]]) -> None:
        self._send(Reply(LOADING, "began"))
        try:
            self._plugins = Plugins(entry_points=[EntryPoint(*point, GROUP) for point in points], builtins=False)
            # a hook that hangs while it declares capabilities must hang here, not in the server
            collect(self._plugins)
        except BaseException as error:
            # KeyboardInterrupt; others are faults
            self._send(Reply(LOADING, "failed", error=describe_failure(error)))
            raise
        # processes that a plug-in started during its import do not count as children of a call
        self._watches = not _has_children()
        self._send(Reply(LOADING, "done"))
        # without memory for another stack, calls wait for the threads that already run
        with contextlib.suppress(RuntimeError):
            for _ in range(_THREADS_COUNT - 1):
                threading.Thread(target=self._answer_questions, daemon=True).start()
        self._answer_questions()

    def _answer_questions(self) -> None:
        while True:
            try:
                with self._reading:
                    frame = self._connection.recv_bytes()
                question = msgspec.msgpack.decode(frame, type=Question)
            except (EOFError, OSError, msgspec.MsgspecError):
                os._exit(0)
            with self._counting:
                self._running += 1
            self._send(Reply(question.number, "began"))
            reply = self._reply_to(question)
            if os.getpid() != self._process:
                # the hook forked, and this child returned from it
                os._exit(0)
            _take_stop()
            with self._counting:
                self._running -= 1
                has_children = self._watches and not self._running and _has_children()
            self._send(msgspec.structs.replace(reply, has_children=has_children))

    def _reply_to(self, question: Question) -> Reply:
        try:
            arguments = msgspec.msgpack.decode(question.arguments, type=ARGUMENTS[question.hook])
            result: Any
            if isinstance(arguments, Sniffing):
                result = score_of(arguments.sniff, arguments.head, arguments.size)
            elif isinstance(arguments, Checking):
                problem = find_problem(cast(type[Struct], load(arguments.options_type)), arguments.options)
                result = [] if problem is None else [problem.template, *problem.options]
            else:
                keywords = {name: getattr(arguments, name) for name in arguments.__struct_fields__}
                result = self._plugins.call(question.plugin, question.hook, keywords)
            # fails if the value does not have the declared type
            encoded = msgspec.msgpack.encode(msgspec.convert(result, RESULTS[question.hook]))
        except BaseException as error:
            words, summary = describe_failure(error), summarize_failure(error)
            return Reply(question.number, "failed", error=words, summary=summary, traceback=_format(error))
        return Reply(question.number, "done", encoded)

    def _send(self, reply: Reply) -> None:
        try:
            with self._sending:
                self._connection.send_bytes(msgspec.msgpack.encode(reply))
        except (OSError, ValueError):
            # the parent has ended, or a hook has closed the pipe
            os._exit(0)


def _format(error: BaseException) -> str:
    """Return the error with its traceback, or ""; the formatting of a plug-in's own error type may fail."""
    if isinstance(error, InvalidDeclaration):
        return ""
    try:
        return "".join(traceback.format_exception(type(error), error, own_traceback(error)))[-20_000:]
    except BaseException:
        return name_type(error)


def _take_stop() -> None:
    """Let a SIGSTOP that a hook sent to its own process take effect before the reply.

    Another thread may take it, and later. Otherwise the next hook would be late instead of this one.
    """
    # a signal that is not pending here stops this thread on return from the system call
    with contextlib.suppress(OSError):
        while _read_pending() >> (_SIGSTOP - 1) & 1:
            time.sleep(_POLL_S)


def _read_pending() -> int:
    """Return the mask of signals that no thread of this process has taken, see proc_pid_status(5). Linux only."""
    if sys.platform != "linux":
        return 0
    _, _, after = Path("/proc/self/status").read_text().partition("\nShdPnd:")
    return int(after.split(maxsplit=1)[0], 16)


def _has_children() -> bool:
    """Reap children that have ended; return whether others run."""
    if sys.platform == "win32":
        return False
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True
