"""Sockets of the service: a Unix socket, and sockets that a supervisor passes."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from http_serving import ASCII_STL

if sys.platform == "win32":
    pytest.skip("Windows has neither these sockets nor socket activation", allow_module_level=True)

pytestmark = pytest.mark.once

ACTIVATE = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"}
os.execv(sys.executable, [sys.executable, "-m", "meshhub", "serve", "--port", "1"])
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder with a short path: that of a Unix socket may have about 100 characters."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@contextlib.contextmanager
def running(folder: Path, command: list[str], **more: str) -> Iterator[str]:
    """Run a command that serves; yield its first log line, and check that it ends well."""
    environment = {**os.environ, "XDG_DATA_HOME": str(folder), "MESHHUB_TEMPORARY_FOLDER": str(folder), **more}
    with subprocess.Popen(
        [sys.executable, *command], stderr=subprocess.PIPE, env=environment, text=True, close_fds=False
    ) as process:
        assert process.stderr is not None
        try:
            yield process.stderr.readline()
        finally:
            process.terminate()
            process.communicate(timeout=300)
    assert process.returncode == 0


def test_the_service_listens_on_a_unix_socket(folder: Path) -> None:
    path = folder / "meshhub.sock"
    with socket.socket(socket.AF_UNIX) as abandoned:
        abandoned.bind(str(path))
    command = ["-m", "meshhub", "serve", "--unix-socket", str(path)]
    with running(folder, command, MESHHUB_TRUSTED_PROXIES="unix", MESHHUB_PLAN_FREE_REQUESTS_PER_MINUTE="2") as line:
        assert str(path) in line
        transport = httpx.HTTPTransport(uds=str(path))
        with httpx.Client(transport=transport, base_url="http://meshhub", timeout=300) as client:
            answer = client.post("/convert", files={"file": ("a.stl", ASCII_STL)}, data={"target": "obj"})
            assert answer.status_code == 200
            # the proxy on the socket reports the callers, which are counted separately
            statuses = [
                client.get("/plan", headers={"X-Forwarded-For": address}).status_code
                for address in ("1.1.1.1", "1.1.1.1", "1.1.1.1", "2.2.2.2")
            ]
            assert statuses == [200, 200, 429, 200]
    assert not path.exists()


@pytest.mark.large
def test_a_unix_socket_in_use_and_a_file_are_not_replaced(folder: Path) -> None:
    path = folder / "meshhub.sock"
    command = [sys.executable, "-m", "meshhub", "serve", "--unix-socket", str(path)]
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode != 0
    assert f"cannot listen on {path}: Address already in use" in done.stderr
    path.unlink()
    path.write_text("data")
    assert subprocess.run(command, capture_output=True, timeout=300, check=False).returncode != 0
    assert path.read_text() == "data"


def test_the_service_takes_the_socket_of_a_supervisor(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        os.set_inheritable(listener.fileno(), True)
        with running(folder, ["-c", ACTIVATE, str(listener.fileno())]) as line:
            assert re.search(rf"http://127\.0\.0\.1:{port}\b", line)
            assert httpx.get(f"http://127.0.0.1:{port}/health/ready", timeout=300).status_code == 200


@pytest.mark.large
def test_a_descriptor_that_is_not_a_listener_is_an_error(folder: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        os.set_inheritable(other.fileno(), True)
        done = subprocess.run(
            [sys.executable, "-c", ACTIVATE, str(other.fileno())],
            capture_output=True,
            env={**os.environ, "XDG_DATA_HOME": str(folder)},
            text=True,
            close_fds=False,
            timeout=300,
            check=False,
        )
    assert done.returncode == 2
    assert "inherited descriptor 3 is not a listening stream socket" in done.stderr
