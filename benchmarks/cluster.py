"""Throughput of jobs on a cluster, and a soak of it with random kills.

python benchmarks/cluster.py [JOBS]            a table: 1, 2 and 4 workers, and replicas without the queue
python benchmarks/cluster.py --soak MINUTES    two servers, three workers, random kills, a restart of the database

PostgreSQL must be installed; each measurement starts one in a temporary folder. A small sphere is converted from STL to
GLB, with the rate limits lifted; every third job of the soak reduces a large one, so that kills hit running jobs. All
processes share this machine, so more workers than cores add nothing.
"""

from __future__ import annotations

import contextlib
import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx

from engine import write_sphere
from meshhub.service.jobs.files import LocalJobFiles
from meshhub.service.jobs.postgres import PostgresJobStore

FACE_COUNT = 1400

LARGE_FACE_COUNT = 200_000
"""Triangles of a model whose reduction takes seconds."""

CONNECTION_COUNT = 8
"""Connections of the clients."""

READY_S = 400.0
"""Seconds until a process has loaded its libraries on a loaded machine."""

DRAIN_S = 600.0
"""Seconds until all jobs have ended after the last submission."""

KILL_INTERVAL_S = (10.0, 20.0)
"""Seconds between two kills of a soak; a worker loads its libraries for about 6 s."""


class Database:
    """PostgreSQL in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._programs = max(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
        self._user = ("runuser", "-u", "postgres", "--") if os.getuid() == 0 else ()
        self.url = f"postgresql://postgres@/postgres?host={folder}"
        if self._user:
            shutil.chown(folder, "postgres")
        self._call("initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")

    @property
    def process(self) -> int:
        """Id of the first process of the running server."""
        return int((self._folder / "data" / "postmaster.pid").read_text().split()[0])

    def start(self) -> None:
        self._call("pg_ctl", "-w", "-l", "log", "-o", f"-c listen_addresses='' -k {self._folder}", "start")

    def stop(self) -> None:
        self._call("pg_ctl", "-w", "-m", "immediate", "stop")

    def _call(self, program: str, *arguments: str) -> None:
        command = [*self._user, str(self._programs / program), "-D", str(self._folder / "data"), *arguments]
        subprocess.run(command, cwd=self._folder, check=True, stdout=subprocess.DEVNULL)


class Nodes:
    """Servers and workers with the same settings."""

    def __init__(self, folder: Path, database_url: str | None) -> None:
        self._folder = folder
        self._environment = {
            **os.environ,
            "XDG_DATA_HOME": str(folder / "data"),
            "MESHHUB_WORKERS": "1",
            "MESHHUB_JOBS_FOLDER": str(folder / "jobs"),
            **({"MESHHUB_JOBS_DATABASE_URL": database_url} if database_url else {}),
        }
        for limit in ("REQUESTS_PER_MINUTE", "JOB_REQUESTS_PER_MINUTE", "MAX_UNFINISHED_JOBS"):
            self._environment[f"MESHHUB_PLAN_FREE_{limit}"] = "none"
        self.servers: dict[int, subprocess.Popen[bytes]] = {}
        self.workers: list[subprocess.Popen[bytes]] = []

    def serve(self, port: int | None = None) -> int:
        port = port or _free_port()
        self.servers[port] = self._start("serve", "--port", str(port))
        return port

    def work(self) -> None:
        self.workers.append(self._start("work"))

    def close(self) -> None:
        for process in (*self.servers.values(), *self.workers):
            process.terminate()
        for process in (*self.servers.values(), *self.workers):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(60)
            process.kill()

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        log = (self._folder / "log").open("ab")
        return subprocess.Popen([sys.executable, "-m", "meshhub", *arguments], env=self._environment, stderr=log)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def wait(condition: Callable[[], bool], seconds: float) -> None:
    """Wait for a condition. Raises TimeoutError."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("it did not happen in time")
        time.sleep(0.05)


def is_ready(port: int) -> bool:
    """Return whether a server is ready."""
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(f"http://127.0.0.1:{port}/health/ready", timeout=30).status_code == 200
    return False


@contextlib.contextmanager
def run_cluster(workers: int) -> Iterator[tuple[int, Database, PostgresJobStore]]:
    """Start a database, a server, and workers with one slot each; yield the port, the database and the store."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        database = Database(Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))))
        database.start()
        stack.callback(database.stop)
        nodes = Nodes(folder, database.url)
        stack.callback(nodes.close)
        port = nodes.serve()
        for _ in range(workers):
            nodes.work()
        store = PostgresJobStore(database.url)
        stack.callback(store.close)
        wait(lambda: is_ready(port) and len(store.statistics().workers) == workers, READY_S)
        yield port, database, store


def measure_cluster(worker_count: int, body: bytes, job_count: int) -> float:
    """Return the jobs per second of workers with one slot each, from the first submission to the last end."""
    with run_cluster(worker_count) as (port, _, store):
        start = time.perf_counter()
        with ThreadPoolExecutor(CONNECTION_COUNT) as threads:
            list(threads.map(lambda _: submit(port, body), range(job_count)))
        wait(lambda: len(store.list_usage()) == job_count, DRAIN_S)
        return job_count / (time.perf_counter() - start)


def measure_replicas(replica_count: int, body: bytes, request_count: int) -> float:
    """Return the synchronous conversions per second of services with one slot each, the least busy one first."""
    with contextlib.ExitStack() as stack:
        busy: Counter[int] = Counter()
        lock = threading.Lock()
        nodes = []
        for _ in range(replica_count):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
            nodes.append(Nodes(folder, None))
            stack.callback(nodes[-1].close)
            busy[nodes[-1].serve()] = 0
        for port in busy:
            wait(lambda port=port: is_ready(port), READY_S)

        def convert(_: int) -> None:
            with lock:
                port = min(busy, key=lambda port: busy[port])
                busy[port] += 1
            files, data = {"file": ("a.stl", body)}, {"target": "glb"}
            answer = httpx.post(f"http://127.0.0.1:{port}/convert", files=files, data=data, timeout=120)
            with lock:
                busy[port] -= 1
            answer.raise_for_status()

        start = time.perf_counter()
        with ThreadPoolExecutor(CONNECTION_COUNT) as threads:
            list(threads.map(convert, range(request_count)))
        return request_count / (time.perf_counter() - start)


def submit(port: int, body: bytes, ports: tuple[int, ...] = (), **options: str) -> str:
    """Submit a job; repeat the request with its key until a server accepts it; return the id."""
    headers = {"Idempotency-Key": secrets.token_hex(8)}
    files, data = {"file": ("a.stl", body)}, {"kind": "convert", "target": "glb", **options}
    while True:
        with contextlib.suppress(httpx.TransportError):
            answer = httpx.post(f"http://127.0.0.1:{port}/jobs", files=files, data=data, headers=headers, timeout=60)
            if answer.status_code == 202:
                job_id: str = answer.json()["id"]
                return job_id
            if answer.status_code not in (429, 503):
                raise RuntimeError(answer.text)
        time.sleep(0.2)
        port = random.choice(ports or (port,))


def soak(minutes: float, body: bytes, large_body: bytes) -> bool:
    """Submit jobs while servers, workers and the database are killed; return whether all ended once."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        database = Database(Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))))
        database.start()
        stack.callback(database.stop)
        nodes = Nodes(folder, database.url)
        stack.callback(nodes.close)
        ports = tuple(nodes.serve() for _ in range(2))
        for _ in range(3):
            nodes.work()
        wait(lambda: all(map(is_ready, ports)), READY_S)
        ids: list[str] = []
        end = time.monotonic() + 60 * minutes

        def submit_until_end(_: int) -> None:
            while time.monotonic() < end:
                port = random.choice(ports)
                if random.random() < 1 / 3:
                    ids.append(submit(port, large_body, ports, optimize_target_faces="20000"))
                else:
                    ids.append(submit(port, body, ports))
                time.sleep(random.uniform(0, 0.5))

        with ThreadPoolExecutor(3) as threads:
            clients = threads.map(submit_until_end, range(3))
            kills = _kill_until(end, nodes, database)
            list(clients)
        store = PostgresJobStore(database.url)
        stack.callback(store.close)
        return _check(store, ids, folder / "jobs", kills)


def _kill_until(end: float, nodes: Nodes, database: Database) -> Counter[str]:
    kills: Counter[str] = Counter()
    restart_at = (time.monotonic() + end) / 2
    while time.monotonic() < end:
        time.sleep(random.uniform(*KILL_INTERVAL_S))
        if not kills["database"] and time.monotonic() > restart_at:
            database.stop()
            time.sleep(5)
            database.start()
            kills["database"] += 1
        elif random.random() < 0.3:
            port = random.choice(list(nodes.servers))
            _kill(nodes.servers[port])
            nodes.serve(port)
            kills["server"] += 1
        else:
            _kill(nodes.workers.pop(random.randrange(len(nodes.workers))))
            nodes.work()
            kills["worker"] += 1
    return kills


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


def _check(store: PostgresJobStore, ids: list[str], folder: Path, kills: Counter[str]) -> bool:
    """Wait for the end of all jobs; print and judge what became of them."""

    def is_empty() -> bool:
        with contextlib.suppress(Exception):
            depth = store.depth()
            return depth.queued + depth.running == 0
        return False

    wait(is_empty, DRAIN_S)
    # stale runs remove their files a moment later
    time.sleep(10)
    usage = store.list_usage()
    states = Counter(row.state for row in usage)
    lost = set(ids) - {row.job_id for row in usage}
    # a server that was killed during a submission leaves inputs without a job, which a sweep removes after an hour
    orphan_count = LocalJobFiles(folder, orphan_age_s=0).sweep(store.select_known)
    leaked = list((folder / "in").glob("*/*"))
    leaked += [path for job in (folder / "out").iterdir() for path in list(job.iterdir())[1:]]
    facts: dict[str, Any] = {
        "submitted": len(ids),
        "submitted twice": len(ids) - len(set(ids)),
        "ended": dict(states),
        "lost": len(lost),
        "billed twice": len(usage) - len({row.job_id for row in usage}),
        "attempts": dict(Counter(row.attempts for row in usage)),
        "orphans of killed servers, swept": orphan_count,
        "leaked files": len(leaked),
        "kills": dict(kills),
    }
    for name, value in facts.items():
        print(f"{name}: {value}")
    return not lost and not leaked and not facts["billed twice"] and not facts["submitted twice"]


def make_sphere(face_count: int) -> bytes:
    """Return a sphere as binary STL."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "sphere.stl")
        write_sphere(path, face_count)
        return path.read_bytes()


def main() -> None:
    body = make_sphere(FACE_COUNT)
    if sys.argv[1:2] == ["--soak"]:
        sys.exit(0 if soak(float(sys.argv[2]), body, make_sphere(LARGE_FACE_COUNT)) else 1)
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print("processes  jobs/s on workers  conversions/s on replicas")
    for processes in (1, 2, 4):
        jobs = measure_cluster(processes, body, count)
        conversions = measure_replicas(processes, body, count)
        print(f"{processes:9}  {jobs:17.1f}  {conversions:25.1f}", flush=True)


if __name__ == "__main__":
    main()
