"""Many jobs on several workers: each ends once, callers take turns, outages lose nothing."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql

import real_stores
from clusters import Cluster, Proxy, cluster, wait_for_start
from http_serving import check_error
from job_stores import new_job
from meshhub.service.jobs.tables import JOBS
from waiting import wait_until

pytestmark = pytest.mark.once

StartCluster = Callable[..., Cluster]

DRAIN_S = 900.0
"""Seconds until a queue is empty on a loaded machine."""


def finish_all(cluster: Cluster) -> None:
    """Wait until no job waits or runs."""
    with contextlib.closing(cluster.store) as store:

        def is_empty() -> bool:
            depth = store.depth()
            return depth.queued + depth.running == 0

        wait_until(is_empty, DRAIN_S)


def read_rows(cluster: Cluster) -> list[Any]:
    engine = sql.create_engine(cluster.settings["jobs_database_url"])
    with engine.connect() as connection:
        rows = list(connection.execute(sql.select(JOBS).order_by(JOBS.c.started)).all())
    engine.dispose()
    return rows


def submit_many(cluster: Cluster, count: int, headers: dict[str, str]) -> list[str]:
    with ThreadPoolExecutor(4) as threads:
        return [job["id"] for job in threads.map(lambda _: cluster.submit(headers=headers), range(count))]


def test_a_thousand_jobs_on_four_workers_end_once(start_cluster: StartCluster) -> None:
    cluster = start_cluster()
    key, _ = cluster.running.keys.create("pro")
    for _ in range(4):
        cluster.start_worker()
    ids = submit_many(cluster, 1000, {"X-Api-Key": key})
    finish_all(cluster)
    with contextlib.closing(cluster.store) as store:
        usage = store.list_usage()
    assert sorted(row.job_id for row in usage) == sorted(ids)
    assert {(row.state, row.attempts) for row in usage} == {("done", 1)}
    rows = read_rows(cluster)
    assert len({row.worker for row in rows}) == 4
    wait_until(lambda: cluster.count_files() == 1000)


def test_small_callers_do_not_wait_for_the_many_jobs_of_another(start_cluster: StartCluster) -> None:
    cluster = start_cluster()
    big, _ = cluster.running.keys.create("pro")
    small = [cluster.running.keys.create("pro")[0] for _ in range(9)]
    submit_many(cluster, 500, {"X-Api-Key": big})
    for _ in range(2):
        cluster.start_worker()
    cluster.wait_for_workers(2)
    jobs = [(key, cluster.submit(headers={"X-Api-Key": key})) for key in small]
    for key, job in jobs:
        done = cluster.wait(job, headers={"X-Api-Key": key})
        assert done["started"] - done["created"] < 20
    # the others were not done before
    with contextlib.closing(cluster.store) as store:
        assert store.depth().queued > 100
    finish_all(cluster)
    rows = read_rows(cluster)
    assert {row.state for row in rows} == {"done"}
    large = [row.started for row in rows if row.id not in {job["id"] for _, job in jobs}]
    for row in rows:
        if row.started not in large:
            # two run, two are placed already; the rest is for submissions that a loaded machine commits late
            assert sum(row.created < started < row.started for started in large) <= 20


def test_small_callers_start_beside_the_long_jobs_of_one_key(start_cluster: StartCluster, tmp_path: Path) -> None:
    cluster = start_cluster(trusted_proxies=("127.0.0.1",))
    big, _ = cluster.running.keys.create("pro")
    path = tmp_path / "go"
    for _ in range(2):
        cluster.start_worker()
    with ThreadPoolExecutor(4) as threads:
        long = list(threads.map(lambda _: cluster.submit(f"toy wait {path}", {"X-Api-Key": big}), range(200)))
    wait_for_start(path, 2)
    small: list[dict[str, str]] = [{"X-Forwarded-For": f"10.0.0.{number}"} for number in range(4)]
    small += [{"X-Api-Key": cluster.running.keys.create("pro")[0]} for _ in range(5)]
    jobs = [(headers, cluster.submit(headers=headers)) for headers in small]
    for headers, job in jobs:
        cluster.wait(job, headers=headers)
    # long jobs end only now, so none made room for a small one
    assert len(wait_for_start(path, 2)) == 2
    assert Counter(cluster.show(job, {"X-Api-Key": big})["state"] for job in long) == {"running": 2, "queued": 198}
    path.touch()
    finish_all(cluster)


def test_a_flood_of_pro_jobs_lets_free_ones_advance(start_cluster: StartCluster) -> None:
    cluster = start_cluster()
    with contextlib.closing(cluster.store) as store:
        key, record = cluster.running.keys.create("pro")
        submit_many(cluster, 60, {"X-Api-Key": key})
        free = [cluster.submit() for _ in range(5)]
        assert store.depth().queued == 65
    cluster.start_worker()
    finish_all(cluster)
    order = [row.key_id for row in read_rows(cluster)]
    assert Counter(order) == {record.id: 60, "": len(free)}
    # four Pro jobs for each Free one
    assert order[:25].count("") == 5


def connect_to(address: sql.URL) -> socket.socket:
    """Connect to PostgreSQL, on TCP or on a Unix socket in a folder."""
    host, port = str(address.query.get("host", address.host)), address.port or 5432
    if not host.startswith("/"):
        return socket.create_connection((host, port))
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(f"{host}/.s.PGSQL.{port}")
    return connection


def test_a_worker_whose_connections_are_dropped_continues(
    start_cluster: StartCluster, database_url: str, tmp_path: Path
) -> None:
    address = sql.make_url(database_url)
    cluster = start_cluster()
    proxy = Proxy(lambda: connect_to(address))
    query = {name: value for name, value in address.query.items() if name != "host"}
    through = address.set(host="127.0.0.1", port=proxy.port, query=query).render_as_string(hide_password=False)
    cluster.start_worker(jobs_database_url=through)
    path = tmp_path / "go"
    job = cluster.submit(f"toy wait {path}")
    wait_for_start(path)
    proxy.drop()
    path.touch()
    # shorter than the lease, so that the run is still its own
    time.sleep(1)
    proxy.is_open = True
    cluster.wait(job)
    proxy.drop()
    time.sleep(8)
    proxy.is_open = True
    assert cluster.wait(cluster.submit())["attempt"] == 1
    with contextlib.closing(cluster.store) as store:
        assert len(store.list_usage()) == 2
    proxy.close()


@pytest.fixture
def restartable() -> Iterator[tuple[str, Path]]:
    """Start a PostgreSQL; yield its URL and its folder."""
    with real_stores.postgres() as (url, _):
        yield url, Path(str(sql.make_url(url).query["host"]))


def control(folder: Path, *arguments: str) -> None:
    """Call pg_ctl for a database."""
    program = max(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name)) / "pg_ctl"
    user = ("runuser", "-u", "postgres", "--") if os.getuid() == 0 else ()
    command = [*user, str(program), "-D", str(folder / "data"), "-w", *arguments]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, timeout=90)


def test_an_immediate_stop_of_the_database_loses_nothing(restartable: tuple[str, Path], tmp_path: Path) -> None:
    url, folder = restartable
    with cluster(tmp_path, url) as running:
        for _ in range(2):
            running.start_worker()
        key, _ = running.running.keys.create("pro")
        headers = {"X-Api-Key": key}
        path = tmp_path / "go"
        jobs = [running.submit(f"toy wait {path}", headers) for _ in range(2)]
        wait_for_start(path, 2)
        jobs += [running.submit(headers=headers) for _ in range(50)]
        control(folder, "-m", "immediate", "stop")
        stopped = time.monotonic()
        path.touch()
        while time.monotonic() < stopped + 5:
            before = time.monotonic()
            fields = {"kind": "convert", "target": "toy"}
            answer = running.running.post("/jobs", {"file": ("a.toy", b"toy")}, fields, headers=headers)
            check_error(answer, 503, "server_busy")
            assert answer.headers["retry-after"]
            # 1 s for the answer; the rest is for a loaded machine
            assert time.monotonic() - before < 5
        control(folder, "-l", str(folder / "log"), "-o", f"-c listen_addresses='' -k {folder} -F", "start")
        for job in jobs:
            running.wait(job, seconds=DRAIN_S, headers=headers)
        with contextlib.closing(running.store) as store:
            assert sorted(row.job_id for row in store.list_usage()) == sorted(job["id"] for job in jobs)


def test_random_kills_lose_and_repeat_nothing(start_cluster: StartCluster) -> None:
    cluster = start_cluster()
    key, _ = cluster.running.keys.create("pro")
    for _ in range(3):
        cluster.start_worker()
    ids = submit_many(cluster, 150, {"X-Api-Key": key})
    cluster.wait_for_workers(3)
    for _ in range(2):
        victim = cluster.workers.pop(0)
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        cluster.start_worker()
        time.sleep(2)
    finish_all(cluster)
    with contextlib.closing(cluster.store) as store:
        usage = store.list_usage()
    assert sorted(row.job_id for row in usage) == sorted(ids)
    assert {row.state for row in usage} == {"done"}
    wait_until(lambda: cluster.count_files() == 150)


def test_a_full_queue_rejects_jobs_before_their_bodies(start_cluster: StartCluster) -> None:
    cluster = start_cluster(job_queue=3)
    with contextlib.closing(cluster.store) as store:
        for _ in range(3):
            store.submit(new_job(), max_queued=10)
    fields = {"kind": "convert", "target": "toy"}
    answer = cluster.running.post("/jobs", {"file": ("a.toy", b"toy")}, fields)
    check_error(answer, 503, "server_busy")
    assert answer.headers["retry-after"]
