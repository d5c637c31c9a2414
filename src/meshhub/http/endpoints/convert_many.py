"""POST /convert-many: convert several files to one ZIP."""

from __future__ import annotations

from collections.abc import Mapping

from litestar import post

from meshhub.http.conversions.connected import run_while_connected
from meshhub.http.description.endpoint import Endpoint
from meshhub.http.description.forms import FILE_OPTIONS, describe_binary, describe_form, describe_zip
from meshhub.http.description.forms import REPORT as REPORT_FIELD
from meshhub.http.description.parts import CONVERT_CODES, Json
from meshhub.http.endpoints.access import METERED
from meshhub.http.headers import CACHE, CONVERTED, DISPOSITION, FAILED, REPORT
from meshhub.http.intake.conversion_requests import ConversionRequest, InputFile
from meshhub.http.intake.names import stem
from meshhub.http.intake.reception import Reception
from meshhub.http.responses.results import FileResponse, batch_response, pack_batch
from meshhub.http.state import AnyRequest, ServiceState, state_of
from meshhub.pipeline.purposes import PURPOSES
from meshhub.registry import Registry


@post("/convert-many", status_code=200, request_max_body_size=None, opt=METERED)
async def convert_many(request: AnyRequest) -> FileResponse:
    """Convert several files to one format."""
    state = state_of(request)
    async with Reception(request, state.resources, "files") as reception:
        conversion = await reception.receive_conversion(state.registry, PURPOSES["convert"])
        files = {
            str(number): InputFile(name=upload.name, folder="", stem=stem(upload.name), path=upload.path)
            for number, upload in enumerate(reception.form.files)
        }
        return await convert_to_zip(state, reception, conversion, files, "converted.zip")


async def convert_to_zip(
    state: ServiceState, reception: Reception, conversion: ConversionRequest, sent: Mapping[str, InputFile], name: str
) -> FileResponse:
    """Convert files to a ZIP, with `report.json` if requested.

    Args:
        reception: Reception of the form.
        conversion: Target and options of the form.
        sent: Files by their key in `file_options`.
    Raises:
        InvalidOption: An option of a file is invalid.
        ServiceError: All files fail.
    """
    files = conversion.assign_options(sent, state.registry)
    results = await run_while_connected(
        reception, conversion, lambda execution: state.conversions.convert_batch(execution, files, reception.folder)
    )
    threads = state.resources.threads
    path = await pack_batch(threads, reception.folder, results, conversion, reception.context.texts)
    return batch_response(threads, path, name, results)


def _describe_form(registry: Registry) -> Json:
    files = {"type": "array", "items": describe_binary("A model"), "minItems": 1, "title": "The models"}
    more = REPORT_FIELD | FILE_OPTIONS
    return describe_form(registry, {"files": files}, ["files", "target"], "convert", more=more)


ENDPOINTS = (
    Endpoint(
        handler=convert_many,
        summary="Convert several files into one ZIP",
        tag="conversion",
        form=_describe_form,
        answer=lambda _: describe_zip(),
        codes=(*CONVERT_CODES, "too_many_files"),
        headers=(REPORT, CONVERTED, FAILED, CACHE, DISPOSITION),
    ),
)
