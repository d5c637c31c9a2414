"""The OpenAPI 3.1 document, made from the registry: every option that a plug-in declares is a field of a form."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import msgspec

from meshhub.http.errors import MEANING, STATUS, ErrorBody
from meshhub.http.reports import CONVERTED, FAILED, HEADER
from meshhub.options import HostOptions, option_fields
from meshhub.registry import Registry
from meshhub.report import Inspection

Json = dict[str, Any]

_REFERENCE = "#/components/schemas/{name}"

_ALWAYS = ("invalid_api_key", "rate_limit_exceeded", "internal_error", "server_busy")
_FORM = (
    "bad_request", "invalid_multipart", "missing_field", "invalid_option", "premium_format_required",
    "request_refused", "file_too_large", "shutting_down", "unsupported_format", "unreadable_file", "empty_model",
    "external_reference", "unsafe_archive", "model_too_complex", "conversion_failed", "worker_crashed",
    "conversion_timeout",
)  # fmt: skip
_CONVERTS = (*_FORM, "unsupported_target")


def document(registry: Registry) -> Json:
    """The whole document, as plain data."""
    inspection, components = _schemas()
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "meshhub",
            "version": version("meshhub"),
            "summary": "Convert, repair and print-prepare 3D model files.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": {
            "/convert": {"post": _convert(registry)},
            "/convert-many": {"post": _convert_many(registry)},
            "/convert-batch": {"post": _convert_batch(registry)},
            "/inspect": {"post": _inspect(registry, inspection)},
            "/plan": {"get": _plan()},
            "/supported": {"get": _supported()},
            "/health/live": {"get": _health("live", "The process answers", ())},
            "/health/ready": {"get": _health("ready", "The service takes requests", ("shutting_down",))},
            "/metrics": {"get": _metrics()},
            "/schema": {"get": _schema_page()},
            "/schema/openapi.json": {"get": _schema_document()},
        },
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Api-Key"}},
        },
    }


def _schemas() -> tuple[Json, Json]:
    (inspection, _), components = msgspec.json.schema_components([Inspection, ErrorBody], ref_template=_REFERENCE)
    error = components["ErrorBody"]
    error["properties"]["error_code"]["examples"] = list(STATUS)
    error["properties"]["details"] = {
        "type": "array",
        "description": "When every file of a batch failed: each with its reason.",
        "items": {
            "type": "object",
            "properties": {name: {"type": "string"} for name in ("file", "error", "error_code")},
            "required": ["file", "error", "error_code"],
        },
    }
    return inspection, components


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
            described = field.description if owner is None else f"{owner}. {field.description}".strip()
            found[field.name] = {**field.schema(), "description": described}
    return found


def _form(registry: Registry, main: Json, required: list[str], *, converts: bool) -> Json:
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
        properties["report"] = {
            "type": "boolean",
            "title": "Report",
            "description": "Add report.json to the ZIP.",
            "default": False,
        }
    properties |= option_properties(registry, converts=converts)
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {"required": True, "content": {"multipart/form-data": {"schema": schema}}}


def _binary(title: str) -> Json:
    return {"type": "string", "format": "binary", "title": title, "contentMediaType": "application/octet-stream"}


def _convert(registry: Registry) -> Json:
    media = {one.capability.format.media_types[0] for one in registry.declarations.writers}
    answer = {
        "description": "The converted file.",
        "headers": _headers(HEADER, "Content-Disposition"),
        "content": {one: {"schema": {}} for one in sorted(media)},
    }
    body = _form(registry, {"file": _binary("The model")}, ["file", "target"], converts=True)
    return _operation("convert", "Convert one file", answer, _CONVERTS, body)


def _convert_many(registry: Registry) -> Json:
    files = {"type": "array", "items": _binary("A model"), "minItems": 1, "title": "The models"}
    body = _form(registry, {"files": files}, ["files", "target"], converts=True)
    return _operation(
        "convert_many", "Convert several files into one ZIP", _zip(), (*_CONVERTS, "too_many_files"), body
    )


def _convert_batch(registry: Registry) -> Json:
    archive = _binary("A ZIP of models, with the files that belong to them")
    body = _form(registry, {"archive": archive}, ["archive", "target"], converts=True)
    codes = (*_CONVERTS, "too_many_files", "archive_too_large")
    return _operation("convert_batch", "Convert the models of a ZIP into another", _zip(), codes, body)


def _zip() -> Json:
    return {
        "description": "A ZIP with the converted files, errors.json when some failed, report.json when asked for.",
        "headers": _headers(HEADER, CONVERTED, FAILED, "Content-Disposition"),
        "content": {"application/zip": {"schema": {}}},
    }


def _inspect(registry: Registry, inspection: Json) -> Json:
    body = _form(registry, {"file": _binary("The model")}, ["file"], converts=False)
    return _operation("inspect", "Is it printable?", _json("What the file holds.", inspection), _FORM, body)


def _plan() -> Json:
    number = {"type": ["number", "null"]}
    limits = (
        "max_file_bytes", "max_batch_files", "requests_per_minute", "conversion_timeout_seconds",
        "max_request_bytes", "request_timeout_seconds",
    )  # fmt: skip
    schema = {
        "type": "object",
        "properties": {
            "plan": {"type": "string"},
            "label": {"type": "string"},
            "limits": {"type": "object", "properties": dict.fromkeys(limits, number), "required": list(limits)},
            "premium_formats": {"type": "array", "items": {"type": "string"}},
            "usage": {
                "type": "object",
                "properties": dict.fromkeys(("requests_remaining", "resets_in_seconds"), number),
                "required": ["requests_remaining", "resets_in_seconds"],
            },
        },
        "required": ["plan", "label", "limits", "premium_formats", "usage"],
    }
    return _operation("plan", "The caller's plan, limits and use", _json("The plan.", schema))


def _supported() -> Json:
    listed = {"type": "array", "items": {"type": "string"}}
    schema = {
        "type": "object",
        "properties": {
            "plan": {"type": "string"},
            "input_formats": listed,
            "output_formats": listed,
            "formats": {"type": "object", "additionalProperties": {"type": "object"}},
            "operations": {"type": "array", "items": {"type": "object"}},
            "options": {"type": "object"},
            "plugins": {"type": "array", "items": {"type": "object"}},
            "faults": {"type": "array", "items": {"type": "object"}},
        },
        "required": ["plan", "input_formats", "output_formats", "formats", "operations", "faults"],
    }
    made = _operation("supported", "Formats, operations and options", _json("What this caller can use.", schema))
    made["responses"]["304"] = {"description": "Nothing has changed since the ETag in If-None-Match."}
    return made


def _health(name: str, summary: str, codes: tuple[str, ...]) -> Json:
    schema = {"type": "object", "properties": {"status": {"const": name}}, "required": ["status"]}
    made = _operation(f"health_{name}", summary, _json(summary + ".", schema), codes, open_to_all=True)
    made["security"] = []
    return made


def _metrics() -> Json:
    answer = {
        "description": "Prometheus' text format. For whom, the operator says.",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }
    made = _operation("metrics", "What the service has counted", answer, ("not_found",), open_to_all=True)
    made["security"] = []
    return made


def _schema_page() -> Json:
    answer = {
        "description": "A page for people, or this document for programs (Accept: application/json).",
        "content": {"text/html": {"schema": {"type": "string"}}, "application/json": {"schema": {"type": "object"}}},
    }
    return _operation("schema", "This description", answer)


def _schema_document() -> Json:
    return _operation("schema_document", "This document", _json("OpenAPI 3.1.", {"type": "object"}))


def _json(description: str, schema: Json) -> Json:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _headers(*names: str) -> Json:
    return {name: {"schema": {"type": "string"}} for name in names}


def _operation(
    name: str,
    summary: str,
    answer: Json,
    codes: tuple[str, ...] = (),
    body: Json | None = None,
    *,
    open_to_all: bool = False,
) -> Json:
    if not open_to_all:
        codes = (*codes, *_ALWAYS)
        answer = {**answer, "headers": {**answer.get("headers", {}), **_headers("RateLimit-Remaining")}}
    made: Json = {
        "operationId": name,
        "summary": summary,
        "security": [{}, {"key": []}],
        "responses": {"200": answer, **_errors(codes)},
    }
    if body is not None:
        made["requestBody"] = body
    return made


def _errors(codes: tuple[str, ...]) -> Json:
    """The error answers, by status, each with the codes it can carry."""
    found: dict[int, list[str]] = {}
    for code in dict.fromkeys(codes):
        found.setdefault(STATUS[code], []).append(code)
    return {
        str(status): {
            "description": "\n".join(f"- `{code}`: {MEANING[code]}" for code in codes_of),
            "content": {"application/json": {"schema": {"$ref": _REFERENCE.format(name="ErrorBody")}}},
        }
        for status, codes_of in sorted(found.items())
    }
