"""POST /convert: convert one file."""

from __future__ import annotations

from litestar import post

from meshhub.http.description.endpoint import Endpoint
from meshhub.http.description.forms import describe_binary, describe_converted, describe_form
from meshhub.http.description.parts import CONVERT_CODES
from meshhub.http.endpoints.access import METERED
from meshhub.http.endpoints.single_file import run_model
from meshhub.http.headers import CACHE, DISPOSITION, REPORT
from meshhub.http.responses.results import FileResponse, model_response
from meshhub.http.state import AnyRequest, state_of
from meshhub.pipeline.purposes import PURPOSES


@post("/convert", status_code=200, request_max_body_size=None, opt=METERED)
async def convert(request: AnyRequest) -> FileResponse:
    """Convert one file."""
    state = state_of(request)
    done = await run_model(request, PURPOSES["convert"], field="file")
    return await model_response(state.resources.threads, done.converted, state.registry)


ENDPOINTS = (
    Endpoint(
        handler=convert,
        summary="Convert one file",
        tag="conversion",
        form=lambda registry: describe_form(
            registry, {"file": describe_binary("The model")}, ["file", "target"], "convert"
        ),
        answer=lambda registry: describe_converted(registry, "The converted file"),
        codes=CONVERT_CODES,
        headers=(REPORT, CACHE, DISPOSITION),
    ),
)
