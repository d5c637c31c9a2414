"""Conversions that hang, crash, lose their client, or wait in a full queue; shutdown."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from deadlines import time_out
from http_serving import Running, check_error, receive_all, unzip_response
from meshhub.engine.contract import Cancel, Task
from meshhub.engine.in_process import InProcess
from meshhub.engine.isolated import Isolated
from meshhub.errors import Canceled
from meshhub.http.server.app import create_engine
from meshhub.model.report import Inspection, Report
from meshhub.service.settings import Settings
from waiting import wait_until

STL = b"solid t\nfacet normal 0 0 1\nouter loop\n%sendloop\nendfacet\nendsolid t\n" % (
    b"vertex 0 0 0\nvertex 9 0 0\nvertex 0 9 0\n"
)


class Latch:
    """Conversion that runs until it is released."""

    def __init__(self, folder: Path, name: str = "latch") -> None:
        self.path = folder / name
        self.content = f"toy wait {self.path}".encode()

    def processes(self) -> list[int]:
        return [int(path.suffix[1:]) for path in self.path.parent.glob(self.path.name + ".*")]

    def release(self) -> None:
        self.path.write_text("go")


@pytest.fixture
def latch(tmp_path: Path) -> Iterator[Latch]:
    latch = Latch(tmp_path)
    yield latch
    latch.release()


@pytest.fixture
def stack() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as exit_stack:
        yield exit_stack


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as executor:
        yield executor


def is_alive(process: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, 0)
        return True
    return False


def test_a_crash_fails_only_its_request(isolated: Running) -> None:
    check_error(isolated.convert(b"toy crash"), 422, "worker_crashed")
    entries = unzip_response(isolated.many(("a.toy", b"toy crash"), ("b.toy", b"toy")))
    assert list(entries) == ["b.toy", "errors.json"]
    assert json.loads(entries["errors.json"])[0]["error_code"] == "worker_crashed"


def test_companions_written_by_a_worker_are_returned(isolated: Running) -> None:
    assert list(unzip_response(isolated.many(("a.toy", b"toy"), toy_twins="on"))) == ["a.toy", "twin.txt"]


def test_a_worker_inspects_a_file(isolated: Running) -> None:
    answer = isolated.post("/inspect", {"file": ("a.toy", b"toy")})
    assert answer.json()["model"]["faces"] == 12


def test_a_hanging_conversion_is_stopped_at_its_deadline(serve: Callable[..., Running], engine: Isolated) -> None:
    def hang(timeout_s: int) -> str:
        running = serve(engine, plan_limits={"free": {"conversion_timeout_seconds": timeout_s}})
        message: str = check_error(running.convert(b"toy hang"), 504, "conversion_timeout")["error"]
        wait_until(lambda: not running.leftovers())
        return message

    assert time_out(hang).endswith("report it to the maintainer of 'service_plugins'")


def test_files_that_are_unfinished_at_the_request_timeout_fail(serve: Callable[..., Running], engine: Isolated) -> None:
    limits = {"conversion_timeout_seconds": 60, "request_timeout_seconds": 5, "requests_per_minute": 1000}
    running = serve(engine, plan_limits={"free": limits}, workers=4, batch_workers=1)
    answer = running.many(("a.toy", b"toy"), ("b.toy", b"toy hang"), ("c.toy", b"toy"))
    entries = unzip_response(answer)
    assert list(entries) == ["a.toy", "errors.json"]
    failures = json.loads(entries["errors.json"])
    assert [(failure["file"], failure["error_code"]) for failure in failures] == [
        ("b.toy", "conversion_timeout"),
        ("c.toy", "conversion_timeout"),
    ]


@pytest.mark.parametrize("path", ["/convert", "/inspect", "/convert-many"])
def test_the_job_of_a_client_that_disconnects_is_stopped(
    isolated: Running, latch: Latch, engine: Isolated, path: str
) -> None:
    field = "files" if path == "/convert-many" else "file"
    files = {field: ("a.toy", latch.content)}
    data = None if path == "/inspect" else {"target": "toy"}
    request = isolated.client.build_request("POST", path, files=files, data=data)
    head = f"POST {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    with socket.create_connection(("127.0.0.1", isolated.port)) as connection:
        connection.sendall(head.encode() + b"\r\n" + request.read())
        wait_until(lambda: bool(latch.processes()))
        (process,) = latch.processes()
        assert is_alive(process)
    wait_until(lambda: not is_alive(process))
    wait_until(lambda: not isolated.leftovers())
    assert isolated.convert().status_code == 200


def test_other_requests_are_answered_during_a_conversion(
    isolated: Running, latch: Latch, threads: ThreadPoolExecutor
) -> None:
    slow = threads.submit(isolated.convert, latch.content)
    wait_until(lambda: bool(latch.processes()))
    assert isolated.get("/health/live").status_code == 200
    assert isolated.get("/plan").status_code == 200
    assert isolated.convert().status_code == 200
    assert not slow.done()
    latch.release()
    assert slow.result().status_code == 200


@pytest.mark.usefixtures("no_short_conversions")
def test_a_full_queue_answers_503(
    serve: Callable[..., Running], engine: Isolated, latch: Latch, threads: ThreadPoolExecutor
) -> None:
    running = serve(engine, workers=1, queue=1)
    first = threads.submit(running.convert, latch.content)
    wait_until(lambda: bool(latch.processes()))
    slots = running.server.config.app.state.service.resources.slots  # type: ignore[union-attr]
    second = threads.submit(running.convert)
    wait_until(lambda: len(slots._waiting) == 1)
    answer = running.convert()
    check_error(answer, 503, "server_busy")
    assert int(answer.headers["retry-after"]) > 0
    assert running.get("/plan").status_code == 200
    latch.release()
    assert first.result().status_code == 200
    assert second.result().status_code == 200


def test_a_batch_leaves_a_worker_for_other_requests(
    serve: Callable[..., Running], engine: Isolated, tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    running = serve(engine, workers=2, queue=0)
    latches = [Latch(tmp_path, f"latch{n}") for n in range(3)]
    batch = threads.submit(running.many, *((f"{n}.toy", latch.content) for n, latch in enumerate(latches)))
    wait_until(lambda: any(latch.processes() for latch in latches))
    assert running.convert().status_code == 200
    for latch in latches:
        latch.release()
    assert list(unzip_response(batch.result())) == ["0.toy", "1.toy", "2.toy"]


class Reluctant(InProcess):
    """Engine that runs until the client disconnects, then until the folder is removed or half a second passes."""

    def __init__(self) -> None:
        self.running = 0
        self.removed = threading.Event()

    def run(self, task: Task, *, timeout: float | None = None, cancel: Cancel | None = None) -> Report | Inspection:
        if cancel is None:
            return super().run(task)
        self.running += 1
        select.select([cancel.fileno()], [], [], 60)
        self.removed.wait(0.5)
        self.running -= 1
        raise Canceled("the client disconnected")


def test_the_folder_of_a_batch_stays_until_its_last_conversion_has_stopped(
    serve: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Reluctant()
    running = serve(engine, workers=2, batch_workers=1)
    still_running: list[int] = []
    rmtree = shutil.rmtree

    def watch_rmtree(path: Path, **more: Any) -> None:
        still_running.append(engine.running)
        engine.removed.set()
        rmtree(path, **more)

    monkeypatch.setattr(shutil, "rmtree", watch_rmtree)
    part = b'--b\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\ntoy\r\n'
    form = part % (b"target", b"") + part % (b"files", b'; filename="a.toy"') * 2 + b"--b--\r\n"
    kind = b"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: %d\r\n\r\n" % len(form)
    with socket.create_connection(("127.0.0.1", running.port), timeout=300) as connection:
        connection.sendall(b"POST /convert-many HTTP/1.1\r\nHost: here\r\n" + kind + form)
        wait_until(lambda: engine.running == 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wait_until(lambda: bool(still_running))
    assert still_running == [0]


def test_a_shutdown_lets_running_conversions_finish(
    serve: Callable[..., Running], engine: Isolated, latch: Latch, threads: ThreadPoolExecutor
) -> None:
    running = serve(engine, workers=1)
    first: Future[Any] = threads.submit(running.convert, latch.content)
    wait_until(lambda: bool(latch.processes()))
    slots = running.server.config.app.state.service.resources.slots  # type: ignore[union-attr]
    second = threads.submit(running.convert)
    wait_until(lambda: len(slots._waiting) == 1)
    running.server.should_exit = True
    check_error(second.result(), 503, "shutting_down")
    assert not first.done()
    latch.release()
    assert first.result().status_code == 200


def test_a_shutdown_does_not_wait_for_unfinished_uploads(serve: Callable[..., Running]) -> None:
    running = serve(shutdown_seconds=600, drain_seconds=0.1)
    start = b"POST /convert HTTP/1.1\r\nHost: here\r\nContent-Type: multipart/form-data; boundary=b\r\n"
    with socket.create_connection(("127.0.0.1", running.port), timeout=300) as connection:
        connection.sendall(start + b"Content-Length: 1000\r\n\r\n--b\r\n")
        wait_until(lambda: bool(running.leftovers()))
        running.server.should_exit = True
        head, _, body = receive_all(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503 ")
    assert json.loads(body)["error_code"] == "shutting_down"
    wait_until(lambda: not running.leftovers())


def test_a_shutdown_kills_conversions_at_its_timeout(
    serve: Callable[..., Running], latch: Latch, threads: ThreadPoolExecutor
) -> None:
    running = serve(Isolated(workers=1), workers=1, shutdown_seconds=0.2)
    first = threads.submit(running.convert, latch.content)
    wait_until(lambda: bool(latch.processes()))
    (process,) = latch.processes()
    running.server.should_exit = True
    check_error(first.result(), 503, "shutting_down")
    wait_until(lambda: not is_alive(process))


def test_ready_answers_503_during_a_shutdown(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    assert service.get("/health/ready").json() == {"status": "ready"}
    monkeypatch.setattr(service.server.config.app.state.service.resources, "is_closing", True)  # type: ignore[union-attr]
    check_error(service.get("/health/ready"), 503, "shutting_down")
    assert service.get("/health/live").json() == {"status": "live"}


def test_the_command_serves_until_sigterm(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "MESHHUB_TEMPORARY_FOLDER": str(tmp_path),
        "MESHHUB_WORKERS": "1",
        "MESHHUB_PLAN_FREE_MAX_BATCH_FILES": "7",
    }
    command = [sys.executable, "-m", "meshhub", "serve", "--port", "0"]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
    ) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        first = process.stderr.readline()
        match = re.search(r"http://127\.0\.0\.1:\d+", first)
        assert match is not None, first + process.stderr.read()
        try:
            with httpx.Client(base_url=match[0], timeout=300) as client:
                assert client.get("/plan").json()["limits"]["max_batch_files"] == 7
                answer = client.post("/convert", files={"file": ("t.stl", STL)}, data={"target": "ply"})
                assert answer.status_code == 200, answer.text
                assert answer.content.startswith(b"ply")
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(300)
        assert process.returncode == 0
        assert process.stdout.read() == ""
    assert not list(tmp_path.glob("meshhub-*"))
    assert not (tmp_path / "data").exists()


@pytest.mark.once
@pytest.mark.large
def test_the_next_service_removes_the_files_of_a_killed_one(tmp_path: Path, stack: contextlib.ExitStack) -> None:
    environment = {
        **os.environ,
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "MESHHUB_TEMPORARY_FOLDER": str(tmp_path),
        "MESHHUB_WORKERS": "1",
    }
    command = [sys.executable, "-m", "meshhub", "serve", "--port", "0"]
    # the paths of sockets are limited to 108 bytes
    system = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/tmp")))
    environment["TMPDIR"] = str(system)

    def list_uploads() -> list[str]:
        # os.walk ignores folders that disappear during the walk
        return [name for _, _, names in os.walk(tmp_path) for name in names if name.startswith("upload-")]

    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stderr is not None
        match = re.search(r"127\.0\.0\.1:(\d+)", process.stderr.readline())
        assert match is not None
        with socket.create_connection(("127.0.0.1", int(match[1]))) as connection:
            connection.sendall(
                b"POST /convert HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\n"
                b"Content-Length: 9999\r\n\r\n"
                b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.stl"\r\n\r\nsolid'
            )
            wait_until(lambda: bool(list_uploads()))
            wait_until(lambda: any(names for _, _, names in os.walk(system)))
            process.kill()
            process.wait(300)
    assert list_uploads()
    old = list(system.iterdir())
    assert old
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, text=True) as process:
        try:
            assert process.stderr is not None
            assert "http://127.0.0.1" in process.stderr.readline()
            # no request and no conversion has started yet
            assert not list_uploads()
            assert not any(path.exists() for path in old)
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate()
    assert not list(tmp_path.glob("meshhub-*"))
    assert not list(system.iterdir())


def test_requests_during_a_shutdown_get_503(
    serve: Callable[..., Running], engine: Isolated, latch: Latch, threads: ThreadPoolExecutor
) -> None:
    running = serve(engine, workers=2)
    first = threads.submit(running.convert, latch.content)
    wait_until(lambda: bool(latch.processes()))
    resources = running.server.config.app.state.service.resources  # type: ignore[union-attr]
    running.server.should_exit = True
    wait_until(lambda: resources.is_closing)
    with httpx.Client(base_url=running.url) as new_client:
        for answer in (
            new_client.get("/health/ready"),
            new_client.post("/convert", files={"file": ("a.toy", b"toy")}, data={"target": "toy"}),
            new_client.post("/inspect", files={"file": ("a.toy", b"toy")}),
        ):
            check_error(answer, 503, "shutting_down")
            assert int(answer.headers["retry-after"]) > 0
            assert answer.headers["connection"] == "close"
        assert new_client.get("/health/live").status_code == 200
    assert not first.done()
    latch.release()
    assert first.result().status_code == 200


@pytest.mark.skipif(sys.platform != "linux", reason="memory is bounded on Linux")
def test_a_conversion_is_limited_to_the_memory_in_the_settings(serve: Callable[..., Running]) -> None:
    running = serve(create_engine(Settings(workers=1, conversion_memory_bytes=128 << 20)))
    assert running.convert(toy_weight="1000").status_code == 200
    body = check_error(running.convert(toy_weight="200000000"), 422, "model_too_complex")
    assert body["error"].endswith("report it to the maintainer of 'service_plugins'")


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_stops_running_conversions(
    serve: Callable[..., Running], latch: Latch, threads: ThreadPoolExecutor, second: signal.Signals
) -> None:
    running = serve(Isolated(workers=1), workers=1, shutdown_seconds=600)
    first = threads.submit(running.convert, latch.content)
    wait_until(lambda: bool(latch.processes()))
    (process,) = latch.processes()
    running.server.handle_exit(signal.SIGTERM, None)
    resources = running.server.config.app.state.service.resources  # type: ignore[union-attr]
    wait_until(lambda: resources.is_closing)
    assert is_alive(process)
    running.server.handle_exit(second, None)
    check_error(first.result(), 503, "shutting_down")
    wait_until(lambda: not is_alive(process))
    wait_until(lambda: not running.leftovers())
