"""Files made to harm, wrong requests, and the code that each must be refused with."""

from __future__ import annotations

import io
import itertools
import json
import struct
import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.soak.server import TESTS
from benchmarks.soak.wire import Form

sys.path.append(str(TESTS))

import hostile_plugin

_TRIANGLE = (
    b"solid\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 9 0 0\nvertex 0 9 0\nendloop\nendfacet\nendsolid\n"
)


@dataclass(frozen=True)
class Refused:
    """A request, and what it must be answered; `status` 0 means any of 422."""

    word: str
    path: str
    form: Form
    status: int
    code: str
    headers: dict[str, str] = field(default_factory=dict)
    chunked: bool = False


def convert(word: str, name: str, data: bytes, code: str, status: int = 422, **texts: str) -> Refused:
    """A /convert that must be refused."""
    return Refused(word, "/convert", Form((("file", name, data),), {"target": "stl", **texts}), status, code)


def batch(word: str, archive: bytes, code: str = "unsafe_archive", status: int = 422) -> Refused:
    """A /convert-batch that must be refused."""
    return Refused(word, "/convert-batch", Form((("archive", "a.zip", archive),), {"target": "glb"}), status, code)


def files() -> list[Refused]:
    """Hostile files."""
    bomb = packed(("bomb.stl", bytes(30 << 20)))
    return [
        *(batch(f"name {name!r}", packed((name, _TRIANGLE))) for name in ("../x.stl", "/etc/x.stl", "c:/x", "a\\b")),
        batch("a bomb", bomb),
        batch("a bomb in an archive", packed(("inner.zip", bomb)), "unsafe_archive"),
        batch("a link", packed((_link(), b"/etc/passwd"))),
        batch("one name twice", packed(("a.stl", _TRIANGLE), ("A.STL", _TRIANGLE))),
        batch("entries that overlap", _overlapping()),
        batch("an archive that is none", b"PK\x03\x04" + bytes(200), "unreadable_file"),
        batch("very many entries", _crowd(70_000)),
        batch("no entry", packed(), "empty_model"),
        convert("a bomb in 3MF", "a.3mf", _threemf("", bomb=True), "unsafe_archive"),
        convert("entities", "a.3mf", _threemf(_laughs()), "unreadable_file"),
        convert("an outer entity", "a.3mf", _threemf(_OUTSIDE), "unreadable_file"),
        convert("elements without end", "a.3mf", _threemf("<a>" * 100_000), "unreadable_file"),
        convert("4 billion triangles", "a.stl", bytes(80) + b"\xff\xff\xff\xff" + bytes(50), "unreadable_file"),
        convert("4 billion vertices", "a.ply", _PLY, "unreadable_file"),
        *(convert(f"glTF {uri}", "a.gltf", _gltf(uri), "external_reference")
          for uri in ("file:///etc/passwd", "http://127.0.0.1:1/x.bin", "../../etc/passwd")),
        convert("glTF counts", "a.gltf", _gltf("data:;base64,AAAA", count=1 << 40), "unreadable_file"),
        convert("glTF deep", "a.gltf", b'{"asset":{"version":"2.0"},"extras":' + b"[" * 200_000, "unreadable_file"),
        convert("nothing", "a.stl", b"", "empty_model"),
        convert("nobody's", "a.xyz", b"what is this", "unsupported_format", 415),
        convert("wrong content", "a.glb", b"what is this", "unreadable_file"),
        convert("numbers in OBJ", "a.obj", b"v 0 0 0\nv 1e400 0 0\nv 0 1 0\nf 1 2 3\n", "unreadable_file"),
        convert("indices in OBJ", "a.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 999999999999\n", "unreadable_file"),
    ]  # fmt: skip


def wrong(pro: str, revoked: str) -> list[Refused]:
    """Requests that are wrong in themselves; those without a key are a Free customer's."""
    one = ("file", "a.stl", _TRIANGLE)

    def asking(
        word: str, status: int, code: str, path: str = "/convert", files: object = (one,), **texts: str
    ) -> Refused:
        return Refused(word, path, Form(tuple(files), texts), status, code)  # type: ignore[arg-type]

    def keyed(word: str, key: str) -> Refused:
        return Refused(word, "/convert", Form((one,), {"target": "ply"}), 401, "invalid_api_key", {"X-Api-Key": key})

    large = Form((("file", "a.stl", bytes(21 << 20)),), {"target": "ply"})
    large_archive = Form((("archive", "a.zip", bytes(21 << 20)),), {"target": "ply"})
    return [
        asking("an unknown option", 400, "invalid_option", target="ply", colour="red"),
        asking("a wrong number", 400, "invalid_option", target="ply", target_height_mm="tall"),
        asking("a negative number", 400, "invalid_option", target="ply", flatten_base_mm="-1"),
        asking("a wrong flag", 400, "invalid_option", target="ply", repair="perhaps"),
        asking("an unknown target", 400, "unsupported_target", target="docx"),
        asking("no target", 400, "missing_field"),
        asking("no file", 400, "missing_field", files=(), target="ply"),
        asking("files for file", 400, "missing_field", files=(("files", "a.stl", _TRIANGLE),), target="ply"),
        asking("two files", 400, "bad_request", files=(one, one), target="ply"),
        asking("STEP for free", 403, "premium_format_required", target="step"),
        asking("four files for free", 413, "too_many_files", "/convert-many", [("files", *one[1:])] * 4, target="ply"),
        asking("no such path", 404, "not_found", "/convert/x", target="ply"),
        asking("no such method", 405, "method_not_allowed", "/plan", target="ply"),
        keyed("an unknown key", pro[:-4] + "AAAA"),
        keyed("no key at all", "x" * 40),
        keyed("a revoked key", revoked),
        Refused("21 MB announced", "/convert", large, 413, "file_too_large"),
        Refused("21 MB in chunks", "/convert", large, 413, "file_too_large", chunked=True),
        Refused("an archive of 21 MB", "/convert-batch", large_archive, 413, "archive_too_large"),
        asking("too many fields", 400, "invalid_multipart", target="ply", **{f"field{n}": "x" for n in range(120)}),
    ]  # fmt: skip


DAMAGED = {
    "unreadable_file", "empty_model", "external_reference", "model_too_complex", "conversion_failed", "worker_crashed",
    "conversion_timeout",
}  # fmt: skip
"""What may become of a damaged STEP file."""

# what fills the disk or the log by gigabytes, or kills the parent of all workers and with it what others run
_TOO_MUCH = {
    "eat-objects", "write-a-large-file", "write-large-files", "print-without-end", "log-without-end", "kill-its-parent",
}  # fmt: skip

MISDEEDS = {name: code for name, (code, _) in hostile_plugin.MISDEEDS.items() if name not in _TOO_MUCH}
"""What the hostile plug-in does, and what becomes of it: "ok", or an error's code, unless time ran out before."""


def misdeed(name: str, folder: Path) -> Form:
    """A request for a misdeed; what it starts is told in a file of its name in the folder."""
    folder.mkdir(parents=True)
    content = f"hostile {folder / name}".encode()
    return Form((("file", f"{name}.hostile", content),), {"target": "stl"})


def survivors(folder: Path) -> list[str]:
    """Processes that misdeeds have started and that still run."""
    told = [path for path in folder.glob("*/*") if path.is_file() and path.name != "witness"]
    started = {(path.name, int(line)) for path in told for line in path.read_text().split()}
    return [f"{name}: process {number}" for name, number in sorted(started) if hostile_plugin.living(number)]


def _damaged_forms() -> list[tuple[str, bytes]]:
    kind, body = Form((("file", "a.stl", _TRIANGLE),), {"target": "ply"}).encoded()
    return [
        (kind, body[: len(body) // 2]),
        (kind, body[:-8]),
        (kind, b""),
        ("application/json", b"{}"),
        ("multipart/form-data", body),
        (kind, body.replace(b"form-data", b"no-form", 1)),
    ]


DAMAGED_FORMS = _damaged_forms()
"""Bodies that break off, or are no forms: the Content-Type, the body; each is `invalid_multipart`."""

NOT_HTTP = (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(50) + b"\r\n\r\n",
    b"GET / GET / GET\r\n\r\n",
    b"POST /convert HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
    b"POST /convert HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\n",
    b"GET /plan HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n",
)
"""What is no HTTP; each is answered 400."""


def packed(*entries: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    """A ZIP."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries:
            info = name if isinstance(name, zipfile.ZipInfo) else zipfile.ZipInfo("placeholder")
            if isinstance(name, str):
                info.filename = name
            archive.writestr(info, data, zipfile.ZIP_DEFLATED)
    return held.getvalue()


def _link() -> zipfile.ZipInfo:
    info = zipfile.ZipInfo("a.stl")
    info.create_system = 3
    info.external_attr = 0o120777 << 16
    return info


def _overlapping() -> bytes:
    """Two entries of the table that share the bytes of one."""
    data = packed(("a.stl", _TRIANGLE * 50), ("b.stl", _TRIANGLE * 50))
    second = data.index(b"PK\x01\x02", data.index(b"PK\x01\x02") + 1)
    return data[: second + 42] + struct.pack("<I", 0) + data[second + 46 :]


def _crowd(count: int) -> bytes:
    """An archive with very many empty entries."""
    name = b"%07d.stl"
    local = b"".join(
        struct.pack("<4s5H3I2H", b"PK\x03\x04", 10, 0, 0, 0, 33, 0, 0, 0, 11, 0) + name % n for n in range(count)
    )
    table = b"".join(
        struct.pack("<4s6H3I5H2I", b"PK\x01\x02", 10, 10, 0, 0, 0, 33, 0, 0, 0, 11, 0, 0, 0, 0, 0, n * 41) + name % n
        for n in range(count)
    )  # fmt: skip
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, len(table), len(local), 0)
    more = struct.pack("<4sQ2H2I4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, len(table), len(local))
    where = struct.pack("<4sIQI", b"PK\x06\x07", 0, len(local) + len(table), 1)
    return local + table + more + where + end


def _laughs() -> str:
    names = "abcdefghij"
    lines = ['<!ENTITY a "ha">', *(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in itertools.pairwise(names))]
    return f"<!DOCTYPE m [{''.join(lines)}]>"


_OUTSIDE = '<!DOCTYPE m [<!ENTITY a SYSTEM "file:///etc/passwd">]>'


def _threemf(start: str, *, bomb: bool = False) -> bytes:
    rels = (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="a" '
        'Target="/a.model" Type="http://schemas.microsoft.com/3dmanufacturing/2013/01/3dmodel"/></Relationships>'
    )
    model = (
        f'{start}<model xmlns="http://schemas.microsoft.com/3dmanufacturing/core/2015/02"><resources>'
        f"{' ' * (40 << 20) if bomb else ''}</resources><build/></model>"
    )
    return packed(("_rels/.rels", rels.encode()), ("a.model", model.encode()))


_PLY = (
    b"ply\nformat binary_little_endian 1.0\nelement vertex 4294967295\nproperty float x\nproperty float y\n"
    b"property float z\nelement face 4294967295\nproperty list uchar int vertex_indices\nend_header\n" + bytes(60)
)


def _gltf(uri: str, count: int = 3) -> bytes:
    document = {
        "asset": {"version": "2.0"},
        "buffers": [{"byteLength": 36, "uri": uri}],
        "bufferViews": [{"buffer": 0, "byteLength": 36}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": count, "type": "VEC3"}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
        "nodes": [{"mesh": 0}],
        "scenes": [{"nodes": [0]}],
    }
    return json.dumps(document).encode()
