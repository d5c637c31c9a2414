"""The HTTP interface, from the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from meshhub.http.headers import COUNTED, RESPONSE_HEADERS, TAGS
from meshhub.http.openapi import document
from meshhub.model.options import HostOptions, option_fields
from reference_pages import REGISTRY, code, page_of, table

INTRODUCTION = """\
# HTTP

The running service describes itself: `GET /schema` is a page for browsers, `GET /schema/openapi.json` the OpenAPI 3.1
document for programs. Both include the options of installed plug-ins. This page is generated from that document by
`docs/make_reference.py`. [Convert over HTTP](../how-to/convert-over-http.md) shows the endpoints in use.

Every response has {every}. Every response of an endpoint that counts requests (all except `/health` and
`/metrics`) has {counted}. The tables list further headers."""

HEADERS_OF_ALL, HEADERS_OF_COUNTED = (
    [header.name for header in RESPONSE_HEADERS if not header.statuses and header.tags == tags]
    for tags in (TAGS, COUNTED)
)
"""Headers that the introduction names once; the tables leave them out."""


def _words(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_words(choice) for choice in schema["anyOf"])
    if schema.get("type") == "array":
        return f"array of {_words(schema.get('items', {}))}"
    if "enum" in schema:
        return ", ".join(code(value) for value in schema["enum"])
    return str(schema.get("format") or schema.get("type") or "any")


def _operations(description: dict[str, Any]) -> Iterator[str]:
    options = {field.name for field in option_fields(HostOptions)} | set(REGISTRY.declarations.fields())
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            yield f"## {method.upper()} {path}"
            summary = operation["summary"]
            yield summary if summary.endswith("?") else f"{summary}."
            yield from _parameters(operation)
            yield from _form(operation, options)
            yield from _responses(operation)


def _parameters(operation: dict[str, Any]) -> Iterator[str]:
    parameters = [parameter for parameter in operation.get("parameters", ()) if parameter["in"] != "path"]
    if parameters:
        yield table(
            ("parameter", "in", "type", "meaning"),
            ((code(item["name"]), item["in"], _words(item["schema"]), item["description"]) for item in parameters),
        )


def _form(operation: dict[str, Any], options: set[str]) -> Iterator[str]:
    if "requestBody" not in operation:
        return
    schema = operation["requestBody"]["content"]["multipart/form-data"]["schema"]
    yield table(
        ("form field", "type", "required", "meaning"),
        (
            (
                code(name),
                _words(field),
                "yes" if name in schema["required"] else "no",
                f"{field.get('title', '')}. {field.get('description', '')}".strip(),
            )
            for name, field in schema["properties"].items()
            if name not in options
        ),
    )
    kinds = "every option" if "target" in schema["properties"] else "the options of readers"
    yield f"Takes {kinds} of [formats and operations](options.md) as further fields."


def _responses(operation: dict[str, Any]) -> Iterator[str]:
    common = {*HEADERS_OF_ALL, *HEADERS_OF_COUNTED}
    rows = []
    for status, response in operation["responses"].items():
        contents = response.get("content", {})
        codes = [name for content in contents.values() for name in content.get("examples", {})]
        types = dict.fromkeys(
            _words(content["schema"]) if "$ref" in content.get("schema", {}) else code(kind)
            for kind, content in contents.items()
        )
        rows.append(
            (
                status,
                ", ".join(map(code, codes)) or response["description"],
                ", ".join(types),
                ", ".join(code(name) for name in response.get("headers", {}) if name not in common),
            )
        )
    yield table(("status", "meaning or `error_code`", "body", "headers"), rows)


def _bodies(components: dict[str, Any]) -> Iterator[str]:
    for name, schema in sorted(components["schemas"].items()):
        yield f"### {name}"
        yield " ".join(schema.get("description", "").split())
        if schema.get("properties"):
            yield table(
                ("field", "type", "always present"),
                (
                    (code(field), _words(value), "yes" if field in schema.get("required", ()) else "no")
                    for field, value in schema["properties"].items()
                ),
            )


def _join(names: list[str]) -> str:
    *first, last = map(code, names)
    return f"{', '.join(first)} and {last}" if first else last


def page() -> str:
    """Return the page."""
    description = document(REGISTRY)
    components = description["components"]
    return page_of(
        INTRODUCTION.format(every=_join(HEADERS_OF_ALL), counted=_join(HEADERS_OF_COUNTED)),
        *_operations(description),
        "## Response headers",
        table(
            ("header", "type", "meaning"),
            (
                (code(name), header["schema"]["type"], header["description"])
                for name, header in components["headers"].items()
            ),
        ),
        "## Errors",
        "Every 4xx and 5xx response is an [ErrorBody](#errorbody). [Error codes](errors.md) lists all codes.",
        "## Response bodies",
        *_bodies(components),
    )
