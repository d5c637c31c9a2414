"""POST /convert-many: convert several files to one ZIP."""

from __future__ import annotations

from collections.abc import Mapping

from litestar import post

from meshhub.engine.contract import Cancel
from meshhub.http.endpoints.access import METERED
from meshhub.http.intake.conversion_requests import FileResult, InputFile
from meshhub.http.intake.names import stem
from meshhub.http.responses.results import FileResponse, batch_response, pack_results, raise_if_all_failed
from meshhub.http.state import AnyRequest, ReceivedRequest, receive_request, state_of


@post("/convert-many", status_code=200, request_max_body_size=None, opt=METERED)
async def convert_many(request: AnyRequest) -> FileResponse:
    """Convert several files to one format."""
    received = await receive_request(request, "files")
    files = {
        str(number): InputFile(name=upload.name, folder="", stem=stem(upload.name), path=upload.path)
        for number, upload in enumerate(received.form.files)
    }
    return await convert_to_zip(request, received, files, "converted.zip")


async def convert_to_zip(
    request: AnyRequest, received: ReceivedRequest, sent: Mapping[str, InputFile], name: str
) -> FileResponse:
    """Convert files to a ZIP, with `report.json` if requested.

    Args:
        request: The request.
        received: Its form.
        sent: Files by their key in `file_options`.
        name: Name of the ZIP.
    Raises:
        InvalidOption: An option of a file is invalid.
        ServiceError: All files fail.
    """
    state = state_of(request)
    files = received.conversion.assign_options(sent, state.registry)

    async def work(cancel: Cancel) -> list[FileResult]:
        return await state.conversions.convert_batch(received.execution(cancel), files, received.folder)

    results = await state.resources.run_while_connected(request.receive, work)
    raise_if_all_failed(results)
    target_format = state.registry.declarations.format_of(received.conversion.request.target or "")
    assert target_format is not None
    path, wants_report = received.folder / "result.zip", received.conversion.wants_report
    await state.resources.run_archive(pack_results, path, results, target_format, wants_report)
    return batch_response(state.resources, path, name, results)
