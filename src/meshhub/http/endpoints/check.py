"""POST /check: whether a model prints, what is wrong with it, where, and what to do."""

from __future__ import annotations

import msgspec
from litestar import Response, post

from meshhub.http.conversions.connected import run_while_connected
from meshhub.http.endpoints.access import METERED
from meshhub.http.endpoints.single_file import input_file
from meshhub.http.intake.reception import Reception
from meshhub.http.state import AnyRequest, state_of


@post("/check", status_code=200, request_max_body_size=None, opt=METERED)
async def check(request: AnyRequest) -> Response[bytes]:
    """Check one file, after the operations that are requested."""
    state = state_of(request)
    async with Reception(request, state.resources, "file") as reception:
        conversion = await reception.receive_conversion(state.registry, "check")
        file = input_file(reception.form)
        verdict = await run_while_connected(
            reception, conversion, lambda execution: state.conversions.examine(execution, file)
        )
    return Response(msgspec.json.encode(verdict), media_type="application/json")
