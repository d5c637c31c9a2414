"""POST /convert: convert one file."""

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
from meshhub.model.notes import Note
from meshhub.model.report import Report
from meshhub.model.source import Target

_COMPANIONS_LEFT_OUT = Note(
    "companions_left_out",
    "the target format stores materials or textures in separate files, and this response has one file; "
    "use /convert-many to get all files, or convert to glb or 3mf",
)


@post("/convert", status_code=200, request_max_body_size=None)
async def convert(request: AnyRequest) -> Stream:
    """Convert one file."""
    state = state_of(request)
    received = await receive_request(request, "file")
    upload = received.form.files[0]
    file = InputFile(name=upload.name, folder="", stem=stem(label(upload.name)), path=upload.path)
    folder = received.folder / "out"
    folder.mkdir()

    async def work(cancel: Cancel) -> tuple[Report, Target]:
        return await state.conversions.convert(received.execution(cancel), file, folder)

    report, target = await state.resources.run_while_connected(request.receive, work)
    target_format = state.registry.declarations.formats[report.target.format]
    return file_response(
        state.resources,
        folder / target.name,
        target_format.media_types[0],
        file.stem + target_format.extensions[0],
        {REPORT: file_header(report, (_COMPANIONS_LEFT_OUT,) if len(target.names) > 1 else ())},
    )
