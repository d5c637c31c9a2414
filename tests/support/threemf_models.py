"""3MF packages built from XML text."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib

from meshhub.model.scene import Mesh
from meshhub.model.source import Source
from models import brick

CORE = "http://schemas.microsoft.com/3dmanufacturing/core/2015/02"
MATERIAL = "http://schemas.microsoft.com/3dmanufacturing/material/2015/02"
PRODUCTION = "http://schemas.microsoft.com/3dmanufacturing/production/2015/06"
SPACES = f'xmlns="{CORE}" xmlns:m="{MATERIAL}" xmlns:p="{PRODUCTION}"'
START = "http://schemas.microsoft.com/3dmanufacturing/2013/01/3dmodel"
BRICK = brick()


def png(size: int = 2) -> bytes:
    raw = b"".join(b"\0" + bytes([255, 0, 0] * size) for _ in range(size))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">L", len(data)) + kind + data + struct.pack(">L", zlib.crc32(kind + data))

    head = struct.pack(">LLBBBBB", size, size, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")


def rels(target: str = "/3D/3dmodel.model", kind: str = START) -> str:
    return (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        f'<Relationship Target="{target}" Id="r" Type="{kind}"/></Relationships>'
    )


def package(model: str | bytes | None, files: dict[str, str | bytes] | None = None) -> Source:
    entries: dict[str, str | bytes] = {"[Content_Types].xml": "<Types/>", "_rels/.rels": rels()}
    if model is not None:
        entries["3D/3dmodel.model"] = model
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in (entries | (files or {})).items():
            if data != "":
                file.writestr(name, data)
    return Source.from_bytes(buffer.getvalue(), "x.3mf")


def mesh_xml(mesh: Mesh = BRICK, triangle: str = "", scale: float = 1) -> str:
    vertices = "\n".join(f'<vertex x="{x}" y="{y}" z="{z}"/>' for x, y, z in (mesh.vertices * scale).tolist())
    triangles = "\n".join(f'<triangle v1="{a}" v2="{b}" v3="{c}"{triangle}/>' for a, b, c in mesh.faces.tolist())
    return f"<mesh><vertices>\n{vertices}\n</vertices><triangles>\n{triangles}\n</triangles></mesh>"


def model(resources: str, build: str = '<item objectid="1"/>', attributes: str = "", spaces: str = SPACES) -> str:
    return f"<model {spaces} {attributes}><resources>{resources}</resources><build>{build}</build></model>"


def thing(number: int = 1, body: str | None = None, more: str = "") -> str:
    return f'<object id="{number}" {more}>{mesh_xml() if body is None else body}</object>'
