"""Encoding of text files: readers of text formats expect an encoding that contains ASCII, without a byte order mark."""

from __future__ import annotations

import codecs
import re

_MARKS = (
    # the mark of UTF-32 begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_UNMARKED_BYTES = 32
"""Bytes that decide whether a file without a mark is UTF-16."""

_TEXT_BYTES = 1024
"""Bytes in which binary data, which may start like a mark, have a zero."""

_ASCII_TEXT = frozenset((9, 10, 13, *range(32, 127)))
_MAX_INVALID_RATIO = 0.01
"""Share of invalid characters up to which a file is text; more are binary data."""

_DECLARATION = re.compile(rb"(\s*<\?xml\b[^<>]{0,200}?)\sencoding\s*=\s*(?:\"[^\"]{0,40}\"|'[^']{0,40}')")


def as_utf8(data: bytes) -> bytes:
    """Return a text in UTF-16 or UTF-32 as UTF-8, without a byte order mark; all other data unchanged.

    The encoding is removed from an XML declaration, because it no longer applies. A character that the end of the data
    cuts off is left out.
    """
    if data.startswith(codecs.BOM_UTF8) and b"\0" not in data[:_TEXT_BYTES]:
        return data[len(codecs.BOM_UTF8) :]
    encoding = _find_encoding(data[:_UNMARKED_BYTES])
    if encoding is None:
        return data
    # some programs end a text with a zero character
    text = codecs.getincrementaldecoder(encoding)("replace").decode(data).removesuffix("\0")
    if "\0" in text or text.count("\ufffd") > len(text) * _MAX_INVALID_RATIO:
        return data
    return _DECLARATION.sub(rb"\1", text.encode(), count=1)


def _find_encoding(head: bytes) -> str | None:
    """Return the encoding that the first bytes of a file show; None for one that contains ASCII, or for no text."""
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding
    for encoding, zeros, letters in (("utf-16-le", head[1::2], head[::2]), ("utf-16-be", head[::2], head[1::2])):
        if len(head) == _UNMARKED_BYTES and not any(zeros) and _ASCII_TEXT.issuperset(letters):
            return encoding
    return None
