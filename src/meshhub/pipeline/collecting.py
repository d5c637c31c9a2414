"""Collecting what plug-ins declare, and turning whatever does not fit together into faults."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from msgspec import Struct

from meshhub.model.capabilities import Format, Operation, Reader, Writer, checked_score
from meshhub.model.options import RESERVED, HostOptions, option_fields
from meshhub.model.plans import Plan
from meshhub.pipeline.declarations import Declarations, Declared, declared
from meshhub.pipeline.loading import Fault, Plugin, Plugins


class Collected(Struct, frozen=True):
    """What a registry holds."""

    declarations: Declarations
    plans: dict[str, Plan]
    faults: list[Fault]


class _Refused(Exception):
    """Why one declaration is left out."""


def collect(plugins: Plugins) -> Collected:
    """Ask every plug-in once, keep what fits, and sort it; the order of registration decides nothing but clashes."""
    return _Collector(plugins).collected()


class _Collector:
    def __init__(self, plugins: Plugins) -> None:
        self.plugins = plugins
        self.faults: list[Fault] = []
        self.formats: dict[str, Format] = {}
        self.fields: dict[str, type[Struct]] = {field.name: HostOptions for field in option_fields(HostOptions)}

    def collected(self) -> Collected:
        readers: list[Declared[Reader]] = []
        writers: list[Declared[Writer]] = []
        operations: dict[str, Declared[Operation]] = {}
        plans: dict[str, Plan] = {}
        for plugin, reader in self._told("meshhub_readers", Reader):
            if self._fits(plugin, f"reader of {reader.format.id!r}", reader):
                readers.append(declared(plugin.name, plugin.origin, reader))
        for plugin, writer in self._told("meshhub_writers", Writer):
            if self._fits(plugin, f"writer of {writer.format.id!r}", writer):
                writers.append(declared(plugin.name, plugin.origin, writer))
        for plugin, operation in self._told("meshhub_operations", Operation):
            if operation.id in operations:
                holder = operations[operation.id].plugin
                self._fault(plugin, f"operation {operation.id!r} is declared by {holder!r} already")
            elif self._fits(plugin, f"operation {operation.id!r}", operation):
                operations[operation.id] = declared(plugin.name, plugin.origin, operation)
        for plugin, plan in self._told("meshhub_plans", Plan):
            if plan.id in plans:
                self._fault(plugin, f"plan {plan.id!r} is declared already; this one is left out")
            else:
                plans[plan.id] = plan
        return Collected(
            Declarations(
                formats=dict(sorted(self.formats.items())),
                readers=tuple(sorted(readers, key=_best_first)),
                writers=tuple(sorted(writers, key=_best_first)),
                operations=tuple(
                    sorted(operations.values(), key=lambda one: (one.capability.stage, one.capability.id))
                ),
            ),
            plans,
            self.faults,
        )

    def _told(self, hook: str, kind: type[Any]) -> Iterator[tuple[Plugin, Any]]:
        """What each plug-in declares through a hook, one by one."""
        for plugin in self.plugins.having(hook):
            try:
                items = self.plugins.run(plugin.name, hook, {})
            except Exception as raised:
                self._fault(plugin, f"{hook} failed: {type(raised).__name__}: {raised}")
                continue
            for item in items:
                if isinstance(item, kind):
                    yield plugin, item
                else:
                    self._fault(plugin, f"{hook} must return {kind.__name__} declarations, got {type(item).__name__}")

    def _fits(self, plugin: Plugin, what: str, capability: Reader | Writer | Operation) -> bool:
        """Whether a declaration can be kept; a fault says why not."""
        try:
            _check_named(capability.run)
            if isinstance(capability, Operation):
                if not option_fields(capability.options):
                    raise _Refused("an operation needs an option field that asks for it")
                self._options(capability.options, plugin.name, capability.id)
            else:
                checked_score(capability.score)
                self._file_format(capability)
                self._options(capability.options, plugin.name, capability.format.id)
                self.formats[capability.format.id] = capability.format
        except (_Refused, TypeError, ValueError) as error:
            self._fault(plugin, f"{what}: {error}")
            return False
        return True

    def _file_format(self, capability: Reader | Writer) -> None:
        format_ = capability.format
        known = self.formats.get(format_.id)
        if known is not None and known != format_:
            raise _Refused("the format of this id is declared with other extensions, media types or magic already")
        if not format_.extensions or any(not one.startswith(".") or one != one.lower() for one in format_.extensions):
            raise _Refused("extensions are written in lower case with their dot, at least one")
        if not format_.media_types:
            raise _Refused("at least one media type is needed")
        if isinstance(capability, Reader) and capability.sniff is not None:
            _check_named(capability.sniff)

    def _options(self, options: type[Struct], plugin: str, owner: str) -> None:
        """Take the fields of an options Struct into the one flat list of names; a Struct may serve several."""
        prefixes = {owner.replace("-", "_"), plugin.replace("-", "_")}
        fields = option_fields(options)
        for field in fields:
            holder = self.fields.get(field.name)
            if holder is options:
                continue
            if field.name in RESERVED:
                raise _Refused(f"option {field.name!r} is reserved for the host")
            if holder is not None:
                raise _Refused(f"option {field.name!r} is declared by {holder.__module__} already")
            if not any(field.name == prefix or field.name.startswith(prefix + "_") for prefix in prefixes):
                raise _Refused(f"option {field.name!r} must start with {' or '.join(sorted(map(repr, prefixes)))}")
        self.fields |= {field.name: options for field in fields}

    def _fault(self, plugin: Plugin, message: str) -> None:
        self.faults.append(Fault(plugin.name, message, plugin.origin))


def _check_named(named: str) -> None:
    """That "package.module:function" names a module that exists; the function is looked up when it is needed."""
    module, colon, function = named.partition(":")
    if not colon or not function.isidentifier():
        raise _Refused(f"{named!r} must be written package.module:function")
    try:
        found = find_spec(module) is not None
    except (ImportError, ValueError):
        found = False
    if not found:
        raise _Refused(f"the module of {named!r} does not exist")


def _best_first(one: Declared[Any]) -> tuple[int, str]:
    return -one.capability.score, one.plugin
