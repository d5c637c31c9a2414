"""POST /explain: explain conversions of files that are described instead of sent."""

from __future__ import annotations

import msgspec
from litestar import Response, post

from meshhub.http.context import caller_of
from meshhub.http.conversions.explanations import explain as explain_files
from meshhub.http.intake.explanation_requests import parse_explanation
from meshhub.http.intake.reception import Reception
from meshhub.http.state import AnyRequest, state_of


@post("/explain", status_code=200, request_max_body_size=None)
async def explain(request: AnyRequest) -> Response[bytes]:
    """Return the chain of each conversion, its possible losses, and what the caller's plan does not allow."""
    state = state_of(request)
    async with Reception(request, state.resources, None) as reception:
        files = parse_explanation(await reception.receive(state.registry))
        # off the event loop, because reviews of plug-ins are called, and in turns of the callers
        explanation = await state.resources.threads.run_entitlement(
            reception.context.identity, explain_files, state.registry, files, caller_of(request)
        )
    return Response(msgspec.json.encode(explanation), media_type="application/json")
