"""Registered capabilities as plain data, for `/supported`, `meshhub formats` and the tables of the documentation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypedDict, get_args

from msgspec import Struct, structs

from meshhub.model.capabilities import Check, Feature, Operation, Reader, Writer
from meshhub.model.options import HostOptions, OptionField, option_fields
from meshhub.model.plans import Caller, Objection
from meshhub.model.recipes import Recipe
from meshhub.model.translations import ENGLISH, CheckTexts, OptionTexts, RecipeTexts, Texts
from meshhub.pipeline.declarations import Declared
from meshhub.pipeline.network_printers import find_storages
from meshhub.registry import Registry
from meshhub.toolkit.printers import ALIASES, PRINTERS

if TYPE_CHECKING:
    from meshhub.pipeline.rates import RateCard


class FeatureSupport(TypedDict):
    """Feature of a format."""

    read: bool
    """Whether a reader keeps the feature."""

    write: bool
    """Whether a writer always keeps the feature."""

    options: list[str]
    """Options of the writer that keep the feature."""


class FormatSupport(TypedDict):
    """Format."""

    label: str
    """Name for people."""

    extensions: list[str]
    """Extensions with the dot; writers use the first."""

    media_types: list[str]
    """Media types; responses use the first."""

    specification: str | None
    """Link or title."""

    action: str | None
    """Title under which the page offers the format beside the operations, or None."""

    read: bool
    """Whether the format can be read on this machine."""

    write: bool
    """Whether the format can be written on this machine."""

    requires: str | None
    """Entitlement that writing requires, or None."""

    allowed: bool
    """Whether the caller may write the format."""

    objection: str | None
    """Reason for which a rule of a plug-in rejects the format as a target, or None."""

    carries: list[str]
    """Features that a reader or a writer keeps."""

    features: dict[str, FeatureSupport]
    """Every feature, by name. A conversion adds notes for the features of the file that the target does not keep."""

    remedy: str | None
    """Command that installs missing packages, or None."""

    options: dict[str, Any]
    """JSON Schema of the options of readers and writers; `oneOf` has the titles of choices, `x-everyday` marks few."""

    plugins: list[str]
    """Names of the plug-ins."""


class OperationSupport(TypedDict):
    """Operation."""

    id: str
    """Stable id."""

    label: str
    """Name for people."""

    stage: str
    """Position in a chain."""

    requires: str | None
    """Entitlement that the operation requires, or None."""

    allowed: bool
    """Whether the caller may use the operation."""

    objection: str | None
    """Reason for which a rule of a plug-in rejects the operation, or None."""

    available: bool
    """Whether the operation can run on this machine."""

    remedy: str | None
    """Command that installs missing packages, or None."""

    drops: list[str]
    """Features that the operation does not keep."""

    transfers: list[str]
    """Dropped features whose content lives on in other features."""

    options: dict[str, Any]
    """JSON Schema of the options."""

    plugin: str
    """Name of the plug-in."""


class CheckSupport(TypedDict):
    """Check."""

    id: str
    """Stable id."""

    label: str
    """Name for people."""

    description: str
    """What it looks for."""

    requires: str | None
    """Entitlement that the check requires, or None."""

    allowed: bool
    """Whether the caller may use the check."""

    available: bool
    """Whether the check can run on this machine."""

    remedy: str | None
    """Command that installs missing packages, or None."""

    options: dict[str, Any]
    """JSON Schema of the options; checks may share some."""

    plugin: str
    """Name of the plug-in."""


class RecipeSupport(TypedDict):
    """Named list of options."""

    label: str
    """Name for people."""

    description: str
    """What the options are for."""

    options: dict[str, Any]
    """Values by option name."""


class PluginSupport(TypedDict):
    """Loaded plug-in, its origin, and the version of the plug-in API that it declares ("" without one)."""

    name: str
    origin: str
    api_version: str


class FaultSupport(TypedDict):
    """Fault of a plug-in, and the origin of the plug-in."""

    plugin: str
    message: str
    origin: str


class RatesSupport(TypedDict):
    """What a caller may know about the rate card of the service."""

    currency: str
    """Currency of prices."""

    materials: list[str]
    """Names for the option `material`; the first is the default."""


class PrinterSupport(TypedDict):
    """Printer."""

    id: str
    """Id, for the options that take a printer."""

    name: str
    """Name for people."""

    aliases: list[str]
    """Other names for these options, in lower case with dashes; letter case, spaces and underscores do not matter."""

    volume_mm: list[float]
    """Width, depth and height in which it prints."""

    filaments: int | None
    """Filaments of one print, with one changer of its maker; None if not known."""


class Supported(TypedDict):
    """Capabilities of a registry for one caller."""

    language: str
    """Language of labels, titles and descriptions; untranslated ones are English."""

    plan: str
    """Id of the caller's plan."""

    input_formats: list[str]
    """Ids of the formats that can be read."""

    output_formats: list[str]
    """Ids of the formats that can be written and that the caller may write."""

    formats: dict[str, FormatSupport]
    """Every format by id."""

    operations: list[OperationSupport]
    """Every operation, in the order of a chain."""

    checks: list[CheckSupport]
    """Every check."""

    options: dict[str, Any]
    """JSON Schema of the options for every reader."""

    recipes: dict[str, RecipeSupport]
    """Every recipe by id."""

    rates: RatesSupport | None
    """Rate card by which quotes have prices; None without one."""

    printers: list[PrinterSupport]
    """Known printers."""

    sends: list[str]
    """Extensions of the files that the caller may send to printers on the network, which `/printers` lists."""

    plugins: list[PluginSupport]
    """Loaded plug-ins."""

    faults: list[FaultSupport]
    """Faults of plug-ins."""


def supported(registry: Registry, caller: Caller, language: str = ENGLISH, rates: RateCard | None = None) -> Supported:
    """Return the capabilities of a registry for a caller.

    Args:
        registry: Its declarations.
        caller: Its entitlements affect only `plan`, `output_formats` and each `allowed`.
        language: Language of labels, titles and descriptions, as for `Registry.texts`.
        rates: Rate card of the service.
    """
    caller = registry.entitled(caller)
    texts = registry.texts(language)
    declarations = registry.declarations
    formats = {
        format_id: _describe_format(
            [reader for reader in declarations.readers if reader.capability.format.id == format_id],
            [writer for writer in declarations.writers if writer.capability.format.id == format_id],
            registry,
            caller,
            texts,
        )
        for format_id in declarations.formats
    }
    return {
        "language": texts.language,
        "plan": caller.plan.id,
        "input_formats": [name for name, support in formats.items() if support["read"]],
        "output_formats": [name for name, support in formats.items() if support["write"] and support["allowed"]],
        "formats": formats,
        "operations": [
            _describe_operation(operation, registry, caller, texts) for operation in declarations.operations
        ],
        "checks": [_describe_check(check, caller, texts) for check in declarations.checks],
        "options": _describe_options((HostOptions,), texts),
        "recipes": {recipe.id: _describe_recipe(recipe, texts) for recipe in declarations.recipes.values()},
        "rates": None if rates is None else {"currency": rates.currency, "materials": list(rates.materials)},
        "printers": [
            {
                "id": key,
                "name": known.name,
                "aliases": [alias for alias, printer_id in sorted(ALIASES.items()) if printer_id == key],
                "volume_mm": list(known.volume_mm),
                "filaments": known.filaments,
            }
            for key, known in PRINTERS.items()
        ],
        "sends": sorted(
            {
                extension
                for storage in find_storages(declarations.storages, caller).values()
                for extension in storage.prints
            }
        ),
        "plugins": [
            {"name": plugin.name, "origin": plugin.origin, "api_version": plugin.api_version}
            for plugin in registry.plugins
        ],
        "faults": [
            {"plugin": fault.plugin, "message": fault.message, "origin": fault.origin} for fault in registry.faults
        ],
    }


def _describe_options(structs: Iterable[type[Struct]], texts: Texts) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the options of several structs, as one flat object."""
    return {
        "type": "object",
        "properties": {
            field.name: _describe_field(field, texts.options.get(field.name, OptionTexts()))
            for struct in structs
            for field in option_fields(struct)
        },
        "additionalProperties": False,
    }


def _describe_field(field: OptionField, texts: OptionTexts) -> dict[str, Any]:
    """Return the JSON Schema of an option; `oneOf` has the titles of its choices."""
    translated = structs.replace(
        field, title=texts.title or field.title, description=texts.description or field.description
    ).schema()
    if field.choices:
        translated["oneOf"] = [
            {"const": choice, "title": texts.choices.get(choice) or field.titles.get(choice, choice)}
            for choice in field.choices
        ]
    if field.everyday:
        translated["x-everyday"] = True
    return translated


def _describe_recipe(recipe: Recipe, texts: Texts) -> RecipeSupport:
    translated = texts.recipes.get(recipe.id, RecipeTexts())
    return {
        "label": translated.label or recipe.label,
        "description": translated.description or recipe.description,
        "options": dict(recipe.options),
    }


def _describe_operation(
    operation: Declared[Operation], registry: Registry, caller: Caller, texts: Texts
) -> OperationSupport:
    capability = operation.capability
    objection = _describe_objections(registry.objections_to(caller, capability))
    return {
        "id": capability.id,
        "label": texts.operations.get(capability.id, capability.label),
        "stage": capability.stage.name.lower(),
        "requires": capability.requires,
        "allowed": caller.plan.allows(capability.requires) and objection is None,
        "objection": objection,
        "available": not operation.missing,
        "remedy": operation.remedy if operation.missing else None,
        "drops": sorted(capability.drops),
        "transfers": sorted(capability.transfers),
        "options": _describe_options((capability.options,), texts),
        "plugin": operation.plugin,
    }


def _describe_check(check: Declared[Check], caller: Caller, texts: Texts) -> CheckSupport:
    capability = check.capability
    translated = texts.checks.get(capability.id, CheckTexts())
    return {
        "id": capability.id,
        "label": translated.label or capability.label,
        "description": translated.description or capability.description,
        "requires": capability.requires,
        "allowed": caller.plan.allows(capability.requires),
        "available": not check.missing,
        "remedy": check.remedy if check.missing else None,
        "options": _describe_options((capability.options,), texts),
        "plugin": check.plugin,
    }


def _describe_objections(objections: list[Objection]) -> str | None:
    return "; ".join(objection.message for objection in objections) or None


def _describe_feature(
    feature: Feature, readers: list[Declared[Reader]], writers: list[Declared[Writer]]
) -> FeatureSupport:
    """Return which sides of a format keep a feature."""
    return {
        "read": any(feature in reader.capability.carries for reader in readers),
        "write": any(feature in writer.capability.carries for writer in writers),
        "options": [
            name
            for writer in writers
            for name, features in writer.capability.carries_with.items()
            if feature in features
        ],
    }


def _describe_format(
    readers: list[Declared[Reader]], writers: list[Declared[Writer]], registry: Registry, caller: Caller, texts: Texts
) -> FormatSupport:
    """Combine the readers and writers of one format."""
    objection = _describe_objections(registry.objections_to(caller, writers[0].capability)) if writers else None
    is_granted = not writers or any(caller.plan.allows(writer.capability.requires) for writer in writers)
    all_declared: list[Declared[Any]] = [*readers, *writers]
    format_ = all_declared[0].capability.format
    action = next((writer.capability.action for writer in writers if writer.capability.action), None)
    return {
        "label": texts.formats.get(format_.id, format_.label),
        "extensions": list(format_.extensions),
        "media_types": list(format_.media_types),
        "specification": format_.specification,
        "action": action and texts.actions.get(format_.id, action),
        "read": any(not reader.missing for reader in readers),
        "write": any(not writer.missing for writer in writers),
        "requires": next((writer.capability.requires for writer in writers if writer.capability.requires), None),
        "allowed": is_granted and objection is None,
        "objection": objection,
        "carries": sorted(set().union(*(declared.capability.carries for declared in all_declared))),
        "features": {feature: _describe_feature(feature, readers, writers) for feature in get_args(Feature)},
        "remedy": "; ".join(sorted({declared.remedy for declared in all_declared if declared.missing})) or None,
        "options": _describe_options((declared.capability.options for declared in all_declared), texts),
        "plugins": sorted({declared.plugin for declared in all_declared}),
    }
