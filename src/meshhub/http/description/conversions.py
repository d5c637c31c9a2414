"""Operations of the OpenAPI document with the tag "conversion"."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

from meshhub.http.conversions.check_reports import MEDIA_TYPES
from meshhub.http.description.forms import (
    CHECK_REPORT,
    FILE_OPTIONS,
    REPORT,
    OwnedOptions,
    describe_binary,
    describe_form,
    list_check_structs,
)
from meshhub.http.description.parts import (
    BYTES,
    CONVERT_CODES,
    EXAMPLES,
    FORM_CODES,
    Json,
    describe_files,
    describe_json,
    describe_operation,
    refer_to,
)
from meshhub.http.intake.explanation_requests import SOURCES
from meshhub.http.intake.uploads import COMPANIONS
from meshhub.pipeline.preview_options import PreviewOptions
from meshhub.pipeline.quote_options import QuoteOptions
from meshhub.pipeline.verdict_options import VerdictOptions
from meshhub.registry import Registry
from meshhub.toolkit.rendering.options import RenderOptions

_EACH_BED = "with each_bed, a ZIP of the files of the beds."
_MODEL: Json = {
    "file": describe_binary("The model"),
    COMPANIONS: {
        "type": "array",
        "items": describe_binary("A companion"),
        "title": "Companions",
        "description": "The files that the model needs, such as materials and textures; `file` comes first.",
    },
}
"""Fields with the files of a form with one model."""


def conversion_paths(registry: Registry) -> Json:
    """Return the paths with the tag "conversion"."""
    return {
        "/convert": {"post": _convert(registry)},
        "/convert-many": {"post": _convert_many(registry)},
        "/convert-batch": {"post": _convert_batch(registry)},
        "/combine": {"post": _combine(registry)},
        "/explain": {"post": _explain(registry)},
        "/inspect": {"post": _inspect(registry)},
        "/check": {"post": _check(registry)},
        "/quote": {"post": _quote(registry)},
        "/render": {"post": _render(registry)},
        "/preview": {"post": _preview(registry)},
    }


def _convert(registry: Registry) -> Json:
    response = describe_files(f"The converted file; {_EACH_BED}", _list_media_types(registry))
    body = describe_form(registry, {"file": describe_binary("The model")}, ["file", "target"], converts=True)
    return describe_operation("convert", "Convert one file", "conversion", response, CONVERT_CODES, body)


def _convert_many(registry: Registry) -> Json:
    files = {"type": "array", "items": describe_binary("A model"), "minItems": 1, "title": "The models"}
    body = describe_form(registry, {"files": files}, ["files", "target"], converts=True, more=REPORT | FILE_OPTIONS)
    codes = (*CONVERT_CODES, "too_many_files")
    return describe_operation("convert_many", "Convert several files into one ZIP", "conversion", _zip(), codes, body)


def _convert_batch(registry: Registry) -> Json:
    archive = describe_binary("A ZIP of models, with the files that belong to them")
    body = describe_form(
        registry, {"archive": archive}, ["archive", "target"], converts=True, more=REPORT | FILE_OPTIONS
    )
    codes = (*CONVERT_CODES, "too_many_files", "archive_too_large")
    return describe_operation(
        "convert_batch", "Convert the models of a ZIP into another", "conversion", _zip(), codes, body
    )


def _combine(registry: Registry) -> Json:
    response = describe_files(f"One file with the objects of all models; {_EACH_BED}", _list_media_types(registry))
    files = {"type": "array", "items": describe_binary("A model, or a file that belongs to one"), "minItems": 1}
    body = describe_form(registry, {"files": files | {"title": "The models"}}, ["files", "target"], converts=True)
    codes = (*CONVERT_CODES, "too_many_files")
    return describe_operation("combine", "Convert several files to one", "conversion", response, codes, body)


def _list_media_types(registry: Registry) -> set[str]:
    """Return the media types of one converted model."""
    return {"application/zip"} | {writer.capability.format.media_types[0] for writer in registry.declarations.writers}


def _zip() -> Json:
    description = "A ZIP with the converted files, errors.json if some failed, report.json if requested."
    return describe_files(description, ("application/zip",))


def _explain(registry: Registry) -> Json:
    sources = {
        "type": "string",
        "contentMediaType": "application/json",
        "title": "Descriptions of the files",
        "description": "JSON list with the `name` or the `format` of each file, and optionally its `size` in bytes.",
        "minLength": 1,
    }
    body = describe_form(registry, {SOURCES: sources}, [SOURCES, "target"], converts=True, more=FILE_OPTIONS)
    response = describe_json("The explanation of each conversion.", refer_to("Explanation"), EXAMPLES["explanation"])
    codes = ("bad_request", "invalid_multipart", "missing_field", "invalid_option", "unsupported_target",
             "file_too_large", "unsupported_encoding", "shutting_down", "origin_not_allowed")  # fmt: skip
    return describe_operation(
        "explain", "Explain conversions without running them", "conversion", response, codes, body
    )


def _inspect(registry: Registry) -> Json:
    body = describe_form(registry, _MODEL, ["file"], converts=False)
    response = describe_json(
        "Size, faces, bodies, holes, volume of the model.", refer_to("Inspection"), EXAMPLES["inspection"]
    )
    return describe_operation("inspect", "Describe a model", "conversion", response, FORM_CODES, body)


def _check(registry: Registry) -> Json:
    body = _describe_print_form(registry, VerdictOptions, CHECK_REPORT)
    response = describe_json("The verdict and its findings.", refer_to("Verdict"), EXAMPLES["verdict"])
    response["content"] |= {media_type: {"schema": BYTES} for media_type in MEDIA_TYPES.values()}
    return describe_operation("check", "Will it print?", "conversion", response, FORM_CODES, body)


def _quote(registry: Registry) -> Json:
    body = _describe_print_form(registry, QuoteOptions)
    response = describe_json("The estimate of the print, and its price.", refer_to("Quote"), EXAMPLES["quote"])
    return describe_operation("quote", "What does the print cost?", "conversion", response, FORM_CODES, body)


def _describe_print_form(
    registry: Registry, own: type[Struct], more: Mapping[str, Json] = MappingProxyType({})
) -> Json:
    structs = list_check_structs(registry, own)
    structs += [(each.capability.label, each.capability.options) for each in registry.declarations.operations]
    return describe_form(registry, _MODEL, ["file"], converts=False, more=more, structs=structs)


def _render(registry: Registry) -> Json:
    structs: list[OwnedOptions] = [(None, RenderOptions)]
    structs += [(each.capability.label, each.capability.options) for each in registry.declarations.operations]
    body = describe_form(registry, _MODEL, ["file"], converts=False, structs=structs)
    response = describe_files("The picture; with operations, of the model before and after them.", ("image/png",))
    return describe_operation("render", "Draw a picture", "conversion", response, FORM_CODES, body)


def _preview(registry: Registry) -> Json:
    target = {
        "type": "string",
        "title": "Target format",
        "description": "Format of the conversion whose file is measured, for the facts.",
        "minLength": 1,
    }
    body = describe_form(
        registry, _MODEL, ["file"], converts=True, more={"target": target}, structs=[(None, PreviewOptions)]
    )
    response = describe_files(
        "The model as GLB, after the operations, with its defects and facts.", ("model/gltf-binary",)
    )
    codes = CONVERT_CODES
    return describe_operation("preview", "Show a model and its defects", "conversion", response, codes, body)
