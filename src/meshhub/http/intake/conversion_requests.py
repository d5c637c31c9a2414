"""Conversion requests: the target and options of a form, its files, and the result for each file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from meshhub.errors import ErrorValue, InvalidOption, MeshhubError, quote
from meshhub.http.errors import ServiceError
from meshhub.http.intake.file_options import FIELD, FileOptions, parse_file_options
from meshhub.http.intake.uploads import MAIN_FIELDS, Form, wrong_field
from meshhub.model.chain import Request
from meshhub.model.options import FALSE, MAX_LISTED_COUNT, TRUE
from meshhub.model.plans import Caller
from meshhub.model.report import FileError, Report
from meshhub.model.source import Assembly, Source, Target
from meshhub.pipeline.purpose import CheckedRequest, Purpose
from meshhub.registry import Registry

CompleteOptions = Callable[[Mapping[str, object]], Mapping[str, object]]
"""Adds options to those of a request."""


@dataclass(frozen=True)
class ConversionRequest:
    """Checked request, its caller, and whether `report.json` is requested.

    Attributes:
        request: Target and the options that all files share.
        caller: Sender of the request.
        options: Texts of the shared options by name.
        file_options: Options that override them for single files.
    """

    request: CheckedRequest
    caller: Caller
    wants_report: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    file_options: FileOptions = field(default_factory=dict)

    def assign_options(self, files: Mapping[str, InputFile], registry: Registry) -> Sequence[InputFile]:
        """Return the files, each with its own request if `file_options` names it.

        Args:
            files: Files by their key in `file_options`.
            registry: Checks the options.
        Raises:
            InvalidOption: A key names no file.
            RequestError, MissingDependency: An option of a file is invalid, or the plan does not allow it.
        """
        unknown = next((key for key in self.file_options if key not in files), None)
        if unknown is not None:
            known = ", ".join(map(quote, list(files)[:MAX_LISTED_COUNT]))
            raise InvalidOption(f"option '{FIELD}' names the file {quote(unknown)}, which was not sent; known: {known}")
        return [
            replace(file, request=self._check_file(self.file_options[key], registry))
            if key in self.file_options
            else file
            for key, file in files.items()
        ]

    def _check_file(self, own: Mapping[str, object], registry: Registry) -> CheckedRequest:
        return registry.check_request(Request(target=self.request.target, options={**self.options, **own}), self.caller)


@dataclass(frozen=True)
class InputFile:
    """One file to convert, inspect or draw.

    Attributes:
        name: Name in the request.
        folder: Folder of the result in the ZIP.
        stem: Name of the result without its extension.
        companions: Paths of the companions by name.
        rejection: Error that rejects the file without a conversion; None to convert it.
        request: Request with the options of this file; None: that of all files.
        others: Further files of the same scene.
    """

    name: str
    folder: str
    stem: str
    path: Path
    companions: Mapping[str, Path] = field(default_factory=dict)
    rejection: MeshhubError | None = None
    request: CheckedRequest | None = None
    others: tuple[InputFile, ...] = ()

    def source(self) -> Source:
        """Return the source for a reader, or for several."""
        source = Source(self.name, path=self.path, companions=self.companions)
        return Assembly([source, *(other.source() for other in self.others)]) if self.others else source


MODEL_NAME = "model"
"""Name of a converted file in its folder, without the extension; it gets the name of the upload when it is sent."""


@dataclass(frozen=True)
class FileResult:
    """Result of one file: a report and the target, or an error."""

    file: InputFile
    report: Report | None = None
    target: Target | None = None
    error_code: str = ""
    error: str = ""
    values: dict[str, ErrorValue] = field(default_factory=dict)

    def failure(self) -> FileError:
        """Return the row of `errors.json`."""
        return FileError(self.file.name, self.error, self.error_code, self.values)


def parse_form(
    form: Form,
    caller: Caller,
    registry: Registry,
    purpose: Purpose,
    complete: CompleteOptions = dict,
    paths: Mapping[str, str] = MappingProxyType({}),
) -> ConversionRequest:
    """Return the request of a form, with all checks that do not depend on its files.

    Calls no hook, because this runs on the event loop. The access check has already added the caller's entitlements.

    Args:
        form: The form.
        caller: Sender of the request.
        registry: Checks the options.
        purpose: Purpose of the request.
        complete: Adds the options of the operator to those of the form.
        paths: Paths of the endpoints with each main field, for messages.
    Raises:
        ServiceError: A field is missing, or the files are in a field that the purpose does not take.
        RequestError, MissingDependency: The target, an entitlement or an option is invalid.
    """
    main, texts = purpose.main_field or form.main, dict(form.texts)
    if form.files and form.main != main:
        raise wrong_field(form.main, main)
    if not form.files and form.stray_files:
        raise wrong_field(form.stray_files[0], main)
    if not form.files:
        others = [name for name in MAIN_FIELDS if name in texts]
        belongs = next((f"; {name!r} belongs to {paths[name]}" for name in others if name in paths), "")
        hint = belongs or f" (curl -F {main}=@model.stl)"
        raise ServiceError(f"the field {main!r} with the file is missing{hint}", error_code="missing_field")
    other = next((name for name in MAIN_FIELDS if name in texts), None)
    if other is not None:
        raise InvalidOption(f"the fields {main!r} and {other!r} were both sent; send the models in one of them")
    own_options = texts.pop(FIELD, "")
    if own_options.strip() and (main == "file" or purpose.target_field != "required"):
        raise InvalidOption(
            f"option '{FIELD}' is for several files; send the options of one file as fields of the form"
        )
    target = texts.pop("target", "").strip() if purpose.target_field is not None else ""
    if not target and purpose.target_field == "required":
        raise ServiceError(
            "the field 'target' is missing; set it to the output format (target=3mf)", error_code="missing_field"
        )
    report = texts.pop("report", "") if purpose.report_field is not None else ""
    file_options = parse_file_options(own_options)
    checked = registry.check_request(Request(purpose=purpose.id, target=target, options=complete(texts)), caller)
    wants_report = purpose.report_field == "flag" and _parse_report_flag(report)
    return ConversionRequest(checked, caller, wants_report, texts, file_options)


def _parse_report_flag(text: str) -> bool:
    word = text.strip().lower()
    if word in TRUE:
        return True
    if not word or word in FALSE:
        return False
    raise InvalidOption(f"option 'report' must be true, 1, yes or on, or their opposites, got {quote(text)}")
