"""Telling OFF by its content: light, and shared with the reader."""

from __future__ import annotations

import re

KEYWORD = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s|#[^\r\n]*[\r\n])*(ST)?(C)?(N)?(4)?(n)?OFF(?=[\s#]|$)([ \t]+BINARY\b)?")
"""The word that a file begins with, after blanks and comments, and what it says of the vertices."""


def sniff(head: bytes, size: int) -> int:  # noqa: ARG001
    """0 (no) to 100 (sure)."""
    return 90 if KEYWORD.match(head) else 0
