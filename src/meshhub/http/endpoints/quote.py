"""POST /quote: weight, support and time of a print, and its price by the rate card of the operator."""

from __future__ import annotations

from typing import cast

from litestar import Response, post

from meshhub.http.description.endpoint import Endpoint
from meshhub.http.description.forms import MODEL, describe_form
from meshhub.http.description.parts import FORM_CODES, describe_json, read_example
from meshhub.http.endpoints.access import METERED
from meshhub.http.endpoints.single_file import run_model
from meshhub.http.headers import CACHE, LANGUAGE
from meshhub.http.state import AnyRequest, state_of
from meshhub.http.translating import answer_json
from meshhub.model.quote import Quote
from meshhub.model.verdict import Verdict
from meshhub.pipeline.purposes import PURPOSES
from meshhub.pipeline.rates import complete_options, make_quote


@post("/quote", status_code=200, request_max_body_size=None, opt=METERED)
async def quote(request: AnyRequest) -> Response[bytes]:
    """Quote one file, after the operations that are requested."""
    state = state_of(request)
    card, declarations = state.rate_card, state.registry.declarations
    done = await run_model(
        request, PURPOSES["quote"], complete=lambda options: complete_options(card, options, declarations)
    )
    return answer_json(request, make_quote(cast(Verdict, done.result), card, done.conversion.request.options))


ENDPOINTS = (
    Endpoint(
        handler=quote,
        summary="What does the print cost?",
        tag="conversion",
        form=lambda registry: describe_form(registry, MODEL, ["file"], "quote"),
        answer=lambda _: describe_json("The estimate of the print, and its price.", Quote, read_example(__name__)),
        types=(Quote,),
        codes=FORM_CODES,
        headers=(CACHE, LANGUAGE),
    ),
)
