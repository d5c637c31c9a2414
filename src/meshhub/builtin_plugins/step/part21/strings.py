"""Strings of Part-21 files (ISO 10303-21 §6.4.3)."""

from __future__ import annotations

_MAX_LENGTH = 250
"""Characters; the reader keeps as many."""


def encode_string(text: str) -> str:
    r"""Encode a text as a Part-21 string with apostrophes.

    An apostrophe becomes `''`, a reverse solidus `\\`; characters outside ASCII become `\X2\…\X0\` or `\X4\…\X0\`.
    Control characters and surrogates become blanks. A text longer than 250 characters is cut.

    Source:
        ISO 10303-21 §6.4.3.
    """
    pieces: list[str] = []
    wide = ""
    for letter in text[:_MAX_LENGTH]:
        code = ord(letter)
        if code < 32 or code == 127 or 0xD800 <= code < 0xE000:
            letter, code = " ", 32
        is_narrow = code < 127
        if is_narrow and wide:
            pieces.append(f"{wide}\\X0\\")
            wide = ""
        if is_narrow:
            pieces.append({"'": "''", "\\": "\\\\"}.get(letter, letter))
            continue
        directive = "\\X2\\" if code < 0x10000 else "\\X4\\"
        if wide and not wide.startswith(directive):
            pieces.append(f"{wide}\\X0\\")
            wide = ""
        wide = (wide or directive) + (f"{code:04X}" if code < 0x10000 else f"{code:08X}")
    if wide:
        pieces.append(f"{wide}\\X0\\")
    return "'" + "".join(pieces) + "'"
