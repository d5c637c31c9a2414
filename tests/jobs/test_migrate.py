"""`meshhub migrate`: the tables of jobs and API keys, in SQLite and in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sql
from click.testing import CliRunner

from meshhub.cli import root
from meshhub.errors import JobStoreUnavailable
from postgres_schemas import URL, temporary_schema

pytestmark = pytest.mark.once

JOB_TABLES = {"jobs", "job_callers", "job_usage", "job_webhooks", "job_workers", "job_schema"}
KEY_TABLES = {"api_keys", "webhook_secrets"}


@pytest.fixture(params=["sqlite", "postgresql"])
def urls(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, str]]:
    """Set the databases; return those of jobs and keys."""
    keys = f"sqlite:///{tmp_path / 'keys.sqlite3'}"
    monkeypatch.setenv("MESHHUB_DATABASE_URL", keys)
    if request.param == "sqlite":
        monkeypatch.setenv("MESHHUB_JOBS_FOLDER", str(tmp_path / "jobs"))
        yield f"sqlite:///{tmp_path / 'jobs' / 'jobs.sqlite3'}", keys
        return
    if not URL:
        pytest.skip("MESHHUB_TEST_POSTGRES_URL names no PostgreSQL")
    with temporary_schema() as url:
        monkeypatch.setenv("MESHHUB_JOBS_DATABASE_URL", url)
        yield url, keys


def execute(url: str, *statements: str) -> None:
    engine = sql.create_engine(url)
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    engine.dispose()


def list_tables(url: str) -> set[str]:
    engine = sql.create_engine(url)
    names = set(sql.inspect(engine).get_table_names())
    engine.dispose()
    return names


def test_all_tables_are_created_once(urls: tuple[str, str]) -> None:
    jobs, keys = urls
    for _ in range(2):
        result = CliRunner().invoke(root, ["migrate"])
        assert (result.exit_code, result.stdout) == (0, "")
        assert "up to date" in result.stderr
        assert list_tables(jobs) >= JOB_TABLES
        assert list_tables(keys) >= KEY_TABLES
        assert ("procrastinate_jobs" in list_tables(jobs)) == jobs.startswith("postgresql")


def test_tables_of_a_newer_version_are_not_changed(urls: tuple[str, str]) -> None:
    CliRunner().invoke(root, ["migrate"])
    execute(urls[0], "UPDATE job_schema SET version = 99, min_version = 99")
    result = CliRunner().invoke(root, ["migrate"])
    assert isinstance(result.exception, JobStoreUnavailable)
    assert "have version 99" in result.exception.message
