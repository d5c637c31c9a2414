"""A database or a Redis that accepts connections and never answers."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

import real_stores
from http_serving import Running, refused, serving, until
from meshhub.errors import KeyStoreUnavailable
from meshhub.service.keys import KeyStore

pytestmark = [pytest.mark.once, pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]

ANSWER_S = 2.0
"""Seconds within which callers with a key get 503."""


@pytest.fixture(scope="module")
def postgres() -> Iterator[tuple[str, int]]:
    """A PostgreSQL: its URL and its process id."""
    pytest.importorskip("psycopg", reason="PostgreSQL needs psycopg")
    with real_stores.postgres() as store:
        yield store


@pytest.fixture
def redis() -> Iterator[tuple[str, int]]:
    """A Redis: its URL and its process id."""
    pytest.importorskip("redis", reason="Redis needs the package redis")
    with real_stores.redis() as store:
        yield store


def timed(running: Running, key: str | None) -> tuple[httpx.Response, float]:
    """Ask for the plan; return the answer and the seconds it took."""
    began = time.monotonic()
    answer = running.get("/plan", headers={"X-Api-Key": key} if key else {})
    return answer, time.monotonic() - began


def nobody_asks() -> bool:
    """Return whether no thread waits for a database."""
    return all(thread.name != "meshhub-database" for thread in threading.enumerate())


def test_a_frozen_database_is_busy_and_stops_nobody_else(tmp_path: Path, postgres: tuple[str, int]) -> None:
    url, process_id = postgres
    store = KeyStore(url)
    key, _ = store.create("pro")
    with serving(tmp_path, {}, keys=store) as running:
        assert running.get("/plan", headers={"X-Api-Key": key}).status_code == 200
        with ThreadPoolExecutor(30) as threads:
            for _ in range(2):
                with real_stores.frozen(process_id):
                    asked = [threads.submit(timed, running, key if n % 2 else None) for n in range(30)]
                    answers = [one.result() for one in asked]
                for number, (answer, seconds) in enumerate(answers):
                    if number % 2:
                        refused(answer, 503, "server_busy")
                        assert seconds < ANSWER_S
                    else:
                        assert answer.status_code == 200
                # it recovers by itself
                until(lambda: running.get("/plan", headers={"X-Api-Key": key}).status_code == 200)
        until(nobody_asks)


def test_every_call_to_a_frozen_database_ends(postgres: tuple[str, int]) -> None:
    url, process_id = postgres
    store = KeyStore(url)
    key, record = store.create("pro")
    with real_stores.frozen(process_id):
        for call in (
            store.look,
            store.list,
            lambda: store.check(key),
            lambda: store.create("pro"),
            lambda: store.rotate(record.id),
            lambda: store.revoke(record.id),
        ):
            with pytest.raises(KeyStoreUnavailable):
                call()
    until(nobody_asks)
    assert store.check(key) == record
    store.close()


def test_a_stuck_driver_does_not_delay_the_end(tmp_path: Path, postgres: tuple[str, int]) -> None:
    url, process_id = postgres
    store = KeyStore(url)
    key, _ = store.create("pro")
    store.close()
    environment = {
        **os.environ,
        "MESHHUB_DATABASE_URL": url,
        "MESHHUB_TEMPORARY_FOLDER": str(tmp_path),
        "MESHHUB_WORKERS": "1",
        "MESHHUB_SHUTDOWN_SECONDS": "10",
    }
    command = [sys.executable, "-m", "meshhub", "serve", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stderr is not None
        try:
            found = re.search(r"http://127\.0\.0\.1:\d+", process.stderr.readline())
            assert found is not None
            ask = {"url": f"{found[0]}/plan", "headers": {"X-Api-Key": key}, "timeout": 60}
            assert httpx.get(**ask).status_code == 200  # type: ignore[arg-type]
            assert httpx.get(f"{found[0]}/health/ready", timeout=90).status_code == 200
            with real_stores.frozen(process_id), ThreadPoolExecutor(1) as threads:
                asking = threads.submit(httpx.get, **ask)  # type: ignore[arg-type]
                time.sleep(0.3)
                process.send_signal(signal.SIGTERM)
                assert process.wait(10) == 0
                refused(asking.result(), 503, "server_busy")
        finally:
            process.kill()


def test_a_frozen_redis_delays_nobody_for_long(tmp_path: Path, redis: tuple[str, int]) -> None:
    url, process_id = redis
    with serving(tmp_path, {"rate_limit_url": url}) as running:
        key, _ = running.keys.create("pro")
        assert timed(running, key)[0].status_code == 200
        with real_stores.frozen(process_id), ThreadPoolExecutor(20) as threads:
            asked = [threads.submit(timed, running, key if n % 2 else None) for n in range(20)]
            for answer, seconds in [one.result() for one in asked]:
                assert answer.status_code == 200
                assert seconds < ANSWER_S
            assert timed(running, None)[1] < ANSWER_S


def test_both_frozen(tmp_path: Path, postgres: tuple[str, int], redis: tuple[str, int]) -> None:
    store = KeyStore(postgres[0])
    key, _ = store.create("pro")
    with serving(tmp_path, {"rate_limit_url": redis[0]}, keys=store) as running:
        assert timed(running, key)[0].status_code == 200
        with real_stores.frozen(postgres[1]), real_stores.frozen(redis[1]):
            answer, seconds = timed(running, key)
            refused(answer, 503, "server_busy")
            assert seconds < ANSWER_S
            assert timed(running, None)[0].status_code == 200
        until(nobody_asks)
