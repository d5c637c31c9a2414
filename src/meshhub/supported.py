"""What is registered, as plain data: the one answer behind `/supported`, `meshhub formats` and the docs tables."""

from __future__ import annotations

from typing import Any, TypedDict

from meshhub.model.capabilities import Reader, Writer
from meshhub.model.options import HostOptions, schema
from meshhub.model.plans import Caller
from meshhub.pipeline.declarations import Declared
from meshhub.registry import Registry


class FormatSupport(TypedDict):
    """A format; `options` is a JSON Schema, `requires` an entitlement, `remedy` the command that enables the rest."""

    label: str
    extensions: list[str]
    media_types: list[str]
    specification: str | None
    read: bool
    write: bool
    requires: str | None
    allowed: bool
    carries: list[str]
    remedy: str | None
    options: dict[str, Any]
    plugins: list[str]


class OperationSupport(TypedDict):
    """An operation; `options` is a JSON Schema, `drops` lists the features that do not survive it."""

    id: str
    label: str
    stage: str
    requires: str | None
    allowed: bool
    available: bool
    remedy: str | None
    drops: list[str]
    options: dict[str, Any]
    plugin: str


class PluginSupport(TypedDict):
    """A loaded plug-in and its origin."""

    name: str
    origin: str


class FaultSupport(TypedDict):
    """A plug-in's fault."""

    plugin: str
    message: str
    origin: str
    hook: str


class Supported(TypedDict):
    """Formats, operations, options and faults; `options` is a JSON Schema of the options for every reader."""

    plan: str
    input_formats: list[str]
    output_formats: list[str]
    formats: dict[str, FormatSupport]
    operations: list[OperationSupport]
    options: dict[str, Any]
    plugins: list[PluginSupport]
    faults: list[FaultSupport]


def supported(registry: Registry, caller: Caller) -> Supported:
    """Formats, operations, options and faults, and what of them this caller may use.

    What the caller is entitled to changes `output_formats` and each `allowed`, nothing else.
    """
    caller = registry.entitled(caller)
    have = registry.declarations
    formats = {
        format_id: _format(
            [one for one in have.readers if one.capability.format.id == format_id],
            [one for one in have.writers if one.capability.format.id == format_id],
            caller,
        )
        for format_id in have.formats
    }
    return {
        "plan": caller.plan.id,
        "input_formats": [name for name, told in formats.items() if told["read"]],
        "output_formats": [name for name, told in formats.items() if told["write"] and told["allowed"]],
        "formats": formats,
        "operations": [
            {
                "id": one.capability.id,
                "label": one.capability.label,
                "stage": one.capability.stage.name.lower(),
                "requires": one.capability.requires,
                "allowed": caller.plan.allows(one.capability.requires),
                "available": not one.missing,
                "remedy": one.remedy if one.missing else None,
                "drops": sorted(one.capability.drops),
                "options": schema(one.capability.options),
                "plugin": one.plugin,
            }
            for one in have.operations
        ],
        "options": schema(HostOptions),
        "plugins": [{"name": plugin.name, "origin": plugin.origin} for plugin in registry.plugins],
        "faults": [
            {"plugin": fault.plugin, "message": fault.message, "origin": fault.origin, "hook": fault.hook}
            for fault in registry.faults
        ],
    }


def _format(readers: list[Declared[Reader]], writers: list[Declared[Writer]], caller: Caller) -> FormatSupport:
    sides: list[Declared[Any]] = [*readers, *writers]
    told = sides[0].capability.format
    properties: dict[str, Any] = {}
    for one in sides:
        properties |= schema(one.capability.options)["properties"]
    return {
        "label": told.label,
        "extensions": list(told.extensions),
        "media_types": list(told.media_types),
        "specification": told.specification,
        "read": any(not one.missing for one in readers),
        "write": any(not one.missing for one in writers),
        "requires": next((one.capability.requires for one in writers if one.capability.requires), None),
        "allowed": not writers or any(caller.plan.allows(one.capability.requires) for one in writers),
        "carries": sorted(set().union(*(one.capability.carries for one in sides))),
        "remedy": "; ".join(sorted({one.remedy for one in sides if one.missing})) or None,
        "options": {"type": "object", "properties": properties, "additionalProperties": False},
        "plugins": sorted({one.plugin for one in sides}),
    }
