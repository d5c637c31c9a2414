"""Hostile files, invalid requests and attacks, with the expected error codes."""

from __future__ import annotations

import os
import stat
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.soak.connections import Form
from benchmarks.soak.server import TESTS

sys.path.append(str(TESTS))

import bombs
import hostile_plugin
from bombs import TRIANGLE, special_entry, zip_entries
from meshhub.http.errors import STATUS


@dataclass(frozen=True)
class RejectedRequest:
    """Request and the expected error."""

    label: str
    path: str
    form: Form
    status: int
    code: str
    headers: dict[str, str] = field(default_factory=dict)
    chunked: bool = False


def convert(label: str, name: str, data: bytes, code: str, status: int = 422) -> RejectedRequest:
    """Return a /convert request that must be rejected."""
    return RejectedRequest(label, "/convert", Form((("file", name, data),), {"target": "stl"}), status, code)


def batch(label: str, archive: bytes, code: str = "unsafe_archive") -> RejectedRequest:
    """Return a /convert-batch request that must be rejected."""
    return RejectedRequest(
        label, "/convert-batch", Form((("archive", "a.zip", archive),), {"target": "glb"}), 422, code
    )


_BOMBS = (
    "3MF: billion laughs", "3MF: an external entity", "3MF: elements a million deep",
    "3MF: megabytes of zeros as the model", "glTF: a file of this machine", "glTF: the network",
    "glTF: a path that leads out", "glTF: an accessor of petabytes", "glTF: JSON a million deep",
    "four billion triangles in two", "a trillion points", "an index of trillions",
)  # fmt: skip
"""Names of models in `bombs` that have exactly one possible error code."""


def hostile_files() -> list[RejectedRequest]:
    """Return requests with hostile files."""
    bomb = zip_entries(("bomb.stl", bytes(30 << 20)))
    models = [(label, bombs.MODELS[label]) for label in _BOMBS]
    return [
        *(batch(f"name {name!r}", zip_entries((special_entry(name), TRIANGLE)))
          for name in ("../x.stl", "/etc/x.stl", "c:/x", "..\\x.stl")),
        batch("a bomb", bomb),
        batch("a bomb in an archive", zip_entries(("inner.zip", bomb))),
        batch("a link", zip_entries((special_entry("a.stl", stat.S_IFLNK), b"/etc/passwd"))),
        batch("two equal names", zip_entries(("a.stl", TRIANGLE), ("A.STL", TRIANGLE))),
        batch("overlapping entries", bombs.overlapping()),
        batch("not an archive", b"PK\x03\x04" + bytes(200), "unreadable_file"),
        batch("too many entries", bombs.million(70_000)),
        batch("no entry", zip_entries(), "empty_model"),
        *(convert(label, model.name, model.make(), *model.codes) for label, model in models),
        convert("an empty file", "a.stl", b"", "empty_model"),
        convert("an unknown format", "a.xyz", b"unknown content", "unsupported_format", 415),
        convert("wrong content", "a.glb", b"unknown content", "unreadable_file"),
        convert("numbers in OBJ", "a.obj", b"v 0 0 0\nv 1e400 0 0\nv 0 1 0\nf 1 2 3\n", "unreadable_file"),
    ]  # fmt: skip


def invalid_requests(pro: str, revoked: str) -> list[RejectedRequest]:
    """Return invalid requests; those without a key use the limits of the Free plan."""
    file = ("file", "a.stl", TRIANGLE)

    def request(
        label: str, status: int, code: str, path: str = "/convert", files: object = (file,), **texts: str
    ) -> RejectedRequest:
        return RejectedRequest(label, path, Form(tuple(files), texts), status, code)  # type: ignore[arg-type]

    def request_with_key(label: str, key: str) -> RejectedRequest:
        return RejectedRequest(
            label, "/convert", Form((file,), {"target": "ply"}), 401, "invalid_api_key", {"X-Api-Key": key}
        )

    large = Form((("file", "a.stl", bytes(21 << 20)),), {"target": "ply"})
    large_archive = Form((("archive", "a.zip", bytes(21 << 20)),), {"target": "ply"})
    return [
        request("an unknown option", 400, "invalid_option", target="ply", colour="red"),
        request("a wrong number", 400, "invalid_option", target="ply", target_height_mm="tall"),
        request("a negative number", 400, "invalid_option", target="ply", flatten_base_mm="-1"),
        request("a wrong flag", 400, "invalid_option", target="ply", repair="perhaps"),
        request("an unknown target", 400, "unsupported_target", target="docx"),
        request("no target", 400, "missing_field"),
        request("no file", 400, "missing_field", files=(), target="ply"),
        request("files for file", 400, "missing_field", files=(("files", "a.stl", TRIANGLE),), target="ply"),
        request("two files", 400, "bad_request", files=(file, file), target="ply"),
        request("STEP for free", 403, "premium_format_required", target="step"),
        request("four files", 413, "too_many_files", "/convert-many", [("files", *file[1:])] * 4, target="ply"),
        request("an unknown path", 404, "not_found", "/convert/x", target="ply"),
        request("an unsupported method", 405, "method_not_allowed", "/plan", target="ply"),
        request_with_key("an unknown key", pro[:-4] + "AAAA"),
        request_with_key("a malformed key", "x" * 40),
        request_with_key("a revoked key", revoked),
        RejectedRequest("21 MB with a Content-Length", "/convert", large, 413, "file_too_large"),
        RejectedRequest("21 MB in chunks", "/convert", large, 413, "file_too_large", chunked=True),
        RejectedRequest("an archive of 21 MB", "/convert-batch", large_archive, 413, "archive_too_large"),
        request("too many fields", 400, "invalid_multipart", target="ply", **{f"field{n}": "x" for n in range(120)}),
    ]  # fmt: skip


DAMAGED_STEP_CODES = {code for code, status in STATUS.items() if status in (422, 504)} - {"unsafe_archive"}
"""Error codes that a damaged STEP file may give."""

# they write gigabytes to the disk or the log, or kill the parent of all workers and thereby other conversions
_EXCLUDED_ATTACKS = {
    "eat-objects", "write-a-large-file", "write-large-files", "print-without-end", "log-without-end", "kill-its-parent",
}  # fmt: skip

ATTACKS = {name: code for name, (code, _) in hostile_plugin.ATTACKS.items() if name not in _EXCLUDED_ATTACKS}
"""Error codes of the hostile plug-in's attacks; "ok": the conversion succeeds. An attack may also time out."""


def attack_form(name: str, folder: Path) -> Form:
    """Return the form of an attack, which writes the ids of the processes that it starts to a file in the folder."""
    folder.mkdir(parents=True)
    content = f"hostile {folder / name}".encode()
    return Form((("file", f"{name}.hostile", content),), {"target": "stl"})


def surviving_processes(folder: Path) -> list[str]:
    """Return the processes that attacks started and that still run."""
    logs = [path for path in folder.glob("*/*") if path.is_file() and path.name != "witness"]
    started = {(path.name, int(line), path.stat().st_mtime) for path in logs for line in path.read_text().split()}
    return [
        f"{name}: process {number}"
        for name, number, attack_time in sorted(started)
        # the system reuses process ids within half an hour
        if hostile_plugin.is_running(number) and _start_time(number) <= attack_time + 1
    ]


def _start_time(process: int) -> float:
    """Return the start of a process in seconds since 1970; now if it has ended."""
    now = time.time()
    try:
        ticks = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19])
        up = float(Path("/proc/uptime").read_text().split()[0])
    except OSError:
        return now
    return now - up + ticks / os.sysconf("SC_CLK_TCK")


def _make_damaged_forms() -> list[tuple[str, bytes]]:
    kind, body = Form((("file", "a.stl", TRIANGLE),), {"target": "ply"}).encode()
    return [
        (kind, body[: len(body) // 2]),
        (kind, body[:-8]),
        (kind, b""),
        ("application/json", b"{}"),
        ("multipart/form-data", body),
        (kind, body.replace(b"form-data", b"no-form", 1)),
    ]


DAMAGED_FORMS = _make_damaged_forms()
"""Content-Types and bodies that are truncated or are not forms; each gives `invalid_multipart`."""

NOT_HTTP = (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(50) + b"\r\n\r\n",
    b"GET / GET / GET\r\n\r\n",
    b"POST /convert HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
    b"POST /convert HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\n",
    b"GET /plan HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n",
)
"""Input that is not HTTP; each gives status 400."""
