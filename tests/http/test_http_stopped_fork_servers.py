"""A service whose fork server is stopped while it starts, or later."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from http_serving import check_error
from meshhub.http.conversions.probe import cube_stl
from waiting import wait_until

pytestmark = [
    pytest.mark.once,
    pytest.mark.large,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]

CODE = """
import sys
from meshhub.engine import isolated, python_process
python_process.IMPORT_TIMEOUT_S = {timeout_s}
python_process.FORK_TIMEOUT_S = {timeout_s}
isolated._LIBRARIES_DELAY_S = {delay_s}
sys.argv = ["meshhub", "serve", "--port", "0"]
from meshhub.cli import main
main()
"""


@contextlib.contextmanager
def start_service(
    folder: Path, timeout_s: float, delay_s: float = 1e6
) -> Iterator[tuple[subprocess.Popen[str], httpx.Client, int]]:
    """Start a service, and stop a fork server while it starts: the second one if it starts after a short delay.

    Args:
        folder: Folder for its files.
        timeout_s: Seconds that a fork server has to start a process.
        delay_s: Seconds until the second fork server starts.
    """
    environment = {
        **os.environ,
        "XDG_DATA_HOME": str(folder),
        "MESHHUB_TEMPORARY_FOLDER": str(folder),
        "MESHHUB_SHUTDOWN_SECONDS": "1",
        "MESHHUB_WORKERS": "2",
    }
    command = [sys.executable, "-c", CODE.format(timeout_s=timeout_s, delay_s=delay_s)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stderr is not None
        try:
            stopped = wait_for_fork_server(process.pid, 2 if delay_s == 0 else 1)
            os.kill(stopped, signal.SIGSTOP)
            address = re.search(r"http://127\.0\.0\.1:\d+", process.stderr.readline())
            assert address is not None
            with httpx.Client(base_url=address[0], timeout=300) as client:
                yield process, client, stopped
        finally:
            process.kill()


def list_fork_servers(process_id: int) -> list[int]:
    """Return the fork servers of a process, the oldest first."""
    threads = Path(f"/proc/{process_id}/task").glob("*/children")
    children = sorted(int(child) for path in threads for child in path.read_text().split())
    return [child for child in children if b"forkserver" in Path(f"/proc/{child}/cmdline").read_bytes()]


def wait_for_fork_server(process_id: int, count: int) -> int:
    """Return the latest of `count` fork servers."""
    wait_until(lambda: len(list_fork_servers(process_id)) == count)
    return list_fork_servers(process_id)[-1]


def convert(client: httpx.Client, path: str = "/convert") -> httpx.Response:
    return client.post(path, files={"file": ("cube.stl", cube_stl())}, data={"target": "obj"})


def test_a_fork_server_that_is_stopped_while_it_starts_is_replaced(tmp_path: Path) -> None:
    with start_service(tmp_path, timeout_s=10) as (_, client, _):
        check_error(client.get("/health/ready"), 503, "server_busy")
        assert client.get("/health/live").status_code == 200
        assert convert(client).status_code == 200
        wait_until(lambda: client.get("/health/ready").status_code == 200)


def test_readiness_knows_the_fork_server_with_the_libraries(tmp_path: Path) -> None:
    with start_service(tmp_path, timeout_s=300, delay_s=0) as (_, client, stopped):
        check_error(client.get("/health/ready"), 503, "server_busy")
        os.kill(stopped, signal.SIGCONT)
        wait_until(lambda: client.get("/health/ready").status_code == 200)


def test_a_signal_ends_the_service_while_its_fork_server_is_stopped(tmp_path: Path) -> None:
    with start_service(tmp_path, timeout_s=300) as (process, client, stopped), ThreadPoolExecutor(1) as threads:
        request = threads.submit(convert, client)
        wait_until(lambda: "meshhub_workers_busy 1.0" in client.get("/metrics").text)
        process.send_signal(signal.SIGTERM)
        check_error(request.result(), 503, "shutting_down")
        assert process.wait(60) == 0
        wait_until(lambda: not Path(f"/proc/{stopped}").exists())


def test_a_signal_ends_a_service_with_spare_workers_whose_fork_server_is_stopped(tmp_path: Path) -> None:
    with start_service(tmp_path, timeout_s=300) as (process, client, stopped):
        os.kill(stopped, signal.SIGCONT)
        assert convert(client).status_code == 200
        os.kill(stopped, signal.SIGSTOP)
        check_error(client.get("/health/ready"), 503, "server_busy")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        wait_until(lambda: not Path(f"/proc/{stopped}").exists())
