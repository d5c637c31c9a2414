"""Loading of plug-ins one by one, so that a broken one becomes a fault and does not affect others."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import logging
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import partial
from importlib.machinery import PathFinder
from io import FileIO
from itertools import islice
from types import ModuleType
from typing import TYPE_CHECKING, Any, TextIO, cast

import pluggy
from msgspec import Struct, structs

from meshhub import hookspecs
from meshhub.errors import printable
from meshhub.model.api_version import DECLARATION, explain_incompatible
from meshhub.model.chain import BUILT_IN, GIVEN
from meshhub.pipeline.plugin_errors import (
    BUILTINS,
    InvalidDeclaration,
    describe_error,
    log_arguments,
    name_type,
    show_value,
)

if TYPE_CHECKING:
    from importlib import metadata

log = logging.getLogger(__name__)

GROUP = "meshhub"
"""Entry-point group under which third-party distributions register."""

LISTENER = "meshhub_finished"
"""The hook whose result is ignored."""

MAX_ITEMS_COUNT = 1000
"""Maximum items that one call of a hook may return, because a generator might never end."""

_PREFIX = "meshhub_"
"""Start of the names of hooks."""


DESCRIPTOR_OUTPUT: ContextVar[FileIO | None] = ContextVar("descriptor_output", default=None)
"""File to which the program redirects descriptor 1 while plug-ins load; shows which plug-in bypasses `sys.stdout`. """


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
    """Defect of a plug-in, or of one of its declarations; the rest of the plug-in still works.

    origin: its distribution and version; "built-in", "given" or "entry point" for a plug-in without one
    """

    plugin: str
    message: str
    origin: str = ""


class Plugins:
    """The loaded plug-ins in a fixed order: built-in, installed, given; each group by name.

    `packages` are the packages that hold them, each with its first plug-in; "" stands for modules outside packages.
    """

    def __init__(
        self,
        given: Iterable[object] = (),
        *,
        entry_points: bool | Iterable[metadata.EntryPoint] = True,
        builtins: bool = True,
        disabled: Collection[str] = (),
    ) -> None:
        """Load the plug-ins; one that cannot be loaded becomes a fault.

        Args:
            given: Modules, objects or classes with hook implementations. Their own entry points are ignored.
            entry_points: Which to load; True means those of all installed distributions.
            builtins: Whether to load the plug-ins of `meshhub.builtin_plugins`.
            disabled: Names of built-in and installed plug-ins that are not loaded.
        """
        self._disabled_names = disabled
        self.disabled: list[Plugin] = []
        self.faults: list[Fault] = []
        self.loaded: list[Plugin] = []
        self.packages: dict[str, Plugin] = {}
        self._implementations: list[object] = []
        self._given = tuple(given)
        self._manager = pluggy.PluginManager(hookspecs.PROJECT)
        self._manager.add_hookspecs(hookspecs)
        if builtins:
            self._load_builtins()
        if entry_points is True:
            entry_points = find_entry_points()
        self._load_entry_points(entry_points or ())
        for implementation in self._given:
            plugin = Plugin(_name_of(implementation), GIVEN)
            with self.guarding(plugin, "cannot be loaded"):
                self._register(plugin, implementation)

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
            InvalidDeclaration: It returned something other than a list of items.
            Exception: The hook raised it.
        """
        items: list[Any] = []
        results = self._caller(name, hook)(**arguments)
        if not results and not arguments:
            # hooks without arguments declare capabilities, and pluggy drops a result of None
            raise InvalidDeclaration("it must return a list, got None")
        for returned in results:
            if hook == LISTENER:
                continue
            if isinstance(returned, str) or not isinstance(returned, Iterable):
                raise InvalidDeclaration(f"it must return a list, got {show_value(returned)}")
            items += islice(returned, MAX_ITEMS_COUNT + 1)
            if len(items) > MAX_ITEMS_COUNT:
                raise InvalidDeclaration(f"it must return at most {MAX_ITEMS_COUNT} items")
        return items

    @contextlib.contextmanager
    def guarding(self, plugin: Plugin, subject: str) -> Iterator[None]:
        """Run code of a plug-in; an exception or output becomes a fault.

        Args:
            plugin: Plug-in that the fault names.
            subject: Start of the message about an exception.
        """
        output = _Output()
        # standard output may carry a model or JSON; a plug-in that a program passes is exempt, because it is a part of
        # the program
        is_foreign = bool(plugin.entry_point)
        try:
            with contextlib.redirect_stdout(cast(TextIO, output)) if is_foreign else contextlib.nullcontext():
                yield
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self.add_fault(plugin, f"{subject}: {describe_error(error)}", error)
        text = output.text or (_take_descriptor_output() if is_foreign else "")
        if text:
            shown = show_value(text)
            self.add_fault(plugin, f"prints {shown} on standard output, which may carry a model; log it instead")

    def add_fault(self, plugin: Plugin, message: str, error: BaseException | None = None) -> None:
        """Record a fault, and log the traceback of its exception."""
        message = printable(message)
        if error is not None and not isinstance(error, InvalidDeclaration):
            log.debug("plug-in %r (%s): %s", plugin.name, plugin.origin, message, exc_info=log_arguments(error))
        self.faults.append(Fault(plugin.name, message, plugin.origin))

    def _caller(self, name: str, hook: str) -> pluggy.HookCaller:
        others = [other for other_name, other in self._manager.list_name_plugin() if other_name != name]
        return self._manager.subset_hook_caller(hook, remove_plugins=others)

    def _load_builtins(self) -> None:
        package = importlib.import_module(BUILTINS)
        for name in package.list_builtins():
            if self._leave_out(Plugin(name, BUILT_IN)):
                continue
            self._load(Plugin(name, BUILT_IN), lambda name=name: importlib.import_module(f"{BUILTINS}.{name}"))  # type: ignore[misc]

    def _load_entry_points(self, points: Iterable[metadata.EntryPoint]) -> None:
        unique = {
            (point.name, point.value): point
            for point in sorted(points)
            if not self._is_given(point) and not self._leave_out(Plugin(point.name, origin_of(point), point.value))
        }
        for (name, value), point in sorted(unique.items()):
            self._load(Plugin(name, origin_of(point), value), partial(_load_entry_point, point))

    def _is_given(self, point: metadata.EntryPoint) -> bool:
        """Return whether the program passes the plug-in of an entry point itself, as the tests of a plug-in do."""
        match = point.pattern.match(point.value)
        if match is None:
            return False
        implementation: object = sys.modules.get(match["module"])
        for name in match["attr"].split(".") if match["attr"] else ():
            # runs no code of the plug-in, whose exceptions would not become faults here
            implementation = inspect.getattr_static(implementation, name, None)
        if implementation is None:
            return False
        return any(implementation is given or implementation is type(given) for given in self._given)

    def _leave_out(self, plugin: Plugin) -> bool:
        """Return whether a plug-in is disabled; if so, record it in `disabled`."""
        if plugin.name not in self._disabled_names:
            return False
        if plugin not in self.disabled:
            self.disabled.append(plugin)
        return True

    def _load(self, plugin: Plugin, load: Callable[[], object]) -> None:
        with self.guarding(plugin, "cannot be loaded"):
            self._register(plugin, load())

    def _register(self, plugin: Plugin, implementation: object) -> None:
        if any(implementation is other for other in self._implementations):
            raise InvalidDeclaration("it is registered under another name already")
        for other in self.loaded:
            if other.name == plugin.name:
                raise InvalidDeclaration(f"the name is already taken by a plug-in ({other.origin})")
        plain = implementation() if inspect.isclass(implementation) else implementation
        declared = getattr(plain, DECLARATION, None)
        reason = "" if declared is None else explain_incompatible(declared)
        if reason:
            raise InvalidDeclaration(reason)
        holder = _hold_hooks(plugin.name, plain)
        try:
            self._manager.register(holder, plugin.name)
        except BaseException:
            if self._manager.is_registered(holder):
                self._manager.unregister(holder)
            raise
        self._implementations.append(implementation)
        self.loaded.append(structs.replace(plugin, api_version=declared or ""))
        self.packages.setdefault(_package_of(implementation), self.loaded[-1])
        for attribute in sorted(vars(holder)):
            if attribute.startswith(_PREFIX):
                self._check_hook(plugin, holder, attribute)

    def _check_hook(self, plugin: Plugin, holder: ModuleType, attribute: str) -> None:
        is_hook = hasattr(self._manager.hook, attribute) and getattr(self._manager.hook, attribute).has_spec()
        if not is_hook:
            names = sorted(hook for hook in dir(hookspecs) if hook.startswith(_PREFIX))
            self.add_fault(plugin, f"{attribute} is not a hook; the hooks are {', '.join(names)}")
        elif self._manager.parse_hookimpl_opts(holder, attribute) is None:
            self.add_fault(plugin, f"{attribute} lacks the @hookimpl marker and is not called")


def find_entry_points() -> Iterable[metadata.EntryPoint]:
    """Return the entry points of all installed distributions.

    `importlib.metadata` imports forty modules, so it is left out if no distribution mentions the group.
    """
    if not _may_find_entry_points():
        return ()
    from importlib import metadata

    return metadata.entry_points(group=GROUP)


def _may_find_entry_points() -> bool:
    """Return whether a distribution may have entry points of the group; True for places of an unusual kind."""
    finders = (finder for finder in sys.meta_path if finder is not PathFinder)
    if any(hasattr(finder, "find_distributions") for finder in finders):
        return True
    return any(_may_list_group(folder) for folder in dict.fromkeys(sys.path))


def _may_list_group(folder: str) -> bool:
    """Return whether a distribution in a folder of `sys.path` may have entry points of the group."""
    try:
        names = os.listdir(folder or ".")
    except FileNotFoundError:
        return False
    except OSError:
        # an archive
        return True
    if folder.lower().rstrip(os.sep).endswith(".egg") or any(name.lower().endswith(".egg") for name in names):
        return True
    for name in names:
        if name.lower().endswith((".dist-info", ".egg-info")):
            # a distribution without entry points has no such file
            with contextlib.suppress(OSError), open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:  # noqa: PTH118, PTH123 - one path per distribution
                if b"[" + GROUP.encode() + b"]" in file.read():
                    return True
    return False


def _load_entry_point(point: metadata.EntryPoint) -> object:
    if point.pattern.match(point.value) is None:
        expected = "'package.module' or 'package.module:object'"
        raise InvalidDeclaration(f"its entry point must be {expected}, got {show_value(point.value)}")
    return point.load()


def _name_of(implementation: object) -> str:
    """Return the name of a module or class, or that of an object's type."""
    name = getattr(implementation, "__name__", None)
    return name if isinstance(name, str) and name else name_type(implementation)


def _package_of(implementation: object) -> str:
    """Return the package of a module, a class, or the class of an object; "" outside packages."""
    kind = implementation if inspect.isclass(implementation) else type(implementation)
    module = implementation if inspect.ismodule(implementation) else sys.modules.get(kind.__module__)
    return getattr(module, "__package__", None) or ""


def _hold_hooks(name: str, implementation: object) -> ModuleType:
    """Return a module with the functions of a plug-in.

    pluggy would compare and hash a registered plug-in, and read all its attributes, at each call of any plug-in's hook.
    """
    holder = ModuleType(name)
    for attribute in dir(implementation):
        if attribute.startswith("__"):
            continue
        value = getattr(implementation, attribute, None)
        if inspect.isroutine(value) or (attribute.startswith(_PREFIX) and callable(value)):
            setattr(holder, attribute, value)
    return holder


class _Output:
    """Standard output of a plug-in: passes text to standard error, and keeps its start."""

    def __init__(self) -> None:
        self._stream = sys.stderr or io.StringIO()
        self.text = ""

    def write(self, text: str) -> int:
        """Write the text to standard error."""
        self.text = self.text or text
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _take_descriptor_output() -> str:
    """Pass the output of native code and child processes to standard error, and return its start."""
    file = DESCRIPTOR_OUTPUT.get()
    if file is None or not os.fstat(file.fileno()).st_size:
        return ""
    file.seek(0)
    text = file.read().decode(errors="backslashreplace")
    # descriptor 1 shares the position
    file.seek(0)
    file.truncate()
    if sys.stderr is not None:
        sys.stderr.write(text)
    return text


def origin_of(point: metadata.EntryPoint) -> str:
    """Return the distribution of an entry point and its version."""
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else "entry point"
