"""POST /quote: weight, support and time of a print, and its price by the rate card of the operator."""

from __future__ import annotations

from typing import cast

import msgspec
from litestar import Response, post

from meshhub.http.conversions.connected import run_while_connected
from meshhub.http.description.endpoint import Endpoint
from meshhub.http.description.forms import MODEL, describe_form, list_check_structs, list_operation_structs
from meshhub.http.description.parts import FORM_CODES, Json, describe_json, read_example
from meshhub.http.endpoints.access import METERED
from meshhub.http.endpoints.single_file import input_file
from meshhub.http.headers import CACHE
from meshhub.http.intake.reception import Reception
from meshhub.http.state import AnyRequest, state_of
from meshhub.model.quote import Quote
from meshhub.model.verdict import Verdict
from meshhub.pipeline.quote_options import QuoteOptions
from meshhub.pipeline.rates import complete_options, make_quote
from meshhub.registry import Registry


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


def _describe_form(registry: Registry) -> Json:
    structs = list_check_structs(registry, QuoteOptions) + list_operation_structs(registry)
    return describe_form(registry, MODEL, ["file"], converts=False, structs=structs)


ENDPOINTS = (
    Endpoint(
        handler=quote,
        summary="What does the print cost?",
        tag="conversion",
        form=_describe_form,
        answer=lambda _: describe_json("The estimate of the print, and its price.", Quote, read_example(__name__)),
        types=(Quote,),
        codes=FORM_CODES,
        headers=(CACHE,),
    ),
)
