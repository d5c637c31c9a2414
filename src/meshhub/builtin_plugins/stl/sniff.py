"""Detection of STL files by content, shared with the reader; imports no heavy modules."""

from __future__ import annotations

import re

HEADER_BYTES = 84
"""Bytes before the first triangle: 80 free bytes and a uint32 with the number of triangles."""

RECORD_BYTES = 50
"""Bytes per triangle: the normal, three corners, and two attribute bytes."""

_KEYWORDS = re.compile(
    rb"(?:^|\s)(?:facet\s+normal|outer\s+loop|vertex\s+[-+.\d]|endsolid\b|endfacet\b)", re.IGNORECASE
)
_OPENING = re.compile(rb"(?:\s|#[^\r\n]*[\r\n])*(?:solid|facet)\b", re.IGNORECASE)
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r"))


def declared_triangles(head: bytes) -> int:
    """Return the number of triangles in a binary header."""
    return int.from_bytes(head[80:HEADER_BYTES], "little")


def has_binary_size(head: bytes, size: int) -> bool:
    """Return whether the file size matches the number of triangles in the header; text never matches by chance."""
    return len(head) >= HEADER_BYTES and size == HEADER_BYTES + RECORD_BYTES * declared_triangles(head)


def is_text(head: bytes) -> bool:
    """Return whether the first bytes contain STL keywords and at most 1 % control characters."""
    control_count = len(head) - len(head.translate(None, _CONTROLS))
    return control_count * 100 <= len(head) and _KEYWORDS.search(head) is not None


def sniff(head: bytes, size: int) -> int:
    """Return the confidence that the file is STL, 0 … 100."""
    if has_binary_size(head, size):
        # 84 zero bytes are a binary file without triangles
        return 95 if declared_triangles(head) else 40
    if _OPENING.match(head) and is_text(head):
        return 90
    return 0
