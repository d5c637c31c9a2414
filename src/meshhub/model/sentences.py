"""Messages in another language: catalogs list their English parts, with names in braces in place of values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache

_BETWEEN_PARTS = "; "
"""Mark between the parts of a message."""

_AND = " and "
"""Word between names of options."""

_PLACE = re.compile(r"\\\{(\w+)\\\}")
"""Place of a value in an escaped part."""

_NUMBERS = re.compile(r"[-+±e\d.,x ]*\d[-+±e\d.,x ]*", re.ASCII)
"""Numbers, such as "1,200.5" or "10 x 20.5"."""

_OPTIONS = re.compile(r"'\w+(?:=[\w-]+)?'(?: and '\w+(?:=[\w-]+)?')+", re.ASCII)
"""Names of several options."""


def translate_message(message: str, sentences: Mapping[str, str], localize: Callable[[str], str] = str) -> str:
    """Return a message in another language; unchanged if a part of it has no translation.

    Args:
        message: English parts with "; " between them.
        sentences: Parts in the other language by English part; see `Catalog.sentences`.
        localize: Replaces the marks of thousands and decimals in a number.
    """
    parts = message.split(_BETWEEN_PARTS)
    result = []
    start = 0
    while start < len(parts):
        # a part may have the mark inside
        for end in range(len(parts), start, -1):
            text = _translate_part(_BETWEEN_PARTS.join(parts[start:end]), sentences, localize)
            if text is not None:
                break
        else:
            return message
        result.append(text)
        start = end
    return _BETWEEN_PARTS.join(result)


def _translate_part(part: str, sentences: Mapping[str, str], localize: Callable[[str], str]) -> str | None:
    if part in sentences:
        return sentences[part]
    # "{weight} g of {material}" would also match a part with more words
    for english, text in sorted(sentences.items(), key=lambda item: -len(item[0])):
        match = _compile(english).fullmatch(part) if "{" in english else None
        if match is not None:
            values = {name: _translate_value(value, sentences, localize) for name, value in match.groupdict().items()}
            return re.sub(r"\{(\w+)\}", lambda place, values=values: values[place[1]], text)  # type: ignore[misc]
    return None


def _translate_value(value: str, sentences: Mapping[str, str], localize: Callable[[str], str]) -> str:
    if _OPTIONS.fullmatch(value):
        return sentences.get(_AND, _AND).join(value.split(_AND))
    return localize(value) if _NUMBERS.fullmatch(value) else sentences.get(value, value)


@cache
def _compile(english: str) -> re.Pattern[str]:
    # a value does not reach into the next part
    return re.compile(_PLACE.sub(r"(?P<\1>(?:(?!; ).)+?)", re.escape(english)))
