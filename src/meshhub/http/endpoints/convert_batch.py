"""POST /convert-batch: a ZIP of models in, a ZIP of converted models out."""

from __future__ import annotations

from pathlib import Path

from litestar import post
from litestar.response import Stream

from meshhub.http.endpoints.convert_many import converted
from meshhub.http.intake import archives as bundles
from meshhub.http.intake.conversion_requests import Item, check
from meshhub.http.intake.names import stem
from meshhub.http.state import AnyRequest, Shared, Taken, shared_of, take


@post("/convert-batch", status_code=200, request_max_body_size=None)
async def convert_batch(request: AnyRequest) -> Stream:
    """Convert the models of an archive to one format."""
    shared = shared_of(request)
    taken = await take(request, "archive")
    report = check(shared.registry, taken.order)
    upload = taken.form.files[0]
    items = await _unpacked(shared, taken, upload.path)
    return await converted(request, shared, taken, items, f"{stem(upload.name)}-converted.zip", report=report)


async def _unpacked(shared: Shared, taken: Taken, path: Path) -> list[Item]:
    """The archive's files in a folder of their own. Raises MeshhubError."""
    limits = taken.order.caller.plan.limits
    archive = await shared.jobs.archive(bundles.opened, path)
    try:
        entries = bundles.wanted(archive, limits)
        await shared.jobs.reserve(taken.context, 2 * sum(entry.size for entry in entries))
        folder = taken.folder / "unpacked"
        folder.mkdir()
        return await shared.jobs.archive(bundles.unpacked, archive, entries, folder, shared.registry, limits)
    finally:
        archive.close()
