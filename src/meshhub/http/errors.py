"""Error responses: one JSON shape for every error, with the status that `ERROR_CODES` lists."""

from __future__ import annotations

import errno
import logging
from collections.abc import Mapping
from typing import Any

from litestar import Request, Response
from litestar.exceptions import HTTPException
from msgspec import Struct

from meshhub.error_codes import ERROR_CODES
from meshhub.errors import ErrorValue, JobStoreUnavailable, KeyStoreUnavailable, MeshhubError, ServerBusy
from meshhub.http.context import context_of
from meshhub.http.translating import answer_json
from meshhub.model.report import FileError

log = logging.getLogger("meshhub.http")

STATUS = {code: row.http_status for code, row in ERROR_CODES.items() if row.http_status is not None}
"""HTTP status of each error code of the service."""

MEANING = {code: ERROR_CODES[code].meaning for code in STATUS}
"""Meaning of each error code of the service, for the documentation."""

RETRY_AFTER = {code: row.retry_after_s for code, row in ERROR_CODES.items() if row.retry_after_s is not None}
"""Seconds until a request that failed with the code may succeed."""

CLIENT_CLOSED_REQUEST = 499
"""Status for the log when the client disconnected; not registered with IANA, introduced by nginx."""

MAX_PATH_CHARS = 100
"""Maximum characters of a requested path in a message; longer than any path of the service."""

_CODE_OF_STATUS = {400: "bad_request", 401: "invalid_api_key", 404: "not_found", 405: "method_not_allowed"}
"""Codes of the errors that Litestar raises."""

_OUT_OF_RESOURCES = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Errors for lack of disk space, files or memory. EROFS: Linux remounts a failing disk read-only."""


class ServiceError(MeshhubError):
    """Error that only the HTTP service raises, with one of the codes in `STATUS`.

    Attributes:
        details: One row for each file that failed; None for other errors.
        headers: Headers of the response.
    """

    error_code = "bad_request"

    def __init__(
        self,
        message: str,
        *,
        error_code: str | None = None,
        details: list[FileError] | None = None,
        headers: Mapping[str, str] | None = None,
        values: Mapping[str, ErrorValue] | None = None,
    ) -> None:
        super().__init__(message, error_code=error_code, values=values)
        self.details = details
        self.headers = dict(headers or {})


class ClientGone(Exception):
    """The client disconnected; a response would not reach it."""


class ErrorBody(Struct, frozen=True, omit_defaults=True):
    """JSON body of every 4xx and 5xx response."""

    error: str
    error_code: str
    request_id: str
    details: list[FileError] | None = None
    values: dict[str, ErrorValue] = {}


def no_room(error: Exception) -> ServerBusy | None:
    """Convert a system error for lack of disk space, files or memory to ServerBusy; return None for other errors."""
    if not isinstance(error, OSError) or error.errno not in _OUT_OF_RESOURCES:
        return None
    return ServerBusy(
        f"the service is out of disk space, files or memory ({errno.errorcode[error.errno]}); try again later"
    )


def answer_error(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """Return the response for an exception."""
    error = no_room(error) or error
    if isinstance(error, KeyStoreUnavailable | JobStoreUnavailable):
        # its message is for the operator, because it names files and hosts
        context_of(request.scope).reason = error.message
        subject = "API keys cannot be checked" if isinstance(error, KeyStoreUnavailable) else "jobs cannot be reached"
        error = ServerBusy(f"{subject} now; try again in a moment")
    if isinstance(error, ClientGone):
        return Response(b"", status_code=CLIENT_CLOSED_REQUEST, media_type="application/json")
    if isinstance(error, HTTPException) and error.status_code < 500:
        error = _convert_routing_error(request, error)
    if not isinstance(error, MeshhubError):
        # the text of an unexpected error may contain paths of this machine, so it is only logged
        log.error("unexpected error", exc_info=error)
        error = MeshhubError(
            "the service failed, not your request; try again, and report the request_id to the operator"
        )
    return _respond(request, error)


def _convert_routing_error(request: Request[Any, Any, Any], error: HTTPException) -> ServiceError:
    """Convert an error that Litestar itself raises, such as 404 and 405."""
    code = _CODE_OF_STATUS.get(error.status_code, "bad_request")
    # `state` imports this module
    root = request.app.state.service.settings.root_path
    path = (root + request.scope["path"])[:MAX_PATH_CHARS]
    if code == "not_found":
        return ServiceError(f"there is no endpoint {path!r}; {root}/schema lists the endpoints", error_code=code)
    if code == "method_not_allowed":
        # Litestar leaves out HEAD, which every GET endpoint supports
        allowed = (error.headers or {}).get("allow", "").replace("GET", "GET, HEAD")
        message = f"{path!r} does not support {request.method}; use {allowed}"
        return ServiceError(message, error_code=code, headers={"Allow": allowed})
    return ServiceError(f"{error.detail}; see {root}/schema", error_code=code)


def _respond(request: Request[Any, Any, Any], error: MeshhubError) -> Response[bytes]:
    status = error.http_status
    details, headers = (error.details, dict(error.headers)) if isinstance(error, ServiceError) else (None, {})
    context = context_of(request.scope)
    context.error_code = error.error_code
    if status in (503, 504):
        # the log gets no other messages, because they may name files of the caller, as those of a batch do
        context.reason = context.reason or ("no file was converted" if details else error.message)
    retry_after_s = RETRY_AFTER.get(error.error_code, RETRY_AFTER["server_busy"] if status == 503 else None)
    if isinstance(error, ServerBusy):
        retry_after_s = error.retry_after_s or retry_after_s
    if retry_after_s is not None:
        headers.setdefault("Retry-After", str(retry_after_s))
    if status == 401:
        headers.setdefault("WWW-Authenticate", 'ApiKey realm="meshhub", header="X-Api-Key"')
    body = ErrorBody(error.message, error.error_code, context.request_id, details, error.values)
    return answer_json(request, body, status, headers)
