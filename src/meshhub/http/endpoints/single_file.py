"""Handle requests with one model, for `/convert`, `/render`, `/preview` and `/inspect`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from meshhub.engine.contract import Cancel
from meshhub.http.intake.conversion_requests import InputFile, Purpose
from meshhub.http.intake.names import label, stem
from meshhub.http.state import AnyRequest, ReceivedRequest, receive_request, state_of
from meshhub.model.report import Report
from meshhub.model.source import Target


@dataclass(frozen=True)
class ConvertedFile:
    """Result of a conversion, or a picture.

    Attributes:
        report: Report of the conversion.
        path: The file.
        stem: Name of the uploaded file without its extension.
        has_companions: Whether files that the result refers to are beside it.
    """

    report: Report
    path: Path
    stem: str
    has_companions: bool


async def convert_file(request: AnyRequest, purpose: Purpose) -> ConvertedFile:
    """Receive a request with one model, and convert or draw it. Raises MeshhubError, ClientGone."""
    state = state_of(request)
    received = await receive_request(request, "files" if purpose == "preview" else "file", purpose)
    file = input_file(received)
    folder = received.folder / "out"
    folder.mkdir()

    async def work(cancel: Cancel) -> tuple[Report, Target]:
        return await state.conversions.convert(received.execution(cancel), file, folder)

    report, target = await state.resources.run_while_connected(request.receive, work)
    return ConvertedFile(report, folder / target.name, file.stem, len(target.names) > 1)


def input_file(received: ReceivedRequest) -> InputFile:
    """Return the model of a request with one model; the files after it are its companions."""
    model, *others = received.form.files
    companions = {upload.name: upload.path for upload in others}
    return InputFile(name=model.name, folder="", stem=stem(label(model.name)), path=model.path, companions=companions)
