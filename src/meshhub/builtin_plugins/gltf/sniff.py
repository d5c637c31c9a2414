"""Tells glTF's JSON from other text."""

from __future__ import annotations

import re

_WORDS = re.compile(rb'"(asset|scenes|nodes|meshes|accessors|bufferViews|buffers|materials|extensionsUsed)"\s*:')
_EMBEDDED = re.compile(rb'"uri"\s*:\s*"data:application/(octet-stream|gltf-buffer);base64,')


def sniff(head: bytes, size: int) -> int:
    """How surely a file is glTF: JSON whose top-level words are glTF's."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text.startswith(b"{") or size < 2:
        return 0
    words = set(_WORDS.findall(text))
    if b"asset" in words and (len(words) > 1 or b'"version"' in text):
        return 95
    # a long list may fill the whole head
    lone = b"accessors" in words and b'"componentType"' in text
    return 85 if len(words) > 1 or lone or _EMBEDDED.search(text) else 0
