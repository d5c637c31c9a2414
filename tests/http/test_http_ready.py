"""`/health/ready`, which converts a cube in a worker."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import trimesh

from http_serving import Running, check_error, serving
from meshhub.engine.contract import Cancel, Task
from meshhub.engine.in_process import InProcess
from meshhub.errors import ServerBusy, WorkerCrashed
from meshhub.hookspecs import hookimpl
from meshhub.http.admission.resources import Resources
from meshhub.http.conversions.probe import CACHE_S, Probe, cube_stl
from meshhub.model.capabilities import Format, Reader
from meshhub.model.report import Inspection, Report
from meshhub.registry import Registry
from meshhub.service.settings import Settings
from waiting import wait_until


class CountingEngine(InProcess):
    """Engine that counts its tasks, and can fail, wait, or return a wrong result."""

    def __init__(self) -> None:
        self.ran = 0
        self.broken = self.forgetful = False
        self.go = threading.Event()
        self.go.set()

    def run(self, task: Task, *, timeout: float | None = None, cancel: Cancel | None = None) -> Report | Inspection:
        self.ran += 1
        self.go.wait(60)
        if self.broken:
            raise WorkerCrashed("it crashed in /secret/path")
        report = super().run(task)
        if self.forgetful and task.target is not None:
            with task.target.open() as file:
                file.write(b"something else")
        return report


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Listener:
    count = 0

    @hookimpl
    def meshhub_finished(self, report: Report) -> None:
        self.count += 1


def test_the_probe_file_is_a_valid_cube(tmp_path: Path) -> None:
    path = tmp_path / "cube.stl"
    path.write_bytes(cube_stl())
    mesh = trimesh.load_mesh(path)
    assert (len(mesh.faces), mesh.is_watertight, mesh.volume) == (12, True, pytest.approx(1))


def test_ready_converts_a_cube_in_a_worker(tmp_path: Path) -> None:
    engine, listener = CountingEngine(), Listener()
    with serving(tmp_path, {}, engine, (listener,)) as running:
        with ThreadPoolExecutor(8) as threads:
            answers = list(threads.map(lambda _: running.get("/health/ready"), range(8)))
        assert {answer.status_code for answer in answers} == {200}
        assert answers[0].json() == {"status": "ready"}
        assert engine.ran == 1
        assert listener.count == 0


def sniff_in_the_server(head: bytes, size: int) -> int:
    SNIFFED.append(size)
    return 0


SNIFFED: list[int] = []
"""Sizes of the files that a third party's sniffer has looked at in this process."""


class WithSniffer:
    """A plug-in with a sniffer, which could hang or end the process."""

    @hookimpl
    def meshhub_readers(self) -> list[Reader]:
        sniffing = Format(id="sniffing", label="Sniffing", extensions=(".sniffing",), media_types=("model/x-sniffing",))
        run = f"{__name__}:sniff_in_the_server"
        return [Reader(format=sniffing, run=run, sniff=run)]


def test_the_cube_is_not_given_to_sniffers() -> None:
    engine = CountingEngine()
    probe = Probe(Registry([WithSniffer()], entry_points=False, engine=engine), Resources(Settings()))
    asyncio.run(probe.check())
    assert engine.ran == 1
    assert SNIFFED == []


def test_not_ready_when_workers_crash(tmp_path: Path) -> None:
    engine = CountingEngine()
    engine.broken = True
    with serving(tmp_path, {}, engine) as running:
        message = check_error(running.get("/health/ready"), 503, "server_busy")["error"]
        assert "worker_crashed" in message
        assert "secret" not in message
        assert running.get("/health/live").status_code == 200


def test_a_service_with_running_conversions_is_ready(tmp_path: Path) -> None:
    engine = CountingEngine()
    with serving(tmp_path, {"workers": 1}, engine) as running, ThreadPoolExecutor(1) as threads:
        wait_until(lambda: engine.ran == 1)
        assert running.get("/health/ready").status_code == 200
        engine.go.clear()
        slow = threads.submit(running.convert)
        wait_until(lambda: engine.ran == 2)
        state: Any = running.server.config.app.state.service  # type: ignore[union-attr]
        state.probe._last_run = -1e9
        assert running.get("/health/ready").status_code == 200
        assert engine.ran == 2
        engine.go.set()
        assert slow.result().status_code == 200


def test_results_are_cached_and_concurrent_checks_share_one_probe() -> None:
    engine, clock = CountingEngine(), Clock()
    resources = Resources(Settings())
    probe = Probe(Registry(entry_points=False, engine=engine), resources, clock)

    async def together() -> None:
        await asyncio.gather(*(probe.check() for _ in range(10)))
        assert engine.ran == 1
        clock.now += CACHE_S - 0.1
        await probe.check()
        assert engine.ran == 1
        clock.now += 0.2
        engine.broken = True
        leaving = asyncio.ensure_future(probe.check())
        staying = asyncio.ensure_future(probe.check())
        await asyncio.sleep(0)
        leaving.cancel()
        with pytest.raises(ServerBusy):
            await staying
        engine.broken = False
        with pytest.raises(ServerBusy):
            await probe.check()
        assert engine.ran == 2
        clock.now += CACHE_S
        await probe.check()
        assert engine.ran == 3
        clock.now += CACHE_S
        engine.forgetful = True
        with pytest.raises(ServerBusy, match="conversion_failed"):
            await probe.check()

    asyncio.run(together())
    resources.close()


def test_without_a_plugin_for_stl_no_probe_runs() -> None:
    engine = CountingEngine()
    resources = Resources(Settings())
    asyncio.run(Probe(Registry(entry_points=False, builtins=False, engine=engine), resources).check())
    assert engine.ran == 0
    resources.close()


class BusyEngine(InProcess):
    """Engine without a free worker; calls `meanwhile` when it is asked for one."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        self.meanwhile = meanwhile

    def run(self, task: Task, *, timeout: float | None = None, cancel: Cancel | None = None) -> Report | Inspection:
        self.meanwhile()
        raise ServerBusy("no process could be made for the conversion")


def test_a_busy_engine_is_ready_only_while_requests_hold_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    resources = Resources(Settings())
    idle = Probe(Registry(entry_points=False, engine=BusyEngine(lambda: None)), resources)
    with pytest.raises(ServerBusy, match="server_busy"):
        asyncio.run(idle.check())
    busy = BusyEngine(lambda: monkeypatch.setattr(Resources, "are_all_workers_busy", True))
    asyncio.run(Probe(Registry(entry_points=False, engine=busy), resources).check())
    resources.close()


def test_a_shutdown_during_the_start_logs_no_error(caplog: pytest.LogCaptureFixture) -> None:
    resources = Resources(Settings())
    engine = CountingEngine()
    engine.broken = True
    probe = Probe(Registry(entry_points=False, engine=engine), resources)
    resources.stop()
    with pytest.raises(ServerBusy):
        asyncio.run(probe.check())
    assert engine.ran == 1
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
    resources.close()


def test_a_deleted_temporary_folder_is_created_again(tmp_path: Path) -> None:
    with serving(tmp_path, {}, InProcess()) as running:
        assert running.convert().status_code == 200
        wait_until(lambda: not running.leftovers())
        for folder in (tmp_path / "work").iterdir():
            shutil.rmtree(folder)
        assert running.convert().status_code == 200


def test_ready_with_real_workers(isolated: Running) -> None:
    assert isolated.get("/health/ready").status_code == 200
    assert isolated.client.head("/health/ready").status_code == 200
