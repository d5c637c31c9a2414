"""Workers that run several tasks of one caller: which tasks share a worker, and what one can leave to the next."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from msgspec import structs

import traces_plugin
from folders import becomes_empty
from hostile_plugin import is_running
from meshhub import Isolated, MeshhubError, Registry, Source, Target
from meshhub.engine import reserved_workers
from meshhub.engine.contract import CALLER, Task
from meshhub.engine.isolated import WorkerSharing
from meshhub.engine.limits import Limits
from meshhub.model.chain import BUILT_IN, Request

if sys.platform != "linux":
    pytest.skip("workers are used again on Linux only", allow_module_level=True)

pytestmark = pytest.mark.once

TASKS_PER_WORKER = 4


class Runner:
    """Engine that runs the tasks of `traces_plugin`, as built-in steps by default."""

    def __init__(self, folder: Path, callers: Literal["caller", "all"] = "caller") -> None:
        self.engine = Isolated(
            workers=2,
            folder=str(folder),
            limits=Limits(memory_bytes=1 << 30),
            sharing=WorkerSharing(tasks=TASKS_PER_WORKER, callers=callers),
        )
        self._registry = Registry([traces_plugin], entry_points=False)
        self._callers = {""}

    def run(self, text: str, *, caller: str = "key:a", is_known: bool = True, **changes: object) -> tuple[int, str]:
        """Run a task with changed steps; return the id of its process, and what it saw there.

        The first task of a caller that is known, whose worker is not used again, runs before.
        """
        if is_known and caller not in self._callers:
            self._callers.add(caller)
            self.run("nothing", caller=caller, is_known=False)
        source = Source.from_bytes(text.encode(), "a.trace")
        chain = self._registry.resolve(Request(target="trace"), source)
        changes = {"origin": BUILT_IN, **changes}
        chain = structs.replace(chain, steps=tuple(structs.replace(step, **changes) for step in chain.steps))
        token = CALLER.set(caller)
        target = Target()
        try:
            self.engine.run(Task(chain=chain, source=source, target=target), timeout=60)
        finally:
            CALLER.reset(token)
        process, _, seen = target.read().decode().partition(" ")
        return int(process), seen


def has_ended(process: int) -> bool:
    """Wait up to two minutes until a process ends; return whether it did."""
    deadline = time.monotonic() + 120
    while is_running(process) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_running(process)


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Runner]:
    result = Runner(tmp_path)
    yield result
    result.engine.close()


def test_tasks_of_one_caller_share_a_worker_until_it_has_run_its_number(runner: Runner) -> None:
    processes = [runner.run("nothing")[0] for _ in range(2 * TASKS_PER_WORKER)]
    assert processes == [processes[0]] * TASKS_PER_WORKER + [processes[-1]] * TASKS_PER_WORKER
    assert processes[0] != processes[-1]
    assert has_ended(processes[0])


def test_the_worker_of_the_first_task_of_a_caller_is_ended(runner: Runner) -> None:
    process, _ = runner.run("nothing", is_known=False)
    assert has_ended(process)
    assert runner.run("nothing")[0] != process


def test_with_worker_sharing_all_callers_share_workers_as_one_caller_does(tmp_path: Path) -> None:
    runner = Runner(tmp_path, "all")
    try:
        first, _ = runner.run("nothing")
        others = [runner.run("nothing", caller=caller, is_known=False)[0] for caller in ("ip:1", "ip:2", "")]
        shared = [first, *others]
        assert shared == [shared[0]] * TASKS_PER_WORKER
        assert has_ended(shared[0])
        first, _ = runner.run("nothing", caller="ip:3", is_known=False)
        # plug-ins that are not built-in have processes of their own
        foreign, _ = runner.run("nothing", caller="ip:4", is_known=False, origin="elsewhere")
        assert foreign != first
        assert has_ended(foreign)
        with pytest.raises(MeshhubError):
            runner.run("fail", caller="ip:5", is_known=False)
        assert has_ended(first)
        assert runner.run("nothing", caller="ip:6", is_known=False)[0] != first
    finally:
        runner.engine.close()


def test_no_worker_runs_tasks_of_two_callers(runner: Runner) -> None:
    processes = {caller: {runner.run("nothing", caller=caller)[0] for _ in range(2)} for caller in ("key:a", "ip:b")}
    assert len(processes["key:a"]) == len(processes["ip:b"]) == 1
    assert processes["key:a"] != processes["ip:b"]


def test_tasks_of_unknown_callers_share_no_worker(runner: Runner) -> None:
    assert runner.run("nothing", caller="")[0] != runner.run("nothing", caller="")[0]


@pytest.mark.parametrize("text", ["nothing", "forge"])
def test_tasks_with_code_of_third_parties_share_no_worker(
    runner: Runner, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plug-in that reports for its worker that it may be used again does not change that."""
    monkeypatch.setattr(reserved_workers, "_MAX_IDLE_S", 600.0)
    process, _ = runner.run(text, origin="other 1.0")
    assert runner.run("nothing", origin="other 1.0")[0] != process
    assert runner.run("nothing")[0] != process
    assert has_ended(process)


def test_tasks_of_a_library_that_keeps_state_share_no_worker(runner: Runner) -> None:
    assert runner.run("nothing", keeps_state=True)[0] != runner.run("nothing", keeps_state=True)[0]


@pytest.mark.parametrize(("name", "target"), [("a.step", "stl"), ("a.stl", "step")])
def test_opencascade_keeps_state(name: str, target: str) -> None:
    pytest.importorskip("OCP")
    registry = Registry(entry_points=False)
    content = b"ISO-10303-21;" if name == "a.step" else bytes(84)
    chain = registry.resolve(Request(target=target), Source.from_bytes(content, name))
    assert {step.id for step in chain.steps if step.keeps_state} == {"step"}


def test_large_tasks_share_no_worker(runner: Runner) -> None:
    text = "nothing" + " " * (2 << 20)
    assert runner.run(text)[0] != runner.run(text)[0]


@pytest.mark.parametrize("name", [name for name in traces_plugin.TRACES if name != "nothing"])
def test_a_worker_in_which_a_task_left_something_is_ended(runner: Runner, name: str) -> None:
    process, _ = runner.run(name)
    next_process, _ = runner.run("nothing")
    assert next_process != process
    assert has_ended(process)
    # the next worker is not affected either
    assert runner.run("nothing")[0] == next_process


@pytest.mark.parametrize("name", ["file", "context"])
def test_what_ends_with_a_task_does_not_end_its_worker(runner: Runner, name: str) -> None:
    process, _ = runner.run(name)
    next_process, seen = runner.run("nothing")
    assert next_process == process
    assert "secret" not in seen
    assert seen.startswith("28 ")


def test_a_worker_whose_task_failed_is_ended(runner: Runner) -> None:
    process, _ = runner.run("nothing")
    with pytest.raises(MeshhubError, match="this file fails"):
        runner.run("fail")
    assert runner.run("nothing")[0] != process
    assert has_ended(process)


def test_an_idle_worker_is_stopped_and_ends_soon(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reserved_workers, "_MAX_IDLE_S", 1.0)
    process, _ = runner.run("nothing")
    state = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    assert state == "T"
    assert has_ended(process)


def test_idle_workers_are_bounded(runner: Runner) -> None:
    processes = [runner.run("nothing", caller=f"key:{number}")[0] for number in range(5)]
    assert [is_running(process) for process in processes] == [False] * 3 + [True] * 2


def test_closing_the_engine_ends_idle_workers_and_removes_all_files(runner: Runner, tmp_path: Path) -> None:
    process, _ = runner.run("nothing")
    runner.engine.close()
    assert has_ended(process)
    assert becomes_empty(tmp_path)


def test_a_task_finds_the_same_limits_as_the_first(runner: Runner) -> None:
    """Each task may map as much memory as the limit allows; without renewed limits, the second would fail."""
    process, _ = runner.run("most-memory")
    assert runner.run("most-memory")[0] == process
