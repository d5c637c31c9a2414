"""Small conversions of many callers for minutes: sixty addresses at once, and each minute 250 more with one request.

python benchmarks/crowd.py [MINUTES] [SOURCE_FOLDER]

The requests are those of `small_jobs.py`, with another sphere for each address, whose answer is compared with the first
one of that address. The settings of the environment apply, such as MESHHUB_WORKER_SHARING=all. Each row is a minute:
answers, those that were refused because the queue was full, wrong ones, times, processor time of an answer, and memory
of all processes. The exit status is 1 if an answer was wrong or one of the sixty addresses was refused. Linux only.
"""

from __future__ import annotations

import http.client
import os
import statistics
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from engine import write_sphere
from small_jobs import BURST_COUNT, CROWD_COUNT, FACE_COUNT, build_body, read_cpu_s, send, serve, walk

BURST_AT_S = 30.0
"""Seconds after the start of a minute at which the further addresses send."""

FACE_STEP = 40
"""Triangles by which the models of two addresses differ."""


class Counts:
    """Answers of a minute, by all threads."""

    def __init__(self) -> None:
        self.times_ms: list[float] = []
        self.burst_ms: list[float] = []
        self.burst_refused = 0
        self.refused = 0
        self.wrong: list[str] = []


def convert(
    connection: http.client.HTTPConnection, body: bytes, address: str, expected: dict[str, bytes], counts: Counts
) -> bool:
    """Return whether a request was accepted, and record a wrong answer; after a refusal, wait as long as it says."""
    response, content = send(connection, body, address)
    if response.status == 503:
        time.sleep(float(response.headers["Retry-After"]))
        return False
    if response.status != 200 or content != expected.setdefault(address, content) or content[:4] != b"glTF":
        counts.wrong.append(f"{address}: {response.status}, {content[:200]!r}")
    return True


def run_minute(port: int, bodies: list[bytes], expected: dict[str, bytes]) -> Counts:
    """Send from all addresses for a minute."""
    counts, began = Counts(), time.perf_counter()

    def crowd(number: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        while (start := time.perf_counter()) - began < 60:
            address = f"10.1.{number}.1"
            if convert(connection, bodies[number % len(bodies)], address, expected, counts):
                counts.times_ms.append((time.perf_counter() - start) * 1000)
            else:
                counts.refused += 1

    def burst(number: int) -> None:
        connection, address = http.client.HTTPConnection("127.0.0.1", port, timeout=120), f"10.2.{number}.1"
        start = time.perf_counter()
        if convert(connection, bodies[number % len(bodies)], address, expected, counts):
            counts.burst_ms.append((time.perf_counter() - start) * 1000)
        else:
            counts.burst_refused += 1

    with ThreadPoolExecutor(CROWD_COUNT) as threads, ThreadPoolExecutor(BURST_COUNT) as others:
        futures = [threads.submit(crowd, number) for number in range(CROWD_COUNT)]
        timer = threading.Timer(BURST_AT_S, lambda: futures.extend(others.submit(burst, n) for n in range(BURST_COUNT)))
        timer.start()
        timer.join()
        for future in futures:
            future.result()
    return counts


def read_memory_mb(root: int) -> float:
    """Return the proportional memory of a process and its descendants."""
    total = 0
    for process in walk(root):
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


def main() -> int:
    """Send for so many minutes, and print a row for each."""
    minutes = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    source = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).resolve().parents[1] / "src"
    with tempfile.TemporaryDirectory() as folder:
        bodies = [
            build_body(write_sphere(Path(folder) / "sphere.stl", FACE_COUNT + FACE_STEP * number).read_bytes())
            for number in range(CROWD_COUNT)
        ]
    expected: dict[str, bytes] = {}
    is_good = True
    print("minute,answers,refused,wrong,p50_ms,p99_ms,burst_answers,burst_refused,burst_longest_ms,cpu_ms,memory_mb")
    with serve(source) as (process, port):
        for minute in range(minutes):
            cpu_s = read_cpu_s(process)
            counts = run_minute(port, bodies, expected)
            times = counts.times_ms
            cpu_ms = (read_cpu_s(process) - cpu_s) * 1000 / max(1, len(times) + len(counts.burst_ms))
            row = [minute + 1, len(times), counts.refused, len(counts.wrong), f"{statistics.median(times):.0f}"]
            row += [f"{statistics.quantiles(times, n=100)[-1]:.0f}", len(counts.burst_ms), counts.burst_refused]
            row += [f"{max(counts.burst_ms, default=0):.0f}", f"{cpu_ms:.1f}", f"{read_memory_mb(process):.0f}"]
            print(",".join(map(str, row)), flush=True)
            for line in counts.wrong[:5]:
                print(line, file=sys.stderr)
            is_good = is_good and not counts.wrong and not counts.refused
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores", file=sys.stderr)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
