r"""Strings of a STEP file as the CAD kernel reads them: in UTF-8, with unbroken directives.

ISO 10303-21 allows only ASCII, with directives for other characters. SolidWorks and other programs write the encoding
of the machine instead. The kernel would decode such bytes as UTF-8.
"""

from __future__ import annotations

import re

from meshhub.toolkit.encodings import MULTIBYTE_ENCODINGS, decode_name, find_encoding

_MAX_STRING_BYTES = 100_000
"""Bytes of a string; an apostrophe is missing in a longer one."""
_ODD = re.compile(rb"[\x80-\xff][^']{0,%d}" % _MAX_STRING_BYTES)
"""Rest of a string or comment from the first byte outside ASCII. No encoding has apostrophes in its characters."""
_LINE_END = re.compile(rb"[\r\n]+")
_WIDE_DIRECTIVE = re.compile(rb"\\X[24]\\[0-9A-Fa-f]*[\r\n][0-9A-Fa-f\r\n]*(?=\\X0\\)")
r"""`\X2\` or `\X4\` with a line end within, which is not part of a string (ISO 10303-21 §6.3)."""
_BYTE_DIRECTIVES = re.compile(rb"(?:\\X\\[89A-Fa-f][0-9A-Fa-f])+")
r"""Characters as `\X\HH`, side by side."""


def normalize_strings(data: bytes) -> bytes:
    """Return a STEP file whose strings the kernel reads right.

    Args:
        data: The file.
    """
    if b"\\X2\\" in data or b"\\X4\\" in data:
        data = _WIDE_DIRECTIVE.sub(lambda match: _LINE_END.sub(b"", match[0]), data)
    if b"\\X\\" in data:
        data = _replace_byte_directives(data)
    if data.isascii():
        return data
    encoding = find_encoding(_LINE_END.sub(b"", match[0]) for match in _ODD.finditer(data))
    if encoding == "utf-8":
        return data
    return _ODD.sub(lambda match: decode_name(_LINE_END.sub(b"", match[0]), encoding).encode(), data)


def _replace_byte_directives(data: bytes) -> bytes:
    r"""Return a file with the bytes of `\X\` directives that are in an encoding of several bytes.

    The directive stands for a character of ISO 8859-1. Some programs write each byte of other encodings with it, so
    that no character stands alone. Accented letters of western languages do.
    """
    runs = {_decode_hexadecimal(match) for match in _BYTE_DIRECTIVES.finditer(data)}
    if not runs or min(map(len, runs)) < 2 or find_encoding(runs) not in MULTIBYTE_ENCODINGS:
        return data
    return _BYTE_DIRECTIVES.sub(_decode_hexadecimal, data)


def _decode_hexadecimal(directives: re.Match[bytes]) -> bytes:
    return bytes.fromhex(directives[0].replace(b"\\X\\", b"").decode())
