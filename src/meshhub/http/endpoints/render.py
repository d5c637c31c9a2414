"""POST /render: draw a picture of one file."""

from __future__ import annotations

from litestar import post
from litestar.response import Stream

from meshhub.engine.contract import Cancel
from meshhub.http.headers import REPORT
from meshhub.http.intake.conversion_requests import InputFile
from meshhub.http.intake.names import label, stem
from meshhub.http.responses.reports import file_header
from meshhub.http.responses.results import file_response
from meshhub.http.state import AnyRequest, receive_request, state_of
from meshhub.model.report import Report
from meshhub.model.source import Target


@post("/render", status_code=200, request_max_body_size=None)
async def render(request: AnyRequest) -> Stream:
    """Draw a picture of one file, as PNG."""
    state = state_of(request)
    received = await receive_request(request, "file", "render")
    upload = received.form.files[0]
    file = InputFile(name=upload.name, folder="", stem=stem(label(upload.name)), path=upload.path)
    folder = received.folder / "out"
    folder.mkdir()

    async def work(cancel: Cancel) -> tuple[Report, Target]:
        return await state.conversions.render(received.execution(cancel), file, folder)

    report, target = await state.resources.run_while_connected(request.receive, work)
    headers = {REPORT: file_header(report)}
    return file_response(state.resources, folder / target.name, "image/png", file.stem + ".png", headers)
