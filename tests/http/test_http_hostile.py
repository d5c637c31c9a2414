"""Each attack of the hostile plug-in, while eight other callers convert and get correct results."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

if sys.platform != "linux":
    pytest.skip("the attacks and the checks use Linux interfaces", allow_module_level=True)

import hostile_plugin
from hostile_plugin import ATTACKS, WRITER_ATTACKS, is_running
from http_serving import Running, serving
from meshhub.engine.isolated import Isolated
from meshhub.engine.limits import Limits
from meshhub.http.errors import STATUS
from neighbors import Neighbor, count_open_files, find_job_processes, resident_bytes, sphere_stl
from waiting import wait_until

DEADLINE = 2.0
"""Conversion timeout of the attacks that do not end, in seconds."""

LIMITS = Limits(memory_bytes=256 << 20, file_bytes=32 << 20, files=800, processes=12)
PLANS = {
    "free": {"conversion_timeout_seconds": DEADLINE, "requests_per_minute": 100_000},
    "pro": {"conversion_timeout_seconds": 120, "requests_per_minute": 100_000},
}

LATER = ("hang", "segfault", "exit-at-once", "eat-maps", "fork-children-and-crash", "daemonize", "scribble")
"""Attacks that also run in the operation and the writer."""


@dataclass
class SiegeResult:
    """Results of all attacks, with names such as `read hang`; `processes` are those that still run at the end."""

    answers: dict[str, Any]
    neighbors: list[Neighbor]
    folder: Path
    left: list[str]
    processes: set[int]
    grown: int
    opened: int


@pytest.fixture(scope="module")
def siege(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SiegeResult]:
    folder = tmp_path_factory.mktemp("siege")
    work = folder / "work"
    work.mkdir()
    before = find_job_processes()
    engine = Isolated(workers=14, limits=LIMITS, folder=str(work))
    settings = {"workers": 14, "plan_limits": PLANS, "batch_workers": 4, "keep_free_bytes": 0}
    with serving(folder, settings, engine, (hostile_plugin,)) as running:
        keys = [running.keys.create("pro", label=str(number))[0] for number in range(9)]
        neighbors = [
            Neighbor(running.url, key, [(f"{number}.stl", sphere_stl(number))]) for number, key in enumerate(keys[:8])
        ]
        assert running.convert(b"hostile", "first.hostile", "hostile").status_code == 200
        # spare workers make it possible that the check for remaining processes at the end fails
        wait_until(lambda: bool(find_job_processes() - before))
        sized, files = resident_bytes(), count_open_files()
        enough = threading.Event()
        with ThreadPoolExecutor(8) as client_threads, ThreadPoolExecutor(4) as attackers:
            sessions = [client_threads.submit(neighbor.live, enough) for neighbor in neighbors]
            try:
                answers = dict(
                    attackers.map(lambda attack_name: attack(running, keys[8], folder, attack_name), list_attacks())
                )
            finally:
                enough.set()
            for session in sessions:
                session.result()
        for _ in range(2):
            # the second witness must not see the changes that followed the first
            answers.update([attack(running, keys[8], folder, "read witness")])
            (folder / "witness").rename(folder / f"witness-{len(list(folder.glob('witness-*')))}")
            answers.update([attack(running, keys[8], folder, "read change-everything")])
        wait_until(lambda: not running.leftovers())
        grown, opened = resident_bytes() - sized, count_open_files() - files
    engine.close()
    wait_until(lambda: not find_job_processes() - before)
    left = [str(path) for path in work.iterdir()]
    yield SiegeResult(answers, neighbors, folder, left, find_job_processes() - before, grown, opened)


def list_attacks() -> list[str]:
    # attacks that wait for the deadline come first, so that the others run meanwhile
    wait_first = sorted(ATTACKS, key=lambda name: ATTACKS[name][0] != "conversion_timeout")
    # `kill-its-parent` would end the workers of all callers; the other two run at the end
    excluded = {"witness", "change-everything", "kill-its-parent"}
    return [
        *(f"read {name}" for name in wait_first if name not in excluded),
        *(f"operate {name}" for name in LATER),
        *(f"write {name}" for name in (*LATER, *WRITER_ATTACKS)),
    ]


def attack(running: Running, key: str, folder: Path, attack_name: str) -> tuple[str, Any]:
    """Request an attack; those that run until the deadline get the short timeout."""
    stage, name = attack_name.split()
    how = str(folder / name)
    options = {"operate": {"misbehave_how": how}, "write": {"hostile_target": name if name in WRITER_ATTACKS else how}}
    answer = running.post(
        "/convert",
        {"file": (f"{stage}-{name}.hostile", f"hostile {how}" if stage == "read" else "hostile")},
        {"target": "hostile", **options.get(stage, {})},
        headers={} if expected_code(name) == "conversion_timeout" else {"X-Api-Key": key},
    )
    return attack_name, answer


def expected_code(name: str) -> str:
    return ATTACKS[name][0] if name in ATTACKS else WRITER_ATTACKS[name][0]


@pytest.mark.parametrize("attack_name", list_attacks())
def test_each_attack_gets_its_error_code(siege: SiegeResult, attack_name: str) -> None:
    answer = siege.answers[attack_name]
    code = expected_code(attack_name.split()[1])
    if code == "ok":
        assert (answer.status_code, answer.content) == (200, b"hostile but well"), answer.text
        return
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert (body["error_code"], answer.status_code) == (code, STATUS[code]), body
    assert body["error"].isprintable()
    assert "Traceback" not in body["error"]
    assert str(siege.folder) not in body["error"]


def test_other_callers_get_correct_results(siege: SiegeResult) -> None:
    assert [neighbor.wrong for neighbor in siege.neighbors] == [[]] * 8
    assert all(neighbor.right for neighbor in siege.neighbors)


def test_no_process_remains(siege: SiegeResult) -> None:
    process_ids = [
        int(line)
        for path in siege.folder.iterdir()
        if path.is_file() and path.name in ATTACKS and path.name != "witness"
        for line in path.read_text().split()
    ]
    assert len(process_ids) > 20
    assert [process for process in process_ids if is_running(process)] == []
    assert siege.processes == set()


def test_no_file_remains(siege: SiegeResult) -> None:
    assert siege.left == []
    assert (siege.folder / "swap-its-folder" / "precious").exists()


def test_memory_and_open_files_of_the_service_stay_bounded(siege: SiegeResult) -> None:
    assert siege.grown < 150 << 20
    assert siege.opened < 100


def test_a_job_sees_no_data_of_earlier_jobs(siege: SiegeResult) -> None:
    first, second = (json.loads((siege.folder / f"witness-{number}").read_text()) for number in range(2))
    assert first == second
    assert siege.answers["read change-everything"].status_code == 200, siege.answers["read change-everything"].text
