"""POST /convert: one file in, one file out."""

from __future__ import annotations

from litestar import post
from litestar.response import Stream

from meshhub.engine.contract import Cancel
from meshhub.http.intake.conversion_requests import Item, check
from meshhub.http.intake.names import label, stem
from meshhub.http.responses.reports import HEADER, file_header
from meshhub.http.responses.results import file_answer
from meshhub.http.state import AnyRequest, shared_of, take
from meshhub.model.notes import Note
from meshhub.model.report import Report
from meshhub.model.source import Target

_LEFT_OUT = Note(
    "companions_left_out",
    "the target format keeps materials or textures in files of their own, and one answer carries one file; "
    "send the model to /convert-many to get them all, or choose glb or 3mf",
)


@post("/convert", status_code=200, request_max_body_size=None)
async def convert(request: AnyRequest) -> Stream:
    """Convert one file."""
    shared = shared_of(request)
    taken = await take(request, "file")
    check(shared.registry, taken.order)
    upload = taken.form.files[0]
    item = Item(name=upload.name, folder="", stem=stem(label(upload.name)), path=upload.path)
    out = taken.folder / "out"
    out.mkdir()

    async def work(cancel: Cancel) -> tuple[Report, Target]:
        return await shared.conversions.one(taken.order, item, out, taken.ticket, taken.deadline, cancel)

    report, target = await shared.jobs.watched(request.receive, work)
    written = shared.registry.declarations.formats[report.target.format]
    return file_answer(
        shared.jobs,
        out / target.name,
        written.media_types[0],
        item.stem + written.extensions[0],
        {HEADER: file_header(report, (_LEFT_OUT,) if len(target.names) > 1 else ())},
    )
