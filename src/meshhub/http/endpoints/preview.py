"""POST /preview: show one model with its defects, after the operations that are requested."""

from __future__ import annotations

from litestar import post

from meshhub.http.endpoints.access import METERED
from meshhub.http.endpoints.single_file import convert_file
from meshhub.http.headers import REPORT
from meshhub.http.responses.reports import file_header
from meshhub.http.responses.results import FileResponse, file_response
from meshhub.http.state import AnyRequest, state_of


@post("/preview", status_code=200, request_max_body_size=None, opt=METERED)
async def preview(request: AnyRequest) -> FileResponse:
    """Return a GLB of one model with few triangles, its defects and its facts, such as the size of a target's file."""
    result = await convert_file(request, "preview")
    headers = {REPORT: file_header(result.report)}
    return file_response(
        state_of(request).resources.threads, result.path, "model/gltf-binary", result.stem + ".glb", headers
    )
