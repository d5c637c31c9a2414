"""Resolution of a request: which reader, which operations in which order, which writer, and why.

The functions of this module do not touch geometry. The chain is plain data that serializes to JSON: it can be shown,
logged, hashed, and sent to a worker, which needs no registry to execute it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import structs

from meshhub.errors import InvalidOption
from meshhub.model import options as opt
from meshhub.model.capabilities import Occasion, Operation, Reader
from meshhub.model.chain import Chain, Ending, Request, Step, Write
from meshhub.model.notes import Note
from meshhub.model.options import Value
from meshhub.model.plans import Caller
from meshhub.model.report import Loss
from meshhub.model.source import Source, members_of
from meshhub.pipeline.declarations import Declarations, Declared
from meshhub.pipeline.entitlement import check_entitlement, check_installed
from meshhub.pipeline.identify import Sniff, identify, readers_named, sniff_here
from meshhub.pipeline.option_class_check import CheckOptions, check_here
from meshhub.pipeline.purpose import CheckedRequest as CheckedRequest
from meshhub.pipeline.purposes import purpose_of
from meshhub.pipeline.recipes import expand_recipe
from meshhub.pipeline.steps import make_step, text_or_none


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
    purpose = purpose_of(request.purpose)
    writer, measured = purpose.choose_writers(declarations, request.target, caller)
    fields = declarations.fields() | purpose.own_fields(declarations)
    requested, from_recipe = expand_recipe(declarations, purpose, request.options, fields)
    options = opt.parse_options(fields, requested)
    opt.check_rules(fields, options)
    purpose.check_options(options)
    operations = tuple(
        operation
        for operation in declarations.operations
        if purpose.runs_operations and _is_requested(operation, options)
    )
    for operation in operations:
        check_entitlement(operation, caller)
        check_installed(operation)
        check_options(operation, options)
    checks = purpose.choose_checks(declarations, options, caller)
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
    return CheckedRequest(
        declarations, caller, request.target, purpose, writer, operations, options, from_recipe, checks, measured
    )


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
        make_step("operation", operation, _explain_operation(operation.capability, checked), options)
        for operation in checked.operations
    )
    last_steps, ending = checked.purpose.make_end(checked, options)
    steps = (*(read.step for read in reads), *operations, *last_steps)
    return Chain(
        steps=steps,
        ending=ending,
        losses=_find_possible_losses([read.reader for read in reads], checked, ending),
        notes=(*(note for read in reads for note in read.notes), *_note_unused_options(declarations, steps, checked)),
        input_unit=text_or_none(options.get("input_unit")),
        input_up=text_or_none(options.get("input_up")),
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
    options = checked.purpose.adapt_reading(declarations, reader.capability, options)
    step = make_step("read", reader, because, options)
    step = structs.replace(step, crash_options=_list_options_for(reader.capability, "crash"))
    # input_unit and input_up contradict the lengths and axes of the feature table
    if checked.purpose.reads_features and not (options.get("input_unit") or options.get("input_up")):
        step = structs.replace(step, features=reader.capability.features)
    return _Read(reader, step, options, tuple(notes))


def _check_filaments(declarations: Declarations, operations: Iterable[Declared[Operation]]) -> None:
    """Raise InvalidOption if no operation reduces the colors to those of filaments."""
    if any("many_colors" in operation.capability.solves for operation in operations):
        return
    names = (operation.capability.solves.get("many_colors") for operation in declarations.operations)
    name = next(filter(None, names), None)
    raise InvalidOption(
        "option '{texture_colors}' is paint, which needs filaments; "
        + ("no installed plug-in has any" if name is None else f"set '{{{name}}}' to their number"),
        options=("texture_colors",) if name is None else ("texture_colors", name),
    )


def find_reduction(declarations: Declarations, checked: CheckedRequest, caller: Caller) -> str | None:
    """Return an option that reduces the faces, if the caller may use it and the request does not; otherwise None."""
    candidates = [operation for operation in declarations.operations if "many_faces" in operation.capability.solves]
    if any(operation in checked.operations for operation in candidates):
        return None
    usable = (
        operation.capability.solves["many_faces"]
        for operation in candidates
        if not operation.missing and caller.plan.allows(operation.capability.requires)
    )
    return next(usable, None)


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


def _add_display_options(checked: CheckedRequest, reader: Reader) -> Mapping[str, Value]:
    """Return the options of a request; if it only shows the scene of the file, with the reader's display options."""
    if not checked.purpose.shows_scene or checked.operations or checked.measured is not None:
        return checked.options
    requested = {name: value for name, value in checked.options.items() if value is not None}
    return {**_list_options_for(reader, "display"), **requested}


def _list_options_for(reader: Reader, occasion: Occasion) -> dict[str, Value]:
    """Return the values of options that a reader declares for an occasion."""
    fields = {field.name: field for field in opt.option_fields(reader.options)}
    return opt.parse_options(fields, reader.options_for.get(occasion, {}))


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
    used |= {field.name for field in opt.option_fields(checked.purpose.options)}
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
