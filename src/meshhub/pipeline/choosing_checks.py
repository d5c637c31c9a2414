"""Choose which of the declared checks run for a verdict or a quote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from meshhub.errors import InvalidOption, quote
from meshhub.model.capabilities import Check
from meshhub.model.chain import Purpose
from meshhub.model.options import Value
from meshhub.model.plans import Caller
from meshhub.pipeline.declarations import Declarations, Declared
from meshhub.pipeline.entitlement import check_entitlement, check_installed


def choose_checks(
    declarations: Declarations, purpose: Purpose, options: Mapping[str, Value], caller: Caller
) -> tuple[Declared[Check], ...]:
    """Return the checks that run: those that are named, or all that the caller may use and that are installed.

    A quote needs one that estimates; a slicer, which takes long, runs only on request.

    Raises:
        InvalidOption: A named check is unknown, no check is left, or none estimates.
        PremiumRequired, MissingDependency: The plan does not grant a named check, or a package of it is missing.
    """
    if purpose == "quote":
        return (_choose_estimating(declarations, "slicer" if options.get("slicer") else "model", caller),)
    if purpose != "check":
        return ()
    ids = _choose_ids(frozenset(check.capability.id for check in declarations.checks), options)
    chosen = [check for check in declarations.checks if check.capability.id in ids]
    if options.get("checks") is not None:
        for check in chosen:
            check_entitlement(check, caller)
            check_installed(check)
        return tuple(chosen)
    return tuple(
        check
        for check in chosen
        if not check.missing
        and caller.plan.allows(check.capability.requires)
        and check.capability.estimates != "slicer"
    )


def _choose_estimating(
    declarations: Declarations, method: Literal["model", "slicer"], caller: Caller
) -> Declared[Check]:
    """Return the first check that estimates by a method. Raises InvalidOption, PremiumRequired, MissingDependency."""
    check = next((check for check in declarations.checks if check.capability.estimates == method), None)
    if check is None:
        raise InvalidOption(f"no plug-in estimates by a {method}; enable the built-in ones")
    check_entitlement(check, caller)
    check_installed(check)
    return check


def _choose_ids(known: frozenset[str], options: Mapping[str, Value]) -> frozenset[str]:
    """Return the ids that the options `checks` and `skip_checks` leave. Raises InvalidOption."""
    named, skipped = (_parse(name, options.get(name), known) for name in ("checks", "skip_checks"))
    chosen = (known if options.get("checks") is None else named) - skipped
    if known and not chosen:
        raise InvalidOption("no check is left; name some in '{checks}'", options=("checks", "skip_checks"))
    return chosen


def _parse(name: str, text: Value, known: frozenset[str]) -> frozenset[str]:
    """Return the ids in the value of an option; none if it is not set. Raises InvalidOption."""
    ids = frozenset(item.strip().lower() for item in str(text or "").split(",") if item.strip())
    unknown = sorted(ids - known)
    if unknown:
        raise InvalidOption(
            f"option '{{{name}}}' names the unknown check {quote(unknown[0])}; known are {', '.join(sorted(known))}",
            options=(name,),
        )
    return ids
