"""Parts of the descriptions of endpoints: responses, error codes, parameters."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from typing import Any

import msgspec

from meshhub.error_codes import ERROR_CODES
from meshhub.http.errors import STATUS

Json = dict[str, Any]

REFERENCE = "#/components/schemas/{name}"

BYTES = {"type": "string", "format": "binary"}

FORM_CODES = tuple(code for code in STATUS if not ERROR_CODES[code].is_rare)
"""Codes of every endpoint with a form."""

CONVERT_CODES = (*FORM_CODES, "unsupported_target", "invalid_solid")
"""Codes of every endpoint that writes a file."""

LANGUAGE_PARAMETERS: tuple[Json, ...] = (
    {
        "name": "language",
        "in": "query",
        "required": False,
        "description": "Language of the texts, such as `de`; without a translation, they are English.",
        "schema": {"type": "string"},
    },
    {
        "name": "Accept-Language",
        "in": "header",
        "required": False,
        "description": "Languages in the order of preference, for requests without `language`.",
        "schema": {"type": "string"},
    },
)


IDEMPOTENCY_PARAMETER: Json = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A repetition of the request with the same text has the outcome of the first one; 1 to 255 "
    "printable ASCII characters.",
    "schema": {"type": "string", "pattern": "^[ -~]{1,255}$"},
}
"""Parameter of the endpoints that accept the header."""


def read_example(module: str) -> Json:
    """Return the example of a response, which is in a JSON file beside the module of its endpoint."""
    package, _, name = module.rpartition(".")
    example: Json = msgspec.json.decode((files(package) / f"{name}.json").read_bytes())
    return example


def describe_files(description: str, media_types: Iterable[str]) -> Json:
    """Return the response with a file in one of these media types."""
    contents = {
        # glTF is JSON, and clients would parse every media type that ends in "+json"
        media_type: {"schema": {"type": "object"} if media_type.endswith("json") else BYTES}
        # first, because generators use the first media type, and openapi-python-client supports no other binary type
        for media_type in ("application/octet-stream", *sorted(media_types))
    }
    return {"description": description, "content": contents}


def describe_json(description: str, kind: type | None, example: Json) -> Json:
    """Return the response with JSON of a Struct or TypedDict; None is for any object."""
    schema = {"type": "object"} if kind is None else refer_to(kind.__name__)
    return {"description": description, "content": {"application/json": {"schema": schema, "example": example}}}


def refer_to(name: str, kind: str = "schemas") -> Json:
    """Return a reference to a component of the document."""
    return {"$ref": f"#/components/{kind}/{name}"}
