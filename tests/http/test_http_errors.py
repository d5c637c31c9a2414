"""Every row of the error table is produced by a request, in one shape."""

from __future__ import annotations

import errno
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from http_serving import Running, refused, zip_of

from meshhub.engine.contract import Cancel, Task
from meshhub.errors import ConversionTimeout, UnsafeArchive, WorkerCrashed
from meshhub.http.errors import MEANING, STATUS
from meshhub.model.report import Inspection, Report

DOCS = Path(__file__).parents[2] / "docs" / "http.md"


class Raising:
    """An engine that ends every task in the same way."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def run(self, task: Task, *, timeout: float | None = None, cancel: Cancel | None = None) -> Report | Inspection:
        raise self.error

    def close(self) -> None:
        pass


def twice(running: Running) -> httpx.Response:
    return running.client.post(
        "/convert", files=[("file", ("a.toy", b"toy")), ("file", ("b.toy", b"toy"))], data={"target": "toy"}
    )


def no_form(running: Running) -> httpx.Response:
    return running.client.post("/convert", content=b"{}", headers={"Content-Type": "application/json"})


def compressed(running: Running) -> httpx.Response:
    body = gzip.compress(b"--b\r\n")
    headers = {"Content-Type": "multipart/form-data; boundary=b", "Content-Encoding": "gzip"}
    return running.client.post("/convert", content=body, headers=headers)


ROWS: dict[str, Callable[[Running], httpx.Response]] = {
    "bad_request": twice,
    "invalid_multipart": no_form,
    "missing_field": lambda s: s.post("/convert", {"file": ("a.toy", b"toy")}),
    "invalid_option": lambda s: s.convert(toy_size="-1"),
    "unsupported_target": lambda s: s.convert(target="dwg"),
    "invalid_api_key": lambda s: s.get("/plan", headers={"X-Api-Key": "mh_aaaaaaaaaaaa_" + "x" * 43}),
    "premium_format_required": lambda s: s.convert(target="gilded"),
    "not_found": lambda s: s.get("/nowhere"),
    "method_not_allowed": lambda s: s.get("/convert"),
    "file_too_large": lambda s: s.convert(b"toy" + b" " * 20_971_520),
    "unsupported_encoding": compressed,
    "too_many_files": lambda s: s.many(*[("a.toy", b"toy")] * 4),
    "archive_too_large": lambda s: s.batch(b"PK" + b" " * 20_971_520),
    "unsupported_format": lambda s: s.convert(b"\0\1\2", name="a.xyz"),
    "unreadable_file": lambda s: s.convert(b"???", name="a.toy"),
    "empty_model": lambda s: s.convert(b"", name="a.toy"),
    "external_reference": lambda s: s.convert(b"toy needs wood.png"),
    "unsafe_archive": lambda s: s.batch(zip_of({"/etc/a.toy": b"toy"})),
    "model_too_complex": lambda s: s.convert(b"toy complex"),
    "conversion_failed": lambda s: s.convert(b"toy broken"),
    "internal_error": lambda s: s.convert(toy_size="67"),
}

ELSEWHERE = {
    "request_refused": "a review's own code is tested here",
    "worker_crashed": "test_http_engine",
    "conversion_timeout": "test_http_engine",
    "server_busy": "test_http_engine",
    "shutting_down": "test_http_engine",
    "rate_limit_exceeded": "test_http_rates",
    "request_timeout": "test_http_connections",
}


def test_every_row_is_tested() -> None:
    assert set(ROWS) | set(ELSEWHERE) == set(STATUS) == set(MEANING)
    for code, module in ELSEWHERE.items():
        path = Path(__file__).with_name(f"{module}.py")
        assert not path.name.startswith("test_") or f'"{code}"' in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("code", ROWS)
def test_a_row(service: Running, code: str) -> None:
    refused(ROWS[code](service), STATUS[code], code)


def test_the_table_in_the_documentation_is_this_one() -> None:
    lines = DOCS.read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith(("| 4", "| 5"))]
    assert rows == [f"| {status} | `{code}` | {MEANING[code]} |" for code, status in STATUS.items()]


@pytest.mark.parametrize("path", ["/convert", "/convert-many", "/convert-batch", "/inspect"])
@pytest.mark.parametrize("encoding", ["gzip", "br, GZIP"])
def test_a_compressed_body_is_refused_with_what_is_accepted(service: Running, path: str, encoding: str) -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=b", "Content-Encoding": encoding}
    answer = service.client.post(path, content=gzip.compress(bytes(100_000)), headers=headers)
    assert encoding.lower() in refused(answer, 415, "unsupported_encoding")["error"].lower()
    assert answer.headers["accept-encoding"] == "identity"


def test_the_encoding_identity_is_none(service: Running) -> None:
    assert service.convert(headers={"Content-Encoding": "identity"}).status_code == 200


def test_an_archive_that_is_too_large_is_called_an_archive(service: Running) -> None:
    answer = service.batch(b"PK" + b" " * 20_971_520)
    assert "allows an archive of" in refused(answer, 413, "archive_too_large")["error"]


def test_messages_write_numbers_out_and_cut_what_they_quote(service: Running) -> None:
    answer = service.convert(optimize_target_faces="999999999")
    assert "at most 100000000," in refused(answer, 400, "invalid_option")["error"]
    for option in ("optimize_target_faces", "target_height_mm", "repair", "input_format", "report", "9" * 50):
        error = refused(service.convert(**{option: "9" * 50}), 400, "invalid_option")["error"]
        assert "9" * 41 not in error
        assert "9…" in error
    assert "9" * 41 not in refused(service.convert(target="9" * 50), 400, "unsupported_target")["error"]


def test_a_review_refuses_with_its_own_code(service: Running) -> None:
    body = refused(service.convert(toy_size="66"), 403, "size_refused")
    assert "take 67" in body["error"]


def test_a_broken_gate_tells_nothing_of_the_machine(service: Running) -> None:
    assert "secret" not in refused(service.convert(toy_size="67"), 500, "internal_error")["error"]


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (RuntimeError("/secret/path"), 500, "internal_error"),
        (OSError(errno.EIO, "broken disk at /secret"), 500, "internal_error"),
        (OSError(errno.ENOSPC, "no space at /secret"), 503, "server_busy"),
        (WorkerCrashed("gone"), 422, "worker_crashed"),
        (ConversionTimeout("late"), 504, "conversion_timeout"),
        (UnsafeArchive("bomb", code="a_code_of_its_own"), 422, "a_code_of_its_own"),
    ],
)
def test_whatever_the_engine_raises(serve: Any, error: Exception, status: int, code: str) -> None:
    running = serve(Raising(error))
    assert "secret" not in refused(running.convert(), status, code)["error"]
    if status == 500:
        answer = running.many(("a.toy", b"toy"))
        assert "secret" not in str(refused(answer, status, code)["details"])


def test_a_missing_dependency_tells_the_command(service: Running) -> None:
    body = refused(service.convert(target="lacking"), 400, "unsupported_target")
    assert 'pip install "toys[all]"' in body["error"]


def test_405_tells_what_is_allowed(service: Running) -> None:
    assert "POST" in service.get("/convert").headers["allow"]
    assert set(service.client.delete("/plan").headers["allow"].split(", ")) == {"GET", "HEAD", "OPTIONS"}
    assert set(service.client.options("/plan").headers["allow"].split(", ")) == {"GET", "HEAD", "OPTIONS"}


def test_the_order_of_checks(service: Running) -> None:
    """Key, rate, Content-Length, multipart, target, entitlement, options, reading."""
    everything = {"files": {"file": ("a.xyz", b"?")}, "data": {"target": "gilded", "toy_size": "x"}}
    answer = service.client.post("/convert", **everything, headers={"X-Api-Key": "wrong"})
    refused(answer, 401, "invalid_api_key")
    both = {"target": "nonsense", "toy_size": "x"}
    refused(service.post("/convert", {"file": ("a.xyz", b"?")}, both), 400, "unsupported_target")
    refused(
        service.post("/convert", {"file": ("a.xyz", b"?")}, {**both, "target": "gilded"}),
        403,
        "premium_format_required",
    )
    refused(service.post("/convert", {"file": ("a.xyz", b"?")}, {**both, "target": "toy"}), 400, "invalid_option")
    badly_reported = {"target": "gilded", "report": "perhaps"}
    for path, field in (("/convert", "file"), ("/convert-many", "files"), ("/convert-batch", "archive")):
        refused(service.post(path, {field: ("a.xyz", b"?")}, badly_reported), 403, "premium_format_required")
        refused(
            service.post(path, {field: ("a.xyz", b"?")}, {**badly_reported, "target": "toy"}), 400, "invalid_option"
        )
    refused(service.post("/convert", {"file": ("a.xyz", b"?")}, {"target": "toy"}), 415, "unsupported_format")


def test_an_unknown_option_is_named_with_its_neighbour(service: Running) -> None:
    assert "toy_size" in refused(service.convert(toy_sise="1"), 400, "invalid_option")["error"]


@pytest.mark.parametrize(
    ("path", "field", "belongs"),
    [
        ("/convert", "files", "/convert-many"),
        ("/convert-many", "archive", "/convert-batch"),
        ("/convert-batch", "file", "/convert"),
    ],
)
def test_a_file_in_the_wrong_field_is_told_where_it_belongs(
    service: Running, path: str, field: str, belongs: str
) -> None:
    answer = service.post(path, {field: ("a.toy", b"toy" * 100_000)}, {"target": "toy"})
    assert belongs in refused(answer, 400, "missing_field")["error"]


@pytest.mark.parametrize(
    ("path", "main", "sent"),
    [("/convert", "file", "model"), ("/convert-many", "files", "files[]"), ("/convert-batch", "archive", "upload")],
)
@pytest.mark.parametrize("content", [b"\xff\xfe\0binary", b"toy", b"toy" * 100_000])
def test_a_file_in_an_unknown_field_is_named_with_the_right_one(
    service: Running, path: str, main: str, sent: str, content: bytes
) -> None:
    answer = service.post(path, {sent: ("a.toy", content)}, {"target": "toy"})
    error = refused(answer, 400, "missing_field")["error"]
    assert f"{sent!r}" in error
    assert f"{main!r}" in error


def test_request_ids(service: Running) -> None:
    assert service.get("/plan", headers={"X-Request-ID": "abc-1.2"}).headers["x-request-id"] == "abc-1.2"
    for sent in ("", "a b", "x" * 200, "é".encode(), 'x"y'):
        came = service.get("/nowhere", headers={"X-Request-ID": sent})
        assert len(came.headers["x-request-id"]) == 32
        assert came.json()["request_id"] == came.headers["x-request-id"]


def test_head_answers_without_a_body(service: Running) -> None:
    for path in ("/health/live", "/health/ready", "/plan", "/supported", "/schema", "/schema/openapi.json"):
        answer = service.client.head(path)
        assert (answer.status_code, answer.content) == (200, b""), path
        assert "x-request-id" in answer.headers
    assert service.client.head("/nowhere").status_code == 404
    assert service.client.head("/convert").status_code == 405
