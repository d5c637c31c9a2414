"""Messages in another language: catalogs have their English parts, or the codes of notes, with values in braces."""

from __future__ import annotations

import re
from functools import cache

from msgspec import structs

from meshhub.errors import format_number
from meshhub.model.notes import Note
from meshhub.model.translations import Catalog

_BETWEEN_PARTS = "; "
"""Mark between the parts of a message."""

_AFTER_MEANING = ": "
"""Mark between the meaning of an error code and the message."""

_AND = " and "
"""Word between names of options."""

_PLACE = re.compile(r"\\\{(\w+)\\\}")
"""Place of a value in an escaped part."""

_NAME = re.compile(r"\{(\w+)\}")
"""Place of a value in a text."""

_NUMBERS = re.compile(r"[-+±e\d.,x ]*\d[-+±e\d.,x ]*", re.ASCII)
"""Numbers, such as "1,200.5" or "10 x 20.5"."""

_OPTIONS = re.compile(r"'\w+(?:=[\w-]+)?'(?: and '\w+(?:=[\w-]+)?')+", re.ASCII)
"""Names of several options."""


def translate_message(message: str, texts: Catalog) -> str:
    """Return a message in another language; unchanged if a part of it has no translation.

    Args:
        message: English parts with "; " between them.
        texts: Texts in the other language; see `Catalog.sentences`.
    """
    sentences = texts.sentences
    parts = message.split(_BETWEEN_PARTS)
    result = []
    start = 0
    while start < len(parts):
        # a part may have the mark inside
        for end in range(len(parts), start, -1):
            text = _translate_part(_BETWEEN_PARTS.join(parts[start:end]), texts)
            if text is not None:
                break
        else:
            return message
        result.append(text)
        start = end
    return sentences.get(_BETWEEN_PARTS, _BETWEEN_PARTS).join(result)


def translate_error(error_code: str, message: str, texts: Catalog) -> str:
    """Return the message of an error in another language; without a translation, after the meaning of its code."""
    translated = translate_message(message, texts)
    meaning = texts.errors.get(error_code)
    if meaning is None or translated != message:
        return translated
    return f"{meaning}{texts.sentences.get(_AFTER_MEANING, _AFTER_MEANING)}{message}"


def translate_note(note: Note, texts: Catalog) -> Note:
    """Return a note in another language; unchanged if there is no translation, or a value of it is missing.

    The text of its code counts only if no sentences translate the message, because they name options.

    Args:
        note: Note with an English message.
        texts: Texts in the other language.
    """
    message = translate_message(note.message, texts)
    text = texts.notes.get(note.code, "")
    names = set(_NAME.findall(text))
    if message == note.message and text and names <= note.values.keys():
        # as in English, no period stands before the code
        message = _NAME.sub(lambda name: _format_value(note.values[name[1]], texts), text.removesuffix("."))
    return structs.replace(note, message=message)


def _format_value(value: float | str, texts: Catalog) -> str:
    if isinstance(value, str):
        return value
    return texts.localize(f"{value:,}" if isinstance(value, int) else format_number(value, 4))


def _translate_part(part: str, texts: Catalog) -> str | None:
    sentences = texts.sentences
    if part in sentences:
        return sentences[part]
    # "{weight} g of {material}" would also match a part with more words
    for english, text in sorted(sentences.items(), key=lambda item: -len(item[0])):
        match = _compile(english).fullmatch(part) if "{" in english else None
        if match is not None:
            values = {name: _translate_value(value, texts) for name, value in match.groupdict().items()}
            return _NAME.sub(lambda name, values=values: values[name[1]], text)  # type: ignore[misc]
    return None


def _translate_value(value: str, texts: Catalog) -> str:
    sentences = texts.sentences
    if _OPTIONS.fullmatch(value):
        return sentences.get(_AND, _AND).join(value.split(_AND))
    return texts.localize(value) if _NUMBERS.fullmatch(value) else sentences.get(value, value)


@cache
def _compile(english: str) -> re.Pattern[str]:
    # a value does not reach into the next part
    return re.compile(_PLACE.sub(r"(?P<\1>(?:(?!; ).)+?)", re.escape(english)))
