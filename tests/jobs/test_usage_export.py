"""`meshhub usage export`."""

from __future__ import annotations

import contextlib
import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from job_stores import Clock, new_job
from meshhub.cli import root
from meshhub.service.jobs.job import JobResult, Outcome
from meshhub.service.jobs.postgres import PostgresJobStore
from meshhub.service.jobs.sqlite import SqliteJobStore
from postgres_schemas import URL, temporary_schema

pytestmark = pytest.mark.once

DAY_S = 86_400.0


def export(*arguments: str) -> Any:
    result = CliRunner().invoke(root, ["usage", "export", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the command read the jobs of an empty folder."""
    monkeypatch.setenv("MESHHUB_JOBS_FOLDER", str(tmp_path / "jobs"))
    monkeypatch.delenv("MESHHUB_SETTINGS", raising=False)
    return tmp_path / "jobs"


@pytest.fixture
def ledger(folder: Path) -> list[str]:
    """Finish a job of a key, one of another key a day later, and one without a key; return their ids."""
    clock = Clock()
    clock.now = 1_790_812_800.0  # 2026-10-01
    store = SqliteJobStore(folder / "jobs.sqlite3", clock=clock)
    ids = []
    for caller in ("key:mh_a", "key:mh_b", "ip:192.0.2.1"):
        job, _ = store.submit(new_job(caller), max_queued=10)
        running = store.claim("worker")
        assert running is not None and running.token is not None
        result = JobResult(name="a.3mf", media_type="model/3mf", bytes=7, sha256="0" * 64)
        assert store.finish(job.id, running.token, Outcome(result=result, cpu_seconds=1.5))
        ids.append(job.id)
        clock.now += DAY_S
    store.close()
    return ids


def test_an_export_has_a_row_for_each_job(ledger: list[str]) -> None:
    rows = list(csv.DictReader(io.StringIO(export())))
    assert [row["key_id"] for row in rows] == ["mh_a", "mh_b", ""]
    # the id of a job without a key gives access to its result
    assert [row["job_id"] for row in rows] == [*ledger[:2], ""]
    assert rows[0]["finished"] == "2026-10-01T00:00:00.000+00:00"
    values = {name: rows[0][name] for name in ("plan", "state", "attempts", "bytes_in", "bytes_out", "cpu_seconds")}
    assert values == {
        "plan": "pro", "state": "done", "attempts": "1", "bytes_in": "100", "bytes_out": "7", "cpu_seconds": "1.5",
    }  # fmt: skip
    assert [row["caller"] for row in json.loads(export("--json"))] == ["key:mh_a", "key:mh_b", "ip:192.0.2.1"]


@pytest.mark.parametrize(
    ("arguments", "keys"),
    [
        (("--since", "2026-10-02"), ["mh_b", ""]),
        (("--until", "2026-10-02"), ["mh_a"]),
        (("--since", "2026-10-01T00:00:01", "--until", "2026-10-03"), ["mh_b"]),
        (("--key", "mh_a"), ["mh_a"]),
        (("--key", "mh_c"), []),
    ],
)
def test_an_export_is_limited_to_times_and_a_key(
    ledger: list[str], arguments: tuple[str, ...], keys: list[str]
) -> None:
    assert [row["key_id"] for row in json.loads(export("--json", *arguments))] == keys


def test_a_service_without_jobs_has_an_empty_export(folder: Path) -> None:
    assert export().count("\n") == 1
    assert json.loads(export("--json")) == []
    assert not folder.exists()


@pytest.mark.skipif(not URL, reason="MESHHUB_TEST_POSTGRES_URL names no PostgreSQL")
def test_an_export_reads_postgres(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with temporary_schema() as url, contextlib.closing(PostgresJobStore(url)) as store:
        monkeypatch.setenv("MESHHUB_JOBS_DATABASE_URL", url)
        assert json.loads(export("--json")) == []
        job, _ = store.submit(new_job(), max_queued=10)
        running = store.claim("worker")
        assert running is not None and running.token is not None
        assert store.finish(job.id, running.token, Outcome(error_code="empty_model", error="it is empty"))
        (row,) = json.loads(export("--json", "--key", "mh_a"))
        assert (row["job_id"], row["state"], row["bytes_out"]) == (job.id, "failed", 0)


def test_a_malformed_time_is_rejected(folder: Path) -> None:
    assert CliRunner().invoke(root, ["usage", "export", "--since", "yesterday"]).exit_code == 2
