"""A soak: a real `meshhub serve` under mixed traffic from many clients, every answer checked, memory watched.

    python -m benchmarks.soak [MINUTES] [--clients 16] [--cases 49]

The clients convert, inspect and ask in every way there is, rightly and wrongly; send hostile files,
crash and hang workers through a hostile plug-in, leave at every point, and take long. What must come
back was made beforehand in this process, for models whose sizes no two clients share. With
MESHHUB_CORPUS real files are among them.

At some moments all clients pause, until the service has nothing to do; then its memory is taken,
because under load it holds what is on its way. At the end the service is told to stop. The tables say
what happened; the exit status is 1 when an answer was wrong, something was left behind, or memory
grew. Linux only: the service is watched through /proc, and clients call from addresses of their own.
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
from benchmarks.soak.gate import Gate
from benchmarks.soak.judging import Judge
from benchmarks.soak.record import LEFT, REFUSED, WRONG, Record, drift, memory_table
from benchmarks.soak.server import MEGABYTE, Sample, Server
from benchmarks.soak.wire import Wire

_MOMENTS, _MOMENTS_IN_A_SHORT_RUN = 9, 4
"""Quiet moments that count, the first after the warm-up, the last at the end."""

_WARM_UP, _WARM_UP_IN_A_SHORT_RUN = 0.1, 0.3
"""The share of the run in which threads are started and caches filled: each kind of request must have come often."""

_ALLOWED, _ALLOWED_IN_A_SHORT_RUN = 0.05, 0.1
"""How much memory may grow. In a minute each kind of request comes a few times only: a pool, a thread or a code
path that is used for the first time late in the run counts as growth."""

_SHORT_MINUTES = 5


def main() -> int:
    """Run it and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("minutes", nargs="?", type=float, default=30.0)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--cases", type=int, default=0, help="that each client knows")
    asked = parser.parse_args()
    if sys.platform != "linux":
        sys.exit("the soak needs Linux: it watches the service through /proc")
    signal.signal(signal.SIGTERM, _stop)
    started = time.monotonic()
    kitchen = models.Kitchen()
    cases = asked.cases or max(10, min(49, int(10 + asked.minutes * 4)))
    books = [kitchen.book(number, cases) for number in range(asked.clients)]
    large, real = kitchen.large(), models.corpus(min(40, int(10 + asked.minutes * 2)))
    count, seconds = sum(len(book.cases) for book in books), time.monotonic() - started
    print(
        f"{count} conversions of {asked.clients} clients, {len(real)} of real files prepared in {seconds:.0f} s",
        flush=True,
    )
    with tempfile.TemporaryDirectory(prefix="meshhub-soak-") as folder:
        server = Server(Path(folder))
        try:
            return _soak(server, asked.minutes, books, large, real)
        finally:
            server.kill()


def _stop(number: int, frame: object) -> None:  # noqa: ARG001
    """Whoever stops this stops the service too, and once is enough."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def _soak(server: Server, minutes: float, books: list[models.Book], large: models.Case, real: list[models.Case]) -> int:
    record, gate = Record(), Gate()
    common = clients.Common(
        port=server.port,
        keys=server.keys,
        record=record,
        gate=gate,
        judge=Judge(books),
        real=real,
        large=large,
        refused=hostile.files(),
        wrong=hostile.wrong(server.keys["pro"], server.revoked),
        misdeeds=server.folder / "misdeeds",
    )
    crowd = [clients.Client(number, book, common) for number, book in enumerate(books)]
    watch = Watch(server)
    watch.start()
    began = time.monotonic()
    for client in crowd:
        client.start()
    quiet: list[tuple[str, Sample]] = []
    faults: list[str] = []
    moments = _moments(minutes)
    for at in moments:
        _wait(max(0, began + at * 60 - time.monotonic()), server)
        if not gate.close(len(crowd), 180):
            faults.append(f"only {gate.waiting} of {len(crowd)} clients had their answers after 180 s")
        faults += _calm(server)
        quiet.append((f"minute {(time.monotonic() - began) / 60:.1f}", server.sample()))
        print(f"{quiet[-1][0]}: {record.requests} requests, {_shown(quiet[-1][1])}", flush=True)
        if at < minutes:
            gate.open()
    for client in crowd:
        client.stopping = True
    gate.open()
    for client in crowd:
        client.join(60)
    watch.stop()
    faults += [f"outlived its job: {one}" for one in hostile.survivors(common.misdeeds)]
    faults += server.stop()
    faults += [f"logged: {line[:300]}" for line in server.logged()]
    return _told(record, quiet, watch, faults, minutes)


def _moments(minutes: float) -> list[float]:
    """When all pause: at the first minute, to be seen, and at those that count."""
    short = minutes < _SHORT_MINUTES
    count = _MOMENTS_IN_A_SHORT_RUN if short else _MOMENTS
    warm = minutes * (_WARM_UP_IN_A_SHORT_RUN if short else _WARM_UP)
    counting = [warm + (minutes - warm) * number / (count - 1) for number in range(count - 1)]
    return [*([] if short else [min(1.0, warm / 2)]), *counting, minutes]


def _calm(server: Server) -> list[str]:
    """Wait until the service has nothing to do; what it still has to do after a while."""
    wire = Wire(server.port, "127.0.0.1")
    busy = ""
    for _ in range(300):
        said = wire.ask("GET", "/metrics").body.decode()
        figures = dict(
            line.split() for line in said.splitlines() if line.startswith(("meshhub_queue", "meshhub_workers_b"))
        )
        jobs = server.jobs()
        busy = ", ".join([f"{name} {value}" for name, value in figures.items() if float(value)] + jobs)
        if not busy:
            break
        time.sleep(0.1)
    wire.close()
    # spare workers are started behind the last answer
    time.sleep(1.5)
    return [f"not done 30 s after the last client: {busy}"] if busy else []


def _wait(seconds: float, server: Server) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        server.process.wait(seconds)
        sys.exit(f"the service ended by itself: {server.log.read_text()[-3000:]}")


class Watch(threading.Thread):
    """Samples under load, every few seconds."""

    def __init__(self, server: Server) -> None:
        super().__init__(daemon=True)
        self._server = server
        self._over = threading.Event()
        self.samples: list[Sample] = []

    def run(self) -> None:
        """Until told to stop."""
        while not self._over.wait(2):
            self.samples.append(self._server.sample())

    def stop(self) -> None:
        """No more."""
        self._over.set()
        self.join()

    def most(self, name: str) -> int:
        """The largest value of a figure."""
        return max(int(getattr(sample, name)) for sample in self.samples)


def _shown(sample: Sample) -> str:
    return (
        f"{sample.memory / MEGABYTE:.1f} MB ({sample.listening / MEGABYTE:.1f} its own), fork server "
        f"{sample.sparing / MEGABYTE:.1f} MB, {sample.files} open files, {sample.threads} threads, "
        f"{sample.processes} processes, {sample.left} files"
    )


def _told(record: Record, quiet: list[tuple[str, Sample]], watch: Watch, faults: list[str], minutes: float) -> int:
    allowed = _ALLOWED if minutes >= _SHORT_MINUTES else _ALLOWED_IN_A_SHORT_RUN
    counting = [sample for _, sample in (quiet if minutes < _SHORT_MINUTES else quiet[1:])]
    grown = {
        "listening process": drift([sample.memory for sample in counting]),
        "fork server": drift([sample.sparing for sample in counting]),
    }
    left = [f"{sample.left} files in the temporary folder at {word}" for word, sample in quiet if sample.left]
    faults += left
    print(f"\n{record.table()}\n\n{memory_table(quiet)}\n")
    print(
        f"under load at most: {watch.most('memory') / MEGABYTE:.0f} MB listening, "
        f"{watch.most('proportional') / MEGABYTE:.0f} MB in all, {watch.most('processes')} processes, "
        f"{watch.most('files')} open files, {watch.most('threads')} threads, {watch.most('left')} files kept"
    )
    print("drift after the warm-up: " + ", ".join(f"{name} {share:+.1%}" for name, share in grown.items()))
    print(
        f"{record.requests} requests in {minutes:g} minutes: {record.of(REFUSED)} refused rightly, "
        f"{record.of(LEFT)} left early, wrong answers {record.of(WRONG)}, leftovers and faults {len(faults)}"
    )
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores")
    for line in record.wrong[:20] + faults[:20]:
        print("FAULT", line)
    too_much = [name for name, share in grown.items() if share > allowed]
    for name in too_much:
        print(f"FAULT the {name} grew by more than {allowed:.0%}")
    return 1 if record.of(WRONG) or faults or too_much else 0


if __name__ == "__main__":
    sys.exit(main())
