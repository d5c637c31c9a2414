"""Third parties' hooks in a process of their own, with deadlines, so that none of them can stop the program."""

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
from contextvars import ContextVar
from functools import partial
from importlib import metadata
from typing import Any

import msgspec

from meshhub.engine.failures import OFF_S, Failures, HookName
from meshhub.engine.hook_connection import CallLost, HookConnection, HookFailed, HookLate
from meshhub.engine.hook_worker import ARGUMENTS, RESULTS, SNIFF, Question, Reply, Sniffing
from meshhub.engine.limits import Limits
from meshhub.engine.logs import Kind
from meshhub.engine.plugin_records import PluginRecords, points_of
from meshhub.engine.process_start import Starter
from meshhub.errors import EngineError, PluginError, ShuttingDown, printable
from meshhub.model.capabilities import Reader
from meshhub.pipeline.declarations import Declared
from meshhub.pipeline.hooks import Hooks
from meshhub.pipeline.identify import Sniff, sniff_here
from meshhub.pipeline.loading import LISTENER, Fault, Plugin, origin_of

log = logging.getLogger(__name__)

CALLER: ContextVar[str] = ContextVar("meshhub_caller", default="")
"""Public id of the caller for whom hooks run: failures are counted by it."""

SNIFF_S = 1.0
"""Seconds for all sniffers of third parties together to look at one file."""

HOOK_S = 2.0
"""Seconds for a grant, a review or a listener."""

PROBE_S = 10.0
"""Seconds for the plug-ins of one distribution to load."""

_ALONE_S = 0.6
"""Seconds that a call gets at least when it is repeated alone to see whether it was to blame: with the first attempt
and a start, no more than a second beyond its budget."""

_STARTS_COUNT = 10
"""Attempts at a call that never began because the process ended before, for another call's sake."""

_LIMITS = Limits(memory_bytes=2 << 30, cpu_seconds=1 << 30)
"""Memory includes the stacks of its threads; processor time adds up over the days that it lives."""

_LISTENERS_WAITING = 1000
"""Count of reports that wait for the listener of one plug-in; more are dropped, to bound the memory."""


class HookProcess(Hooks):
    """Runs the hooks of installed third-party plug-ins in one process, which is killed and restarted when one fails.

    It is started at the first call of such a hook. Built-ins, and plug-ins passed to the registry, are called directly.
    A hook that fails for several callers is off for a minute, and so is one that keeps failing for one caller, for that
    caller alone.

    sniff_s, hook_s: seconds for the sniffers of one file, and for any other hook; None for no deadline
    method: how the process is started, as of `Isolated`
    folder: where it has its temporary folder; default: the system's
    log:    how it logs to standard error, as of `Isolated`
    records: where probes and failures are recorded; None: entry points are loaded without a probe
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
    ) -> None:
        self._sniff_s = sniff_s
        self._hook_s = hook_s
        self._folder = folder
        self._starter = Starter(method, _LIMITS, log)
        self._records = records
        self._probed: dict[str, str] = {}
        self._failures = Failures()
        self._errors = Failures()
        self._lock = threading.Lock()
        self._starting = threading.Lock()
        self._connection: HookConnection | None = None
        self._open: set[HookConnection] = set()
        self._is_closed = False
        self._listeners: dict[str, _Listener] = {}
        # for a program that ends without closing it
        weakref.finalize(self, _close_all, self._open)

    def refusal(self, point: metadata.EntryPoint) -> str:
        """Return why an entry point must not be loaded: its distribution hangs, or ends the process, when it is."""
        if self._records is None:
            return ""
        origin = origin_of(point)
        if origin not in self._probed:
            points = points_of(point)
            known = self._records.probe_of(points)
            self._probed[origin] = known if known is not None else self._probe(points)
            self._records.keep_probe(points, self._probed[origin])
        return self._probed[origin]

    def sniffing(self) -> Sniff:
        """Return a function that calls sniffers, those of third parties within one budget for all its calls."""
        left = self._sniff_s

        def sniff(readers: Sequence[Declared[Reader]], head: bytes, size: int) -> list[int | None]:
            nonlocal left
            scores: list[int | None] = []
            for one in readers:
                plugin = self._plugins.named(one.plugin)
                if not plugin.entry_point:
                    scores += sniff_here([one], head, size)
                    continue
                begun = time.monotonic()
                scores.append(self._sniff(plugin, one, head, size, left))
                if left is not None:
                    left = max(0.0, left - (time.monotonic() - begun))
            return scores

        return sniff

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Hooks that are off."""
        return tuple(
            Fault(
                hook.plugin,
                f"{hook.title} {why}, for several callers: it is off for {OFF_S:g} s and then tried again",
                hook.origin,
                hook.title,
            )
            for hook, why in (*self._failures.off(), *self._errors.off())
        )

    def close(self) -> None:
        """Let listeners hear what waits for them, as long as one may take, and kill the process."""
        with self._lock:
            listeners, self._listeners = list(self._listeners.values()), {}
        _finish(listeners, self._hook_s)
        with self._lock, self._starting:
            self._is_closed = True
        _close_all(self._open)
        if self._records is not None:
            self._records.forget_faults()

    def _probe(self, points: Sequence[metadata.EntryPoint]) -> str:
        """Load plug-ins in a process of their own; return what is wrong, or ""."""
        connection = self._start([(point.name, point.value) for point in points])
        try:
            connection.load(PROBE_S)
        except HookFailed as error:
            return f"is not loaded: it {error}"
        finally:
            self._leave(connection)
        return ""

    def _sniff(
        self, plugin: Plugin, reader: Declared[Reader], head: bytes, size: int, budget: float | None
    ) -> int | None:
        hook = HookName(plugin.name, plugin.origin, f"{SNIFF} {reader.capability.format.id}")
        try:
            score: int = self._ask(hook, SNIFF, Sniffing(reader.capability.sniff or "", head, size), budget)
        except Exception as error:
            details = error if log.isEnabledFor(logging.DEBUG) else None
            log.warning(
                "the sniffer of plug-in %r (%s) failed: %s", plugin.name, plugin.origin, error, exc_info=details
            )
            return None
        return score

    def _call_one(self, plugin: Plugin, hook: str, arguments: Mapping[str, object]) -> list[Any]:
        if not plugin.entry_point:
            return super()._call_one(plugin, hook, arguments)
        if hook == LISTENER:
            self._listen_later(plugin, arguments)
            return []
        items: list[Any] = self._ask_hook(plugin, hook, arguments)
        return items

    def _ask_hook(self, plugin: Plugin, hook: str, arguments: Mapping[str, object]) -> Any:
        name = HookName(plugin.name, plugin.origin, hook)
        return self._ask(name, hook, ARGUMENTS[hook](**arguments), self._hook_s)

    def _listen_later(self, plugin: Plugin, arguments: Mapping[str, object]) -> None:
        """Let a thread call the listener: it must not delay the response."""
        with self._lock:
            if self._is_closed:
                return
            listener = self._listeners.get(plugin.name)
            if listener is None:
                listener = self._listeners[plugin.name] = _Listener(partial(self._listen, plugin))
        try:
            listener.calls.put_nowait((CALLER.get(), arguments))
        except queue.Full:
            log.error("plug-in %r listens too slowly; a report was dropped", plugin.name)

    def _listen(self, plugin: Plugin, caller: str, arguments: Mapping[str, object]) -> None:
        CALLER.set(caller)
        try:
            self._ask_hook(plugin, LISTENER, arguments)
        except Exception as error:
            details = error if log.isEnabledFor(logging.DEBUG) else None
            log.error("the listener of plug-in %r failed: %s", plugin.name, error, exc_info=details)

    def _ask(self, name: HookName, hook: str, arguments: msgspec.Struct, budget: float | None) -> Any:
        """Return what a hook returns. Raises PluginError when it fails or is off, EngineError, OSError."""
        caller = CALLER.get()
        what = f"{name.title} of plug-in {name.plugin!r} ({name.origin})"
        if self._failures.is_off(name, caller) or self._errors.is_off_for_all(name):
            raise PluginError(f"{what} is off, because it failed before")
        if budget is not None and budget <= 0:
            raise PluginError(f"{what} was not called: no time was left")
        question = Question(0, hook, name.plugin, msgspec.msgpack.encode(arguments))
        try:
            reply = self._reply(question, budget)
        except HookFailed as error:
            # a sniffer that others left little time is not to blame
            if not isinstance(error, HookLate) or budget == (self._sniff_s if hook == SNIFF else self._hook_s):
                self._count(self._failures, name, str(error))
            raise PluginError(f"{what} {error}") from None
        if reply.state != "done":
            self._count(self._errors, name, "raised an error")
            # for the log alone: the error's text may hold secrets
            failure = PluginError(printable(f"{what} raised {reply.error.strip().splitlines()[-1]}"))
            failure.add_note(reply.error)
            raise failure
        # one caller's content may raise errors: they add up only while the hook succeeds for nobody
        self._errors.forget(name)
        return msgspec.msgpack.decode(reply.result, type=RESULTS[hook])

    def _reply(self, question: Question, budget: float | None) -> Reply:
        """Return the reply to a question. Raises HookFailed, EngineError, OSError."""
        for _ in range(_STARTS_COUNT):
            connection = self._current()
            begun = time.monotonic()
            try:
                reply = connection.ask(question, budget)
            except CallLost as lost:
                self._leave(connection)
                if lost.began:
                    spent = time.monotonic() - begun
                    alone_s = budget and max(budget - spent, min(budget, _ALONE_S))
                    return self._reply_alone(question, budget, alone_s, is_late=lost.late)
                continue
            except BaseException:
                self._leave(connection)
                raise
            if reply.has_children:
                self._leave(connection)
            return reply
        raise EngineError("the process of plug-ins ends before it answers; see meshhub plugins")

    def _reply_alone(self, question: Question, budget: float | None, alone_s: float | None, *, is_late: bool) -> Reply:
        """Ask in a process of the question's own, for `alone_s`: there, who is to blame is certain."""
        connection = self._start(self._points())
        try:
            return connection.ask(question, alone_s)
        except HookLate:
            if is_late:
                raise HookLate(f"took longer than {budget or 0:g} s") from None
            raise EngineError("another hook ended the process, and the rest of the time was too short") from None
        except CallLost:
            raise EngineError("the process of plug-ins ended before it answered") from None
        finally:
            self._leave(connection)

    def _current(self) -> HookConnection:
        with self._starting:
            connection = self._connection
            # a forked child has a process of its own
            if connection is None or connection.end or connection.maker != os.getpid():
                connection = self._connection = self._start(self._points())
            return connection

    def _points(self) -> list[tuple[str, str]]:
        return [(plugin.name, plugin.entry_point) for plugin in self._plugins.loaded if plugin.entry_point]

    def _start(self, points: Sequence[tuple[str, str]]) -> HookConnection:
        if self._is_closed:
            raise ShuttingDown("plug-ins are not called any more: the program is stopping")
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
            log.error("%s %s, for several callers, and is off for %g s", title, why, OFF_S)
            if self._records is not None:
                self._records.keep_faults(self.faults, OFF_S)


class _Listener:
    """Reports for the listener of one plug-in, and the thread that calls it: a slow listener delays no other."""

    def __init__(self, listen: Callable[[str, Mapping[str, object]], None]) -> None:
        """Call `listen` with the caller and the arguments of each call in `calls`, until one is None."""
        self._listen = listen
        self.calls: queue.Queue[tuple[str, Mapping[str, object]] | None] = queue.Queue(_LISTENERS_WAITING)
        self.thread = threading.Thread(target=self._run, name="meshhub-listener", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while (call := self.calls.get()) is not None:
            self._listen(*call)


def _finish(listeners: Sequence[_Listener], timeout_s: float | None) -> None:
    """Let listeners take the reports that wait for them, for `timeout_s` at most."""
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
