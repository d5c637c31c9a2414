"""POST /inspect: what a file holds, and whether it is printable."""

from __future__ import annotations

import msgspec
from litestar import Response, post

from meshhub.engine.contract import Cancel
from meshhub.http.intake.conversion_requests import Item
from meshhub.http.state import AnyRequest, shared_of, take
from meshhub.model.report import Inspection


@post("/inspect", status_code=200, request_max_body_size=None)
async def inspect(request: AnyRequest) -> Response[bytes]:
    """Look at one file: format, unit, size, faces, bodies, holes, volume."""
    shared = shared_of(request)
    taken = await take(request, "file", converts=False)
    upload = taken.form.files[0]
    item = Item(name=upload.name, folder="", stem="", path=upload.path)

    async def work(cancel: Cancel) -> Inspection:
        return await shared.conversions.inspected(taken.order, item, taken.ticket, taken.deadline, cancel)

    found = await shared.jobs.watched(request.receive, work)
    return Response(msgspec.json.encode(found), media_type="application/json")
