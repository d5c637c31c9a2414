"""POST /render: draw a picture of one file, or of the model before and after operations."""

from __future__ import annotations

from litestar import post

from meshhub.http.endpoints.access import METERED
from meshhub.http.endpoints.single_file import convert_file
from meshhub.http.headers import REPORT
from meshhub.http.responses.reports import file_header
from meshhub.http.responses.results import FileResponse, file_response
from meshhub.http.state import AnyRequest, state_of


@post("/render", status_code=200, request_max_body_size=None, opt=METERED)
async def render(request: AnyRequest) -> FileResponse:
    """Draw a picture of one file, or of the model before and after operations, as PNG."""
    picture = await convert_file(request, "render")
    headers = {REPORT: file_header(picture.report)}
    return file_response(state_of(request).resources.threads, picture.path, "image/png", picture.stem + ".png", headers)
