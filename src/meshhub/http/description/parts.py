"""Parts of the OpenAPI document that several operations share: references, responses, error codes."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from typing import Any

import msgspec

from meshhub.http.errors import MEANING, STATUS
from meshhub.http.headers import header_names

Json = dict[str, Any]

REFERENCE = "#/components/schemas/{name}"

BYTES = {"type": "string", "format": "binary"}

EXAMPLES: Json = msgspec.json.decode((files(__package__) / "examples.json").read_bytes())
"""Example requests and responses."""

_COMMON_CODES = (
    "request_timeout",
    "invalid_api_key",
    "rate_limit_exceeded",
    "internal_error",
    "server_busy",
    "host_not_allowed",
)
_CODES_OF_FEW = (
    "not_found", "method_not_allowed", "unsupported_target", "too_many_files", "archive_too_large", "invalid_solid",
    "plan_required", "job_not_found", "job_not_finished", "idempotency_conflict", "no_result", "range_not_satisfiable",
    "too_many_jobs", "worker_lost",
)  # fmt: skip
FORM_CODES = tuple(code for code in STATUS if code not in _CODES_OF_FEW)
"""Codes of every endpoint with a form; other codes belong to some of these endpoints, or to unknown paths and methods.
"""

CONVERT_CODES = (*FORM_CODES, "unsupported_target", "invalid_solid")


def describe_files(description: str, media_types: Iterable[str]) -> Json:
    """Return the response with a file in one of these media types."""
    contents = {
        # glTF is JSON, and clients would parse every media type that ends in "+json"
        media_type: {"schema": {"type": "object"} if media_type.endswith("json") else BYTES}
        # first, because generators use the first media type, and openapi-python-client supports no other binary type
        for media_type in ("application/octet-stream", *sorted(media_types))
    }
    return {"description": description, "content": contents}


def describe_json(description: str, schema: Json, example: Json) -> Json:
    """Return the response with JSON of a schema."""
    return {"description": description, "content": {"application/json": {"schema": schema, "example": example}}}


def refer_to(name: str, kind: str = "schemas") -> Json:
    """Return a reference to a component of the document."""
    return {"$ref": f"#/components/{kind}/{name}"}


def refer_to_headers(operation: str, tag: str, status: int) -> Json:
    """Return references to the headers of the responses of an operation with a status."""
    return {name: refer_to(name, "headers") for name in header_names(operation, tag, status)}


def describe_operation(
    name: str,
    summary: str,
    tag: str,
    response: Json,
    codes: tuple[str, ...] = (),
    body: Json | None = None,
    *,
    status: int = 200,
) -> Json:
    """Return an operation, with its errors and those of every operation.

    Args:
        name: Id of the operation.
        summary: Title for people.
        tag: Name of its tag.
        response: Response of a success.
        codes: Error codes, in addition to those of every operation.
        body: Form of the request.
        status: Status of a success.
    """
    codes = (*codes, *(_COMMON_CODES if tag != "monitoring" else ("host_not_allowed",)))
    operation: Json = {
        "operationId": name,
        "summary": summary,
        "tags": [tag],
        "responses": {
            str(status): {**response, "headers": refer_to_headers(name, tag, status)},
            **_errors(name, tag, codes),
        },
    }
    if tag == "monitoring":
        operation["security"] = []
    if body is not None:
        operation["requestBody"] = body
    return operation


def _errors(operation: str, tag: str, codes: tuple[str, ...]) -> Json:
    """Return the error responses by status, each with its possible codes."""
    codes_by_status: dict[int, list[str]] = {}
    for code in dict.fromkeys(codes):
        codes_by_status.setdefault(STATUS[code], []).append(code)
    return {
        str(status): {
            "description": "\n".join(f"- `{code}`: {MEANING[code]}" for code in codes),
            "headers": refer_to_headers(operation, tag, status),
            "content": {
                "application/json": {
                    "schema": refer_to("ErrorBody"),
                    "examples": {code: refer_to(code, "examples") for code in codes},
                }
            },
        }
        for status, codes in sorted(codes_by_status.items())
    }
