"""Resolution of a request: which reader, which operations in which order, which writer, and why.

The functions of this module do not touch geometry. The chain is plain data that serializes to JSON: it can be shown,
logged, hashed, and sent to a worker, which needs no registry to execute it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, cast

from msgspec import Struct, structs

from meshhub.errors import MAX_QUOTED_CHARS, InvalidOption, UnsupportedTarget, quote
from meshhub.model import options as opt
from meshhub.model.capabilities import Check, Feature, Frame, Operation, Reader, Up, Writer
from meshhub.model.chain import BUILT_IN, Chain, Ending, Inspect, Judge, Preview, Purpose, Render, Request, Step, Write
from meshhub.model.notes import Note
from meshhub.model.options import Value
from meshhub.model.plans import Caller
from meshhub.model.report import Loss
from meshhub.model.source import Source, members_of
from meshhub.pipeline.choosing_checks import choose_checks
from meshhub.pipeline.declarations import Declarations, Declared, reference_of
from meshhub.pipeline.entitlement import check_entitlement, check_installed, choose_allowed
from meshhub.pipeline.identify import Sniff, identify, readers_named, sniff_here
from meshhub.pipeline.option_class_check import CheckOptions, check_here
from meshhub.pipeline.preview_options import PREVIEW_FORMAT, PreviewOptions
from meshhub.pipeline.program_scenes import SCENE_WRITER
from meshhub.pipeline.quote_options import QuoteOptions
from meshhub.pipeline.recipes import expand_recipe
from meshhub.pipeline.verdict_options import VerdictOptions
from meshhub.toolkit.rendering.options import RenderOptions, parse_marks, parse_size, parse_views

_OWN_OPTIONS: dict[str, type[Struct]] = {
    "render": RenderOptions,
    "preview": PreviewOptions,
    "check": VerdictOptions,
    "quote": QuoteOptions,
}
"""Options that belong to a purpose and not to a plug-in."""

_RENDER = Step(
    kind="render",
    id="png",
    label="PNG",
    because="a picture was requested",
    plugin="meshhub",
    run="meshhub.toolkit.rendering.picture:render",
    options_type=reference_of(RenderOptions),
    origin=BUILT_IN,
)
_REDUCE = Step(
    kind="preview",
    id="preview",
    label="preview",
    because="a preview was requested",
    plugin="meshhub",
    run="meshhub.pipeline.preview:reduce_scene",
    options_type=reference_of(PreviewOptions),
    origin=BUILT_IN,
)
"""Steps that no plug-in declares, without their options."""


@dataclass(frozen=True)
class CheckedRequest:
    """A request that is valid for any source: its writer, operations, checks and parsed options.

    `measured` is the writer of the file whose size a preview states.
    """

    target: str
    purpose: Purpose
    writer: Declared[Writer] | None
    operations: tuple[Declared[Operation], ...]
    options: Mapping[str, Value]
    from_recipe: frozenset[str] = frozenset()
    checks: tuple[Declared[Check], ...] = ()
    measured: Declared[Writer] | None = None

    @property
    def capabilities(self) -> list[Writer | Operation]:
        """Operations and writers that the request names."""
        operations: list[Writer | Operation] = [operation.capability for operation in self.operations]
        return [*operations, *(writer.capability for writer in (self.measured, self.writer) if writer is not None)]


class _Read(NamedTuple):
    """Reader of a file, with its step and options, and the notes about the choice."""

    reader: Declared[Reader]
    step: Step
    options: Mapping[str, Value]
    notes: tuple[Note, ...]


def check_request(
    declarations: Declarations, request: Request, caller: Caller, check_options: CheckOptions = check_here
) -> CheckedRequest:
    """Check target, entitlements and options, which do not depend on the source.

    Raises, in this order:
        UnsupportedTarget: The target is not a format that can be written.
        PremiumRequired, MissingDependency: The plan does not grant the writer, or a package of it is missing.
        InvalidOption: An option is unknown, its value is invalid, or it cannot be combined with others.
        PremiumRequired, MissingDependency: The same for an operation, then for the reader of `input_format`.
        InvalidOption, PluginError: The check of an operation's or the writer's options rejects them, or failed.
    """
    purpose = request.purpose
    writer = _choose_writer(declarations, request, caller)
    measured = _find_writer(declarations, request.target, caller) if purpose == "preview" and request.target else None
    own_fields = opt.option_fields(_OWN_OPTIONS[purpose]) if purpose in _OWN_OPTIONS else ()
    fields = declarations.fields() | {field.name: field for field in own_fields}
    if purpose in ("check", "quote"):
        fields |= declarations.check_fields()
    requested, from_recipe = expand_recipe(declarations, request, fields)
    options = opt.parse_options(fields, requested)
    opt.check_rules(fields, options)
    if purpose == "render":
        _build_render_options(options)
    operations = tuple(
        operation for operation in declarations.operations if purpose != "inspect" and _is_requested(operation, options)
    )
    for operation in operations:
        check_entitlement(operation, caller)
        check_installed(operation)
        check_options(operation, options)
    checks = choose_checks(declarations, purpose, options, caller)
    for check in checks:
        check_options(check, options)
    if options.get("texture_colors") == "paint":
        _check_filaments(declarations, operations)
    for each in filter(None, (measured, writer)):
        check_options(each, options)
    if options.get("input_format") is not None:
        readers = readers_named(declarations, options["input_format"])
        # `identify` reports a missing package, because it concerns only one file
        for reader in [reader for reader in readers if not reader.missing][:1]:
            check_entitlement(reader, caller)
    return CheckedRequest(request.target, purpose, writer, operations, options, from_recipe, checks, measured)


def resolve(
    declarations: Declarations,
    request: Request | CheckedRequest,
    source: Source,
    caller: Caller,
    sniff: Sniff = sniff_here,
    check_options: CheckOptions = check_here,
) -> Chain:
    """Return the chain for a request.

    Args:
        declarations: Registered capabilities.
        request: Request of the caller; a checked request is not parsed again.
        source: File to read, or several; only their heads are read here.
        caller: Its plan decides about entitlements.
        sniff: Calls the sniffers of the readers.
        check_options: Calls the checks of options.
    Raises, in this order:
        UnsupportedTarget, PremiumRequired, MissingDependency, InvalidOption: See `check_request`.
        EmptyModel, UnsupportedFormat, MissingDependency: See `identify`.
        PremiumRequired: The caller's plan does not grant the reader.
        InvalidOption, PluginError: The check of the reader's options rejects them, or failed.
    """
    checked = request
    if not isinstance(checked, CheckedRequest):
        checked = check_request(declarations, checked, caller, check_options)
    reads = [
        _resolve_reader(declarations, checked, member, caller, sniff, check_options) for member in members_of(source)
    ]
    # the options of display depend on the reader; a picture of several files uses those of the first
    options = reads[0].options
    operations = (
        _make_step("operation", operation, _explain_operation(operation.capability, checked), options)
        for operation in checked.operations
    )
    last_steps, ending = _make_ending(checked, options)
    if isinstance(ending, Judge) and not ending.needs_estimate:
        ending = structs.replace(ending, remedies=tuple(_list_remedies(declarations, checked, caller)))
    steps = (*(read.step for read in reads), *operations, *last_steps)
    return Chain(
        steps=steps,
        ending=ending,
        losses=_find_possible_losses([read.reader for read in reads], checked, ending),
        notes=(*(note for read in reads for note in read.notes), *_note_unused_options(declarations, steps, checked)),
        input_unit=_text_or_none(options.get("input_unit")),
        input_up=_text_or_none(options.get("input_up")),
        reduction=find_reduction(declarations, checked, caller),
    )


def _resolve_reader(
    declarations: Declarations,
    checked: CheckedRequest,
    source: Source,
    caller: Caller,
    sniff: Sniff,
    check_options: CheckOptions,
) -> _Read:
    """Choose the reader of a file, and return its step. Raises as `resolve` does."""
    reader, because, notes = identify(declarations, source, checked.options.get("input_format"), sniff)
    check_entitlement(reader, caller)
    options = _add_display_options(checked, reader.capability)
    check_options(reader, options)
    if checked.purpose == "render" and _build_render_options(options).color_by == "surface":
        options = {**options, **_choose_surface_colors(declarations, reader.capability)}
    step = _make_step("read", reader, because, options)
    step = structs.replace(step, crash_options=_parse_own_options(reader.capability, reader.capability.crash_options))
    # a picture does not show the feature table, and input_unit and input_up contradict the lengths and axes of the
    # table
    if not (checked.purpose == "render" or options.get("input_unit") or options.get("input_up")):
        step = structs.replace(step, features=reader.capability.features)
    return _Read(reader, step, options, tuple(notes))


def _check_filaments(declarations: Declarations, operations: Iterable[Declared[Operation]]) -> None:
    """Raise InvalidOption if no operation reduces the colors to those of filaments."""
    if any(operation.capability.reduces_colors is not None for operation in operations):
        return
    names = [operation.capability.reduces_colors for operation in declarations.operations]
    name = next(filter(None, names), None)
    raise InvalidOption(
        "option '{texture_colors}' is paint, which needs filaments; "
        + ("no installed plug-in has any" if name is None else f"set '{{{name}}}' to their number"),
        options=("texture_colors",) if name is None else ("texture_colors", name),
    )


def find_reduction(declarations: Declarations, checked: CheckedRequest, caller: Caller) -> str | None:
    """Return an option that reduces the faces, if the caller may use it and the request does not; otherwise None."""
    candidates = [operation for operation in declarations.operations if operation.capability.reduces_faces is not None]
    if any(operation in checked.operations for operation in candidates):
        return None
    usable = (
        operation.capability.reduces_faces
        for operation in candidates
        if not operation.missing and caller.plan.allows(operation.capability.requires)
    )
    return next(usable, None)


def unsupported_target(target: str, declarations: Declarations) -> UnsupportedTarget:
    """Return the error for a target that cannot be written."""
    return UnsupportedTarget(
        f"target {quote(target)} is not a format that can be written; choose from {declarations.list_writable()}",
        values={"format": str(target)[:MAX_QUOTED_CHARS]},
    )


def _text_or_none(value: Value) -> str | None:
    return value if isinstance(value, str) else None


def _choose_writer(declarations: Declarations, request: Request, caller: Caller) -> Declared[Writer] | None:
    """Return the writer of a request; None if it draws a picture, inspects, or checks without marking."""
    if request.purpose == "read":
        return SCENE_WRITER
    if request.purpose in ("inspect", "render", "quote") or (request.purpose == "check" and not request.target):
        return None
    writer = _find_writer(declarations, PREVIEW_FORMAT if request.purpose == "preview" else request.target, caller)
    if request.purpose == "check" and not writer.capability.carries & {"materials", "colors"}:
        others = (other.capability for other in declarations.writers)
        colored = sorted({other.format.id for other in others if other.carries & {"materials", "colors"}})
        raise UnsupportedTarget(
            f"findings are marked by colors, which {writer.capability.format.label} does not keep; choose one of "
            + ", ".join(colored)
        )
    return writer


def _find_writer(declarations: Declarations, target: str, caller: Caller) -> Declared[Writer]:
    candidates = declarations.writers_of(declarations.format_of(target))
    if not candidates:
        raise unsupported_target(target, declarations)
    return choose_allowed(candidates, caller)


def _is_requested(operation: Declared[Operation], options: Mapping[str, Value]) -> bool:
    """Return whether an operation joins the chain: one of its options is set, and its own flag is not false."""
    struct = operation.capability.options
    own, plugin = operation.capability.id.replace("-", "_"), operation.plugin.replace("-", "_")
    switches = {own, plugin, f"{plugin}_{own}"}
    is_off = any(
        field.kind == "flag" and field.name in switches and options.get(field.name) is False
        for field in opt.option_fields(struct)
    )
    return not is_off and opt.has_set_option(struct, options)


def _explain_operation(operation: Operation, checked: CheckedRequest) -> str:
    """Return why an operation is in the chain."""
    names = {field.name for field in opt.option_fields(operation.options)}
    recipe = f", recipe {checked.options['recipe']}" if names & checked.from_recipe else ""
    return f"stage {operation.stage.name.lower()}{recipe}"


def _make_ending(checked: CheckedRequest, options: Mapping[str, Value]) -> tuple[tuple[Step, ...], Ending]:
    """Return the ending of a chain, after its steps."""
    if checked.purpose == "render":
        return (structs.replace(_RENDER, options=_choose_options(RenderOptions, options)),), Render()
    if checked.purpose in ("check", "quote"):
        because = f"a {checked.purpose} was requested"
        steps = [_make_step("check", check, because, options) for check in checked.checks]
        if checked.writer is not None:
            steps.append(_make_step("write", checked.writer, "the findings are marked in a file", options))
        return tuple(steps), Judge(needs_estimate=checked.purpose == "quote", marks=checked.writer is not None)
    if checked.writer is None:
        return (), Inspect()
    if checked.purpose == "preview":
        reduce = structs.replace(_REDUCE, options=_choose_options(PreviewOptions, options))
        show = _make_step("write", checked.writer, "a preview was requested", options)
        if checked.measured is None:
            return (reduce, show), Preview()
        write, file = _make_write(checked.target, checked.measured, options)
        return (write, reduce, show), Preview(file)
    write, ending = _make_write(checked.target, checked.writer, options)
    return (write,), ending


def _list_remedies(declarations: Declarations, checked: CheckedRequest, caller: Caller) -> Iterator[Step]:
    """Yield the operations with which a check may try remedies: those of meshhub, and those beside the checks."""
    origins = {BUILT_IN, *(check.origin for check in checked.checks)}
    for operation in declarations.operations:
        is_usable = not operation.missing and caller.plan.allows(operation.capability.requires)
        if is_usable and operation.origin in origins and not operation.capability.keeps_state:
            yield _make_step("operation", operation, "a remedy is tried", {})


def _make_write(target: str, writer: Declared[Writer], options: Mapping[str, Value]) -> tuple[Step, Write]:
    """Return the step that writes the file of a conversion, and how."""
    carried = _find_carried_features(writer.capability, options)
    return _make_step("write", writer, f"target {target}", options), Write(
        carried=tuple(sorted(carried)),
        texture_colors=_choose_texture_colors(carried, options),
        merges_parts=writer.capability.merges_parts,
        max_colors=_find_max_colors(writer.capability, options),
        each_bed=options.get("each_bed") is True,
    )


def _make_step(
    kind: Literal["read", "operation", "check", "write"],
    declared: Declared[Reader] | Declared[Operation] | Declared[Check] | Declared[Writer],
    because: str,
    options: Mapping[str, Value],
) -> Step:
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
        options=_choose_options(struct, options),
        frame=_choose_frame(capability, options),
        drops=tuple(sorted(capability.drops - capability.transfers)) if isinstance(capability, Operation) else (),
        requires=capability.requires,
        keeps_state=capability.keeps_state,
        concurrent=isinstance(capability, Check) and capability.concurrent,
        needs=capability.needs,
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


def _build_render_options(options: Mapping[str, Value]) -> RenderOptions:
    """Return the options of a picture. Raises InvalidOption."""
    picture = cast(RenderOptions, opt.build_options(RenderOptions, options))
    parse_size(picture.size)
    parse_views(picture.view)
    parse_marks(picture.marks)
    return picture


def _add_display_options(checked: CheckedRequest, reader: Reader) -> Mapping[str, Value]:
    """Return the options of a request; if it only shows the scene of the file, with the reader's display options."""
    shows_result = checked.purpose != "inspect" and (checked.operations or checked.measured is not None)
    if checked.purpose in ("convert", "read") or shows_result:
        return checked.options
    requested = {name: value for name, value in checked.options.items() if value is not None}
    return {**_parse_own_options(reader, reader.display_options), **requested}


def _parse_own_options(reader: Reader, texts: dict[str, str]) -> dict[str, Value]:
    """Return the values that a reader declares for some of its options."""
    return opt.parse_options({field.name: field for field in opt.option_fields(reader.options)}, texts)


def _choose_surface_colors(declarations: Declarations, reader: Reader) -> Mapping[str, str]:
    """Return the options that make a reader color faces by surface. Raises InvalidOption."""
    if not reader.color_by_surface:
        ids = sorted({item.capability.format.id for item in declarations.readers if item.capability.color_by_surface})
        listed = f" ({', '.join(ids)})" if ids else ""
        raise InvalidOption(
            f"option '{{color_by}}': surface needs a format with surfaces{listed}, and {reader.format.label} "
            "has only triangles; use part or model",
            options=("color_by",),
        )
    return reader.color_by_surface


def _choose_options(struct: type[Struct], options: Mapping[str, Value]) -> dict[str, Value]:
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
    requested = _text_or_none(options.get("texture_colors"))
    # reduced colors can be painted, so no textures remain
    if "colors" not in carried or requested in ("texture", "paint"):
        return None
    if requested is None and carried & {"materials", "textures"}:
        return None
    return requested or "vertex"


def _find_possible_losses(
    readers: Iterable[Declared[Reader]], checked: CheckedRequest, ending: Ending
) -> tuple[Loss, ...]:
    features = {feature for reader in readers for feature in reader.capability.carries}
    losses = []
    for operation in checked.operations:
        capability = operation.capability
        lost = features & capability.drops - capability.transfers
        losses += [Loss(feature, capability.id) for feature in sorted(lost)]
        features -= capability.drops
    if isinstance(ending, Write) and checked.writer is not None:
        if ending.texture_colors is not None:
            features.discard("textures")
        target = checked.writer.capability.format.id
        losses += [Loss(feature, target) for feature in sorted(features - set(ending.carried))]
    return tuple(losses)


def _note_unused_options(declarations: Declarations, steps: Iterable[Step], checked: CheckedRequest) -> Iterable[Note]:
    """Yield a note for each unused option of the request, but not for those of a recipe, which serves many formats."""
    used = {field.name for field in opt.option_fields(opt.HostOptions)} | declarations.check_fields().keys()
    used |= {field.name for struct in (VerdictOptions, QuoteOptions) for field in opt.option_fields(struct)}
    for step in steps:
        used |= set(step.options)
    owners = {
        field.name: owner for owner, struct in declarations.option_structs() for field in opt.option_fields(struct)
    }
    for name, value in checked.options.items():
        if name not in used | checked.from_recipe and value is not None and value is not False:
            yield Note(
                "option_unused",
                f"option {name!r} belongs to {owners[name]!r}, which is not part of this chain",
                options=(name,),
                values={"option": name},
            )
