"""POST /combine: convert several files to one."""

from __future__ import annotations

from litestar import post

from meshhub.http.conversions.connected import run_while_connected
from meshhub.http.description.endpoint import Endpoint
from meshhub.http.description.forms import describe_binary, describe_converted, describe_form
from meshhub.http.description.parts import CONVERT_CODES, Json
from meshhub.http.endpoints.access import METERED
from meshhub.http.headers import CACHE, DISPOSITION, REPORT
from meshhub.http.intake.combined_files import combine_files
from meshhub.http.intake.conversion_requests import FileResult
from meshhub.http.intake.reception import Reception
from meshhub.http.responses.results import FileResponse, model_response
from meshhub.http.state import AnyRequest, state_of
from meshhub.pipeline.purposes import PURPOSES
from meshhub.registry import Registry


@post("/combine", status_code=200, request_max_body_size=None, opt=METERED)
async def combine(request: AnyRequest) -> FileResponse:
    """Convert several files to one, such as the objects of one bed."""
    state = state_of(request)
    async with Reception(request, state.resources, "files") as reception:
        conversion = await reception.receive_conversion(state.registry, PURPOSES["combine"])
        # `file_options` have no meaning here, because all files share one chain
        conversion.assign_options({}, state.registry)
        file = await state.resources.threads.run_archive(combine_files, reception.form.files, state.registry)
        folder = reception.folder / "out"
        report, target = await run_while_connected(
            reception, conversion, lambda execution: state.conversions.convert(execution, file, folder)
        )
    return await model_response(state.resources.threads, FileResult(file, report, target), state.registry)


def _describe_form(registry: Registry) -> Json:
    files = {"type": "array", "items": describe_binary("A model, or a file that belongs to one"), "minItems": 1}
    return describe_form(registry, {"files": files | {"title": "The models"}}, ["files", "target"], "combine")


ENDPOINTS = (
    Endpoint(
        handler=combine,
        summary="Convert several files to one",
        tag="conversion",
        form=_describe_form,
        answer=lambda registry: describe_converted(registry, "One file with the objects of all models"),
        codes=(*CONVERT_CODES, "too_many_files"),
        headers=(REPORT, CACHE, DISPOSITION),
    ),
)
