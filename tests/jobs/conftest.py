"""Stores of jobs, each with a clock that tests set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from meshhub.service.jobs.job import JobFile, JobRequest, NewJob, new_id
from meshhub.service.jobs.sqlite import SqliteJobStore
from meshhub.service.jobs.store import JobStore

STORES = ("sqlite",)
"""Kinds of stores; every test of this folder runs on each."""


class Clock:
    """Time of a store, in seconds since 1970."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


OpenStore = Callable[[], JobStore]


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


def new_job(caller: str = "key:mh_a", **values: object) -> NewJob:
    """Return a job with one file of 100 bytes."""
    defaults: dict[str, object] = {
        "id": new_id(),
        "kind": "convert",
        "caller": caller,
        "key_id": caller.removeprefix("key:") if caller.startswith("key:") else "",
        "plan": "pro",
        "request": JobRequest(files=(JobFile("a.stl", 100),), texts={"target": "3mf"}),
        "retention_s": 3600.0,
    }
    return NewJob(**{**defaults, **values})  # type: ignore[arg-type]
