"""The OpenAPI 3.1 document, made from the registry: every option that a plug-in declares is a field of a form.

Client generators read it too (`tox -e clients`), so it uses the part of JSON Schema that they understand.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version
from inspect import cleandoc
from typing import Any

import msgspec

from meshhub.http.description import examples
from meshhub.http.endpoints.health import Health
from meshhub.http.endpoints.plan import PlanAnswer
from meshhub.http.errors import MEANING, STATUS, ErrorBody
from meshhub.http.responses.reports import CONVERTED, FAILED, HEADER
from meshhub.model.capabilities import Frame
from meshhub.model.options import HostOptions, option_fields
from meshhub.model.plans import Limits
from meshhub.model.report import Inspection
from meshhub.registry import Registry
from meshhub.supported import Supported

Json = dict[str, Any]

_REFERENCE = "#/components/schemas/{name}"

_RESPONSES = (Inspection, PlanAnswer, Supported, Health, ErrorBody)
_WHOLE = (Inspection, Limits, Frame)
"""Structs that are encoded with all fields; msgspec's schema requires only the fields that decoding requires."""

_BYTES = {"type": "string", "format": "binary"}

_ALWAYS_HEADERS = ("X-Request-ID",)
_RATE = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
_HEADERS = {
    "X-Request-ID": ("string", "The request's id, sent or made by the service; it is in errors and in the log."),
    "RateLimit-Limit": ("integer", "Requests that the plan allows in a minute."),
    "RateLimit-Remaining": ("integer", "Requests left in this minute."),
    "RateLimit-Reset": ("integer", "Seconds until a request is left again."),
    "Retry-After": ("integer", "Seconds after which the same request may succeed."),
    "WWW-Authenticate": ("string", "The header that carries the API key."),
    "Accept-Encoding": ("string", "With `unsupported_encoding`: the encodings that a body may have."),
    "ETag": ("string", "The version of the response, for If-None-Match."),
    "Content-Disposition": ("string", "The name of the file: that of the upload with the new extension."),
    HEADER: ("string", "JSON in ASCII: notes, losses, faces before and after, seconds; at most 4096 bytes."),
    CONVERTED: ("integer", "Files that were converted."),
    FAILED: ("integer", "Files that failed; errors.json in the ZIP has the reasons."),
}
_STATUS_HEADERS = {401: ("WWW-Authenticate",), 415: ("Accept-Encoding",), 429: ("Retry-After",), 503: ("Retry-After",)}

_TAGS = {
    "conversion": "Convert and inspect model files.",
    "description": "Plans, formats, options, and this document.",
    "monitoring": "Probes and metrics; no API key, no rate limit.",
}

_ALWAYS = ("request_timeout", "invalid_api_key", "rate_limit_exceeded", "internal_error", "server_busy")
_FORM = (
    "bad_request", "invalid_multipart", "missing_field", "invalid_option", "premium_format_required",
    "request_refused", "file_too_large", "shutting_down", "unsupported_format", "unsupported_encoding",
    "unreadable_file", "empty_model",
    "external_reference", "unsafe_archive", "model_too_complex", "conversion_failed", "worker_crashed",
    "conversion_timeout",
)  # fmt: skip
_CONVERTS = (*_FORM, "unsupported_target")


def document(registry: Registry) -> Json:
    """Return the whole document as plain data."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "meshhub",
            "version": version("meshhub"),
            "summary": "Convert, repair and print-prepare 3D model files.",
            "description": "Convert, repair and print-prepare 3D model files. "
            "Every 4xx and 5xx response is an ErrorBody in JSON; programs read its `error_code`.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        # relative to the address of the document: correct for every host name and port
        "servers": [{"url": "/", "description": "The service that serves this document."}],
        "security": [{}, {"key": []}],
        "tags": [{"name": name, "description": text} for name, text in _TAGS.items()],
        "paths": {
            "/convert": {"post": _convert(registry)},
            "/convert-many": {"post": _convert_many(registry)},
            "/convert-batch": {"post": _convert_batch(registry)},
            "/inspect": {"post": _inspect(registry)},
            "/plan": {"get": _plan()},
            "/supported": {"get": _supported()},
            "/health/live": {"get": _health("live", "The process answers", ())},
            "/health/ready": {"get": _health("ready", "The service takes requests", ("shutting_down", "server_busy"))},
            "/metrics": {"get": _metrics()},
            "/schema": {"get": _schema_page()},
            "/schema/openapi.json": {"get": _schema_document()},
        },
        "components": {
            "schemas": _schemas(),
            "headers": {
                name: {"description": text, "schema": {"type": kind}} for name, (kind, text) in _HEADERS.items()
            },
            "examples": {code: {"value": _error_example(code)} for code in STATUS},
            "securitySchemes": {
                "key": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "X-Api-Key",
                    "description": "Optional. Without a key, a caller has the Free plan.",
                }
            },
        },
    }


def _schemas() -> Json:
    _, components = msgspec.json.schema_components(_RESPONSES, ref_template=_REFERENCE)
    for struct in _WHOLE:
        components[struct.__name__]["required"] = list(struct.__struct_fields__)
    error = components["ErrorBody"]
    error["properties"]["error_code"]["examples"] = list(STATUS)
    error["properties"]["details"] = {
        "type": "array",
        "description": "When every file of a batch failed: each with its reason.",
        "items": _reference("FileError"),
    }
    components["FileError"] = {
        "type": "object",
        "title": "FileError",
        "properties": {name: {"type": "string"} for name in ("file", "error", "error_code")},
        "required": ["file", "error", "error_code"],
    }
    return {name: _simplify(schema) for name, schema in components.items()}


def _simplify(schema: Any) -> Any:
    """Return a response's schema in words that client generators understand.

    A tuple, which holds one type in all responses, becomes an array (`items: false` fails in openapi-python-client,
    and openapi-generator ignores `prefixItems`), an enum gets its type, a docstring loses its indentation. Defaults
    concern only decoding.
    """
    if isinstance(schema, list):
        return [_simplify(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {word: _simplify(value) for word, value in schema.items() if word != "default"}
    if "prefixItems" in plain:
        plain["items"] = plain.pop("prefixItems")[0]
    if isinstance(plain.get("enum"), list):
        plain["type"] = "string"
    if isinstance(plain.get("description"), str):
        plain["description"] = cleandoc(plain["description"])
    return plain


def _error_example(code: str) -> Json:
    return {"error": MEANING[code], "error_code": code, "request_id": "5f0c2a9e7d314b68"}


def option_properties(registry: Registry, *, converts: bool) -> Json:
    """The options as properties of a form: everyone's, or for an inspection only the host's and the readers'."""
    have = registry.declarations
    structs = [(None, HostOptions), *((one.capability.format.label, one.capability.options) for one in have.readers)]
    if converts:
        structs += [(one.capability.label, one.capability.options) for one in have.operations]
        structs += [(one.capability.format.label, one.capability.options) for one in have.writers]
    found: Json = {}
    for owner, struct in structs:
        for field in option_fields(struct):
            if field.name in found:
                continue
            schema = field.schema()
            described = [f"{owner}." if owner else "", field.description]
            # openapi-python-client sends every `default`, and the service then takes the option as requested
            if "default" in schema:
                default = schema.pop("default")
                described.append(f"Default: {str(default).lower() if isinstance(default, bool) else default}.")
            found[field.name] = {**schema, "description": " ".join(filter(None, described))}
    return found


def _form(registry: Registry, main: Json, required: list[str], *, converts: bool, zips: bool = True) -> Json:
    properties: Json = dict(main)
    if converts:
        targets = sorted({one.capability.format.id for one in registry.declarations.writers})
        properties["target"] = {
            "type": "string",
            "title": "Target format",
            "description": "The format to convert to. Letter case and a leading dot are forgiven.",
            "examples": targets,
            "minLength": 1,
        }
    if converts and zips:
        properties["report"] = {
            "type": "boolean",
            "title": "Report",
            "description": "Add report.json to the ZIP.",
        }
    properties |= option_properties(registry, converts=converts)
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    example = {name: value for name, value in examples.FORM.items() if name in properties}
    return {"required": True, "content": {"multipart/form-data": {"schema": schema, "example": example}}}


def _binary(title: str) -> Json:
    return {**_BYTES, "title": title, "contentMediaType": "application/octet-stream"}


def _files(description: str, media_types: Iterable[str], *headers: str) -> Json:
    """Return the response that carries a file in one of these media types."""
    contents = {
        # a glTF is JSON, and whatever ends in "+json" is read as such
        media_type: {"schema": {"type": "object"} if media_type.endswith("json") else _BYTES}
        # first, since openapi-python-client knows no other binary type and generators take the first of several
        for media_type in ("application/octet-stream", *sorted(media_types))
    }
    return {"description": description, "headers": _headers(*headers, "Content-Disposition"), "content": contents}


def _convert(registry: Registry) -> Json:
    media_types = {writer.capability.format.media_types[0] for writer in registry.declarations.writers}
    answer = _files("The converted file.", media_types, HEADER)
    body = _form(registry, {"file": _binary("The model")}, ["file", "target"], converts=True, zips=False)
    return _operation("convert", "Convert one file", "conversion", answer, _CONVERTS, body)


def _convert_many(registry: Registry) -> Json:
    files = {"type": "array", "items": _binary("A model"), "minItems": 1, "title": "The models"}
    body = _form(registry, {"files": files}, ["files", "target"], converts=True)
    codes = (*_CONVERTS, "too_many_files")
    return _operation("convert_many", "Convert several files into one ZIP", "conversion", _zip(), codes, body)


def _convert_batch(registry: Registry) -> Json:
    archive = _binary("A ZIP of models, with the files that belong to them")
    body = _form(registry, {"archive": archive}, ["archive", "target"], converts=True)
    codes = (*_CONVERTS, "too_many_files", "archive_too_large")
    return _operation("convert_batch", "Convert the models of a ZIP into another", "conversion", _zip(), codes, body)


def _zip() -> Json:
    description = "A ZIP with the converted files, errors.json when some failed, report.json when asked for."
    return _files(description, ("application/zip",), HEADER, CONVERTED, FAILED)


def _inspect(registry: Registry) -> Json:
    body = _form(registry, {"file": _binary("The model")}, ["file"], converts=False)
    answer = _json("Size, faces, bodies, holes, volume of the model.", _reference("Inspection"), examples.INSPECTION)
    return _operation("inspect", "Is it printable?", "conversion", answer, _FORM, body)


def _plan() -> Json:
    answer = _json("The plan.", _reference("PlanAnswer"), examples.PLAN)
    return _operation("plan", "The caller's plan, limits and use", "description", answer)


def _supported() -> Json:
    answer = _json("Formats, operations and options for this caller.", _reference("Supported"), examples.SUPPORTED)
    answer["headers"] = _headers("ETag")
    operation = _operation("supported", "Formats, operations and options", "description", answer)
    operation["responses"]["304"] = {
        "description": "Nothing has changed since the ETag in If-None-Match.",
        "headers": _headers("ETag", *_ALWAYS_HEADERS, *_RATE),
    }
    return operation


def _health(name: str, summary: str, codes: tuple[str, ...]) -> Json:
    answer = _json(summary + ".", _reference("Health"), {"status": name})
    return _operation(f"health_{name}", summary, "monitoring", answer, codes)


def _metrics() -> Json:
    example = "# TYPE meshhub_requests_total counter\n"
    answer = {
        "description": "Prometheus' text format. The operator decides who may read it.",
        "content": {"text/plain": {"schema": {"type": "string"}, "example": example}},
    }
    return _operation("metrics", "Counters of the service", "monitoring", answer, ("not_found",))


def _schema_page() -> Json:
    answer = _json("This document, or a page for browsers (Accept: text/html).", {"type": "object"}, examples.SCHEMA)
    answer["content"]["text/html"] = {"schema": {"type": "string"}}
    return _operation("schema_page", "This document as a page", "description", answer)


def _schema_document() -> Json:
    answer = _json("OpenAPI 3.1.", {"type": "object"}, examples.SCHEMA)
    return _operation("schema_document", "This document", "description", answer)


def _json(description: str, schema: Json, example: Json) -> Json:
    return {"description": description, "content": {"application/json": {"schema": schema, "example": example}}}


def _reference(name: str, kind: str = "schemas") -> Json:
    return {"$ref": f"#/components/{kind}/{name}"}


def _headers(*names: str) -> Json:
    return {name: _reference(name, "headers") for name in names}


def _operation(
    name: str, summary: str, tag: str, answer: Json, codes: tuple[str, ...] = (), body: Json | None = None
) -> Json:
    headers: tuple[str, ...] = _ALWAYS_HEADERS
    if tag != "monitoring":
        codes = (*codes, *_ALWAYS)
        headers = (*headers, *_RATE)
    answer = {**answer, "headers": {**answer.get("headers", {}), **_headers(*headers)}}
    operation: Json = {
        "operationId": name,
        "summary": summary,
        "tags": [tag],
        "responses": {"200": answer, **_errors(codes, headers)},
    }
    if tag == "monitoring":
        operation["security"] = []
    if body is not None:
        operation["requestBody"] = body
    return operation


def _errors(codes: tuple[str, ...], headers: tuple[str, ...]) -> Json:
    """Return the error responses by status, each with the codes it can carry."""
    codes_of: dict[int, list[str]] = {}
    for code in dict.fromkeys(codes):
        codes_of.setdefault(STATUS[code], []).append(code)
    return {
        str(status): {
            "description": "\n".join(f"- `{code}`: {MEANING[code]}" for code in codes),
            "headers": _headers(*headers, *_STATUS_HEADERS.get(status, ())),
            "content": {
                "application/json": {
                    "schema": _reference("ErrorBody"),
                    "examples": {code: _reference(code, "examples") for code in codes},
                }
            },
        }
        for status, codes in sorted(codes_of.items())
    }
