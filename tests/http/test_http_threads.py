"""Threads of the service: work that hangs delays no other kind of work, and keeps its place."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from meshhub.errors import JobStoreUnavailable, KeyStoreUnavailable
from meshhub.http.admission import threads as threads_module
from meshhub.http.admission.threads import Threads

pytestmark = pytest.mark.once


class Hanging:
    """Function that returns when it is released; counts its calls."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.count = 0
        self._lock = threading.Lock()

    def __call__(self) -> None:
        with self._lock:
            self.count += 1
        self.released.wait()


def run(scenario: Callable[[Threads, Hanging], Coroutine[Any, Any, None]]) -> None:
    """Run a scenario with the threads for six conversions."""
    threads, hanging = Threads(6), Hanging()

    async def run_and_release() -> None:
        try:
            await scenario(threads, hanging)
        finally:
            hanging.released.set()

    asyncio.run(run_and_release())
    threads.close()


async def wait_for_calls(hanging: Hanging, count: int) -> None:
    async with asyncio.timeout(60):
        while hanging.count < count:
            await asyncio.sleep(0.01)


KINDS: dict[str, Callable[[Threads, Callable[[], None]], Awaitable[None]]] = {
    "archives": lambda threads, function: threads.run_archive(function),
    "entitlements": lambda threads, function: threads.run_entitlement("caller", function),
    "job storage": lambda threads, function: threads.run_job_storage(function),
    "lookups": lambda threads, function: threads.run_lookup(function),
    "queries": lambda threads, function: threads.run_job_query(60, function),
}


@pytest.mark.parametrize("kind", KINDS)
def test_work_that_hangs_delays_no_other_kind(kind: str) -> None:
    async def scenario(threads: Threads, hanging: Hanging) -> None:
        others = [other for other in KINDS if other != kind]
        calls = [asyncio.ensure_future(KINDS[other](threads, hanging)) for other in others for _ in range(50)]
        calls += [asyncio.ensure_future(threads.run(hanging)) for _ in range(6)]
        await wait_for_calls(hanging, 4 * len(others) + 6)
        async with asyncio.timeout(60):
            await asyncio.gather(*(KINDS[kind](threads, lambda: None) for _ in range(20)))
            await asyncio.gather(*(threads.run(int) for _ in range(20)))
        hanging.released.set()
        await asyncio.wait(calls)

    run(scenario)


def test_abandoned_queries_keep_their_threads_until_they_end() -> None:
    async def scenario(threads: Threads, hanging: Hanging) -> None:
        for _ in range(20):
            with pytest.raises(JobStoreUnavailable):
                await threads.run_job_query(0.05, hanging)
        assert hanging.count == 4
        hanging.released.set()
        assert await threads.run_job_query(60, int) == 0

    run(scenario)


def test_a_lookup_that_hangs_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads_module, "_LOOKUP_TIMEOUT_S", 0.05)

    async def scenario(threads: Threads, hanging: Hanging) -> None:
        with pytest.raises(KeyStoreUnavailable):
            await threads.run_lookup(hanging)

    run(scenario)


def test_canceled_calls_keep_their_places_until_they_end() -> None:
    async def scenario(threads: Threads, hanging: Hanging) -> None:
        calls = [asyncio.ensure_future(threads.run_archive(hanging)) for _ in range(4)]
        await wait_for_calls(hanging, 4)
        for call in calls:
            call.cancel()
        following = asyncio.ensure_future(threads.run_archive(int))
        await asyncio.gather(*(threads.run(int) for _ in range(100)))
        assert not any(call.done() for call in (*calls, following))
        hanging.released.set()
        assert await following == 0
        await asyncio.wait(calls)
        assert all(call.cancelled() for call in calls)

    run(scenario)
