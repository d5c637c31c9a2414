"""Files made to harm, wrong requests, and the code that each must be refused with."""

from __future__ import annotations

import os
import stat
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.soak.server import TESTS
from benchmarks.soak.wire import Form

sys.path.append(str(TESTS))

import bombs
import hostile_plugin
from bombs import TRIANGLE, packed, special


@dataclass(frozen=True)
class Refused:
    """A request, and what it must be answered."""

    word: str
    path: str
    form: Form
    status: int
    code: str
    headers: dict[str, str] = field(default_factory=dict)
    chunked: bool = False


def convert(word: str, name: str, data: bytes, code: str, status: int = 422) -> Refused:
    """A /convert that must be refused."""
    return Refused(word, "/convert", Form((("file", name, data),), {"target": "stl"}), status, code)


def batch(word: str, archive: bytes, code: str = "unsafe_archive") -> Refused:
    """A /convert-batch that must be refused."""
    return Refused(word, "/convert-batch", Form((("archive", "a.zip", archive),), {"target": "glb"}), 422, code)


_BOMBS = (
    "3MF: billion laughs", "3MF: an external entity", "3MF: elements a million deep",
    "3MF: megabytes of zeros as the model", "glTF: a file of this machine", "glTF: the network",
    "glTF: a path that leads out", "glTF: an accessor of petabytes", "glTF: JSON a million deep",
    "four billion triangles in two", "a trillion points", "an index of trillions",
)  # fmt: skip
"""Models of the tests that one error answers."""


def files() -> list[Refused]:
    """Hostile files."""
    bomb = packed(("bomb.stl", bytes(30 << 20)))
    models = [(what, bombs.MODELS[what]) for what in _BOMBS]
    return [
        *(batch(f"name {name!r}", packed((special(name), TRIANGLE)))
          for name in ("../x.stl", "/etc/x.stl", "c:/x", "a\\b")),
        batch("a bomb", bomb),
        batch("a bomb in an archive", packed(("inner.zip", bomb))),
        batch("a link", packed((special("a.stl", stat.S_IFLNK), b"/etc/passwd"))),
        batch("one name twice", packed(("a.stl", TRIANGLE), ("A.STL", TRIANGLE))),
        batch("entries that overlap", bombs.overlapping()),
        batch("an archive that is none", b"PK\x03\x04" + bytes(200), "unreadable_file"),
        batch("very many entries", bombs.million(70_000)),
        batch("no entry", packed(), "empty_model"),
        *(convert(what, one.name, one.make(), *one.codes) for what, one in models),
        convert("nothing", "a.stl", b"", "empty_model"),
        convert("nobody's", "a.xyz", b"what is this", "unsupported_format", 415),
        convert("wrong content", "a.glb", b"what is this", "unreadable_file"),
        convert("numbers in OBJ", "a.obj", b"v 0 0 0\nv 1e400 0 0\nv 0 1 0\nf 1 2 3\n", "unreadable_file"),
    ]  # fmt: skip


def wrong(pro: str, revoked: str) -> list[Refused]:
    """Requests that are wrong in themselves; those without a key are a Free customer's."""
    one = ("file", "a.stl", TRIANGLE)

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
        asking("files for file", 400, "missing_field", files=(("files", "a.stl", TRIANGLE),), target="ply"),
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
    started = {(path.name, int(line), path.stat().st_mtime) for path in told for line in path.read_text().split()}
    return [
        f"{name}: process {number}"
        for name, number, at in sorted(started)
        # in half an hour numbers are given out again
        if hostile_plugin.living(number) and _began(number) <= at + 1
    ]


def _began(process: int) -> float:
    """When a process was started, in seconds since 1970; now, if it is gone."""
    now = time.time()
    try:
        ticks = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19])
        up = float(Path("/proc/uptime").read_text().split()[0])
    except OSError:
        return now
    return now - up + ticks / os.sysconf("SC_CLK_TCK")


def _damaged_forms() -> list[tuple[str, bytes]]:
    kind, body = Form((("file", "a.stl", TRIANGLE),), {"target": "ply"}).encoded()
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
