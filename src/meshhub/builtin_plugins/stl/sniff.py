"""Telling STL by its content: light, and shared with the reader."""

from __future__ import annotations

import re

HEADER = 84
"""Eighty free bytes and the number of triangles."""

RECORD = 50
"""A normal, three corners, two bytes for attributes."""

_WORDS = re.compile(rb"(?:^|\s)(?:facet\s+normal|outer\s+loop|vertex\s+[-+.\d]|endsolid\b|endfacet\b)", re.IGNORECASE)
_OPENING = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s|#[^\r\n]*[\r\n])*(?:solid|facet)\b", re.IGNORECASE)
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r"))


def declared_triangles(head: bytes) -> int:
    """The number of triangles that a binary header tells."""
    return int.from_bytes(head[80:HEADER], "little")


def exactly_binary(head: bytes, size: int) -> bool:
    """Whether the size is just what a binary header tells; no text can meet that by chance."""
    return len(head) >= HEADER and size == HEADER + RECORD * declared_triangles(head)


def looks_like_text(head: bytes) -> bool:
    """Whether the first bytes are the words of an STL text rather than numbers in binary."""
    controls = len(head) - len(head.translate(None, _CONTROLS))
    return controls * 100 <= len(head) and _WORDS.search(head) is not None


def sniff(head: bytes, size: int) -> int:
    """0 (no) to 100 (sure)."""
    if exactly_binary(head, size):
        # zeros alone would be a binary file of no triangles
        return 95 if declared_triangles(head) else 40
    if _OPENING.match(head) and looks_like_text(head):
        return 90
    return 0
