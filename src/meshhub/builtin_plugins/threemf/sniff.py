"""Distinguish 3MF from other ZIP archives by the names of the entries in the head."""

from __future__ import annotations

_SIGNATURE = b"PK\x03\x04"
_MAX_NAME_BYTES = 1024
"""Maximum bytes of a name; 3MF packages have no longer ones, and decoding thousands of them would take long."""

_OFFICE_FOLDERS = ("word/", "xl/", "ppt/")


def sniff(head: bytes, size: int) -> int:
    """Return how certainly a file is 3MF, 0 … 100; 0 for an ordinary ZIP archive, which may be a batch of models."""
    if not head.startswith(_SIGNATURE) or size < 22:
        return 0
    is_package = False
    at = 0
    while at >= 0:
        length = int.from_bytes(head[at + 26 : at + 28], "little")
        raw = head[at + 30 : at + 30 + length] if length <= _MAX_NAME_BYTES else b""
        name = raw.decode("utf-8", "replace").replace("\\", "/").lstrip("/").casefold()
        if name.endswith(".model"):
            return 95
        if name.startswith(_OFFICE_FOLDERS):
            return 0
        is_package = is_package or name in ("[content_types].xml", "_rels/.rels")
        at = head.find(_SIGNATURE, at + 4)
    return 40 if is_package else 0
