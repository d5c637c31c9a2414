"""Call the hooks of requests: sniffers, grants, reviews, listeners."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextvars import copy_context
from functools import partial
from typing import Any

from msgspec import structs

from meshhub.errors import PluginError, RequestRefused
from meshhub.model.chain import Chain
from meshhub.model.options import Value, has_check
from meshhub.model.plans import Caller, Objection
from meshhub.model.report import Report
from meshhub.pipeline.declaration_check import check_declaration
from meshhub.pipeline.declarations import Declared
from meshhub.pipeline.fork_lock import ForkLock
from meshhub.pipeline.hook_threads import LimitedCalls, ListenerThread, finish
from meshhub.pipeline.identify import Sniff
from meshhub.pipeline.loading import LISTENER, Plugin, Plugins
from meshhub.pipeline.option_class_check import ask_problem, check_here, take_problem
from meshhub.pipeline.plugin_errors import describe_error, log_arguments
from meshhub.pipeline.questions import Ask
from meshhub.pipeline.sniffers import Sniffers

log = logging.getLogger(__name__)

SNIFF_S = 1.0
"""Seconds for a sniffer and all files of a request of the service."""

HOOK_S = 2.0
"""Seconds for one call of another hook of the service."""

_STARTING = ForkLock(5)
"""Held while the thread of a listener is started."""


class Hooks:
    """Calls the hooks of requests. Each registry has its own.

    The engine calls sniffers and checks of options of installed plug-ins, because they see what callers send. All other
    hooks, and those of built-ins and of plug-ins that a program passes, are called in this process.
    """

    def __init__(self, *, sniff_s: float | None = None, hook_s: float | None = None, has_details: bool = True) -> None:
        """Set the time limits of the hooks of installed plug-ins.

        Args:
            sniff_s: Seconds for a sniffer and all files of a request; None for no limit.
            hook_s: Seconds for any other hook. Each is then called in a thread, and no result waits for a listener.
                None: it is called in the calling thread, without a limit.
            has_details: Whether notes have the texts of exceptions, which may contain paths and secrets.
        """
        self._sniff_s = sniff_s
        self._hook_s = hook_s
        self._has_details = has_details
        self._calls = LimitedCalls()
        self._listeners: dict[str, ListenerThread] = {}
        self._is_closed = False

    def attach(self, plugins: Plugins, ask: Ask) -> None:
        """Set the plug-ins whose hooks are called, and where the engine calls sniffers and checks of options."""
        self._plugins = plugins
        self._ask = ask
        self._installed = frozenset(plugin.name for plugin in plugins.loaded if plugin.entry_point)

    def is_implemented(self, hook: str) -> bool:
        """Return whether a plug-in implements a hook."""
        return bool(self._plugins.having(hook))

    def call(self, hook: str, **arguments: object) -> Iterator[tuple[Plugin, list[Any], BaseException | None]]:
        """Call a hook on every plug-in that implements it.

        Yields:
            The plug-in, the items that it returned, and the exception that it raised.
        """
        for plugin in self._plugins.having(hook):
            try:
                items, error = self._call_plugin(plugin, hook, arguments), None
            except KeyboardInterrupt:
                raise
            except BaseException as raised:
                items, error = [], raised
            yield plugin, items, error

    def grant(self, caller: Caller) -> Caller:
        """Return the caller with the entitlements that plug-ins grant. A grant that fails grants nothing."""
        grants = set(caller.plan.grants)
        for plugin, items, error in self.call("meshhub_grants", caller=caller):
            if error is None and all(isinstance(item, str) for item in items):
                grants |= set(items)
            else:
                log.error(
                    "the grant of plug-in %r failed and grants nothing", plugin.name, exc_info=log_arguments(error)
                )
        plan = structs.replace(caller.plan, grants=frozenset(grants))
        return structs.replace(caller, plan=plan, entitled=True)

    def review(self, chain: Chain, caller: Caller) -> list[Objection]:
        """Return the objections of plug-ins to a chain. Raises PluginError for a review that fails."""
        objections: list[Objection] = []
        for plugin, items, error in self.call("meshhub_review", chain=chain, caller=caller):
            try:
                objections += [check_declaration(Objection, item) for item in items]
            except Exception as invalid:
                error = error or invalid
            if error is not None:
                # Fail closed: a broken review rejects the request.
                log.error("the review of plug-in %r failed", plugin.name, exc_info=log_arguments(error))
                failure = PluginError(
                    f"the review of plug-in {plugin.name!r} ({plugin.origin}) failed, so the request was rejected; "
                    "report it to its maintainer",
                    error_code="internal_error",
                )
                failure.details = describe_error(error)
                raise failure
        return objections

    def inform(self, report: Report) -> None:
        """Pass a report to the listeners of plug-ins."""
        for plugin in self._plugins.having(LISTENER):
            inform = partial(self._inform_plugin, plugin, report)
            if plugin.name not in self._installed or self._hook_s is None:
                inform()
            elif not self._is_closed and not self._listener(plugin.name).add(partial(copy_context().run, inform)):
                log.error("the listener of plug-in %r is too slow; a report was dropped", plugin.name)

    def sniffing(self) -> Sniff:
        """Return a function that calls sniffers, for one request."""
        return Sniffers(self._installed, self._ask, self._sniff_s, has_details=self._has_details)

    def check_options(self, declared: Declared[Any], options: Mapping[str, Value]) -> None:
        """Call the check of a capability's options. Raises InvalidOption, PluginError, EngineError."""
        struct = declared.capability.options
        if declared.plugin not in self._installed:
            check_here(declared, options)
        elif has_check(struct):
            (reply,) = self._ask([ask_problem(struct, options, self._hook_s)])
            take_problem(declared, reply)

    def close(self) -> None:
        """Wait for the pending calls of listeners, for the time of one call at most."""
        self._is_closed = True
        finish([listener for listener in self._listeners.values() if listener.is_alive], self._hook_s)
        self._listeners.clear()

    def _call_plugin(self, plugin: Plugin, hook: str, arguments: Mapping[str, object]) -> list[Any]:
        call = partial(self._plugins.call, plugin.name, hook, arguments)
        if plugin.name not in self._installed or self._hook_s is None:
            return call()
        return self._calls.call(plugin.name, self._hook_s, call)

    def _inform_plugin(self, plugin: Plugin, report: Report) -> None:
        try:
            self._call_plugin(plugin, LISTENER, {"report": report})
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            log.error("the listener of plug-in %r failed", plugin.name, exc_info=log_arguments(error))

    def _listener(self, name: str) -> ListenerThread:
        """Return the thread of a listener; start it for its first report."""
        with _STARTING.held():
            listener = self._listeners.get(name)
            if listener is None or not listener.is_alive:
                listener = self._listeners[name] = ListenerThread()
        return listener


def raise_objections(objections: Sequence[Objection]) -> None:
    """Raise RequestRefused, which lists all objections, if there are any."""
    if objections:
        messages = (" — ".join(filter(None, (item.message, item.remedy))) for item in objections)
        raise RequestRefused("; ".join(messages), error_code=objections[0].code)
