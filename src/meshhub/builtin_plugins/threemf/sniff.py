"""Telling 3MF from other ZIP archives by the names of the entries that begin in the head."""

from __future__ import annotations

_SIGNATURE = b"PK\x03\x04"
_LONGEST_NAME = 1024
"""What claims to be longer is no name of ours, and there may be thousands of them in the head."""

_OFFICE = ("word/", "xl/", "ppt/")


def sniff(head: bytes, size: int) -> int:
    """0 (no) to 100 (sure). An archive without a mark of 3MF is none: it may be a batch of models."""
    if not head.startswith(_SIGNATURE) or size < 22:
        return 0
    package = False
    at = 0
    while at >= 0:
        length = int.from_bytes(head[at + 26 : at + 28], "little")
        raw = head[at + 30 : at + 30 + length] if length <= _LONGEST_NAME else b""
        name = raw.decode("utf-8", "replace").replace("\\", "/").lstrip("/").casefold()
        if name.endswith(".model"):
            return 95
        if name.startswith(_OFFICE):
            return 0
        package = package or name in ("[content_types].xml", "_rels/.rels")
        at = head.find(_SIGNATURE, at + 4)
    return 40 if package else 0
