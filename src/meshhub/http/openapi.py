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
from msgspec import Struct, inspect

from meshhub.http.description.endpoint import Tag
from meshhub.http.description.parts import REFERENCE, Json
from meshhub.http.endpoints import ENDPOINTS
from meshhub.http.errors import MEANING, STATUS, ErrorBody
from meshhub.http.headers import RESPONSE_HEADERS
from meshhub.registry import Registry

_TAGS: dict[Tag, str] = {
    "conversion": "Convert, inspect, check, quote and draw model files.",
    "jobs": "Conversions, inspections and checks that outlive the request: submit, follow, download, cancel.",
    "description": "Plans, formats, options, and this document.",
    "monitoring": "Probes and metrics; no API key, no rate limit.",
}

_OF_DECODING = {"default", "minimum", "maximum"}
"""Keywords that matter only to a program that decodes."""


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
        "paths": _paths(registry),
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


def list_form_paths(description: Json) -> dict[str, str]:
    """Return the paths of the endpoints whose form needs each main field, as a sentence lists them, by the field."""
    paths: dict[str, list[str]] = {}
    for path, methods in description["paths"].items():
        contents = methods.get("post", {}).get("requestBody", {}).get("content", {})
        for content in contents.values():
            for name in content["schema"]["required"]:
                paths.setdefault(name, []).append(path)
    return {name: " or ".join(filter(None, (", ".join(each[:-1]), each[-1]))) for name, each in paths.items()}


def _paths(registry: Registry) -> Json:
    paths: Json = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint.path, {})[endpoint.method] = endpoint.describe(registry)
    return paths


def _schemas() -> Json:
    types = (ErrorBody, *dict.fromkeys(kind for endpoint in ENDPOINTS for kind in endpoint.types))
    _, components = msgspec.json.schema_components(types, ref_template=REFERENCE)
    for struct in _find_structs(types):
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
