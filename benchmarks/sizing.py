"""Size of a cluster for a rate of jobs, from what one job takes, and a simulation of the waits.

python benchmarks/sizing.py              the table for 1, 100 and 10 000 jobs per second
python benchmarks/sizing.py --database   what one job costs PostgreSQL, which must be installed
python benchmarks/sizing.py --check      waits of jobs on a real cluster of two slots, and in the simulation

In the simulation, jobs arrive at random (Poisson), and each takes the first free slot for the processor time of its
kind. Turns of callers and memory are left out: they decide who waits, not how many.
"""

from __future__ import annotations

import heapq
import math
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import psycopg
from msgspec import Struct
from numpy.typing import NDArray

from cluster import DRAIN_S, make_sphere, run_cluster, submit, wait
from small_jobs import read_cpu_s

Float64 = NDArray[np.float64]

RATES = (1, 100, 10_000)
"""Jobs per second of the table."""

MIX = (
    ("0.07 MB STL → GLB", 0.70, 0.034, 0.15),
    ("1 MB STL → 3MF, repaired", 0.20, 0.24, 1.3),
    ("20 MB STL → 3MF", 0.06, 0.68, 25.0),
    ("20 MB STL → 3MF, 50 000 faces", 0.04, 2.8, 22.0),
)
"""Kind of job, its share, processor time in seconds (`job_costs.py`; of the first, `cluster.py`), and MB that are
stored."""

LOAD = 0.7
"""Share of the time in which slots are busy."""

SERVER_CPU_S = 0.016
"""Processor time of a server for a job: submission, polls, and delivery of the result (`cluster.py`)."""

WORKER_SLOTS = 8
"""Slots of a worker, one for each core."""


class Waits(Struct):
    """Seconds from the arrival of jobs to their start, and share of the time in which slots were busy."""

    p50_s: float
    p99_s: float
    load: float


def simulate(arrivals: Float64, durations: Float64, slots: int) -> Waits:
    """Run jobs in the order of their arrival on slots.

    Args:
        arrivals: (n,) seconds, ascending.
        durations: (n,) seconds.
        slots: Number of jobs that run in parallel.
    """
    free = [0.0] * slots
    starts = np.empty(len(arrivals))
    for number, (arrival, duration) in enumerate(zip(arrivals.tolist(), durations.tolist(), strict=True)):
        start = max(arrival, free[0])
        heapq.heapreplace(free, start + duration)
        starts[number] = start
    waits = starts - arrivals
    span = float((starts + durations).max() - arrivals[0])
    return Waits(
        p50_s=float(np.percentile(waits, 50)),
        p99_s=float(np.percentile(waits, 99)),
        load=float(durations.sum()) / span / slots,
    )


def draw(rate: float, count: int, seed: int = 1) -> tuple[Float64, Float64]:
    """Return arrivals and durations (count,) of a mix of jobs; a duration varies by a quarter."""
    random = np.random.default_rng(seed)
    shares, costs = np.array([share for _, share, _, _ in MIX]), np.array([cost for _, _, cost, _ in MIX])
    durations = costs[random.choice(len(MIX), count, p=shares)] * random.lognormal(0, 0.25, count)
    return np.cumsum(random.exponential(1 / rate, count)), durations


def print_table() -> None:
    """Print the size of a cluster for each rate, with the waits of the simulation."""
    cpu_s = sum(share * cost for _, share, cost, _ in MIX)
    stored_mb = sum(share * size for _, share, _, size in MIX)
    print("| jobs/s | slots | workers of 8 | server cores | MB/s of files | wait p50 s | p99 s |")
    print("|---|---|---|---|---|---|---|")
    for rate in RATES:
        slots = math.ceil(rate * cpu_s / LOAD)
        waits = simulate(*draw(rate, max(20_000, 40 * rate)), slots)
        print(
            f"| {rate:,} | {slots:,} | {math.ceil(slots / WORKER_SLOTS):,} | {rate * SERVER_CPU_S / LOAD:,.1f} "
            f"| {rate * stored_mb:,.0f} | {waits.p50_s:.2f} | {waits.p99_s:.2f} |"
        )


def measure_database(count: int = 60) -> None:
    """Print what a small job costs PostgreSQL, without what the idle cluster costs."""
    body = make_sphere(1400)
    query = (
        "SELECT xact_commit, tup_inserted + tup_updated + tup_deleted, (SELECT wal_bytes FROM pg_stat_wal) "
        "FROM pg_stat_database WHERE datname = 'postgres'"
    )
    with run_cluster(1) as (port, database, store), psycopg.connect(database.url, autocommit=True) as connection:

        def read() -> Float64:
            # the processes of PostgreSQL report their figures once a second
            time.sleep(1.5)
            row = connection.execute(query).fetchone()
            assert row is not None
            return np.array([time.monotonic(), read_cpu_s(database.process), *map(float, row)])

        before = read()
        time.sleep(10)
        idle = read() - before
        before = read()
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda _: submit(port, body), range(count)))
        wait(lambda: len(store.list_usage()) == count, DRAIN_S)
        busy = read() - before
        per_job = (busy - idle * busy[0] / idle[0])[1:] / count
        for name, value, base in zip(
            ("processor time, ms", "transactions", "rows written", "kB of log"),
            per_job * (1000, 1, 1, 1e-3),
            idle[1:] / idle[0] * (1000, 1, 1, 1e-3),
            strict=True,
        ):
            print(f"{name}: {value:.1f} per job, {base:.1f} per second of the idle cluster")


def check(count: int = 60) -> None:
    """Print the waits of jobs on two slots, and those of the simulation with the durations of the same jobs."""
    bodies = [make_sphere(1400), make_sphere(20_000)]
    random = np.random.default_rng(2)
    gaps = random.exponential(0.5, count)
    with run_cluster(2) as (port, _, store):
        ids = []
        for number, gap in enumerate(gaps.tolist()):
            time.sleep(gap)
            ids.append(submit(port, bodies[number % 2], **({"repair": "true"} if number % 2 else {})))
        wait(lambda: len(store.list_usage()) == count, DRAIN_S)
        jobs = [httpx.get(f"http://127.0.0.1:{port}/jobs/{job_id}").json() for job_id in ids]
    times = np.array([[job[name] for name in ("created", "started", "finished")] for job in jobs])
    times = times[np.argsort(times[:, 0])]
    waits = times[:, 1] - times[:, 0]
    durations = times[:, 2] - times[:, 1]
    simulated = simulate(times[:, 0] - times[0, 0], durations, 2)
    print(f"real: wait p50 {np.percentile(waits, 50):.2f} s, p99 {np.percentile(waits, 99):.2f} s")
    print(f"simulated: p50 {simulated.p50_s:.2f} s, p99 {simulated.p99_s:.2f} s, load {simulated.load:.0%}")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")


def main() -> None:
    match sys.argv[1:]:
        case ["--database"]:
            measure_database()
        case ["--check"]:
            check()
        case _:
            print_table()


if __name__ == "__main__":
    main()
