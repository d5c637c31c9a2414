"""Handle requests with one model, for `/convert`, `/render`, `/preview` and `/inspect`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from meshhub.http.conversions.connected import run_while_connected
from meshhub.http.intake.conversion_requests import FileResult, InputFile
from meshhub.http.intake.names import label, stem
from meshhub.http.intake.reception import Reception
from meshhub.http.intake.uploads import Form
from meshhub.http.state import AnyRequest, state_of
from meshhub.model.chain import Purpose
from meshhub.model.report import Report


@dataclass(frozen=True)
class ConvertedFile:
    """Result of a conversion, or a picture.

    Attributes:
        stem: Name of the uploaded file without its extension.
    """

    report: Report
    path: Path
    stem: str


async def convert_file(request: AnyRequest, purpose: Purpose) -> ConvertedFile:
    """Receive a request with one model, and draw it. Raises MeshhubError, ClientGone."""
    result = await convert_model(request, purpose)
    assert result.report is not None and result.target is not None and result.target.folder is not None
    return ConvertedFile(result.report, result.target.folder / result.target.name, result.file.stem)


async def convert_model(request: AnyRequest, purpose: Purpose) -> FileResult:
    """Receive a request with one model, and convert it. Raises MeshhubError, ClientGone."""
    state = state_of(request)
    async with Reception(request, state.resources, "file" if purpose == "convert" else "model") as reception:
        conversion = await reception.receive_conversion(state.registry, purpose)
        file = input_file(reception.form)
        folder = reception.folder / "out"
        folder.mkdir()
        report, target = await run_while_connected(
            reception, conversion, lambda execution: state.conversions.convert(execution, file, folder)
        )
    return FileResult(file, report, target)


def input_file(form: Form) -> InputFile:
    """Return the model of a form with one model; the files after it are its companions."""
    model, *others = form.files
    companions = {upload.name: upload.path for upload in others}
    return InputFile(name=model.name, folder="", stem=stem(label(model.name)), path=model.path, companions=companions)
