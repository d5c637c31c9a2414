"""Detection of USD files by content; imports no heavy modules."""

from __future__ import annotations

LAYER_EXTENSIONS = (".usd", ".usda", ".usdc")
"""Extensions of single layers."""

_ENTRY_NAME_START = 30
"""Bytes of the local header of a ZIP entry before its name (APPNOTE 4.3.7)."""


def sniff(head: bytes, size: int) -> int:  # noqa: ARG001
    """Return the confidence that the file is USDZ or a USD layer, 0 … 100."""
    if head.startswith(b"PK\3\4"):
        # the first file of a package is its root layer (USDZ specification, "Default layer")
        length = int.from_bytes(head[26:28], "little")
        name = head[_ENTRY_NAME_START : _ENTRY_NAME_START + length].lower()
        return 95 if name.endswith(tuple(extension.encode() for extension in LAYER_EXTENSIONS)) else 0
    return 95 if head.startswith((b"#usda ", b"PXR-USDC")) else 0
