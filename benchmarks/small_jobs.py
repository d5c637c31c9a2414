"""CPU time of a small conversion over HTTP, summed over all processes of the service.

python benchmarks/small_jobs.py [REQUESTS] [SOURCE_FOLDER...]

A sphere of 1400 triangles is converted from STL to GLB, with the rate limits lifted: one request of a caller after the
other, then from eight connections; then the same with another address in each request; then sixty addresses at once,
each with requests one after the other, and 250 addresses with one request each. The settings of the environment apply,
such as MESHHUB_WORKER_SHARING=all. Each source folder holds another version of the package (`git worktree add`, then
its `src`); the versions are measured in turns, because a busy machine slows all of them. CPU time depends less on the
load of the machine than elapsed time. The first request is sent as soon as the service is ready.

The last row is FastAPI with trimesh in a pool of processes (`small_jobs_peer.py`), which does not isolate callers and
has neither deadlines nor limits. It needs `uv pip install --group guides trimesh`.
"""

from __future__ import annotations

import contextlib
import http.client
import importlib.util
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec import Struct

from engine import write_sphere

FACE_COUNT = 1400

ADDRESS_COUNT = 200
"""Addresses of the requests of many callers."""

SETTLE_S = 12.0
"""Seconds after the first request, in which the service imports the libraries that small conversions do not need."""

STOP_S = 20.0
"""Seconds until a service that was told to stop is killed."""

CONNECTION_COUNT = 8
"""Connections of the parallel measurement."""

CROWD_COUNT = 60
"""Addresses that send requests at the same time."""

BURST_COUNT = 250
"""Addresses that send one request each, at the same time."""

ROUND_COUNT = int(os.environ.get("ROUNDS", "3"))
"""Alternations between the versions; the median of each is reported."""

GOAL_CPU_MS = 15
"""Milliseconds of CPU time of a request."""

_ADDRESS = "10.1.0.1"
"""Address of the requests of one caller."""

_BOUNDARY = "meshhub-benchmark"
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Result(Struct):
    """Measurement of one version: milliseconds, and requests per second of parallel connections."""

    ready_ms: float
    first_ms: float
    cpu_ms: float
    p50_ms: float
    parallel_cpu_ms: float
    per_second: float
    callers_cpu_ms: float
    callers_p50_ms: float
    callers_per_second: float
    crowd_per_second: float
    crowd_p50_ms: float
    crowd_p99_ms: float
    burst_served: float
    burst_longest_ms: float


def measure(source_folder: Path | None, body: bytes, count: int) -> Result:
    """Start a service, the peer if there is no folder, measure it, and stop it."""
    start = time.perf_counter()
    with serve(source_folder) as (process, port):
        return _measure_running(process, port, body, count, start)


@contextlib.contextmanager
def serve(source_folder: Path | None) -> Iterator[tuple[int, int]]:
    """Run a service without rate limits, the peer if there is no folder; yields the process and the port."""
    environment = {
        **os.environ,
        "MESHHUB_PLAN_FREE_REQUESTS_PER_MINUTE": "none",
        "MESHHUB_TRUSTED_PROXIES": "127.0.0.1",
    }
    command = [sys.executable, "-m", "meshhub", "serve", "--port", "0"]
    if source_folder is None:
        command = [sys.executable, os.fspath(Path(__file__).with_name("small_jobs_peer.py"))]
    else:
        environment["PYTHONPATH"] = os.fspath(source_folder)
    with tempfile.TemporaryDirectory() as folder:
        environment |= {"XDG_DATA_HOME": folder, "TMPDIR": folder}
        process = subprocess.Popen(
            command,
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            port = _find_port(process)
            assert process.stderr is not None
            # the pipe must not fill with the lines of the access log
            threading.Thread(target=process.stderr.read, daemon=True).start()
            yield process.pid, port
        finally:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_S)
            # the processes of the peer's pool survive a signal to their parent
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _measure_running(process: int, port: int, body: bytes, count: int, start: float) -> Result:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    while True:
        connection.request("GET", "/health/ready")
        response = connection.getresponse()
        response.read()
        if response.status == 200:
            break
        time.sleep(0.05)
    ready_ms = (time.perf_counter() - start) * 1000
    first_ms = _convert(connection, body)
    time.sleep(SETTLE_S)
    # servers close idle connections; this one opens again
    connection.close()
    for _ in range(10):
        _convert(connection, body)
    cpu = read_cpu_s(process)
    times = [_convert(connection, body) for _ in range(count)]
    sequential = read_cpu_s(process) - cpu
    cpu = read_cpu_s(process)
    per_second = _measure_rate(port, body, [_ADDRESS] * count)
    parallel = read_cpu_s(process) - cpu
    addresses = [f"10.0.{number % ADDRESS_COUNT}.1" for number in range(count)]
    cpu = read_cpu_s(process)
    callers_times = [_convert(connection, body, address) for address in addresses[:ADDRESS_COUNT]]
    callers = read_cpu_s(process) - cpu
    callers_per_second = _measure_rate(port, body, [address[:-1] + "2" for address in addresses])
    crowd_times, elapsed_s = _measure_crowd(port, body, CROWD_COUNT, max(1, count // 20))
    burst_times, _ = _measure_crowd(port, body, BURST_COUNT, 1)
    return Result(
        ready_ms=ready_ms,
        first_ms=first_ms,
        cpu_ms=sequential / count * 1000,
        p50_ms=statistics.median(times),
        parallel_cpu_ms=parallel / count * 1000,
        per_second=per_second,
        callers_cpu_ms=callers / len(callers_times) * 1000,
        callers_p50_ms=statistics.median(callers_times),
        callers_per_second=callers_per_second,
        crowd_per_second=len(crowd_times) / elapsed_s,
        crowd_p50_ms=statistics.median(crowd_times),
        crowd_p99_ms=statistics.quantiles(crowd_times, n=100)[-1],
        burst_served=len(burst_times),
        burst_longest_ms=max(burst_times, default=0.0),
    )


def _measure_rate(port: int, body: bytes, addresses: list[str]) -> float:
    """Return the requests per second over parallel connections; each request comes from the next address."""

    def run_share(share: list[str]) -> None:
        own = http.client.HTTPConnection("127.0.0.1", port)
        for address in share:
            _convert(own, body, address)

    began = time.perf_counter()
    with ThreadPoolExecutor(CONNECTION_COUNT) as threads:
        list(threads.map(run_share, [addresses[first::CONNECTION_COUNT] for first in range(CONNECTION_COUNT)]))
    return len(addresses) / (time.perf_counter() - began)


def _measure_crowd(port: int, body: bytes, addresses: int, count: int) -> tuple[list[float], float]:
    """Return the milliseconds of the requests that succeeded, `count` of each address, and the seconds for all."""

    def send(number: int) -> list[float]:
        own = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        times = []
        for _ in range(count):
            with contextlib.suppress(RuntimeError):
                times.append(_convert(own, body, f"10.{addresses}.{number}.1"))
        return times

    began = time.perf_counter()
    with ThreadPoolExecutor(addresses) as threads:
        times = [each for of_address in threads.map(send, range(addresses)) for each in of_address]
    return times, time.perf_counter() - began


def _convert(connection: http.client.HTTPConnection, body: bytes, address: str = _ADDRESS) -> float:
    """Return the milliseconds of a request from an address."""
    start = time.perf_counter()
    response, content = send(connection, body, address)
    if response.status != 200 or content[:4] != b"glTF":
        raise RuntimeError(f"{response.status}: {content[:200]!r}")
    return (time.perf_counter() - start) * 1000


def send(connection: http.client.HTTPConnection, body: bytes, address: str) -> tuple[http.client.HTTPResponse, bytes]:
    """Send a request from an address; return the response and its content."""
    headers = {"Content-Type": f"multipart/form-data; boundary={_BOUNDARY}", "X-Forwarded-For": address}
    connection.request("POST", "/convert", body, headers)
    response = connection.getresponse()
    return response, response.read()


def _find_port(process: subprocess.Popen[str]) -> int:
    assert process.stderr is not None
    for line in process.stderr:
        match = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        if match:
            return int(match[1])
    raise RuntimeError("the service did not start")


def read_cpu_s(root: int) -> float:
    """Return the CPU seconds of a process and its descendants, including those that have ended."""
    ticks = 0
    for process in walk(root):
        try:
            fields = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue
        # utime, stime, cutime, cstime of proc_pid_stat(5)
        ticks += sum(map(int, fields[11:15]))
    return ticks / _TICKS_PER_S


def walk(process: int) -> Iterator[int]:
    yield process
    try:
        threads = os.listdir(f"/proc/{process}/task")
        children = [Path(f"/proc/{process}/task/{thread}/children").read_text().split() for thread in threads]
    except OSError:
        return
    for child in {int(child) for of_thread in children for child in of_thread}:
        yield from walk(child)


def build_body(model: bytes) -> bytes:
    head = "\r\n".join(
        (
            f"--{_BOUNDARY}",
            'Content-Disposition: form-data; name="target"',
            "",
            "glb",
            f"--{_BOUNDARY}",
            'Content-Disposition: form-data; name="file"; filename="sphere.stl"',
            "Content-Type: model/stl",
            "",
            "",
        )
    )
    return head.encode() + model + f"\r\n--{_BOUNDARY}--\r\n".encode()


def main() -> None:
    """Measure all versions and print the table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    folders: list[Path | None] = [Path(name) for name in sys.argv[2:]] or [Path(__file__).resolve().parents[1] / "src"]
    if importlib.util.find_spec("fastapi") and importlib.util.find_spec("trimesh"):
        folders.append(None)
    with tempfile.TemporaryDirectory() as folder:
        body = build_body(write_sphere(Path(folder) / "sphere.stl", FACE_COUNT).read_bytes())
    rounds: dict[Path | None, list[Result]] = {folder: [] for folder in folders}
    for _ in range(ROUND_COUNT):
        for folder in folders:
            rounds[folder].append(measure(folder, body, count))
    names = [
        "version",
        "ready ms",
        "first ms",
        "CPU ms",
        "p50 ms",
        "CPU ms, 8 at once",
        "requests/s, 8 at once",
    ]
    names += ["CPU ms, many callers", "p50 ms, many callers", "requests/s, many callers, 8 at once"]
    names += [f"requests/s, {CROWD_COUNT} at once", "p50 ms", "p99 ms", f"served of {BURST_COUNT}", "longest ms"]
    print(f"| {' | '.join(names)} |")
    print("|" + "---|" * len(names))
    for folder, results in rounds.items():
        values = [statistics.median(getattr(result, name) for result in results) for name in Result.__struct_fields__]
        print(f"| {folder or 'FastAPI, trimesh'} | " + " | ".join(f"{value:.1f}" for value in values) + " |")
    load = os.getloadavg()[0]
    print(f"\nPython {sys.version.split()[0]}, {os.cpu_count()} cores, load {load:.1f}, {count} requests")
    print(f"goal: {GOAL_CPU_MS} ms of CPU time")


if __name__ == "__main__":
    main()
