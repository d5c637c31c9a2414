"""POST /inspect: report the content of a file, and whether it is printable."""

from __future__ import annotations

from litestar import Response, post

from meshhub.http.description.endpoint import Endpoint
from meshhub.http.description.forms import MODEL, describe_form
from meshhub.http.description.parts import FORM_CODES, describe_json, read_example
from meshhub.http.endpoints.access import METERED
from meshhub.http.endpoints.single_file import run_model
from meshhub.http.headers import CACHE, LANGUAGE
from meshhub.http.state import AnyRequest
from meshhub.http.translating import answer_json
from meshhub.model.report import Inspection
from meshhub.pipeline.purposes import PURPOSES


@post("/inspect", status_code=200, request_max_body_size=None, opt=METERED)
async def inspect(request: AnyRequest) -> Response[bytes]:
    """Inspect one file: format, unit, size, faces, bodies, holes, volume."""
    return answer_json(request, (await run_model(request, PURPOSES["inspect"])).result)


ENDPOINTS = (
    Endpoint(
        handler=inspect,
        summary="Describe a model",
        tag="conversion",
        form=lambda registry: describe_form(registry, MODEL, ["file"], "inspect"),
        answer=lambda _: describe_json(
            "Size, faces, bodies, holes, volume of the model.", Inspection, read_example(__name__)
        ),
        types=(Inspection,),
        codes=FORM_CODES,
        headers=(CACHE, LANGUAGE),
    ),
)
