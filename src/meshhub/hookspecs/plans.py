"""Hooks that decide what a caller may do."""

from __future__ import annotations

from collections.abc import Iterable

from meshhub.hookspecs.marker import hookspec
from meshhub.model.chain import Chain
from meshhub.model.plans import Caller, Objection, Plan, Rule


@hookspec
def meshhub_plans() -> Iterable[Plan]:  # type: ignore[empty-body]
    """Declare customer plans. Called once, when a registry is built."""


@hookspec
def meshhub_rules() -> Iterable[Rule]:  # type: ignore[empty-body]
    """Declare objections that depend only on the plan, the target format and the operations.

    Called once, when a registry is built. Listings show what a rule rejects as not allowed; they never call reviews.
    """


@hookspec
def meshhub_grants(caller: Caller) -> Iterable[str]:  # type: ignore[empty-body]
    """Grant a caller entitlements in addition to those of their plan.

    Called for every request, before any other check. Grants only add: an implementation that raises, or that returns
    anything but entitlements, grants nothing.
    """


@hookspec
def meshhub_review(chain: Chain, caller: Caller) -> Iterable[Objection]:  # type: ignore[empty-body]
    """Object to a chain before it runs. Any objection rejects the request; the error lists all of them.

    Called for every request. Reviews fail closed: one that raises rejects the request.
    """
