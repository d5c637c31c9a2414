"""OpenAPI 3.1 document of a registry: every option of a plug-in is a field of a form.

Client generators read it too (`tox -e clients`), so it uses the part of JSON Schema that they support.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import version
from inspect import cleandoc
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Struct

from meshhub.http.conversions.explanations import Explanation, FileExplanation
from meshhub.http.description import examples
from meshhub.http.endpoints.health import Health
from meshhub.http.endpoints.jobs import JobList
from meshhub.http.endpoints.plan import PlanAnswer
from meshhub.http.errors import MEANING, STATUS, ErrorBody
from meshhub.http.headers import RESPONSE_HEADERS, header_names
from meshhub.http.intake.explanation_requests import SOURCES
from meshhub.http.intake.file_options import FIELD
from meshhub.model.capabilities import Frame
from meshhub.model.features import FeatureTable, Hole, HoleStep
from meshhub.model.options import HostOptions, option_fields
from meshhub.model.plans import Limits
from meshhub.model.report import Inspection, ModelInspection
from meshhub.pipeline.preview_options import PreviewOptions
from meshhub.registry import Registry
from meshhub.service.jobs.description import JobDescription
from meshhub.supported import Supported
from meshhub.toolkit.rendering.options import RenderOptions

Json = dict[str, Any]

OwnedOptions = tuple[str | None, type[Struct]]
"""Options Struct with the label of its owner; None for the host."""

_REFERENCE = "#/components/schemas/{name}"

_RESPONSE_TYPES = (Inspection, Explanation, PlanAnswer, Supported, Health, ErrorBody, JobDescription, JobList)
_FULLY_ENCODED = (
    ModelInspection,
    Inspection,
    FeatureTable,
    Hole,
    HoleStep,
    Limits,
    Frame,
    Explanation,
    FileExplanation,
)
"""Structs that are encoded with all fields; msgspec's schema requires only the fields that decoding requires."""

_BYTES = {"type": "string", "format": "binary"}

_REPORT = {"report": {"type": "boolean", "title": "Report", "description": "Add report.json to the ZIP."}}

_FILE_OPTIONS = {
    FIELD: {
        "type": "string",
        "contentMediaType": "application/json",
        "title": "Options of single files",
        "description": 'Options that override the others for single files, as JSON: {"0": {"input_unit": "m"}}. '
        "Keys are the indexes of the files in the request; for an archive the paths in it.",
    }
}

_TAGS = {
    "conversion": "Convert, inspect and draw model files.",
    "jobs": "Conversions and inspections that outlive the request: submit, follow, download, cancel.",
    "description": "Plans, formats, options, and this document.",
    "monitoring": "Probes and metrics; no API key, no rate limit.",
}

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
_FORM_CODES = tuple(code for code in STATUS if code not in _CODES_OF_FEW)
"""Codes of every endpoint with a form; the others are those of some of them, or of unknown paths and methods."""

_CONVERT_CODES = (*_FORM_CODES, "unsupported_target", "invalid_solid")


def document(registry: Registry, url: str = "/") -> Json:
    """Return the OpenAPI document as plain data.

    Args:
        registry: Its declarations.
        url: Address of the service; a path is relative to the address of the document, and so correct for every host.
    """
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
        "servers": [{"url": url, "description": "The service that serves this document."}],
        "security": [{}, {"key": []}],
        "tags": [{"name": name, "description": text} for name, text in _TAGS.items()],
        "paths": {
            "/convert": {"post": _convert(registry)},
            "/convert-many": {"post": _convert_many(registry)},
            "/convert-batch": {"post": _convert_batch(registry)},
            "/explain": {"post": _explain(registry)},
            "/inspect": {"post": _inspect(registry)},
            "/render": {"post": _render(registry)},
            "/preview": {"post": _preview(registry)},
            "/jobs": {"post": _submit_job(registry), "get": _list_jobs()},
            "/jobs/{job_id}": {"get": _show_job(), "delete": _cancel_job()},
            "/jobs/{job_id}/events": {"get": _follow_job()},
            "/jobs/{job_id}/result": {"get": _download_result(registry)},
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
                header.name: {"description": header.description, "schema": {"type": header.kind}}
                for header in RESPONSE_HEADERS
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
    _, components = msgspec.json.schema_components(_RESPONSE_TYPES, ref_template=_REFERENCE)
    for struct in _FULLY_ENCODED:
        components[struct.__name__]["required"] = list(struct.__struct_fields__)
    error = components["ErrorBody"]
    error["properties"]["error_code"]["examples"] = list(STATUS)
    error["properties"]["details"] = {
        "type": "array",
        "description": "The error of each file of a batch, if all files failed.",
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
    """Return a response's schema with the keywords that client generators support.

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


def option_properties(registry: Registry, *, converts: bool, structs: Iterable[OwnedOptions] = ()) -> Json:
    """Return the options as properties of a form.

    Args:
        registry: Its declarations.
        converts: Whether to include operations and writers; the options of the host and the readers always are.
        structs: Further options with the label of their owner, None for the host.
    """
    declarations = registry.declarations
    structs = [*structs, (None, HostOptions)]
    structs += [(reader.capability.format.label, reader.capability.options) for reader in declarations.readers]
    if converts:
        structs += [(operation.capability.label, operation.capability.options) for operation in declarations.operations]
        structs += [(writer.capability.format.label, writer.capability.options) for writer in declarations.writers]
    properties: Json = {}
    for owner, struct in structs:
        for field in option_fields(struct):
            if field.name in properties:
                continue
            schema = field.schema()
            texts = [f"{owner}." if owner else "", field.description]
            # not as `default`: openapi-python-client sends every default, which the service takes as a requested option
            if "default" in schema:
                default = schema.pop("default")
                texts.append(f"Default: {str(default).lower() if isinstance(default, bool) else default}.")
            properties[field.name] = {**schema, "description": " ".join(filter(None, texts))}
    return properties


def _form(
    registry: Registry,
    main: Json,
    required: list[str],
    *,
    converts: bool,
    more: Mapping[str, Json] = MappingProxyType({}),
    structs: Iterable[OwnedOptions] = (),
) -> Json:
    properties: Json = dict(main)
    if converts:
        targets = sorted({writer.capability.format.id for writer in registry.declarations.writers})
        properties["target"] = {
            "type": "string",
            "title": "Target format",
            "description": "The format to convert to. Letter case and a leading dot are ignored.",
            "examples": targets,
            "minLength": 1,
        }
    properties |= more
    properties |= option_properties(registry, converts=converts, structs=structs)
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    example = {name: value for name, value in examples.FORM.items() if name in properties}
    return {"required": True, "content": {"multipart/form-data": {"schema": schema, "example": example}}}


def _binary(title: str) -> Json:
    return {**_BYTES, "title": title, "contentMediaType": "application/octet-stream"}


def _files(description: str, media_types: Iterable[str]) -> Json:
    """Return the response with a file in one of these media types."""
    contents = {
        # glTF is JSON, and clients parse every media type that ends in "+json"
        media_type: {"schema": {"type": "object"} if media_type.endswith("json") else _BYTES}
        # first, because generators use the first media type, and openapi-python-client supports no other binary type
        for media_type in ("application/octet-stream", *sorted(media_types))
    }
    return {"description": description, "content": contents}


def _convert(registry: Registry) -> Json:
    media_types = {writer.capability.format.media_types[0] for writer in registry.declarations.writers}
    response = _files("The converted file.", media_types)
    body = _form(registry, {"file": _binary("The model")}, ["file", "target"], converts=True)
    return _operation("convert", "Convert one file", "conversion", response, _CONVERT_CODES, body)


def _convert_many(registry: Registry) -> Json:
    files = {"type": "array", "items": _binary("A model"), "minItems": 1, "title": "The models"}
    body = _form(registry, {"files": files}, ["files", "target"], converts=True, more=_REPORT | _FILE_OPTIONS)
    codes = (*_CONVERT_CODES, "too_many_files")
    return _operation("convert_many", "Convert several files into one ZIP", "conversion", _zip(), codes, body)


def _convert_batch(registry: Registry) -> Json:
    archive = _binary("A ZIP of models, with the files that belong to them")
    body = _form(registry, {"archive": archive}, ["archive", "target"], converts=True, more=_REPORT | _FILE_OPTIONS)
    codes = (*_CONVERT_CODES, "too_many_files", "archive_too_large")
    return _operation("convert_batch", "Convert the models of a ZIP into another", "conversion", _zip(), codes, body)


def _zip() -> Json:
    description = "A ZIP with the converted files, errors.json if some failed, report.json if requested."
    return _files(description, ("application/zip",))


def _explain(registry: Registry) -> Json:
    sources = {
        "type": "string",
        "contentMediaType": "application/json",
        "title": "Descriptions of the files",
        "description": "JSON list with the `name` or the `format` of each file, and optionally its `size` in bytes.",
        "minLength": 1,
    }
    body = _form(registry, {SOURCES: sources}, [SOURCES, "target"], converts=True, more=_FILE_OPTIONS)
    response = _json("The explanation of each conversion.", _reference("Explanation"), examples.EXPLANATION)
    codes = ("bad_request", "invalid_multipart", "missing_field", "invalid_option", "unsupported_target",
             "file_too_large", "unsupported_encoding", "shutting_down", "origin_not_allowed")  # fmt: skip
    return _operation("explain", "Explain conversions without running them", "conversion", response, codes, body)


def _inspect(registry: Registry) -> Json:
    body = _form(registry, {"file": _binary("The model")}, ["file"], converts=False)
    response = _json("Size, faces, bodies, holes, volume of the model.", _reference("Inspection"), examples.INSPECTION)
    return _operation("inspect", "Is it printable?", "conversion", response, _FORM_CODES, body)


def _render(registry: Registry) -> Json:
    body = _form(registry, {"file": _binary("The model")}, ["file"], converts=False, structs=[(None, RenderOptions)])
    response = _files("The picture.", ("image/png",))
    return _operation("render", "Draw a picture", "conversion", response, _FORM_CODES, body)


def _preview(registry: Registry) -> Json:
    files = {
        "type": "array",
        "items": _binary("A file"),
        "minItems": 1,
        "title": "The model, then its companions, such as materials and textures",
    }
    body = _form(registry, {"files": files}, ["files"], converts=False, structs=[(None, PreviewOptions)])
    response = _files("The model as GLB, with its defects and facts.", ("model/gltf-binary",))
    codes = (*_FORM_CODES, "too_many_files", "unsupported_target")
    return _operation("preview", "Show a model and its defects", "conversion", response, codes, body)


def _submit_job(registry: Registry) -> Json:
    files = {"type": "array", "items": _binary("A model"), "minItems": 1, "title": "The models"}
    main: Json = {
        "kind": {
            "type": "string",
            "enum": ["convert", "inspect"],
            "title": "Kind",
            "description": "What to do; the other fields are those of the endpoint of this name.",
        },
        "file": _binary("The model"),
        "files": {**files, "description": "Several models instead of `file`, for one ZIP."},
        "archive": _binary("A ZIP of models instead of `file`, for one ZIP."),
        "webhook_url": {
            "type": "string",
            "title": "Webhook",
            "description": "URL that gets a signed message at the end of the job (Standard Webhooks); needs a key.",
        },
    }
    body = _form(registry, main, ["kind"], converts=True, more=_REPORT | _FILE_OPTIONS)
    del (
        body["content"]["multipart/form-data"]["example"]["files"],
        body["content"]["multipart/form-data"]["example"]["archive"],
    )
    codes = (
        *_CONVERT_CODES, "too_many_files", "archive_too_large", "plan_required", "idempotency_conflict",
        "too_many_jobs",
    )  # fmt: skip
    response = _json("The job, which waits.", _reference("JobDescription"), examples.JOB)
    operation = _operation("submit_job", "Submit a job", "jobs", response, codes, body, status=202)
    text = "A repetition of the request with the same text returns the same job; 1 to 255 printable ASCII characters."
    schema = {"type": "string", "pattern": "^[ -~]{1,255}$"}
    header = {"name": "Idempotency-Key", "in": "header", "required": False, "description": text, "schema": schema}
    return {**operation, "parameters": [header]}


def _list_jobs() -> Json:
    response = _json("Jobs of the API key, the newest first.", _reference("JobList"), examples.JOB_LIST)
    operation = _operation(
        "list_jobs", "List the jobs of a key", "jobs", response, ("invalid_option", "plan_required", "job_not_found")
    )
    limit = {"type": "integer", "minimum": 1, "maximum": 100}
    before = "Id of a job; only older ones are listed."
    parameters = [
        {"name": "limit", "in": "query", "required": False, "description": "Jobs to list.", "schema": limit},
        {"name": "before", "in": "query", "required": False, "description": before, "schema": {"type": "string"}},
    ]
    return {**operation, "parameters": parameters}


def _show_job() -> Json:
    response = _json("The job.", _reference("JobDescription"), examples.JOB)
    return _job_operation("show_job", "State of a job", response)


def _follow_job() -> Json:
    event = f"data: {msgspec.json.encode(examples.JOB).decode()}\n\n"
    response = {
        "description": "Server-sent events until the job has ended: each has the JSON of the job as its data.",
        "content": {"text/event-stream": {"schema": {"type": "string"}, "example": event}},
    }
    return _job_operation("follow_job", "States of a job as they change", response)


def _download_result(registry: Registry) -> Json:
    media_types = {writer.capability.format.media_types[0] for writer in registry.declarations.writers}
    response = _files("The converted file, the ZIP, or the report.", {*media_types, "application/zip"})
    codes = (
        *_CONVERT_CODES, "job_not_finished", "no_result", "worker_lost", "range_not_satisfiable", "archive_too_large",
        "too_many_files",
    )  # fmt: skip
    operation = _job_operation("download_result", "Result of a job", response, codes)
    partial = {**response, "description": "The requested part of the result."}
    operation["responses"]["206"] = {**partial, "headers": _headers("download_result", "jobs", 206)}
    operation["responses"]["304"] = {
        "description": "The client has the result: its ETag is in If-None-Match.",
        "headers": _headers("download_result", "jobs", 304),
    }
    return operation


def _cancel_job() -> Json:
    response = _json("The job: canceled, or expired if it had ended.", _reference("JobDescription"), examples.JOB)
    return _job_operation("cancel_job", "Cancel a job, or delete its result", response)


def _job_operation(name: str, summary: str, response: Json, codes: tuple[str, ...] = ()) -> Json:
    """Return an operation on one job."""
    operation = _operation(name, summary, "jobs", response, ("job_not_found", "not_found", *codes))
    schema = {"type": "string", "pattern": "^[A-Za-z0-9_-]{43}$"}
    parameter = {"name": "job_id", "in": "path", "required": True, "description": "Id of the job.", "schema": schema}
    return {**operation, "parameters": [parameter]}


def _plan() -> Json:
    response = _json("The plan.", _reference("PlanAnswer"), examples.PLAN)
    return _operation("plan", "The caller's plan, limits and use", "description", response)


def _supported() -> Json:
    response = _json("Formats, operations and options for this caller.", _reference("Supported"), examples.SUPPORTED)
    operation = _operation("supported", "Formats, operations and options", "description", response)
    operation["responses"]["304"] = {
        "description": "Nothing has changed since the ETag in If-None-Match.",
        "headers": _headers("supported", "description", 304),
    }
    return operation


def _health(name: str, summary: str, codes: tuple[str, ...]) -> Json:
    response = _json(summary + ".", _reference("Health"), {"status": name})
    return _operation(f"health_{name}", summary, "monitoring", response, codes)


def _metrics() -> Json:
    example = "# TYPE meshhub_requests_total counter\n"
    response = {
        "description": "Prometheus' text format. The operator decides who may read it.",
        "content": {"text/plain": {"schema": {"type": "string"}, "example": example}},
    }
    return _operation("metrics", "Counters of the service", "monitoring", response, ("not_found",))


def _schema_page() -> Json:
    response = _json("This document, or a page for browsers (Accept: text/html).", {"type": "object"}, examples.SCHEMA)
    response["content"]["text/html"] = {"schema": {"type": "string"}}
    return _operation("schema_page", "This document as a page", "description", response)


def _schema_document() -> Json:
    response = _json("OpenAPI 3.1.", {"type": "object"}, examples.SCHEMA)
    return _operation("schema_document", "This document", "description", response)


def _json(description: str, schema: Json, example: Json) -> Json:
    return {"description": description, "content": {"application/json": {"schema": schema, "example": example}}}


def _reference(name: str, kind: str = "schemas") -> Json:
    return {"$ref": f"#/components/{kind}/{name}"}


def _headers(operation: str, tag: str, status: int) -> Json:
    return {name: _reference(name, "headers") for name in header_names(operation, tag, status)}


def _operation(
    name: str,
    summary: str,
    tag: str,
    response: Json,
    codes: tuple[str, ...] = (),
    body: Json | None = None,
    *,
    status: int = 200,
) -> Json:
    codes = (*codes, *(_COMMON_CODES if tag != "monitoring" else ("host_not_allowed",)))
    operation: Json = {
        "operationId": name,
        "summary": summary,
        "tags": [tag],
        "responses": {
            str(status): {**response, "headers": _headers(name, tag, status)},
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
            "headers": _headers(operation, tag, status),
            "content": {
                "application/json": {
                    "schema": _reference("ErrorBody"),
                    "examples": {code: _reference(code, "examples") for code in codes},
                }
            },
        }
        for status, codes in sorted(codes_by_status.items())
    }
