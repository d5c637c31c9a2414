"""GET /supported: formats, operations and options of the registry."""

from __future__ import annotations

import hashlib

import msgspec
from litestar import Response, get

from meshhub.http.context import caller_of, context_of
from meshhub.http.description.endpoint import Endpoint
from meshhub.http.description.parts import LANGUAGE_PARAMETERS, describe_json, read_example
from meshhub.http.headers import ETAG, LANGUAGE
from meshhub.http.responses.conditions import matches
from meshhub.http.state import AnyRequest, state_of
from meshhub.supported import Supported
from meshhub.supported import supported as list_supported


@get("/supported")
async def supported(request: AnyRequest) -> Response[bytes]:
    """Return the formats, operations and options for this caller."""
    state = state_of(request)
    language = context_of(request.scope).texts.language
    listed = list_supported(state.registry, caller_of(request), language, state.rate_card)
    body = msgspec.json.encode(listed)
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {"ETag": etag, "Cache-Control": "private, no-cache", "Vary": "X-Api-Key, Accept-Language"}
    if matches(request.headers.get("if-none-match", ""), etag):
        return Response(b"", status_code=304, media_type="application/json", headers=headers)
    headers["Content-Language"] = listed["language"]
    return Response(body, media_type="application/json", headers=headers)


ENDPOINTS = (
    Endpoint(
        handler=supported,
        summary="Formats, operations and options",
        tag="description",
        answer=lambda _: describe_json(
            "Formats, operations and options for this caller.", Supported, read_example(__name__)
        ),
        others={304: lambda _: {"description": "Nothing has changed since the ETag in If-None-Match."}},
        types=(Supported,),
        headers=(ETAG, LANGUAGE),
        parameters=LANGUAGE_PARAMETERS,
    ),
)
