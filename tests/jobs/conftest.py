"""Stores of jobs, each with a clock that tests set."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from job_stores import Clock, OpenStore
from meshhub.service.jobs.sqlite import SqliteJobStore
from meshhub.service.jobs.store import JobStore

STORES = ("sqlite",)
"""Kinds of stores; every test of this folder runs on each."""


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=STORES)
def open_store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[OpenStore]:
    """Open one database several times, as several processes do."""
    opened: list[JobStore] = []

    def open_one() -> JobStore:
        opened.append(SqliteJobStore(tmp_path / "jobs.sqlite3", clock=clock))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: OpenStore) -> JobStore:
    return open_store()
