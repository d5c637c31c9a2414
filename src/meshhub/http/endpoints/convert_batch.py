"""POST /convert-batch: convert a ZIP of models to a ZIP of converted models."""

from __future__ import annotations

from litestar import post

from meshhub.http.description.endpoint import Endpoint
from meshhub.http.description.forms import FILE_OPTIONS, describe_binary, describe_form, describe_zip
from meshhub.http.description.forms import REPORT as REPORT_FIELD
from meshhub.http.description.parts import CONVERT_CODES, Json
from meshhub.http.endpoints.access import METERED
from meshhub.http.endpoints.convert_many import convert_to_zip
from meshhub.http.headers import CACHE, CONVERTED, DISPOSITION, FAILED, REPORT
from meshhub.http.intake.archives import open_archive, select_entries, unpack
from meshhub.http.intake.conversion_requests import InputFile
from meshhub.http.intake.names import stem
from meshhub.http.intake.reception import Reception
from meshhub.http.responses.results import FileResponse
from meshhub.http.state import AnyRequest, ServiceState, state_of
from meshhub.model.plans import Limits
from meshhub.pipeline.purposes import PURPOSES
from meshhub.registry import Registry


@post("/convert-batch", status_code=200, request_max_body_size=None, opt=METERED)
async def convert_batch(request: AnyRequest) -> FileResponse:
    """Convert the models of an archive to one format."""
    state = state_of(request)
    async with Reception(request, state.resources, "archive") as reception:
        conversion = await reception.receive_conversion(state.registry, PURPOSES["convert"])
        files = await _unpack_upload(state, reception, conversion.caller.plan.limits)
        by_path = {file.name: file for file in files}
        name = f"{stem(reception.form.files[0].name)}-converted.zip"
        return await convert_to_zip(state, reception, conversion, by_path, name)


async def _unpack_upload(state: ServiceState, reception: Reception, limits: Limits) -> list[InputFile]:
    """Unpack the archive into a separate folder. Raises MeshhubError."""
    resources = state.resources
    archive = await resources.threads.run_archive(open_archive, reception.form.files[0].path)
    try:
        entries = select_entries(archive, limits)
        size = 2 * sum(entry.size for entry in entries)
        await resources.disk.reserve(reception.context, size, required=size)
        folder = reception.folder / "unpacked"
        folder.mkdir()
        return await resources.threads.run_archive(unpack, archive, entries, folder, state.registry, limits)
    finally:
        archive.close()


def _describe_form(registry: Registry) -> Json:
    archive = describe_binary("A ZIP of models, with the files that belong to them")
    more = REPORT_FIELD | FILE_OPTIONS
    return describe_form(registry, {"archive": archive}, ["archive", "target"], "convert", more=more)


ENDPOINTS = (
    Endpoint(
        handler=convert_batch,
        summary="Convert the models of a ZIP into another",
        tag="conversion",
        form=_describe_form,
        answer=lambda _: describe_zip(),
        codes=(*CONVERT_CODES, "too_many_files", "archive_too_large"),
        headers=(REPORT, CONVERTED, FAILED, CACHE, DISPOSITION),
    ),
)
