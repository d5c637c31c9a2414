"""Third-party hooks in a separate process with deadlines, so that a faulty hook cannot stop the program."""

# why this way: docs/decisions/0020-hook-process.md
from __future__ import annotations

import contextlib
import logging
import math
import os
import queue
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import metadata
from typing import Any

import msgspec

from meshhub.engine.contract import CALLER
from meshhub.engine.failures import OFF_S, Failures, HookName
from meshhub.engine.hook_connection import CallLost, HookConnection, HookFailed, HookLate
from meshhub.engine.hook_worker import ARGUMENTS, CHECK, RESULTS, SNIFF, Checking, Question, Reply, Sniffing
from meshhub.engine.limits import Limits
from meshhub.engine.logs import Kind
from meshhub.engine.plugin_records import PluginRecords, points_of
from meshhub.engine.process_start import Starter
from meshhub.errors import EngineError, InvalidOption, PluginError, ShuttingDown
from meshhub.model.capabilities import Reader
from meshhub.model.options import Value, has_check
from meshhub.pipeline.declarations import Declared, reference_of
from meshhub.pipeline.hooks import Hooks
from meshhub.pipeline.identify import Sniff, SniffFailure, sniff_here
from meshhub.pipeline.loading import LISTENER, Fault, Plugin, origin_of
from meshhub.pipeline.option_class_check import broken_check, raise_problem

log = logging.getLogger(__name__)

SNIFF_S = 1.0
"""Seconds for all third-party sniffers together to examine one file."""

HOOK_S = 2.0
"""Seconds for one call of a grant, a review or a listener."""

PROBE_S = 10.0
"""Seconds for the plug-ins of one distribution to load."""

_MIN_REPEAT_S = 0.6
"""Minimum seconds for a call that is repeated in a separate process to find the cause of a failure. With the first
attempt and the start of that process, a call exceeds its budget by at most a second."""

_MAX_ATTEMPTS_COUNT = 10
"""Maximum attempts at a call that never began because another call ended the process."""

_LIMITS = Limits(memory_bytes=2 << 30, cpu_seconds=1 << 30)
"""2 GiB, including the stacks of the threads. Processor time adds up over days, so it is practically unlimited."""

_MAX_WAITING_REPORTS_COUNT = 1000
"""Maximum reports that wait for the listener of one plug-in; further ones are dropped to bound the memory."""


class _Failed(PluginError):
    """Failure of a hook, also as the predicate of a sentence about it."""

    def __init__(self, subject: str, words: SniffFailure, traceback: str = "") -> None:
        super().__init__(f"{subject} {words.details}")
        self.words = words
        self.traceback = traceback


class HookProcess(Hooks):
    """Process for the hooks of installed third-party plug-ins, which is killed and restarted after a failure.

    The first call of such a hook starts it. Built-ins and plug-ins passed to the registry are called directly.
    A hook that fails for several callers is disabled for a minute. A hook that keeps failing for one caller is disabled
    for that caller only.

    sniff_s, hook_s: seconds for the sniffers of one file, and for any other hook; None for no deadline
    method: how the process is started, as in `Isolated`
    folder: parent of its temporary folder; default: the system's
    log:    how it logs to standard error, as in `Isolated`
    records: where probes and failures are recorded; None: entry points are loaded without a probe
    has_details: whether notes have the texts of exceptions; not for strangers: they may contain paths and secrets
    """

    def __init__(
        self,
        *,
        sniff_s: float | None = SNIFF_S,
        hook_s: float | None = HOOK_S,
        method: str | None = None,
        folder: str | None = None,
        log: Kind | None = None,
        records: PluginRecords | None = None,
        has_details: bool = False,
    ) -> None:
        self._sniff_s = sniff_s
        self._hook_s = hook_s
        self._folder = folder
        self._starter = Starter(method, _LIMITS, log)
        self._records = records
        self._has_details = has_details
        self._probed: dict[str, str] = {}
        self._open: set[HookConnection] = set()
        self._is_closed = False
        self._forget_calls()
        # for a program that ends without calling `close`
        weakref.finalize(self, _close_all, self._open)
        _INSTANCES.add(self)

    def _forget_calls(self) -> None:
        """Begin without calls, failures and processes; those that a forked child inherits belong to the parent."""
        self._failures = Failures()
        self._errors = Failures()
        self._lock = threading.Lock()
        self._starting = threading.Lock()
        self._connection: HookConnection | None = None
        self._open.clear()
        self._listeners: dict[str, _Listener] = {}

    def refusal(self, point: metadata.EntryPoint) -> str:
        """Return why an entry point must not be loaded (its import hangs or ends the process); "" otherwise."""
        if self._records is None:
            return ""
        origin = origin_of(point)
        if origin not in self._probed:
            points = points_of(point)
            recorded = self._records.probe_of(points)
            self._probed[origin] = recorded if recorded is not None else self._probe(points)
            self._records.keep_probe(points, self._probed[origin])
        return self._probed[origin]

    def sniffing(self) -> Sniff:
        """Return a function that calls sniffers; those of third parties share one budget over all its calls."""
        left = self._sniff_s

        def sniff(readers: Sequence[Declared[Reader]], head: bytes, size: int) -> list[int | SniffFailure]:
            nonlocal left
            scores: list[int | SniffFailure] = []
            for reader in readers:
                plugin = self._plugins.named(reader.plugin)
                if not plugin.entry_point:
                    scores += sniff_here([reader], head, size)
                    continue
                begun = time.monotonic()
                scores.append(self._sniff(plugin, reader, head, size, left))
                if left is not None:
                    left = max(0.0, left - (time.monotonic() - begun))
            return scores if self._has_details else [_without_details(score) for score in scores]

        return sniff

    def check_options(self, declared: Declared[Any], options: Mapping[str, Value]) -> None:
        """Call the check of a capability's options. Raises InvalidOption, PluginError."""
        struct = declared.capability.options
        plugin = self._plugins.named(declared.plugin) if has_check(struct) else None
        if plugin is None or not plugin.entry_point:
            super().check_options(declared, options)
            return
        hook = HookName(plugin.name, plugin.origin, CHECK)
        arguments = Checking(reference_of(struct), dict(options))
        try:
            problem: list[str] = self._ask(hook, CHECK, arguments, self._hook_s)
        except (PluginError, EngineError, OSError) as error:
            log.error("the check of options of plug-in %r failed: %s", plugin.name, error)
            raise broken_check(declared, error) from error
        if problem:
            raise_problem(declared, InvalidOption(problem[0], options=tuple(problem[1:])))

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Hooks that are disabled."""
        return tuple(
            Fault(
                hook.plugin,
                f"{hook.title} {why} for several callers; it is disabled for {OFF_S:g} s; report it to its maintainer",
                hook.origin,
                hook.title,
            )
            for hook, why in (*self._failures.off(), *self._errors.off())
        )

    def close(self) -> None:
        """Wait for the pending calls of listeners, for the budget of one call at most, and kill the process."""
        with self._lock:
            listeners, self._listeners = list(self._listeners.values()), {}
        _finish(listeners, self._hook_s)
        with self._lock, self._starting:
            self._is_closed = True
        _close_all(self._open)
        if self._records is not None:
            self._records.forget_faults()

    def _probe(self, points: Sequence[metadata.EntryPoint]) -> str:
        """Load plug-ins in a separate process; return the fault, or ""."""
        connection = self._start([(point.name, point.value) for point in points])
        try:
            connection.load(PROBE_S)
        except HookFailed as error:
            return f"is not loaded: {error}"
        finally:
            self._leave(connection)
        return ""

    def _sniff(
        self, plugin: Plugin, reader: Declared[Reader], head: bytes, size: int, budget: float | None
    ) -> int | SniffFailure:
        hook = HookName(plugin.name, plugin.origin, f"{SNIFF} {reader.capability.format.id}")
        try:
            score: int = self._ask(hook, SNIFF, Sniffing(reader.capability.sniff or "", head, size), budget)
        except Exception as error:
            failed = f"failed: {error}"
            words = error.words if isinstance(error, _Failed) else SniffFailure(failed, failed)
            trace = getattr(error, "traceback", "") if log.isEnabledFor(logging.DEBUG) else ""
            message = "the sniffer of plug-in %r (%s) %s%s"
            log.warning(message, plugin.name, plugin.origin, words.details, trace and f"\n{trace.rstrip()}")
            return words
        return score

    def _call_plugin(self, plugin: Plugin, hook: str, arguments: Mapping[str, object]) -> list[Any]:
        if not plugin.entry_point:
            return super()._call_plugin(plugin, hook, arguments)
        if hook == LISTENER:
            self._listen_later(plugin, arguments)
            return []
        items: list[Any] = self._ask_hook(plugin, hook, arguments)
        return items

    def _ask_hook(self, plugin: Plugin, hook: str, arguments: Mapping[str, object]) -> Any:
        name = HookName(plugin.name, plugin.origin, hook)
        return self._ask(name, hook, ARGUMENTS[hook](**arguments), self._hook_s)

    def _listen_later(self, plugin: Plugin, arguments: Mapping[str, object]) -> None:
        """Queue a call of the listener for its thread, so that it does not delay the response."""
        with self._lock:
            if self._is_closed:
                return
            listener = self._listeners.get(plugin.name)
            if listener is None:
                listener = self._listeners[plugin.name] = _Listener(partial(self._listen, plugin))
        try:
            listener.calls.put_nowait((CALLER.get(), arguments))
        except queue.Full:
            log.error("the listener of plug-in %r is too slow; a report was dropped", plugin.name)

    def _listen(self, plugin: Plugin, caller: str, arguments: Mapping[str, object]) -> None:
        CALLER.set(caller)
        try:
            self._ask_hook(plugin, LISTENER, arguments)
        except Exception as error:
            details = error if log.isEnabledFor(logging.DEBUG) else None
            log.error("the listener of plug-in %r failed: %s", plugin.name, error, exc_info=details)

    def _ask(self, name: HookName, hook: str, arguments: msgspec.Struct, budget: float | None) -> Any:
        """Return the result of a hook. Raises PluginError if it fails or is disabled, EngineError, OSError."""
        caller = CALLER.get()
        what = f"{name.title} of plug-in {name.plugin!r} ({name.origin})"
        if self._failures.is_off(name, caller) or self._errors.is_off_for_all(name):
            raise _failed(what, f"is disabled because it failed repeatedly; try again in {OFF_S:g} s")
        if budget is not None and budget <= 0:
            raise _failed(what, "was not called: earlier calls used up the time; try again")
        question = Question(0, hook, name.plugin, msgspec.msgpack.encode(arguments))
        try:
            reply = self._reply(question, budget)
        except HookFailed as error:
            # a sniffer that had less than the full time does not count as failed
            if not isinstance(error, HookLate) or budget == (self._sniff_s if hook == SNIFF else self._hook_s):
                self._count(self._failures, name, str(error))
            raise _failed(what, str(error)) from None
        if reply.state != "done":
            self._count(self._errors, name, "raised an error")
            # only for the log: the text of the error may contain secrets
            failure = _Failed(what, SniffFailure(reply.summary, reply.error), reply.traceback)
            failure.add_note(reply.traceback)
            raise failure
        # a success for any caller resets the count of errors, because the file of one caller may have caused them
        self._errors.forget(name)
        return msgspec.msgpack.decode(reply.result, type=RESULTS[hook])

    def _reply(self, question: Question, budget: float | None) -> Reply:
        """Return the reply to a question. Raises HookFailed, EngineError, OSError."""
        for _ in range(_MAX_ATTEMPTS_COUNT):
            connection = self._current()
            begun = time.monotonic()
            try:
                reply = connection.ask(question, budget)
            except CallLost as lost:
                self._leave(connection)
                if lost.began:
                    spent = time.monotonic() - begun
                    alone_s = budget and max(budget - spent, min(budget, _MIN_REPEAT_S))
                    return self._reply_alone(question, budget, alone_s, is_late=lost.late)
                continue
            except BaseException:
                self._leave(connection)
                raise
            if reply.has_children:
                self._leave(connection)
            return reply
        raise EngineError("the hook process ended repeatedly; find the faulty plug-in with `meshhub plugins`")

    def _reply_alone(self, question: Question, budget: float | None, alone_s: float | None, *, is_late: bool) -> Reply:
        """Ask in a separate process, for `alone_s` seconds, so that no other hook can be the cause of a failure."""
        connection = self._start(self._points())
        try:
            return connection.ask(question, alone_s)
        except HookLate:
            if is_late:
                raise HookLate(f"took longer than {budget or 0:g} s") from None
            raise EngineError("another hook ended the hook process, and too little time was left; try again") from None
        except CallLost:
            raise EngineError("the hook process ended before it replied; try again") from None
        finally:
            self._leave(connection)

    def _current(self) -> HookConnection:
        with self._starting:
            connection = self._connection
            if connection is None or connection.end:
                connection = self._connection = self._start(self._points())
            return connection

    def _points(self) -> list[tuple[str, str]]:
        return [(plugin.name, plugin.entry_point) for plugin in self._plugins.loaded if plugin.entry_point]

    def _start(self, points: Sequence[tuple[str, str]]) -> HookConnection:
        if self._is_closed:
            raise ShuttingDown("the program is shutting down and calls no more plug-ins; try again in a moment")
        connection = HookConnection(self._starter, points, self._folder)
        self._open.add(connection)
        return connection

    def _leave(self, connection: HookConnection) -> None:
        """End a process; the next call starts another."""
        with self._starting:
            if self._connection is connection:
                self._connection = None
        connection.close()
        self._open.discard(connection)

    def _count(self, failures: Failures, name: HookName, why: str) -> None:
        if failures.add(name, CALLER.get(), why):
            title = f"{name.title} of plug-in {name.plugin!r} ({name.origin})"
            log.error("%s %s for several callers; it is disabled for %g s", title, why, OFF_S)
            if self._records is not None:
                self._records.keep_faults(self.faults, OFF_S)


def _failed(subject: str, words: str) -> _Failed:
    return _Failed(subject, SniffFailure(words, words))


def _without_details(score: int | SniffFailure) -> int | SniffFailure:
    return score if isinstance(score, int) else SniffFailure(score.summary, score.summary)


_INSTANCES: weakref.WeakSet[HookProcess] = weakref.WeakSet()
"""The hook processes of this process, which a fork copies."""


def _forget_parents_calls() -> None:
    """Leave all calls to the parent; called in a forked child, where another thread may have held a lock."""
    for hooks in list(_INSTANCES):
        hooks._forget_calls()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parents_calls)


class _Listener:
    """Queue of reports for the listener of one plug-in, and the thread that calls it; others are not delayed."""

    def __init__(self, listen: Callable[[str, Mapping[str, object]], None]) -> None:
        """Call `listen` with the caller and the arguments of each call in `calls`, until an item is None."""
        self._listen = listen
        self.calls: queue.Queue[tuple[str, Mapping[str, object]] | None] = queue.Queue(_MAX_WAITING_REPORTS_COUNT)
        self.thread = threading.Thread(target=self._run, name="meshhub-listener", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while (call := self.calls.get()) is not None:
            self._listen(*call)


def _finish(listeners: Sequence[_Listener], timeout_s: float | None) -> None:
    """Wait until the listeners have handled their waiting reports, for `timeout_s` at most."""
    deadline = math.inf if timeout_s is None else time.monotonic() + timeout_s
    for listener in listeners:
        with contextlib.suppress(queue.Full):
            listener.calls.put(None, timeout=_seconds_until(deadline))
    for listener in listeners:
        listener.thread.join(_seconds_until(deadline))


def _seconds_until(deadline: float) -> float | None:
    return None if deadline == math.inf else max(0.0, deadline - time.monotonic())


def _close_all(connections: set[HookConnection]) -> None:
    for connection in list(connections):
        connection.close()
        connections.discard(connection)
