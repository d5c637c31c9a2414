"""Progress: what a callback receives from steps, through every engine."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import toys
from distributions import install
from meshhub import (
    Cancel,
    Canceled,
    InProcess,
    Isolated,
    Part,
    PluginError,
    Progress,
    Registry,
    Scene,
    Source,
    Target,
    WorkerCrashed,
    advance,
    track,
)
from models import brick, scene_of, sphere

pytestmark = pytest.mark.once


@pytest.fixture(scope="module", params=[InProcess, lambda: Isolated(workers=1)], ids=["in-process", "isolated"])
def registry(request: pytest.FixtureRequest) -> Iterator[Registry]:
    with Registry([toys], entry_points=False, engine=request.param()) as result:
        yield result


def toy(words: str) -> Source:
    return Source.from_bytes(f"toy! {words}".encode(), "a.toy")


def convert(registry: Registry, words: str, progress: Callable[[Progress], None]) -> None:
    registry.convert(toy(words), Target(), target="toy", progress=progress, options={"spin_degrees": 5})


def test_each_step_begins_and_the_last_one_ends(registry: Registry) -> None:
    events: list[Progress] = []
    convert(registry, "cube", events.append)
    assert [(event.kind, event.step, event.label, event.index, event.fraction) for event in events] == [
        ("read", "toy", "Toy", 0, None),
        ("operation", "spin", "Spin", 1, None),
        ("write", "toy", "Toy", 2, None),
        ("write", "toy", "Toy", 2, 1.0),
    ]
    assert {event.count for event in events} == {3}


def test_fractions_of_a_step_are_passed_on_if_they_grow(registry: Registry) -> None:
    events: list[Progress] = []
    convert(registry, "progress 0.25 0.1 nan 0.5 7 0.75", events.append)
    assert [event.fraction for event in events if event.kind == "read"] == [None, 0.25, 0.5, 0.75]


def test_frequent_reports_are_limited(registry: Registry) -> None:
    events: list[Progress] = []
    convert(registry, "often", events.append)
    fractions = [event.fraction for event in events if event.kind == "read" and event.fraction is not None]
    # the loop takes a second or more, and reports 2000 times
    assert 1 <= len(fractions) < 500
    assert fractions == sorted(fractions)


def test_without_a_callback_nothing_is_reported(registry: Registry) -> None:
    assert registry.convert(toy("progress 0.5"), Target(), target="toy").ok


def test_every_method_reports(registry: Registry, tmp_path: Path) -> None:
    scene = scene_of(brick())
    calls: dict[str, Callable[[Callable[[Progress], None]], object]] = {
        "read write": lambda progress: registry.read(scene, progress=progress),
        "read operation write": lambda progress: registry.convert_bytes(scene, "stl", repair=True, progress=progress),
        "read write ": lambda progress: registry.write(scene, tmp_path / "a.ply", progress=progress),
        "read inspect": lambda progress: registry.inspect(scene, progress=progress),
        "read inspect ": lambda progress: registry.inspect(scene, repair=True, progress=progress),
        "read render": lambda progress: registry.render(scene, tmp_path / "a.png", progress=progress),
    }
    for kinds, call in calls.items():
        events: list[Progress] = []
        call(events.append)
        assert [event.kind for event in events if event.fraction is None] == kinds.split()
        assert (events[-1].kind, events[-1].fraction) == (kinds.split()[-1], 1.0)


class Stop(Exception):
    """Raised by a callback."""


def test_an_exception_of_the_callback_stops_the_conversion(registry: Registry, tmp_path: Path) -> None:
    def stop(progress: Progress) -> None:
        if progress.fraction is not None:
            raise Stop(progress.step)

    target = tmp_path / "a.toy"
    with pytest.raises(Stop, match="toy") as raised:
        registry.convert(toy("progress 0.2 0.4"), target, progress=stop)
    assert raised.value.__suppress_context__
    assert not target.exists()
    # the registry still works
    assert registry.convert(toy("cube"), target).ok


def test_a_plugin_cannot_swallow_the_exception_of_a_callback() -> None:
    class Swallowing:
        @staticmethod
        def call() -> None:
            try:
                advance(0.5)
            except Exception:
                pytest.fail("the plug-in caught the exception of the caller")

    def stop(progress: Progress) -> None:
        if progress.fraction is not None:
            raise Stop

    toys.ACTIONS["swallow"] = lambda _: Swallowing.call()
    try:
        with Registry([toys], entry_points=False) as registry, pytest.raises(Stop):
            convert(registry, "swallow", stop)
    finally:
        del toys.ACTIONS["swallow"]


def test_a_callback_may_cancel(registry: Registry) -> None:
    cancel = Cancel()
    with pytest.raises(Canceled):
        registry.convert(toy("sleep 0.2"), Target(), target="toy", cancel=cancel, progress=lambda _: cancel())
    cancel.close()


def test_errors_of_steps_reach_the_caller_as_without_a_callback(registry: Registry) -> None:
    events: list[Progress] = []
    with pytest.raises(PluginError, match="KeyError"):
        convert(registry, "raise", events.append)
    assert [event.kind for event in events] == ["read"]


def test_a_crash_ends_the_reports() -> None:
    events: list[Progress] = []
    with Registry([toys], entry_points=False, engine=Isolated(workers=1)) as registry, pytest.raises(WorkerCrashed):
        convert(registry, "exit", events.append)
    assert [event.kind for event in events] == ["read"]


def test_the_twins_report_in_the_event_loop(registry: Registry) -> None:
    threads: set[threading.Thread] = set()
    events: list[Progress] = []

    def listen(progress: Progress) -> None:
        threads.add(threading.current_thread())
        asyncio.get_running_loop()
        events.append(progress)

    async def main() -> None:
        await registry.convert_async(toy("progress 0.5"), Target(), target="toy", progress=listen)
        with pytest.raises(Stop):
            await registry.inspect_async(toy("cube"), progress=raise_stop)

    def raise_stop(_: Progress) -> None:
        raise Stop

    asyncio.run(main())
    assert threads == {threading.current_thread()}
    assert [event.fraction for event in events] == [None, 0.5, None, 1.0]


def test_outside_of_a_conversion_reports_do_nothing() -> None:
    advance(0.5)
    advance(math.nan)
    assert list(track("abc")) == ["a", "b", "c"]
    assert list(track([], [])) == []
    with pytest.raises(ValueError, match="shorter"):
        list(track("abc", [1]))


def test_loops_inside_of_an_item_report_its_share(registry: Registry) -> None:
    events: list[Progress] = []
    convert(registry, "nested", events.append)
    assert [event.fraction for event in events if event.kind == "read"] == [None, 0.125, 0.25, 0.625, 1.0]


@pytest.mark.parametrize("extension", ["stl", "3mf", "glb", "step"])
@pytest.mark.large
def test_big_models_report_fractions_of_their_steps(
    extension: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All reports are passed on here, so that small models on a fast machine show them too."""
    if extension == "step":
        pytest.importorskip("OCP", reason="OpenCASCADE is not installed")
    monkeypatch.setattr("meshhub.model.progress.MIN_INTERVAL_S", 0.0)
    ball = sphere(segments=64)
    meshes = (replace(ball, faces=ball.faces[1:]), *(brick(10 + number, 20, 30) for number in range(3)))
    scene = Scene(meshes, tuple(Part(number, name=str(number)) for number in range(len(meshes))))
    source = tmp_path / f"a.{extension}"
    registry = Registry(entry_points=False)
    options = {"step_surfaces": "planar"} if extension == "step" else {}
    registry.write(scene, source, options=options)
    events: list[Progress] = []
    registry.convert(
        source,
        Target(),
        target=extension,
        progress=events.append,
        options={"repair": True, "optimize_target_faces": 1000, "flatten_base_mm": 1, **options},
    )
    fractions: dict[str, list[float]] = {}
    for event in events:
        if event.fraction is not None:
            fractions.setdefault(f"{event.kind} {event.step}", []).append(event.fraction)
    # the STL reader works on whole arrays
    expected = {f"read {extension}", "operation repair", "operation optimize", f"write {extension}"} - {"read stl"}
    assert expected <= set(fractions)
    for values in fractions.values():
        assert values == sorted(values)
        assert values[-1] == 1.0
    assert len(fractions["operation repair"]) > 3


# the command line

SUPPORT = Path(__file__).parent / "support"


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """Command that converts a file for two and a half seconds, with the toy format installed."""
    install(tmp_path / "site", "meshhub-toys", toys="toys")
    (tmp_path / "a.toy").write_bytes(b"toy! progress 0.25" + b" 0.5" * 16)
    return [sys.executable, "-m", "meshhub", "convert", str(tmp_path / "a.toy"), str(tmp_path / "b.toy")]


def environment(tmp_path: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(tmp_path / "site"), str(SUPPORT))),
        "TERM": "xterm",
        "COLUMNS": "100",
    }


@pytest.mark.skipif(sys.platform == "win32", reason="uses pseudo-terminals")
def test_a_long_conversion_shows_a_bar_on_a_terminal(command: list[str], tmp_path: Path) -> None:
    import pty

    ours, theirs = pty.openpty()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=environment(tmp_path))
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # the terminal is closed when the command ends
        while data := os.read(ours, 4096):
            shown += data
    os.close(ours)
    assert child.communicate(timeout=300)[0] == b""
    assert child.returncode == 0
    assert b"reading Toy (1 of 2)" in shown
    assert b"50%" in shown
    # spaces replace the line before the report
    erased, report = shown.split(b"\r", 1)[1].decode().rsplit(f"\r{tmp_path / 'b.toy'}", 1)
    assert erased.rpartition("\r")[2].isspace()
    # lines break where the path of the folder is long
    assert "12 faces" in " ".join(report.split())


def test_without_a_terminal_no_bar_is_shown(command: list[str], tmp_path: Path) -> None:
    children = [
        subprocess.Popen(
            [*command[:-1], str(tmp_path / f"{number}.toy"), *flags],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment(tmp_path),
        )
        for number, flags in enumerate(([], ["--quiet"], ["--json"]))
    ]
    for child in children:
        assert b"reading" not in child.communicate(timeout=300)[1]
        assert child.returncode == 0
