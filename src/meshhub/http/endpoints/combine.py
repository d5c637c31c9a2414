"""POST /combine: convert several files to one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from litestar import post

from meshhub.http.conversions.connected import run_while_connected
from meshhub.http.endpoints.access import METERED
from meshhub.http.headers import REPORT
from meshhub.http.intake.conversion_requests import InputFile
from meshhub.http.intake.names import label, stem
from meshhub.http.intake.reception import Reception
from meshhub.http.intake.uploads import Form
from meshhub.http.responses.reports import file_header
from meshhub.http.responses.results import FileResponse, file_response
from meshhub.http.state import AnyRequest, state_of
from meshhub.registry import Registry


@post("/combine", status_code=200, request_max_body_size=None, opt=METERED)
async def combine(request: AnyRequest) -> FileResponse:
    """Convert several files to one, such as the objects of one bed."""
    state = state_of(request)
    async with Reception(request, state.resources, "files") as reception:
        conversion = await reception.receive_conversion(state.registry)
        models = _find_models(reception.form, state.registry)
        # `file_options` have no meaning here, because all files share one chain
        conversion.assign_options({}, state.registry)
        file = replace(models[0], others=tuple(models[1:]))
        folder = reception.folder / "out"
        folder.mkdir()
        report, target = await run_while_connected(
            reception, conversion, lambda execution: state.conversions.convert(execution, file, folder)
        )
    target_format = state.registry.declarations.formats[report.target.format]
    return file_response(
        state.resources.threads,
        folder / target.name,
        target_format.media_types[0],
        file.stem + target_format.extensions[0],
        {REPORT: file_header(report, has_companions=len(target.names) > 1)},
    )


def _find_models(form: Form, registry: Registry) -> Sequence[InputFile]:
    """Return the models of a form; files that no reader reads by their extension are companions of all models."""
    readers = registry.declarations.readers
    extensions = {extension for reader in readers for extension in reader.capability.format.extensions}
    companions = {
        upload.name: upload.path for upload in form.files if PurePosixPath(upload.name.lower()).suffix not in extensions
    }
    models = [upload for upload in form.files if upload.name not in companions] or form.files
    return [
        InputFile(
            name=model.name,
            folder="",
            stem=stem(label(model.name)),
            path=model.path,
            companions={name: path for name, path in companions.items() if name != model.name},
        )
        for model in models
    ]
