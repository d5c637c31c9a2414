"""Detection of PLY files by content."""

from __future__ import annotations

import re

_OPENING = re.compile(rb"ply[ \t]*[\r\n]+(?:\s|(?:comment|obj_info)[^\r\n]*)*(format\s)?")


def sniff(head: bytes, size: int) -> int:  # noqa: ARG001
    """Return the confidence that the file is PLY, 0 … 100."""
    match = _OPENING.match(head)
    if match is None:
        return 0
    return 100 if match.group(1) else 60
