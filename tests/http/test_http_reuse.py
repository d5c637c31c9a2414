"""Workers of the service that run several small conversions of one caller, and the start of the service."""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from http_serving import ASCII_STL, Running, serving
from meshhub.engine import reserved_workers
from meshhub.engine.contract import CALLER, Task
from meshhub.engine.descendants import is_stopped
from meshhub.engine.isolated import Isolated
from meshhub.http.server.app import create_engine
from meshhub.model.report import Inspection, Report
from meshhub.service.keys import Publishable
from meshhub.service.settings import Settings
from neighbors import find_job_processes
from waiting import wait_until

if sys.platform != "linux":
    pytest.skip("workers are used again on Linux only", allow_module_level=True)

pytestmark = pytest.mark.once


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Return a function that serves with an engine of its own, whose workers wait for long."""
    monkeypatch.setattr(reserved_workers, "_MAX_IDLE_S", 600.0)
    engines: list[Isolated] = []

    def begin(*, trusted: tuple[str, ...] = ("127.0.0.1",), **settings: Any) -> Any:
        engines.append(create_engine(Settings(workers=1, temporary_folder=str(tmp_path), **settings)))
        return serving(tmp_path, {"trusted_proxies": trusted}, engines[-1])

    yield begin
    for engine in engines:
        engine.close()


def find_stopped() -> set[int]:
    """Return the workers of this process that wait for another task of their caller."""
    return {process for process in find_job_processes() if is_stopped(process)}


def convert(running: Running, headers: dict[str, str]) -> None:
    answer = running.post("/convert", {"file": ("a.stl", ASCII_STL)}, {"target": "glb"}, headers=headers)
    assert answer.status_code == 200
    assert answer.content[:4] == b"glTF"


def test_all_callers_share_a_worker_if_the_operator_says_so(start: Callable[..., Any]) -> None:
    with start(worker_sharing="all") as running:
        for number in range(4):
            convert(running, {"X-Forwarded-For": f"{number + 1}.1.1.1"})
        shared = find_stopped()
        assert len(shared) == 1
        key, _ = running.keys.create("pro")
        convert(running, {"X-Forwarded-For": "9.1.1.1", "X-Api-Key": key})
        assert find_stopped() == shared


def test_each_caller_has_workers_of_its_own(start: Callable[..., Any]) -> None:
    with start() as running:
        key, _ = running.keys.create("pro")
        address, other_address = {"X-Forwarded-For": "1.1.1.1"}, {"X-Forwarded-For": "2.2.2.2"}
        for caller in (address, other_address, {**address, "X-Api-Key": key}):
            # the worker of the first conversion of a caller is not used again
            convert(running, caller)
            assert not find_stopped()
        convert(running, address)
        first = find_stopped()
        assert len(first) == 1
        convert(running, address)
        assert find_stopped() == first
        convert(running, other_address)
        second = find_stopped()
        assert len(second) == 2
        assert first < second
        convert(running, {**address, "X-Api-Key": key})
        third = find_stopped()
        assert len(third) == 3
        assert second < third


def test_callers_of_an_unknown_proxy_share_no_worker(start: Callable[..., Any]) -> None:
    with start(trusted=()) as running:
        address, page = {"X-Forwarded-For": "1.1.1.1"}, "https://shop.example"
        convert(running, address)
        assert not find_stopped()
        key, _ = running.keys.create("pro", publishable=Publishable(origins=(page,)))
        convert(running, {**address, "X-Api-Key": key, "Origin": page})
        assert not find_stopped()


class RecordingEngine(Isolated):
    """Engine that records whose tasks it runs."""

    def __init__(self) -> None:
        super().__init__(workers=1)
        self.callers: set[str] = set()

    def run(self, task: Task, **keywords: Any) -> Report | Inspection:
        self.callers.add(CALLER.get())
        return super().run(task, **keywords)


@pytest.mark.parametrize(("trusted", "can_share"), [(("127.0.0.1",), True), ((), False)])
def test_jobs_share_a_worker_if_their_address_is_certain(
    tmp_path: Path, trusted: tuple[str, ...], can_share: bool
) -> None:
    with (
        contextlib.closing(RecordingEngine()) as engine,
        serving(tmp_path, {"workers": 1, "trusted_proxies": trusted}, engine) as running,
    ):
        for address in ("1.1.1.1", "2.2.2.2"):
            fields, headers = {"kind": "convert", "target": "glb"}, {"X-Forwarded-For": address}
            answer = running.post("/jobs", {"file": ("a.stl", ASCII_STL)}, fields, headers=headers)
            assert answer.status_code == 202
            url = f"/jobs/{answer.json()['id']}"
            wait_until(lambda url=url: running.get(url).json()["state"] == "done")
        assert len(engine.callers - {""}) == (2 if can_share else 0)


def test_a_setting_gives_each_conversion_a_process(start: Callable[..., Any]) -> None:
    with start(conversions_per_worker=1) as running:
        convert(running, {"X-Forwarded-For": "1.1.1.1"})
        assert not find_stopped()


def test_a_ready_service_has_a_worker_for_a_new_caller(start: Callable[..., Any]) -> None:
    with start() as running:
        wait_until(lambda: running.get("/health/ready").status_code == 200)
        addresses = itertools.count(1)

        def has_waited_for_a_new_caller() -> bool:
            address = {"X-Forwarded-For": f"1.1.1.{next(addresses)}"}
            # the worker of the first conversion of a caller is not used again
            convert(running, address)
            existing, reserved = find_job_processes(), find_stopped()
            convert(running, address)
            return bool((find_stopped() - reserved) & existing)

        # another caller, because the service may still be starting the worker that follows the one of the probe
        wait_until(has_waited_for_a_new_caller)
