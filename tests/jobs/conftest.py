"""Stores of jobs, each with a clock that tests set."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import object_stores
from job_stores import Clock, OpenStore
from meshhub.service.jobs.postgres import PostgresJobStore
from meshhub.service.jobs.sqlite import SqliteJobStore
from meshhub.service.jobs.store import JobStore
from object_stores import ObjectServer
from postgres_schemas import URL, temporary_schema

needs_postgres = pytest.mark.skipif(not URL, reason="MESHHUB_TEST_POSTGRES_URL names no PostgreSQL")

STORES = ("sqlite", pytest.param("postgres", marks=needs_postgres))
"""Kinds of stores; every test of this folder runs on each."""


@pytest.fixture(scope="session")
def object_server() -> Iterator[ObjectServer]:
    with object_stores.object_server() as server:
        yield server


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=STORES)
def open_store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[OpenStore]:
    """Open one database several times, as several processes do."""
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(temporary_schema()) if request.param == "postgres" else ""

        def open_one() -> JobStore:
            store: JobStore = (
                PostgresJobStore(url, clock=clock) if url else SqliteJobStore(tmp_path / "jobs.sqlite3", clock=clock)
            )
            stack.callback(store.close)
            return store

        yield open_one


@pytest.fixture
def store(open_store: OpenStore) -> JobStore:
    return open_store()
