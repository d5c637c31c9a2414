"""POST /quote: weight, support and time of a print, and its price by the rate card of the operator."""

from __future__ import annotations

from typing import cast

import msgspec
from litestar import Response, post

from meshhub.http.conversions.connected import run_while_connected
from meshhub.http.endpoints.access import METERED
from meshhub.http.endpoints.single_file import input_file
from meshhub.http.intake.reception import Reception
from meshhub.http.state import AnyRequest, state_of
from meshhub.model.verdict import Verdict
from meshhub.pipeline.rates import complete_options, make_quote


@post("/quote", status_code=200, request_max_body_size=None, opt=METERED)
async def quote(request: AnyRequest) -> Response[bytes]:
    """Quote one file, after the operations that are requested."""
    state = state_of(request)
    async with Reception(request, state.resources, "model") as reception:
        conversion = await reception.receive_conversion(
            state.registry,
            "quote",
            lambda options: complete_options(state.rate_card, options, state.registry.declarations),
        )
        file = input_file(reception.form)
        verdict = await run_while_connected(
            reception, conversion, lambda execution: state.conversions.examine(execution, file)
        )
    result = make_quote(cast(Verdict, verdict), state.rate_card, conversion.request.options)
    return Response(msgspec.json.encode(result), media_type="application/json")
