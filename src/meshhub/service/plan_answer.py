"""JSON object of a caller's plan."""

from __future__ import annotations

from typing import TypedDict

from meshhub.model.plans import Limits


class Usage(TypedDict):
    """Requests left in the rate limit's window; None without a rate limit."""

    requests_remaining: int | None
    resets_in_seconds: int | None


class PublishableKey(TypedDict):
    """Bounds of a publishable key, and the conversions that are left of its daily quota."""

    origins: tuple[str, ...]
    requests_per_day: int
    requests_remaining: int


class PlanAnswer(TypedDict):
    """The caller's plan, its limits, the formats that need another plan, and the use of the rate limit.

    `inventories` has the options that accept `@inventory`: the operator keeps a list for the caller.
    """

    plan: str
    label: str
    limits: Limits
    premium_formats: list[str]
    inventories: list[str]
    usage: Usage
    publishable_key: PublishableKey | None
