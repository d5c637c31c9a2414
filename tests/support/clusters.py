"""A server and workers of a cluster: the server in this process, each worker in one of its own."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx

from http_serving import Running, serving
from meshhub.service.jobs.files import LocalJobFiles
from meshhub.service.jobs.postgres import PostgresJobStore
from waiting import wait_until

START_S = 300.0
"""Seconds until a worker has loaded its libraries on a loaded machine."""


@dataclass
class Cluster:
    """Running server, and the settings that its workers share."""

    running: Running
    settings: dict[str, Any]
    folder: Path
    plugins: tuple[ModuleType, ...] = ()
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def store(self) -> PostgresJobStore:
        return PostgresJobStore(self.settings["jobs_database_url"])

    def start_worker(self, **settings: Any) -> subprocess.Popen[bytes]:
        """Start a worker; it may not be ready yet."""
        script = Path(__file__).parent / "cluster_worker.py"
        chosen = {**self.settings, "workers": 1, "worker_memory_bytes": 32 << 30, **settings}
        names = [plugin.__name__ for plugin in self.plugins]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self.workers.append(
            subprocess.Popen([sys.executable, str(script), json.dumps(chosen), *names], env=environment)
        )
        return self.workers[-1]

    def wait_for_workers(self, count: int) -> None:
        """Wait until as many workers accept jobs."""
        with contextlib.closing(self.store) as store:
            wait_until(lambda: len(store.statistics().workers) == count, START_S)

    def submit(self, text: str = "toy", headers: dict[str, str] | None = None, **fields: Any) -> dict[str, Any]:
        """Submit a job; repeat the request while the database of a loaded machine is slow."""
        data = {"kind": "convert", "target": "toy", **fields}
        sent = {"Idempotency-Key": secrets.token_hex(8), **(headers or {})}
        while True:
            answer = self.running.post("/jobs", {"file": ("a.toy", text.encode())}, data, headers=sent)
            if answer.status_code != 503:
                assert answer.status_code == 202, answer.text
                job: dict[str, Any] = answer.json()
                return job
            time.sleep(0.1)

    def show(self, job: dict[str, Any], headers: dict[str, str] | None = None) -> dict[str, Any]:
        """Return the state of a job; repeat the question while the database is away."""
        while True:
            answer = self.running.get(f"/jobs/{job['id']}", headers=headers)
            if answer.status_code != 503:
                assert answer.status_code == 200, answer.text
                state: dict[str, Any] = answer.json()
                return state
            time.sleep(0.1)

    def wait(self, job: dict[str, Any], state: str = "done", seconds: float = START_S, **more: Any) -> dict[str, Any]:
        """Wait for a state of a job."""
        wait_until(lambda: self.show(job, **more)["state"] == state, seconds)
        return self.show(job, **more)

    def count_files(self) -> int:
        """Return the number of stored inputs and results of jobs.

        A submission that got 503 because the database was slow leaves inputs without a job, which are swept first.
        """
        with contextlib.closing(self.store) as store:
            LocalJobFiles(self.folder / "jobs", orphan_age_s=0).sweep(store.select_known)
        return sum(1 for path in (self.folder / "jobs").rglob("*") if path.is_file())


@contextlib.contextmanager
def cluster(folder: Path, url: str, plugins: tuple[ModuleType, ...] = (), **settings: Any) -> Iterator[Cluster]:
    """Start a server; its files are in a folder that the workers share, and its plug-ins are theirs, too."""
    shared = {"jobs_database_url": url, "jobs_folder": str(folder / "jobs"), **settings}
    with serving(folder, {"workers": 1, **shared}, plugins=plugins) as running:
        started = Cluster(running, shared, folder, plugins)
        try:
            yield started
        finally:
            for worker in started.workers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker.pid, signal.SIGCONT)
                worker.kill()
                worker.wait()


def wait_for_start(path: Path, count: int = 1) -> list[int]:
    """Wait until so many runs of `toy wait PATH` have started; return the ids of their processes."""
    wait_until(lambda: len(list(path.parent.glob(f"{path.name}.*"))) >= count, START_S)
    return [int(file.suffix[1:]) for file in path.parent.glob(f"{path.name}.*")]


def is_running(process_id: int) -> bool:
    return Path(f"/proc/{process_id}").exists()


class Proxy:
    """TCP proxy in front of a server, which can drop its connections and refuse others."""

    def __init__(self, connect: Callable[[], socket.socket]) -> None:
        """Use a function that connects to the server."""
        self._connect = connect
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self.is_open = True
        self.port: int = self._listener.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._start_thread(self._accept)

    def drop(self) -> None:
        """Close all connections, and refuse others until `is_open` is set."""
        self.is_open = False
        for pair in self._pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Stop to listen, and close all connections."""
        self.drop()
        with contextlib.suppress(OSError):
            # wakes the thread that accepts
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()
        for pair in self._pairs:
            for end in pair:
                end.close()

    def _start_thread(self, function: Callable[..., None], *arguments: socket.socket) -> None:
        thread = threading.Thread(target=function, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if not self.is_open:
                    client.close()
                    continue
                server = self._connect()
                self._pairs.append((client, server))
                for source, target in ((client, server), (server, client)):
                    self._start_thread(self._copy, source, target)

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                target.sendall(data)
            target.shutdown(socket.SHUT_RDWR)


def read_metric(text: str, name: str) -> float:
    """Return the value of a metric in Prometheus' text format."""
    return next(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))


def get_when_open(url: str) -> httpx.Response:
    """Request an address as soon as something listens there."""
    answers: list[httpx.Response] = []

    def request() -> bool:
        with contextlib.suppress(httpx.TransportError):
            answers.append(httpx.get(url, timeout=30))
        return bool(answers)

    wait_until(request, START_S)
    return answers[-1]
