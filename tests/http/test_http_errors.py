"""A request produces each row of the error table, as JSON with the same fields."""

from __future__ import annotations

import ast
import errno
import gzip
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import meshhub
from http_serving import Running, check_error, zip_files
from meshhub.cli.exits import exit_status
from meshhub.engine.contract import Cancel, Task
from meshhub.engine.in_process import InProcess
from meshhub.engine.logs import FIELDS
from meshhub.error_codes import ERROR_CODES
from meshhub.errors import ConversionTimeout, EngineError, MeshhubError, UnsafeArchive, WorkerCrashed
from meshhub.http.errors import MEANING, RETRY_AFTER, STATUS
from meshhub.model.report import Inspection, Report
from waiting import wait_until


class RaisingEngine(InProcess):
    """Engine that raises the same exception for each task."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def run(self, task: Task, *, timeout: float | None = None, cancel: Cancel | None = None) -> Report | Inspection:
        raise self.error


def send_target_twice(running: Running) -> httpx.Response:
    return running.client.post(
        "/convert", files=[("file", ("a.toy", b"toy")), ("file", ("b.toy", b"toy"))], data={"target": "toy"}
    )


def send_no_form(running: Running) -> httpx.Response:
    return running.client.post("/convert", content=b"{}", headers={"Content-Type": "application/json"})


def send_compressed_body(running: Running) -> httpx.Response:
    body = gzip.compress(b"--b\r\n")
    headers = {"Content-Type": "multipart/form-data; boundary=b", "Content-Encoding": "gzip"}
    return running.client.post("/convert", content=body, headers=headers)


def walk_subclasses(kind: type[MeshhubError]) -> Iterator[type[MeshhubError]]:
    """Yield the class and the classes that meshhub derives from it."""
    yield kind
    for child in kind.__subclasses__():
        if child.__module__.partition(".")[0] == "meshhub":
            yield from walk_subclasses(child)


@pytest.mark.parametrize("kind", [*walk_subclasses(MeshhubError)])
def test_a_code_of_a_plugin_has_the_statuses_of_its_class(kind: type[MeshhubError]) -> None:
    error = kind("x", error_code="a_code_of_its_own")
    derived = type("OfAPlugin", (kind,), {"error_code": "a_code_of_a_plugin"})("x")
    assert (derived.http_status, exit_status(derived)) == (error.http_status, exit_status(error))
    assert error.http_status >= 400
    assert exit_status(error) == exit_status(kind("x"))


def test_every_code_that_the_source_names_is_in_the_table() -> None:
    named = set()
    for path in Path(meshhub.__file__).parent.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        # a tenth of the modules has such an argument
        for call in ast.walk(ast.parse(text)) if re.search(r"\b(error_)?code=", text) else ():
            # findings have codes of their own
            if not isinstance(call, ast.Call) or (isinstance(call.func, ast.Name) and call.func.id == "Finding"):
                continue
            for keyword in call.keywords:
                if keyword.arg in ("code", "error_code"):
                    constants = (part.value for part in ast.walk(keyword.value) if isinstance(part, ast.Constant))
                    named |= {value for value in constants if isinstance(value, str) and value}
    assert "missing_field" in named
    assert named <= set(ERROR_CODES)


ROWS: dict[str, Callable[[Running], httpx.Response]] = {
    "bad_request": send_target_twice,
    "invalid_multipart": send_no_form,
    "missing_field": lambda s: s.post("/convert", {"file": ("a.toy", b"toy")}),
    "invalid_option": lambda s: s.convert(toy_size="-1"),
    "unsupported_target": lambda s: s.convert(target="dwg"),
    "invalid_api_key": lambda s: s.get("/plan", headers={"X-Api-Key": "mh_aaaaaaaaaaaa_" + "x" * 43}),
    "premium_format_required": lambda s: s.convert(target="gilded"),
    "origin_not_allowed": lambda s: s.convert(headers={"Origin": "https://evil.example"}),
    "not_found": lambda s: s.get("/nowhere"),
    "method_not_allowed": lambda s: s.get("/convert"),
    "file_too_large": lambda s: s.convert(b"toy" + b" " * 20_971_520),
    "unsupported_encoding": send_compressed_body,
    "too_many_files": lambda s: s.many(*[("a.toy", b"toy")] * 4),
    "archive_too_large": lambda s: s.batch(b"PK" + b" " * 20_971_520),
    "unsupported_format": lambda s: s.convert(b"\0\1\2", name="a.xyz"),
    "host_not_allowed": lambda s: s.get("/plan", headers={"Host": "evil.example"}),
    "unreadable_file": lambda s: s.convert(b"???", name="a.toy"),
    "empty_model": lambda s: s.convert(b"", name="a.toy"),
    "external_reference": lambda s: s.convert(b"toy needs wood.png"),
    "unsafe_archive": lambda s: s.batch(zip_files({"/etc/a.toy": b"toy"})),
    "model_too_complex": lambda s: s.convert(b"toy complex"),
    "conversion_failed": lambda s: s.convert(b"toy broken"),
    "internal_error": lambda s: s.convert(toy_size="67"),
}

ELSEWHERE = {
    "request_refused": "a review's own code is tested here",
    "invalid_solid": "the STEP writer's own tests need an invalid solid",
    "app_token_required": "test_http_app",
    "save_failed": "test_http_app",
    "output_exists": "test_http_printers",
    "output_failed": "test_http_printers",
    "plan_required": "test_http_jobs",
    "job_not_found": "test_http_jobs",
    "job_not_finished": "test_http_jobs",
    "idempotency_conflict": "test_http_jobs",
    "no_result": "test_http_jobs",
    "range_not_satisfiable": "test_http_jobs",
    "too_many_jobs": "test_http_jobs",
    "worker_lost": "tests of the stores of jobs",
    "worker_crashed": "test_http_engine",
    "conversion_timeout": "test_http_engine",
    "server_busy": "test_http_engine",
    "shutting_down": "test_http_engine",
    "rate_limit_exceeded": "test_http_rates",
    "request_timeout": "test_http_connections",
}


def test_every_row_of_the_table_has_a_request() -> None:
    assert set(ROWS) | set(ELSEWHERE) == set(STATUS) == set(MEANING)
    for code, module in ELSEWHERE.items():
        path = Path(__file__).with_name(f"{module}.py")
        assert not path.name.startswith("test_") or f'"{code}"' in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("code", ROWS)
def test_a_request_gets_the_error_of_its_row(service: Running, code: str) -> None:
    check_error(ROWS[code](service), STATUS[code], code)


def respond(
    service: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> tuple[httpx.Response, str]:
    """Return the response to a request that raises an error, and the reason in the access log."""

    def fail(*_: object) -> None:
        raise error

    def list_fields() -> list[dict[str, Any]]:
        return [getattr(record, FIELDS) for record in caplog.records if record.name == "meshhub.http.access"]

    monkeypatch.setattr(service.registry, "entitled", fail)
    with caplog.at_level(logging.INFO, logger="meshhub"):
        caplog.clear()
        answer = service.get("/plan")
        wait_until(lambda: any(fields["path"] == "/plan" for fields in list_fields()))
    return answer, next(fields["reason"] for fields in list_fields() if fields["path"] == "/plan")


@pytest.mark.parametrize("code", [*STATUS, "a_code_of_a_plugin"])
def test_each_code_has_its_time_to_retry_and_its_reason_in_the_log(
    service: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, code: str
) -> None:
    status, retry_after_s = (STATUS[code], RETRY_AFTER.get(code)) if code in STATUS else (503, 5)
    answer, reason = respond(service, monkeypatch, caplog, EngineError("the figure of it", error_code=code))
    check_error(answer, status, code)
    assert answer.headers.get("retry-after") == (None if retry_after_s is None else str(retry_after_s))
    assert ("retry-after" in answer.headers) or status not in (429, 503)
    # other reasons may name files of the caller
    assert reason == ("the figure of it" if status in (503, 504) else "")


@pytest.mark.parametrize("kind", [kind for kind in walk_subclasses(MeshhubError) if kind("x").http_status == 503])
def test_each_503_has_its_reason_in_the_log(
    service: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, kind: type[MeshhubError]
) -> None:
    answer, reason = respond(service, monkeypatch, caplog, kind("cannot reach db.internal"))
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0
    assert reason == "cannot reach db.internal"
    # a message of a database names hosts of the operator
    assert ("db.internal" in answer.text) != kind.__name__.endswith("StoreUnavailable")


def test_an_empty_key_is_called_empty(service: Running) -> None:
    answer = service.get("/plan", headers={"X-Api-Key": ""})
    assert check_error(answer, 401, "invalid_api_key")["error"].startswith("X-Api-Key is empty;")


@pytest.mark.parametrize("path", ["/convert", "/convert-many", "/convert-batch", "/inspect"])
@pytest.mark.parametrize("encoding", ["gzip", "br, GZIP"])
def test_a_compressed_body_is_rejected_with_the_accepted_encodings(service: Running, path: str, encoding: str) -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=b", "Content-Encoding": encoding}
    answer = service.client.post(path, content=gzip.compress(bytes(100_000)), headers=headers)
    assert encoding.lower() in check_error(answer, 415, "unsupported_encoding")["error"].lower()
    assert answer.headers["accept-encoding"] == "identity"


def test_the_encoding_identity_is_accepted(service: Running) -> None:
    assert service.convert(headers={"Content-Encoding": "identity"}).status_code == 200


def test_the_error_of_a_large_archive_calls_it_an_archive(service: Running) -> None:
    answer = service.batch(b"PK" + b" " * 20_971_520)
    assert "allows an archive of" in check_error(answer, 413, "archive_too_large")["error"]


def test_messages_write_numbers_out_and_truncate_quoted_values(service: Running) -> None:
    answer = service.convert(optimize_target_faces="999999999")
    assert "at most 100000000," in check_error(answer, 400, "invalid_option")["error"]
    for option in ("optimize_target_faces", "target_height_mm", "repair", "input_format", "report", "9" * 50):
        error = check_error(service.convert(**{option: "9" * 50}), 400, "invalid_option")["error"]
        assert "9" * 41 not in error
        assert "9…" in error
    assert "9" * 41 not in check_error(service.convert(target="9" * 50), 400, "unsupported_target")["error"]


def test_a_review_rejects_with_its_own_code(service: Running) -> None:
    body = check_error(service.convert(toy_size="66"), 403, "size_refused")
    assert "take 67" in body["error"]


def test_the_error_of_a_broken_review_has_no_internal_details(service: Running) -> None:
    assert "secret" not in check_error(service.convert(toy_size="67"), 500, "internal_error")["error"]


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (RuntimeError("/secret/path"), 500, "internal_error"),
        (OSError(errno.EIO, "broken disk at /secret"), 500, "internal_error"),
        (OSError(errno.ENOSPC, "no space at /secret"), 503, "server_busy"),
        (WorkerCrashed("gone"), 422, "worker_crashed"),
        (ConversionTimeout("late"), 504, "conversion_timeout"),
        (UnsafeArchive("bomb", error_code="a_code_of_its_own"), 422, "a_code_of_its_own"),
    ],
)
def test_any_exception_of_the_engine_becomes_a_coded_error(
    serve: Any, error: Exception, status: int, code: str
) -> None:
    running = serve(RaisingEngine(error))
    assert "secret" not in check_error(running.convert(), status, code)["error"]
    if status == 500:
        answer = running.many(("a.toy", b"toy"))
        assert "secret" not in str(check_error(answer, status, code)["details"])


def test_a_missing_dependency_names_the_install_command(service: Running) -> None:
    body = check_error(service.convert(target="lacking"), 400, "unsupported_target")
    assert 'pip install "toys[all]"' in body["error"]


def test_405_lists_the_allowed_methods(service: Running) -> None:
    assert "POST" in service.get("/convert").headers["allow"]
    assert set(service.client.delete("/plan").headers["allow"].split(", ")) == {"GET", "HEAD", "OPTIONS"}
    assert set(service.client.options("/plan").headers["allow"].split(", ")) == {"GET", "HEAD", "OPTIONS"}


def test_checks_run_in_the_documented_order(service: Running) -> None:
    """Key, rate, Content-Length, multipart, target, entitlement, options, reading."""
    everything = {"files": {"file": ("a.xyz", b"?")}, "data": {"target": "gilded", "toy_size": "x"}}
    answer = service.client.post("/convert", **everything, headers={"X-Api-Key": "wrong"})
    check_error(answer, 401, "invalid_api_key")
    both = {"target": "nonsense", "toy_size": "x"}
    check_error(service.post("/convert", {"file": ("a.xyz", b"?")}, both), 400, "unsupported_target")
    check_error(
        service.post("/convert", {"file": ("a.xyz", b"?")}, {**both, "target": "gilded"}),
        403,
        "premium_format_required",
    )
    check_error(service.post("/convert", {"file": ("a.xyz", b"?")}, {**both, "target": "toy"}), 400, "invalid_option")
    badly_reported = {"target": "gilded", "report": "perhaps"}
    for path, field in (("/convert", "file"), ("/convert-many", "files"), ("/convert-batch", "archive")):
        check_error(service.post(path, {field: ("a.xyz", b"?")}, badly_reported), 403, "premium_format_required")
        check_error(
            service.post(path, {field: ("a.xyz", b"?")}, {**badly_reported, "target": "toy"}), 400, "invalid_option"
        )
    check_error(service.post("/convert", {"file": ("a.xyz", b"?")}, {"target": "toy"}), 415, "unsupported_format")


def test_an_unknown_option_is_answered_with_the_nearest_one(service: Running) -> None:
    assert "toy_size" in check_error(service.convert(toy_sise="1"), 400, "invalid_option")["error"]


@pytest.mark.parametrize(
    ("path", "field", "belongs"),
    [
        ("/convert", "files", "/convert-many"),
        ("/convert-many", "archive", "/convert-batch"),
        ("/convert-batch", "file", "/convert"),
    ],
)
def test_the_error_of_a_file_in_the_wrong_field_names_the_right_one(
    service: Running, path: str, field: str, belongs: str
) -> None:
    answer = service.post(path, {field: ("a.toy", b"toy" * 100_000)}, {"target": "toy"})
    assert belongs in check_error(answer, 400, "missing_field")["error"]


@pytest.mark.parametrize(
    ("path", "main", "sent"),
    [("/convert", "file", "model"), ("/convert-many", "files", "files[]"), ("/convert-batch", "archive", "upload")],
)
@pytest.mark.parametrize("content", [b"\xff\xfe\0binary", b"toy", b"toy" * 100_000])
def test_the_error_of_a_file_in_an_unknown_field_names_the_right_one(
    service: Running, path: str, main: str, sent: str, content: bytes
) -> None:
    answer = service.post(path, {sent: ("a.toy", content)}, {"target": "toy"})
    error = check_error(answer, 400, "missing_field")["error"]
    assert f"{sent!r}" in error
    assert f"{main!r}" in error


def test_a_second_file_is_named_by_its_field(service: Running) -> None:
    files = {"file": ("a.toy", b"toy"), "texture": ("a.png", b"\x89PNG\xff")}
    error = check_error(service.post("/convert", files, {"target": "toy"}), 400, "missing_field")["error"]
    assert "the field 'texture' takes no file" in error


def test_a_valid_request_id_is_echoed_and_an_invalid_one_replaced(service: Running) -> None:
    assert service.get("/plan", headers={"X-Request-ID": "abc-1.2"}).headers["x-request-id"] == "abc-1.2"
    for request_id in ("", "a b", "x" * 200, "é".encode(), 'x"y'):
        answer = service.get("/nowhere", headers={"X-Request-ID": request_id})
        assert len(answer.headers["x-request-id"]) == 32
        assert answer.json()["request_id"] == answer.headers["x-request-id"]


def test_head_answers_without_a_body(service: Running) -> None:
    for path in ("/health/live", "/health/ready", "/plan", "/supported", "/schema", "/schema/openapi.json"):
        answer = service.client.head(path)
        assert (answer.status_code, answer.content) == (200, b""), path
        assert "x-request-id" in answer.headers
    assert service.client.head("/nowhere").status_code == 404
    assert service.client.head("/convert").status_code == 405
