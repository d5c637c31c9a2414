"""Forms of the OpenAPI document: every option of a plug-in is a field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct

from meshhub.http.conversions.check_reports import MEDIA_TYPES
from meshhub.http.description.parts import BYTES, Json, describe_files, read_example
from meshhub.http.intake.file_options import FIELD
from meshhub.http.intake.uploads import COMPANIONS
from meshhub.model.options import HostOptions, option_fields
from meshhub.pipeline.purpose import Purpose
from meshhub.pipeline.purposes import PURPOSES
from meshhub.registry import Registry

OwnedOptions = tuple[str | None, type[Struct]]
"""Options Struct with the label of its owner; None for the host."""

_EXAMPLE = read_example("meshhub.http.description.form")
"""Values of the fields of all forms."""

REPORT = {"report": {"type": "boolean", "title": "Report", "description": "Add report.json to the ZIP."}}

CHECK_REPORT = {
    "report": {
        "type": "string",
        "enum": list(MEDIA_TYPES),
        "title": "Report",
        "description": "Answer a report for people instead of JSON, in the language of the query `language` or of "
        "`Accept-Language`; or, as `glb`, the model in the colors of its findings.",
    }
}

JOB_REPORT = {
    "report": {
        "type": "string",
        "title": "Report",
        "description": "For several models: `true` to add report.json to the ZIP. For a check: a report, not JSON, "
        "as for `/check`.",
        "examples": ["true", *MEDIA_TYPES],
    }
}

FILE_OPTIONS = {
    FIELD: {
        "type": "string",
        "contentMediaType": "application/json",
        "title": "Options of single files",
        "description": 'Options that override the others for single files, as JSON: {"0": {"input_unit": "m"}}. '
        "Keys are the indexes of the files in the request; for an archive the paths in it.",
    }
}


def _list_structs(registry: Registry, purposes: Sequence[Purpose]) -> Iterable[OwnedOptions]:
    """Yield the options that forms of some purposes have, with the label of their owner."""
    declarations = registry.declarations
    operations = [(each.capability.label, each.capability.options) for each in declarations.operations]
    converts = any(purpose.target_field for purpose in purposes)
    for purpose in purposes:
        yield None, purpose.options
        if purpose.uses_checks:
            checks = [(check.capability.label, check.capability.options) for check in declarations.checks]
            users = Counter(options for _, options in checks)
            # options that several checks share belong to none of them
            yield from ((None, options) for options, count in users.items() if count > 1)
            yield from (check for check in checks if users[check[1]] == 1)
        if purpose.runs_operations and not converts:
            yield from operations
    yield None, HostOptions
    yield from ((reader.capability.format.label, reader.capability.options) for reader in declarations.readers)
    if converts:
        yield from operations
        yield from ((writer.capability.format.label, writer.capability.options) for writer in declarations.writers)


def _describe_options(structs: Iterable[OwnedOptions]) -> Json:
    """Return options as properties of a form."""
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


def describe_form(
    registry: Registry,
    main: Json,
    required: list[str],
    *names: str,
    more: Mapping[str, Json] = MappingProxyType({}),
) -> Json:
    """Return a form as the body of a request.

    Args:
        registry: Its declarations.
        main: Fields with the files.
        required: Names of required fields.
        names: Names of the purposes whose options the form has.
        more: Further fields.
    """
    purposes = [PURPOSES[name] for name in names]
    properties: Json = dict(main)
    if any(purpose.target_field for purpose in purposes):
        targets = sorted({writer.capability.format.id for writer in registry.declarations.writers})
        properties["target"] = {
            "type": "string",
            "title": "Target format",
            "description": "The format to convert to. Letter case and a leading dot are ignored.",
            "examples": targets,
            "minLength": 1,
        }
    properties |= more
    properties |= _describe_options(_list_structs(registry, purposes))
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    example = {name: value for name, value in _EXAMPLE.items() if name in properties}
    return {"required": True, "content": {"multipart/form-data": {"schema": schema, "example": example}}}


def describe_binary(title: str) -> Json:
    """Return the field of a file."""
    return {**BYTES, "title": title, "contentMediaType": "application/octet-stream"}


def describe_converted(registry: Registry, description: str) -> Json:
    """Return the response with one converted model."""
    text = f"{description}; a ZIP if each bed has a file."
    return describe_files(text, {"application/zip", *list_media_types(registry)})


def list_media_types(registry: Registry) -> set[str]:
    """Return the media types of all formats that can be written."""
    return {writer.capability.format.media_types[0] for writer in registry.declarations.writers}


def describe_zip() -> Json:
    """Return the response with several converted models."""
    description = "A ZIP with the converted files, errors.json if some failed, report.json if requested."
    return describe_files(description, ("application/zip",))


MODEL: Json = {
    "file": describe_binary("The model"),
    COMPANIONS: {
        "type": "array",
        "items": describe_binary("A companion"),
        "title": "Companions",
        "description": "The files that the model needs, such as materials and textures; `file` comes first.",
    },
}
"""Fields with the files of a form with one model."""
