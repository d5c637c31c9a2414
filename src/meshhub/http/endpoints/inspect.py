"""POST /inspect: report the content of a file, and whether it is printable."""

from __future__ import annotations

import msgspec
from litestar import Response, post

from meshhub.engine.contract import Cancel
from meshhub.http.endpoints.access import METERED
from meshhub.http.endpoints.single_file import input_file
from meshhub.http.state import AnyRequest, receive_request, state_of
from meshhub.model.report import Inspection


@post("/inspect", status_code=200, request_max_body_size=None, opt=METERED)
async def inspect(request: AnyRequest) -> Response[bytes]:
    """Inspect one file: format, unit, size, faces, bodies, holes, volume."""
    state = state_of(request)
    received = await receive_request(request, "file", "inspect")

    async def work(cancel: Cancel) -> Inspection:
        return await state.conversions.inspect(received.execution(cancel), input_file(received))

    inspection = await state.resources.run_while_connected(request.receive, work)
    return Response(msgspec.json.encode(inspection), media_type="application/json")
