"""Names as Part-21 strings, ISO 10303-21 §6.4.3."""

from __future__ import annotations

_LONGEST = 250


def quoted(name: str) -> str:
    r"""The name between apostrophes: `''` for one, `\\` for a reverse solidus, `\X2\…\X0\` for what is not ASCII.

    Control characters become blanks; a name longer than 250 characters is cut.
    """
    pieces: list[str] = []
    wide = ""
    for letter in name[:_LONGEST]:
        code = ord(letter)
        if code < 32 or code == 127 or 0xD800 <= code < 0xE000:
            letter, code = " ", 32
        narrow = code < 127
        if narrow and wide:
            pieces.append(f"{wide}\\X0\\")
            wide = ""
        if narrow:
            pieces.append({"'": "''", "\\": "\\\\"}.get(letter, letter))
            continue
        kind = "\\X2\\" if code < 0x10000 else "\\X4\\"
        if wide and not wide.startswith(kind):
            pieces.append(f"{wide}\\X0\\")
            wide = ""
        wide = (wide or kind) + (f"{code:04X}" if code < 0x10000 else f"{code:08X}")
    if wide:
        pieces.append(f"{wide}\\X0\\")
    return "'" + "".join(pieces) + "'"
