"""Detection of COLLADA files by content; imports no heavy modules."""

from __future__ import annotations

import re

_ROOT = re.compile(rb"<(?:\w{1,80}:)?COLLADA[\s>]")
_ENTRY_NAME_START = 30
"""Bytes of the local header of a ZIP entry before its name (APPNOTE 4.3.7)."""


def sniff(head: bytes, size: int) -> int:  # noqa: ARG001
    """Return the confidence that the file is COLLADA, plain or in a ZIP archive, 0 … 100."""
    if head.startswith(b"PK\3\4"):
        length = int.from_bytes(head[26:28], "little")
        name = head[_ENTRY_NAME_START : _ENTRY_NAME_START + length].lower()
        return 90 if name.endswith(b".dae") else 60 if name == b"manifest.xml" and b".dae" in head.lower() else 0
    text = (
        head[:8192].replace(b"\0", b"") if b"\0" in head[:4] or head[:2] in (b"\xff\xfe", b"\xfe\xff") else head[:8192]
    )
    return 95 if b"<" in text[:64] and _ROOT.search(text) else 0
