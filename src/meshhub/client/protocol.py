"""Requests and responses of a service, for both clients."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import httpx
import msgspec

from meshhub import errors
from meshhub.errors import Cancelled, InvalidKey, InvalidOption, MeshhubError, ServerBusy, quote
from meshhub.model.report import Inspection
from meshhub.service.jobs.description import JobDescription
from meshhub.service.jobs.job import JobKind

TIMEOUT = httpx.Timeout(60.0, connect=10.0)
"""Seconds for a connection, and without progress; uploads and downloads may take longer as a whole."""

RETRY_S = 1.0
"""Seconds until the next attempt after a connection failed."""

MAX_SUBMIT_COUNT = 4
"""Attempts to submit a job; its idempotency key prevents a second job."""

MAX_LOST_COUNT = 30
"""Attempts in a row to ask about a job; half a minute bridges a restart of the service."""

CHUNK_BYTES = 1 << 20
"""Bytes of a result in memory at a time."""

T = TypeVar("T")

OnChange = Callable[[JobDescription], None]
"""Callback for each change of a job."""

ModelInput = str | Path | tuple[str, bytes]
"""Path of a file, or its name and content."""

_JOBS = msgspec.json.Decoder(JobDescription)
_INSPECTIONS = msgspec.json.Decoder(Inspection)

_EVENT = "data: "
"""Prefix of the lines of an event stream that carry a job."""


class ErrorResponse(msgspec.Struct):
    """Body of an error response."""

    error: str
    error_code: str


_ERRORS = msgspec.json.Decoder(ErrorResponse)


class Form(NamedTuple):
    """Multipart form of a job, with its idempotency key."""

    fields: dict[str, str]
    name: str
    content: bytes
    key: str

    def request(self) -> dict[str, Any]:
        """Return the arguments of the request."""
        return {
            "data": self.fields,
            "files": {"file": (self.name, self.content)},
            "headers": {"Idempotency-Key": self.key},
        }


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


def build_form(
    kind: JobKind, source: ModelInput, to: str | None, webhook_url: str | None, options: Mapping[str, object]
) -> Form:
    """Return the form of a job. Raises OSError if the file cannot be read."""
    name, content = source if isinstance(source, tuple) else (Path(source).name, Path(source).read_bytes())
    fields: dict[str, str] = {"kind": kind}
    fields |= {"target": to} if to is not None else {}
    fields |= {"webhook_url": webhook_url} if webhook_url is not None else {}
    fields |= {option: _spell(value) for option, value in options.items() if value is not None}
    return Form(fields, name, content, secrets.token_hex(16))


def choose_target(target: str | Path, to: str | None) -> str:
    """Return the target format: `to`, or the extension of the target. Raises UnsupportedTarget."""
    extension = Path(target).suffix.removeprefix(".")
    if to is None and not extension:
        raise errors.UnsupportedTarget(f"the target {quote(str(target))} has no extension; name the format with `to`")
    return to or extension


def read_job(response: httpx.Response) -> JobDescription:
    """Return the job in a response. Raises MeshhubError."""
    check(response)
    return decode(_JOBS, response)


def read_inspection(response: httpx.Response) -> Inspection:
    """Return the inspection in a response. Raises MeshhubError."""
    check(response)
    return decode(_INSPECTIONS, response)


def read_event(line: str) -> JobDescription | None:
    """Return the job in a line of an event stream; None for other lines."""
    return _JOBS.decode(line.removeprefix(_EVENT)) if line.startswith(_EVENT) else None


def decode(decoder: msgspec.json.Decoder[T], response: httpx.Response) -> T:
    """Return the JSON object in the body of a response. Raises ServerBusy."""
    try:
        return decoder.decode(response.content)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise ServerBusy(
            f"{response.url.host} answered with status {response.status_code}, not as meshhub; check the address"
        ) from None


def check(response: httpx.Response) -> None:
    """Raise the error of a response whose body is complete."""
    if not response.is_success:
        body = decode(_ERRORS, response)
        raise build_error(body.error_code, body.error)


def check_events(last: JobDescription | None, url: httpx.URL) -> None:
    """Check that a stream had an event. Raises ServerBusy."""
    if last is None:
        raise ServerBusy(f"{url.host} sent no events of the job; check the address")


def raise_failure(job: JobDescription) -> None:
    """Raise the error of a job that has ended without a result."""
    if job.state == "failed":
        raise build_error(job.error_code or "", job.error or "the job failed")
    if job.state in ("canceled", "expired"):
        raise Cancelled(f"the job is {job.state}; submit it again")


def build_error(code: str, message: str) -> MeshhubError:
    """Return the error that a service reported, in the class of its code."""
    # several classes may share a code: "unreadable_file" is that of UnreadableFile, and of its base SourceError
    named = getattr(errors, code.title().replace("_", ""), None)
    if isinstance(named, type) and issubclass(named, MeshhubError):
        return named(message, code=code)
    classes = (kind for kind in _list_classes(MeshhubError) if kind.__module__ == errors.__name__)
    return next((kind for kind in classes if kind.code == code), MeshhubError)(message, code=code)


def unreachable(url: httpx.URL, error: httpx.TransportError) -> ServerBusy:
    """Return the error of a service that does not respond."""
    return ServerBusy(f"the service at {url.host} cannot be reached: {type(error).__name__}; try again in a moment")


def can_retry(error: MeshhubError, attempt: int) -> bool:
    """Return whether another attempt to submit a job may succeed."""
    return attempt < MAX_SUBMIT_COUNT and error.code in ("server_busy", "shutting_down", "too_many_jobs")


def can_follow_again(error: MeshhubError, lost: int) -> bool:
    """Return whether the service may report a job again after `lost` attempts in a row: it restarts, for example."""
    return lost < MAX_LOST_COUNT and error.code in ("server_busy", "shutting_down")


def _list_classes(kind: type[MeshhubError]) -> Iterator[type[MeshhubError]]:
    yield kind
    for subclass in kind.__subclasses__():
        yield from _list_classes(subclass)


def _spell(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
