"""Call the hooks of requests: sniffers, grants, reviews, listeners."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import metadata
from typing import Any

from meshhub.model.options import Value
from meshhub.pipeline.declarations import Declared
from meshhub.pipeline.identify import Sniff, sniff_here
from meshhub.pipeline.loading import Fault, Plugin, Plugins
from meshhub.pipeline.option_check import check_here


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
