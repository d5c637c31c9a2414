"""Jobs over HTTP: submission, states, events, results, cancellation, limits, restarts."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from http_serving import ASCII_STL, GENEROUS, Running, check_error, receive_all, serving, zip_files
from meshhub import Registry
from meshhub.engine.isolated import Isolated
from meshhub.http.jobs import execution, runner, sweeping
from meshhub.service.jobs.files import LocalJobFiles
from meshhub.service.jobs.sqlite import SqliteJobStore
from waiting import wait_until

pytestmark = pytest.mark.once

TOY = ("my toy.toy", b"toy")


def submit(running: Running, content: bytes = b"toy", headers: dict[str, str] | None = None, **fields: Any) -> Any:
    data = {"kind": "convert", "target": "toy", **fields}
    answer = running.post("/jobs", {"file": ("my toy.toy", content)}, data, headers=headers)
    assert answer.status_code == 202, answer.text
    return answer.json()


def show(running: Running, job: Any, headers: dict[str, str] | None = None) -> Any:
    answer = running.get(f"/jobs/{job['id']}", headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


def wait(running: Running, job: Any, state: str = "done", headers: dict[str, str] | None = None) -> Any:
    wait_until(lambda: show(running, job, headers)["state"] not in ("queued", "running"))
    last = show(running, job, headers)
    assert last["state"] == state, last
    return last


def wait_for_start(path: Path) -> None:
    wait_until(lambda: any(path.parent.glob(f"{path.name}.*")))


def read_events(running: Running, job: Any) -> Iterator[Any]:
    with running.client.stream("GET", f"/jobs/{job['id']}/events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        for line in stream.iter_lines():
            if line.startswith("data: "):
                yield json.loads(line.removeprefix("data: "))


def test_a_job_is_submitted_followed_and_downloaded(service: Running) -> None:
    answer = service.post("/jobs", {"file": TOY}, {"kind": "convert", "target": "toy", "polish": "true"})
    assert answer.status_code == 202
    job = answer.json()
    assert answer.headers["location"] == f"/jobs/{job['id']}"
    assert len(job["id"]) == 43
    assert job["files"] == [{"name": "my toy.toy", "bytes": 3}]
    done = wait(service, job)
    assert "polished" in [note["code"] for note in done["report"]["notes"]]
    assert done["expires"] == pytest.approx(done["finished"] + 3600, abs=1)
    result = service.get(done["result"]["url"])
    assert result.status_code == 200
    assert result.content == service.convert(polish="true").content
    assert hashlib.sha256(result.content).hexdigest() == done["result"]["sha256"]
    assert result.headers["content-disposition"].startswith('attachment; filename="my toy.toy"')
    assert json.loads(result.headers["x-meshhub-report"]) == done["report"]


def test_an_inspection_is_a_job_too(service: Running) -> None:
    files = {"file": ("a.stl", ASCII_STL)}
    job = service.post("/jobs", files, {"kind": "inspect"}).json()
    done = wait(service, job)
    assert done["report"] is None
    assert service.get(done["result"]["url"]).json() == service.post("/inspect", files).json()


@pytest.mark.usefixtures("small_pictures")
@pytest.mark.parametrize(("kind", "begin"), [("html", b"<!DOCTYPE html>"), ("pdf", b"%PDF-"), ("glb", b"glTF")])
def test_a_job_delivers_the_report_of_a_check(service: Running, kind: str, begin: bytes) -> None:
    files, fields = {"file": ("a.stl", ASCII_STL)}, {"kind": "check", "checks": "mesh", "report": kind}
    job = service.post("/jobs", files, fields, headers={"Accept-Language": "de"}).json()
    done = wait(service, job)
    assert done["result"]["name"] == f"a-check.{kind}"
    result = service.get(done["result"]["url"])
    assert result.headers["content-type"].startswith(done["result"]["media_type"])
    assert result.headers.get("content-language") == (None if kind == "glb" else "de")
    assert result.content.startswith(begin)
    assert kind != "html" or "Druckprüfung" in result.text
    check_error(service.post("/jobs", files, fields | {"report": "docx"}), 400, "invalid_option")


def test_a_check_is_a_job_too(service: Running, pro: dict[str, str]) -> None:
    files, options = {"file": ("a.stl", ASCII_STL)}, {"checks": "mesh", "scale_percent": "200"}
    job = service.post("/jobs", files, {"kind": "check", **options}, headers=pro).json()
    done = wait(service, job, headers=pro)
    assert (done["kind"], done["target"], done["report"]) == ("check", None, None)
    assert (done["result"]["name"], done["result"]["media_type"]) == ("a.json", "application/json")
    listed = service.get("/jobs", headers=pro).json()["jobs"]
    assert [row["kind"] for row in listed if row["id"] == job["id"]] == ["check"]
    verdict, expected = (
        answer.json()
        for answer in (
            service.get(done["result"]["url"], headers=pro),
            service.post("/check", files, options, headers=pro),
        )
    )
    for steps in (verdict["checks"], expected["checks"]):
        assert all(step.pop("seconds") >= 0 for step in steps)
    assert verdict == expected
    assert "open_surface" in [finding["code"] for finding in verdict["findings"]]


def test_a_combination_is_a_job_too(service: Running, pro: dict[str, str]) -> None:
    parts = [
        ("files", ("first.stl", ASCII_STL)),
        ("files", ("second.obj", b"mtllib m.mtl\nusemtl red\nv 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")),
        ("files", ("m.mtl", b"newmtl red\nKd 1 0 0\n")),
    ]
    fields = {"target": "3mf", "place_on_bed": "true"}
    done = wait(service, service.post("/jobs", parts, {"kind": "combine", **fields}, headers=pro).json(), headers=pro)
    assert (done["kind"], done["target"], done["result"]["name"]) == ("combine", "3mf", "first.3mf")
    assert done["report"]["faces_in"] == 3
    result = service.get(done["result"]["url"], headers=pro)
    scene, expected = (
        Registry(entry_points=False).read(answer.content)
        for answer in (result, service.post("/combine", parts, fields, headers=pro))
    )
    assert [part.name for part in scene.parts] == [part.name for part in expected.parts] == ["t", "second"]
    assert any(material.base_color[:3] == (1, 0, 0) for material in scene.materials)


def test_a_combination_has_the_limits_and_errors_of_the_endpoint(service: Running) -> None:
    fields = {"kind": "combine", "target": "stl"}
    part = ("files", ("a.stl", ASCII_STL))
    check_error(service.post("/jobs", [part] * 4, fields), 413, "too_many_files")
    broken = ("files", ("broken.stl", b"solid x\nfacet normal 0 0 x\n"))
    failed = wait(service, service.post("/jobs", [part, broken], fields).json(), "failed")
    assert failed["error_code"] == "unreadable_file"
    assert "broken.stl" in failed["error"]


def test_a_job_without_a_kind_converts(service: Running) -> None:
    job = service.post("/jobs", {"file": TOY}, {"target": "toy"}).json()
    assert wait(service, job)["kind"] == "convert"


def test_a_failed_check_has_the_error_of_the_endpoint(service: Running) -> None:
    files = {"file": ("a.toy", b"nothing")}
    failed = wait(service, service.post("/jobs", files, {"kind": "check"}).json(), "failed")
    assert failed["error_code"] == service.post("/check", files).json()["error_code"] == "unreadable_file"


def test_a_worker_refuses_a_job_of_a_kind_that_it_does_not_have(
    serve: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "JOB_KINDS", ("convert",))
    monkeypatch.setattr("meshhub.http.jobs.runs._RETRY_S", 0.01)
    running = serve()
    files = {"file": ("a.stl", ASCII_STL)}
    failed = wait(running, running.post("/jobs", files, {"kind": "check"}).json(), "failed")
    assert (failed["error_code"], failed["attempt"]) == ("server_busy", 3)
    assert "too old for jobs of the kind 'check'" in failed["error"]
    wait(running, submit(running))


def test_several_files_and_archives_give_a_zip(service: Running) -> None:
    fields = {"kind": "convert", "target": "toy", "file_options": '{"1": {"polish": true}}', "report": "true"}
    files = [("files", ("a.toy", b"toy")), ("files", ("b.toy", b"toy"))]
    done = wait(service, service.post("/jobs", files, fields).json())
    answer = service.get(done["result"]["url"])
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.namelist() == ["a.toy", "b.toy", "report.json"]
        rows = json.loads(archive.read("report.json"))["files"]
    polished = ["polished" in [note["code"] for note in row["report"]["notes"]] for row in rows]
    assert polished == [False, True]
    packed = zip_files({"in/a.toy": b"toy", "b.toy": b"broken"})
    done = wait(
        service, service.post("/jobs", {"archive": ("m.zip", packed)}, {"kind": "convert", "target": "toy"}).json()
    )
    assert done["result"]["name"] == "m-converted.zip"
    answer = service.get(done["result"]["url"])
    assert (answer.headers["x-meshhub-converted"], answer.headers["x-meshhub-failed"]) == ("1", "1")


@pytest.mark.parametrize(
    ("fields", "files", "code"),
    [
        ({}, {"file": TOY}, "missing_field"),
        ({"kind": "paint", "target": "toy"}, {"file": TOY}, "invalid_option"),
        ({"kind": "convert"}, {"file": TOY}, "missing_field"),
        ({"kind": "convert", "target": "toy", "toy_size": "-1"}, {"file": TOY}, "invalid_option"),
        ({"kind": "convert", "target": "gilded"}, {"file": TOY}, "premium_format_required"),
        ({"kind": "inspect"}, {"files": TOY}, "missing_field"),
        ({"kind": "check"}, {"files": TOY}, "missing_field"),
        ({"kind": "check"}, {"archive": TOY}, "missing_field"),
        ({"kind": "combine", "target": "toy"}, {"file": TOY}, "missing_field"),
        ({"kind": "combine", "target": "toy"}, {"archive": TOY}, "missing_field"),
        ({"kind": "combine", "target": "toy"}, {"stray": TOY}, "missing_field"),
        ({"kind": "combine"}, {"files": TOY}, "missing_field"),
        ({"kind": "combine", "target": "toy", "file_options": '{"0": {}}'}, {"files": TOY}, "invalid_option"),
        ({"kind": "combine", "target": "gilded"}, {"files": TOY}, "premium_format_required"),
        ({"kind": "check", "checks": "paint"}, {"file": TOY}, "invalid_option"),
        ({"kind": "check", "file_options": '{"0": {}}'}, {"file": TOY}, "invalid_option"),
        ({"kind": "convert", "target": "toy", "checks": "mesh"}, {"file": TOY}, "invalid_option"),
        ({"kind": "convert", "target": "toy"}, {"stray": TOY}, "missing_field"),
        ({"kind": "convert", "target": "toy", "file_options": '{"5": {}}'}, {"files": TOY}, "invalid_option"),
        ({"kind": "convert", "target": "toy", "webhook_url": "https://example.com"}, {"file": TOY}, "plan_required"),
    ],
)
def test_a_wrong_form_is_rejected_at_once(service: Running, fields: Any, files: Any, code: str) -> None:
    answer = service.post("/jobs", files, fields)
    assert answer.json()["error_code"] == code


def test_a_failed_job_has_the_error_of_its_conversion(service: Running) -> None:
    job = submit(service, b"nothing")
    failed = wait(service, job, "failed")
    assert failed["error_code"] == "unreadable_file"
    assert failed["result"] is None
    error = check_error(service.get(f"/jobs/{job['id']}/result"), 422, "unreadable_file")
    assert error["error"] == failed["error"]


def test_parts_of_a_result_and_its_etag(service: Running) -> None:
    done = wait(service, submit(service, toy_weight="3000000"))
    url = done["result"]["url"]
    whole = service.get(url)
    etag = whole.headers["etag"]
    assert whole.headers["accept-ranges"] == "bytes"
    for header, start, end in (("bytes=0-3", 0, 4), ("bytes=2000000-", 2_000_000, None), ("bytes=-5", -5, None)):
        part = service.get(url, headers={"Range": header})
        assert part.status_code == 206
        assert part.content == whole.content[start:end]
        assert part.headers["content-range"].endswith(f"/{len(whole.content)}")
    assert service.get(url, headers={"Range": "bytes=0-3", "If-Range": '"old"'}).content == whole.content
    # RFC 9110 §14.2: a server ignores other units, and may ignore several ranges
    for header in ("items=0-3", "bytes=-", "bytes=0-1,4-5", f"bytes=0-{'9' * 5000}"):
        ignored = service.get(url, headers={"Range": header})
        assert (ignored.status_code, ignored.content) == (200, whole.content)
    for tags in (etag, f"W/{etag}", "*"):
        assert service.get(url, headers={"If-None-Match": tags}).status_code == 304
    error = service.get(url, headers={"Range": "bytes=99999999-"})
    check_error(error, 416, "range_not_satisfiable")
    assert error.headers["content-range"] == f"bytes */{len(whole.content)}"
    assert service.client.head(url, headers={"If-None-Match": etag}).status_code == 304


def test_head_of_a_result_does_not_read_it(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    done = wait(service, submit(service, toy_weight="3000000"))
    read, sizes = LocalJobFiles.read_result, []

    def read_and_count(self: LocalJobFiles, job_id: str, token: str, start: int, size: int) -> bytes:
        sizes.append(size)
        return read(self, job_id, token, start, size)

    monkeypatch.setattr(LocalJobFiles, "read_result", read_and_count)
    for headers in ({}, {"Range": "bytes=0-99"}):
        head = service.client.head(done["result"]["url"], headers=headers)
        assert (head.status_code, head.content) == (200, b"")
        assert int(head.headers["content-length"]) == done["result"]["bytes"] > 3_000_000
    assert sum(sizes) < 10
    service.client.delete(f"/jobs/{done['id']}")
    assert service.client.head(done["result"]["url"]).status_code == 410


def test_events_report_every_state_and_end(isolated: Running, tmp_path: Path) -> None:
    path = tmp_path / "go"
    job = submit(isolated, f"toy wait {path}".encode())
    events = read_events(isolated, job)
    states = []
    for event in events:
        states.append(event["state"])
        if event["progress"] is not None:
            assert (event["progress"]["step"], event["progress"]["index"], event["progress"]["count"]) == ("toy", 0, 2)
            path.touch()
            break
    rest = list(events)
    assert rest[-1]["state"] == "done"
    assert rest[-1] == show(isolated, job)
    assert set(states) <= {"queued", "running"}
    # a stream of a finished job has one event
    assert [event["state"] for event in read_events(isolated, job)] == ["done"]


def test_an_event_stream_ends_when_its_key_is_revoked(
    serve: Callable[..., Running], engine: Isolated, tmp_path: Path
) -> None:
    running = serve(engine, plan_limits={"pro": {"job_timeout_seconds": 20}})
    key, record = running.keys.create("pro")
    headers, path = {"X-Api-Key": key}, tmp_path / "go"
    job = submit(running, f"toy wait {path}".encode(), headers)
    with running.client.stream("GET", f"/jobs/{job['id']}/events", headers=headers) as stream:
        lines = stream.iter_lines()
        assert next(lines).startswith("data: ")
        running.keys.revoke(record.id)
        assert '"failed"' not in "".join(lines)
    path.touch()


def test_an_event_stream_ends_when_the_client_closes_its_side(isolated: Running, tmp_path: Path) -> None:
    path = tmp_path / "go"
    job = submit(isolated, f"toy wait {path}".encode())
    with socket.create_connection(("127.0.0.1", isolated.port), timeout=300) as connection:
        connection.sendall(f"GET /jobs/{job['id']}/events HTTP/1.1\r\nHost: here\r\n\r\n".encode())
        data = b""
        while b'data: {"id":"' not in data:
            data += connection.recv(65_536)
        connection.shutdown(socket.SHUT_WR)
        data += receive_all(connection)
    assert b'"failed"' not in data
    path.touch()
    wait(isolated, job)


def test_head_of_an_event_stream_ends(isolated: Running, tmp_path: Path) -> None:
    path = tmp_path / "go"
    job = submit(isolated, f"toy wait {path}".encode())
    assert isolated.client.head(f"/jobs/{job['id']}/events").status_code == 200
    path.touch()
    wait(isolated, job)


def test_a_canceled_job_ends_its_process(isolated: Running, tmp_path: Path) -> None:
    path = tmp_path / "never"
    job = submit(isolated, f"toy wait {path}".encode())
    wait_for_start(path)
    check_error(isolated.get(f"/jobs/{job['id']}/result"), 409, "job_not_finished")
    canceled = isolated.client.delete(f"/jobs/{job['id']}").json()
    assert canceled["state"] == "canceled"
    (process,) = (int(file.suffix[1:]) for file in tmp_path.glob("never.*"))
    wait_until(lambda: not Path(f"/proc/{process}").exists())
    assert show(isolated, job)["state"] == "canceled"
    check_error(isolated.get(f"/jobs/{job['id']}/result"), 410, "no_result")
    # its slot is free
    wait(isolated, submit(isolated))
    wait_until(lambda: not any((isolated.temporary.parent / "jobs" / "in").iterdir()))
    # what it used is in the ledger
    with contextlib.closing(SqliteJobStore(isolated.temporary.parent / "jobs" / "jobs.sqlite3")) as store:
        wait_until(lambda: all(0 < row.cpu_seconds < 60 for row in store.list_usage()))
        assert "canceled" in {row.state for row in store.list_usage() if row.job_id == job["id"]}


def test_a_run_without_its_inputs_is_no_failure_of_a_canceled_job(
    service: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    started, canceled = threading.Event(), threading.Event()
    fetch = LocalJobFiles.fetch_inputs

    def fetch_late(*arguments: Any) -> list[Path]:
        started.set()
        assert canceled.wait(60)
        return fetch(*arguments)

    monkeypatch.setattr(LocalJobFiles, "fetch_inputs", fetch_late)
    job = submit(service)
    assert started.wait(60)
    assert service.client.delete(f"/jobs/{job['id']}").json()["state"] == "canceled"
    canceled.set()
    # the slot is free again, so the run has ended
    wait(service, submit(service))
    assert show(service, job)["state"] == "canceled"
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


def test_a_queued_job_is_canceled_and_never_runs(serve: Callable[..., Running], tmp_path: Path) -> None:
    running = serve(workers=1)
    path = tmp_path / "go"
    first = submit(running, f"toy wait {path}".encode())
    wait_for_start(path)
    second, third = submit(running), submit(running)
    assert show(running, third)["position"] == 2
    assert running.client.delete(f"/jobs/{second['id']}").json()["state"] == "canceled"
    assert show(running, third)["position"] == 1
    path.touch()
    wait(running, first)
    wait(running, third)
    assert show(running, second)["started"] is None


def test_deleting_a_finished_job_removes_its_result(service: Running) -> None:
    job = wait(service, submit(service))
    assert service.client.delete(f"/jobs/{job['id']}").json()["state"] == "expired"
    check_error(service.get(f"/jobs/{job['id']}/result"), 410, "no_result")
    assert not list((service.temporary.parent / "jobs" / "out").glob(f"{job['id']}/*"))


def test_an_idempotency_key_submits_once(service: Running) -> None:
    headers = {"Idempotency-Key": "order 7"}
    first, second = submit(service, headers=headers), submit(service, headers=headers)
    assert first["id"] == second["id"]
    answer = service.post(
        "/jobs", {"file": ("my toy.toy", b"toy broken")}, {"kind": "convert", "target": "toy"}, headers=headers
    )
    check_error(answer, 409, "idempotency_conflict")
    answer = service.post(
        "/jobs", {"file": TOY}, {"kind": "convert", "target": "toy"}, headers={"Idempotency-Key": "x" * 256}
    )
    check_error(answer, 400, "bad_request")


def test_a_job_of_a_key_needs_the_key(service: Running, pro: dict[str, str]) -> None:
    job = submit(service, headers=pro)
    wait(service, job, headers=pro)
    for request in (service.client.get, service.client.delete):
        check_error(request(f"/jobs/{job['id']}"), 404, "job_not_found")
    other, _ = service.keys.create("pro")
    check_error(service.get(f"/jobs/{job['id']}/result", headers={"X-Api-Key": other}), 404, "job_not_found")
    check_error(service.get("/jobs/" + "x" * 43), 404, "job_not_found")
    # the id of a job without a key is enough
    free = submit(service)
    wait(service, free, headers=pro)


def test_jobs_are_listed_by_key(serve: Callable[..., Running]) -> None:
    running = serve()
    key, _ = running.keys.create("pro")
    headers = {"X-Api-Key": key}
    jobs = [submit(running, headers=headers)["id"] for _ in range(3)]
    submit(running)
    first = running.get("/jobs?limit=2", headers=headers).json()
    assert [job["id"] for job in first["jobs"]] == jobs[:0:-1]
    rest = running.get(f"/jobs?limit=2&before={first['next']}", headers=headers).json()
    assert [job["id"] for job in rest["jobs"]] == jobs[:1]
    assert rest["next"] is None
    check_error(running.get("/jobs"), 403, "plan_required")
    for limit in ("x", "0", "101", "000000001" + 9 * "0", "1" * 5000):
        check_error(running.get(f"/jobs?limit={limit}", headers=headers), 400, "invalid_option")


def test_a_caller_has_a_limit_of_unfinished_jobs(serve: Callable[..., Running], tmp_path: Path) -> None:
    running = serve(workers=1)
    path = tmp_path / "go"
    jobs = [submit(running, f"toy wait {path}".encode()) for _ in range(5)]
    answer = running.post("/jobs", {"file": TOY}, {"kind": "convert", "target": "toy"})
    check_error(answer, 429, "too_many_jobs")
    path.touch()
    for job in jobs:
        wait(running, job)
    submit(running)


def test_a_full_queue_answers_busy(serve: Callable[..., Running], tmp_path: Path) -> None:
    running = serve(workers=1, job_queue=1)
    path = tmp_path / "go"
    first = submit(running, f"toy wait {path}".encode())
    wait_for_start(path)
    submit(running)
    answer = running.post("/jobs", {"file": TOY}, {"kind": "convert", "target": "toy"})
    check_error(answer, 503, "server_busy")
    assert answer.headers["retry-after"] == "5"
    path.touch()
    wait(running, first)


def test_a_full_disk_answers_busy(serve: Callable[..., Running]) -> None:
    running = serve(keep_free_bytes=1 << 60)
    answer = running.post("/jobs", {"file": TOY}, {"kind": "convert", "target": "toy"})
    check_error(answer, 503, "server_busy")
    assert "retry-after" in answer.headers


def test_a_disk_that_fills_up_keeps_no_files(
    serve: Callable[..., Running], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    running = serve(jobs_folder=str(tmp_path / "jobs"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        answer = running.post("/jobs", {"file": TOY}, {"kind": "convert", "target": "toy"})
    check_error(answer, 503, "server_busy")
    assert os.listdir(tmp_path / "jobs" / "in") == []


def test_questions_about_jobs_have_a_rate_limit_of_their_own(serve: Callable[..., Running]) -> None:
    limits = {"free": {"requests_per_minute": 2, "job_requests_per_minute": 3}}
    running = serve(plan_limits=limits)
    job = submit(running)
    for _ in range(3):
        assert running.get(f"/jobs/{job['id']}").headers["ratelimit-limit"] == "3"
    check_error(running.get(f"/jobs/{job['id']}"), 429, "rate_limit_exceeded")
    assert running.get("/plan").status_code == 200


def test_results_are_deleted_after_the_retention(
    serve: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "SWEEP_S", 0.1)
    monkeypatch.setattr(sweeping, "LEASE_S", 0.5)
    running = serve(plan_limits={"free": {**GENEROUS["free"], "job_retention_seconds": 1}})
    job = wait(running, submit(running))
    wait_until(lambda: show(running, job)["state"] == "expired")
    check_error(running.get(f"/jobs/{job['id']}/result"), 410, "no_result")
    wait_until(lambda: not any((running.temporary.parent / "jobs" / "out").iterdir()))
    assert show(running, job)["files"] == []


def test_the_deadline_of_a_job_is_that_of_its_plan(
    serve: Callable[..., Running], engine: Isolated, tmp_path: Path
) -> None:
    free = {**GENEROUS["free"], "conversion_timeout_seconds": 60, "job_timeout_seconds": 1}
    running = serve(engine, plan_limits={"free": free})
    failed = wait(running, submit(running, f"toy wait {tmp_path / 'never'}".encode()), "failed")
    assert failed["error_code"] == "conversion_timeout"


def test_a_big_caller_does_not_delay_small_ones(serve: Callable[..., Running], tmp_path: Path) -> None:
    running = serve(workers=1)
    big, _ = running.keys.create("pro")
    small = [running.keys.create("pro")[0] for _ in range(5)]
    path = tmp_path / "go"
    jobs = [submit(running, content, {"X-Api-Key": big}) for content in (f"toy wait {path}".encode(), *[b"toy"] * 20)]
    latest = [submit(running, headers={"X-Api-Key": key}) for key in small]
    path.touch()
    small_starts = [
        wait(running, job, headers={"X-Api-Key": key})["started"] for key, job in zip(small, latest, strict=True)
    ]
    big_starts = sorted(wait(running, job, headers={"X-Api-Key": big})["started"] for job in jobs)
    assert max(small_starts) < big_starts[-10]


def test_event_streams_end_when_the_service_stops(tmp_path: Path) -> None:
    path = tmp_path / "never"
    # the service closes the engine of a conversion that does not end
    with (
        contextlib.closing(Isolated(workers=2)) as engine,
        serving(tmp_path, {"shutdown_seconds": 0.5}, engine) as running,
    ):
        job = submit(running, f"toy wait {path}".encode())
        wait_for_start(path)
        events = read_events(running, job)
        assert next(events)["state"] == "running"
        running.server.should_exit = True
        with contextlib.suppress(httpx.RemoteProtocolError):
            assert all(event["state"] in ("queued", "running") for event in events)


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[Callable[[], tuple[Any, httpx.Client]]]:
    """Start the same server again and again; each time return its process and a client."""
    processes: list[subprocess.Popen[bytes]] = []

    def start() -> tuple[Any, httpx.Client]:
        (tmp_path / "port").unlink(missing_ok=True)
        script = Path(__file__).parents[1] / "support" / "job_server.py"
        processes.append(subprocess.Popen([sys.executable, str(script), str(tmp_path)]))
        wait_until(lambda: (tmp_path / "port").exists() and (tmp_path / "port").read_text() != "")
        return processes[-1], httpx.Client(base_url=f"http://127.0.0.1:{(tmp_path / 'port').read_text()}", timeout=300)

    yield start
    for process in processes:
        process.kill()
        process.wait()


@pytest.mark.large
def test_jobs_survive_the_kill_of_the_server(
    start_server: Callable[[], tuple[Any, httpx.Client]], tmp_path: Path
) -> None:
    process, client = start_server()
    path = tmp_path / "go"
    fields = {"kind": "convert", "target": "toy"}
    contents = [f"toy wait {path}".encode()] * 2 + [b"toy"] * 3
    with client:
        jobs = [client.post("/jobs", files={"file": ("a.toy", text)}, data=fields).json()["id"] for text in contents]
        wait_until(lambda: len(list(tmp_path.glob("go.*"))) == 2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    workers = [int(file.suffix[1:]) for file in tmp_path.glob("go.*")]
    wait_until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))
    path.touch()
    _, client = start_server()
    with client:
        wait_until(lambda: all(client.get(f"/jobs/{job}").json()["state"] == "done" for job in jobs))
        attempts = [client.get(f"/jobs/{job}").json()["attempt"] for job in jobs]
        assert attempts == [2, 2, 1, 1, 1]
        for job in jobs:
            assert client.get(f"/jobs/{job}/result").status_code == 200
    store = SqliteJobStore(tmp_path / "jobs" / "jobs.sqlite3")
    # none is lost, none is billed twice
    usage = store.list_usage()
    assert sorted(row.job_id for row in usage) == sorted(jobs)
    assert all(0 < row.cpu_seconds < 60 for row in usage)
    store.close()
    assert not any((tmp_path / "jobs" / "in").iterdir())
    assert sorted(folder.name for folder in (tmp_path / "jobs" / "out").iterdir()) == sorted(jobs)
    assert all(len(list(folder.iterdir())) == 1 for folder in (tmp_path / "jobs" / "out").iterdir())
    wait_until(lambda: not any((tmp_path / "jobs" / "work").iterdir()))


def test_a_running_job_returns_to_the_queue_when_the_service_stops(tmp_path: Path) -> None:
    path = tmp_path / "go"
    settings = {"workers": 1, "shutdown_seconds": 0.2}
    with contextlib.closing(Isolated(workers=2)) as engine, serving(tmp_path, settings, engine) as running:
        job = submit(running, f"toy wait {path}".encode())
        wait_for_start(path)
    path.touch()
    with serving(tmp_path, settings) as running:
        assert wait(running, job)["attempt"] == 1


def test_logs_and_metrics_do_not_have_the_ids_of_jobs(service: Running, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "meshhub")
    job = wait(service, submit(service))
    wait_until(lambda: "GET /jobs/{job_id} 200" in caplog.text)
    assert job["id"] not in caplog.text
    metrics = service.get("/metrics").text
    assert 'endpoint="/jobs/{job_id}"' in metrics
    assert job["id"] not in metrics
