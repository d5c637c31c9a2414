"""Detection of AMF files by content; imports no heavy modules."""

from __future__ import annotations

import re

_ROOT = re.compile(rb"<amf[\s>]")
_ENTRY_NAME_START = 30
"""Bytes of the local header of a ZIP entry before its name (APPNOTE 4.3.7)."""


def sniff(head: bytes, size: int) -> int:  # noqa: ARG001
    """Return the confidence that the file is AMF, plain or in a ZIP archive, 0 … 100."""
    if head.startswith(b"PK\3\4"):
        length = int.from_bytes(head[26:28], "little")
        name = head[_ENTRY_NAME_START : _ENTRY_NAME_START + length]
        return 90 if name.lower().endswith(b".amf") and b"/" not in name else 0
    text = head[:4096].replace(b"\0", b"") if head[:2] in (b"\xff\xfe", b"\xfe\xff") else head[:4096]
    return 95 if b"<" in text[:64] and _ROOT.search(text) else 0
