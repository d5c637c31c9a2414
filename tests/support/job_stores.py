"""Jobs for the tests of stores, and the time of these stores."""

from __future__ import annotations

from collections.abc import Callable

from meshhub.service.jobs.job import JobFile, JobRequest, NewJob, new_id
from meshhub.service.jobs.store import JobStore

OpenStore = Callable[[], JobStore]


class Clock:
    """Time of a store, in seconds since 1970."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


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
