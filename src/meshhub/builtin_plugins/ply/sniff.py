"""Telling PLY by its content."""

from __future__ import annotations

import re

_OPENING = re.compile(rb"(?:\xef\xbb\xbf)?ply[ \t]*[\r\n]+(?:\s|(?:comment|obj_info)[^\r\n]*)*(format\s)?")


def sniff(head: bytes, size: int) -> int:  # noqa: ARG001
    """0 (no) to 100 (sure)."""
    found = _OPENING.match(head)
    if found is None:
        return 0
    return 100 if found.group(1) else 60
