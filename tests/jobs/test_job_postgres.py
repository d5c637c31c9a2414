"""PostgreSQL as the store of jobs: its clock, its outages, programs of two versions."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sql

import real_stores
from job_stores import new_job
from meshhub.errors import JobStoreUnavailable
from meshhub.service.jobs.postgres import PostgresJobStore
from postgres_schemas import URL, temporary_schema
from waiting import wait_until

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(not URL, reason="MESHHUB_TEST_POSTGRES_URL names no PostgreSQL"),
]


@pytest.fixture
def url() -> Iterator[str]:
    with temporary_schema() as address:
        yield address


def test_the_time_is_that_of_the_database(url: str) -> None:
    store = PostgresJobStore(url)
    engine = sql.create_engine(url)
    with engine.connect() as connection:
        clock = sql.text("SELECT extract(epoch FROM clock_timestamp())::float8")
        before = connection.execute(clock).scalar_one()
        job, _ = store.submit(new_job(), max_queued=10)
        after = connection.execute(clock).scalar_one()
    assert before <= job.created <= after
    store.close()
    engine.dispose()


def test_several_processes_create_the_tables_at_once(url: str) -> None:
    stores = [PostgresJobStore(url) for _ in range(6)]
    errors: list[Exception] = []

    def is_submitted(store: PostgresJobStore) -> bool:
        try:
            store.submit(new_job(), max_queued=100)
        except JobStoreUnavailable:
            # a busy machine takes longer to create the tables than a store waits
            return False
        return True

    def submit(store: PostgresJobStore) -> None:
        try:
            wait_until(lambda: is_submitted(store))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=submit, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert stores[0].depth().queued >= 6
    for store in stores:
        store.close()


def test_a_stopped_database_is_unavailable_and_its_jobs_survive() -> None:
    with real_stores.postgres() as (address, process_id):
        store = PostgresJobStore(address)
        job, _ = store.submit(new_job(), max_queued=10)
        with real_stores.frozen(process_id):
            for _ in range(2):
                with pytest.raises(JobStoreUnavailable):
                    store.submit(new_job(), max_queued=10)
        assert store.get(job.id) == job
        store.close()
    with pytest.raises(JobStoreUnavailable, match="postgresql"):
        store.depth()
    store.close()


def test_connections_that_the_server_closed_are_replaced(url: str) -> None:
    store = PostgresJobStore(sql.make_url(url).update_query_dict({"application_name": url[-16:]}).render_as_string())
    engine = sql.create_engine(url)
    end = sql.text("SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity WHERE application_name = :name")
    for _ in range(2):
        with ThreadPoolExecutor(4) as threads:
            assert {state.queued for state in threads.map(lambda _: store.statistics(), range(20))} == {0}
        with engine.connect() as connection:
            assert all(connection.execute(end, {"name": url[-16:]}).scalars().all())
    assert store.depth().queued == 0
    store.close()
    engine.dispose()


def test_the_password_is_not_in_errors() -> None:
    store = PostgresJobStore("postgresql://user:secret-word@127.0.0.1:1/jobs")
    with pytest.raises(JobStoreUnavailable) as raised:
        store.depth()
    assert "secret-word" not in raised.value.message
    with pytest.raises(ValueError, match="cannot be used") as invalid:
        PostgresJobStore("postgresql://user:secret-word@127.0.0.1:port/jobs")
    assert "secret-word" not in str(invalid.value)
