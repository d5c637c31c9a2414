"""Hooks that say who may do what."""

from __future__ import annotations

from collections.abc import Iterable

from meshhub.hookspecs.marker import hookspec
from meshhub.model.chain import Chain
from meshhub.model.plans import Caller, Objection, Plan


@hookspec
def meshhub_plans() -> Iterable[Plan]:  # type: ignore[empty-body]
    """Declare customers' plans. Called once, when a registry is built."""


@hookspec
def meshhub_grants(caller: Caller) -> Iterable[str]:  # type: ignore[empty-body]
    """Grant a caller entitlements beside those of their plan.

    Called for every request, before anything else is looked at. A grant can only add: what raises,
    or returns anything but entitlements, grants nothing.
    """


@hookspec
def meshhub_review(chain: Chain, caller: Caller) -> Iterable[Objection]:  # type: ignore[empty-body]
    """Object to a chain before it runs. Any objection refuses it, and all are told.

    Called for every request. A review that raises refuses the request too: a gate that is broken
    stays shut.
    """
