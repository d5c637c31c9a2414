"""glTF files built by tests: a document and the bytes of its buffer."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import numpy as np

from meshhub.builtin_plugins.gltf.reader import read
from meshhub.builtin_plugins.gltf.writer import write_glb, write_gltf
from meshhub.model.capabilities import HOST_FRAME, Frame, NoOptions
from meshhub.model.notes import collecting
from meshhub.model.scene import Scene
from meshhub.model.source import Source, Target
from meshhub.toolkit.geometry import to_frame

TYPES = {1: "SCALAR", 2: "VEC2", 3: "VEC3", 4: "VEC4", 16: "MAT4"}
COMPONENTS = {"int8": 5120, "uint8": 5121, "int16": 5122, "uint16": 5123, "uint32": 5125, "float32": 5126}
SQUARE = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], np.float32)
TWO = np.array([0, 1, 2, 0, 2, 3], np.uint16)


class Document:
    """glTF document to which members are added."""

    def __init__(self) -> None:
        self.json: dict[str, Any] = {"asset": {"version": "2.0"}, "accessors": [], "bufferViews": []}
        self.data = b""

    def view(self, data: bytes, **more: Any) -> int:
        self.json["bufferViews"].append(
            {"buffer": 0, "byteOffset": len(self.data), "byteLength": len(data), **more},
        )
        self.data += data + bytes(-len(data) % 4)
        return len(self.json["bufferViews"]) - 1

    def accessor(self, rows: np.ndarray[Any, Any], **more: Any) -> int:
        width = 1 if rows.ndim == 1 else rows.shape[1]
        self.json["accessors"].append(
            {
                "bufferView": self.view(rows.tobytes()),
                "componentType": COMPONENTS[rows.dtype.name],
                "count": len(rows),
                "type": TYPES[width],
                **more,
            }
        )
        return len(self.json["accessors"]) - 1

    def mesh(self, *primitives: dict[str, Any], name: str = "") -> int:
        self.json.setdefault("meshes", []).append({"name": name, "primitives": list(primitives)})
        return len(self.json["meshes"]) - 1

    def place(self, *nodes: dict[str, Any], roots: list[int] | None = None) -> Document:
        self.json["nodes"] = list(nodes)
        self.json["scene"] = 0
        self.json["scenes"] = [{"nodes": list(range(len(nodes))) if roots is None else roots}]
        return self

    def glb(self) -> bytes:
        if self.data:
            self.json["buffers"] = [{"byteLength": len(self.data)}]
        return glb(json.dumps(self.json).encode(), self.data)

    def gltf(self, uri: str | None = None) -> bytes:
        embedded = "data:application/octet-stream;base64," + base64.b64encode(self.data).decode()
        self.json["buffers"] = [{"byteLength": len(self.data), "uri": uri or embedded}]
        return json.dumps(self.json).encode()


def glb(text: bytes, data: bytes) -> bytes:
    text += b" " * (-len(text) % 4)
    chunks = struct.pack("<II", len(text), 0x4E4F534A) + text
    if data:
        chunks += struct.pack("<II", len(data), 0x004E4942) + data
    return struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks


def square(**more: Any) -> Document:
    """Return a document with one square of two triangles, placed once."""
    document = Document()
    primitive = {"attributes": {"POSITION": document.accessor(SQUARE)}, "indices": document.accessor(TWO), **more}
    document.mesh(primitive)
    return document.place({"mesh": 0})


def load(data: bytes, **companions: bytes) -> Scene:
    return read(Source.from_bytes(data, "x.gltf", companions), NoOptions())


def load_with_notes(data: bytes, **companions: bytes) -> tuple[Scene, list[str]]:
    with collecting("test") as remarks:
        scene = load(data, **companions)
    return scene, [note.code for note in remarks.notes]


def to_meters(scene: Scene) -> Scene:
    return to_frame(scene, Frame("m", "y"))


def to_millimeters(scene: Scene) -> Scene:
    return to_frame(scene, HOST_FRAME)


def write_scene(scene: Scene, kind: str = "glb") -> bytes:
    """Write a scene in millimeters; return the bytes."""
    target = Target()
    {"glb": write_glb, "gltf": write_gltf}[kind](to_meters(scene), target, NoOptions())
    return target.read()


def parse_json(data: bytes) -> dict[str, Any]:
    if data[:4] != b"glTF":
        parsed: dict[str, Any] = json.loads(data)
    else:
        parsed = json.loads(data[20 : 20 + struct.unpack_from("<I", data, 12)[0]])
    return parsed


PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNg+M/wHwAEAQH/7yMK/gAAAABJRU5ErkJggg=="
)
