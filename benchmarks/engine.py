"""Cost of a process per job: the isolated engine compared with the same chain in this process.

python benchmarks/engine.py [JOBS]

Everything is loaded before the measurement. Jobs run one after the other, so that a spare worker is always ready. The
last column is the time per job when eight callers send jobs without pauses.
"""

from __future__ import annotations

import os
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from meshhub import InProcess, Isolated, Registry

GOAL_MS = 50
"""Milliseconds of overhead that a small job may have."""

LARGE_FACE_COUNT = 100_000
"""Faces from which the overhead is mostly memory allocation in the new process."""


def write_sphere(path: Path, faces: int) -> Path:
    """Write a bumpy sphere as binary STL."""
    side = max(4, int((faces / 2) ** 0.5))
    theta, phi = np.meshgrid(np.linspace(0.1, np.pi - 0.1, side), np.linspace(0, 2 * np.pi, side), indexing="ij")
    radius = 20 + np.sin(5 * theta) * np.cos(4 * phi)
    grid = np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)], 2) * radius[..., None]
    p, q, r, s = grid[:-1, :-1], grid[1:, :-1], grid[1:, 1:], grid[:-1, 1:]
    corners = np.concatenate([np.stack([p, q, r], 2).reshape(-1, 3, 3), np.stack([p, r, s], 2).reshape(-1, 3, 3)])
    records = np.zeros(len(corners), [("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
    records["corners"] = corners
    path.write_bytes(bytes(80) + struct.pack("<I", len(records)) + records.tobytes())
    return path


def measure_ms(job: Callable[[], object], count: int) -> list[float]:
    """Return the milliseconds of each run."""
    times = []
    for _ in range(count):
        start = time.perf_counter()
        job()
        times.append((time.perf_counter() - start) * 1000)
        # callers also pause between jobs
        time.sleep(0.03)
    return times


def measure_parallel_ms(job: Callable[[], object], count: int) -> float:
    """Return the milliseconds per job with eight callers."""
    start = time.perf_counter()
    with ThreadPoolExecutor(8) as callers:
        for future in [callers.submit(job) for _ in range(count)]:
            future.result()
    return (time.perf_counter() - start) * 1000 / count


def main() -> None:
    """Measure all jobs and print the table."""
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    in_process = Registry(entry_points=False, engine=InProcess())
    isolated = Registry(entry_points=False, engine=Isolated(queue=100))
    print("| job | in process ms | isolated ms | overhead ms | overhead, 95th percentile | eight at once, ms per job |")
    print("|---|---|---|---|---|---|")
    worst = 0.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for faces, target in ((12, "stl"), (2_000, "3mf"), (20_000, "obj"), (400_000, "3mf")):
            source = write_sphere(folder / f"{faces}.stl", faces)

            def job(registry: Registry, source: Path = source, target: str = target) -> None:
                handle, path = tempfile.mkstemp(suffix="." + target, dir=folder)
                os.close(handle)
                registry.convert(source, path)
                Path(path).unlink()

            count = jobs if faces < LARGE_FACE_COUNT else max(5, jobs // 6)
            measure_ms(lambda job=job: job(in_process), 2)
            measure_ms(lambda job=job: job(isolated), 4)
            base = statistics.median(measure_ms(lambda job=job: job(in_process), count))
            times = measure_ms(lambda job=job: job(isolated), count)
            overheads = sorted(ms - base for ms in times)
            overhead = statistics.median(overheads)
            if faces < LARGE_FACE_COUNT:
                worst = max(worst, overhead)
            parallel = measure_parallel_ms(lambda job=job: job(isolated), count)
            print(
                f"| {source.stat().st_size / 1e6:.3g} MB STL → {target} | {base:.1f} | {statistics.median(times):.1f} "
                f"| {overhead:.1f} | {overheads[int(len(overheads) * 0.95) - 1]:.1f} | {parallel:.1f} |",
                flush=True,
            )
    isolated.close()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0
    print(f"\nPython {sys.version.split()[0]}, {os.cpu_count()} cores, load {load:.1f}, {jobs} jobs; goal {GOAL_MS} ms")
    print(f"goal {'reached' if worst <= GOAL_MS else 'missed'}: the largest overhead of small jobs is {worst:.0f} ms")


if __name__ == "__main__":
    main()
