"""Check of one file: whether it prints, what is wrong with it, and where."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from meshhub.errors import InvalidOption, UnsupportedTarget, quote
from meshhub.model.chain import BUILT_IN, Judge, Step
from meshhub.model.options import Value
from meshhub.model.plans import Caller
from meshhub.pipeline.declarations import Declarations
from meshhub.pipeline.entitlement import check_entitlement
from meshhub.pipeline.purpose import CheckedRequest, Checks, End, Options, Purpose, Writers
from meshhub.pipeline.purposes.quote import UseSlicer, find_estimate
from meshhub.pipeline.steps import find_writer, make_step


class VerdictOptions(UseSlicer, frozen=True, kw_only=True):
    """Which checks run, and how the print is estimated."""

    checks: (
        Annotated[
            str,
            Meta(
                title="Checks",
                description="Ids of checks, separated by commas; only these run. Default: all.",
                examples=["walls,overhangs"],
            ),
        ]
        | None
    ) = None

    skip_checks: (
        Annotated[
            str,
            Meta(
                title="Checks to leave out",
                description="Ids of checks, separated by commas; these do not run.",
                examples=["overhangs,cups"],
            ),
        ]
        | None
    ) = None


class CheckPurpose(Purpose):
    """Check the scene of a file, after the operations, and mark the findings in a file if there is a target."""

    options = VerdictOptions
    uses_checks = True
    report_field = "format"
    main_field = "file"

    def choose_writers(self, declarations: Declarations, target: str, caller: Caller) -> Writers:
        """Return a writer that keeps colors, which mark the findings; None without a target."""
        if not target:
            return None, None
        writer = find_writer(declarations, target, caller)
        if not writer.capability.carries & {"materials", "colors"}:
            others = (other.capability for other in declarations.writers)
            colored = sorted({other.format.id for other in others if other.carries & {"materials", "colors"}})
            raise UnsupportedTarget(
                f"findings are marked by colors, which {writer.capability.format.label} does not keep; choose one of "
                + ", ".join(colored)
            )
        return writer, None

    def choose_checks(self, declarations: Declarations, options: Options, caller: Caller) -> Checks:
        """Return the checks that are named, or all that the caller may use; those that are not installed, too.

        A slicer, which takes long, runs only on request, instead of the estimate from the model.

        Raises:
            InvalidOption: A named check is unknown, or no check is left.
            PremiumRequired, MissingDependency: The plan does not grant a named check or the slicer, or a package of
                the slicer is missing.
        """
        ids = _choose_ids(frozenset(check.capability.id for check in declarations.checks), options)
        chosen = [check for check in declarations.checks if check.capability.id in ids]
        if options.get("checks") is None:
            allowed = [check for check in chosen if caller.plan.allows(check.capability.requires)]
            chosen = [check for check in allowed if check.capability.estimates != "slicer"]
        for check in chosen:
            check_entitlement(check, caller)
        if options.get("slicer"):
            others = [check for check in chosen if check.capability.estimates is None]
            chosen = [*others, find_estimate(declarations, options, caller)]
        return tuple(chosen)

    def make_end(self, checked: CheckedRequest, options: Options) -> End:
        """Run the checks, try remedies, and mark the findings."""
        steps = [make_step("check", check, "a check was requested", options) for check in checked.checks]
        if checked.writer is not None:
            steps.append(make_step("write", checked.writer, "the findings are marked in a file", options))
        remedies = tuple(_list_remedies(checked))
        return tuple(steps), Judge(marks=checked.writer is not None, remedies=remedies)


def _list_remedies(checked: CheckedRequest) -> Iterator[Step]:
    """Yield the operations with which remedies are tried: those of meshhub, and those beside the checks."""
    origins = {BUILT_IN, *(check.origin for check in checked.checks)}
    for operation in checked.declarations.operations:
        is_usable = not operation.missing and checked.caller.plan.allows(operation.capability.requires)
        if is_usable and operation.origin in origins and not operation.capability.keeps_state:
            yield make_step("operation", operation, "a remedy is tried", {})


def _choose_ids(known: frozenset[str], options: Options) -> frozenset[str]:
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


PURPOSE = CheckPurpose("check")
