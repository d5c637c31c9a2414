"""Finding plug-ins and calling their hooks, each by itself, so that a broken one hurts no other."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import metadata
from typing import Any

import pluggy
from msgspec import Struct

from meshhub import hookspecs
from meshhub.model.chain import BUILT_IN, GIVEN
from meshhub.pipeline.resolve import Sniff, sniff_here

GROUP = "meshhub"
"""The entry-point group that third-party distributions register under."""

LISTENER = "meshhub_finished"
"""The hook whose result is ignored."""

_BUILTINS = "meshhub.builtin_plugins"


class Plugin(Struct, frozen=True):
    """A plug-in that is loaded: its name, and where it comes from ("built-in", "meshhub-off 1.2", "given").

    entry_point: the value of its entry point, from which another process can load it too; "" without one
    """

    name: str
    origin: str
    entry_point: str = ""


class Fault(Struct, frozen=True):
    """Defect of a plug-in, or of one of its declarations or hooks; the rest of it still works.

    origin: its distribution and version; "built-in", "given" or "entry point" for a plug-in without one
    hook:   the hook that is not called for now; "" for any other defect
    """

    plugin: str
    message: str
    origin: str = ""
    hook: str = ""


class Plugins:
    """The loaded plug-ins, in a fixed order: built-ins, entry points, those given; each group by name."""

    def __init__(
        self,
        given: Iterable[object] = (),
        *,
        entry_points: bool | Iterable[metadata.EntryPoint] = True,
        builtins: bool = True,
        refusal: Callable[[metadata.EntryPoint], str] | None = None,
    ) -> None:
        """Load everything; what cannot be loaded becomes a fault.

        entry_points: True for those of all installed distributions
        refusal:      returns why an entry point must not be loaded, or ""
        """
        self.faults: list[Fault] = []
        self.loaded: list[Plugin] = []
        self._manager = pluggy.PluginManager(hookspecs.PROJECT)
        for module in hookspecs.MODULES:
            self._manager.add_hookspecs(module)
        if builtins:
            self._load_builtins()
        if entry_points is True:
            entry_points = metadata.entry_points(group=GROUP)
        self._load_entry_points(entry_points or (), refusal)
        for plugin in given:
            name = getattr(plugin, "__name__", None) or type(plugin).__name__
            self._register(Plugin(str(name), GIVEN), plugin)

    def having(self, hook: str) -> list[Plugin]:
        """Return the plug-ins that implement a hook."""
        return [plugin for plugin in self.loaded if self._caller(plugin.name, hook).get_hookimpls()]

    def named(self, name: str) -> Plugin:
        """Return the plug-in of this name. Raises KeyError."""
        return {plugin.name: plugin for plugin in self.loaded}[name]

    def run(self, name: str, hook: str, arguments: Mapping[str, object]) -> list[Any]:
        """Call a hook of one plug-in and return the items that it returned. Raises what the hook raises, TypeError."""
        items: list[Any] = []
        for returned in self._caller(name, hook)(**arguments):
            if hook == LISTENER:
                continue
            if isinstance(returned, str) or not isinstance(returned, Iterable):
                raise TypeError(f"{hook} must return a list, got {type(returned).__name__}")
            items += returned
        return items

    def _caller(self, name: str, hook: str) -> pluggy.HookCaller:
        others = [other for other_name, other in self._manager.list_name_plugin() if other_name != name]
        return self._manager.subset_hook_caller(hook, remove_plugins=others)

    def _load_builtins(self) -> None:
        package = importlib.import_module(_BUILTINS)
        for name in sorted(package.BUILTINS):
            self._imported(Plugin(name, BUILT_IN), lambda name=name: importlib.import_module(f"{_BUILTINS}.{name}"))  # type: ignore[misc]

    def _load_entry_points(
        self, points: Iterable[metadata.EntryPoint], refusal: Callable[[metadata.EntryPoint], str] | None
    ) -> None:
        found = {(point.name, point.value): point for point in points}
        for (name, value), point in sorted(found.items()):
            plugin = Plugin(name, origin_of(point), value)
            why = refusal(point) if refusal is not None else ""
            if why:
                self._fault(plugin, why)
            else:
                self._imported(plugin, point.load)

    def _imported(self, told: Plugin, load: Callable[[], object]) -> None:
        try:
            plugin = load()
        except (Exception, SystemExit) as error:
            self._fault(told, f"cannot be loaded ({told.origin}): {type(error).__name__}: {error}")
        else:
            self._register(told, plugin)

    def _register(self, told: Plugin, plugin: object) -> None:
        if inspect.isclass(plugin):
            try:
                plugin = plugin()
            except Exception as error:
                self._fault(told, f"cannot be made: {type(error).__name__}: {error}")
                return
        origin = told.origin
        taken = next((one for one in self.loaded if one.name == told.name), None)
        if taken is not None:
            self._fault(told, f"the name is taken by the one that is {taken.origin}; this one ({origin}) is left out")
            return
        if self._manager.is_registered(plugin):
            self._fault(told, f"is registered under another name already; this one ({origin}) is left out")
            return
        try:
            self._manager.register(plugin, told.name)
        except Exception as error:
            self._forget(plugin)
            self._fault(told, f"does not follow the hooks: {error}")
            return
        self.loaded.append(told)
        for attribute in sorted(dir(plugin)):
            if attribute.startswith("meshhub_") and callable(getattr(plugin, attribute, None)):
                self._check_hook(told, plugin, attribute)

    def _forget(self, plugin: object) -> None:
        if self._manager.is_registered(plugin):
            self._manager.unregister(plugin)

    def _check_hook(self, told: Plugin, plugin: object, attribute: str) -> None:
        known = hasattr(self._manager.hook, attribute) and getattr(self._manager.hook, attribute).has_spec()
        if not known:
            names = sorted(hook for module in hookspecs.MODULES for hook in dir(module) if hook.startswith("meshhub_"))
            self._fault(told, f"{attribute} is not a hook; the hooks are {', '.join(names)}")
        elif self._manager.parse_hookimpl_opts(plugin, attribute) is None:
            self._fault(told, f"{attribute} lacks the @hookimpl marker and is not called")

    def _fault(self, plugin: Plugin, message: str) -> None:
        self.faults.append(Fault(plugin.name, message, plugin.origin))


def origin_of(point: metadata.EntryPoint) -> str:
    """Return the distribution of an entry point and its version."""
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else "entry point"


class Hooks:
    """Runs the hooks of requests (sniffers, grants, reviews, listeners): in this process, without a deadline.

    One registry has one. A subclass runs those of third parties elsewhere.
    """

    def attach(self, plugins: Plugins) -> None:
        """Serve these plug-ins from now on."""
        self._plugins = plugins

    def refusal(self, point: metadata.EntryPoint) -> str:  # noqa: ARG002
        """Return why an entry point must not be loaded in this process, or ""."""
        return ""

    def call(self, hook: str, **arguments: object) -> Iterator[tuple[Plugin, list[Any], Exception | None]]:
        """Call a hook on every plug-in that has it; yield the plug-in, and the items it returned or what it raised."""
        for plugin in self._plugins.having(hook):
            try:
                outcome: tuple[list[Any], Exception | None] = self._run(plugin, hook, arguments), None
            except Exception as error:
                outcome = [], error
            yield plugin, *outcome

    def sniffing(self) -> Sniff:
        """Return a function that calls sniffers, to use for one request."""
        return sniff_here

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Hooks that are not called now."""
        return ()

    def close(self) -> None:
        """End every process that was started."""

    def _run(self, plugin: Plugin, hook: str, arguments: Mapping[str, object]) -> list[Any]:
        return self._plugins.run(plugin.name, hook, arguments)
