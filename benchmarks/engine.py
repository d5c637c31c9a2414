"""What a process of its own costs each job: the isolated engine against the same chain in this process.

python benchmarks/engine.py [JOBS]

Everything is loaded before the clock starts. One job after the other, so that a spare worker is always
ready; the last column is when eight callers ask at once and never wait between two jobs, per job.
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

LARGE = 100_000
"""Faces from which on a new process mostly waits for memory, which no engine can lend it."""


def sphere_stl(path: Path, faces: int) -> Path:
    """A binary STL of a bumpy sphere."""
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


def timed(job: Callable[[], object], count: int) -> list[float]:
    """Milliseconds of each."""
    taken = []
    for _ in range(count):
        begun = time.perf_counter()
        job()
        taken.append((time.perf_counter() - begun) * 1000)
        # as callers do: the next does not come in the same instant
        time.sleep(0.03)
    return taken


def crowd(job: Callable[[], object], count: int) -> float:
    """Milliseconds per job when eight callers ask at once."""
    begun = time.perf_counter()
    with ThreadPoolExecutor(8) as callers:
        for done in [callers.submit(job) for _ in range(count)]:
            done.result()
    return (time.perf_counter() - begun) * 1000 / count


def main() -> None:
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    here = Registry(entry_points=False, engine=InProcess())
    apart = Registry(entry_points=False, engine=Isolated(queue=100))
    print("| job | in process ms | isolated ms | overhead ms | 95 % below | eight at once, ms a job |")
    print("|---|---|---|---|---|---|")
    worst = 0.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for faces, target in ((12, "stl"), (2_000, "3mf"), (20_000, "obj"), (400_000, "3mf")):
            source = sphere_stl(folder / f"{faces}.stl", faces)

            def job(registry: Registry, source: Path = source, target: str = target) -> None:
                handle, path = tempfile.mkstemp(suffix="." + target, dir=folder)
                os.close(handle)
                registry.convert(source, path)
                Path(path).unlink()

            count = jobs if faces < LARGE else max(5, jobs // 6)
            timed(lambda job=job: job(here), 2)
            timed(lambda job=job: job(apart), 4)
            own = statistics.median(timed(lambda job=job: job(here), count))
            taken = timed(lambda job=job: job(apart), count)
            overheads = sorted(one - own for one in taken)
            overhead = statistics.median(overheads)
            if faces < LARGE:
                worst = max(worst, overhead)
            together = crowd(lambda job=job: job(apart), count)
            print(
                f"| {source.stat().st_size / 1e6:.3g} MB STL → {target} | {own:.1f} | {statistics.median(taken):.1f} "
                f"| {overhead:.1f} | {overheads[int(len(overheads) * 0.95) - 1]:.1f} | {together:.1f} |",
                flush=True,
            )
    apart.close()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0
    print(f"\nPython {sys.version.split()[0]}, {os.cpu_count()} cores, load {load:.1f}, {jobs} jobs; goal {GOAL_MS} ms")
    print(f"{'kept' if worst <= GOAL_MS else 'not kept'} by the small jobs, the largest overhead was {worst:.0f} ms")


if __name__ == "__main__":
    main()
