"""Vertex colors of FBX that assimp drops without a word: those for each polygon, and one for all."""

from __future__ import annotations

import re

from meshhub import note

_LAYER = re.compile(rb"\x11LayerElementColor(?=[IL])|LayerElementColor[ \t]{0,8}:")
"""Begin of a layer of colors, in a binary or a text file; the table of layers has the name as a value instead."""

_FIELD = rb"%s(?:S(?P<size>....)|[ \t]{0,8}:[ \t]{0,8}\")(?P<text>\w{1,40})"
_MAPPING, _REFERENCE = (
    re.compile(_FIELD % name, re.DOTALL) for name in (b"MappingInformationType", b"ReferenceInformationType")
)
_HEAD_BYTES = 1000
"""Bytes of a layer in which its mapping is, before its arrays."""

_READ = ({"ByPolygonVertex", "ByVertice"}, {"Direct", "IndexToDirect"})
"""Mappings and references that assimp reads."""


def prepare(data: bytes) -> bytes:
    """Return the file as it is, with a note on colors that assimp will drop."""
    for layer in _LAYER.finditer(data):
        head = data[layer.start() : layer.start() + _HEAD_BYTES]
        mapping, reference = (_find(pattern, head) for pattern in (_MAPPING, _REFERENCE))
        if mapping not in _READ[0] or reference not in _READ[1]:
            note("colors_not_read", f"dropped vertex colors mapped {mapping}, {reference}; map them ByPolygonVertex")
    return data


def _find(pattern: re.Pattern[bytes], head: bytes) -> str:
    match = pattern.search(head)
    if match is None:
        return ""
    # in a binary file, more letters may follow
    size = None if match["size"] is None else int.from_bytes(match["size"], "little")
    return match["text"][:size].decode("ascii", "replace")
