"""Distinguish glTF JSON from other text."""

from __future__ import annotations

import re

_KEYS = re.compile(rb'"(asset|scenes|nodes|meshes|accessors|bufferViews|buffers|materials|extensionsUsed)"\s*:')
_EMBEDDED_BUFFER = re.compile(rb'"uri"\s*:\s*"data:application/(octet-stream|gltf-buffer);base64,')


def sniff(head: bytes, size: int) -> int:
    """Return how certainly a file is glTF, 0 … 100: JSON that has the top-level keys of glTF."""
    text = head.lstrip()
    if not text.startswith(b"{") or size < 2:
        return 0
    keys = set(_KEYS.findall(text))
    if b"asset" in keys and (len(keys) > 1 or b'"version"' in text):
        return 95
    # one long list may fill the whole head
    has_only_accessors = b"accessors" in keys and b'"componentType"' in text
    return 85 if len(keys) > 1 or has_only_accessors or _EMBEDDED_BUFFER.search(text) else 0
