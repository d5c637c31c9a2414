"""Collect the declarations of plug-ins; conflicting or malformed ones become faults."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from msgspec import Struct, structs

from meshhub.errors import InvalidOption
from meshhub.model.capabilities import Format, Operation, Reader, Storage, Writer, checked_score
from meshhub.model.options import RESERVED, HostOptions, OptionField, check_rules, option_fields, parse_options
from meshhub.model.plans import Plan, Rule
from meshhub.model.recipes import Recipe
from meshhub.pipeline.declarations import Declarations, Declared, declare, is_importable
from meshhub.pipeline.loading import Fault, Plugin, Plugins
from meshhub.pipeline.storing import SCHEME

log = logging.getLogger(__name__)

T = TypeVar("T")


class Collected(Struct, frozen=True):
    """The declarations, plans and rules of all plug-ins, and the faults found."""

    declarations: Declarations
    plans: dict[str, Plan]
    rules: tuple[Rule, ...]
    faults: list[Fault]


class _InvalidDeclaration(Exception):
    """Reason why a declaration is left out."""


def collect(plugins: Plugins) -> Collected:
    """Call the declaring hooks of every plug-in once, and sort the valid declarations.

    The order of registration matters only where two declarations have the same id: the first one stays.
    """
    return _Collector(plugins).collect()


class _Collector:
    def __init__(self, plugins: Plugins) -> None:
        self._plugins = plugins
        self._faults: list[Fault] = []
        self._formats: dict[str, Format] = {}
        self._fields: dict[str, type[Struct]] = {field.name: HostOptions for field in option_fields(HostOptions)}

    def collect(self) -> Collected:
        readers = [
            declare(plugin.name, plugin.origin, reader)
            for plugin, reader in self._declared_items("meshhub_readers", Reader)
            if self._is_valid(plugin, f"reader of {reader.format.id!r}", reader)
        ]
        writers = [
            declare(plugin.name, plugin.origin, writer)
            for plugin, writer in self._declared_items("meshhub_writers", Writer)
            if self._is_valid(plugin, f"writer of {writer.format.id!r}", writer)
        ]
        operations = self._collect_operations()
        storages = self._collect_storages()
        self._check_rules((*readers, *writers, *operations))
        plans = self._collect_plans()
        declarations = Declarations(
            formats=dict(sorted(self._formats.items())),
            readers=tuple(sorted(readers, key=_best_first)),
            writers=tuple(sorted(writers, key=_best_first)),
            operations=tuple(sorted(operations, key=lambda item: (item.capability.stage, item.capability.id))),
            storages=storages,
        )
        declarations = structs.replace(declarations, recipes=self._collect_recipes(declarations.fields()))
        rules = tuple(rule for _, rule in self._declared_items("meshhub_rules", Rule))
        return Collected(declarations, plans, rules, self._faults)

    def _check_rules(self, all_declared: Iterable[Declared[Any]]) -> None:
        """Add a fault for each rule that names an option which no plug-in declares."""
        seen: set[type[Struct]] = set()
        for declared in all_declared:
            struct = declared.capability.options
            if struct in seen:
                continue
            seen.add(struct)
            for field in option_fields(struct):
                for name in (*field.requires, *field.conflicts_with):
                    if name not in self._fields:
                        message = f"option {field.name!r} has a rule about {name!r}, which no plug-in declares"
                        self._faults.append(Fault(declared.plugin, message, declared.origin))

    def _collect_operations(self) -> list[Declared[Operation]]:
        operations: dict[str, Declared[Operation]] = {}
        for plugin, operation in self._declared_items("meshhub_operations", Operation):
            if operation.id in operations:
                owner = operations[operation.id].plugin
                self._add_fault(plugin, f"operation {operation.id!r} is already declared by {owner!r}")
            elif self._is_valid(plugin, f"operation {operation.id!r}", operation):
                operations[operation.id] = declare(plugin.name, plugin.origin, operation)
        return list(operations.values())

    def _collect_storages(self) -> dict[str, Declared[Storage]]:
        storages: dict[str, Declared[Storage]] = {}
        for plugin, storage in self._declared_items("meshhub_storages", Storage):
            subject = f"storage of {storage.scheme!r}"
            if storage.scheme in storages:
                self._add_fault(plugin, f"{subject} is already declared by {storages[storage.scheme].plugin!r}")
                continue
            try:
                if not SCHEME.fullmatch(storage.scheme):
                    raise _InvalidDeclaration("a scheme has two or more characters of a-z, 0-9, +, . and -")
                _check_reference(storage.run)
            except _InvalidDeclaration as error:
                self._add_fault(plugin, f"{subject}: {error}")
            else:
                storages[storage.scheme] = declare(plugin.name, plugin.origin, storage)
        return storages

    def _collect_recipes(self, fields: Mapping[str, OptionField]) -> dict[str, Recipe]:
        recipes: dict[str, Recipe] = {}
        for plugin, recipe in self._declared_items("meshhub_recipes", Recipe):
            try:
                if recipe.id in recipes:
                    raise _InvalidDeclaration("it is already declared; this one is left out")
                if "recipe" in recipe.options:
                    raise _InvalidDeclaration("a recipe cannot name another recipe")
                check_rules(fields, parse_options(fields, recipe.options))
            except (_InvalidDeclaration, InvalidOption) as error:
                self._add_fault(plugin, f"recipe {recipe.id!r}: {error}")
            else:
                recipes[recipe.id] = recipe
        return dict(sorted(recipes.items()))

    def _collect_plans(self) -> dict[str, Plan]:
        plans: dict[str, Plan] = {}
        for plugin, plan in self._declared_items("meshhub_plans", Plan):
            if plan.id in plans:
                self._add_fault(plugin, f"plan {plan.id!r} is already declared; this one is left out")
            else:
                plans[plan.id] = plan
        return plans

    def _declared_items(self, hook: str, kind: type[T]) -> Iterator[tuple[Plugin, T]]:
        """Yield each declaration of a hook with its plug-in."""
        for plugin in self._plugins.having(hook):
            try:
                items = self._plugins.call(plugin.name, hook, {})
            except (Exception, SystemExit) as error:
                log.debug("%s of plug-in %r (%s) failed", hook, plugin.name, plugin.origin, exc_info=error)
                self._add_fault(plugin, f"{hook} failed: {type(error).__name__}: {error}")
                continue
            for item in items:
                if isinstance(item, kind):
                    yield plugin, item
                else:
                    expected, actual = kind.__name__, type(item).__name__
                    self._add_fault(plugin, f"{hook} must return {expected} declarations, got {actual}")

    def _is_valid(self, plugin: Plugin, subject: str, capability: Reader | Writer | Operation) -> bool:
        """Return whether a declaration can be kept; add a fault with the reason if not."""
        try:
            _check_reference(capability.run)
            if isinstance(capability, Operation):
                if not option_fields(capability.options):
                    raise _InvalidDeclaration("an operation needs an option field that requests it")
                self._add_options(capability.options, plugin.name, capability.id)
            else:
                checked_score(capability.score)
                self._check_format(capability)
                self._add_options(capability.options, plugin.name, capability.format.id)
                self._formats[capability.format.id] = capability.format
        except (_InvalidDeclaration, TypeError, ValueError) as error:
            self._add_fault(plugin, f"{subject}: {error}")
            return False
        return True

    def _check_format(self, capability: Reader | Writer) -> None:
        format_ = capability.format
        other = self._formats.get(format_.id)
        if other is not None and other != format_:
            raise _InvalidDeclaration(
                "another declaration of this format id has other extensions, media types or magic"
            )
        extensions = format_.extensions
        if not extensions or any(not name.startswith(".") or name != name.lower() for name in extensions):
            raise _InvalidDeclaration("a format needs at least one extension; write it in lower case with its dot")
        if not format_.media_types:
            raise _InvalidDeclaration("a format needs at least one media type")
        if isinstance(capability, Reader) and capability.sniff is not None:
            _check_reference(capability.sniff)
        if isinstance(capability, Reader) and capability.features is not None:
            _check_reference(capability.features)
        if isinstance(capability, Reader):
            _check_option_values(capability)

    def _add_options(self, options: type[Struct], plugin: str, owner: str) -> None:
        """Add the fields of an options Struct to the flat list of names; owners may share a Struct."""
        prefixes = {owner.replace("-", "_"), plugin.replace("-", "_")}
        fields = option_fields(options)
        for field in fields:
            other = self._fields.get(field.name)
            if other is options:
                continue
            if field.name in RESERVED:
                raise _InvalidDeclaration(f"option {field.name!r} is reserved for the host")
            if other is not None:
                raise _InvalidDeclaration(f"option {field.name!r} is already declared by {other.__module__}")
            if not any(field.name == prefix or field.name.startswith(prefix + "_") for prefix in prefixes):
                choices = " or ".join(sorted(map(repr, prefixes)))
                raise _InvalidDeclaration(f"option {field.name!r} must start with {choices}")
        self._fields |= {field.name: options for field in fields}

    def _add_fault(self, plugin: Plugin, message: str) -> None:
        self._faults.append(Fault(plugin.name, message, plugin.origin))


def _check_reference(reference: str) -> None:
    """Check that "package.module:function" names an existing module; the function is imported when it is needed."""
    module, colon, function = reference.partition(":")
    if not colon or not function.isidentifier():
        raise _InvalidDeclaration(f"{reference!r} must have the form package.module:function")
    if not is_importable(module):
        raise _InvalidDeclaration(f"the module of {reference!r} does not exist")


def _check_option_values(reader: Reader) -> None:
    """Check that a reader declares values of its own options."""
    fields = {field.name: field for field in option_fields(reader.options)}
    for name in ("color_by_surface", "display_options"):
        try:
            parse_options(fields, getattr(reader, name))
        except InvalidOption as error:
            raise _InvalidDeclaration(f"{name}: {error}") from None


def _best_first(declared: Declared[Any]) -> tuple[int, str]:
    return -declared.capability.score, declared.plugin
