"""Steps of a chain from declarations and options, and the writer of a target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast

from msgspec import Struct

from meshhub.errors import MAX_QUOTED_CHARS, UnsupportedTarget, describe_missing, quote
from meshhub.model import options as opt
from meshhub.model.capabilities import Check, Feature, Frame, Operation, Reader, Up, Writer
from meshhub.model.chain import Step, Write
from meshhub.model.options import Value
from meshhub.model.plans import Caller
from meshhub.pipeline.declarations import Declarations, Declared, reference_of
from meshhub.pipeline.entitlement import choose_allowed


def unsupported_target(target: str, declarations: Declarations) -> UnsupportedTarget:
    """Return the error for a target that cannot be written."""
    return UnsupportedTarget(
        f"target {quote(target)} is not a format that can be written; choose from {declarations.list_writable()}",
        values={"format": str(target)[:MAX_QUOTED_CHARS]},
    )


def find_writer(declarations: Declarations, target: str, caller: Caller) -> Declared[Writer]:
    """Return the best writer of a format that the caller may use.

    Raises UnsupportedTarget, PremiumRequired, MissingDependency.
    """
    candidates = declarations.writers_of(declarations.format_of(target))
    if not candidates:
        raise unsupported_target(target, declarations)
    return choose_allowed(candidates, caller)


def make_write(target: str, writer: Declared[Writer], options: Mapping[str, Value]) -> tuple[Step, Write]:
    """Return the step that writes the file of a conversion, and how."""
    carried = _find_carried_features(writer.capability, options)
    return make_step("write", writer, f"target {target}", options), Write(
        carried=tuple(sorted(carried)),
        texture_colors=_choose_texture_colors(carried, options),
        merges_parts=writer.capability.merges_parts,
        max_colors=_find_max_colors(writer.capability, options),
        each_bed=options.get("each_bed") is True,
    )


def make_step(
    kind: Literal["read", "operation", "check", "write"],
    declared: Declared[Reader] | Declared[Operation] | Declared[Check] | Declared[Writer],
    because: str,
    options: Mapping[str, Value],
) -> Step:
    """Return the step that runs a capability with those of the options that are its own."""
    capability = declared.capability
    struct = capability.options
    owner = capability if isinstance(capability, Operation | Check) else capability.format
    return Step(
        kind=kind,
        id=owner.id,
        label=owner.label,
        because=because,
        plugin=declared.plugin,
        run=capability.run,
        options_type=reference_of(struct),
        options=choose_options(struct, options),
        frame=_choose_frame(capability, options),
        drops=tuple(sorted(capability.drops - capability.transfers)) if isinstance(capability, Operation) else (),
        requires=capability.requires,
        keeps_state=capability.keeps_state,
        concurrent=isinstance(capability, Check) and capability.concurrent,
        needs=capability.needs,
        missing=describe_missing("it", declared.missing, declared.remedy) if declared.missing else "",
        origin=declared.origin,
    )


def _choose_frame(capability: Reader | Operation | Check | Writer, options: Mapping[str, Value]) -> Frame | None:
    """Return the frame of a reader, or that of a writer with the up axis of its option; None for others."""
    if isinstance(capability, Operation | Check):
        return None
    if isinstance(capability, Reader) or capability.up_option is None:
        return capability.frame
    up = getattr(opt.build_options(capability.options, options), capability.up_option)
    return capability.frame if up is None else Frame(capability.frame.unit, cast(Up, up))


def choose_options(struct: type[Struct], options: Mapping[str, Value]) -> dict[str, Value]:
    """Return the set options that belong to a Struct."""
    return {
        field.name: options[field.name] for field in opt.option_fields(struct) if options.get(field.name) is not None
    }


def _find_carried_features(writer: Writer, options: Mapping[str, Value]) -> frozenset[Feature]:
    by_option = (features for option, features in writer.carries_with.items() if options.get(option))
    return writer.carries.union(*by_option)


def _find_max_colors(writer: Writer, options: Mapping[str, Value]) -> int | None:
    """Return the number of colors that the programs named by options can print; None if no option limits it."""
    values = opt.build_options(writer.options, options)
    limits = (limits.get(getattr(values, option)) for option, limits in writer.max_colors.items())
    return min((limit for limit in limits if limit is not None), default=None)


def _choose_texture_colors(carried: frozenset[Feature], options: Mapping[str, Value]) -> str | None:
    """Return where to write the colors of textures: "vertex" or "face"; None if textures stay or colors are lost."""
    requested = text_or_none(options.get("texture_colors"))
    # reduced colors can be painted, so no textures remain
    if "colors" not in carried or requested in ("texture", "paint"):
        return None
    if requested is None and carried & {"materials", "textures"}:
        return None
    return requested or "vertex"


def text_or_none(value: Value) -> str | None:
    """Return a value if it is a text."""
    return value if isinstance(value, str) else None
