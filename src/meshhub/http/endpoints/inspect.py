"""POST /inspect: report the content of a file, and whether it is printable."""

from __future__ import annotations

import msgspec
from litestar import Response, post

from meshhub.http.conversions.connected import run_while_connected
from meshhub.http.description.endpoint import Endpoint
from meshhub.http.description.forms import MODEL, describe_form
from meshhub.http.description.parts import FORM_CODES, describe_json, read_example
from meshhub.http.endpoints.access import METERED
from meshhub.http.endpoints.single_file import input_file
from meshhub.http.headers import CACHE
from meshhub.http.intake.reception import Reception
from meshhub.http.state import AnyRequest, state_of
from meshhub.model.report import Inspection


@post("/inspect", status_code=200, request_max_body_size=None, opt=METERED)
async def inspect(request: AnyRequest) -> Response[bytes]:
    """Inspect one file: format, unit, size, faces, bodies, holes, volume."""
    state = state_of(request)
    async with Reception(request, state.resources, "model") as reception:
        conversion = await reception.receive_conversion(state.registry, "inspect")
        file = input_file(reception.form)
        inspection = await run_while_connected(
            reception, conversion, lambda execution: state.conversions.examine(execution, file)
        )
    return Response(msgspec.json.encode(inspection), media_type="application/json")


ENDPOINTS = (
    Endpoint(
        handler=inspect,
        summary="Describe a model",
        tag="conversion",
        form=lambda registry: describe_form(registry, MODEL, ["file"], converts=False),
        answer=lambda _: describe_json(
            "Size, faces, bodies, holes, volume of the model.", Inspection, read_example(__name__)
        ),
        types=(Inspection,),
        codes=FORM_CODES,
        headers=(CACHE,),
    ),
)
