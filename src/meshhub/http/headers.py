"""Response headers: their description in the OpenAPI document, and the values that every response has.

A header of single endpoints stands in their `headers`.
"""

from __future__ import annotations

from dataclasses import dataclass

from meshhub.http.errors import STATUS

REPORT = "X-Meshhub-Report"
CONVERTED = "X-Meshhub-Converted"
FAILED = "X-Meshhub-Failed"
CACHE = "X-Meshhub-Cache"

DISPOSITION = "Content-Disposition"
ETAG = "ETag"
LANGUAGE = "Content-Language"
LOCATION = "Location"
RANGE = "Content-Range"

COUNTED = ("conversion", "description", "jobs")
"""Tags of the endpoints that count against the rate limit."""

TAGS = (*COUNTED, "monitoring")
"""Tags of all endpoints."""


@dataclass(frozen=True)
class ResponseHeader:
    """Response header in the OpenAPI document.

    Attributes:
        name: Name of the header.
        kind: JSON Schema type of its value.
        description: Meaning for the caller.
        statuses: Statuses of the responses that carry it; empty: all.
        tags: Tags of the endpoints whose responses carry it; None: the endpoints that name it.
    """

    name: str
    kind: str
    description: str
    statuses: tuple[int, ...] = ()
    tags: tuple[str, ...] | None = None


RESPONSE_HEADERS = (
    ResponseHeader(
        REPORT, "string", "JSON in ASCII: notes, losses, faces before and after, seconds; at most 4096 bytes.", (200,)
    ),
    ResponseHeader(CONVERTED, "integer", "Files that were converted.", (200,)),
    ResponseHeader(FAILED, "integer", "Files that failed; errors.json in the ZIP has the reasons.", (200,)),
    ResponseHeader(
        CACHE, "string", "If the service has a cache: hit if nothing had to be converted, otherwise miss.", (200,)
    ),
    ResponseHeader(DISPOSITION, "string", "The name of the file: that of the upload with the new extension.", (200,)),
    ResponseHeader(ETAG, "string", "The version of the response, for If-None-Match.", (200, 206, 304)),
    ResponseHeader(LANGUAGE, "string", "Language of the texts.", (200, 202)),
    ResponseHeader(LANGUAGE, "string", "Language of the texts.", tuple(sorted(set(STATUS.values()))), TAGS),
    ResponseHeader(LOCATION, "string", "Path of the job.", (202,)),
    ResponseHeader(RANGE, "string", "Bytes of the response, and of the whole.", (206, 416)),
    ResponseHeader("X-Request-ID", "string", "Id of the request, for errors and logs; sent or generated.", tags=TAGS),
    ResponseHeader("RateLimit-Limit", "integer", "Requests that the plan allows in a minute.", tags=COUNTED),
    ResponseHeader("RateLimit-Remaining", "integer", "Requests left in this minute.", tags=COUNTED),
    ResponseHeader("RateLimit-Reset", "integer", "Seconds until another request is available.", tags=COUNTED),
    ResponseHeader("WWW-Authenticate", "string", "The header that carries the API key.", (401,), TAGS),
    ResponseHeader(
        "Accept-Encoding", "string", "With `unsupported_encoding`: the encodings that a body may have.", (415,), TAGS
    ),
    ResponseHeader(
        "Retry-After", "integer", "Seconds after which the same request may succeed.", (409, 429, 503), TAGS
    ),
)


def common_headers(request_id: str, *, closes: bool) -> dict[str, str]:
    """Return the headers of every response, including those that the connection sends without the application.

    Args:
        request_id: Id of the request.
        closes: Whether the connection is closed after the response.
    """
    return {"x-request-id": request_id, **({"connection": "close"} if closes else {})}
