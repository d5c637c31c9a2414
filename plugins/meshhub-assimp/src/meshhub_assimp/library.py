"""Assimp by ctypes: its functions, and its structures as far as the reader needs them.

The layout is that of the headers of assimp 6, in which `ai_real` is a 32-bit float.
"""

# why this way: docs/decisions/0025-fbx.md
from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import POINTER, Array, Structure, c_char, c_char_p, c_float, c_int, c_int32, c_uint, c_uint32, c_void_p
from functools import cache
from importlib.metadata import PackageNotFoundError, files
from typing import Any, NamedTuple

from meshhub import UnreadableFile
from meshhub.toolkit.encodings import decode_name, find_encoding
from meshhub.toolkit.names import single_line

_LIBRARY_NAMES = ("libassimp.so", "libassimp.dylib")
_MAX_STRING_BYTES = 1024
_MAX_SETS_COUNT = 8
"""Maximum sets of colors and of texture coordinates of a mesh."""

_MATRIX = c_float * 16


class String(Structure):
    """Text of at most 1023 bytes."""

    _fields_ = (("length", c_uint32), ("data", c_char * _MAX_STRING_BYTES))

    def __bytes__(self) -> bytes:
        """Return the text in the encoding of the file, because the library does not convert most files."""
        return ctypes.string_at(ctypes.addressof(self) + ctypes.sizeof(c_uint32), self.length)


class MetadataEntry(Structure):
    """Typed value."""

    _fields_ = (("type", c_int), ("data", c_void_p))


class Metadata(Structure):
    """Table of values."""

    _fields_ = (("count", c_uint), ("keys", POINTER(String)), ("values", POINTER(MetadataEntry)))


class Node(Structure):
    """Node of the hierarchy, with a row-major matrix."""


Node._fields_ = (
    ("name", String),
    ("matrix", _MATRIX),
    ("parent", POINTER(Node)),
    ("children_count", c_uint),
    ("children", POINTER(POINTER(Node))),
    ("meshes_count", c_uint),
    ("meshes", POINTER(c_uint)),
    ("metadata", POINTER(Metadata)),
)


class Mesh(Structure):
    """Faces of one material. The structure of the library has further fields after these."""

    _fields_ = (
        ("primitive_types", c_uint),
        ("vertices_count", c_uint),
        ("faces_count", c_uint),
        ("vertices", c_void_p),
        ("normals", c_void_p),
        ("tangents", c_void_p),
        ("bitangents", c_void_p),
        ("colors", c_void_p * _MAX_SETS_COUNT),
        ("uv", c_void_p * _MAX_SETS_COUNT),
        ("uv_components", c_uint * _MAX_SETS_COUNT),
        ("faces", c_void_p),
        ("bones_count", c_uint),
        ("bones", c_void_p),
        ("material", c_uint),
        ("name", String),
        ("morphs_count", c_uint),
    )


class Texture(Structure):
    """Embedded image; a height of 0 means a file of `width` bytes."""

    _fields_ = (("width", c_uint), ("height", c_uint), ("hint", c_char * 9), ("data", c_void_p), ("name", String))


class Scene(Structure):
    """Imported file. The structure of the library goes on after these fields."""

    _fields_ = (
        ("flags", c_uint),
        ("root", POINTER(Node)),
        ("meshes_count", c_uint),
        ("meshes", POINTER(POINTER(Mesh))),
        ("materials_count", c_uint),
        ("materials", POINTER(c_void_p)),
        ("animations_count", c_uint),
        ("animations", c_void_p),
        ("textures_count", c_uint),
        ("textures", POINTER(POINTER(Texture))),
        ("lights_count", c_uint),
        ("lights", c_void_p),
        ("cameras_count", c_uint),
        ("cameras", c_void_p),
        ("metadata", POINTER(Metadata)),
    )


_LogCallback = ctypes.CFUNCTYPE(None, c_char_p, c_char_p)


class _LogStream(Structure):
    """Receiver of log messages."""

    _fields_ = (("callback", _LogCallback), ("user", c_char_p))


_DAMAGE = re.compile(r"Error,.*?FBX-DOM(?: \(.*?\))? (.*)")
"""Message about an element that assimp drops; it reads the rest of the file."""

_MAX_REASON_CHARACTERS_COUNT = 80
"""Maximum characters of a message of assimp in an error or note."""

_import_lock = threading.Lock()
"""Lock that is held during an import, because log messages do not name the import to which they belong."""

_METADATA_TYPES: dict[int, Any] = {
    0: ctypes.c_bool,
    1: c_int32,
    2: ctypes.c_uint64,
    3: c_float,
    4: ctypes.c_double,
    8: ctypes.c_int64,
    9: c_uint32,
}
"""Numbers of `aiMetadataType` by their type."""


def find_library() -> str | None:
    """Return the path of the library in the package cmeel-assimp; None if it is not installed."""
    try:
        installed = files("cmeel-assimp") or []
    except PackageNotFoundError:
        return None
    return next((str(file.locate()) for file in installed if file.name in _LIBRARY_NAMES), None)


@cache
def load() -> ctypes.CDLL:
    """Load the library and declare its functions."""
    path = find_library()
    if path is None:
        raise ImportError("the package cmeel-assimp is not installed")
    library = ctypes.CDLL(path)
    library.aiImportFileFromMemory.restype = POINTER(Scene)
    library.aiImportFileFromMemory.argtypes = (c_char_p, c_uint, c_uint, c_char_p)
    library.aiReleaseImport.restype = None
    library.aiReleaseImport.argtypes = (POINTER(Scene),)
    library.aiGetErrorString.restype = c_char_p
    library.aiAttachLogStream.argtypes = library.aiDetachLogStream.argtypes = (POINTER(_LogStream),)
    library.aiGetEmbeddedTexture.restype = POINTER(Texture)
    library.aiGetEmbeddedTexture.argtypes = (POINTER(Scene), c_char_p)
    return library


class Import(NamedTuple):
    """Imported file.

    scene:    scene of the library
    reasons:  why elements of the file were dropped
    encoding: encoding of its names
    """

    scene: Scene
    reasons: list[str]
    encoding: str

    def decode(self, text: String) -> str:
        """Return a text of the file."""
        return decode_name(bytes(text), self.encoding)


@contextmanager
def import_file(data: bytes, extension: str, label: str) -> Iterator[Import]:
    """Import a file in memory; assimp opens no other, and the scene ends with the context.

    Args:
        data: The file.
        extension: Extension by which assimp chooses its reader.
        label: Name of the format for messages.
    Yields:
        Imported file.
    Raises:
        UnreadableFile: The library rejects the file.
    """
    library = load()
    reasons: list[str] = []

    def collect(message: bytes, _user: bytes | None) -> None:
        if match := _DAMAGE.match(message.decode("utf-8", "replace")):
            reasons.append(_shorten(match[1]))

    stream = _LogStream(_LogCallback(collect), None)
    with _import_lock:
        library.aiAttachLogStream(ctypes.byref(stream))
        try:
            pointer = library.aiImportFileFromMemory(data, len(data), 0, extension.encode())
            error = library.aiGetErrorString().decode("utf-8", "replace")
        finally:
            library.aiDetachLogStream(ctypes.byref(stream))
    if not pointer:
        raise UnreadableFile(f"not a readable {label} file ({_shorten(error)}); export the model again")
    try:
        scene = pointer.contents
        yield Import(scene, reasons, find_encoding(_list_names(scene)))
    finally:
        library.aiReleaseImport(pointer)


def _list_names(scene: Scene) -> Iterator[bytes]:
    """Yield the names of nodes, meshes and materials, with repetitions."""
    nodes = [scene.root.contents]
    while nodes:
        node = nodes.pop()
        yield bytes(node.name)
        nodes += [node.children[number].contents for number in range(node.children_count)]
    for number in range(scene.meshes_count):
        yield bytes(scene.meshes[number].contents.name)
    for number in range(scene.materials_count):
        yield bytes(MaterialView(scene.materials[number]).text("?mat.name"))


def _shorten(reason: str) -> str:
    text = single_line(reason).removeprefix("FBX-").strip()
    return text[:_MAX_REASON_CHARACTERS_COUNT] or "it is malformed"


def find_embedded(scene: Scene, path: String) -> bytes:
    """Return the content of the embedded texture that a material refers to; empty without one."""
    texture = load().aiGetEmbeddedTexture(ctypes.byref(scene), bytes(path))
    if not texture or texture.contents.height or not texture.contents.data:
        return b""
    return ctypes.string_at(texture.contents.data, texture.contents.width)


def read_numbers(metadata: Any) -> dict[str, float]:
    """Return the numbers of a table."""
    numbers: dict[str, float] = {}
    for index in range(metadata.contents.count if metadata else 0):
        entry = metadata.contents.values[index]
        kind = _METADATA_TYPES.get(entry.type)
        if kind is not None and entry.data:
            numbers[bytes(metadata.contents.keys[index]).decode("ascii", "replace")] = kind.from_address(
                entry.data
            ).value
    return numbers


class MaterialView:
    """Properties of a material of the library."""

    def __init__(self, address: int) -> None:
        """Wrap the material at `address`."""
        self._material = c_void_p(address)
        self._library = load()

    def text(self, key: str) -> String:
        """Return a text; empty without that property."""
        value = String()
        self._library.aiGetMaterialString(self._material, key.encode(), 0, 0, ctypes.byref(value))
        return value

    def numbers(self, key: str, length: int) -> tuple[float, ...]:
        """Return `length` numbers; empty without that property."""
        values: Array[c_float] = (c_float * length)()
        size = c_uint(length)
        arguments = (self._material, key.encode(), 0, 0, values, ctypes.byref(size))
        found = self._library.aiGetMaterialFloatArray(*arguments)
        return tuple(values) if found == 0 and size.value == length else ()

    def texture(self, kind: int) -> tuple[String, int, tuple[int, int]] | None:
        """Return path, set of texture coordinates and wrap modes of the first texture of a kind; None without one."""
        path, uv_set, modes = String(), c_uint(0), (c_int * 2)()
        found = self._library.aiGetMaterialTexture(
            self._material, kind, 0, ctypes.byref(path), None, ctypes.byref(uv_set), None, None, modes, None
        )
        return (path, uv_set.value, (modes[0], modes[1])) if found == 0 else None
