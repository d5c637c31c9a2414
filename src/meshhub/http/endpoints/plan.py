"""GET /plan: what the caller may do, and how much of it is left."""

from __future__ import annotations

from typing import TypedDict

import msgspec
from litestar import Response, get

from meshhub.http.context import context_of
from meshhub.http.state import AnyRequest, caller_of, shared_of
from meshhub.model.plans import Limits


class Usage(TypedDict):
    """Requests left in the rate limit's window; None without a rate limit."""

    requests_remaining: int | None
    resets_in_seconds: int | None


class PlanAnswer(TypedDict):
    """The caller's plan, its limits, the formats that need another plan, and the use of the rate limit."""

    plan: str
    label: str
    limits: Limits
    premium_formats: list[str]
    usage: Usage


@get("/plan")
async def plan(request: AnyRequest) -> Response[bytes]:
    """The caller's plan, its limits, and what is left of them."""
    shared = shared_of(request)
    context = context_of(request.scope)
    mine = caller_of(request).plan
    writers = shared.registry.declarations.writers
    told: PlanAnswer = {
        "plan": mine.id,
        "label": mine.label,
        "limits": mine.limits,
        "premium_formats": sorted({one.capability.format.id for one in writers if one.capability.requires}),
        "usage": {"requests_remaining": context.remaining, "resets_in_seconds": context.resets_in},
    }
    return Response(msgspec.json.encode(told), media_type="application/json", headers={"Cache-Control": "no-store"})
