"""Requests and responses of a service, for both clients."""

from __future__ import annotations

import contextlib
import functools
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Generic, TypeVar, cast
from urllib.parse import quote as quote_url

import httpx
import msgspec

from meshhub import errors
from meshhub.client.companions import (
    ModelInput,
    ModelInputs,
    Upload,
    is_several,
    read_models,
    read_with_companions,
    read_with_shared_companions,
    unpack_result,
)
from meshhub.error_codes import ERROR_CODES, ErrorCode
from meshhub.errors import (
    Canceled,
    ConversionFailed,
    EngineError,
    ErrorValue,
    InvalidKey,
    InvalidOption,
    MeshhubError,
    RequestError,
    ServerBusy,
    ServiceUnreachable,
    SourceError,
    quote,
)
from meshhub.model.capabilities import Format
from meshhub.model.convert_options import CheckOptions, ConvertOptions, QuoteOptions
from meshhub.model.quote import Quote
from meshhub.model.report import Inspection
from meshhub.model.verdict import Verdict
from meshhub.pipeline.existing_files import Overwrite, Replacing
from meshhub.pipeline.fork_lock import IMPORTING
from meshhub.pipeline.outputs import open_output
from meshhub.service.jobs.description import JobDescription, JobList, summarize_report
from meshhub.service.jobs.job import JobKind, ReportKind
from meshhub.service.plan_answer import PlanAnswer

if TYPE_CHECKING:
    from meshhub.supported import Supported

TIMEOUT = httpx.Timeout(60.0, connect=10.0)
"""Seconds for a connection, and without progress; uploads and downloads may take longer as a whole."""

CHECK_TIMEOUT = httpx.Timeout(60.0, connect=10.0, read=1000.0)
"""Seconds as above; the response begins at the end of the check, after up to 900 s with the built-in plans."""

RETRY_S = 1.0
"""Seconds until the next attempt after a connection failed."""

MAX_SUBMIT_COUNT = 4
"""Maximum attempts to submit a job; its idempotency key prevents a second job."""

MAX_LOST_COUNT = 30
"""Maximum attempts in a row to ask about a job; together half a minute, which bridges a restart of the service."""

CHUNK_BYTES = 1 << 20
"""Bytes of a result in memory at a time."""

T = TypeVar("T")


class JobOptions(ConvertOptions, CheckOptions, total=False):
    """Built-in options of conversions, inspections and checks."""


class OrderOptions(ConvertOptions, QuoteOptions, total=False):
    """Built-in options of quotes."""


OnChange = Callable[[JobDescription], None]
"""Callback for each change of a job."""

_JOBS = msgspec.json.Decoder(JobDescription)
_INSPECTIONS = msgspec.json.Decoder(Inspection)
_VERDICTS = msgspec.json.Decoder(Verdict)
_QUOTES = msgspec.json.Decoder(Quote)
_JOB_LISTS = msgspec.json.Decoder(JobList)
_PLANS = msgspec.json.Decoder(PlanAnswer)
_OBJECTS = msgspec.json.Decoder(dict[str, Any])

_EVENT = "data: "
"""Prefix of the lines of an event stream that carry a job."""

_CLASSES: Mapping[int | None, type[MeshhubError]] = {
    2: RequestError, 3: SourceError, 4: ConversionFailed, 5: EngineError,
}  # fmt: skip
"""Classes of errors by the exit status of their code, for codes without a class."""

_ERRNO = re.compile(r"^\[Errno -?\d+\] ")
"""Number of a system error, before its text."""

_TEMPORARY = ("server_busy", "service_unreachable", "shutting_down")
"""Codes of temporary errors, for example while the service restarts."""


class ErrorResponse(msgspec.Struct):
    """Body of an error response."""

    error: str
    error_code: str
    values: dict[str, ErrorValue] = {}


_ERRORS = msgspec.json.Decoder(ErrorResponse)


@dataclass(frozen=True)
class Call(Generic[T]):
    """Request, and the function that reads its response.

    Attributes:
        method: Method of HTTP.
        path: Path below the address of the service.
        read: Returns the content of the response, or raises MeshhubError.
        arguments: Further arguments of the request.
    """

    method: str
    path: str
    read: Callable[[httpx.Response], T]
    arguments: Mapping[str, Any] = field(default_factory=dict)


class Following:
    """Events of a job over one or more streams."""

    def __init__(self, url: httpx.URL, on_change: OnChange | None) -> None:
        """Begin without events of the service at `url`."""
        self._url = url
        self._on_change = on_change
        self._job: JobDescription | None = None
        self._lost = 0

    def handle(self, line: str) -> None:
        """Handle a line of a stream."""
        if not line.startswith(_EVENT):
            return
        self._job = _JOBS.decode(line.removeprefix(_EVENT))
        self._lost = 0
        if self._on_change is not None:
            self._on_change(self._job)

    def end(self, error: MeshhubError | None) -> JobDescription | None:
        """Handle the end of a stream.

        Args:
            error: Error that ended it; None without one.
        Returns:
            The job; None if it has not ended, and another stream should follow.
        Raises:
            MeshhubError: The job has no result, or another stream would not help.
        """
        job, self._job = self._job, None
        if error is None and job is None:
            error = ServiceUnreachable(f"{self._url.host} sent no events of the job; check the address")
        if error is not None and not (self._lost < MAX_LOST_COUNT and error.error_code in _TEMPORARY):
            raise error
        if job is not None and job.is_finished:
            raise_failure(job)
            return job
        self._lost += 1
        return None


def build_arguments(url: str, key: str | None) -> dict[str, Any]:
    """Return the arguments of an HTTP client. Raises InvalidOption, InvalidKey."""
    return {"base_url": parse_url(url), "headers": build_headers(key), "timeout": TIMEOUT}


def parse_url(url: str) -> httpx.URL:
    """Return the address of a service. Raises InvalidOption."""
    with contextlib.suppress(httpx.InvalidURL):
        address = httpx.URL(url)
        if address.scheme in ("http", "https") and address.host:
            return address
    raise InvalidOption(f"the address of a service must look like https://example.com, got {quote(url)}")


def build_headers(key: str | None) -> dict[str, str]:
    """Return the headers of every request. Raises InvalidKey."""
    if key and not (key.isascii() and key.isprintable()):
        raise InvalidKey("the API key has characters that no key has; copy it again")
    return {"User-Agent": "meshhub", **({"X-Api-Key": key} if key else {})}


def submit_job(
    kind: JobKind,
    source: ModelInputs,
    target: str | None,
    webhook_url: str | None,
    report: ReportKind | None,
    language: str | None,
    options: Mapping[str, object],
) -> Call[JobDescription]:
    """Return the request that submits a job for models alone. Raises OSError if a file cannot be read."""
    fields = {"kind": kind, "target": target, "webhook_url": webhook_url, "report": report, **options}
    return build_submission(read_models(source), fields, language)


def submit_conversion(
    source: ModelInputs, target: str, options: Mapping[str, object]
) -> tuple[Call[JobDescription], bool]:
    """Return the request that submits a conversion with companions, and whether its result is an archive.

    Raises RequestError, OSError if the files cannot be sent.
    """
    if options.get("each_bed"):
        raise errors.UnsupportedTarget(
            "the client writes one file, and '{each_bed}' makes several; submit a job, and download its ZIP",
            options=("each_bed",),
        )
    if is_several(source):
        fields = {"kind": "combine", "target": target, **options}
        return build_submission(read_with_shared_companions(source), fields), False
    upload = read_with_companions(cast(ModelInput, source), target)
    # the report of an archive is in the archive
    fields = {"kind": "convert", "target": target, "report": None if upload.field == "file" else True, **options}
    return build_submission(upload, fields), upload.field != "file"


def check_one_file(job: JobDescription) -> None:
    """Raise UnsupportedTarget for a result of several files, such as the G-code of each bed."""
    if job.result is not None and job.result.media_type == "application/zip":
        raise errors.UnsupportedTarget(
            f"the result has a file for each bed, and the client writes one; download the ZIP of job {job.id}"
        )


def build_submission(upload: Upload, fields: Mapping[str, object], language: str | None = None) -> Call[JobDescription]:
    """Return the request that submits a job with these fields; None leaves a field or the language out."""
    headers = {"Idempotency-Key": secrets.token_hex(16)}
    if language is not None:
        headers["Accept-Language"] = language
    arguments = {**_build_form(upload, fields), "headers": headers}
    return Call("POST", "/jobs", functools.partial(read, _JOBS), arguments)


def check_model(source: ModelInput, options: Mapping[str, object]) -> Call[Verdict]:
    """Return the request that checks a model alone. Raises OSError if the file cannot be read."""
    arguments = {**_build_form(read_models(source), options), "timeout": CHECK_TIMEOUT}
    return Call("POST", "/check", functools.partial(read, _VERDICTS), arguments)


def quote_model(source: ModelInput, options: Mapping[str, object]) -> Call[Quote]:
    """Return the request that quotes the print of a model alone. Raises OSError if the file cannot be read."""
    arguments = {**_build_form(read_models(source), options), "timeout": CHECK_TIMEOUT}
    return Call("POST", "/quote", functools.partial(read, _QUOTES), arguments)


def _build_form(upload: Upload, fields: Mapping[str, object]) -> dict[str, Any]:
    """Return the arguments of a request with a form; a field that is None is left out."""
    return {
        "data": {name: _spell(value) for name, value in fields.items() if value is not None},
        "files": [(upload.field, file) for file in upload.files],
    }


def show_job(job_id: str) -> Call[JobDescription]:
    """Return the request for the state of a job."""
    return Call("GET", job_path(job_id), functools.partial(read, _JOBS))


def list_jobs(limit: int, before: str | None) -> Call[JobList]:
    """Return the request for the jobs of the key."""
    parameters = {"limit": limit} if before is None else {"limit": limit, "before": before}
    return Call("GET", "/jobs", functools.partial(read, _JOB_LISTS), {"params": parameters})


def show_plan() -> Call[PlanAnswer]:
    """Return the request for the plan of the key."""
    return Call("GET", "/plan", functools.partial(read, _PLANS))


def list_supported(language: str | None) -> Call[Supported]:
    """Return the request for formats, operations and options, with texts in a language; None for English."""
    return Call("GET", "/supported", _read_supported, {"headers": {"Accept-Language": language or "en"}})


def cancel_job(job_id: str) -> Call[JobDescription]:
    """Return the request that cancels a job."""
    return Call("DELETE", job_path(job_id), functools.partial(read, _JOBS))


def show_inspection(job_id: str) -> Call[Inspection]:
    """Return the request for the result of an inspection."""
    return Call("GET", job_path(job_id, "result"), functools.partial(read, _INSPECTIONS))


def job_path(job_id: str, *names: str) -> str:
    """Return the path of a job, or of something below it."""
    # "." and ".." would be removed from the path
    return "/".join(("/jobs", quote_url(job_id, safe="").replace(".", "%2E"), *names))


def unpack_archive(archive: Path, output: str | Path, job: JobDescription, replacing: Replacing) -> JobDescription:
    """Write the model of a result with its companions; return the job with the report of the model."""
    report = unpack_result(archive, Path(output), replacing)
    return msgspec.structs.replace(job, report=summarize_report(report, report.notes))


def choose_target(output: str | Path, target: str | None) -> str:
    """Return the target format: `target`, or the extension of the output. Raises UnsupportedTarget."""
    extension = Path(output).suffix.removeprefix(".")
    if target is None and not extension:
        raise errors.UnsupportedTarget(
            f"the output {quote(str(output))} has no extension; name the format with `target`"
        )
    return target or extension


def read(decoder: msgspec.json.Decoder[T], response: httpx.Response) -> T:
    """Return the JSON object in a response. Raises MeshhubError."""
    check(response)
    return decode(decoder, response)


def _read_supported(response: httpx.Response) -> Supported:
    # its types are those of the registry, which a client otherwise does not import
    return cast("Supported", read(_OBJECTS, response))


def decode(decoder: msgspec.json.Decoder[T], response: httpx.Response) -> T:
    """Return the JSON object in the body of a response. Raises ServiceUnreachable."""
    try:
        return decoder.decode(response.content)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise _not_meshhub(response) from None


def check(response: httpx.Response) -> None:
    """Raise the error of a response whose body is complete."""
    if not response.is_success:
        body = decode(_ERRORS, response)
        raise build_error(body.error_code, body.error, body.values, response.status_code)


def check_file(response: httpx.Response) -> None:
    """Raise ServiceUnreachable for a response that is not a file of the service, such as the page of a proxy."""
    if "content-disposition" not in response.headers:
        raise _not_meshhub(response)


def _not_meshhub(response: httpx.Response) -> ServiceUnreachable:
    return ServiceUnreachable(
        f"{response.url.host} answered with status {response.status_code}, not as meshhub; check the address"
    )


def raise_failure(job: JobDescription) -> None:
    """Raise the error of a job that has ended without a result."""
    if job.state == "failed":
        raise build_error(job.error_code or "", job.error or "the job failed", job.error_values)
    if job.state in ("canceled", "expired"):
        raise Canceled(f"the job is {job.state}; submit it again")


def build_error(
    code: str, message: str, values: Mapping[str, ErrorValue] | None = None, http_status: int = 500
) -> MeshhubError:
    """Return the error that a service reported, in the class of its code, or that of its status."""
    # several classes may share a code: "unreadable_file" is that of UnreadableFile, and of its base SourceError
    named = getattr(errors, code.title().replace("_", ""), None)
    if isinstance(named, type) and issubclass(named, MeshhubError):
        return named(message, error_code=code, values=values)
    classes = (kind for kind in _list_classes(MeshhubError) if kind.__module__ == errors.__name__)
    kind = next((kind for kind in classes if kind.error_code == code), None) or _find_class(code, http_status)
    return kind(message, error_code=code, values=values)


def _find_class(code: str, http_status: int) -> type[MeshhubError]:
    """Return the class of errors whose code has no class."""
    row = ERROR_CODES.get(code, ErrorCode(http_status, None, ""))
    if row.exit_status in _CLASSES:
        return _CLASSES[row.exit_status]
    status = row.http_status or http_status
    if status in (429, 503):
        return ServerBusy
    return RequestError if 400 <= status < 500 else MeshhubError


@contextlib.contextmanager
def connecting(url: httpx.URL) -> Iterator[None]:
    """Raise ServiceUnreachable if the service does not respond."""
    try:
        yield
    except httpx.TransportError as error:
        reason = _ERRNO.sub("", str(error)) or type(error).__name__
        raise ServiceUnreachable(
            f"the service at {url.netloc.decode()} cannot be reached: {reason}; check the address, or try again"
        ) from error


def choose_replacing(overwrite: Overwrite, source: ModelInputs = ()) -> Replacing:
    """Return the rule which existing files a result replaces; files of the source stay."""
    models = source if is_several(source) else (cast(ModelInput, source),)
    return Replacing(overwrite, [model for model in models if not isinstance(model, tuple)], _list_formats)


def _list_formats() -> Iterable[Format]:
    # loading plug-ins redirects standard output, which only one thread may do at a time
    with IMPORTING.held():
        return _load_formats()


@functools.cache
def _load_formats() -> tuple[Format, ...]:
    # imported here, because only a result that exists already needs it
    from meshhub.registry import Registry

    return tuple(Registry().formats.values())


@contextlib.contextmanager
def writing(target: str | Path, replacing: Replacing) -> Iterator[BinaryIO]:
    """Yield a file that takes the place of the target at the end. Raises OutputExists, OSError."""
    with open_output(target, {}, replacing) as output, output.open() as file:
        yield file


def choose_pause(error: MeshhubError, attempt: int) -> float:
    """Return the seconds until another attempt to submit a job. Raises the error if another attempt would not help."""
    if attempt >= MAX_SUBMIT_COUNT or error.error_code not in (*_TEMPORARY, "too_many_jobs"):
        raise error
    return attempt * RETRY_S


def _list_classes(kind: type[MeshhubError]) -> Iterator[type[MeshhubError]]:
    yield kind
    for subclass in kind.__subclasses__():
        yield from _list_classes(subclass)


def _spell(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
