"""Detection of OBJ files by content; imports no heavy modules."""

from __future__ import annotations

import re

_STATEMENT = re.compile(
    rb"^[ \t]*(?:v[ \t]+[-+.\d]|v[tn][ \t]+[-+.\d]|f[ \t]+-?\d+[ \t/]|(?:mtllib|usemtl|o|g|s)(?:[ \t]|$))", re.MULTILINE
)
_VERTEX = re.compile(rb"^[ \t]*v(?:[ \t]+[-+.\deE]+){3}", re.MULTILINE)


def sniff(head: bytes, size: int) -> int:  # noqa: ARG001
    """Return the confidence that the file is OBJ, 0 … 100."""
    if b"\0" in head:
        return 0
    text = head.replace(b"\r", b"\n")
    if _VERTEX.search(text):
        line_count = sum(1 for line in text.split(b"\n") if line.strip() and not line.lstrip().startswith(b"#"))
        statement_count = len(_STATEMENT.findall(text))
        return 80 if 2 * statement_count >= line_count else 30
    return 50 if re.search(rb"^[ \t]*(?:mtllib|usemtl)[ \t]", text, re.MULTILINE) else 0
