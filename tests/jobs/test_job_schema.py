"""Programs of two versions that use one database, as during a rolling upgrade."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sql

from job_stores import new_job
from meshhub.errors import JobStoreUnavailable
from meshhub.service.jobs import schema
from meshhub.service.jobs.job import JobResult, Outcome, new_id
from meshhub.service.jobs.postgres import PostgresJobStore
from meshhub.service.jobs.sqlite import SqliteJobStore
from meshhub.service.jobs.store import JobStore
from meshhub.service.jobs.tables import METADATA, SCHEMA
from postgres_schemas import URL, temporary_schema

pytestmark = pytest.mark.once

DONE = Outcome(result=JobResult(name="a.3mf", media_type="model/3mf", bytes=50, sha256="ab" * 32))

Database = tuple[JobStore, sql.Engine]


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """Return a store, and its database for changes without the store."""
    if request.param == "sqlite":
        store: JobStore = SqliteJobStore(tmp_path / "jobs.sqlite3")
        engine = sql.create_engine(f"sqlite:///{tmp_path}/jobs.sqlite3")
        yield store, engine
    else:
        if not URL:
            pytest.skip("MESHHUB_TEST_POSTGRES_URL names no PostgreSQL")
        with temporary_schema() as url:
            store, engine = PostgresJobStore(url), sql.create_engine(url)
            yield store, engine
            store.close()
            engine.dispose()
    store.close()
    engine.dispose()


def run(store: JobStore) -> str:
    job = store.claim("w")
    assert job is not None
    assert store.finish(job.id, job.token or "", DONE)
    return job.id


def test_this_program_runs_jobs_in_the_tables_of_the_next_version(database: Database) -> None:
    store, engine = database
    first, _ = store.submit(new_job(), max_queued=10)
    with engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE jobs ADD COLUMN of_the_next_version INTEGER")
        connection.execute(SCHEMA.update().values(version=schema.VERSION + 1, min_version=schema.VERSION))
    store.close()
    second, _ = store.submit(new_job(), max_queued=10)
    assert [run(store), run(store)] == [first.id, second.id]
    with engine.connect() as connection:
        assert connection.execute(sql.select(SCHEMA.c.version)).scalar_one() == schema.VERSION + 1


def test_tables_of_a_later_version_are_rejected_with_the_remedy(database: Database) -> None:
    store, engine = database
    METADATA.create_all(engine)
    with engine.begin() as connection:
        connection.execute(SCHEMA.insert().values(version=99, min_version=98))
    with pytest.raises(JobStoreUnavailable, match=r"version 99.*upgrade meshhub"):
        store.depth()


def test_ids_of_jobs_are_no_flags_of_commands() -> None:
    assert not [job_id for job_id in (new_id() for _ in range(2_000)) if job_id.startswith("-")]
