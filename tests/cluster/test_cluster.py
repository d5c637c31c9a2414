"""One job at a time on a cluster: where it runs, what ends its worker, what the worker reports."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import object_stores
from clusters import START_S, Cluster, get_when_open, is_running, read_metric, wait_for_start
from http_serving import ASCII_STL, GENEROUS
from meshhub.service.jobs.files import ORPHAN_AGE_S
from meshhub.service.jobs.store import LEASE_S
from meshhub.service.webhook_secrets import WebhookSecrets
from models import brick, scene_of
from waiting import wait_until
from webhook_receivers import Receiver

pytestmark = pytest.mark.once

StartCluster = Callable[..., Cluster]

FILAMENT = re.compile(rb"^; filament used \[mm\] = .*", re.MULTILINE)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with contextlib.closing(Receiver()) as receiver:
        yield receiver


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def test_a_server_only_accepts_jobs_and_converts_synchronous_requests(start_cluster: StartCluster) -> None:
    cluster = start_cluster()
    job = cluster.submit()
    assert cluster.running.convert().status_code == 200
    assert cluster.show(job)["state"] == "queued"
    wait_until(lambda: "no worker" in str(cluster.running.get("/health/ready").json().get("faults")))
    cluster.start_worker()
    done = cluster.wait(job)
    result = cluster.running.get(done["result"]["url"])
    assert result.content == cluster.running.convert().content
    wait_until(lambda: cluster.running.get("/health/ready").json() == {"status": "ready"})


def test_jobs_of_every_kind_run_on_a_worker(start_cluster: StartCluster) -> None:
    cluster = start_cluster()
    cluster.start_worker()
    cluster.wait_for_workers(1)
    files = {"file": ("a.stl", ASCII_STL)}
    for kind, part in (("inspect", "model"), ("check", "verdict")):
        done = cluster.wait(cluster.running.post("/jobs", files, {"kind": kind}).json())
        assert done["kind"] == kind
        assert part in cluster.running.get(done["result"]["url"]).json()
    several = [("files", ("a.stl", ASCII_STL)), ("files", ("b.stl", ASCII_STL))]
    done = cluster.wait(cluster.running.post("/jobs", several, {"kind": "combine", "target": "glb"}).json())
    assert cluster.running.get(done["result"]["url"]).content.startswith(b"glTF")


def test_inputs_and_results_in_a_bucket(start_cluster: StartCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    with object_stores.object_server() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        cluster = start_cluster(jobs_storage_url=f"{server.url}/cluster")
        cluster.start_worker()
        done = cluster.wait(cluster.submit(toy_weight="100000"))
        url = done["result"]["url"]
        whole = cluster.running.get(url).content
        assert len(whole) > 100_000
        assert cluster.running.get(url, headers={"Range": "bytes=10-19"}).content == whole[10:20]
        deleted = cluster.running.client.delete(f"/jobs/{done['id']}")
        assert deleted.json()["state"] == "expired"
        assert cluster.running.get(url).status_code == 410
        assert cluster.count_files() == 0


@pytest.mark.skipif(shutil.which("prusa-slicer") is None, reason="PrusaSlicer is not installed")
def test_jobs_are_sliced_on_workers(start_cluster: StartCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("meshhub-gcode", "meshhub-slicer"):
        monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "plugins" / name / "src"))
    plugins = tuple(map(importlib.import_module, ("meshhub_gcode", "slicer")))
    options: dict[str, Any] = {"slicer_printer": "prusa-mk3s", "slicer_quality": "draft", "slicer_supports": "none"}
    models = [brick(20, 10, 2), brick(10, 10, 4)]
    with object_stores.object_server() as server:
        for key, value in server.environment.items():
            monkeypatch.setenv(key, value)
        cluster = start_cluster(plugins=plugins, jobs_storage_url=f"{server.url}/cluster")
        registry = cluster.running.registry
        stl = [registry.convert_bytes(scene_of(model), "stl") for model in models]
        fields = {"kind": "convert", "target": "gcode", **options}
        jobs = [cluster.running.post("/jobs", {"file": ("a.stl", data)}, fields).json() for data in stl]
        for _ in range(2):
            cluster.start_worker()
        for job, data in zip(jobs, stl, strict=True):
            done = cluster.wait(job)
            result = cluster.running.get(done["result"]["url"]).content
            assert b"prepared by meshhub" in result
            own = registry.convert_bytes(data, "gcode", input_format="stl", **options)
            # seams of equal models differ between runs of PrusaSlicer
            assert FILAMENT.findall(result) == FILAMENT.findall(own) != []


def test_a_job_of_a_killed_worker_runs_again_on_another(start_cluster: StartCluster, tmp_path: Path) -> None:
    cluster = start_cluster()
    first = cluster.start_worker()
    path = tmp_path / "go"
    job = cluster.submit(f"toy wait {path}")
    (child,) = wait_for_start(path)
    cluster.start_worker()
    cluster.wait_for_workers(2)
    killed = time.time()
    first.kill()
    first.wait()
    wait_for_start(path, 2)
    # lease, sweep and delivery take about 8 s; the rest is for a loaded machine
    assert time.time() - killed < 30
    wait_until(lambda: not is_running(child))
    path.touch()
    assert cluster.wait(job)["attempt"] == 2
    with contextlib.closing(cluster.store) as store:
        assert [usage.attempts for usage in store.list_usage()] == [2]
    assert cluster.count_files() == 1


def test_a_stopped_worker_cannot_end_a_job_that_runs_elsewhere(
    start_cluster: StartCluster, tmp_path: Path, receiver: Receiver
) -> None:
    cluster = start_cluster(webhook_hosts=("127.0.0.1",))
    stopped = cluster.start_worker()
    key, record = cluster.running.keys.create("pro")
    WebhookSecrets(cluster.running.keys).create(record.id)
    headers = {"X-Api-Key": key}
    path = tmp_path / "go"
    job = cluster.submit(f"toy wait {path}", headers, webhook_url=receiver.url)
    wait_for_start(path)
    os.kill(stopped.pid, signal.SIGSTOP)
    cluster.start_worker()
    wait_for_start(path, 2)
    # both end the job now: first the one whose process continues
    path.touch()
    done = cluster.wait(job, headers=headers)
    os.kill(stopped.pid, signal.SIGCONT)
    time.sleep(LEASE_S)
    assert cluster.show(job, headers) == done
    assert done["attempt"] == 2
    with contextlib.closing(cluster.store) as store:
        assert [(usage.job_id, usage.attempts) for usage in store.list_usage()] == [(job["id"], 2)]
    wait_until(lambda: cluster.count_files() == 1)
    # the worker runs jobs again
    assert cluster.wait(cluster.submit(headers=headers), headers=headers)["attempt"] == 1
    wait_until(lambda: bool(receiver.messages))
    assert len({headers["webhook-id"] for headers, _ in receiver.messages}) == 1


def test_a_running_job_on_another_machine_is_canceled(start_cluster: StartCluster, tmp_path: Path) -> None:
    cluster = start_cluster()
    cluster.start_worker()
    path = tmp_path / "never"
    job = cluster.submit(f"toy wait {path}")
    (child,) = wait_for_start(path)
    assert cluster.running.client.delete(f"/jobs/{job['id']}").json()["state"] == "canceled"
    wait_until(lambda: not is_running(child))
    assert cluster.wait(cluster.submit())["attempt"] == 1
    wait_until(lambda: cluster.count_files() == 1)


def test_results_expire_and_files_without_a_job_are_removed(start_cluster: StartCluster, tmp_path: Path) -> None:
    orphan = tmp_path / "jobs" / "in" / "orphan"
    orphan.mkdir(parents=True)
    (orphan / "0").write_bytes(b"toy")
    long_ago = time.time() - 2 * ORPHAN_AGE_S
    os.utime(orphan, (long_ago, long_ago))
    young = tmp_path / "jobs" / "in" / "young"
    young.mkdir()
    cluster = start_cluster(plan_limits={"free": {**GENEROUS["free"], "job_retention_seconds": 1}})
    cluster.start_worker()
    done = cluster.wait(cluster.submit(), "expired")
    assert cluster.running.get(f"/jobs/{done['id']}/result").status_code == 410
    results = tmp_path / "jobs" / "out"
    wait_until(lambda: not any(path.is_file() for path in results.rglob("*")))
    wait_until(lambda: not orphan.exists())
    assert young.is_dir()


def test_a_worker_drains_at_a_signal(start_cluster: StartCluster, tmp_path: Path) -> None:
    cluster = start_cluster()
    port = free_port()
    worker = cluster.start_worker(shutdown_seconds=300, worker_address=f"127.0.0.1:{port}")
    path = tmp_path / "go"
    running = cluster.submit(f"toy wait {path}")
    wait_for_start(path)
    worker.send_signal(signal.SIGTERM)
    cluster.wait_for_workers(0)
    # the orchestrator sends nothing more to this worker, and does not kill it
    readiness = get_when_open(f"http://127.0.0.1:{port}/health/ready")
    assert (readiness.status_code, readiness.json()["error_code"]) == (503, "shutting_down")
    assert int(readiness.headers["retry-after"]) > 0
    assert get_when_open(f"http://127.0.0.1:{port}/health/live").status_code == 200
    waiting = cluster.submit()
    path.touch()
    assert worker.wait(60) == 0
    assert cluster.show(running)["attempt"] == 1
    assert cluster.show(running)["state"] == "done"
    assert cluster.show(waiting)["state"] == "queued"


def test_a_second_signal_returns_the_job_to_the_queue(start_cluster: StartCluster, tmp_path: Path) -> None:
    cluster = start_cluster()
    worker = cluster.start_worker(shutdown_seconds=300)
    path = tmp_path / "go"
    job = cluster.submit(f"toy wait {path}")
    (child,) = wait_for_start(path)
    worker.send_signal(signal.SIGTERM)
    cluster.wait_for_workers(0)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(60) == 0
    wait_until(lambda: not is_running(child))
    assert cluster.show(job)["state"] == "queued"
    path.touch()
    cluster.start_worker()
    assert cluster.wait(job)["attempt"] == 1


def test_a_worker_reports_its_health_and_metrics(start_cluster: StartCluster) -> None:
    cluster = start_cluster()
    port = free_port()
    cluster.start_worker(worker_address=f"127.0.0.1:{port}", workers=2)
    assert get_when_open(f"http://127.0.0.1:{port}/health/live").json() == {"status": "live"}
    wait_until(lambda: get_when_open(f"http://127.0.0.1:{port}/health/ready").status_code == 200, START_S)
    cluster.wait_for_workers(1)
    cluster.wait(cluster.submit())
    metrics = get_when_open(f"http://127.0.0.1:{port}/metrics").text
    assert read_metric(metrics, "meshhub_job_slots") == 2
    assert read_metric(metrics, 'meshhub_job_attempts_total{attempt="1"}') == 1
    wait_until(
        lambda: (
            'meshhub_job_run_seconds_count{outcome="done"} 1.0'
            in get_when_open(f"http://127.0.0.1:{port}/metrics").text
        )
    )
    assert get_when_open(f"http://127.0.0.1:{port}/other").status_code == 404
    served = cluster.running.get("/metrics").text
    assert read_metric(served, 'meshhub_jobs{state="queued"}') == 0
    assert read_metric(served, "meshhub_job_workers") == 1
