"""Write GLB, or glTF with an embedded buffer, from a scene in meters, Y up."""

from __future__ import annotations

import struct

import msgspec
import pybase64

from meshhub.builtin_plugins.gltf.writing.document import DocumentBuilder
from meshhub.errors import ConversionFailed
from meshhub.model.capabilities import NoOptions
from meshhub.model.notes import advise_reduction
from meshhub.model.scene import Scene
from meshhub.model.source import Target

_JSON_CHUNK = 0x4E4F534A
_BIN_CHUNK = 0x004E4942
_DATA_URI = "data:application/octet-stream;base64,"
_DOCUMENT_END = b'"}]}'
_MAX_GLB_BYTES = 2**32 - 1
"""Maximum bytes; glTF 2.0 §4.4.2 stores the length of a GLB in 32 bits."""


def write_glb(scene: Scene, target: Target, _options: NoOptions) -> None:
    """Write one binary file (glTF 2.0 §4).

    Raises:
        ConversionFailed: The file would exceed 4 GiB.
    """
    builder = DocumentBuilder(scene)
    text = msgspec.json.encode(builder.document(uri=None))
    text += b" " * (-len(text) % 4)
    length = 12 + 8 + len(text) + 8 + builder.size
    if length > _MAX_GLB_BYTES:
        advice, options = advise_reduction()
        raise ConversionFailed(f"the model exceeds 4 GiB, the limit of a GLB file; {advice}", options=options)
    with target.open() as file:
        file.write(struct.pack("<4sII", b"glTF", 2, length))
        file.write(struct.pack("<II", len(text), _JSON_CHUNK) + text)
        file.write(struct.pack("<II", builder.size, _BIN_CHUNK))
        for chunk in builder.chunks:
            file.write(chunk)


def write_gltf(scene: Scene, target: Target, _options: NoOptions) -> None:
    """Write one JSON file with the buffer in a data URI."""
    builder = DocumentBuilder(scene)
    # the URI of the buffer ends the document, because encoding megabytes as a part of it took five times as long
    text = msgspec.json.encode(builder.document(uri=_DATA_URI))
    with target.open() as file:
        file.write(text.removesuffix(_DOCUMENT_END))
        file.write(pybase64.b64encode(b"".join(builder.chunks)))
        file.write(_DOCUMENT_END)
