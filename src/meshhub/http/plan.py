"""GET /plan: what the caller may do, and how much of it is left."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Response, get

from meshhub.http.context import context_of
from meshhub.http.shared import AnyRequest, caller_of, shared_of


@get("/plan")
async def plan(request: AnyRequest) -> Response[bytes]:
    """The caller's plan, its limits, and what is left of them."""
    shared = shared_of(request)
    context = context_of(request.scope)
    mine = caller_of(request).plan
    limits = mine.limits
    writers = shared.registry.declarations.writers
    told: dict[str, Any] = {
        "plan": mine.id,
        "label": mine.label,
        "limits": {
            "max_file_bytes": limits.max_file_bytes,
            "max_batch_files": limits.max_batch_files,
            "requests_per_minute": limits.requests_per_minute,
            "conversion_timeout_seconds": limits.conversion_timeout_seconds,
            "max_request_bytes": limits.max_request_bytes,
            "request_timeout_seconds": limits.request_timeout_seconds,
        },
        "premium_formats": sorted({one.capability.format.id for one in writers if one.capability.requires}),
        "usage": {"requests_remaining": context.remaining, "resets_in_seconds": context.resets_in},
    }
    return Response(msgspec.json.encode(told), media_type="application/json", headers={"Cache-Control": "no-store"})
