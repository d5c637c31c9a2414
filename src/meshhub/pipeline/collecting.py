"""Collect the declarations of plug-ins; conflicting or malformed ones become faults."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, get_args

import msgspec
from msgspec import Struct, structs

from meshhub.errors import InvalidOption
from meshhub.model.capabilities import Check, Format, Operation, Reader, Storage, Up, Writer
from meshhub.model.chain import BUILT_IN
from meshhub.model.options import (
    HostOptions,
    OptionField,
    Value,
    check_rules,
    option_fields,
    parse_options,
    schema,
)
from meshhub.model.plans import Plan, Rule
from meshhub.model.recipes import Recipe
from meshhub.pipeline.catalogs import Catalogs
from meshhub.pipeline.declaration_check import check_declaration, subject_of
from meshhub.pipeline.declarations import Declarations, Declared, declare, find_module
from meshhub.pipeline.loading import Plugin, Plugins
from meshhub.pipeline.plugin_errors import InvalidDeclaration, show_value
from meshhub.pipeline.purposes import RESERVED

T = TypeVar("T", bound=Struct)

_OPTION_NAME = re.compile(r"[a-z][a-z0-9_]*")
"""Name that a form, a flag and a keyword can have."""

_HOST = Plugin("host", BUILT_IN)
"""Owner of the catalogs of the host's own options."""


class Collected(Struct, frozen=True):
    """The declarations, plans, rules and catalogs of all plug-ins."""

    declarations: Declarations
    plans: dict[str, Plan]
    rules: tuple[Rule, ...]
    catalogs: Catalogs


def collect(plugins: Plugins) -> Collected:
    """Call the declaring hooks of every plug-in once, and sort the valid declarations; add faults for the others.

    The order of registration matters only if two declarations have the same id: the first one stays.
    """
    return _Collector(plugins).collect()


class _Collector:
    def __init__(self, plugins: Plugins) -> None:
        self._plugins = plugins
        self._formats: dict[str, Format] = {}
        self._fields: dict[str, type[Struct]] = {field.name: HostOptions for field in option_fields(HostOptions)}
        self._readers: list[Declared[Reader]] = []
        self._writers: list[Declared[Writer]] = []
        self._operations: dict[str, Declared[Operation]] = {}
        self._checks: dict[str, Declared[Check]] = {}
        self._storages: dict[str, Declared[Storage]] = {}
        self._recipes: dict[str, Recipe] = {}
        self._plans: dict[str, Plan] = {}
        self._rules: list[Rule] = []

    def collect(self) -> Collected:
        self._call("meshhub_readers", Reader, self._add_reader)
        self._call("meshhub_writers", Writer, self._add_writer)
        self._call("meshhub_operations", Operation, self._add_operation)
        self._call("meshhub_checks", Check, self._add_check)
        self._call("meshhub_storages", Storage, self._add_storage)
        self._check_rules((*self._readers, *self._writers, *self._operations.values(), *self._checks.values()))
        self._call("meshhub_plans", Plan, self._add_plan)
        operations = self._operations.values()
        declarations = Declarations(
            formats=dict(sorted(self._formats.items())),
            readers=tuple(sorted(self._readers, key=_best_first)),
            writers=tuple(sorted(self._writers, key=_best_first)),
            operations=tuple(sorted(operations, key=lambda item: (item.capability.stage, item.capability.id))),
            checks=tuple(declared for _, declared in sorted(self._checks.items())),
            storages=self._storages,
        )
        fields = declarations.fields() | declarations.check_fields()
        self._call("meshhub_recipes", Recipe, lambda _, recipe: self._add_recipe(recipe, fields))
        declarations = structs.replace(declarations, recipes=dict(sorted(self._recipes.items())))
        self._call("meshhub_rules", Rule, lambda _, rule: self._rules.append(rule))
        packages = {"meshhub": _HOST, **self._plugins.packages}
        packages.pop("", None)
        catalogs = Catalogs(self._plugins, packages, declarations, self._plans)
        return Collected(declarations, self._plans, tuple(self._rules), catalogs)

    def _call(self, hook: str, kind: type[T], add: Callable[[Plugin, T], None]) -> None:
        """Call a hook of every plug-in, and add each of its declarations that is valid."""
        for plugin in self._plugins.having(hook):
            items: list[Any] = []
            with self._plugins.guarding(plugin, f"{hook} failed"):
                items = self._plugins.call(plugin.name, hook, {})
            for item in items:
                # a declaration may be of a class of the plug-in, whose properties are its code
                with self._plugins.guarding(plugin, hook):
                    subject = subject_of(kind, item) or hook
                    with self._plugins.guarding(plugin, subject):
                        add(plugin, item if _is_tested(plugin) else check_declaration(kind, item))

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
                        self._plugins.add_fault(self._plugins.named(declared.plugin), message)

    def _add_reader(self, plugin: Plugin, reader: Reader) -> None:
        self._check_format(reader.format)
        for reference in filter(None, (reader.run, reader.sniff, reader.features)):
            _check_module(plugin, reference)
        _check_option_values(reader)
        declared = declare(plugin.name, plugin.origin, reader)
        self._add_options(reader.options, plugin, reader.format.id)
        self._formats[reader.format.id] = reader.format
        self._readers.append(declared)

    def _add_writer(self, plugin: Plugin, writer: Writer) -> None:
        self._check_format(writer.format)
        _check_module(plugin, writer.run)
        declared = declare(plugin.name, plugin.origin, writer)
        self._add_options(writer.options, plugin, writer.format.id)
        _check_up_option(writer)
        _check_max_colors(writer)
        self._formats[writer.format.id] = writer.format
        self._writers.append(declared)

    def _add_operation(self, plugin: Plugin, operation: Operation) -> None:
        if operation.id in self._operations:
            raise InvalidDeclaration(f"it is already declared by {self._operations[operation.id].plugin!r}")
        _check_module(plugin, operation.run)
        declared = declare(plugin.name, plugin.origin, operation)
        self._add_options(operation.options, plugin, operation.id)
        names = {field.name for field in option_fields(operation.options)}
        if not names:
            raise InvalidDeclaration("an operation needs an option field that requests it")
        for problem, name in operation.solves.items():
            if name not in names:
                raise InvalidDeclaration(f"solves[{problem!r}] must be one of its options, got {show_value(name)}")
        self._operations[operation.id] = declared

    def _add_check(self, plugin: Plugin, check: Check) -> None:
        if check.id in self._checks:
            raise InvalidDeclaration(f"it is already declared by {self._checks[check.id].plugin!r}")
        _check_module(plugin, check.run)
        declared = declare(plugin.name, plugin.origin, check)
        self._add_options(check.options, plugin, check.id)
        self._checks[check.id] = declared

    def _add_storage(self, plugin: Plugin, storage: Storage) -> None:
        if storage.scheme in self._storages:
            raise InvalidDeclaration(f"it is already declared by {self._storages[storage.scheme].plugin!r}")
        for reference in filter(None, (storage.run, storage.printers)):
            _check_module(plugin, reference)
        self._storages[storage.scheme] = declare(plugin.name, plugin.origin, storage)

    def _add_recipe(self, recipe: Recipe, fields: Mapping[str, OptionField]) -> None:
        if recipe.id in self._recipes:
            raise InvalidDeclaration("it is already declared; this one is left out")
        if "recipe" in recipe.options:
            raise InvalidDeclaration("a recipe cannot name another recipe")
        check_rules(fields, parse_options(fields, recipe.options))
        self._recipes[recipe.id] = recipe

    def _add_plan(self, _: Plugin, plan: Plan) -> None:
        if plan.id in self._plans:
            raise InvalidDeclaration("it is already declared; this one is left out")
        self._plans[plan.id] = plan

    def _check_format(self, format_: Format) -> None:
        other = self._formats.get(format_.id, format_)
        for field in format_.__struct_fields__:
            if getattr(other, field) != getattr(format_, field):
                raise InvalidDeclaration(
                    f"format.{field} must be {show_value(getattr(other, field))}, as another declaration of this "
                    f"format id has, got {show_value(getattr(format_, field))}"
                )

    def _add_options(self, options: type[Struct], plugin: Plugin, owner: str) -> None:
        """Add the fields of an options Struct to the flat list of names; owners may share a Struct."""
        prefixes = {owner.replace("-", "_"), plugin.name.replace("-", "_")}
        fields = option_fields(options) if _is_tested(plugin) else _check_options(options)
        for field in fields:
            other = self._fields.get(field.name)
            if other is options:
                continue
            if field.name in RESERVED:
                raise InvalidDeclaration(f"option {field.name!r} is reserved for the host")
            if other is not None:
                raise InvalidDeclaration(f"option {field.name!r} is already declared by {other.__module__}")
            if not any(field.name == prefix or field.name.startswith(prefix + "_") for prefix in prefixes):
                choices = " or ".join(sorted(map(repr, prefixes)))
                raise InvalidDeclaration(f"option {field.name!r} must start with {choices}")
        self._fields |= {field.name: options for field in fields}


def _is_tested(plugin: Plugin) -> bool:
    """Return whether a test checks the declarations of a plug-in, so that no command has to spend its time on them."""
    return plugin.origin == BUILT_IN


def _check_options(options: type[Struct]) -> tuple[OptionField, ...]:
    """Return the fields of an options Struct, if forms, flags, JSON and the plug-in itself can take them."""
    try:
        fields = option_fields(options)
    except TypeError as error:
        raise InvalidDeclaration(str(error)) from None
    for field in fields:
        if not _OPTION_NAME.fullmatch(field.name):
            raise InvalidDeclaration(f"option {field.name!r} must be a lower-case identifier")
        _check_accepted(field, "default", field.default)
        _check_accepted(field, "example", field.example)
    try:
        msgspec.json.encode(schema(options))
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidDeclaration(f"options {options.__name__} cannot be shown as JSON: {error}") from None
    options()
    return fields


def _check_accepted(field: OptionField, name: str, value: Value) -> None:
    """Check that an option accepts its own default or example. Empty text is a default that requests cannot send."""
    try:
        accepted = not value or field.parse(value) == value
    except InvalidOption:
        accepted = False
    if not accepted:
        bounds = field.bounds() or ", ".join(field.choices) or f"a {field.kind}"
        raise InvalidDeclaration(f"option {field.name!r} rejects its own {name} {show_value(value)}; must be {bounds}")


def _check_module(plugin: Plugin, reference: str) -> None:
    """Check that the module of "package.module:function" exists; the function is imported only when it is needed."""
    if not _is_tested(plugin) and not find_module(reference.partition(":")[0]):
        raise InvalidDeclaration(f"the module of {reference!r} does not exist")


def _check_option_values(reader: Reader) -> None:
    """Check that a reader declares values only for its own options."""
    fields = {field.name: field for field in option_fields(reader.options)}
    for occasion, values in reader.options_for.items():
        try:
            parse_options(fields, values)
        except InvalidOption as error:
            raise InvalidDeclaration(f"options_for[{occasion!r}]: {error}") from None


def _check_up_option(writer: Writer) -> None:
    """Check that the option for the up axis is a choice of axes."""
    choices = {field.name: field.choices for field in option_fields(writer.options)}
    if writer.up_option is not None and {*choices.get(writer.up_option, ())} != {*get_args(Up)}:
        raise InvalidDeclaration(
            f"up_option must be one of its options, with the choices y and z, got {show_value(writer.up_option)}"
        )


def _check_max_colors(writer: Writer) -> None:
    """Check that the numbers of colors depend on choices of options."""
    choices = {field.name: field.choices for field in option_fields(writer.options)}
    for option, limits in writer.max_colors.items():
        if not {*limits} <= {*choices.get(option, ())}:
            raise InvalidDeclaration(
                f"max_colors must name options with their choices, got {show_value({option: limits})}"
            )


def _best_first(declared: Declared[Any]) -> tuple[int, str]:
    return -declared.capability.score, declared.plugin
