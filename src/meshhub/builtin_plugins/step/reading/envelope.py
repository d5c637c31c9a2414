"""The envelope of a Part-21 file: whether the text is whole, looked at before a CAD kernel sees it.

ISO 10303-21 §5–8: `ISO-10303-21;`, a HEADER section, DATA sections, `END-ISO-10303-21;`. Most damage
is an upload cut short, which leaves no end; the kernel would read such a file as far as it goes.
"""

from __future__ import annotations

import re

from meshhub.errors import UnreadableFile

_HEAD = 1 << 16
_START = re.compile(rb"ISO-10303-21\s*;")
_DATA = re.compile(rb"(?<![\w'-])DATA\s*[;(]")
_SECTION_END = re.compile(rb"ENDSEC\s*;")
_END = b"END-ISO-10303-21"
_SCHEMA = re.compile(rb"FILE_SCHEMA\s*\(\s*\(\s*'([^']{0,200})")
# an unclosed comment or string runs to the end of the file; each alternative matches once, so the work is linear
_TEXT = re.compile(rb"'[^']*(?:'|\Z)|/\*(?:.*?\*/|.*)", re.DOTALL)


def checked(data: bytes) -> bytes:
    """The exchange structure, without what stands before it.

    Raises UnreadableFile when the text is not a whole Part-21 file, or one of another trade.
    """
    start = _START.search(data, 0, _HEAD)
    if start is None:
        raise UnreadableFile("the file does not begin with ISO-10303-21, as every STEP file does; export it again")
    data = data[start.start() :] if start.start() else data
    schema = _SCHEMA.search(data, 0, _HEAD)
    name = schema.group(1).decode("ascii", "replace").strip().upper() if schema else ""
    if name.startswith("IFC"):
        raise UnreadableFile(
            f"the file is a building model ({name[:20]}), not a STEP model; export it as STEP AP214 or AP242"
        )
    section = _DATA.search(data)
    if section is None:
        raise UnreadableFile("the STEP file has no DATA section: it ends before its content; send it again")
    end = data.rfind(_END)
    if end < section.end():
        raise UnreadableFile(
            "the STEP file ends in the middle: END-ISO-10303-21 is missing at its end; "
            "it was cut short on its way, send it again"
        )
    if _SECTION_END.search(data, section.end(), end) is None:
        raise UnreadableFile("the DATA section of the STEP file is not closed by ENDSEC; export the file again")
    _balanced(data)
    return data


def _balanced(data: bytes) -> None:
    """Brackets and quotes are in pairs; strings are taken out only where a plain count does not agree."""
    pairs = ((b"(", b")"), (b"/*", b"*/"))
    if all(data.count(one) == data.count(other) for one, other in pairs) and data.count(b"'") % 2 == 0:
        return
    bare = _TEXT.sub(b"", data)
    # what is not closed has swallowed the end
    if bare.count(b"(") != bare.count(b")") or _END not in bare:
        raise UnreadableFile(
            "brackets or quotes in the STEP file are not in pairs: its text is damaged; export or send it again"
        )
