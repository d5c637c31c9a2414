"""CPU time and memory of jobs, for sizing a cluster, summed over all processes of a service with two slots.

python benchmarks/job_costs.py
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import httpx

from engine import write_sphere
from small_jobs import read_cpu_s, walk

JOBS = (
    ("0.07 MB STL → GLB", 1400, 100, {"target": "glb"}),
    ("1 MB STL → 3MF, repaired", 20_000, 40, {"target": "3mf", "repair": "true"}),
    ("20 MB STL → 3MF", 400_000, 8, {"target": "3mf"}),
    ("20 MB STL → 3MF, 50 000 faces", 400_000, 6, {"target": "3mf", "optimize_target_faces": "50000"}),
    ("100 MB STL → 3MF", 2_000_000, 3, {"target": "3mf"}),
)
"""Name, faces, number of jobs, and fields."""


def measure(url: str, process: int, model: bytes, count: int, fields: dict[str, str]) -> tuple[float, float, float]:
    """Run jobs; return CPU seconds per job, jobs per second, and the peak memory of the largest process in MB."""
    peak, ended = [0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.02):
            peak[0] = max(peak[0], *map(_read_memory, walk(process)))

    watcher = threading.Thread(target=watch)
    watcher.start()
    cpu_s, start = read_cpu_s(process), time.perf_counter()
    with httpx.Client(base_url=url, timeout=120) as client:
        ids = [_submit(client, model, fields) for _ in range(count)]
        for job_id in ids:
            while (job := client.get(f"/jobs/{job_id}").json())["state"] in ("queued", "running"):
                time.sleep(0.1)
            if job["state"] != "done":
                raise RuntimeError(job)
    elapsed = time.perf_counter() - start
    ended.set()
    watcher.join()
    return (read_cpu_s(process) - cpu_s) / count, count / elapsed, peak[0] / 1e6


def _submit(client: httpx.Client, model: bytes, fields: dict[str, str]) -> str:
    response = client.post("/jobs", data={"kind": "convert", **fields}, files={"file": ("a.stl", model)})
    response.raise_for_status()
    return str(response.json()["id"])


def _read_memory(process: int) -> int:
    """Return the private memory of a process in bytes."""
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0
    return 1024 * sum(int(size) for size in re.findall(r"^Private_(?:Clean|Dirty): +(\d+)", text, re.M))


def main() -> None:
    """Measure all jobs and print the table."""
    limits = ("REQUESTS_PER_MINUTE", "JOB_REQUESTS_PER_MINUTE", "MAX_UNFINISHED_JOBS", "MAX_FILE_BYTES")
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "XDG_DATA_HOME": folder, "TMPDIR": folder}
        environment |= {f"MESHHUB_PLAN_FREE_{limit}": "none" for limit in (*limits, "MAX_REQUEST_BYTES")}
        command = [sys.executable, "-m", "meshhub", "serve", "--port", "0", "--workers", "2"]
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            match = next(filter(None, (re.search(r"http://[\d.:]+", line) for line in process.stderr)))
            log = threading.Thread(target=process.stderr.read)
            log.start()
            print("| job | CPU s | jobs/s | MB |\n|---|---|---|---|")
            for name, faces, count, fields in JOBS:
                model = write_sphere(Path(folder, "sphere.stl"), faces).read_bytes()
                measure(match[0], process.pid, model, 2, fields)
                cpu_s, rate, memory = measure(match[0], process.pid, model, count, fields)
                print(f"| {name} | {cpu_s:.3f} | {rate:.2f} | {memory:.0f} |", flush=True)
            process.send_signal(signal.SIGTERM)
            log.join()
    print(f"\nPython {sys.version.split()[0]}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
