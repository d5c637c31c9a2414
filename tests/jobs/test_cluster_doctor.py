"""`meshhub doctor` and `meshhub usage` with the settings of a cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from job_stores import new_job
from meshhub.cli import diagnosis, root
from meshhub.service.jobs.job import Outcome, WorkerNode
from meshhub.service.jobs.postgres import PostgresJobStore
from postgres_schemas import URL, temporary_schema

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(not URL, reason="MESHHUB_TEST_POSTGRES_URL names no PostgreSQL"),
]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresJobStore]:
    with temporary_schema() as url:
        monkeypatch.setenv("MESHHUB_JOBS_DATABASE_URL", url)
        monkeypatch.setenv("MESHHUB_JOBS_FOLDER", str(tmp_path / "jobs"))
        store = PostgresJobStore(url)
        yield store
        store.close()


def find_check(name: str) -> Any:
    checks = {check.name: check for check in diagnosis._check_cluster()}
    return checks[name]


def test_the_doctor_counts_jobs_and_workers(store: PostgresJobStore) -> None:
    store.submit(new_job(), max_queued=10)
    check = find_check("cluster")
    assert (check.status, check.message) == ("warning", "1 job queued, 0 running; 0 workers")
    assert "meshhub work" in check.remedy
    store.announce(WorkerNode("a", 3, 1 << 30))
    check = find_check("cluster")
    assert (check.status, check.message) == ("ok", "1 job queued, 0 running; 1 worker with 3 slots")
    assert find_check("job files").status == "ok"


def test_the_doctor_reports_an_unreachable_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MESHHUB_JOBS_DATABASE_URL", "postgresql://user:secret-word@127.0.0.1:1/jobs")
    check = find_check("cluster")
    assert check.status == "warning"
    assert "cannot be used" in check.message
    assert "secret-word" not in check.message


def test_the_usage_of_a_cluster_is_exported(store: PostgresJobStore) -> None:
    store.announce(WorkerNode("a", 1, 8 << 30))
    job, _ = store.submit(new_job(), max_queued=10)
    (placement,) = store.place_jobs()
    running = store.claim_placed(placement.worker, job.id)
    assert running is not None
    store.finish(job.id, running.token or "", Outcome(error_code="empty_model", error="no model", cpu_seconds=2.5))
    result = CliRunner().invoke(root, ["usage", "export", "--json"])
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)
    assert "2.5" in json.dumps(rows)
    assert job.id in json.dumps(rows)
