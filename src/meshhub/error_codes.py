"""Codes of errors, which never change: HTTP status, exit status, meaning, retry time, and the values of messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class ErrorCode(NamedTuple):
    """Row of the table of error codes."""

    http_status: int | None
    """Status of the HTTP response; None for a code that is not part of the HTTP interface."""

    exit_status: int | None
    """Exit status of the command line; None for a code that only the HTTP service uses."""

    meaning: str
    """Sentences for the caller, in Markdown."""

    retry_after_s: int | None = None
    """Seconds until the same request may succeed; None if a retry does not help."""

    values: tuple[str, ...] = ()
    """Names of the values that errors of the code may have; lengths are in millimeters."""

    is_rare: bool = False
    """Whether only some of the endpoints with a form send it; the `codes` of these name it."""


ERROR_CODES: Mapping[str, ErrorCode] = {
    "bad_request": ErrorCode(
        400, 2, "The request is malformed: a repeated field, an invalid header or an upload that is too slow."
    ),
    "invalid_multipart": ErrorCode(
        400, None, "The body is not multipart/form-data, is truncated, or has a text field that is not UTF-8."
    ),
    "missing_field": ErrorCode(400, None, "The field `file`, `files`, `archive` or `target` is missing."),
    "invalid_option": ErrorCode(
        400,
        2,
        "An option is unknown, malformed or out of bounds; the message names it.",
        values=("option", "value", "min", "max"),
    ),
    "unsupported_target": ErrorCode(
        400, 2, "`target` is not a format that can be written here.", values=("format",), is_rare=True
    ),
    "invalid_api_key": ErrorCode(
        401, 2, "The key is unknown, expired or revoked. Such a request is never served under the free plan."
    ),
    "premium_format_required": ErrorCode(
        403,
        2,
        "The plan does not grant the entitlement that the request needs.",
        values=("plan", "format", "operation"),
    ),
    "request_refused": ErrorCode(
        403, 2, "A review plug-in rejected the request; it may use its own code, with the same status."
    ),
    "origin_not_allowed": ErrorCode(
        403,
        None,
        "A page of another origin sent the request to a service on its visitor's machine; see `cors_origins`.",
    ),
    "app_token_required": ErrorCode(
        403,
        None,
        "The request to `meshhub app` lacks the token of its page; open the page with `meshhub app`.",
        is_rare=True,
    ),
    "plan_required": ErrorCode(
        403, 2, "The plan does not include this function, such as the list of jobs.", is_rare=True
    ),
    "not_found": ErrorCode(404, None, "The path does not exist.", is_rare=True),
    "job_not_found": ErrorCode(404, 2, "The job does not exist, was deleted, or belongs to another key.", is_rare=True),
    "method_not_allowed": ErrorCode(405, None, "The path does not support the method; see `Allow`.", is_rare=True),
    "request_timeout": ErrorCode(408, None, "The request did not arrive in time; send it again on a new connection."),
    "job_not_finished": ErrorCode(
        409,
        2,
        "The job is still queued or running; `Retry-After` has the seconds until the next look.",
        1,
        is_rare=True,
    ),
    "idempotency_conflict": ErrorCode(
        409, 2, "A different request was sent with the same `Idempotency-Key`.", is_rare=True
    ),
    "save_failed": ErrorCode(
        409, None, "`meshhub app` cannot write the result into the folder of its input.", is_rare=True
    ),
    "output_exists": ErrorCode(
        409, 6, "The output file exists; `--force`, or `replace` for a printer, overwrites it.", is_rare=True
    ),
    "no_result": ErrorCode(410, 2, "The job was canceled, or its result was deleted.", is_rare=True),
    "file_too_large": ErrorCode(
        413, None, "A file, or the whole request, exceeds a limit of the plan.", values=("name", "bytes", "limit_bytes")
    ),
    "too_many_files": ErrorCode(
        413, None, "The batch has more files than the plan allows.", values=("count", "limit"), is_rare=True
    ),
    "archive_too_large": ErrorCode(
        413,
        None,
        "The archive, or its unpacked content, exceeds a limit of the plan.",
        values=("bytes", "limit_bytes"),
        is_rare=True,
    ),
    "unsupported_format": ErrorCode(
        415,
        2,
        "Neither the content nor the extension matches a format that can be read here.",
        values=("name", "distribution"),
    ),
    "unsupported_encoding": ErrorCode(
        415, None, "The body is compressed (`Content-Encoding`); send it uncompressed, see `Accept-Encoding`."
    ),
    "range_not_satisfiable": ErrorCode(
        416, None, "The header `Range` asks for bytes outside the result.", is_rare=True
    ),
    "host_not_allowed": ErrorCode(
        421, None, "The header `Host` names a host that the service does not serve; see `allowed_hosts`."
    ),
    "unreadable_file": ErrorCode(
        422,
        3,
        "The file does not follow its format; a `defect` is `cut_off`, `other_kind`, `other_version` or `sliced`.",
        values=("format", "line", "extension", "defect"),
    ),
    "empty_model": ErrorCode(422, 3, "The file has no triangles, or no content.", values=("format",)),
    "external_reference": ErrorCode(
        422,
        3,
        "The model needs a file that is missing: keep it beside the model, or pack both in one ZIP archive; over HTTP, "
        "send the archive to `/convert-batch`, or as `archive` of a job.",
        values=("files",),
    ),
    "unsafe_archive": ErrorCode(422, 3, "The archive cannot be unpacked safely."),
    "model_too_complex": ErrorCode(
        422,
        3,
        "The model exceeds the limits of one conversion; reduce its number of faces.",
        values=("count", "limit", "limit_bytes", "triangle_limit"),
    ),
    "conversion_failed": ErrorCode(422, 4, "The file is valid, but a step cannot convert it.", values=("operation",)),
    "invalid_solid": ErrorCode(
        422,
        4,
        "The result would hold an invalid solid; repair the model, or set the option that the message names.",
        values=("operation",),
        is_rare=True,
    ),
    "worker_crashed": ErrorCode(422, 5, "The worker process of the conversion ended without a result."),
    "worker_lost": ErrorCode(
        422,
        5,
        "The service ended several times while it ran the job, perhaps for reasons of its own; submit the job again.",
        is_rare=True,
    ),
    "too_many_jobs": ErrorCode(
        429,
        5,
        "The caller already has the maximum number of unfinished jobs; wait until one ends.",
        5,
        values=("count", "limit"),
        is_rare=True,
    ),
    "rate_limit_exceeded": ErrorCode(
        429,
        None,
        "The caller sent too many requests in one minute; wait for `Retry-After` seconds.",
        60,
        values=("limit", "daily_limit"),
    ),
    "internal_error": ErrorCode(
        500, 70, "Fault of meshhub, not of the request; report the `request_id` to the operator."
    ),
    "output_failed": ErrorCode(
        502,
        6,
        "The output cannot be written; the message has the reason, such as a printer that is off or busy.",
        is_rare=True,
    ),
    "server_busy": ErrorCode(
        503, 5, "No worker, disk space or database is available; try again after `Retry-After` seconds.", 5
    ),
    "shutting_down": ErrorCode(503, 5, "The service is stopping; try again after `Retry-After` seconds.", 10),
    "conversion_timeout": ErrorCode(
        504, 5, "The conversion, or the whole request, took too long; fewer faces may help.", values=("seconds",)
    ),
    "service_unreachable": ErrorCode(
        None,
        5,
        "No service of meshhub responds at the address, or the connection fails.",
    ),
    "canceled": ErrorCode(None, 5, "The caller canceled the conversion."),
    "missing_dependency": ErrorCode(
        None, 7, "A package is not installed; the message names the command that installs it."
    ),
}
"""Every error code of meshhub, by HTTP status. Plug-ins may use their own codes."""


def list_values(code: str) -> tuple[str, ...]:
    """Return the names of the values that errors of a code may have; none for a code of a plug-in."""
    return ERROR_CODES[code].values if code in ERROR_CODES else ()
