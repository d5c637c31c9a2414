"""Wait of a small conversion beside the slow ones of other callers, and what it costs those.

python benchmarks/turns.py [SECONDS] [SOURCE_FOLDER...]

A service has two workers. Three addresses repair, reduce and cut a large sphere again and again; meanwhile other
addresses convert a small one, one after the other, each once. Each source folder holds another version of the package
(`git worktree add`, then its `src`). The first row has the times without the others.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

from engine import write_sphere

SMALL_FACE_COUNT, LARGE_FACE_COUNT = 1400, 1_200_000

SLOW_CALLER_COUNT = 3

PAUSE_S = 1.3
"""Seconds between two small conversions; no multiple of a second, so that they meet the slow ones at all times."""

READY_S = 120.0
"""Seconds until the service has loaded its libraries."""


@contextlib.contextmanager
def serve(source_folder: Path) -> Iterator[str]:
    """Start a service; yield its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        environment = {
            **os.environ,
            "PYTHONPATH": os.fspath(source_folder),
            "XDG_DATA_HOME": folder,
            "MESHHUB_WORKERS": "2",
            "MESHHUB_TRUSTED_PROXIES": "127.0.0.1",
            "MESHHUB_PLAN_FREE_REQUESTS_PER_MINUTE": "none",
            "MESHHUB_PLAN_FREE_MAX_FILE_BYTES": "none",
            "MESHHUB_PLAN_FREE_MAX_REQUEST_BYTES": "none",
        }
        command = [sys.executable, "-m", "meshhub", "serve", "--port", str(port)]
        process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        try:
            url, end = f"http://127.0.0.1:{port}", time.monotonic() + READY_S
            while time.monotonic() < end:
                with contextlib.suppress(httpx.TransportError):
                    if httpx.get(f"{url}/health/ready", timeout=30).status_code == 200:
                        break
                time.sleep(0.2)
            yield url
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def convert(url: str, body: bytes, address: str, **options: str) -> tuple[float, int]:
    """Convert a sphere; return the seconds and the status."""
    begin = time.perf_counter()
    answer = httpx.post(
        f"{url}/convert",
        files={"file": ("a.stl", body)},
        data={"target": "obj", **options},
        headers={"X-Forwarded-For": address},
        timeout=300,
    )
    return time.perf_counter() - begin, answer.status_code


def measure(url: str, small: bytes, large: bytes, seconds: float) -> None:
    """Print the times of small and slow conversions."""
    options = {"repair": "true", "flatten_base_mm": "1", "optimize_target_faces": "900000"}
    alone = [convert(url, large, "10.1.0.0", **options)[0] for _ in range(2)]
    idle = [convert(url, small, f"10.2.0.{number}")[0] for number in range(10)]
    end = time.monotonic() + seconds
    slow: list[tuple[float, int]] = []

    def repeat_slow(number: int) -> None:
        while time.monotonic() < end:
            slow.append(convert(url, large, f"10.1.0.{number}", **options))

    threads = [threading.Thread(target=repeat_slow, args=(number,)) for number in range(SLOW_CALLER_COUNT)]
    for thread in threads:
        thread.start()
    waits: list[tuple[float, int]] = []
    while time.monotonic() < end:
        time.sleep(PAUSE_S)
        waits.append(convert(url, small, f"10.3.0.{len(waits)}"))
    for thread in threads:
        thread.join()
    small_s, slow_s = sorted(wait for wait, _ in waits), [wait for wait, _ in slow]
    print(f"alone: slow {min(alone):.1f} s, small {statistics.median(idle):.2f} s")
    print(
        f"together: {len(small_s)} small, p50 {statistics.median(small_s):.2f} s, "
        f"p90 {small_s[int(0.9 * len(small_s))]:.2f} s, max {small_s[-1]:.2f} s; "
        f"{len(slow_s)} slow, p50 {statistics.median(slow_s):.1f} s, max {max(slow_s):.1f} s; "
        f"failed {sum(status != 200 for _, status in (*waits, *slow))}",
        flush=True,
    )


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    folders = [Path(name) for name in sys.argv[2:]] or [Path(__file__).parent.parent / "src"]
    with tempfile.TemporaryDirectory() as folder:
        bodies = []
        for count in (SMALL_FACE_COUNT, LARGE_FACE_COUNT):
            path = Path(folder, f"{count}.stl")
            write_sphere(path, count)
            bodies.append(path.read_bytes())
    for source_folder in folders:
        print(source_folder, flush=True)
        with serve(source_folder) as url:
            measure(url, bodies[0], bodies[1], seconds)


if __name__ == "__main__":
    main()
