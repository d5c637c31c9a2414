"""Load plug-ins one by one, so that a broken one becomes a fault and affects no other."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import logging
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from importlib import metadata
from typing import Any

import pluggy
from msgspec import Struct, structs

from meshhub import hookspecs
from meshhub.model.api_version import DECLARATION, explain_incompatible
from meshhub.model.chain import BUILT_IN, GIVEN

log = logging.getLogger(__name__)

GROUP = "meshhub"
"""The entry-point group that third-party distributions register under."""

LISTENER = "meshhub_finished"
"""The hook whose result is ignored."""

_BUILTINS = "meshhub.builtin_plugins"


class Plugin(Struct, frozen=True):
    """A loaded plug-in.

    name:        unique among the loaded plug-ins
    origin:      distribution and version ("meshhub-off 1.2"), "built-in", or "given" for an object passed by a program
    entry_point: value of its entry point, from which another process can load it too; "" without one
    api_version: version of the plug-in API that it declares; "" if it declares none
    """

    name: str
    origin: str
    entry_point: str = ""
    api_version: str = ""


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
    """The loaded plug-ins in a fixed order: built-in, installed, given; each group by name."""

    def __init__(
        self,
        given: Iterable[object] = (),
        *,
        entry_points: bool | Iterable[metadata.EntryPoint] = True,
        builtins: bool = True,
        refusal: Callable[[metadata.EntryPoint], str] | None = None,
        disabled: Collection[str] = (),
    ) -> None:
        """Load the plug-ins; one that cannot be loaded becomes a fault.

        Args:
            given: Modules, objects or classes with hook implementations.
            entry_points: Which to load; True means those of all installed distributions.
            builtins: Whether to load the plug-ins of `meshhub.builtin_plugins`.
            refusal: Returns why an entry point must not be loaded, or "".
            disabled: Names of built-in and installed plug-ins that are not loaded.
        """
        self._disabled_names = disabled
        self.disabled: list[Plugin] = []
        self.faults: list[Fault] = []
        self.loaded: list[Plugin] = []
        self._manager = pluggy.PluginManager(hookspecs.PROJECT)
        self._manager.add_hookspecs(hookspecs)
        if builtins:
            self._load_builtins()
        if entry_points is True:
            entry_points = metadata.entry_points(group=GROUP)
        self._load_entry_points(entry_points or (), refusal)
        for implementation in given:
            name = getattr(implementation, "__name__", None) or type(implementation).__name__
            self._register(Plugin(str(name), GIVEN), implementation)

    def having(self, hook: str) -> list[Plugin]:
        """Return the plug-ins that implement a hook."""
        names = {implementation.plugin_name for implementation in getattr(self._manager.hook, hook).get_hookimpls()}
        return [plugin for plugin in self.loaded if plugin.name in names]

    def named(self, name: str) -> Plugin:
        """Return the plug-in of this name. Raises KeyError."""
        return {plugin.name: plugin for plugin in self.loaded}[name]

    def call(self, name: str, hook: str, arguments: Mapping[str, object]) -> list[Any]:
        """Call a hook of one plug-in.

        Returns:
            The items that it returned; none for a listener.
        Raises:
            TypeError: It returned something other than a list of items.
            Exception: The hook raised it.
        """
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
            if self._leave_out(Plugin(name, BUILT_IN)):
                continue
            self._load(Plugin(name, BUILT_IN), lambda name=name: importlib.import_module(f"{_BUILTINS}.{name}"))  # type: ignore[misc]

    def _load_entry_points(
        self, points: Iterable[metadata.EntryPoint], refusal: Callable[[metadata.EntryPoint], str] | None
    ) -> None:
        unique = {
            (point.name, point.value): point
            for point in sorted(points)
            if not self._leave_out(Plugin(point.name, origin_of(point), point.value))
        }
        # probe all before loading any: a probe may fork, and a loaded plug-in may have started threads
        reasons = {key: refusal(point) if refusal is not None else "" for key, point in unique.items()}
        for (name, value), point in sorted(unique.items()):
            plugin = Plugin(name, origin_of(point), value)
            reason = reasons[name, value]
            if reason:
                self._add_fault(plugin, reason)
            else:
                # standard output may carry a model, or JSON
                with contextlib.redirect_stdout(sys.stderr):
                    self._load(plugin, point.load)

    def _leave_out(self, plugin: Plugin) -> bool:
        """Return whether a plug-in is disabled; keep it in `disabled` then."""
        if plugin.name not in self._disabled_names:
            return False
        if plugin not in self.disabled:
            self.disabled.append(plugin)
        return True

    def _load(self, plugin: Plugin, load: Callable[[], object]) -> None:
        try:
            implementation = load()
        except (Exception, SystemExit) as error:
            self._add_fault(plugin, f"cannot be loaded ({plugin.origin}): {type(error).__name__}: {error}", error)
        else:
            self._register(plugin, implementation)

    def _register(self, plugin: Plugin, implementation: object) -> None:
        if inspect.isclass(implementation):
            try:
                implementation = implementation()
            except (Exception, SystemExit) as error:
                self._add_fault(plugin, f"cannot be instantiated: {type(error).__name__}: {error}", error)
                return
        declared = getattr(implementation, DECLARATION, None)
        reason = "" if declared is None else explain_incompatible(declared)
        if reason:
            self._add_fault(plugin, f"is left out ({plugin.origin}): {reason}")
            return
        conflict = self._find_conflict(plugin, implementation)
        if conflict:
            self._add_fault(plugin, f"{conflict}; this one ({plugin.origin}) is left out")
            return
        try:
            self._manager.register(implementation, plugin.name)
        except Exception as error:
            if self._manager.is_registered(implementation):
                self._manager.unregister(implementation)
            self._add_fault(plugin, f"does not follow the hooks: {error}")
            return
        self.loaded.append(structs.replace(plugin, api_version=declared or ""))
        for attribute in sorted(dir(implementation)):
            if attribute.startswith("meshhub_") and callable(getattr(implementation, attribute, None)):
                self._check_hook(plugin, implementation, attribute)

    def _find_conflict(self, plugin: Plugin, implementation: object) -> str:
        for other in self.loaded:
            if other.name == plugin.name:
                return f"the name is already taken by a plug-in ({other.origin})"
        return "is registered under another name already" if self._manager.is_registered(implementation) else ""

    def _check_hook(self, plugin: Plugin, implementation: object, attribute: str) -> None:
        is_hook = hasattr(self._manager.hook, attribute) and getattr(self._manager.hook, attribute).has_spec()
        if not is_hook:
            names = sorted(hook for hook in dir(hookspecs) if hook.startswith("meshhub_"))
            self._add_fault(plugin, f"{attribute} is not a hook; the hooks are {', '.join(names)}")
        elif self._manager.parse_hookimpl_opts(implementation, attribute) is None:
            self._add_fault(plugin, f"{attribute} lacks the @hookimpl marker and is not called")

    def _add_fault(self, plugin: Plugin, message: str, error: BaseException | None = None) -> None:
        if error is not None:
            log.debug("plug-in %r (%s) %s", plugin.name, plugin.origin, message, exc_info=error)
        self.faults.append(Fault(plugin.name, message, plugin.origin))


def origin_of(point: metadata.EntryPoint) -> str:
    """Return the distribution of an entry point and its version."""
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else "entry point"
