"""Telling OBJ by its content: light, and shared with the reader."""

from __future__ import annotations

import re

_STATEMENT = re.compile(
    rb"^[ \t]*(?:v[ \t]+[-+.\d]|v[tn][ \t]+[-+.\d]|f[ \t]+-?\d+[ \t/]|(?:mtllib|usemtl|o|g|s)(?:[ \t]|$))", re.MULTILINE
)
_VERTEX = re.compile(rb"^[ \t]*v(?:[ \t]+[-+.\deE]+){3}", re.MULTILINE)
_WIDE = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_BOM = b"\xef\xbb\xbf"


def narrowed(data: bytes) -> bytes:
    """The text without a byte order mark, as UTF-8 when the mark tells UTF-16."""
    for mark, encoding in _WIDE:
        if data.startswith(mark):
            return data[2:].decode(encoding, "replace").encode()
    return data.removeprefix(_BOM)


def sniff(head: bytes, size: int) -> int:  # noqa: ARG001
    """0 (no) to 100 (sure)."""
    text = narrowed(head)
    if b"\0" in text:
        return 0
    text = text.replace(b"\r", b"\n")
    if _VERTEX.search(text):
        lines = sum(1 for line in text.split(b"\n") if line.strip() and not line.lstrip().startswith(b"#"))
        known = len(_STATEMENT.findall(text))
        return 80 if 2 * known >= lines else 30
    return 50 if re.search(rb"^[ \t]*(?:mtllib|usemtl)[ \t]", text, re.MULTILINE) else 0
