"""Detection of STEP files by their content, where a comment or a byte order mark precedes the magic bytes."""

from __future__ import annotations

import re

_OPENING = re.compile(rb"\s*(?:/\*(?:[^*]|\*(?!/))*\*/\s*)*ISO-10303-21\s*;")


def sniff(head: bytes, size: int) -> int:  # noqa: ARG001
    """Return 100 for STEP and 0 for everything else.

    Args:
        head: First bytes of the file. A byte order mark, whitespace and comments may precede `ISO-10303-21;`.
        size: Size of the file in bytes; not used.
    """
    return 100 if _OPENING.match(head) else 0
