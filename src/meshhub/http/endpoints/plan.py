"""GET /plan: the caller's plan, its limits, and the use of the rate limit."""

from __future__ import annotations

from typing import TypedDict

import msgspec
from litestar import Response, get
from msgspec import structs

from meshhub.http.context import context_of
from meshhub.http.state import AnyRequest, caller_of, state_of
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
    """Return the caller's plan, its limits, and the use of the rate limit."""
    context = context_of(request.scope)
    caller_plan = caller_of(request).plan
    writers = state_of(request).registry.declarations.writers
    payload: PlanAnswer = {
        "plan": caller_plan.id,
        "label": caller_plan.label,
        "limits": structs.replace(caller_plan.limits, max_request_bytes=caller_plan.limits.request_bytes),
        "premium_formats": sorted({writer.capability.format.id for writer in writers if writer.capability.requires}),
        "usage": {"requests_remaining": context.remaining, "resets_in_seconds": context.resets_in},
    }
    return Response(msgspec.json.encode(payload), media_type="application/json", headers={"Cache-Control": "no-store"})
