"""`/metrics`, and logs as JSON."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from test_http_errors import RaisingEngine

import service_plugins
from http_serving import Running, check_error, serving
from meshhub.engine.isolated import Isolated
from meshhub.engine.logs import FIELDS, JsonLines
from meshhub.errors import ConversionTimeout
from meshhub.service.settings import Settings
from waiting import wait_until

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
METRICS_PAGE = ROOT / "docs" / "reference" / "metrics.md"


def read_samples(running: Running) -> dict[tuple[str, ...], float]:
    """Return all samples by name and label values, in the order of the label names."""
    answer = running.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_conversions_are_counted_by_outcome(serve: Callable[..., Running]) -> None:
    running = serve()
    for _ in range(2):
        assert running.convert().status_code == 200
    running.convert(b"toy broken")
    running.convert(b"no toy", name="a.toy")
    running.post("/inspect", {"file": ("a.toy", b"toy")})
    running.many(("a.toy", b"toy"), ("b.toy", b"toy empty"))
    samples = read_samples(running)
    count = "meshhub_conversions_total"
    assert samples[count, "ok", "toy", "toy"] == 3
    assert samples[count, "conversion_failed", "toy", "toy"] == 1
    assert samples[count, "unreadable_file", "toy", "toy"] == 1
    assert samples[count, "empty_model", "toy", "toy"] == 1
    assert samples[count, "ok", "toy", "none"] == 1
    assert samples["meshhub_conversion_seconds_count", "toy", "toy"] == 6
    assert samples["meshhub_requests_total", "/convert", "200"] == 2
    assert samples["meshhub_requests_total", "/convert", "422"] == 2
    assert samples["meshhub_workers_busy",] == samples["meshhub_queue_depth",] == 0
    assert samples["meshhub_workers",] == Settings().worker_count


@pytest.mark.parametrize("path", ["/convert", "/inspect", "/render"])
def test_a_request_with_an_invalid_option_never_takes_a_worker(serve: Callable[..., Running], path: str) -> None:
    running = serve()
    target = {"target": "toy"} if path == "/convert" else {}
    answer = running.post(path, {"file": ("a.toy", b"toy")}, {"input_unit": "parsec", **target})
    check_error(answer, 400, "invalid_option")
    assert not [labels for labels in read_samples(running) if labels[0].startswith("meshhub_conversion")]


def test_bytes_are_counted(serve: Callable[..., Running]) -> None:
    running = serve()
    before = read_samples(running)
    answer = running.convert(b"toy" + b" " * 100_000, toy_weight=200_000)
    assert answer.status_code == 200
    after = read_samples(running)
    bytes_in, bytes_out = (
        after["meshhub_bytes_total", way] - before["meshhub_bytes_total", way] for way in ("in", "out")
    )
    assert 100_000 < bytes_in < 102_000
    assert 200_000 < bytes_out < 220_000


def test_callers_cannot_add_label_values(serve: Callable[..., Running]) -> None:
    running = serve()
    before = len(read_samples(running))
    for number in range(10):
        running.get(f"/made-up-{number}")
        running.convert(target=f"made-up-{number}")
        running.convert(name=f"a.x{number}", content=b"?")
        running.client.request(f"MADE{number}", "/plan")
    samples = read_samples(running)
    assert samples["meshhub_requests_total", "other", "404"] == 10
    assert len(samples) < before + 60
    assert "made-up" not in running.get("/metrics").text


def test_kills_are_counted_by_kind(serve: Callable[..., Running], engine: Isolated) -> None:
    running = serve(engine, plan_limits={"free": {"conversion_timeout_seconds": 1, "requests_per_minute": 1000}})
    kinds = ("timeout", "crash", "client_gone", "shutdown")
    assert [read_samples(running)["meshhub_kills_total", kind] for kind in kinds] == [0, 0, 0, 0]
    check_error(running.convert(b"toy crash"), 422, "worker_crashed")
    check_error(running.convert(b"toy hang"), 504, "conversion_timeout")
    assert [read_samples(running)["meshhub_kills_total", kind] for kind in kinds] == [1, 1, 0, 0]


def test_metrics_are_not_counted_as_requests_of_a_caller(serve: Callable[..., Running]) -> None:
    running = serve(plan_limits={"free": {"requests_per_minute": 1}})
    assert {running.get("/metrics").status_code for _ in range(5)} == {200}
    assert "ratelimit-limit" not in running.get("/metrics").headers
    assert running.client.head("/metrics").status_code == 200


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"])
def test_proxied_requests_for_metrics_are_rejected(serve: Callable[..., Running], header: str) -> None:
    """A proxy on this machine forwards requests of others."""
    check_error(serve().get("/metrics", headers={header: "127.0.0.1"}), 404, "not_found")


def test_metrics_can_be_public_or_disabled(serve: Callable[..., Running]) -> None:
    assert serve(metrics="everyone").get("/metrics", headers={"X-Forwarded-For": "9.9.9.9"}).status_code == 200
    check_error(serve(metrics="off").get("/metrics"), 404, "not_found")


def test_every_metric_is_documented(service: Running) -> None:
    text = METRICS_PAGE.read_text(encoding="utf-8")
    service.convert()
    names = {key[0] for key in read_samples(service) if key[0].startswith("meshhub_")}
    families = {re.sub(r"_(created|count|sum|bucket)$", "", name) for name in names}
    families = {name if f"{name}_total" not in families else f"{name}_total" for name in families}
    assert families
    for name in families:
        assert f"`{name}`" in text


def test_json_logs_omit_the_text_of_exceptions() -> None:
    try:
        float("a secret of the file")
    except ValueError:
        record = logging.getLogger("meshhub.x").makeRecord(
            "meshhub.x", logging.ERROR, __file__, 1, "it %s", ("broke",), sys.exc_info(), extra={FIELDS: {"status": 5}}
        )
    line = JsonLines().format(record)
    assert "secret" not in line
    assert "\n" not in line
    payload = json.loads(line)
    assert (payload["level"], payload["message"], payload["status"]) == ("error", "it broke", 5)
    assert payload["exception"] == "ValueError"
    assert "test_http_metrics.py" in payload["raised_at"][-1]


@pytest.mark.large
def test_a_server_that_logs_json(tmp_path: Path) -> None:
    environment: dict[str, Any] = {
        **os.environ,
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "MESHHUB_TEMPORARY_FOLDER": str(tmp_path),
        "MESHHUB_WORKERS": "1",
        "MESHHUB_LOG": "json",
    }
    command = [sys.executable, "-m", "meshhub", "serve", "--port", "0"]
    key = "mh_aaaaaaaaaaaa_" + "verysecret" * 4
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stderr is not None
        try:
            first = json.loads(process.stderr.readline())
            match = re.search(r"http://127\.0\.0\.1:\d+", first["message"])
            assert match is not None
            with httpx.Client(base_url=match[0], timeout=300, headers={"X-Request-ID": "my-own"}) as client:
                files = {"file": ("private-name.stl", b"solid private-content\nendsolid")}
                assert client.post("/convert", files=files, data={"target": "ply"}).status_code == 422
                assert client.get("/plan", headers={"X-Api-Key": key}).status_code == 401
        finally:
            process.send_signal(signal.SIGTERM)
            rest = process.stderr.read()
            process.wait(300)
    assert "private" not in rest
    assert "verysecret" not in rest
    lines = [json.loads(line) for line in rest.splitlines()]
    payload = {line["path"]: line for line in lines if "path" in line}
    assert payload["/convert"]["status"] == 422
    assert payload["/convert"]["error_code"] in ("empty_model", "unreadable_file")
    assert payload["/convert"]["bytes_in"] > 30
    assert {payload["/convert"]["request_id"], payload["/plan"]["request_id"]} == {"my-own"}


def test_a_rejected_request_is_one_log_line(serve: Callable[..., Running], caplog: pytest.LogCaptureFixture) -> None:
    running = serve(keep_free_bytes=1 << 60)
    with caplog.at_level(logging.INFO, logger="meshhub"):
        check_error(running.convert(headers={"X-Request-ID": "told-once"}), 503, "server_busy")
        wait_until(lambda: any("/convert" in record.getMessage() for record in caplog.records))
    (record,) = [
        record for record in caplog.records if "server_busy" in record.getMessage() or "disk" in record.getMessage()
    ]
    assert record.levelno == logging.WARNING
    assert "disk" in record.getMessage()
    payload = json.loads(JsonLines().format(record))
    assert (payload["error_code"], payload["status"], payload["path"]) == ("server_busy", 503, "/convert")
    assert "disk" in payload["reason"]


def test_a_failed_batch_is_logged_without_file_names(
    serve: Callable[..., Running], caplog: pytest.LogCaptureFixture
) -> None:
    running = serve(RaisingEngine(ConversionTimeout("late")))
    with caplog.at_level(logging.INFO, logger="meshhub"):
        check_error(running.many(("private.toy", b"toy")), 504, "conversion_timeout")
        wait_until(lambda: "/convert-many" in caplog.text)
    assert "private" not in caplog.text


WORKING = """
import service_plugins
from meshhub import MeshhubError, Registry
from meshhub.engine.isolated import Isolated
from meshhub.engine.logs import REQUEST
from meshhub.model.source import Source, Target

for kind in ("json", "text"):
    engine = Isolated(workers=1, log=kind)
    registry = Registry(plugins=[service_plugins], entry_points=False, engine=engine)
    REQUEST.set(f"of-{kind}")
    try:
        registry.convert(Source.from_bytes(b"toy fault", "a.toy"), Target(), target="toy")
    except MeshhubError:
        pass
    engine.close()
"""


def test_log_lines_of_a_worker_have_the_request_id() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(service_plugins.__file__).parent)}
    result = subprocess.run(
        [sys.executable, "-c", WORKING], env=environment, capture_output=True, text=True, check=True
    )
    lines = result.stderr.splitlines()
    (payload,) = [json.loads(line) for line in lines if "of-json" in line]
    assert (payload["request_id"], payload["exception"]) == ("of-json", "KeyError")
    assert "secret" not in str(payload)
    assert [line for line in lines if line.endswith("request=of-text")]


def test_metrics_show_busy_workers_and_the_queue(
    serve: Callable[..., Running], engine: Isolated, tmp_path: Path
) -> None:
    from concurrent.futures import ThreadPoolExecutor

    running = serve(engine, workers=1)
    go = tmp_path / "go"
    with ThreadPoolExecutor(2) as threads:
        both = [threads.submit(running.convert, f"toy wait {go}".encode()) for _ in range(2)]
        wait_until(lambda: read_samples(running)["meshhub_queue_depth",] == 1)
        assert read_samples(running)["meshhub_workers_busy",] == 1
        go.write_text("go")
        assert [request.result().status_code for request in both] == [200, 200]
    assert read_samples(running)["meshhub_workers_busy",] == 0


def test_an_unusable_database_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The log has it at the start and for each rejected request; the answers do not name the database."""
    (tmp_path / "keys.sqlite3").write_bytes(b"this is no database" * 100)
    with caplog.at_level(logging.INFO, logger="meshhub"), serving(tmp_path, {}) as running:
        wait_until(lambda: "callers with a key get 503" in caplog.text)
        caplog.clear()
        key = {"X-Api-Key": "mh_aaaaaaaaaaaa_" + "x" * 43}
        assert "keys.sqlite3" not in check_error(running.get("/plan", headers=key), 503, "server_busy")["error"]
        wait_until(lambda: "/plan" in caplog.text)
        (record,) = [record for record in caplog.records if record.name.startswith("meshhub")]
        assert "keys.sqlite3" in record.getMessage()
        assert running.get("/plan").status_code == 200
