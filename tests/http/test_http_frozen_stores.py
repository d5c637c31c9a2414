"""A database or a Redis that accepts connections and never answers."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

import real_stores
from http_serving import Running, check_error, serving
from meshhub.errors import KeyStoreUnavailable
from meshhub.service.keys import KeyStore
from waiting import wait_until

pytestmark = [pytest.mark.once, pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]


@pytest.fixture(scope="module")
def postgres() -> Iterator[tuple[str, int]]:
    """Start a PostgreSQL; yield its URL and its process id."""
    pytest.importorskip("psycopg", reason="PostgreSQL needs psycopg")
    with real_stores.postgres() as store:
        yield store


@pytest.fixture
def redis() -> Iterator[tuple[str, int]]:
    """Start a Redis; yield its URL and its process id."""
    pytest.importorskip("redis", reason="Redis needs the package redis")
    with real_stores.redis() as store:
        yield store


def request_plan(running: Running, key: str | None) -> httpx.Response:
    return running.get("/plan", headers={"X-Api-Key": key} if key else {})


def request_plans(running: Running, key: str, count: int) -> list[httpx.Response]:
    """Request the plan at the same time, in turns without and with the key."""
    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(lambda number: request_plan(running, key if number % 2 else None), range(count)))


def list_threads(process_id: int) -> set[str]:
    """Return the ids of the threads of a process."""
    return {path.name for path in Path(f"/proc/{process_id}/task").iterdir()}


def has_no_database_thread() -> bool:
    """Return whether no thread waits for a database."""
    return all(thread.name != "meshhub-database" for thread in threading.enumerate())


def test_a_frozen_database_answers_503_to_callers_with_a_key_alone(tmp_path: Path, postgres: tuple[str, int]) -> None:
    url, process_id = postgres
    store = KeyStore(url)
    key, _ = store.create("pro")
    with serving(tmp_path, {}, keys=store) as running:
        with real_stores.frozen(process_id):
            answers = request_plans(running, key, 30)
        for number, answer in enumerate(answers):
            if number % 2:
                check_error(answer, 503, "server_busy")
            else:
                assert answer.status_code == 200
        # the service recovers without a restart
        wait_until(lambda: request_plan(running, key).status_code == 200)
        wait_until(has_no_database_thread)


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
    wait_until(has_no_database_thread)
    assert store.check(key) == record
    store.close()


def test_a_frozen_database_does_not_delay_the_shutdown(tmp_path: Path, postgres: tuple[str, int]) -> None:
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
            address = re.search(r"http://127\.0\.0\.1:\d+", process.stderr.readline())
            assert address is not None
            with httpx.Client(base_url=address[0], headers={"X-Api-Key": key}, timeout=300) as client:
                assert client.get("/plan").status_code == 200
                assert client.get("/health/ready").status_code == 200
                with real_stores.frozen(process_id), ThreadPoolExecutor(1) as threads:
                    threads_before = list_threads(process.pid)
                    request = threads.submit(client.get, "/plan")
                    # the thread of the lookup shows that the request has arrived
                    wait_until(lambda: bool(list_threads(process.pid) - threads_before))
                    process.send_signal(signal.SIGTERM)
                    # a process that joined this thread would end only after the database continues
                    assert process.wait(300) == 0
                    check_error(request.result(), 503, "server_busy")
        finally:
            process.kill()


def test_a_frozen_redis_delays_answers_by_a_bounded_time(tmp_path: Path, redis: tuple[str, int]) -> None:
    url, process_id = redis
    with serving(tmp_path, {"rate_limit_url": url}) as running:
        key, _ = running.keys.create("pro")
        with real_stores.frozen(process_id):
            answers = [*request_plans(running, key, 20), request_plan(running, None)]
        assert {answer.status_code for answer in answers} == {200}


def test_a_frozen_database_and_a_frozen_redis_answer_503(
    tmp_path: Path, postgres: tuple[str, int], redis: tuple[str, int]
) -> None:
    store = KeyStore(postgres[0])
    key, _ = store.create("pro")
    with serving(tmp_path, {"rate_limit_url": redis[0]}, keys=store) as running:
        with real_stores.frozen(postgres[1]), real_stores.frozen(redis[1]):
            check_error(request_plan(running, key), 503, "server_busy")
            assert request_plan(running, None).status_code == 200
        wait_until(has_no_database_thread)
