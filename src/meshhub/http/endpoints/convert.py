"""POST /convert: convert one file."""

from __future__ import annotations

from litestar import post
from litestar.response import Stream

from meshhub.http.endpoints.single_file import convert_file
from meshhub.http.headers import REPORT
from meshhub.http.responses.reports import file_header
from meshhub.http.responses.results import file_response
from meshhub.http.state import AnyRequest, state_of
from meshhub.model.notes import Note

_COMPANIONS_LEFT_OUT = Note(
    "companions_left_out",
    "the target format stores materials or textures in separate files, and this response has one file; "
    "use /convert-many to get all files, or convert to glb or 3mf",
)


@post("/convert", status_code=200, request_max_body_size=None)
async def convert(request: AnyRequest) -> Stream:
    """Convert one file."""
    state = state_of(request)
    result = await convert_file(request, "convert")
    target_format = state.registry.declarations.formats[result.report.target.format]
    return file_response(
        state.resources,
        result.path,
        target_format.media_types[0],
        result.stem + target_format.extensions[0],
        {REPORT: file_header(result.report, (_COMPANIONS_LEFT_OUT,) if result.has_companions else ())},
    )
