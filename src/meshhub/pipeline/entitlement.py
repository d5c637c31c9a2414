"""Choice of the best candidate that the caller's plan allows and that is installed on this machine."""

# why this way: docs/decisions/0005-entitlements.md
from __future__ import annotations

from collections.abc import Sequence

from meshhub.errors import ErrorValue, MissingDependency, PremiumRequired, describe_missing
from meshhub.model.capabilities import Check, Operation, Reader
from meshhub.model.plans import Caller
from meshhub.pipeline.declarations import C, Declared

_MISSING_CODES = {Reader: "unsupported_format", Operation: "invalid_option", Check: "invalid_option"}
"""Error codes of a missing dependency by the kind of capability; default: `unsupported_target`."""


def describe(candidate: Declared[C]) -> str:
    """Describe a capability, for messages."""
    capability = candidate.capability
    if isinstance(capability, Operation | Check):
        return capability.label
    verb = "reading" if isinstance(capability, Reader) else "writing"
    label: str = capability.format.label  # type: ignore[attr-defined]
    return f"{verb} {label}"


def _name_capability(candidate: Declared[C]) -> dict[str, ErrorValue]:
    """Return the format or the operation of a capability as values of an error; none of a check."""
    capability = candidate.capability
    if isinstance(capability, Operation):
        return {"operation": capability.id}
    return {} if isinstance(capability, Check) else {"format": capability.format.label}  # type: ignore[attr-defined]


def check_entitlement(candidate: Declared[C], caller: Caller) -> None:
    """Raise PremiumRequired unless the caller's plan grants what the capability requires."""
    if not caller.plan.allows(candidate.capability.requires):
        raise PremiumRequired(
            f"{describe(candidate)} is not part of the plan {caller.plan.label}: it needs the entitlement "
            f"{candidate.capability.requires!r}; send the key of a plan that grants it",
            values={"plan": caller.plan.label, **_name_capability(candidate)},
        )


def check_installed(candidate: Declared[C]) -> None:
    """Raise MissingDependency if the capability needs a package that is not installed."""
    if candidate.missing:
        raise MissingDependency(
            describe_missing(describe(candidate), candidate.missing, candidate.remedy),
            error_code=_MISSING_CODES.get(type(candidate.capability), "unsupported_target"),
        )


def choose_installed(candidates: Sequence[Declared[C]]) -> Declared[C]:
    """Return the first candidate whose dependencies are installed, or raise MissingDependency for the first."""
    for candidate in candidates:
        if not candidate.missing:
            return candidate
    check_installed(candidates[0])
    raise AssertionError("unreachable")


def choose_allowed(candidates: Sequence[Declared[C]], caller: Caller) -> Declared[C]:
    """Return the first candidate that the caller may use and that is installed.

    Raises:
        PremiumRequired: The plan allows none of them.
        MissingDependency: The plan allows some, but none of those is installed.
    """
    allowed = [candidate for candidate in candidates if caller.plan.allows(candidate.capability.requires)]
    if not allowed:
        check_entitlement(candidates[0], caller)
    return choose_installed(allowed)
