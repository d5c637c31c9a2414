"""POST /convert: convert one file."""

from __future__ import annotations

from litestar import post

from meshhub.http.endpoints.access import METERED
from meshhub.http.endpoints.single_file import convert_model
from meshhub.http.responses.results import FileResponse, model_response
from meshhub.http.state import AnyRequest, state_of


@post("/convert", status_code=200, request_max_body_size=None, opt=METERED)
async def convert(request: AnyRequest) -> FileResponse:
    """Convert one file."""
    state = state_of(request)
    result = await convert_model(request, "convert")
    return await model_response(state.resources.threads, result, state.registry)
