"""Response headers: their description in the OpenAPI document, and the values that every response has."""

from __future__ import annotations

from dataclasses import dataclass

REPORT = "X-Meshhub-Report"
CONVERTED = "X-Meshhub-Converted"
FAILED = "X-Meshhub-Failed"
CACHE = "X-Meshhub-Cache"

_CONVERT = ("convert", "convert_many", "convert_batch", "download_result")
_CACHED = ("convert", "convert_many", "convert_batch", "combine", "inspect", "check", "quote", "render", "preview")
_BATCH = ("convert_many", "convert_batch", "download_result")

COUNTED = ("conversion", "description", "jobs")
"""Tags of the endpoints that count against the rate limit."""


@dataclass(frozen=True)
class ResponseHeader:
    """Response header in the OpenAPI document.

    Attributes:
        name: Name of the header.
        kind: JSON Schema type of its value.
        description: Meaning for the caller.
        statuses: Statuses of the responses that carry it; empty: all.
        operations: Ids or tags of the operations whose responses carry it; empty: all.
    """

    name: str
    kind: str
    description: str
    statuses: tuple[int, ...] = ()
    operations: tuple[str, ...] = ()


RESPONSE_HEADERS = (
    ResponseHeader(
        REPORT, "string", "JSON in ASCII: notes, losses, faces before and after, seconds; at most 4096 bytes.",
        (200,), (*_CONVERT, "combine", "render", "preview"),
    ),
    ResponseHeader(CONVERTED, "integer", "Files that were converted.", (200,), _BATCH),
    ResponseHeader(FAILED, "integer", "Files that failed; errors.json in the ZIP has the reasons.", (200,), _BATCH),
    ResponseHeader(
        CACHE, "string", "If the service has a cache: hit if nothing had to be converted, otherwise miss.",
        (200,), _CACHED,
    ),
    ResponseHeader(
        "Content-Disposition", "string", "The name of the file: that of the upload with the new extension.",
        (200,), (*_CONVERT, "combine", "render", "preview", "check"),
    ),
    ResponseHeader(
        "ETag", "string", "The version of the response, for If-None-Match.", (200, 206, 304),
        ("supported", "download_result"),
    ),
    ResponseHeader(
        "Content-Language", "string", "Language of the texts.", (200,),
        ("supported", "plan", "check", "download_result"),
    ),
    ResponseHeader("Location", "string", "Path of the job.", (202,), ("submit_job",)),
    ResponseHeader(
        "Content-Range", "string", "Bytes of the response, and of the whole.", (206, 416), ("download_result",)
    ),
    ResponseHeader("X-Request-ID", "string", "Id of the request, for errors and logs; sent or generated."),
    ResponseHeader(
        "RateLimit-Limit", "integer", "Requests that the plan allows in a minute.", operations=COUNTED
    ),
    ResponseHeader("RateLimit-Remaining", "integer", "Requests left in this minute.", operations=COUNTED),
    ResponseHeader(
        "RateLimit-Reset", "integer", "Seconds until another request is available.", operations=COUNTED
    ),
    ResponseHeader("WWW-Authenticate", "string", "The header that carries the API key.", (401,)),
    ResponseHeader(
        "Accept-Encoding", "string", "With `unsupported_encoding`: the encodings that a body may have.", (415,)
    ),
    ResponseHeader("Retry-After", "integer", "Seconds after which the same request may succeed.", (409, 429, 503)),
)  # fmt: skip


def common_headers(request_id: str, *, closes: bool) -> dict[str, str]:
    """Return the headers of every response, including those that the connection sends without the application.

    Args:
        request_id: Id of the request.
        closes: Whether the connection is closed after the response.
    """
    return {"x-request-id": request_id, **({"connection": "close"} if closes else {})}


def header_names(operation: str, tag: str, status: int) -> list[str]:
    """Return the names of the headers in the responses of an operation with this status."""
    return [
        header.name
        for header in RESPONSE_HEADERS
        if (not header.statuses or status in header.statuses)
        and (not header.operations or not {operation, tag}.isdisjoint(header.operations))
    ]
