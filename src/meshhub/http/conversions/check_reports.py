"""Reports of checks for people, as the answer of /check and as the result of a job."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from meshhub.engine.contract import Cancel
from meshhub.errors import InvalidOption, MissingDependency, quote
from meshhub.http.intake.conversion_requests import ConversionRequest, InputFile
from meshhub.model.chain import Request
from meshhub.model.source import Target
from meshhub.model.translations import ENGLISH
from meshhub.model.verdict import Verdict
from meshhub.pipeline.resolve import CheckedRequest
from meshhub.registry import Registry
from meshhub.reporting.texts import LANGUAGES
from meshhub.service.jobs.job import ReportKind

FIELD = "report"
"""Name of the field that asks for a report."""

MEDIA_TYPES: dict[ReportKind, str] = {"html": "text/html", "pdf": "application/pdf", "glb": "model/gltf-binary"}
"""Media types of reports by the value of the field."""


@dataclass(frozen=True)
class CheckReport:
    """Report that a request asks for.

    Attributes:
        kind: Format.
        language: Language of headings and labels.
    """

    kind: ReportKind
    language: str

    @property
    def file_name(self) -> str:
        """Return the name of its file in the folder of the request."""
        return f"report.{self.kind}"

    @property
    def media_type(self) -> str:
        """Return the media type of its file."""
        return MEDIA_TYPES[self.kind]

    @property
    def is_model(self) -> bool:
        """Return whether it is the model with its findings, which the task that checks writes."""
        return self.kind == "glb"

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers of a response with its file."""
        return {} if self.is_model else {"Content-Language": self.language}

    def name_for(self, file: InputFile) -> str:
        """Return the name of its file for the caller."""
        return f"{file.stem}-check.{self.kind}"

    def request_of(self, registry: Registry, conversion: ConversionRequest) -> CheckedRequest:
        """Return the request of the check; it has a target if the task that checks writes the report."""
        checked = conversion.request
        if not self.is_model:
            return checked
        return registry.check_request(
            Request(purpose=checked.purpose.id, target=self.kind, options=checked.options), conversion.caller
        )

    def draw(
        self,
        registry: Registry,
        conversion: ConversionRequest,
        file: InputFile,
        verdict: Verdict,
        target: Target,
        timeout_s: float | None,
        cancel: Cancel,
    ) -> None:
        """Write the report of a checked file with its pictures. Raises MeshhubError.

        Args:
            registry: Reads and draws.
            conversion: Request of the check.
            file: The file as it was sent.
            verdict: Result of the check.
            target: File to write.
            timeout_s: Seconds for all pictures; None for no limit.
            cancel: Stops the drawing.
        """
        # imported here, because few services write reports, and numpy and scipy double the memory of the server process
        from meshhub.reporting.collecting import MIN_TIMEOUT_S, collect_model, read_as_checked
        from meshhub.reporting.writing import render_report

        started, caller = time.monotonic(), conversion.caller
        scene = read_as_checked(registry, file.source(), conversion.request.options, timeout_s, cancel, caller)
        if timeout_s is not None:
            timeout_s = max(MIN_TIMEOUT_S, timeout_s - (time.monotonic() - started))
        model = collect_model(
            registry, scene, file.name, verdict, conversion.request.options, timeout_s, cancel, caller
        )
        with target.open() as output:
            output.write(render_report([model], self.file_name, registry, self.language, date.today()))


def parse_report(texts: Mapping[str, str], language: str) -> CheckReport | None:
    """Return the report that the fields of a form ask for; None if they ask for JSON.

    Args:
        texts: Fields of the form.
        language: Language of the service's texts for the request.
    Raises:
        InvalidOption: The value of the field is not a format of reports.
        MissingDependency: A package for it is not installed.
    """
    word = texts.get(FIELD, "").strip().lower()
    if not word:
        return None
    kind = next((known for known in MEDIA_TYPES if known == word), None)
    if kind is None:
        raise InvalidOption(f"option '{FIELD}' must be one of {', '.join(MEDIA_TYPES)}, got {quote(word)}")
    report = CheckReport(kind, language if language in LANGUAGES else ENGLISH)
    try:
        if kind != "glb":
            from meshhub.reporting.writing import check_report_name

            check_report_name(report.file_name)
    except MissingDependency as error:
        raise MissingDependency(error.message, error_code=InvalidOption.error_code) from None
    return report
