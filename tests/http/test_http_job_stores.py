"""Stores of jobs that do not respond, or have no space."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from http_serving import Running, check_error
from waiting import wait_until

pytestmark = [pytest.mark.once, pytest.mark.skipif(sys.platform != "linux", reason="uses signals and tmpfs")]

STORE = """
import threading
import object_stores
with object_stores.object_server() as server:
    print(server.environment["AWS_ENDPOINT_URL"], flush=True)
    threading.Event().wait()
"""


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[str]]:
    """Start an S3 server in a process of its own, and set the variables that reach it."""
    pytest.importorskip("moto.server", reason="the S3 server of the tests is moto; see tox -e cluster")
    with subprocess.Popen([sys.executable, "-c", STORE], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            endpoint = process.stdout.readline().strip()
            assert re.match(r"http://127\.0\.0\.1:\d+", endpoint)
            monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
            monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
            monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
            monkeypatch.setenv("AWS_REGION", "us-east-1")
            yield process
        finally:
            process.kill()


def submit(running: Running, content: bytes = b"toy") -> str:
    answer = running.post("/jobs", {"file": ("a.toy", content)}, {"kind": "convert", "target": "toy"})
    assert answer.status_code == 202, answer.text
    job_id: str = answer.json()["id"]
    return job_id


def wait_for_end(running: Running, job_id: str) -> None:
    wait_until(lambda: running.get(f"/jobs/{job_id}").json()["state"] == "done")


@pytest.mark.large
def test_a_frozen_object_store_rejects_jobs_within_seconds(
    serve: Callable[..., Running], store: subprocess.Popen[str]
) -> None:
    running = serve(jobs_storage_url="s3://meshhub-jobs")
    job_id = submit(running)
    wait_for_end(running, job_id)
    assert running.get("/health/ready").json() == {"status": "ready"}
    os.kill(store.pid, signal.SIGSTOP)
    fields = {"kind": "convert", "target": "toy"}
    # the uploads of five callers would otherwise hold all threads for a minute
    for _ in range(5):
        rejected = running.post("/jobs", {"file": ("a.toy", b"toy")}, fields)
        check_error(rejected, 503, "server_busy")
        assert rejected.elapsed.total_seconds() < 30
    check_error(running.get(f"/jobs/{job_id}/result"), 503, "server_busy")
    wait_until(lambda: "files of jobs" in str(running.get("/health/ready").json().get("faults")))
    assert "meshhub_job_store_faults 1.0" in running.get("/metrics").text
    # other requests do not need the store
    assert running.convert().status_code == 200
    os.kill(store.pid, signal.SIGCONT)
    wait_until(lambda: running.get("/health/ready").json() == {"status": "ready"})
    assert running.get(f"/jobs/{job_id}/result").status_code == 200


class HangingUploads(BaseHTTPRequestHandler):
    """Object store that lists nothing, and never answers an upload."""

    def do_GET(self) -> None:
        body = b'<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"></ListBucketResult>'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self) -> None:
        threading.Event().wait()


@pytest.mark.large
def test_a_store_that_hangs_at_uploads_rejects_a_job_within_seconds(
    serve: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("obstore", reason="the extra s3 stores files in a bucket")
    with ThreadingHTTPServer(("127.0.0.1", 0), HangingUploads) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
        for name, value in (("ACCESS_KEY_ID", "key"), ("SECRET_ACCESS_KEY", "secret"), ("REGION", "us-east-1")):
            monkeypatch.setenv(f"AWS_{name}", value)
        running = serve(jobs_storage_url="s3://meshhub-jobs")
        rejected = running.post("/jobs", {"file": ("a.toy", b"toy")}, {"kind": "convert", "target": "toy"})
        check_error(rejected, 503, "server_busy")
        # a minute, if the retries of a run were used
        assert rejected.elapsed.total_seconds() < 30
        server.shutdown()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 4 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", folder], check=False).returncode:
        pytest.skip("mounts need the rights of root")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_job_is_deleted_from_a_full_disk(serve: Callable[..., Running], small_disk: Path) -> None:
    running = serve(jobs_folder=str(small_disk), keep_free_bytes=0)
    content = b"toy" + b" " * (1 << 19)
    job_ids = [submit(running, content), submit(running, content)]
    for job_id in job_ids:
        wait_for_end(running, job_id)
    with (small_disk / "other").open("wb", buffering=0) as file, pytest.raises(OSError):
        while True:
            file.write(bytes(4096))
    for job_id in job_ids:
        assert running.client.delete(f"/jobs/{job_id}").status_code == 200
    check_error(running.get(f"/jobs/{job_ids[0]}/result"), 410, "no_result")
