"""Explanations: the chain of a conversion, its possible losses, and the parts that the plan does not allow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct, structs

from meshhub.errors import MeshhubError, PremiumRequired, RequestRefused
from meshhub.http.intake.archives import naming_archive_endpoint
from meshhub.http.intake.explanation_requests import DescribedFile, SourceDescription
from meshhub.http.intake.uploads import too_large, too_many_files
from meshhub.model.capabilities import Operation, Reader
from meshhub.model.chain import Chain, Step
from meshhub.model.notes import Note
from meshhub.model.options import Value
from meshhub.model.plans import Caller, Limits
from meshhub.model.report import Loss, StepKind
from meshhub.pipeline.declarations import Declared
from meshhub.pipeline.entitlement import check_entitlement
from meshhub.pipeline.identify import NamedSource
from meshhub.pipeline.resolve import CheckedRequest, check_request, resolve
from meshhub.registry import Registry


class Lock(Struct, frozen=True):
    """Part of a conversion that the service rejects for this caller."""

    id: str
    """Id of the format or operation; "size", "files" or "review" for another reason."""

    error_code: str
    """Code of the error that the conversion would end with."""

    message: str
    """Reason and remedy, for people."""


class PlannedStep(Struct, frozen=True):
    """Step of a chain; the fields are those of `meshhub explain --json`."""

    kind: StepKind
    id: str
    label: str
    because: str
    plugin: str
    options: dict[str, Value]


class FileExplanation(Struct, frozen=True, kw_only=True):
    """Explanation of the conversion of one file."""

    name: str
    """Name of the file; "" if only its format was sent."""

    format: str | None = None
    """Id of the source format; None after an error."""

    ok: bool = False
    """Whether the service would start the conversion."""

    steps: tuple[PlannedStep, ...] = ()
    """Steps in order."""

    losses: tuple[Loss, ...] = ()
    """Features that the source format can hold and that the output cannot keep."""

    notes: tuple[Note, ...] = ()
    """Notes about the request."""

    locked: tuple[Lock, ...] = ()
    """Reasons for which the service rejects the conversion for this caller."""

    error: str | None = None
    """Why the file cannot be converted, for people; None without an error."""

    error_code: str | None = None
    """Code of the error; None without an error."""


class Explanation(Struct, frozen=True):
    """Explanations of the conversions of some files."""

    plan: str
    """Id of the caller's plan."""

    files: tuple[FileExplanation, ...]
    """Explanation of each file, in the order of the request."""

    locked: tuple[Lock, ...]
    """Reasons for which the service rejects all files in one request."""


def explain(registry: Registry, files: Sequence[DescribedFile], caller: Caller) -> Explanation:
    """Explain the conversions of some files; calls hooks, but no reader.

    Args:
        registry: Its declarations and reviews.
        files: Described files with their requests.
        caller: Sender of the request, with its entitlements.
    Raises:
        RequestError, MissingDependency: The target or an option is invalid; entitlements are not checked.
    """
    unrestricted = structs.replace(caller, plan=structs.replace(caller.plan, grants=frozenset({"*"})))
    declarations, check_options = registry.declarations, registry.hooks.check_options
    checked = [check_request(declarations, file.request, unrestricted, check_options) for file in files]
    return Explanation(
        plan=caller.plan.id,
        files=tuple(
            _explain_file(registry, file, request, caller, unrestricted)
            for file, request in zip(files, checked, strict=True)
        ),
        locked=tuple(_find_batch_locks([file.description for file in files], caller.plan.limits)),
    )


def _explain_file(
    registry: Registry, file: DescribedFile, request: CheckedRequest, caller: Caller, unrestricted: Caller
) -> FileExplanation:
    name = file.description.name
    source = NamedSource(name)
    locked = list(_find_size_locks(file.description, caller.plan.limits))
    try:
        try:
            with naming_archive_endpoint(source):
                chain = registry.resolve(file.request, source, caller)
        except (PremiumRequired, RequestRefused) as error:
            chain = resolve(registry.declarations, request, source, unrestricted)
            locks = list(_find_locks(registry, request, chain, caller))
            locked += locks or [Lock("review", error.error_code, error.message)]
    except MeshhubError as error:
        return FileExplanation(name=name, locked=tuple(locked), error=error.message, error_code=error.error_code)
    return FileExplanation(
        name=name,
        format=chain.source_format,
        ok=not locked,
        steps=tuple(_describe_step(step) for step in chain.steps),
        losses=chain.losses,
        notes=chain.notes,
        locked=tuple(locked),
    )


def _describe_step(step: Step) -> PlannedStep:
    return PlannedStep(step.kind, step.id, step.label, step.because, step.plugin, step.options)


def _find_locks(registry: Registry, request: CheckedRequest, chain: Chain, caller: Caller) -> Iterator[Lock]:
    """Yield the entitlements that the plan lacks, and the objections that apply regardless of the file."""
    reader = next(reader for reader in registry.declarations.readers if reader.capability.run == chain.steps[0].run)
    used: list[Declared[Any]] = [reader, *request.operations]
    if request.writer is not None:
        used.append(request.writer)
    for declared in used:
        capability = declared.capability
        id_ = capability.id if isinstance(capability, Operation) else capability.format.id
        try:
            check_entitlement(declared, caller)
        except PremiumRequired as error:
            yield Lock(id_, error.error_code, error.message)
        if not isinstance(capability, Reader):
            for objection in registry.objections_to(caller, capability):
                yield Lock(id_, objection.code, " — ".join(filter(None, (objection.message, objection.remedy))))


def _find_size_locks(description: SourceDescription, limits: Limits) -> Iterator[Lock]:
    limit = limits.max_file_bytes
    if limit is not None and description.size is not None and description.size > limit:
        error = too_large("file", limits, f"the file has {description.size} bytes")
        yield Lock("size", error.error_code, error.message)


def _find_batch_locks(descriptions: Sequence[SourceDescription], limits: Limits) -> Iterator[Lock]:
    if limits.max_batch_files is not None and len(descriptions) > limits.max_batch_files:
        error = too_many_files(limits.max_batch_files)
        yield Lock("files", error.error_code, error.message)
    total = sum(description.size or 0 for description in descriptions)
    if limits.request_bytes is not None and total > limits.request_bytes:
        error = too_large("files", limits, f"the files together have {total} bytes")
        yield Lock("size", error.error_code, error.message)
