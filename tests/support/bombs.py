"""Small files that demand gigabytes or hours, and names that lead outside; each with the expected error codes."""

from __future__ import annotations

import base64
import functools
import io
import json
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

CORE = "http://schemas.microsoft.com/3dmanufacturing/core/2015/02"
TRIANGLE = (
    b"solid a\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 9 0 0\nvertex 0 9 0\nendloop\nendfacet\nendsolid"
)
PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Bomb:
    """File with its name and the possible error codes; without codes it is harmless and converts."""

    name: str
    make: Callable[[], bytes]
    codes: tuple[str, ...]


# -- archives --


def zip_entries(*entries: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a ZIP archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as file:
        for name, data in entries:
            file.writestr(name, data, compress_type=method)
    return buffer.getvalue()


def zip_to_pipe(name: str, data: bytes) -> bytes:
    """Return an archive written to a pipe: sizes follow the data, in 64 bits."""

    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def tell(self) -> int:
            raise OSError

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as file, file.open(name, "w", force_zip64=True) as entry:
        entry.write(data)
    return pipe.getvalue()


def special_entry(name: str, kind: int = 0) -> zipfile.ZipInfo:
    """Return an entry of a file type whose name is written unchanged."""
    info = zipfile.ZipInfo("placeholder")
    info.filename = name
    info.external_attr = (kind | 0o777) << 16 if kind else 0
    return info


def patch_numbers(data: bytes, layout: str, *places: tuple[bytes, int, int]) -> bytes:
    """Return the archive with numbers changed at offsets from signatures."""
    changed = bytearray(data)
    for signature, offset, value in places:
        struct.pack_into(layout, changed, data.index(signature) + offset, value)
    return bytes(changed)


@functools.cache
def nested() -> bytes:
    """Return five layers of sixteen archives: a million files of a megabyte."""
    inner = zip_entries(("0.stl", bytes(1 << 20)))
    for _ in range(5):
        inner = zip_entries(*((f"{number:x}.zip", inner) for number in range(16)))
    return inner


def end_records(count: int, size: int, start: int) -> bytes:
    """Return the end records of a ZIP64 directory."""
    large = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, size, start)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, start + size, 1)
    return large + locator + struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)


@functools.cache
def overlapping(files: int = 200, kernel: int = 4 << 20) -> bytes:
    """Return an archive whose files each quote the next header and share one kernel (D. Fifield, WOOT 2019)."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    stream = compressor.compress(bytes(kernel)) + compressor.flush()
    size, crc = kernel, zlib.crc32(bytes(kernel))
    body, central = stream, b""
    sizes: list[tuple[str, int, int, int, int]] = []
    for number in reversed(range(files)):
        name = f"{number:03}.stl".encode()
        head = struct.pack("<4s5H3L2H", b"PK\x03\x04", 20, 0, 8, 0, 0, crc, len(stream), size, len(name), 0) + name
        sizes.append((name.decode(), crc, len(stream), size, len(head)))
        body = head + body
        quoted = struct.pack("<BHH", 0, len(head), len(head) ^ 0xFFFF) + head
        stream = quoted + stream
        body = quoted[:5] + body
        crc = _joined_crc(zlib.crc32(head), crc, size)
        size += len(head)
    body = body[5:]
    at = 0
    for name_text, crc, short, long, head_size in reversed(sizes):
        central += struct.pack(
            "<4s6H3L5H2L", b"PK\x01\x02", 20, 20, 0, 8, 0, 0, crc, short, long, len(name_text), 0, 0, 0, 0, 0, at
        )
        central += name_text.encode()
        at += head_size + 5
    return body + central + struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, files, files, len(central), len(body), 0)


def _joined_crc(first: int, second: int, length: int) -> int:
    """Return the checksum of two concatenated parts from the checksum of each and the length of the second."""
    return zlib.crc32(bytes(length), first) ^ zlib.crc32(bytes(length)) ^ second


def million(count: int = 1_000_000) -> bytes:
    """Return a directory of a million entries."""
    record = struct.pack("<4s6H3L5H2L", b"PK\x01\x02", 20, 20, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"a"
    return record * count + end_records(count, len(record) * count, 0)


def hidden_million(count: int = 400_000) -> bytes:
    """Return a directory of many entries that declares five."""
    record = struct.pack("<4s6H3L5H2L", b"PK\x01\x02", 20, 20, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"a"
    return record * count + struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 5, 5, len(record) * count, 0, 0)


@functools.cache
def zeros(declared: int | None = None) -> bytes:
    """Return sixty kilobytes that inflate to sixty million bytes; `declared` is a false size."""
    data = zip_entries(("a.stl", bytes(60_000_000)))
    return data if declared is None else patch_numbers(data, "<L", (b"PK\x01\x02", 24, declared))


def large_field() -> bytes:
    """Return an archive with 64-bit sizes of exabytes."""
    extra = struct.pack("<2H3Q", 1, 24, 1 << 62, 1 << 62, 1 << 62)
    record = struct.pack(
        "<4s6H3L5H2L", b"PK\x01\x02", 45, 45, 0, 8, 0, 0, 0, 2**32 - 1, 2**32 - 1, 5, len(extra), 0, 0, 0, 0, 2**32 - 1
    )
    central = record + b"a.stl" + extra
    return central + end_records(1, len(central), 0)


UNSAFE = ("unsafe_archive",)
DAMAGED = ("unsafe_archive", "unreadable_file")
ARCHIVES: dict[str, Bomb] = {
    "nested": Bomb("a.zip", nested, UNSAFE),
    "overlapping": Bomb("a.zip", overlapping, UNSAFE),
    "a million entries": Bomb("a.zip", million, UNSAFE),
    "a million entries and a count that lies": Bomb("a.zip", hidden_million, DAMAGED),
    "sixty kilobytes of zeros": Bomb("a.zip", zeros, UNSAFE),
    "zeros that say they are few": Bomb("a.zip", lambda: zeros(10), DAMAGED),
    "zeros that say they are gigabytes": Bomb("a.zip", lambda: zeros(2**32 - 2), UNSAFE),
    "sizes of exabytes": Bomb("a.zip", large_field, DAMAGED),
    "an absolute path": Bomb("a.zip", lambda: zip_entries((special_entry("/etc/a.stl"), TRIANGLE)), UNSAFE),
    "a path that leads out": Bomb("a.zip", lambda: zip_entries((special_entry("x/../../a.stl"), TRIANGLE)), UNSAFE),
    "a drive": Bomb("a.zip", lambda: zip_entries((special_entry("C:a.stl"), TRIANGLE)), UNSAFE),
    "a NUL": Bomb("a.zip", lambda: zip_entries(("a_b.stl", TRIANGLE)).replace(b"a_b.stl", b"a\0b.stl"), UNSAFE),
    "two that differ by case": Bomb("a.zip", lambda: zip_entries(("a.stl", TRIANGLE), ("A.STL", TRIANGLE)), UNSAFE),
    "two that differ by composition": Bomb(
        "a.zip", lambda: zip_entries(*((unicodedata.normalize(f, "é.stl"), TRIANGLE) for f in ("NFC", "NFD"))), UNSAFE
    ),
    "a link": Bomb("a.zip", lambda: zip_entries((special_entry("a.stl", stat.S_IFLNK), b"/etc/passwd")), UNSAFE),
    "a device": Bomb("a.zip", lambda: zip_entries((special_entry("a.stl", stat.S_IFCHR), b"")), UNSAFE),
    "encrypted": Bomb(
        "a.zip", lambda: patch_numbers(zip_entries(("a.stl", TRIANGLE)), "<H", (b"PK\x01\x02", 8, 1)), UNSAFE
    ),
    "a backslash": Bomb("a.zip", lambda: zip_entries((special_entry("..\\..\\a.stl"), TRIANGLE)), UNSAFE),
}


# -- 3MF --


def threemf(resources: str, item: str = '<item objectid="1"/>', before: str = "", metadata: str = "") -> bytes:
    """Return a package with this XML, which may contain a document type."""
    kind = "http://schemas.microsoft.com/3dmanufacturing/2013/01/3dmodel"
    relations = f'<Relationship Id="r" Target="/3D/a.model" Type="{kind}"/>'
    model = f'{before}<model xmlns="{CORE}">{metadata}<resources>{resources}</resources><build>{item}</build></model>'
    return zip_entries(
        (
            "_rels/.rels",
            f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{relations}'
            "</Relationships>".encode(),
        ),
        ("3D/a.model", model.encode()),
    )


MESH = (
    '<object id="1"><mesh><vertices><vertex x="0" y="0" z="0"/><vertex x="9" y="0" z="0"/><vertex x="0" y="9" z="0"/>'
    '</vertices><triangles><triangle v1="0" v2="1" v3="2"/></triangles></mesh></object>'
)


def billion_laughs() -> bytes:
    """Return the billion laughs."""
    lines = ['<!ENTITY l0 "lol">', *(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))]
    return threemf(f'<object id="1" name="&l11;"/>{MESH}', before=f"<!DOCTYPE model [{''.join(lines)}]>")


def quadratic() -> bytes:
    """Return one long entity that is used many times."""
    before = f'<!DOCTYPE model [<!ENTITY a "{"a" * 50_000}">]>'
    return threemf(MESH.replace("<mesh>", f"<metadata>{'&a;' * 50_000}</metadata><mesh>"), before=before)


def exploding(layers: int = 40) -> bytes:
    """Return two to the fortieth parts."""
    groups = "".join(
        f'<object id="{n}"><components>{f"""<component objectid="{n - 1}"/>""" * 2}</components></object>'
        for n in range(2, layers)
    )
    return threemf(MESH + groups, f'<item objectid="{layers - 1}"/>')


def nothing_placed(layers: int = 10) -> bytes:
    """Return a few parts among a million placed empty objects."""
    empty = '<object id="2"><mesh><vertices/><triangles/></mesh></object>'
    groups = "".join(
        f'<object id="{n}"><components>{f"""<component objectid="{n - 1 if n > 3 else 1}"/>""" * 2}'
        f"""{'<component objectid="2"/>' * 900}</components></object>"""
        for n in range(3, 3 + layers)
    )
    return threemf(MESH + empty + groups, f'<item objectid="{2 + layers}"/>')


def mixed_again(objects: int = 400, mixtures: int = 4000) -> bytes:
    """Return thousands of mixtures that hundreds of objects refer to."""
    space = 'xmlns:m="http://schemas.microsoft.com/3dmanufacturing/material/2015/02"'
    group = (
        '<basematerials id="1"><base name="a" displaycolor="#FF0000"/></basematerials>'
        f'<m:compositematerials {space} id="2" matid="1" matindices="0">{"""<m:composite values="1"/>""" * mixtures}'
        "</m:compositematerials>"
    )
    text = "".join(MESH.replace('id="1"', f'id="{n}" pid="2" pindex="{n % mixtures}"') for n in range(10, 10 + objects))
    return threemf(group + text, "".join(f'<item objectid="{n}"/>' for n in range(10, 10 + objects)))


XML = ("unreadable_file",)
COMPLEX = ("model_too_complex",)
THREEMF: dict[str, Bomb] = {
    "billion laughs": Bomb("a.3mf", billion_laughs, XML),
    "one entity a million times": Bomb("a.3mf", quadratic, XML),
    "a document type": Bomb("a.3mf", lambda: threemf(MESH, before="<!DOCTYPE model>"), XML),
    "an external document type": Bomb(
        "a.3mf", lambda: threemf(MESH, before='<!DOCTYPE model SYSTEM "http://127.0.0.1:1/a.dtd">'), XML
    ),
    "an external entity": Bomb(
        "a.3mf",
        lambda: threemf(
            f"<metadata>&a;</metadata>{MESH}", before='<!DOCTYPE m [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
        ),
        XML,
    ),
    "a parameter entity": Bomb(
        "a.3mf", lambda: threemf(MESH, before='<!DOCTYPE m [<!ENTITY % a SYSTEM "file:///etc/passwd"> %a;]>'), XML
    ),
    "a document type in the relationships": Bomb(
        "a.3mf",
        lambda: zip_entries(("_rels/.rels", b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'), ("3D/a.model", b"<model/>")),
        XML,
    ),
    "elements a million deep": Bomb("a.3mf", lambda: threemf("<a>" * 1_000_000), XML),
    "a number of a hundred thousand digits": Bomb(
        "a.3mf", lambda: threemf(MESH.replace('x="9"', f'x="{"1" * 100_000}x"')), XML
    ),
    "components that explode": Bomb("a.3mf", exploding, COMPLEX),
    "components of nothing by the million": Bomb("a.3mf", nothing_placed, ()),
    "mixtures shown again and again": Bomb("a.3mf", mixed_again, ()),
    "components in a circle": Bomb(
        "a.3mf",
        lambda: threemf('<object id="1"><components><component objectid="1"/></components></object>'),
        XML,
    ),
    "one object placed a hundred thousand times": Bomb(
        "a.3mf", lambda: threemf(MESH, '<item objectid="1"/>' * 100_001), COMPLEX
    ),
    "metadata in a hundred thousand pieces": Bomb(
        "a.3mf", lambda: threemf(MESH, metadata=f'<metadata name="a">{"a<b/>" * 100_000}</metadata>'), ()
    ),
    "megabytes of zeros as the model": Bomb(
        "a.3mf", lambda: zip_entries(("_rels/.rels", b""), ("3D/a.model", bytes(60_000_000))), UNSAFE
    ),
    "a path that leads out": Bomb("a.3mf", lambda: zip_entries((special_entry("..\\..\\a.model"), b"x")), UNSAFE),
}


# -- glTF --


def gltf(points: bytes | None = struct.pack("<9f", 0, 0, 0, 1, 0, 0, 0, 1, 0), **changes: Any) -> bytes:
    """Return a triangle as glTF, with members of the document changed."""
    document: dict[str, Any] = {
        "asset": {"version": "2.0"},
        "buffers": [{"byteLength": 36}],
        "bufferViews": [{"buffer": 0, "byteLength": 36}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3"}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
        "nodes": [{"mesh": 0}],
        "scenes": [{"nodes": [0]}],
    }
    if points is not None:
        document["buffers"][0]["uri"] = "data:application/gltf-buffer;base64," + base64.b64encode(points).decode()
    return json.dumps(document | changes).encode()


def accessor(**members: Any) -> bytes:
    """Return a triangle whose position accessor has other members."""
    return gltf(accessors=[{"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3", **members}])


def png_header(width: int, height: int) -> bytes:
    """Return the start of a PNG that declares this size, without data."""
    head = b"IHDR" + struct.pack(">2I5B", width, height, 16, 6, 0, 0, 0)
    return PNG + struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head))


def gltf_with_image(content: bytes, uri: str = "") -> bytes:
    """Return a triangle with an image."""
    uri = uri or "data:image/png;base64," + base64.b64encode(content).decode()
    return gltf(
        images=[{"uri": uri}],
        textures=[{"source": 0}],
        materials=[{"pbrMetallicRoughness": {"baseColorTexture": {"index": 0}}}],
        meshes=[{"primitives": [{"attributes": {"POSITION": 0, "TEXCOORD_0": 1}, "material": 0}]}],
        accessors=[
            {"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3"},
            {"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC2"},
        ],
    )


def gltf_with_images(uris: list[str]) -> bytes:
    """Return a triangle for each of these images."""
    numbers = range(len(uris))
    corners = {"POSITION": 0, "TEXCOORD_0": 1}
    return gltf(
        images=[{"uri": uri} for uri in uris],
        textures=[{"source": n} for n in numbers],
        materials=[{"pbrMetallicRoughness": {"baseColorTexture": {"index": n}}} for n in numbers],
        meshes=[{"primitives": [{"attributes": corners, "material": n} for n in numbers]}],
        accessors=[{"bufferView": 0, "componentType": 5126, "count": 3, "type": kind} for kind in ("VEC3", "VEC2")],
    )


def nodes_twice(layers: int = 60) -> bytes:
    """Return nodes that each refer to the next one twice, many layers deep."""
    nodes = [{"children": [number + 1, number + 1]} for number in range(layers)]
    return gltf(nodes=[*nodes, {"mesh": 0}])


def draco(*, faces: int = 2**32 - 1) -> bytes:
    """Return compressed data whose header declares billions of faces (Draco bitstream 2.2, sequential)."""
    varint = b"\xff\xff\xff\xff\x0f" if faces == 2**32 - 1 else bytes([faces])
    data = b"DRACO\x02\x02\x01\x00\x00\x00" + varint + varint + bytes(12)
    extension = {"KHR_draco_mesh_compression": {"bufferView": 0, "attributes": {"POSITION": 0}}}
    return gltf(
        data,
        buffers=[{"byteLength": len(data), "uri": "data:;base64," + base64.b64encode(data).decode()}],
        bufferViews=[{"buffer": 0, "byteLength": len(data)}],
        accessors=[{"componentType": 5126, "count": faces, "type": "VEC3"}],
        meshes=[{"primitives": [{"attributes": {"POSITION": 0}, "extensions": extension}]}],
        extensionsRequired=list(extension),
    )


def glb_of(length: int) -> bytes:
    """Return a GLB whose JSON chunk declares this length."""
    return b"glTF" + struct.pack("<IIII", 2, 2**32 - 1, length, 0x4E4F534A) + b"{}  "


def gltf_with_buffer_at(uri: str) -> bytes:
    """Return a triangle whose buffer is at this URI."""
    return gltf(None, buffers=[{"byteLength": 36, "uri": uri}])


ELSEWHERE = ("external_reference",)
SPARSE = {"indices": {"bufferView": 0, "componentType": 5125}, "values": {"bufferView": 0}}
REFUSED = ("unreadable_file", "model_too_complex")
GLTF: dict[str, Bomb] = {
    "a file of this machine": Bomb("a.gltf", lambda: gltf_with_buffer_at("file:///etc/passwd"), ELSEWHERE),
    "an absolute path": Bomb("a.gltf", lambda: gltf_with_buffer_at("/etc/passwd"), ELSEWHERE),
    "a path that leads out": Bomb("a.gltf", lambda: gltf_with_buffer_at("../../../../../../etc/passwd"), ELSEWHERE),
    "the network": Bomb("a.gltf", lambda: gltf_with_buffer_at("http://127.0.0.1:1/a.bin"), ELSEWHERE),
    "a hundred thousand files": Bomb(
        "a.gltf",
        lambda: gltf(None, buffers=[{"byteLength": 1, "uri": f"file:///{n}"} for n in range(100_000)]),
        ELSEWHERE,
    ),
    "a buffer of petabytes": Bomb(
        "a.gltf",
        lambda: gltf(
            None,
            buffers=[{"byteLength": 2**53, "uri": "data:;base64,AAAA"}],
            bufferViews=[{"buffer": 0, "byteLength": 2**53}],
        ),
        XML,
    ),
    "an accessor of petabytes": Bomb("a.gltf", lambda: accessor(count=2**50), XML),
    "an accessor of nothing": Bomb(
        "a.gltf", lambda: gltf(accessors=[{"componentType": 5126, "count": 2**31, "type": "VEC3"}]), XML
    ),
    "a sparse accessor of petabytes": Bomb(
        "a.gltf",
        lambda: gltf(
            accessors=[{"componentType": 5126, "count": 2**50, "type": "VEC3", "sparse": {"count": 1, **SPARSE}}]
        ),
        XML,
    ),
    "sparse replacements of petabytes": Bomb("a.gltf", lambda: accessor(sparse={"count": 2**50, **SPARSE}), XML),
    "an offset beyond everything": Bomb("a.gltf", lambda: accessor(byteOffset=2**53), XML),
    "a mesh placed without end": Bomb("a.gltf", nodes_twice, REFUSED),
    "nodes below themselves": Bomb("a.gltf", lambda: gltf(nodes=[{"mesh": 0, "children": [0]}]), XML),
    "nodes twenty thousand deep": Bomb(
        "a.gltf", lambda: gltf(nodes=[*({"children": [n + 1]} for n in range(20_000)), {"mesh": 0}]), ()
    ),
    "JSON a million deep": Bomb("a.gltf", lambda: b'{"asset":' + b"[" * 1_000_000, XML),
    "instances without end": Bomb(
        "a.gltf",
        lambda: gltf(
            nodes=[{"mesh": 0, "extensions": {"EXT_mesh_gpu_instancing": {"attributes": {"TRANSLATION": 1}}}}],
            accessors=[
                {"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3"},
                {"componentType": 5126, "count": 2**40, "type": "VEC3"},
            ],
        ),
        REFUSED,
    ),
    "Draco that claims billions": Bomb("a.gltf", draco, XML),
    "meshopt that claims billions": Bomb(
        "a.gltf",
        lambda: gltf(
            bufferViews=[
                {
                    "buffer": 0,
                    "byteLength": 2**40,
                    "extensions": {
                        "EXT_meshopt_compression": {
                            "buffer": 0,
                            "byteLength": 36,
                            "byteStride": 12,
                            "count": 2**36,
                            "mode": "ATTRIBUTES",
                        }
                    },
                }
            ],
        ),
        # without the decoder, the reader uses the uncompressed fallback
        XML if find_spec("meshoptimizer") else (),
    ),
    "a GLB of gigabytes": Bomb("a.glb", lambda: glb_of(2**32 - 1), XML),
    "a picture of terabytes": Bomb("a.gltf", lambda: gltf_with_image(png_header(2**31 - 1, 2**31 - 1)), ()),
    "a picture on the network": Bomb("a.gltf", lambda: gltf_with_image(b"", "http://127.0.0.1:1/a.png"), ()),
    "a picture of this machine": Bomb("a.gltf", lambda: gltf_with_image(b"", "file:///etc/passwd"), ()),
}


# -- STL, PLY, OBJ --


def ply(*header: str, body: bytes = b"") -> bytes:
    """Return a PLY file with these header lines."""
    return "\n".join(["ply", "format binary_little_endian 1.0", *header, "end_header", ""]).encode() + body


AXES = ("property float x", "property float y", "property float z")
FACE = "property list uchar int vertex_indices"
POINTS = b"v 0 0 0\nv 9 0 0\nv 0 9 0\n"
CUT_OFF = ("unreadable_file", "empty_model")
OTHERS: dict[str, Bomb] = {
    "four billion triangles in nothing": Bomb("a.stl", lambda: bytes(80) + struct.pack("<I", 2**32 - 1), CUT_OFF),
    "four billion triangles in two": Bomb("a.stl", lambda: bytes(80) + struct.pack("<I", 2**32 - 1) + bytes(100), XML),
    "a megabyte of solids": Bomb("a.stl", lambda: b"solid a\nendsolid a\n" * 60_000 + TRIANGLE, ()),
    "a hundred thousand solids": Bomb("a.stl", lambda: b"solid a\nendsolid a\n" * 110_000 + TRIANGLE, COMPLEX),
    "STL text of one long line": Bomb("a.stl", lambda: b"solid " + b"facet " * 500_000, ("empty_model",)),
    "a trillion points": Bomb("a.ply", lambda: ply("element vertex 1000000000000", *AXES, body=bytes(120)), XML),
    "a trillion points of nothing": Bomb("a.ply", lambda: ply("element vertex 1000000000000"), CUT_OFF),
    "a trillion faces": Bomb(
        "a.ply", lambda: ply("element vertex 3", *AXES, "element face 1000000000000", FACE, body=bytes(36)), XML
    ),
    "a list of four billion": Bomb(
        "a.ply",
        lambda: ply(
            "element vertex 3", *AXES, "element face 1", FACE.replace("uchar", "uint"), body=bytes(36) + b"\xff" * 8
        ),
        XML,
    ),
    "forty thousand elements": Bomb(
        "a.ply", lambda: ply(*(f"element a{n} 1000000000000" for n in range(40_000)), "element vertex 1", *AXES), XML
    ),
    "a property thirty thousand times": Bomb(
        "a.ply", lambda: ply("element vertex 1", *AXES, *["property list uchar uchar a"] * 30_000, body=bytes(100)), XML
    ),
    "hundreds of lists in every row": Bomb(
        "a.ply",
        lambda: ply(
            "element a 3",
            *(f"property list uchar uchar p{n}" for n in range(500)),
            "element vertex 3",
            *AXES,
            body=b"\1\0" * 500 + b"\2\0\0" * 500 + bytes(1_000_000),
        ),
        XML,
    ),
    "thousands of properties before a list": Bomb(
        "a.ply",
        lambda: ply(
            "element a 3",
            *(f"property uchar p{n}" for n in range(10_000)),
            "property list uchar uchar l",
            "element vertex 3",
            *AXES,
            body=bytes(10_000) + b"\1\0" + bytes(10_000) + b"\2" + bytes(1_000_000),
        ),
        CUT_OFF,
    ),
    "thousands of uneven elements": Bomb(
        "a.ply",
        lambda: ply(
            *(f"element a{n} 3\nproperty list uchar uchar l" for n in range(4_000)),
            "element vertex 3",
            *AXES,
            body=b"\1\0\2\0\0\0" * 4_000 + bytes(1_000_000),
        ),
        CUT_OFF,
    ),
    "an index of trillions": Bomb("a.obj", lambda: POINTS + b"f 1 2 1000000000000\n", XML),
    "an index from the other end": Bomb("a.obj", lambda: POINTS + b"f 1 2 -9223372036854775808\n", XML),
    "an index of a thousand digits": Bomb("a.obj", lambda: POINTS + b"f 1 2 " + b"9" * 1000 + b"\n", XML),
    "a face of a million corners": Bomb("a.obj", lambda: POINTS + b"f" + b" 1 2 3" * 300_000 + b"\n", COMPLEX),
    "a line that goes on and on": Bomb("a.obj", lambda: POINTS + b"f 1 \\\n" + b"\\\n" * 1_000_000 + b"2 3\n", ()),
    "a hundred thousand libraries": Bomb(
        "a.obj", lambda: b"".join(b"mtllib /etc/%d\n" % n for n in range(100_000)) + POINTS + b"f 1 2 3\n", ()
    ),
    "a library elsewhere": Bomb("a.obj", lambda: b"mtllib /etc/passwd\nusemtl a\n" + POINTS + b"f 1 2 3\n", ()),
}

MODELS: dict[str, Bomb] = {
    # an archive that is not a 3MF package is also rejected
    **{f"3MF: {what}": Bomb("a.3mf", bomb.make, DAMAGED) for what, bomb in ARCHIVES.items()},
    **{f"3MF: {what}": bomb for what, bomb in THREEMF.items()},
    **{f"glTF: {what}": bomb for what, bomb in GLTF.items()},
    **OTHERS,
}


# -- STEP, whose kernel is native code and is stopped at its deadline --


def step(*entities: str) -> bytes:
    """Return a Part 21 file."""
    head = "ISO-10303-21;\nHEADER;\nFILE_DESCRIPTION((''),'2;1');\nFILE_NAME('','',(''),(''),'','','');\n"
    head += "FILE_SCHEMA(('AUTOMOTIVE_DESIGN'));\nENDSEC;\nDATA;\n"
    return (head + "\n".join(entities) + "\nENDSEC;\nEND-ISO-10303-21;\n").encode()


def _doubling() -> Iterator[str]:
    for number in range(1, 60):
        yield f"#{number}=SHELL_BASED_SURFACE_MODEL('',(#{number + 1},#{number + 1}));"
    yield "#60=OPEN_SHELL('',(#1));"


STEP: dict[str, bytes] = {
    "references in a circle": step("#1=OPEN_SHELL('',(#2));", "#2=ADVANCED_FACE('',(#1),#2,.T.);"),
    "references that double": step(*_doubling()),
    "parentheses without end": step("#1=OPEN_SHELL('',", "(" * 200_000 + ")" * 200_000 + ");"),
    "a hundred thousand points": step(*(f"#{n}=CARTESIAN_POINT('',(0.,0.,0.));" for n in range(1, 100_000))),
    "one entity a hundred thousand times": step(*["#1=CARTESIAN_POINT('',(0.,0.,0.));"] * 100_000),
    "a string without end": step("#1=PRODUCT('" + "a" * 3_000_000),
}


WARM = (
    ("a.stl", TRIANGLE),
    ("a.obj", POINTS + b"f 1 2 3\n"),
    ("a.gltf", gltf()),
    ("a.gltf", draco()),
    ("a.3mf", threemf(MESH)),
    ("a.ply", OTHERS["a list of four billion"].make()),
)
"""Files that make every reader load its libraries, which the measurement must not include."""

HEADS = (
    b"PK\3\4" + bytes(22) + b"\xff\xff", b"facet " + b" " * 500, b"v 1 1 ", b"\nv 1 1", b"v " + b"1" * 200, b"\t",
    b"\n", b"# ", b"ply\ncomment ", b'{"asset"   ', b'{"uri" : "data:', b"solid ", b"\nendsoli", b"glTF",
    b"ISO-10303-21;",
)  # fmt: skip
"""Starts of files, to be repeated as input of sniffers."""


def pictures_named_again(count: int = 200) -> dict[str, tuple[bytes, bytes]]:
    """Return models that refer to the image a.png many times, by name, with their material files."""
    numbers = range(count)
    faces = b"".join(b"usemtl m%d\nf 1/1 2/1 3/1\n" % n for n in numbers)
    return {
        "a.obj": (
            b"mtllib m.mtl\n" + POINTS + b"vt 0 0\n" + faces,
            b"".join(b"newmtl m%d\nmap_Kd %sa.png\n" % (n, b"./" * n) for n in numbers),
        ),
        "a.ply": (
            ply(
                *["comment TextureFile a.png"] * count, "element vertex 3", *AXES, "property float s",
                "property float t", "element face 1", FACE, body=struct.pack("<15fB3i", *range(15), 3, 0, 1, 2),
            ),
            b"",
        ),
        "a.gltf": (gltf_with_images(["./" * n + "a.png" for n in numbers]), b""),
    }  # fmt: skip
