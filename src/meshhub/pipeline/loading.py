"""Finding plug-ins and calling their hooks, each by itself, so that a broken one hurts no other."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterable, Iterator
from importlib import metadata
from typing import Any

import pluggy
from msgspec import Struct

from meshhub import hookspecs

GROUP = "meshhub"
"""The entry-point group that third-party distributions register under."""

_BUILTINS = "meshhub.builtin_plugins"


class Plugin(Struct, frozen=True):
    """A plug-in that is loaded: its name, and where it comes from ("built-in", "meshhub-off 1.2", "given")."""

    name: str
    origin: str


class Fault(Struct, frozen=True):
    """What is wrong with a plug-in, or with one thing it declares; the rest of it still works."""

    plugin: str
    message: str


class Plugins:
    """The loaded plug-ins, in a fixed order: built-ins, entry points, those given; each group by name."""

    def __init__(self, given: Iterable[object] = (), *, entry_points: bool = True, builtins: bool = True) -> None:
        """Load everything; what cannot be loaded becomes a fault."""
        self.faults: list[Fault] = []
        self.loaded: list[Plugin] = []
        self._manager = pluggy.PluginManager(hookspecs.PROJECT)
        for module in hookspecs.MODULES:
            self._manager.add_hookspecs(module)
        if builtins:
            self._load_builtins()
        if entry_points:
            self._load_entry_points()
        for plugin in given:
            name = getattr(plugin, "__name__", None) or type(plugin).__name__
            self._register(str(name), "given", plugin)

    def call(self, hook: str, **arguments: object) -> Iterator[tuple[str, Any, Exception | None]]:
        """Call a hook on every plug-in that has it: its name, and what it returned or raised."""
        for plugin in self.loaded:
            others = [other for name, other in self._manager.list_name_plugin() if name != plugin.name]
            caller = self._manager.subset_hook_caller(hook, remove_plugins=others)
            if not caller.get_hookimpls():
                continue
            try:
                for returned in caller(**arguments):
                    yield plugin.name, returned, None
            except Exception as error:
                yield plugin.name, None, error

    def _load_builtins(self) -> None:
        package = importlib.import_module(_BUILTINS)
        for name in sorted(package.BUILTINS):
            self._imported(name, "built-in", lambda name=name: importlib.import_module(f"{_BUILTINS}.{name}"))

    def _load_entry_points(self) -> None:
        found = {(point.name, point.value): point for point in metadata.entry_points(group=GROUP)}
        for (name, _), point in sorted(found.items()):
            origin = f"{point.dist.name} {point.dist.version}" if point.dist is not None else "entry point"
            self._imported(name, origin, point.load)

    def _imported(self, name: str, origin: str, load: Any) -> None:
        try:
            plugin = load()
        except (Exception, SystemExit) as error:
            self._fault(name, f"cannot be loaded ({origin}): {type(error).__name__}: {error}")
        else:
            self._register(name, origin, plugin)

    def _register(self, name: str, origin: str, plugin: object) -> None:
        if inspect.isclass(plugin):
            try:
                plugin = plugin()
            except Exception as error:
                self._fault(name, f"cannot be made: {type(error).__name__}: {error}")
                return
        taken = next((one for one in self.loaded if one.name == name), None)
        if taken is not None:
            self._fault(name, f"the name is taken by the one that is {taken.origin}; this one ({origin}) is left out")
            return
        if self._manager.is_registered(plugin):
            self._fault(name, f"is registered under another name already; this one ({origin}) is left out")
            return
        try:
            self._manager.register(plugin, name)
        except Exception as error:
            self._forget(plugin)
            self._fault(name, f"does not follow the hooks: {error}")
            return
        self.loaded.append(Plugin(name, origin))
        for attribute in sorted(dir(plugin)):
            if attribute.startswith("meshhub_") and callable(getattr(plugin, attribute, None)):
                self._check_hook(name, plugin, attribute)

    def _forget(self, plugin: object) -> None:
        if self._manager.is_registered(plugin):
            self._manager.unregister(plugin)

    def _check_hook(self, name: str, plugin: object, attribute: str) -> None:
        known = hasattr(self._manager.hook, attribute) and getattr(self._manager.hook, attribute).has_spec()
        if not known:
            names = sorted(hook for module in hookspecs.MODULES for hook in dir(module) if hook.startswith("meshhub_"))
            self._fault(name, f"{attribute} is not a hook; the hooks are {', '.join(names)}")
        elif self._manager.parse_hookimpl_opts(plugin, attribute) is None:
            self._fault(name, f"{attribute} lacks the @hookimpl marker and is not called")

    def _fault(self, name: str, message: str) -> None:
        self.faults.append(Fault(name, message))
