"""Every attack of the hostile test plug-in on a service, while eight other clients convert.

python benchmarks/hostile.py [--deadline 3] [--models FOLDER] [--hooks]

Prints three tables: a row per attack in a conversion, a row per attack in a hook (only these with --hooks), and a row
per error code. The columns are the attack, the error code, the seconds of the engine, the seconds past the deadline for
attacks that reach it, the correct responses to the other clients meanwhile, and the seconds from the response until all
processes were dead and the folder was removed. The other clients are a separate process; FOLDER may hold small STL
files for them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tests" / "support")]

import hostile_plugin  # noqa: E402
from distributions import install  # noqa: E402
from hostile_plugin import ATTACKS, GRANTS, HOOK_ATTACKS, HOOKS, WRITER_ATTACKS  # noqa: E402
from http_serving import Running, serving  # noqa: E402
from meshhub.engine.limits import Limits  # noqa: E402
from meshhub.pipeline.hooks import HOOK_S, SNIFF_S, Hooks  # noqa: E402
from neighbors import Neighbor, Timed, find_job_processes, resident_bytes, sphere_stl  # noqa: E402

CLIENT_COUNT = 8
CLEANUP_TIMEOUT_S = 30.0
"""Seconds to wait for the end of an attack's processes and the removal of its folder."""

LIMITS = Limits(memory_bytes=512 << 20, file_bytes=256 << 20)
SNIFF_ATTACKS = ("hang", "exit-at-once", "daemonize-and-hang")
"""Attacks in the sniffer, which runs in a worker; other hooks run in the service."""

BUDGETS = {"sniff": SNIFF_S, "review": HOOK_S, "grants": HOOK_S, "finished": 0.0}
"""Seconds that a response may wait for a hook."""

ALONE = ("kill-its-parent",)
"""Attacks that end every worker by design: other clients get `worker_crashed`. They run last, without clients."""


def run_clients(url: str, models: Path | None, keys: list[str]) -> None:
    """Run the other clients until standard input ends; print a line of JSON when their counts change."""
    paths = sorted(path for path in models.glob("*.stl") if path.stat().st_size < 300_000)[:24] if models else []
    samples = [(path.name, path.read_bytes()) for path in paths]
    samples = samples or [(f"{number}.stl", sphere_stl(number)) for number in range(24)]
    clients = [Neighbor(url, key, samples[number::CLIENT_COUNT]) for number, key in enumerate(keys)]
    stopping = threading.Event()
    sys.stdout.write("ready\n")
    sys.stdout.flush()

    def print_counts() -> None:
        printed = (0, 0)
        while not stopping.wait(0.05):
            counts = sum(client.right for client in clients), sum(len(client.wrong) for client in clients)
            if counts != printed:
                sys.stdout.write(f"{json.dumps(counts)}\n")
                sys.stdout.flush()
                printed = counts

    with ThreadPoolExecutor(CLIENT_COUNT + 1) as pool:
        pool.submit(print_counts)
        for client in clients:
            pool.submit(client.live, stopping)
        sys.stdin.read()
        stopping.set()
    wrong = [text for client in clients for text in client.wrong]
    sys.stdout.write(json.dumps([sum(client.right for client in clients), len(wrong), wrong[:3]]) + "\n")


class Row(NamedTuple):
    """Measurement of an attack; `late_s`: seconds past the deadline, `cleanup_s`: seconds until everything was gone."""

    attack: str
    code: str
    seconds: float
    late_s: float
    right: int
    responses: int
    cleanup_s: float


class Clients:
    """Process of the other clients; `counts` are the numbers of correct and wrong responses."""

    def __init__(self, running: Running, models: str | None) -> None:
        keys = [running.keys.create("pro", label=str(number))[0] for number in range(CLIENT_COUNT)]
        command = [sys.executable, __file__, "--live", running.url, "--keys", *keys]
        command += ["--models", models] if models else []
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"
        self.counts: list[object] = [0, 0]
        threading.Thread(target=self._read_counts, daemon=True).start()

    def _read_counts(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.counts = json.loads(line)

    @property
    def right(self) -> int:
        return int(str(self.counts[0]))

    @property
    def wrong(self) -> int:
        return int(str(self.counts[1]))

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(120)


@contextlib.contextmanager
def installed(folder: Path) -> Iterator[None]:
    """Install a distribution whose hooks attack on request."""
    install(folder / "installed", "meshhub-hooked", hooked="hostile_plugin:HostileHooks")
    sys.path.insert(0, str(folder / "installed"))
    try:
        yield
    finally:
        sys.path.remove(str(folder / "installed"))


@contextlib.contextmanager
def service(folder: Path, deadline: float) -> Iterator[tuple[Running, Timed]]:
    """Start a service with the hostile plug-in; yield it and its engine."""
    work = folder / "work"
    work.mkdir()
    engine = Timed(workers=CLIENT_COUNT + 2, limits=LIMITS, folder=str(work))
    hooks = Hooks(sniff_s=SNIFF_S, hook_s=HOOK_S, has_details=False)
    plans = {
        "free": {"conversion_timeout_seconds": deadline, "requests_per_minute": 1_000_000},
        "pro": {"conversion_timeout_seconds": 90, "requests_per_minute": 1_000_000},
    }
    settings = {"workers": CLIENT_COUNT + 2, "plan_limits": plans}
    try:
        with serving(folder, settings, engine, (hostile_plugin,), hooks) as running:
            yield running, engine
    finally:
        hooks.close()
        engine.close()


def attack(running: Running, name: str, folder: Path, key: str) -> str:
    """Run an attack in a conversion; return the error code, or "ok"."""
    how = str(folder / name)
    files = {"file": (f"{name}.hostile", "hostile" if name in WRITER_ATTACKS else f"hostile {how}")}
    data = {"target": "hostile", **({"hostile_target": name} if name in WRITER_ATTACKS else {})}
    code = (ATTACKS.get(name) or WRITER_ATTACKS[name])[0]
    headers = {} if code == "conversion_timeout" else {"X-Api-Key": key}
    response = running.post("/convert", files, data, headers=headers)
    actual = "ok" if response.status_code == 200 else str(response.json()["error_code"])
    return actual if actual == code else f"{actual}, expected {code}"


def attack_hook(running: Running, hook: str, name: str, folder: Path, key: str) -> str:
    """Run an attack in a hook; return the error code, or "ok"."""
    how = str(folder / f"{hook}-hook" / name)
    Path(how).parent.mkdir(exist_ok=True)
    (folder / "installed" / GRANTS).write_text(f"{running.keys.check(key).id} {how}\n" if hook == "grants" else "")
    options = {f"hooked_{hook}": how} if hook in ("review", "finished") else {}
    # detected by content alone for the sniffer
    files = {"file": ("nameless", f"hooked {how}") if hook == "sniff" else ("a.hooked", "hooked")}
    response = running.post("/convert", files, {"target": "stl", **options}, headers={"X-Api-Key": key})
    return "ok" if response.status_code == 200 else str(response.json()["error_code"])


def attack_hooks(running: Running, folder: Path, clients: Clients) -> None:
    """Run the attacks in each hook and print a row for each."""
    print("\n| hook | attack | code | seconds | past its budget | correct responses | of | gone after |")
    print("|---|---|---|---|---|---|---|---|")
    key, _ = running.keys.create("pro", label="hooks")
    attacks = [(hook, name) for hook in HOOKS for name in (SNIFF_ATTACKS if hook == "sniff" else HOOK_ATTACKS)]
    for hook, name in attacks:
        right, wrong, start = clients.right, clients.wrong, time.monotonic()
        code = attack_hook(running, hook, name, folder, key)
        seconds = time.monotonic() - start
        late_s = max(0.0, seconds - BUDGETS[hook])
        cleanup_s = measure_wait(lambda: not running_processes(folder / f"{hook}-hook" / name))  # noqa: B023
        good, bad = clients.right - right, clients.wrong - wrong
        line = f"| {hook} | {name} | {code} | {seconds:.2f} | {late_s:.2f} | {good} | {good + bad} | {cleanup_s:.2f} |"
        print(line, flush=True)


def main(deadline: float, models: str | None, only_hooks: bool) -> None:
    """Run all attacks and print the tables."""
    with (
        tempfile.TemporaryDirectory() as name,
        installed(Path(name)),
        service(Path(name), deadline) as (running, engine),
    ):
        folder = Path(name)
        key, _ = running.keys.create("pro", label="hostile")
        attack(running, "return-text", folder, key)
        clients = Clients(running, models)
        while clients.right < 50 and not clients.wrong:
            time.sleep(0.1)
        before = resident_bytes()
        rows: list[Row] = []
        print("| attack | code | seconds | past the deadline | correct responses | of | gone after |")
        print("|---|---|---|---|---|---|---|")
        for name in [name for name in (*ATTACKS, *WRITER_ATTACKS) if name not in ALONE and not only_hooks]:
            right, wrong = clients.right, clients.wrong
            code = attack(running, name, folder, key)
            seconds = engine.seconds[f"{name}.hostile"]
            late_s = max(0.0, seconds - deadline) if code == "conversion_timeout" else 0.0
            cleanup_s = measure_wait(lambda name=name: count_leftovers(folder, engine, name) == (0, 0))  # type: ignore[misc]
            good, bad = clients.right - right, clients.wrong - wrong
            rows.append(Row(name, code, seconds, late_s, good, good + bad, cleanup_s))
            print(
                f"| {name} | {code} | {seconds:.2f} | {late_s:.2f} | {good} | {good + bad} | {cleanup_s:.2f} |",
                flush=True,
            )
        attack_hooks(running, folder, clients)
        growth = resident_bytes() - before
        clients.close()
        print(
            f"\n{clients.right} of {clients.right + clients.wrong} responses to other clients were correct to the byte."
        )
        if clients.wrong:
            print(clients.counts)
        print_summary(rows)
        for name in ALONE:
            code = attack(running, name, folder, key)
            next_code = attack(running, "witness", folder, key)
            print(f"{name}: {code}; the next job: {next_code}.")
        print(f"Memory of the service: {growth / 1e6:+.1f} MB.")
        folders = running.temporary, folder / "work"
    # the service and its engine have ended
    limit = time.monotonic() + 30
    while find_job_processes() and time.monotonic() < limit:
        time.sleep(0.05)
    print(f"At the end: {len(find_job_processes())} processes, {sum(path.exists() for path in folders)} folders.")
    print(
        f"\nDeadline {deadline:g} s, {CLIENT_COUNT} other clients,  Python {sys.version.split()[0]}, "
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    )


def running_processes(pids: Path) -> list[int]:
    """Return the ids in a file, written by an attack, of the processes that still run."""
    if not pids.is_file():
        return []
    text = pids.read_text()
    return [] if text.startswith("{") else [int(line) for line in text.split() if hostile_plugin.is_running(int(line))]


def count_leftovers(folder: Path, engine: Timed, name: str) -> tuple[int, int]:
    """Return the number of processes and of folders that an attack has left."""
    return len(running_processes(folder / name)), int(engine.folders[f"{name}.hostile"].exists())


def measure_wait(is_over: Callable[[], bool]) -> float:
    """Wait until a condition holds; return the seconds, or infinity after the timeout."""
    start = time.monotonic()
    while not is_over():
        if time.monotonic() - start > CLEANUP_TIMEOUT_S:
            return math.inf
        time.sleep(0.002)
    return time.monotonic() - start


def print_summary(rows: list[Row]) -> None:
    """Print the table with a row per error code."""
    print(
        "\n| code | attacks | seconds: median, longest | longest past the deadline | correct responses | gone after |"
    )
    print("|---|---|---|---|---|---|")
    for code in sorted({row.code for row in rows}):
        group = [row for row in rows if row.code == code]
        seconds = [row.seconds for row in group]
        late_s = f"{max(row.late_s for row in group):.2f}" if code == "conversion_timeout" else "–"
        right, responses = sum(row.right for row in group), sum(row.responses for row in group)
        figures = (
            f"{statistics.median(seconds):.2f}, {max(seconds):.2f}",
            late_s,
            f"{right} of {responses}",
            f"{max(row.cleanup_s for row in group):.2f}",
        )
        print(f"| {code} | {', '.join(row.attack for row in group)} | {' | '.join(figures)} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deadline", type=float, default=3.0)
    parser.add_argument("--models")
    parser.add_argument("--hooks", action="store_true", help="only attacks in hooks")
    parser.add_argument("--live", help=argparse.SUPPRESS)
    parser.add_argument("--keys", nargs="*", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.live:
        run_clients(arguments.live, Path(arguments.models) if arguments.models else None, arguments.keys)
    else:
        main(arguments.deadline, arguments.models, arguments.hooks)
