"""POST /render: draw a picture of one file, or of the model before and after operations."""

from __future__ import annotations

from litestar import post

from meshhub.http.description.endpoint import Endpoint
from meshhub.http.description.forms import MODEL, describe_form
from meshhub.http.description.parts import FORM_CODES, describe_files
from meshhub.http.endpoints.access import METERED
from meshhub.http.endpoints.single_file import send_drawing
from meshhub.http.headers import CACHE, DISPOSITION, REPORT
from meshhub.http.responses.results import FileResponse
from meshhub.http.state import AnyRequest


@post("/render", status_code=200, request_max_body_size=None, opt=METERED)
async def render(request: AnyRequest) -> FileResponse:
    """Draw a picture of one file, or of the model before and after operations, as PNG."""
    return await send_drawing(request, "render")


ENDPOINTS = (
    Endpoint(
        handler=render,
        summary="Draw a picture",
        tag="conversion",
        form=lambda registry: describe_form(registry, MODEL, ["file"], "render"),
        answer=lambda _: describe_files(
            "The picture; with operations, of the model before and after them.", ("image/png",)
        ),
        codes=FORM_CODES,
        headers=(REPORT, CACHE, DISPOSITION),
    ),
)
