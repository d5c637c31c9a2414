"""Detection of OBJ files by content, shared with the reader; imports no heavy modules."""

from __future__ import annotations

import re

_STATEMENT = re.compile(
    rb"^[ \t]*(?:v[ \t]+[-+.\d]|v[tn][ \t]+[-+.\d]|f[ \t]+-?\d+[ \t/]|(?:mtllib|usemtl|o|g|s)(?:[ \t]|$))", re.MULTILINE
)
_VERTEX = re.compile(rb"^[ \t]*v(?:[ \t]+[-+.\deE]+){3}", re.MULTILINE)
_UTF_16_MARKS = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_UTF_8_MARK = b"\xef\xbb\xbf"


def remove_byte_order_mark(data: bytes) -> bytes:
    """Return the text without a byte order mark; a UTF-16 text becomes UTF-8."""
    for mark, encoding in _UTF_16_MARKS:
        if data.startswith(mark):
            return data[2:].decode(encoding, "replace").encode()
    return data.removeprefix(_UTF_8_MARK)


def sniff(head: bytes, size: int) -> int:  # noqa: ARG001
    """Return the confidence that the file is OBJ, 0 … 100."""
    text = remove_byte_order_mark(head)
    if b"\0" in text:
        return 0
    text = text.replace(b"\r", b"\n")
    if _VERTEX.search(text):
        line_count = sum(1 for line in text.split(b"\n") if line.strip() and not line.lstrip().startswith(b"#"))
        statement_count = len(_STATEMENT.findall(text))
        return 80 if 2 * statement_count >= line_count else 30
    return 50 if re.search(rb"^[ \t]*(?:mtllib|usemtl)[ \t]", text, re.MULTILINE) else 0
