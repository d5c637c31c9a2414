"""POST /preview: show one model with its defects, after the operations that are requested."""

from __future__ import annotations

from litestar import post

from meshhub.http.description.endpoint import Endpoint
from meshhub.http.description.forms import MODEL, describe_form
from meshhub.http.description.parts import CONVERT_CODES, Json, describe_files
from meshhub.http.endpoints.access import METERED
from meshhub.http.endpoints.single_file import send_drawing
from meshhub.http.headers import CACHE, DISPOSITION, REPORT
from meshhub.http.responses.results import FileResponse
from meshhub.http.state import AnyRequest
from meshhub.registry import Registry


@post("/preview", status_code=200, request_max_body_size=None, opt=METERED)
async def preview(request: AnyRequest) -> FileResponse:
    """Return a GLB of one model with few triangles, its defects and its facts, such as the size of a target's file."""
    return await send_drawing(request, "preview")


def _describe_form(registry: Registry) -> Json:
    target = {
        "type": "string",
        "title": "Target format",
        "description": "Format of the conversion whose file is measured, for the facts.",
        "minLength": 1,
    }
    return describe_form(registry, MODEL, ["file"], "preview", more={"target": target})


ENDPOINTS = (
    Endpoint(
        handler=preview,
        summary="Show a model and its defects",
        tag="conversion",
        form=_describe_form,
        answer=lambda _: describe_files(
            "The model as GLB, after the operations, with its defects and facts.", ("model/gltf-binary",)
        ),
        codes=CONVERT_CODES,
        headers=(REPORT, CACHE, DISPOSITION),
    ),
)
