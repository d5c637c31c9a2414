"""POST /convert: convert one file."""

from __future__ import annotations

from litestar import post

from meshhub.http.endpoints.access import METERED
from meshhub.http.endpoints.single_file import convert_file
from meshhub.http.headers import REPORT
from meshhub.http.responses.reports import file_header
from meshhub.http.responses.results import FileResponse, file_response
from meshhub.http.state import AnyRequest, state_of


@post("/convert", status_code=200, request_max_body_size=None, opt=METERED)
async def convert(request: AnyRequest) -> FileResponse:
    """Convert one file."""
    state = state_of(request)
    result = await convert_file(request, "convert")
    target_format = state.registry.declarations.formats[result.report.target.format]
    return file_response(
        state.resources.threads,
        result.path,
        target_format.media_types[0],
        result.stem + target_format.extensions[0],
        {REPORT: file_header(result.report, has_companions=result.has_companions)},
    )
