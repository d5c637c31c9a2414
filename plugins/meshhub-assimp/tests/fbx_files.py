"""FBX text files of a brick, in the layout of exporters."""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence

from meshhub.testing import sample_scenes

CORNERS = [(x, y, z) for z in (0, 30) for x, y in ((0, 0), (10, 0), (10, 20), (0, 20))]
SIDES = ((3, 2, 1, 0), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7))
NORMALS = ((0, 0, -1), (0, 0, 1), (0, -1, 0), (1, 0, 0), (0, 1, 0), (-1, 0, 0))
UV = ((0, 0), (1, 0), (1, 1), (0, 1))

AXES_Z = {"UpAxis": 2, "UpAxisSign": 1, "FrontAxis": 1, "FrontAxisSign": -1, "CoordAxis": 0, "CoordAxisSign": 1}
AXES_Y = {"UpAxis": 1, "UpAxisSign": 1, "FrontAxis": 2, "FrontAxisSign": 1, "CoordAxis": 0, "CoordAxisSign": 1}
PLACE = 'P: "Lcl Translation", "Lcl Translation", "", "A",{},{},{}'
RED = 'P: "DiffuseColor", "Color", "", "A",1,0,0'


def array(name: str, values: Sequence[object]) -> str:
    return f"{name}: *{len(values)} {{ a: {','.join(map(str, values))} }}\n"


def layer(kind: str, mapping: str, reference: str, arrays: str) -> str:
    return (
        f'{kind}: 0 {{ Version: 101\nName: "one"\nMappingInformationType: "{mapping}"\n'
        f'ReferenceInformationType: "{reference}"\n{arrays} }}\n'
    )


def normals() -> str:
    values = [value for normal in NORMALS for _ in range(4) for value in normal]
    return layer("LayerElementNormal", "ByPolygonVertex", "Direct", array("Normals", values))


def uv() -> str:
    arrays = array("UV", [value for pair in UV for value in pair]) + array("UVIndex", [0, 1, 2, 3] * 6)
    return layer("LayerElementUV", "ByPolygonVertex", "IndexToDirect", arrays)


def colors() -> str:
    arrays = array("Colors", [1, 0, 0, 1, 0, 0, 1, 0.5]) + array("ColorIndex", [0] * 20 + [1] * 4)
    return layer("LayerElementColor", "ByPolygonVertex", "IndexToDirect", arrays)


def slots(values: Sequence[int]) -> str:
    return layer("LayerElementMaterial", "ByPolygon", "IndexToDirect", array("Materials", values))


def model(number: int, name: str, properties: str = "", kind: str = "Mesh") -> str:
    return f'Model: {number}, "Model::{name}", "{kind}" {{ Version: 232\nProperties70: {{\n{properties}\n}} }}\n'


def material(number: int, name: str, properties: str = RED) -> str:
    return (
        f'Material: {number}, "Material::{name}", "" {{ Version: 102\nShadingModel: "phong"\n'
        f"Properties70: {{\n{properties}\n}} }}\n"
    )


def texture(number: int, content: bytes | None) -> str:
    """Return a texture, and the video that holds its content."""
    path = 'FileName: "C:\\x\\paint.png"\nRelativeFilename: "paint.png"\n'
    data = "" if content is None else f'Content: , "{base64.b64encode(content).decode()}"\n'
    return (
        f'Texture: {number}, "Texture::map", "" {{ Type: "TextureVideoClip"\nMedia: "Video::map"\n{path} }}\n'
        f'Video: {number + 1}, "Video::map", "Clip" {{ Type: "Clip"\n{path}{data} }}\n'
    )


def fbx(
    *,
    unit_cm: float = 0.1,
    axes: dict[str, int] = AXES_Z,
    layers: str = "",
    models: str = model(20, "brick"),
    objects: str = "",
    links: Sequence[str] = ('"OO",20,0', '"OO",10,20'),
) -> bytes:
    """Return a text file of the brick; the arguments replace or add objects and connections."""
    settings = "\n".join(f'P: "{name}", "int", "Integer", "",{value}' for name, value in axes.items())
    vertices = array("Vertices", [value for corner in CORNERS for value in corner])
    indices = array("PolygonVertexIndex", [index for side in SIDES for index in (*side[:3], -side[3] - 1)])
    kinds = [line.partition(":")[0] for line in layers.splitlines() if line.startswith("LayerElement")]
    table = "".join(f'LayerElement: {{ Type: "{kind}"\nTypedIndex: 0 }}\n' for kind in kinds)
    connections = "".join(f"C: {link}\n" for link in links)
    return f"""; FBX 7.4.0 project file
FBXHeaderExtension:  {{
    FBXHeaderVersion: 1003
    FBXVersion: 7400
}}
GlobalSettings:  {{
    Version: 1000
    Properties70:  {{
{settings}
P: "UnitScaleFactor", "double", "Number", "",{unit_cm}
    }}
}}
Objects:  {{
Geometry: 10, "Geometry::shape", "Mesh" {{
{vertices}{indices}{layers}Layer: 0 {{ Version: 100
{table} }}
}}
{models}{objects}}}
Connections:  {{
{connections}}}
""".encode()


LINKED = ('"OO",20,0', '"OO",10,20', '"OO",30,20')
PAINTED = fbx(
    layers=normals() + uv() + slots([0] * 6),
    objects=material(30, "painted") + texture(40, sample_scenes.png()),
    links=(*LINKED, '"OP",40,30,"DiffuseColor"', '"OO",41,40'),
)
TWICE = fbx(
    layers=colors(),
    models=model(20, "one") + model(21, "two", PLACE.format(100, 0, 0)),
    links=('"OO",20,0', '"OO",21,0', '"OO",10,20', '"OO",10,21'),
)
GROUPED = fbx(
    models=model(20, "one") + model(21, "two") + model(22, "group", kind="Null"),
    links=('"OO",20,0', '"OO",22,0', '"OO",21,22', '"OO",10,20', '"OO",10,21'),
)


Record = tuple[str, Sequence[bytes], Sequence["Record"]]


def text_value(value: str) -> bytes:
    return b"S" + struct.pack("<I", len(value)) + value.encode()


def array_value(kind: str, values: Sequence[float]) -> bytes:
    data = struct.pack(f"<{len(values)}{kind}", *values)
    return kind.encode() + struct.pack("<III", len(values), 0, len(data)) + data


def _encode(records: Sequence[Record], start: int, head: struct.Struct, end: bytes) -> bytes:
    data = b""
    for name, values, children in records:
        begin = start + len(data)
        properties = b"".join(values)
        inner = begin + head.size + len(name) + len(properties)
        content = _encode(children, inner, head, end) + end if children else b""
        stop = inner + len(content)
        data += head.pack(stop, len(values), len(properties), len(name)) + name.encode() + properties + content
    return data


def binary_fbx(mapping: str, reference: str, colors: Sequence[float], *, wide: bool, ended: bool = True) -> bytes:
    """Return a binary file of the brick with a layer of colors.

    Args:
        mapping: Mapping of the colors.
        reference: Reference of the colors.
        colors: Components of the colors.
        wide: Whether the heads of records have 64 bits, as in version 7.5.
        ended: Whether lists of records have an end; files of assimp 5.2 lack it.
    """
    head = struct.Struct("<QQQB" if wide else "<IIIB")
    number = [b"L" + struct.pack("<q", value) for value in (0, 10, 20)]
    texts: list[Record] = [
        ("MappingInformationType", [text_value(mapping)], ()),
        ("ReferenceInformationType", [text_value(reference)], ()),
    ]
    layer: Record = (
        "LayerElementColor",
        [b"I" + struct.pack("<i", 0)],
        [*texts, ("Colors", [array_value("d", colors)], ())],
    )
    table: Record = (
        "Layer",
        [b"I" + struct.pack("<i", 0)],
        [
            (
                "LayerElement",
                (),
                [("Type", [text_value("LayerElementColor")], ()), ("TypedIndex", [b"I" + bytes(4)], ())],
            )
        ],
    )
    corners = [index for side in SIDES for index in (*side[:3], -side[3] - 1)]
    geometry: Record = (
        "Geometry",
        [number[1], text_value("shape\0\1Geometry"), text_value("Mesh")],
        [
            ("Vertices", [array_value("d", [value for corner in CORNERS for value in corner])], ()),
            ("PolygonVertexIndex", [array_value("i", corners)], ()),
            layer,
            table,
        ],
    )
    version: Record = ("FBXVersion", [b"I" + struct.pack("<i", 7500 if wide else 7400)], ())
    creator: Record = ("Creator", [text_value("Open Asset Import Library (Assimp) 5.2.0")], ())
    model: Record = (
        "Model",
        [number[2], text_value("brick\0\1Model"), text_value("Mesh")],
        [("Version", [b"I" + bytes(4)], ())],
    )
    links: list[Record] = [
        ("C", [text_value("OO"), number[1], number[2]], ()),
        ("C", [text_value("OO"), number[2], number[0]], ()),
    ]
    records: list[Record] = [
        ("FBXHeaderExtension", (), [version, creator]),
        ("Objects", (), [geometry, model]),
        ("Connections", (), links),
    ]
    start = b"Kaydara FBX Binary  \0\x1a\0" + struct.pack("<I", 7500 if wide else 7400)
    return start + _encode(records, len(start), head, bytes(head.size) if ended else b"") + bytes(head.size)
