"""Handle requests with one model: receive the form, and run the chain of a purpose."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from meshhub.http.context import context_of
from meshhub.http.conversions.check_reports import CheckReport, parse_report
from meshhub.http.conversions.connected import run_while_connected
from meshhub.http.headers import REPORT
from meshhub.http.intake.conversion_requests import CompleteOptions, ConversionRequest, FileResult, InputFile
from meshhub.http.intake.names import label, stem
from meshhub.http.intake.reception import Reception
from meshhub.http.intake.uploads import FileFields, Form
from meshhub.http.responses.reports import file_header
from meshhub.http.responses.results import FileResponse, file_response
from meshhub.http.state import AnyRequest, state_of
from meshhub.model.report import Report
from meshhub.model.source import Target
from meshhub.model.verdict import Result
from meshhub.pipeline.purpose import Purpose
from meshhub.pipeline.purposes import PURPOSES


@dataclass(frozen=True)
class ModelResult:
    """Result of a request with one model.

    Attributes:
        conversion: Checked request.
        file: The model.
        result: What the chain reports.
        target: File that was written; None if there is none.
        report: Report for people that was requested; None for JSON.
    """

    conversion: ConversionRequest
    file: InputFile
    result: Result
    target: Target | None
    report: CheckReport | None

    @property
    def path(self) -> Path:
        """Path of the file."""
        assert self.target is not None and self.target.folder is not None
        return self.target.folder / self.target.name

    @property
    def converted(self) -> FileResult:
        """The converted model."""
        assert isinstance(self.result, Report)
        return FileResult(self.file, self.result, self.target)


async def run_model(
    request: AnyRequest, purpose: Purpose, *, field: FileFields = "model", complete: CompleteOptions = dict
) -> ModelResult:
    """Receive a request with one model, and run its chain. Raises MeshhubError, ClientGone.

    Args:
        request: The request.
        purpose: Its purpose.
        field: Field with the model.
        complete: Adds the options of the operator to those of the form.
    """
    state = state_of(request)
    async with Reception(request, state.resources, field) as reception:
        conversion = await reception.receive_conversion(state.registry, purpose, complete)
        report = None
        if purpose.report_field == "format":
            report = parse_report(reception.form.texts, context_of(request.scope).texts.language)
        file, folder = input_file(reception.form), reception.folder / "out"
        result, target = await run_while_connected(
            reception, conversion, lambda execution: state.conversions.run(execution, file, folder, report)
        )
    return ModelResult(conversion, file, result, target, report)


async def send_drawing(request: AnyRequest, name: str) -> FileResponse:
    """Answer a request with one model by the file that the host writes: a picture or a preview."""
    done = await run_model(request, PURPOSES[name])
    output = done.conversion.request.output
    assert output is not None and isinstance(done.result, Report)
    return file_response(
        state_of(request).resources.threads,
        done.path,
        output.media_types[0],
        done.file.stem + output.extensions[0],
        {REPORT: file_header(done.result)},
    )


def input_file(form: Form) -> InputFile:
    """Return the model of a form with one model; the files after it are its companions."""
    model, *others = form.files
    companions = {upload.name: upload.path for upload in others}
    return InputFile(name=model.name, folder="", stem=stem(label(model.name)), path=model.path, companions=companions)
