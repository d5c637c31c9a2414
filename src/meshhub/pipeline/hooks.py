"""Call the hooks of requests: sniffers, grants, reviews, listeners."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import structs

from meshhub.errors import PluginError, RequestRefused
from meshhub.model.chain import Chain
from meshhub.model.options import Value
from meshhub.model.plans import Caller, Objection
from meshhub.model.report import Report
from meshhub.pipeline.declaration_check import check_declaration
from meshhub.pipeline.declarations import Declared
from meshhub.pipeline.identify import Sniff, sniff_here
from meshhub.pipeline.loading import Fault, Plugin, Plugins
from meshhub.pipeline.option_class_check import check_here
from meshhub.pipeline.plugin_errors import describe_error, log_arguments

if TYPE_CHECKING:
    from importlib import metadata

log = logging.getLogger(__name__)


class Hooks:
    """Calls the hooks of requests in this process, without a deadline.

    Each registry has its own. A subclass calls those of third parties in another process.
    """

    def attach(self, plugins: Plugins) -> None:
        """Set the plug-ins whose hooks are called."""
        self._plugins = plugins

    def refusal(self, point: metadata.EntryPoint) -> str:  # noqa: ARG002
        """Return why an entry point must not be loaded in this process, or ""."""
        return ""

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
            except (Exception, SystemExit) as raised:
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
                    code="internal_error",
                )
                failure.details = describe_error(error)
                raise failure
        return objections

    def inform(self, report: Report) -> None:
        """Pass a report to the listeners of plug-ins."""
        for plugin, _, error in self.call("meshhub_finished", report=report):
            if error is not None:
                log.error("the listener of plug-in %r failed", plugin.name, exc_info=log_arguments(error))

    def sniffing(self) -> Sniff:
        """Return a function that calls sniffers, for one request."""
        return sniff_here

    def check_options(self, declared: Declared[Any], options: Mapping[str, Value]) -> None:
        """Call the check of a capability's options. Raises InvalidOption, PluginError."""
        check_here(declared, options)

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Hooks that are not called for now."""
        return ()

    def close(self) -> None:
        """End every process that was started."""

    def _call_plugin(self, plugin: Plugin, hook: str, arguments: Mapping[str, object]) -> list[Any]:
        return self._plugins.call(plugin.name, hook, arguments)


def raise_objections(objections: Sequence[Objection]) -> None:
    """Raise RequestRefused, which lists all objections, if there are any."""
    if objections:
        messages = (" — ".join(filter(None, (item.message, item.remedy))) for item in objections)
        raise RequestRefused("; ".join(messages), code=objections[0].code)
