"""POST /convert-many: several files in, one ZIP out."""

from __future__ import annotations

from litestar import post
from litestar.response import Stream

from meshhub.engine.contract import Cancel
from meshhub.http.intake.conversion_requests import Item, Outcome, check
from meshhub.http.intake.names import stem
from meshhub.http.responses.results import batch_answer, packed, refuse_if_all_failed
from meshhub.http.state import AnyRequest, Shared, Taken, shared_of, take


@post("/convert-many", status_code=200, request_max_body_size=None)
async def convert_many(request: AnyRequest) -> Stream:
    """Convert several files to one format."""
    shared = shared_of(request)
    taken = await take(request, "files")
    report = check(shared.registry, taken.order)
    items = [Item(name=one.name, folder="", stem=stem(one.name), path=one.path) for one in taken.form.files]
    return await converted(request, shared, taken, items, "converted.zip", report=report)


async def converted(
    request: AnyRequest, shared: Shared, taken: Taken, items: list[Item], name: str, *, report: bool
) -> Stream:
    """The ZIP of these files, converted, with `report.json` when it is wanted. Raises ServiceError when all fail."""

    async def work(cancel: Cancel) -> list[Outcome]:
        return await shared.conversions.many(taken.order, items, taken.folder, taken.ticket, taken.deadline, cancel)

    outcomes = await shared.jobs.watched(request.receive, work)
    refuse_if_all_failed(outcomes)
    written = shared.registry.declarations.format_of(taken.order.request.target or "")
    assert written is not None
    path = taken.folder / "result.zip"
    await shared.jobs.archive(packed, path, outcomes, written.extensions[0], report)
    return batch_answer(shared.jobs, path, name, outcomes)
