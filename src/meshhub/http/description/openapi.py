"""OpenAPI 3.1 document of a registry: every option of a plug-in is a field of a form.

Client generators read it too (`tox -e clients`), so it uses the part of JSON Schema that they support.
"""

# why this way: docs/decisions/0007-openapi.md
from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version
from inspect import cleandoc
from typing import Any

import msgspec
from msgspec import Struct, inspect, structs

from meshhub.http.conversions.explanations import Explanation
from meshhub.http.description.conversions import conversion_paths
from meshhub.http.description.jobs import job_paths
from meshhub.http.description.parts import (
    EXAMPLES,
    REFERENCE,
    Json,
    describe_json,
    describe_operation,
    refer_to,
    refer_to_headers,
)
from meshhub.http.endpoints.health import Health
from meshhub.http.endpoints.jobs import JobList
from meshhub.http.endpoints.plan import PlanAnswer
from meshhub.http.errors import MEANING, STATUS, ErrorBody
from meshhub.http.headers import RESPONSE_HEADERS
from meshhub.model.plans import LOCAL
from meshhub.model.quote import Quote
from meshhub.model.report import Inspection
from meshhub.model.verdict import Verdict
from meshhub.registry import Registry
from meshhub.service.jobs.description import JobDescription
from meshhub.supported import Supported

_RESPONSE_TYPES = (
    Inspection, Verdict, Quote, Explanation, PlanAnswer, Supported, Health, ErrorBody, JobDescription, JobList
)  # fmt: skip
"""Types of all responses, with those of their fields."""

_TAGS = {
    "conversion": "Convert, inspect, check, quote and draw model files.",
    "jobs": "Conversions, inspections and checks that outlive the request: submit, follow, download, cancel.",
    "description": "Plans, formats, options, and this document.",
    "monitoring": "Probes and metrics; no API key, no rate limit.",
}

_OF_DECODING = {"default", "minimum", "maximum"}
"""Keywords that matter only to a program that decodes."""

_LANGUAGE_PARAMETERS = [
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
]


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
            **conversion_paths(registry),
            **job_paths(registry),
            "/plan": {"get": _plan(registry)},
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
    _, components = msgspec.json.schema_components(_RESPONSE_TYPES, ref_template=REFERENCE)
    for struct in _find_structs(_RESPONSE_TYPES):
        # msgspec's schema requires only the fields that decoding requires
        if not struct.__struct_config__.omit_defaults:
            components[struct.__name__]["required"] = list(struct.__struct_fields__)
    error = components["ErrorBody"]
    error["properties"]["error_code"]["examples"] = list(STATUS)
    return {name: _simplify(schema) for name, schema in components.items()}


def _find_structs(types: Iterable[Any]) -> set[type[Struct]]:
    """Return the Structs of types, of their fields and of their items."""
    structs: set[type[Struct]] = set()
    pending: list[Any] = list(inspect.multi_type_info(types))
    while pending:
        info = pending.pop()
        if getattr(info, "cls", None) in structs:
            continue
        if isinstance(info, inspect.StructType):
            structs.add(info.cls)
        pending += [field.type for field in getattr(info, "fields", ())]
        pending += (*getattr(info, "types", ()), *getattr(info, "item_types", ()))
        pending += [getattr(info, name) for name in ("item_type", "value_type") if hasattr(info, name)]
    return structs


def _simplify(schema: Any) -> Any:
    """Return a response's schema with the keywords that client generators support.

    A tuple becomes an array, because openapi-python-client fails on `items: false`, and openapi-generator ignores
    `prefixItems`; this is correct, because all tuples of responses hold one type. Defaults
    and bounds are left out, because they matter only for decoding; openapi-generator makes a strict type of a number
    with a bound, which rejects the response.
    """
    if isinstance(schema, list):
        return [_simplify(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {word: _simplify(value) for word, value in schema.items() if word not in _OF_DECODING}
    if "prefixItems" in plain:
        plain["items"] = plain.pop("prefixItems")[0]
    if isinstance(plain.get("enum"), list):
        plain["type"] = "string"
    if isinstance(plain.get("description"), str):
        plain["description"] = cleandoc(plain["description"])
    return plain


def _error_example(code: str) -> Json:
    return {"error": MEANING[code], "error_code": code, "request_id": "5f0c2a9e7d314b68"}


def _plan(registry: Registry) -> Json:
    plan = next(iter(registry.plans.values()), LOCAL.plan)
    example = {**EXAMPLES["plan"], "plan": plan.id, "label": plan.label, "limits": structs.asdict(plan.limits)}
    response = describe_json("The plan.", refer_to("PlanAnswer"), example)
    operation = describe_operation("plan", "The caller's plan, limits and use", "description", response)
    return {**operation, "parameters": _LANGUAGE_PARAMETERS}


def _supported() -> Json:
    response = describe_json(
        "Formats, operations and options for this caller.", refer_to("Supported"), EXAMPLES["supported"]
    )
    operation = describe_operation("supported", "Formats, operations and options", "description", response)
    operation["responses"]["304"] = {
        "description": "Nothing has changed since the ETag in If-None-Match.",
        "headers": refer_to_headers("supported", "description", 304),
    }
    return {**operation, "parameters": _LANGUAGE_PARAMETERS}


def _health(name: str, summary: str, codes: tuple[str, ...]) -> Json:
    response = describe_json(summary + ".", refer_to("Health"), {"status": name})
    return describe_operation(f"health_{name}", summary, "monitoring", response, codes)


def _metrics() -> Json:
    example = "# TYPE meshhub_requests_total counter\n"
    response = {
        "description": "Prometheus' text format. The operator decides who may read it.",
        "content": {"text/plain": {"schema": {"type": "string"}, "example": example}},
    }
    return describe_operation("metrics", "Counters of the service", "monitoring", response, ("not_found",))


def _schema_page() -> Json:
    response = describe_json(
        "This document, or a page for browsers (Accept: text/html).", {"type": "object"}, EXAMPLES["schema"]
    )
    response["content"]["text/html"] = {"schema": {"type": "string"}}
    return describe_operation("schema_page", "This document as a page", "description", response)


def _schema_document() -> Json:
    response = describe_json("OpenAPI 3.1.", {"type": "object"}, EXAMPLES["schema"])
    return describe_operation("schema_document", "This document", "description", response)
