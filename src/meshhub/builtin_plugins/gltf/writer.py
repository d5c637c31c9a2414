"""Writes GLB, and glTF with everything embedded, from a scene in metres, Y up."""

from __future__ import annotations

import struct

import msgspec
import pybase64
from msgspec import Struct

from meshhub.builtin_plugins.gltf.writing.build import Build
from meshhub.errors import ConversionFailed
from meshhub.model.scene import Scene
from meshhub.model.source import Target

_JSON = 0x4E4F534A
_BIN = 0x004E4942
_URI = "data:application/octet-stream;base64,"
_CLOSING = b'"}]}'
_LARGEST = 2**32 - 1


def write_glb(scene: Scene, target: Target, options: Struct) -> None:  # noqa: ARG001 - every writer takes options
    """One binary file (glTF 2.0 §4). Raises ConversionFailed beyond 4 GiB, which a GLB cannot hold."""
    build = Build(scene)
    text = msgspec.json.encode(build.document(uri=None))
    text += b" " * (-len(text) % 4)
    length = 12 + 8 + len(text) + 8 + build.size
    if length > _LARGEST:
        raise ConversionFailed("the model is larger than the 4 GiB that a GLB can hold; reduce it first")
    with target.open() as file:
        file.write(struct.pack("<4sII", b"glTF", 2, length))
        file.write(struct.pack("<II", len(text), _JSON) + text)
        file.write(struct.pack("<II", build.size, _BIN))
        for chunk in build.chunks:
            file.write(chunk)


def write_gltf(scene: Scene, target: Target, options: Struct) -> None:  # noqa: ARG001 - every writer takes options
    """One JSON file, the buffer in it as a data URI."""
    build = Build(scene)
    # the buffer's URI ends the document; encoding megabytes as a part of it took five times as long
    text = msgspec.json.encode(build.document(uri=_URI))
    with target.open() as file:
        file.write(text.removesuffix(_CLOSING))
        file.write(pybase64.b64encode(b"".join(build.chunks)))
        file.write(_CLOSING)
