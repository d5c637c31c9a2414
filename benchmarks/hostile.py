"""Every misdeed of the hostile test plug-in against a service, while eight others convert.

python benchmarks/hostile.py [--deadline 3] [--models FOLDER] [--hooks]

Prints a table with a line for each misdeed in a hook (only that with --hooks), and two more, a line for each misdeed in
a conversion and a line for each answer: what was done, what was told, seconds
until the engine told it (by its own clock; of those that wait for the deadline, the seconds past it), what
the neighbours got meanwhile, and seconds from the answer until all processes were dead and the folder was
removed. The neighbours are a process of their own; FOLDER may hold small STL files.
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
from hostile_plugin import GRANTS, HOOKS, MISDEEDS, WRITING  # noqa: E402
from http_serving import Running, serving  # noqa: E402
from meshhub.engine.hook_process import HOOK_S, SNIFF_S, HookProcess  # noqa: E402
from meshhub.engine.limits import Limits  # noqa: E402
from neighbors import Neighbour, Timed, ball, marked, memory  # noqa: E402

NEIGHBOURS = 8
PATIENCE = 30.0
LIMITS = Limits(memory_bytes=512 << 20, file_bytes=256 << 20)
HOOK_MISDEEDS = ("hang", "exit-at-once", "daemonise-and-hang")
"""Done in each hook, by one caller: no more than may fail before the hook is off for it."""

BUDGETS = {"sniff": SNIFF_S, "review": HOOK_S, "grants": HOOK_S, "finished": 0.0}
"""Seconds that a response may wait for a hook."""

ALONE = ("kill-its-parent",)
"""Ends every worker there is, with purpose: neighbours are told `worker_crashed`. It is done last, without them."""


def live(url: str, models: Path | None, keys: list[str]) -> None:
    """The neighbours: a line for each answer, until standard input ends."""
    found = sorted(path for path in models.glob("*.stl") if path.stat().st_size < 300_000)[:24] if models else []
    offered = [(path.name, path.read_bytes()) for path in found]
    offered = offered or [(f"{number}.stl", ball(number)) for number in range(24)]
    neighbours = [Neighbour(url, key, offered[number::NEIGHBOURS]) for number, key in enumerate(keys)]
    enough = threading.Event()
    sys.stdout.write("ready\n")
    sys.stdout.flush()

    def tell() -> None:
        before = (0, 0)
        while not enough.wait(0.05):
            now = sum(one.right for one in neighbours), sum(len(one.wrong) for one in neighbours)
            if now != before:
                sys.stdout.write(f"{json.dumps(now)}\n")
                sys.stdout.flush()
                before = now

    with ThreadPoolExecutor(NEIGHBOURS + 1) as street:
        street.submit(tell)
        for one in neighbours:
            street.submit(one.live, enough)
        sys.stdin.read()
        enough.set()
    wrong = [text for one in neighbours for text in one.wrong]
    sys.stdout.write(json.dumps([sum(one.right for one in neighbours), len(wrong), wrong[:3]]) + "\n")


class Row(NamedTuple):
    misdeed: str
    told: str
    seconds: float
    past: float
    right: int
    all: int
    gone: float


class Street:
    """The process of the neighbours, and what it told last: right and wrong answers."""

    def __init__(self, running: Running, models: str | None) -> None:
        keys = [running.keys.create("pro", label=str(number))[0] for number in range(NEIGHBOURS)]
        command = [sys.executable, __file__, "--live", running.url, "--keys", *keys]
        command += ["--models", models] if models else []
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"
        self.told: list[object] = [0, 0]
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.told = json.loads(line)

    @property
    def right(self) -> int:
        return int(str(self.told[0]))

    @property
    def wrong(self) -> int:
        return int(str(self.told[1]))

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(120)


@contextlib.contextmanager
def installed(folder: Path) -> Iterator[None]:
    """A distribution whose hooks misbehave when asked to."""
    install(folder / "installed", "meshhub-hooked", hooked="hostile_plugin:HostileHooks")
    sys.path.insert(0, str(folder / "installed"))
    try:
        yield
    finally:
        sys.path.remove(str(folder / "installed"))


@contextlib.contextmanager
def service(folder: Path, deadline: float) -> Iterator[tuple[Running, Timed]]:
    work = folder / "work"
    work.mkdir()
    engine = Timed(workers=NEIGHBOURS + 2, limits=LIMITS, folder=str(work))
    hooks = HookProcess(folder=str(work))
    plans = {
        "free": {"conversion_timeout_seconds": deadline, "requests_per_minute": 1_000_000},
        "pro": {"conversion_timeout_seconds": 90, "requests_per_minute": 1_000_000},
    }
    settings = {"workers": NEIGHBOURS + 2, "plan_limits": plans}
    try:
        with serving(folder, settings, engine, (hostile_plugin,), hooks) as running:
            yield running, engine
    finally:
        hooks.close()
        engine.close()


def ask(running: Running, name: str, folder: Path, key: str) -> str:
    """Do a misdeed; what was told."""
    how = str(folder / name)
    files = {"file": (f"{name}.hostile", "hostile" if name in WRITING else f"hostile {how}")}
    data = {"target": "hostile", **({"hostile_target": name} if name in WRITING else {})}
    code = (MISDEEDS.get(name) or WRITING[name])[0]
    headers = {} if code == "conversion_timeout" else {"X-Api-Key": key}
    answer = running.post("/convert", files, data, headers=headers)
    told = "ok" if answer.status_code == 200 else str(answer.json()["error_code"])
    return told if told == code else f"{told}, expected {code}"


def ask_hook(running: Running, hook: str, name: str, folder: Path, key: str) -> str:
    """Let a hook do a misdeed; what was told."""
    how = str(folder / f"{hook}-hook" / name)
    Path(how).parent.mkdir(exist_ok=True)
    (folder / "installed" / GRANTS).write_text(f"{running.keys.check(key).id} {how}\n" if hook == "grants" else "")
    options = {f"hooked_{hook}": how} if hook in ("review", "finished") else {}
    # by its content alone where the sniffer misbehaves; after that the sniffer is off for this caller
    files = {"file": ("nameless", f"hooked {how}") if hook == "sniff" else ("a.hooked", "hooked")}
    answer = running.post("/convert", files, {"target": "stl", **options}, headers={"X-Api-Key": key})
    return "ok" if answer.status_code == 200 else str(answer.json()["error_code"])


def hook_rows(running: Running, folder: Path, street: Street) -> None:
    """Print a row for each misdeed in each hook."""
    print("\n| hook | misdeed | told | seconds | past its budget | neighbours right | of | gone after |")
    print("|---|---|---|---|---|---|---|---|")
    # a caller for each hook: its hooks are off for it after three failures
    keys = {hook: running.keys.create("pro", label=hook)[0] for hook in HOOKS}
    for hook, misdeed in [(hook, misdeed) for hook in HOOKS for misdeed in HOOK_MISDEEDS]:
        right, wrong, begun = street.right, street.wrong, time.monotonic()
        told = ask_hook(running, hook, misdeed, folder, keys[hook])
        seconds = time.monotonic() - begun
        past = max(0.0, seconds - BUDGETS[hook])
        gone = waited_for(lambda: not hidden(folder / f"{hook}-hook" / misdeed))  # noqa: B023
        good, bad = street.right - right, street.wrong - wrong
        line = f"| {hook} | {misdeed} | {told} | {seconds:.2f} | {past:.2f} | {good} | {good + bad} | {gone:.2f} |"
        print(line, flush=True)


def main(deadline: float, models: str | None, only_hooks: bool) -> None:
    with (
        tempfile.TemporaryDirectory() as name,
        installed(Path(name)),
        service(Path(name), deadline) as (running, engine),
    ):
        folder = Path(name)
        key, _ = running.keys.create("pro", label="hostile")
        ask(running, "return-text", folder, key)
        street = Street(running, models)
        while street.right < 50 and not street.wrong:
            time.sleep(0.1)
        before = memory()
        rows: list[Row] = []
        print("| misdeed | told | seconds | past the deadline | neighbours right | of | gone after |")
        print("|---|---|---|---|---|---|---|")
        for misdeed in [one for one in (*MISDEEDS, *WRITING) if one not in ALONE and not only_hooks]:
            right, wrong = street.right, street.wrong
            told = ask(running, misdeed, folder, key)
            seconds = engine.seconds[f"{misdeed}.hostile"]
            past = max(0.0, seconds - deadline) if told == "conversion_timeout" else 0.0
            gone = waited_for(lambda name=misdeed: left(folder, engine, name) == (0, 0))  # type: ignore[misc]
            good, bad = street.right - right, street.wrong - wrong
            rows.append(Row(misdeed, told, seconds, past, good, good + bad, gone))
            print(
                f"| {misdeed} | {told} | {seconds:.2f} | {past:.2f} | {good} | {good + bad} | {gone:.2f} |", flush=True
            )
        hook_rows(running, folder, street)
        grown = memory() - before
        street.close()
        print(f"\n{street.right} of {street.right + street.wrong} answers to neighbours were right to the byte.")
        if street.wrong:
            print(street.told)
        summary(rows)
        for misdeed in ALONE:
            told = ask(running, misdeed, folder, key)
            after = ask(running, "witness", folder, key)
            print(f"{misdeed}: {told}; the next job: {after}.")
        print(f"Memory of the service: {grown / 1e6:+.1f} MB.")
        last = running.temporary, folder / "work"
    # the service and its engine have ended
    limit = time.monotonic() + 30
    while marked() and time.monotonic() < limit:
        time.sleep(0.05)
    print(f"At the end: {len(marked())} processes, {sum(path.exists() for path in last)} folders.")
    print(
        f"\nDeadline {deadline:g} s, {NEIGHBOURS} neighbours, Python {sys.version.split()[0]}, "
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    )


def hidden(pids: Path) -> list[int]:
    """Processes that a misdeed started and told of, and that still live."""
    if not pids.is_file():
        return []
    text = pids.read_text()
    return [] if text.startswith("{") else [int(line) for line in text.split() if hostile_plugin.living(int(line))]


def left(folder: Path, engine: Timed, misdeed: str) -> tuple[int, int]:
    """Processes and folders that are still there."""
    return len(hidden(folder / misdeed)), int(engine.folders[f"{misdeed}.hostile"].exists())


def waited_for(over: Callable[[], bool]) -> float:
    """Seconds until it is over, from now on; infinite when it never was."""
    begun = time.monotonic()
    while not over():
        if time.monotonic() - begun > PATIENCE:
            return math.inf
        time.sleep(0.002)
    return time.monotonic() - begun


def summary(rows: list[Row]) -> None:
    """The table with a line for each answer."""
    print("\n| told | to | seconds, median and longest | longest past the deadline | neighbours right | gone after |")
    print("|---|---|---|---|---|---|")
    for told in sorted({row.told for row in rows}):
        mine = [row for row in rows if row.told == told]
        seconds = [row.seconds for row in mine]
        past = f"{max(row.past for row in mine):.2f}" if told == "conversion_timeout" else "–"
        right, of = sum(row.right for row in mine), sum(row.all for row in mine)
        figures = (
            f"{statistics.median(seconds):.2f}, {max(seconds):.2f}",
            past,
            f"{right} of {of}",
            f"{max(row.gone for row in mine):.2f}",
        )
        print(f"| {told} | {', '.join(row.misdeed for row in mine)} | {' | '.join(figures)} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deadline", type=float, default=3.0)
    parser.add_argument("--models")
    parser.add_argument("--hooks", action="store_true", help="misdeeds in hooks alone")
    parser.add_argument("--live", help=argparse.SUPPRESS)
    parser.add_argument("--keys", nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.live:
        live(given.live, Path(given.models) if given.models else None, given.keys)
    else:
        main(given.deadline, given.models, given.hooks)
