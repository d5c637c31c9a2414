"""From a request to a chain: which reader, which operations in which order, which writer, and why.

Nothing here touches geometry. A chain is plain data that turns into JSON: it can be shown, logged,
hashed, and sent to a worker, which needs no registry to run it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from meshhub.errors import (
    EmptyModel,
    InvalidOption,
    MissingDependency,
    PremiumRequired,
    UnsupportedFormat,
    UnsupportedTarget,
    quote,
)
from meshhub.model import options as opt
from meshhub.model.capabilities import (
    Feature,
    Magic,
    Operation,
    Reader,
    Writer,
    checked_score,
)
from meshhub.model.chain import Chain, Request, Step
from meshhub.model.notes import Note
from meshhub.model.options import Value
from meshhub.model.plans import Caller
from meshhub.model.report import Loss
from meshhub.model.source import Source
from meshhub.pipeline.declarations import C, Declarations, Declared, load

log = logging.getLogger(__name__)

SURE = 50
"""From this score on a look at the content beats the file's name."""


Sniff = Callable[[Sequence[Declared[Reader]], bytes, int], list[int | None]]
"""Calls the sniffers of readers with the head and the size of a file; returns a score for each, None where it fails."""


def sniff_here(readers: Sequence[Declared[Reader]], head: bytes, size: int) -> list[int | None]:
    """Call sniffers in this process."""
    scores: list[int | None] = []
    for one in readers:
        sniffer = one.capability.sniff or ""
        try:
            scores.append(score_of(sniffer, head, size))
        except (Exception, SystemExit) as error:
            log.warning("the sniffer %r failed and does not count: %s: %s", sniffer, type(error).__name__, error)
            scores.append(None)
    return scores


def score_of(sniff: str, head: bytes, size: int) -> int:
    """Return the score of the sniffer "package.module:function", 0 to 100. Raises what it raises, ValueError."""
    return checked_score(load(sniff)(head, size))


def resolve(have: Declarations, request: Request, source: Source, caller: Caller, sniff: Sniff = sniff_here) -> Chain:
    """The chain for a request.

    Raises, in this order: UnsupportedTarget, PremiumRequired, MissingDependency (for the writer);
    InvalidOption; EmptyModel, UnsupportedFormat, MissingDependency (for the source).
    """
    writer = None if request.target is None else _writer(have, request.target, caller)
    fields = have.fields()
    stranger = opt.unknown(request.options, fields)
    if stranger is not None:
        raise stranger
    given = {name: fields[name].parse(value) for name, value in request.options.items()}
    operations = [_allowed(one, caller, one.capability.label) for one in have.operations if _taken(one, given)]
    reader, because, notes = identify(have, source, given.get("input_format"), sniff)
    _allowed(reader, caller, f"reading {reader.capability.format.label}")

    steps = [_step("read", reader, because, given)]
    steps += [_step("operation", one, f"stage {one.capability.stage.name.lower()}", given) for one in operations]
    if writer is not None:
        steps.append(_step("write", writer, f"target {request.target}", given))
    carried = frozenset() if writer is None else _carried(writer.capability, given)
    return Chain(
        steps=tuple(steps),
        losses=_possible_losses(reader, operations, writer, carried),
        notes=(*notes, *_unused(have, steps, given)),
        carried=tuple(sorted(carried)),
        input_unit=_text(given.get("input_unit")),
        input_up=_text(given.get("input_up")),
    )


def _text(value: Value) -> str | None:
    return value if isinstance(value, str) else None


def _writer(have: Declarations, target: str, caller: Caller) -> Declared[Writer]:
    wanted = have.format_of(target)
    candidates = [one for one in have.writers if wanted is not None and one.capability.format.id == wanted.id]
    if wanted is None or not candidates:
        listed = ", ".join(sorted({one.capability.format.id for one in have.writers}))
        raise UnsupportedTarget(f"target {quote(target)} is not a format that can be written; choose from {listed}")
    return _best(candidates, caller, f"writing {wanted.label}")


def _best(candidates: list[Declared[C]], caller: Caller, what: str) -> Declared[C]:
    """The first candidate that the caller may use and that is whole; else the error that the first one earns."""
    allowed = [one for one in candidates if caller.plan.allows(one.capability.requires)]
    whole = [one for one in allowed if not one.missing]
    return whole[0] if whole else _allowed((allowed or candidates)[0], caller, what)


def _allowed(one: Declared[C], caller: Caller, what: str) -> Declared[C]:
    if not caller.plan.allows(one.capability.requires):
        raise PremiumRequired(
            f"{what} is not part of the plan {caller.plan.label}: it needs the entitlement "
            f"{one.capability.requires!r}; send the key of a plan that grants it"
        )
    if one.missing:
        kinds = {Reader: "unsupported_format", Operation: "invalid_option"}
        raise MissingDependency(
            f"{what} needs {', '.join(one.missing)}, which this machine lacks; {one.remedy}",
            code=kinds.get(type(one.capability), "unsupported_target"),
        )
    return one


def _taken(operation: Declared[Operation], given: Mapping[str, Value]) -> bool:
    """Return whether an operation joins the chain: an option of it is set, and its own flag is not false."""
    options = operation.capability.options
    own, plugin = operation.capability.id.replace("-", "_"), operation.plugin.replace("-", "_")
    switches = {own, plugin, f"{plugin}_{own}"}
    is_off = any(
        field.kind == "flag" and field.name in switches and given.get(field.name) is False
        for field in opt.option_fields(options)
    )
    return not is_off and bool(opt.given_fields(options, given))


def _step(
    kind: Literal["read", "operation", "write"],
    one: Declared[Reader] | Declared[Operation] | Declared[Writer],
    because: str,
    given: Mapping[str, Value],
) -> Step:
    capability = one.capability
    struct = capability.options
    values = {field.name: given[field.name] for field in opt.option_fields(struct) if given.get(field.name) is not None}
    named = capability if isinstance(capability, Operation) else capability.format
    return Step(
        kind=kind,
        id=named.id,
        label=named.label,
        because=because,
        plugin=one.plugin,
        run=capability.run,
        options_type=f"{struct.__module__}:{struct.__qualname__}",
        options=values,
        frame=None if isinstance(capability, Operation) else capability.frame,
        drops=tuple(sorted(capability.drops)) if isinstance(capability, Operation) else (),
        requires=capability.requires,
        origin=one.origin,
    )


def _carried(writer: Writer, given: Mapping[str, Value]) -> frozenset[Feature]:
    more = (features for option, features in writer.carries_with.items() if given.get(option))
    return writer.carries.union(*more)


def _possible_losses(
    reader: Declared[Reader],
    operations: list[Declared[Operation]],
    writer: Declared[Writer] | None,
    carried: frozenset[Feature],
) -> tuple[Loss, ...]:
    kept = set(reader.capability.carries)
    losses = []
    for operation in operations:
        losses += [Loss(feature, operation.capability.id) for feature in sorted(kept & operation.capability.drops)]
        kept -= operation.capability.drops
    if writer is not None:
        losses += [Loss(feature, writer.capability.format.id) for feature in sorted(kept - carried)]
    return tuple(losses)


def _unused(have: Declarations, steps: list[Step], given: Mapping[str, Value]) -> Iterable[Note]:
    used = {field.name for field in opt.option_fields(opt.HostOptions)}
    for step in steps:
        used |= set(step.options)
    owners = {field.name: owner for owner, struct in have.option_structs() for field in opt.option_fields(struct)}
    for name, value in given.items():
        if name not in used and value is not None and value is not False:
            yield Note("option_unused", f"option {name!r} belongs to {owners[name]!r}, which has no part in this chain")


def identify(
    have: Declarations, source: Source, told: Value = None, sniff: Sniff = sniff_here
) -> tuple[Declared[Reader], str, tuple[Note, ...]]:
    """The reader for a source, why, and what to remark: told explicitly > content > extension.

    Raises InvalidOption, EmptyModel, UnsupportedFormat, MissingDependency.
    """
    if told is not None:
        wanted = have.format_of(str(told))
        candidates = [one for one in have.readers if wanted is not None and one.capability.format.id == wanted.id]
        if not candidates:
            listed = ", ".join(sorted({one.capability.format.id for one in have.readers}))
            raise InvalidOption(
                f"option '{{input_format}}' must be one of {listed}, got {quote(str(told))}", options=("input_format",)
            )
        return _whole(candidates), "told by input_format", ()

    extension = source.extension
    by_name = [one for one in have.readers if extension in one.capability.format.extensions]
    size = source.size
    if size == 0:
        raise EmptyModel(f"{_shown(source)} is empty: it holds 0 bytes; export the model again and send that")

    head = source.head()
    scored, broken = _look(have.readers, head, size, sniff)
    named = {one.capability.format.id for one in by_name}
    best = max((score for score, _, _ in scored), default=0)
    top = [(because, one) for score, because, one in scored if score == best]
    if best >= SURE or (best > 0 and not by_name):
        top = [found for found in top if found[1].capability.format.id in named] or top
        because, first = top[0]
        format_ = first.capability.format
        notes = broken
        if format_.id not in named and by_name:
            notes += (Note("content_beats_name", f"named {extension}, is {format_.label}: read as what it is"),)
        return _whole([one for _, one in top if one.capability.format.id == format_.id]), because, notes
    if by_name:
        return _whole(by_name), f"extension {extension}", broken
    listed = ", ".join(sorted({one.capability.format.id for one in have.readers}))
    hint = "".join(f"; {note.message}" for note in broken)
    hint += "; an archive goes to /convert-batch" if head.startswith(b"PK\3\4") else ""
    raise UnsupportedFormat(
        f"{_shown(source)}: neither content nor extension names a format that can be read ({listed}){hint}"
    )


def _shown(source: Source) -> str:
    return repr(source.name[-80:])


def _whole(candidates: list[Declared[Reader]]) -> Declared[Reader]:
    whole = [one for one in candidates if not one.missing]
    if whole:
        return whole[0]
    first = candidates[0]
    raise MissingDependency(
        f"reading {first.capability.format.label} needs {', '.join(first.missing)}, "
        f"which this machine lacks; {first.remedy}",
        code="unsupported_format",
    )


def _look(
    readers: Sequence[Declared[Reader]], head: bytes, size: int, sniff: Sniff
) -> tuple[list[tuple[int, str, Declared[Reader]]], tuple[Note, ...]]:
    """Return for each reader how sure it is of the content, 0 to 100, and why; and a note for each broken sniffer."""
    scored: list[tuple[int, str, Declared[Reader]]] = []
    asked = []
    for one in readers:
        magic = next((magic for magic in one.capability.format.magic if _matches(magic, head)), None)
        if magic is not None:
            scored.append((100, f"magic {magic.data!r} at byte {magic.offset}", one))
        elif one.capability.sniff is not None:
            asked.append(one)
    broken = []
    for one, score in zip(asked, sniff(asked, head, size) if asked else (), strict=True):
        label = one.capability.format.label
        if score is None:
            # it must not hide the file from the others
            plugin = f"plug-in {one.plugin!r}, {one.origin}"
            text = f"whether the content is {label} could not be seen: its sniffer failed ({plugin})"
            broken.append(Note("sniffer_failed", text))
        else:
            scored.append((score, f"content looks like {label} ({score} of 100)", one))
    order = {id(one): number for number, one in enumerate(readers)}
    return sorted(scored, key=lambda found: order[id(found[2])]), tuple(broken)


def _matches(magic: Magic, head: bytes) -> bool:
    return head[magic.offset : magic.offset + len(magic.data)] == magic.data
