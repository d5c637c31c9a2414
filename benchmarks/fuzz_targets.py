"""Targets of `fuzz.py`: for each reader a function of the bytes, and seeds that the writers generate."""

from __future__ import annotations

import base64
import contextlib
import functools
import io
import json
import os
import struct
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent.parent / "tests" / "support"))

from bombs import PNG, zip_entries, zip_to_pipe

CUT = b"\n--8<--\n"
"""Separator of the files in one input."""


@dataclass(frozen=True)
class Target:
    """Function to fuzz, seeds, and words for libFuzzer's dictionary."""

    run: Callable[[bytes], None]
    seeds: Callable[[], list[bytes]]
    dictionary: str = ""


# -- the readers, through the registry, and a writer for the scene --


def _convert(data: bytes, extension: str, companions: dict[str, bytes] | None = None) -> None:
    """Convert an input to a format that depends on its bytes."""
    # not at the top: the fuzzer must instrument meshhub before it is imported
    from builtin_formats import MESH_TARGETS
    from meshhub import Source
    from meshhub import Target as Output

    source = Source.from_bytes(data, "upload" + extension, companions)
    report = _registry().convert(source, Output(), target=MESH_TARGETS[zlib.crc32(data) % len(MESH_TARGETS)])
    check_messages([note.message for note in report.notes])


def check_messages(messages: list[str]) -> None:
    """Raise AssertionError unless all messages are short printable lines, and not hundreds."""
    invalid = [message for message in messages if not message.isprintable() or len(message) > 2000]
    if invalid or len(messages) > 200:
        raise AssertionError("a message is not one short printable line, or there are hundreds")


@functools.cache
def _registry() -> Any:
    from meshhub import Registry

    return Registry(entry_points=False)


def _make_scene() -> Any:
    """Return two meshes in three parts, with every feature of a scene."""
    import numpy as np

    from meshhub import Material, Part, Scene
    from meshhub.model.scene import Image, Mesh

    points = np.array([[0, 0, 0], [9, 0, 0], [0, 9, 0], [0, 0, 9]], np.float64)
    faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], np.int32)
    plain = Mesh(points, faces, colors=np.arange(16, dtype=np.uint8).reshape(4, 4) * 9)
    textured = Mesh(
        points * 2.5,
        faces,
        normals=np.full((4, 3), 3**-0.5, np.float32),
        uv=(points[:, :2] / 9).astype(np.float32),
        face_material=np.array([0, 1, 0, 1], np.int32),
    )
    mirrored = np.diag([-1.0, 1, 1, 1])
    mirrored[:3, 3] = 30, 0, 0
    materials = (Material("red", (1, 0, 0, 1), base_color_image=0), Material("green", (0, 1, 0, 0.5)))
    images = (Image(PNG, "image/png", "picture"),)
    parts = (Part(0, name="a b"), Part(1, mirrored, "é", ("one", "two")), Part(1))
    return Scene((plain, textured), parts, materials, images)


def _write(format_id: str, **options: Any) -> Any:
    """Return the scene in a format."""
    from meshhub import Target as Output
    from meshhub.model.capabilities import NoOptions
    from meshhub.pipeline.declarations import load
    from meshhub.toolkit.geometry import to_frame

    writers = (declaration.capability for declaration in _registry().declarations.writers)
    writer = next(writer for writer in writers if writer.format.id == format_id)
    output = Output()
    load(writer.run)(to_frame(_make_scene(), writer.frame), output, (writer.options or NoOptions)(**options))
    return output


def _stl_seeds() -> list[bytes]:
    whole, text = _write("stl").read(), _write("stl", stl_ascii=True).read()
    colored = b"COLOR=\x10\x20\x30\xff".ljust(80) + whole[80:]
    facet = b"facet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1,5 0 0\nvertex 0 1e1 0\nendloop\nendfacet\n"
    return [whole, colored, text, b"solid\r\n" + facet + b"endsolid", b"solid a " + facet.replace(b"\n", b" ") * 2]


def _obj(data: bytes) -> None:
    model, _, materials = data.partition(CUT)
    _convert(model, ".obj", {"model.mtl": materials, "a.png": PNG} if materials else None)


def _obj_seeds() -> list[bytes]:
    output = _write("obj")
    library = next((output.read(name) for name in output.names if name.endswith(".mtl")), b"")
    forms = b"\n".join(b"v %d %d %d" % point for point in ((0, 0, 0), (9, 0, 0), (9, 9, 0), (0, 9, 0)))
    forms += b"\nvt 0 0\nvt 1 0 0\nvn 0 0 1\nmtllib model.mtl\no a\ng b c\ns 1\nusemtl m\nf 1 2 3 4\nf -4/1 -3/2 -2/1\n"
    forms += b"f 1//1 2//1 \\\n3//1\nf 1/1/1 2/2/1 3/1/1 4/2/-1\nl 1 2\np 1\n# end\n"
    mtl = b"newmtl m\nKd 1 0 0\nd 0.5\nTr 1\nmap_Kd -o 1 1 -s 2 2 a.png\nPr 1\nillum 2\n"
    return [output.read() + CUT + library, forms + CUT + mtl, forms.replace(b"v 9 9 0", b"v 9 9 0 1 0 0")]


def _ply_seeds() -> list[bytes]:
    whole = _write("ply").read()
    head, _, body = whole.partition(b"end_header\n")
    uneven = (
        b"ply\nformat ascii 1.0\ncomment TextureFile a.png\nelement vertex 4\nproperty double x\nproperty float y\n"
        b"property float z\nproperty uchar red\nproperty uchar green\nproperty uchar blue\nelement face 2\n"
        b"property list uchar int vertex_indices\nproperty list uchar float texcoord\nproperty int texnumber\n"
        b"element tristrips 1\nproperty list int int vertex_indices\nend_header\n0 0 0 1 2 3\n9 0 0 1 2 3\n"
        b"9 9 0 1 2 3\n0 9 0 1 2 3\n3 0 1 2 6 0 0 1 0 1 1 0\n4 0 1 2 3 0 0\n5 0 1 2 -1 3\n"
    )
    return [
        whole,
        head.replace(b"little", b"big") + b"end_header\n" + body,
        _write("ply", ply_ascii=True).read(),
        uneven,
    ]


def _glb(data: bytes) -> None:
    """Convert a GLB file, or a JSON text and a binary chunk wrapped in a GLB container."""
    if not data.startswith(b"glTF"):
        text, _, binary = data.partition(CUT)
        text += b" " * (-len(text) % 4)
        body = struct.pack("<II", len(text), 0x4E4F534A) + text + struct.pack("<II", len(binary), 0x004E4942) + binary
        data = b"glTF" + struct.pack("<II", 2, 12 + len(body)) + body
    _convert(data, ".glb")


def _glb_seeds() -> list[bytes]:
    whole = _write("glb").read()
    (length,) = struct.unpack_from("<I", whole, 12)
    document = json.loads(whole[20 : 20 + length])
    document["nodes"][0] |= {
        "rotation": [0, 0, 0, 1],
        "extensions": {
            "EXT_mesh_gpu_instancing": {"attributes": {"TRANSLATION": 0}},
            "KHR_node_visibility": {"visible": True},
        },
    }
    document["accessors"][0]["sparse"] = {
        "count": 1,
        "indices": {"bufferView": 0, "componentType": 5121},
        "values": {"bufferView": 0},
    }
    document["skins"] = [{"joints": [0], "inverseBindMatrices": 0}]
    document["extensionsRequired"] = ["KHR_draco_mesh_compression", "EXT_texture_webp"]
    document["meshes"][0]["primitives"][0] |= {
        "mode": 5,
        "extensions": {"KHR_draco_mesh_compression": {"bufferView": 0, "attributes": {"POSITION": 0}}},
    }
    text, binary = whole[20 : 20 + length], whole[28 + length :]
    return [whole, text + CUT + binary, json.dumps(document).encode() + CUT + binary]


def _gltf_seeds() -> list[bytes]:
    whole = _write("gltf").read()
    points = base64.b64encode(struct.pack("<9f", 0, 0, 0, 1, 0, 0, 0, 1, 0)).decode()
    document = {
        "asset": {"version": "2.0"},
        "buffers": [{"uri": f"data:application/gltf-buffer;base64,{points}", "byteLength": 36}],
        "bufferViews": [{"buffer": 0, "byteLength": 36, "byteStride": 12}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3"}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "material": 0, "mode": 6}]}],
        "materials": [{"pbrMetallicRoughness": {"baseColorFactor": [1, 0, 0, 1]}, "alphaMode": "MASK"}],
        "nodes": [{"children": [1]}, {"mesh": 0, "matrix": [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 5, 5, 5, 1]}],
        "scenes": [{"nodes": [0]}],
        "scene": 0,
    }
    return [whole, json.dumps(document).encode()]


_MODEL = "3D/3dmodel.model"
_RELATIONS = (
    b'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r" '
    b'Target="/3D/3dmodel.model" Type="http://schemas.microsoft.com/3dmanufacturing/2013/01/3dmodel"/></Relationships>'
)


def _threemf(data: bytes) -> None:
    """Convert the parts of a package in a valid ZIP: model, relationships, a second model, settings of a slicer."""
    parts = data.split(CUT)[:4]
    names = (_MODEL, "_rels/.rels", "3D/other.model", "Metadata/model_settings.config")
    pairs = zip(names, [*parts, *[b""] * (2 - len(parts))], strict=False)
    entries = [(name, content or _RELATIONS) for name, content in pairs]
    _convert(zip_entries(("3D/a.png", PNG), *entries, method=zipfile.ZIP_STORED), ".3mf")


def _threemf_seeds() -> list[bytes]:
    with zipfile.ZipFile(io.BytesIO(_write("3mf").read())) as package:
        written = package.read(_MODEL)
    core, material = "http://schemas.microsoft.com/3dmanufacturing/core/2015/02", "material/2015/02"
    spaces = " ".join(
        f'xmlns:{prefix}="http://schemas.microsoft.com/3dmanufacturing/{name}"'
        for prefix, name in (("m", material), ("p", "production/2015/06"), ("s", "slice/2015/07"))
    )
    mesh = (
        '<mesh><vertices><vertex x="0" y="0" z="0"/><vertex x="9" y="0" z="0"/><vertex x="0" y="9" z="1e0"/></vertices>'
        '<triangles><triangle v1="0" v2="1" v3="2" pid="5" p1="0" p2="1" p3="0"/></triangles></mesh>'
    )
    model = (
        f'<?xml version="1.0" encoding="UTF-8"?><model unit="inch" xmlns="{core}" {spaces} requiredextensions="p">'
        '<metadata name="Title">a</metadata><resources><basematerials id="1"><base name="x" displaycolor="#FF0000"/>'
        '</basematerials><m:colorgroup id="2"><m:color color="#00FF0080"/></m:colorgroup>'
        '<m:texture2d id="3" path="/3D/a.png" contenttype="image/png" tilestyleu="mirror"/>'
        '<m:texture2dgroup id="4" texid="3"><m:tex2coord u="0" v="1"/><m:tex2coord u="1" v="1"/></m:texture2dgroup>'
        '<m:multiproperties id="5" pids="1 4" blendmethods="multiply"><m:multi pindices="0 1"/><m:multi pindices="0"/>'
        '</m:multiproperties><m:compositematerials id="6" matid="1" matindices="0"><m:composite values="1"/>'
        f'</m:compositematerials><object id="7" type="model" name="n" pid="2" pindex="0">{mesh}</object>'
        '<object id="8"><components><component objectid="7" transform="1 0 0 0 1 0 0 0 1 5 5 5"/>'
        '<component objectid="1" p:path="/3D/other.model"/></components></object></resources>'
        '<build><item objectid="8" partnumber="b"/><item objectid="7" printable="0"/></build></model>'
    ).encode()
    other = f'<model xmlns="{core}"><resources><object id="1">{mesh}</object></resources><build/></model>'.encode()
    settings = (
        b'<config><object id="7"><part id="1" subtype="modifier_part"/><volume firstid="0" lastid="0">'
        b'<metadata type="volume" key="volume_type" value="ParameterModifier"/></volume></object></config>'
    )
    return [written, CUT.join((model, _RELATIONS, other, settings))]


# -- archives --


def _archive(data: bytes) -> None:
    """Read the directory and every entry with both sets of limits, and unpack the archive as a batch."""
    from meshhub.errors import MeshhubError
    from meshhub.http.intake import archives
    from meshhub.model.plans import Limits
    from meshhub.toolkit.archive import DEFAULT_LIMITS, UPLOAD_LIMITS, Archive

    for limits in (DEFAULT_LIMITS, UPLOAD_LIMITS):
        with contextlib.suppress(MeshhubError), Archive(data, limits) as archive:
            for entry in archive.entries:
                with contextlib.suppress(MeshhubError):
                    assert len(archive.read(entry.name)) == entry.size
    with tempfile.TemporaryDirectory(dir=memory()) as folder:
        path = Path(folder, "upload.zip")
        path.write_bytes(data)
        limits = Limits(max_file_bytes=1 << 20, max_request_bytes=1 << 21, max_batch_files=100)
        with archives.open_archive(path) as archive:
            items = archives.unpack(
                archive, archives.select_entries(archive, limits), Path(folder), _registry(), limits
            )
        for item in items:
            assert item.rejection is not None or item.path.resolve().is_relative_to(Path(folder).resolve())


def _archive_seeds() -> list[bytes]:
    entries = (
        ("a/model.obj", b"mtllib m.mtl\nv 0 0 0\n"),
        ("a/m.mtl", b"newmtl a\nmap_Kd p.png\n"),
        ("é.txt", b"x" * 100),
        ("folder/", b""),
    )
    archives = [zip_entries(*entries, method=method) for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)]
    return [*archives, zip_to_pipe("a.stl", b"solid a"), b"PK\x05\x06" + bytes(18)]


def memory() -> str | None:
    """Return a folder in memory, or None if the system has none."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


# -- forms --


def _multipart(data: bytes) -> None:
    """Parse a form: a Content-Type, then a body in chunks whose size depends on its bytes."""
    from meshhub.http.errors import STATUS, ServiceError
    from meshhub.http.intake.uploads import FormParser
    from meshhub.model.plans import Limits

    kind, _, body = data.partition(b"\n")
    step = zlib.crc32(data) % 61 + 1
    main = ("file", "files", "archive")[zlib.crc32(body) % 3]
    limits = Limits(max_file_bytes=2000, max_request_bytes=1 << 20, max_batch_files=3)
    with tempfile.TemporaryDirectory(dir=memory()) as folder:
        try:
            parser = FormParser(kind.decode("latin-1"), main, limits, Path(folder))  # type: ignore[arg-type]
            with contextlib.closing(parser):
                for start in range(0, len(body), step):
                    parser.feed(body[start : start + step])
                form = parser.finish()
        except ServiceError as error:
            if STATUS[error.error_code] >= 500:
                raise AssertionError(f"{error.error_code} for input of the caller") from error
            raise
        for file in form.files:
            assert file.path.stat().st_size == file.size
            assert file.path.parent == Path(folder)
            assert file.name.isprintable()
            assert not set("/\\") & set(file.name)
            assert file.name not in (".", "..", "")
        assert all(isinstance(text, str) for text in form.texts.values())


def _multipart_seeds() -> list[bytes]:
    kind = b"multipart/form-data; boundary=b\n"
    head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="../a.stl"\r\nContent-Type: model/stl\r\n\r\n'
    many = head.replace(b'"file"', b'"files"').replace(b'../a.stl"', b"\"; filename*=UTF-8''%C3%A9.stl")
    text = (
        b'--b\r\nContent-Disposition: form-data; name="target"\r\nContent-Type: text/plain; charset=%s\r\n\r\n3mf\r\n'
    )
    nested = b"--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n\r\n--c--\r\n"
    whole = head + b"solid\r\n" + text % b"utf-8" + b"--b--\r\n"
    return [
        kind + whole,
        kind + head + b"--bb\r\n-\r\n" + text % b"latin-1" + text.replace(b"target", b"files") % b"x" + b"--b--",
        kind + many + b"x\r\n" + many + b"y\r\n" + nested + b"--b--\r\n",
        b'multipart/form-data; charset=utf-8; boundary="b"\n' + whole.replace(b"\r\n", b"\n"),
        kind + b"preamble\r\n" + whole[:-9],
    ]


def _reader(extension: str) -> Callable[[bytes], None]:
    return lambda data: _convert(data, extension)


_WORDS = {
    "stl": r"""solid endsolid facet normal outer loop vertex endloop endfacet COLOR= nan inf 1e308 1e400 -0 1,5 #""",
    "obj": r"""v vt vn f o g s usemtl mtllib newmtl Kd Ka Ks Ke Ns Ni d Tr Tf illum map_Kd map_d map_Bump -o -s -clamp
        -blendu on / // -1 0 1e308 nan \\ #MRGB l p vp call 2147483648 9223372036854775808""",
    "ply": r"""ply format ascii binary_little_endian binary_big_endian 1.0 comment TextureFile obj_info element vertex
        face tristrips property list char uchar short ushort int uint float double uint64 vertex_indices vertex_index
        texcoord texnumber end_header red green blue alpha nx ny nz s t x y z -1 0 1000000000000 nan""",
    "gltf": r"""asset version buffers bufferViews buffer byteLength byteOffset byteStride uri data:, accessors
        componentType 5121 5123 5125 5126 count type SCALAR VEC2 VEC3 VEC4 MAT4 sparse indices values normalized meshes
        primitives attributes POSITION NORMAL TEXCOORD_0 COLOR_0 mode material materials pbrMetallicRoughness
        baseColorFactor baseColorTexture texture textures source sampler images mimeType nodes children matrix
        translation rotation scale mesh skin skins joints inverseBindMatrices scenes scene extensions
        extensionsRequired KHR_draco_mesh_compression EXT_mesh_gpu_instancing TRANSLATION KHR_texture_transform
        KHR_materials_pbrSpecularGlossiness EXT_texture_webp EXT_meshopt_compression KHR_node_visibility alphaMode BLEND
        MASK weights targets animations null true 1e308 -1 9007199254740993 [] {} \"\" """,
    "3mf": r"""<model unit= xmlns= requiredextensions= <metadata name= <resources> <object id= type= pid= pindex= <mesh>
        <vertices> <vertex x= y= z= <triangles> <triangle v1= v2= v3= p1= p2= p3= <components> <component objectid=
        transform= p:path= <build> <item printable= <basematerials <base displaycolor= <m:colorgroup <m:color color=
        #FF00FF00 <m:texture2d path= <m:texture2dgroup texid= <m:tex2coord u= v= <m:multiproperties pids= blendmethods=
        <m:multi pindices= <m:compositematerials matid= matindices= <m:composite values= </ /> <!DOCTYPE <!ENTITY &#0;
        &lt; <![CDATA[ ]]> <!-- --> support micron meter /3D/other.model Target= TargetMode=""",
    "archive": r"""PK\x01\x02 PK\x03\x04 PK\x05\x06 PK\x06\x06 PK\x06\x07 ../ / C: __MACOSX/ .zip .obj .mtl .3mf
        \xff\xff \xff\xff\xff\xff \x00\x00 \x08\x00 \x01\x00""",
    "multipart": r"""multipart/form-data multipart/mixed boundary= ; -- --b --b-- \x0d\x0a \x0d\x0a\x0d\x0a
        Content-Disposition: form-data name= filename= filename*=UTF-8'' %00 %2e%2e%2f Content-Type: charset=utf-16
        charset=hex Content-Transfer-Encoding: base64 file files archive target Content-Length: \xff \x00""",
}
"""Dictionaries of libFuzzer, in its escaping."""

TARGETS: dict[str, Target] = {
    "stl": Target(_reader(".stl"), _stl_seeds, _WORDS["stl"]),
    "obj": Target(_obj, _obj_seeds, _WORDS["obj"]),
    "ply": Target(_reader(".ply"), _ply_seeds, _WORDS["ply"]),
    "gltf": Target(_reader(".gltf"), _gltf_seeds, _WORDS["gltf"]),
    "glb": Target(_glb, _glb_seeds, _WORDS["gltf"]),
    "3mf": Target(_threemf, _threemf_seeds, _WORDS["3mf"]),
    "archive": Target(_archive, _archive_seeds, _WORDS["archive"]),
    "multipart": Target(_multipart, _multipart_seeds, _WORDS["multipart"]),
}
