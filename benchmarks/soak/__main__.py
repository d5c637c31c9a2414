"""Soak test: a real `meshhub serve` under mixed traffic from many clients; checks every response and the memory.

    python -m benchmarks.soak [MINUTES] [--clients 16] [--cases 49]

The clients send every kind of valid and invalid request. They also send hostile files, crash and hang workers through a
hostile plug-in, disconnect at every stage, and send slowly. This process converts the models beforehand to know the
correct responses; no two clients share a model size. With MESHHUB_CORPUS the clients also convert real files.

At some moments all clients pause until the service is idle. Memory is measured then, because a busy service holds the
requests in progress. At the end the service is stopped. The tables show the results. The exit status is 1 if a response
was wrong, a process or file was left, or memory grew. Linux only: the script reads /proc, and each client has its own
address.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.soak import clients, hostile, models
from benchmarks.soak.checking import ResponseChecker
from benchmarks.soak.connections import Connections
from benchmarks.soak.gate import Gate
from benchmarks.soak.record import LEFT, REJECTED, WRONG, Recorder, drift, memory_table
from benchmarks.soak.server import MEGABYTE, Sample, Server

_PAUSE_COUNT, _SHORT_RUN_PAUSE_COUNT = 9, 4
"""Pauses that count; the first follows the warm-up, the last is the end of the run."""

_WARM_UP_RATIO, _SHORT_RUN_WARM_UP_RATIO = 0.1, 0.3
"""Share of the run that is warm-up: each kind of request must occur often enough to start threads and fill caches."""

_MAX_GROWTH_RATIO, _SHORT_RUN_MAX_GROWTH_RATIO = 0.05, 0.1
"""Permitted growth of memory. In a minute each kind of request occurs only a few times, so a pool, thread or code path
that is first used late in the run counts as growth."""

_SHORT_MINUTES = 5
"""Minutes; a shorter run uses the constants for short runs."""


def main() -> int:
    """Run the soak test, print the tables, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("minutes", nargs="?", type=float, default=30.0)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--cases", type=int, default=0, help="conversions that each client chooses from")
    arguments = parser.parse_args()
    if sys.platform != "linux":
        sys.exit("the soak test needs Linux: it reads /proc")
    signal.signal(signal.SIGTERM, _stop)
    started = time.monotonic()
    factory = models.ModelFactory()
    cases = arguments.cases or max(10, min(49, int(10 + arguments.minutes * 4)))
    workloads = [factory.workload(number, cases) for number in range(arguments.clients)]
    large, real = factory.large(), models.corpus(min(40, int(10 + arguments.minutes * 2)))
    count, seconds = sum(len(workload.cases) for workload in workloads), time.monotonic() - started
    print(
        f"{count} conversions of {arguments.clients} clients, {len(real)} of real files prepared in {seconds:.0f} s",
        flush=True,
    )
    with tempfile.TemporaryDirectory(prefix="meshhub-soak-") as folder:
        server = Server(Path(folder))
        try:
            return _run(server, arguments.minutes, workloads, large, real)
        finally:
            server.kill()


def _stop(number: int, frame: object) -> None:  # noqa: ARG001
    """Exit once on SIGTERM, so that `main` also stops the service."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def _run(
    server: Server, minutes: float, workloads: list[models.Workload], large: models.Case, real: list[models.Case]
) -> int:
    recorder, gate = Recorder(), Gate()
    common = clients.Common(
        port=server.port,
        keys=server.keys,
        recorder=recorder,
        gate=gate,
        checker=ResponseChecker(workloads),
        real=real,
        large=large,
        hostile_files=hostile.hostile_files(),
        invalid_requests=hostile.invalid_requests(server.keys["pro"], server.revoked),
        attack_folder=server.folder / "attacks",
    )
    client_threads = [clients.Client(number, workload, common) for number, workload in enumerate(workloads)]
    sampler = Sampler(server)
    sampler.start()
    start = time.monotonic()
    for client in client_threads:
        client.start()
    idle_samples: list[tuple[str, Sample]] = []
    faults: list[str] = []
    for pause in _schedule_pauses(minutes):
        _sleep_while_running(max(0, start + pause * 60 - time.monotonic()), server)
        if not gate.close(len(client_threads), 180):
            faults.append(f"only {gate.waiting} of {len(client_threads)} clients had a response after 180 s")
        faults += _wait_until_idle(server)
        idle_samples.append((f"minute {(time.monotonic() - start) / 60:.1f}", server.sample()))
        print(f"{idle_samples[-1][0]}: {recorder.requests} requests, {_format_sample(idle_samples[-1][1])}", flush=True)
        if pause < minutes:
            gate.open()
    for client in client_threads:
        client.stopping = True
    gate.open()
    for client in client_threads:
        client.join(60)
    sampler.stop()
    faults += [f"outlived its job: {process}" for process in hostile.surviving_processes(common.attack_folder)]
    faults += server.stop()
    faults += [f"logged: {line[:300]}" for line in server.logged_faults()]
    return _print_report(recorder, idle_samples, sampler, faults, minutes)


def _schedule_pauses(minutes: float) -> list[float]:
    """Return the minutes of the pauses: one in the first minute, for information, and those that count."""
    short = minutes < _SHORT_MINUTES
    count = _SHORT_RUN_PAUSE_COUNT if short else _PAUSE_COUNT
    warm_up = minutes * (_SHORT_RUN_WARM_UP_RATIO if short else _WARM_UP_RATIO)
    counted = [warm_up + (minutes - warm_up) * number / (count - 1) for number in range(count - 1)]
    return [*([] if short else [min(1.0, warm_up / 2)]), *counted, minutes]


def _wait_until_idle(server: Server) -> list[str]:
    """Wait until the service is idle; return a fault that names the remaining work, if any."""
    connections = Connections(server.port, "127.0.0.1")
    busy = ""
    for _ in range(300):
        text = connections.request("GET", "/metrics").body.decode()
        figures = dict(
            line.split() for line in text.splitlines() if line.startswith(("meshhub_queue", "meshhub_workers_b"))
        )
        folders = server.job_folders()
        busy = ", ".join([f"{name} {value}" for name, value in figures.items() if float(value)] + folders)
        if not busy:
            break
        time.sleep(0.1)
    connections.close()
    # spare workers start after the last response
    time.sleep(1.5)
    return [f"not idle 30 s after the last client: {busy}"] if busy else []


def _sleep_while_running(seconds: float, server: Server) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        server.process.wait(seconds)
        sys.exit(f"the service exited: {server.log.read_text()[-3000:]}")


class Sampler(threading.Thread):
    """Thread that samples the service under load every two seconds."""

    def __init__(self, server: Server) -> None:
        super().__init__(daemon=True)
        self._server = server
        self._stopping = threading.Event()
        self.samples: list[Sample] = []

    def run(self) -> None:
        """Sample until `stop` is called."""
        while not self._stopping.wait(2):
            self.samples.append(self._server.sample())

    def stop(self) -> None:
        """Stop sampling."""
        self._stopping.set()
        self.join()

    def maximum(self, name: str) -> int:
        """Return the largest value of a field of the samples."""
        return max(int(getattr(sample, name)) for sample in self.samples)


def _format_sample(sample: Sample) -> str:
    return (
        f"{sample.server_bytes / MEGABYTE:.1f} MB ({sample.server_private_bytes / MEGABYTE:.1f} private), fork server "
        f"{sample.fork_server_bytes / MEGABYTE:.1f} MB, {sample.open_files} open files, {sample.threads} threads, "
        f"{sample.processes} processes, {sample.temporary_files} files"
    )


def _print_report(
    recorder: Recorder, idle_samples: list[tuple[str, Sample]], sampler: Sampler, faults: list[str], minutes: float
) -> int:
    """Print the tables and the faults; return the exit status."""
    max_growth = _MAX_GROWTH_RATIO if minutes >= _SHORT_MINUTES else _SHORT_RUN_MAX_GROWTH_RATIO
    counted = [sample for _, sample in (idle_samples if minutes < _SHORT_MINUTES else idle_samples[1:])]
    growth = {
        "server process": drift([sample.server_bytes for sample in counted]),
        "fork server": drift([sample.fork_server_bytes for sample in counted]),
    }
    faults += [
        f"{sample.temporary_files} files in the temporary folder at {moment}"
        for moment, sample in idle_samples
        if sample.temporary_files
    ]
    print(f"\n{recorder.table()}\n\n{memory_table(idle_samples)}\n")
    print(
        f"maximum under load: {sampler.maximum('server_bytes') / MEGABYTE:.0f} MB in the server process, "
        f"{sampler.maximum('total_bytes') / MEGABYTE:.0f} MB in total, {sampler.maximum('processes')} processes, "
        f"{sampler.maximum('open_files')} open files, {sampler.maximum('threads')} threads, "
        f"{sampler.maximum('temporary_files')} temporary files"
    )
    print("growth after the warm-up: " + ", ".join(f"{name} {ratio:+.1%}" for name, ratio in growth.items()))
    print(
        f"{recorder.requests} requests in {minutes:g} minutes: {recorder.count(REJECTED)} rejected correctly, "
        f"{recorder.count(LEFT)} left early, {recorder.count(WRONG)} wrong responses, {len(faults)} faults"
    )
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores")
    for line in recorder.wrong[:20] + faults[:20]:
        print("FAULT", line)
    grown = [name for name, ratio in growth.items() if ratio > max_growth]
    for name in grown:
        print(f"FAULT the {name} grew by more than {max_growth:.0%}")
    return 1 if recorder.count(WRONG) or faults or grown else 0


if __name__ == "__main__":
    sys.exit(main())
