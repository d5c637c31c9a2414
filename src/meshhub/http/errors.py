"""Every error answer: one table from code to status, one shape, whatever raised it."""

from __future__ import annotations

import errno
import logging
from collections.abc import Mapping
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException
from msgspec import Struct

from meshhub.errors import (
    ConversionTimeout,
    EngineError,
    MeshhubError,
    PluginError,
    RequestError,
    RequestRefused,
    ServerBusy,
    ShuttingDown,
    SourceError,
)
from meshhub.http.context import context_of

log = logging.getLogger("meshhub.http")

STATUS: dict[str, int] = {
    "bad_request": 400,
    "invalid_multipart": 400,
    "missing_field": 400,
    "invalid_option": 400,
    "unsupported_target": 400,
    "invalid_api_key": 401,
    "premium_format_required": 403,
    "request_refused": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "request_timeout": 408,
    "file_too_large": 413,
    "too_many_files": 413,
    "archive_too_large": 413,
    "unsupported_format": 415,
    "unsupported_encoding": 415,
    "unreadable_file": 422,
    "empty_model": 422,
    "external_reference": 422,
    "unsafe_archive": 422,
    "model_too_complex": 422,
    "conversion_failed": 422,
    "worker_crashed": 422,
    "rate_limit_exceeded": 429,
    "internal_error": 500,
    "server_busy": 503,
    "shutting_down": 503,
    "conversion_timeout": 504,
}
"""The whole table."""

MEANING: dict[str, str] = {
    "bad_request": "The request cannot be understood: a field twice, a header that makes no sense, an upload too slow.",
    "invalid_multipart": "The body is not multipart/form-data, or breaks off, or a text field is not text.",
    "missing_field": "`file`, `files`, `archive` or `target` is not there.",
    "invalid_option": "An option is unknown, malformed or out of its bounds; the text names it.",
    "unsupported_target": "`target` names no format that can be written here.",
    "invalid_api_key": "The key is unknown, expired or revoked. It is never quietly served as Free.",
    "premium_format_required": "The plan does not grant what this needs.",
    "request_refused": "A review plug-in objected; it may use a code of its own, with the same status.",
    "not_found": "There is nothing under this path.",
    "method_not_allowed": "The path exists, this method of it does not; see `Allow`.",
    "request_timeout": "The headers of the request did not arrive in time; send it again on a new connection.",
    "file_too_large": "A file, or the whole request, is larger than the plan allows.",
    "too_many_files": "More files than the plan allows in one batch.",
    "archive_too_large": "The archive, or what it unpacks to, is larger than the plan allows.",
    "unsupported_format": "Neither content nor extension names a format that can be read.",
    "unsupported_encoding": "The body is compressed (`Content-Encoding`); send it as it is, as `Accept-Encoding` says.",
    "unreadable_file": "The bytes do not follow their format.",
    "empty_model": "The file holds no triangle, or nothing at all.",
    "external_reference": "The model needs a file that did not come with it; send them together in an archive.",
    "unsafe_archive": "The archive cannot be unpacked safely.",
    "model_too_complex": "The model needs more than one conversion may take; reduce it with `optimize_target_faces`.",
    "conversion_failed": "The file is sound, yet a step cannot carry it through.",
    "worker_crashed": "The conversion's process ended before it answered.",
    "rate_limit_exceeded": "Too many requests in a minute; wait for `Retry-After` seconds.",
    "internal_error": "A fault of the service, never the caller's. Tell the operator the request_id.",
    "server_busy": "No worker, disk or database is free now; try again after `Retry-After` seconds.",
    "shutting_down": "The service is stopping; try again after `Retry-After` seconds.",
    "conversion_timeout": "The conversion, or the whole request, took too long; `optimize_target_faces` may help.",
}
"""What each code tells the caller."""

RETRY_AFTER = {"server_busy": 5, "shutting_down": 10}
"""Seconds after which the same request may succeed."""

_OF_STATUS = {400: "bad_request", 401: "invalid_api_key", 404: "not_found", 405: "method_not_allowed"}


_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""What the system says that has no disk, file or memory left. Linux makes a failing disk one that is only read."""


class ServiceError(MeshhubError):
    """What only the HTTP service can find wrong; made with the code of the table that tells it.

    `details` lists the files that failed; `headers` go with the answer.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        details: list[dict[str, str]] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, code=code or "bad_request")
        self.details = details
        self.headers = dict(headers or {})


class ClientGone(Exception):
    """The client left; there is nobody to answer."""


class ErrorBody(Struct, frozen=True, omit_defaults=True):
    """The JSON of every 4xx and 5xx answer."""

    error: str
    error_code: str
    request_id: str
    details: list[dict[str, str]] | None = None


def status_of(error: MeshhubError) -> int:
    """The status of an error; of one whose code a plug-in made up, by its class."""
    if error.code in STATUS:
        return STATUS[error.code]
    classes = {RequestRefused: 403, RequestError: 400, SourceError: 422, EngineError: 503, PluginError: 422}
    return next((status for kind, status in classes.items() if isinstance(error, kind)), 500)


def no_room(error: Exception) -> ServerBusy | None:
    """What to say of an error of the system that has run out of something; None for any other error."""
    if not isinstance(error, OSError) or error.errno not in _NO_ROOM:
        return None
    return ServerBusy(f"the service has no room for this request now ({errno.errorcode[error.errno]}); try again later")


def answer_error(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """The answer for whatever was raised."""
    error = no_room(error) or error
    if isinstance(error, ClientGone):
        return Response(b"", status_code=499, media_type="application/json")
    if isinstance(error, MeshhubError):
        details = error.details if isinstance(error, ServiceError) else None
        headers = dict(error.headers) if isinstance(error, ServiceError) else {}
        status = status_of(error)
        if isinstance(error, ServerBusy | ShuttingDown | ConversionTimeout):
            # errors of other kinds may name files
            context = context_of(request.scope)
            context.reason = context.reason or error.message
        return _answer(request, status, error.code, error.message, details, headers)
    if isinstance(error, HTTPException) and error.status_code < 500:
        return _answer_routing(request, error)
    log.error("unexpected error", exc_info=error)
    return _answer(
        request,
        500,
        "internal_error",
        "something went wrong in the service, not in your request; try again, and tell the operator the request_id",
    )


def _answer_routing(request: Request[Any, Any, Any], error: HTTPException) -> Response[bytes]:
    """404, 405 and whatever else the framework refuses by itself."""
    code = _OF_STATUS.get(error.status_code, "bad_request")
    path = request.scope["path"][:100]
    headers = {}
    text = f"{error.detail}; see /schema"
    if code == "not_found":
        text = f"there is nothing at {path!r}; the endpoints are listed at /schema"
    elif code == "method_not_allowed":
        allowed = (error.headers or {}).get("allow", "")
        # whatever answers GET answers HEAD
        allowed = allowed.replace("GET", "GET, HEAD")
        headers = {"Allow": allowed}
        text = f"{path!r} does not answer {request.method}; use {allowed}"
    return _answer(request, error.status_code if code != "bad_request" else 400, code, text, None, headers)


def _answer(
    request: Request[Any, Any, Any],
    status: int,
    code: str,
    text: str,
    details: list[dict[str, str]] | None = None,
    headers: dict[str, str] | None = None,
) -> Response[bytes]:
    context = context_of(request.scope)
    context.error_code = code
    headers = headers or {}
    if status == 503:
        headers.setdefault("Retry-After", str(RETRY_AFTER.get(code, RETRY_AFTER["server_busy"])))
    if status == 401:
        headers.setdefault("WWW-Authenticate", 'ApiKey realm="meshhub", header="X-Api-Key"')
    body = ErrorBody(text, code, context.request_id, details)
    return Response(msgspec.json.encode(body), status_code=status, media_type="application/json", headers=headers)
