"""Hooks that a plug-in can implement, and the marker for its implementations.

    from meshhub import hookimpl

    @hookimpl
    def meshhub_readers():
        return [Reader(...)]

Hooks return plain data, and do not use `firstresult`. The registry calls each plug-in separately, so if one raises an
exception, the registry records a fault, and the other plug-ins still load.
"""

from __future__ import annotations

from collections.abc import Iterable

import pluggy

from meshhub.model.capabilities import Check, Operation, Reader, Storage, Writer
from meshhub.model.chain import Chain
from meshhub.model.plans import Caller, Objection, Plan, Rule
from meshhub.model.recipes import Recipe
from meshhub.model.report import Report

PROJECT = "meshhub"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


# formats, operations, checks, recipes, storages


@hookspec
def meshhub_readers() -> Iterable[Reader]:  # type: ignore[empty-body]
    """Declare readers. Called once, when a registry is built."""


@hookspec
def meshhub_writers() -> Iterable[Writer]:  # type: ignore[empty-body]
    """Declare writers. Called once, when a registry is built."""


@hookspec
def meshhub_operations() -> Iterable[Operation]:  # type: ignore[empty-body]
    """Declare operations. Called once, when a registry is built."""


@hookspec
def meshhub_checks() -> Iterable[Check]:  # type: ignore[empty-body]
    """Declare checks: whether a model prints, and what is wrong with it. Called once, when a registry is built."""


@hookspec
def meshhub_recipes() -> Iterable[Recipe]:  # type: ignore[empty-body]
    """Declare recipes: named lists of options. Called once, when a registry is built.

    A recipe with an option that no plug-in declares, or with an invalid value, is a fault and is left out.
    `meshhub.toolkit.recipes.read_recipes` reads them from TOML files.
    """


@hookspec
def meshhub_storages() -> Iterable[Storage]:  # type: ignore[empty-body]
    """Declare storages, such as one for addresses that begin with s3://. Called once, when a registry is built.

    A storage opens addresses that a person names: text with its scheme, passed to a method of `Registry` or to the
    command line. A model cannot refer to an address. The HTTP service only sends files to the printers that a storage
    lists, for callers with its entitlement.
    """


# what a caller may do


@hookspec
def meshhub_plans() -> Iterable[Plan]:  # type: ignore[empty-body]
    """Declare customer plans. Called once, when a registry is built."""


@hookspec
def meshhub_rules() -> Iterable[Rule]:  # type: ignore[empty-body]
    """Declare objections that depend only on the plan, the target format and the operations.

    Called once, when a registry is built. Listings show what a rule rejects as not allowed, because they never call
    reviews.
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


# events


@hookspec
def meshhub_finished(report: Report) -> None:
    """Receive the report of every conversion that ended, also of failed ones. An exception is logged and ignored."""
