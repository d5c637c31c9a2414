"""POST /convert-batch: convert a ZIP of models to a ZIP of converted models."""

from __future__ import annotations

from pathlib import Path

from litestar import post

from meshhub.http.endpoints.access import METERED
from meshhub.http.endpoints.convert_many import convert_to_zip
from meshhub.http.intake.archives import open_archive, select_entries, unpack
from meshhub.http.intake.conversion_requests import InputFile
from meshhub.http.intake.names import stem
from meshhub.http.responses.results import FileResponse
from meshhub.http.state import AnyRequest, ReceivedRequest, ServiceState, receive_request, state_of


@post("/convert-batch", status_code=200, request_max_body_size=None, opt=METERED)
async def convert_batch(request: AnyRequest) -> FileResponse:
    """Convert the models of an archive to one format."""
    state = state_of(request)
    received = await receive_request(request, "archive")
    upload = received.form.files[0]
    files = await _unpack_upload(state, received, upload.path)
    by_path = {file.name: file for file in files}
    return await convert_to_zip(request, received, by_path, f"{stem(upload.name)}-converted.zip")


async def _unpack_upload(state: ServiceState, received: ReceivedRequest, path: Path) -> list[InputFile]:
    """Unpack the archive into a folder of its own. Raises MeshhubError."""
    resources, limits = state.resources, received.conversion.caller.plan.limits
    archive = await resources.run_archive(open_archive, path)
    try:
        entries = select_entries(archive, limits)
        await resources.reserve(received.context, 2 * sum(entry.size for entry in entries))
        folder = received.folder / "unpacked"
        folder.mkdir()
        return await resources.run_archive(unpack, archive, entries, folder, state.registry, limits)
    finally:
        archive.close()
