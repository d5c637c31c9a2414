"""Requests for explanations: conversions of files that are described instead of sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from meshhub.errors import InvalidOption, quote
from meshhub.http.errors import ServiceError
from meshhub.http.intake.file_options import FIELD, parse_file_options
from meshhub.http.intake.names import label
from meshhub.http.intake.uploads import MAIN_FIELDS, Form, wrong_field
from meshhub.model.chain import Request

SOURCES = "sources"
"""Name of the form field with the descriptions."""


class SourceDescription(Struct, frozen=True, forbid_unknown_fields=True):
    """Description of a file: its name or its format, and its size."""

    name: str = ""
    """File name, whose extension names the format."""

    format: str = ""
    """Id or extension of the format; overrides the name."""

    size: Annotated[int, Meta(ge=0)] | None = None
    """Bytes; None if unknown."""


@dataclass(frozen=True)
class DescribedFile:
    """Description of a file, and the request for it."""

    description: SourceDescription
    request: Request


_DECODER = msgspec.json.Decoder(list[SourceDescription])


def parse_explanation(form: Form) -> Sequence[DescribedFile]:
    """Return the described files of a form with their requests, which are not checked.

    Raises:
        ServiceError: A field is missing, or the form has a file.
        InvalidOption: A field is malformed.
    """
    texts = dict(form.texts)
    sent = [*form.stray_files, *(name for name in MAIN_FIELDS if name in texts)]
    if sent:
        raise wrong_field(sent[0], None)
    target, descriptions = texts.pop("target", "").strip(), texts.pop(SOURCES, "")
    for name, text in (("target", target), (SOURCES, descriptions)):
        if not text:
            raise ServiceError(
                f'the field {name!r} is missing; send target=3mf and sources=[{{"name": "model.stl"}}]',
                error_code="missing_field",
            )
    file_options = parse_file_options(texts.pop(FIELD, ""))
    files = []
    for number, description in enumerate(_parse_descriptions(descriptions)):
        named = {"input_format": description.format} if description.format else {}
        options = {**texts, **named, **file_options.get(str(number), {})}
        files.append(DescribedFile(description, Request(target=target, options=options)))
    unknown = file_options.keys() - set(map(str, range(len(files))))
    if unknown:
        raise InvalidOption(f"option '{FIELD}' names {quote(min(unknown))}, but there are {len(files)} sources")
    return files


def _parse_descriptions(text: str) -> list[SourceDescription]:
    try:
        descriptions = _DECODER.decode(text)
    except msgspec.DecodeError as error:
        raise InvalidOption(
            f'option \'{SOURCES}\' must be a JSON list such as [{{"name": "model.stl", "size": 684}}]: {error}'
        ) from None
    if not descriptions:
        raise InvalidOption(f"option '{SOURCES}' is an empty list; describe at least one file")
    for number, description in enumerate(descriptions):
        if not (description.name or description.format):
            raise InvalidOption(f"option '{SOURCES}': file {number} needs a name or a format")
    return [msgspec.structs.replace(item, name=label(item.name, default="")) for item in descriptions]
