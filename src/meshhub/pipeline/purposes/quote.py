"""Quote of one file: weight, support and time of its print."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from meshhub.errors import InvalidOption
from meshhub.model.capabilities import Check
from meshhub.model.chain import Judge
from meshhub.model.plans import Caller
from meshhub.pipeline.declarations import Declarations, Declared
from meshhub.pipeline.entitlement import check_entitlement, check_installed
from meshhub.pipeline.purpose import CheckedRequest, Checks, End, Options, Purpose
from meshhub.pipeline.steps import make_step

MAX_QUANTITY_COUNT = 1_000_000
"""Maximum pieces of a quote; more is certainly a typing error."""


class UseSlicer(Struct, frozen=True, kw_only=True):
    """How the print is estimated."""

    slicer: Annotated[
        bool,
        Meta(
            title="Use a slicer",
            description="Take material and time from an installed slicer instead of the model; slower.",
        ),
    ] = False


class QuoteOptions(UseSlicer, frozen=True, kw_only=True):
    """What is quoted."""

    quantity: Annotated[
        int,
        Meta(
            title="Quantity",
            description="Number of equal pieces.",
            ge=1,
            le=MAX_QUANTITY_COUNT,
            extra={"everyday": True},
        ),
    ] = 1

    material: (
        Annotated[
            str,
            Meta(
                title="Material",
                description="Name of a material of the rate card. Default: its first one.",
                examples=["pla"],
                extra={"everyday": True},
            ),
        ]
        | None
    ) = None


class QuotePurpose(Purpose):
    """Estimate the print of a file, after the operations."""

    options = QuoteOptions
    uses_checks = True

    def choose_checks(self, declarations: Declarations, options: Options, caller: Caller) -> Checks:
        """Return the check that estimates by the requested method.

        Raises:
            InvalidOption: None does.
            PremiumRequired, MissingDependency: The plan does not grant it, or a package of it is missing.
        """
        return (find_estimate(declarations, options, caller),)

    def make_end(self, checked: CheckedRequest, options: Options) -> End:
        """Run the check."""
        steps = tuple(make_step("check", check, "a quote was requested", options) for check in checked.checks)
        return steps, Judge(needs_estimate=True)


def find_estimate(declarations: Declarations, options: Options, caller: Caller) -> Declared[Check]:
    """Return the check that estimates by the requested method. Raises as `QuotePurpose.choose_checks`."""
    method = "slicer" if options.get("slicer") else "model"
    check = next((check for check in declarations.checks if check.capability.estimates == method), None)
    if check is None:
        raise InvalidOption(f"no plug-in estimates by a {method}; enable the built-in ones")
    check_entitlement(check, caller)
    check_installed(check)
    return check


PURPOSE = QuotePurpose("quote")
