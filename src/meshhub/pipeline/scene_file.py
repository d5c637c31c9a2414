"""Lossless scene files, which pass scenes into and out of a chain, even if the chain runs in another process.

    b"meshhub-scene\\n" · length of the header (8 bytes, little-endian) · header (JSON) · arrays and images

The header describes everything except the content of arrays and images, which follow in the order of the header. The
layout may change with every version, so the file is not for storage. A worker that reads a hostile file may be
compromised, so `decode_scene` checks everything and, unlike `pickle`, cannot run code.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, BinaryIO

import msgspec
import numpy as np
from msgspec import Struct

from meshhub.errors import UnreadableFile
from meshhub.model.capabilities import Frame, NoOptions
from meshhub.model.scene import Image, Material, Mesh, Part, Scene
from meshhub.model.source import Source, Target

_MAGIC = b"meshhub-scene\n"

_LENGTH = struct.Struct("<Q")

_ARRAYS: dict[str, tuple[str, int, str]] = {
    "vertices": ("<f8", 3, "vertices"),
    "faces": ("<i4", 3, "faces"),
    "normals": ("<f4", 3, "vertices"),
    "uv": ("<f4", 2, "vertices"),
    "colors": ("u1", 4, "vertices"),
    "face_material": ("<i4", 1, "faces"),
}
"""Arrays of a mesh in their order in the file: type, columns, and the count that is their number of rows."""

_ALIGNMENT_BYTES = 8
"""Every array and image begins at a multiple of the largest item size, so that views of the file are aligned."""


class _MeshHeader(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    vertices: int
    faces: int
    arrays: tuple[str, ...]


class _PartHeader(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    mesh: int
    transform: tuple[float, ...]
    name: str
    path: tuple[str, ...]
    material: int | None
    plate: int


class _ImageHeader(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    size: int
    media_type: str
    name: str


class _Header(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    meshes: tuple[_MeshHeader, ...]
    parts: tuple[_PartHeader, ...]
    materials: tuple[Material, ...]
    images: tuple[_ImageHeader, ...]
    frame: Frame | None
    name: str
    metadata: dict[str, str]


def read(source: Source, options: NoOptions) -> Scene:  # noqa: ARG001
    """Read the scene of a source that `Registry` made from a scene."""
    return decode_scene(source.read())


def write(scene: Scene, target: Target, options: NoOptions) -> None:  # noqa: ARG001
    """Write a scene that `Registry` decodes."""
    with target.open() as file:
        encode_scene(scene, file)


def encode_scene(scene: Scene, file: BinaryIO) -> None:
    """Write a scene to a binary file."""
    header = msgspec.json.encode(
        _Header(
            meshes=tuple(
                _MeshHeader(
                    name=mesh.name,
                    vertices=len(mesh.vertices),
                    faces=len(mesh.faces),
                    arrays=tuple(name for name in _ARRAYS if getattr(mesh, name) is not None),
                )
                for mesh in scene.meshes
            ),
            parts=tuple(
                _PartHeader(
                    mesh=part.mesh,
                    transform=tuple(part.transform.ravel().tolist()),
                    name=part.name,
                    path=part.path,
                    material=part.material,
                    plate=part.plate,
                )
                for part in scene.parts
            ),
            materials=scene.materials,
            images=tuple(
                _ImageHeader(size=len(image.data), media_type=image.media_type, name=image.name)
                for image in scene.images
            ),
            frame=scene.frame,
            name=scene.name,
            metadata=dict(scene.metadata),
        )
    )
    file.write(_MAGIC + _LENGTH.pack(len(header)) + header)
    position = len(_MAGIC) + _LENGTH.size + len(header)
    for block in _blocks(scene):
        padding = -position % _ALIGNMENT_BYTES
        file.write(bytes(padding))
        file.write(block)
        position += padding + len(block)


def _blocks(scene: Scene) -> Iterator[memoryview]:
    for mesh in scene.meshes:
        for name, (dtype, _, _) in _ARRAYS.items():
            array = getattr(mesh, name)
            if array is not None:
                yield memoryview(array.astype(dtype, copy=False).reshape(-1).view(np.uint8))
    for image in scene.images:
        yield memoryview(image.data)


def decode_scene(data: bytes) -> Scene:
    """Return the scene of a file; its arrays are views of `data`.

    Raises:
        UnreadableFile: The bytes are not a scene file.
    """
    try:
        return _decode(data)
    except (ValueError, TypeError, struct.error, msgspec.MsgspecError) as error:
        raise UnreadableFile("the scene file is damaged") from error


# made at import, because msgspec can crash if two threads decode a type for the first time
_HEADERS = msgspec.json.Decoder(_Header)


def _decode(data: bytes) -> Scene:
    if not data.startswith(_MAGIC):
        raise ValueError("magic")
    (length,) = _LENGTH.unpack_from(data, len(_MAGIC))
    begin = len(_MAGIC) + _LENGTH.size
    header = _HEADERS.decode(data[begin : begin + length])
    blocks = _Blocks(data, begin + length)
    meshes = []
    for mesh in header.meshes:
        arrays: dict[str, Any] = {}
        for name, (dtype, columns, rows) in _ARRAYS.items():
            if name in mesh.arrays:
                count = mesh.vertices if rows == "vertices" else mesh.faces
                items = np.frombuffer(blocks.take(count * columns * np.dtype(dtype).itemsize), dtype)
                arrays[name] = items.reshape(count, columns) if columns > 1 else items
        meshes.append(Mesh(name=mesh.name, **arrays))
    return Scene(
        meshes=tuple(meshes),
        parts=tuple(
            Part(
                mesh=part.mesh,
                transform=np.array(part.transform).reshape(4, 4),
                name=part.name,
                path=part.path,
                material=part.material,
                plate=part.plate,
            )
            for part in header.parts
        ),
        materials=header.materials,
        images=tuple(
            Image(data=bytes(blocks.take(image.size)), media_type=image.media_type, name=image.name)
            for image in header.images
        ),
        frame=header.frame,
        name=header.name,
        metadata=header.metadata,
    )


class _Blocks:
    """Arrays and images of a file, one after the other."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data = memoryview(data)
        self._position = position

    def take(self, size: int) -> memoryview:
        """Return the next `size` bytes. Raises ValueError if the file has fewer."""
        begin = self._position + -self._position % _ALIGNMENT_BYTES
        if not 0 <= size <= len(self._data) - begin:
            raise ValueError("the file is too short")
        self._position = begin + size
        return self._data[begin : self._position]
