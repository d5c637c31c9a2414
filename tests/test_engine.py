"""Engines: results, deadlines, crashes, cleanup."""

from __future__ import annotations

import contextlib
import errno
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import hostile_plugin
import toys
from deadlines import TIMEOUTS_S, time_out
from folders import becomes_empty
from hostile_plugin import is_running
from meshhub import (
    Cancel,
    Canceled,
    ConversionTimeout,
    EngineError,
    Frame,
    InProcess,
    Isolated,
    MeshhubError,
    ModelTooComplex,
    PluginError,
    Reader,
    Registry,
    ServerBusy,
    ShuttingDown,
    Source,
    Target,
    WorkerCrashed,
    hookimpl,
)
from meshhub.engine.contract import METER, Meter, Task
from meshhub.engine.descendants import new_mark
from meshhub.engine.isolated import WorkerSharing
from meshhub.engine.limits import Limits
from meshhub.engine.process_start import Starter
from meshhub.engine.supervision import Supervision
from meshhub.engine.worker_process import Worker
from meshhub.model.chain import Request
from meshhub.model.plans import LOCAL
from meshhub.model.progress import Progress
from meshhub.model.report import Inspection, Report
from meshhub.pipeline.resolve import resolve
from waiting import wait_until


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    result = Registry([toys], entry_points=False, engine=Isolated(workers=2, queue=1))
    yield result
    result.close()


def convert(registry: Registry, text: str, timeout: float = 120, cancel: Cancel | None = None) -> tuple[Report, bytes]:
    target = Target()
    report = registry.convert(
        Source.from_bytes(text.encode(), "a.toy"), target, target="toy", timeout=timeout, cancel=cancel
    )
    return report, target.read()


def test_an_isolated_engine_returns_the_same_as_in_process(registry: Registry) -> None:
    here = Registry([toys], entry_points=False, engine=InProcess())
    report, data = convert(registry, "toy! note")
    expected_report, expected_data = convert(here, "toy! note")
    assert data == expected_data
    assert report.notes == expected_report.notes
    assert report.target == expected_report.target


def test_an_isolated_engine_returns_an_inspection(registry: Registry) -> None:
    inspection = registry.inspect(Source.from_bytes(b"toy!", "a.toy"), timeout=120)
    assert isinstance(inspection, Inspection)
    assert inspection.model.watertight
    assert inspection.model.volume_mm3 == pytest.approx(100 * 200 * 300)


@pytest.mark.parametrize(
    ("word", "error"),
    [
        ("crash", WorkerCrashed),
        ("exit", WorkerCrashed),
        ("quit", PluginError),
        ("memory", ModelTooComplex),
        ("raise", PluginError),
    ],
)
def test_each_failure_has_its_error_type(registry: Registry, word: str, error: type[MeshhubError]) -> None:
    with pytest.raises(error):
        convert(registry, f"toy! {word}")


class Careful:
    """Plug-in whose reader crashes unless it is careful."""

    @hookimpl
    def meshhub_readers(self) -> list[Reader]:
        return [
            Reader(
                format=toys.TOY,
                run="toys:read_carefully",
                options=toys.CarefulOptions,
                frame=Frame("cm", "y"),
                score=90,
                options_for={"crash": {"toy_careful": "true"}},
            )
        ]


@pytest.fixture(scope="module")
def careful() -> Iterator[Registry]:
    result = Registry([toys, Careful()], entry_points=False, engine=Isolated(workers=1))
    yield result
    result.close()


def test_a_file_whose_reader_crashes_is_read_again_in_another_way(careful: Registry) -> None:
    progress: list[Progress] = []
    source, target = Source.from_bytes(b"toy! cube", "a.toy"), Target()
    report = careful.convert(source, target, target="toy", timeout=120, progress=progress.append)
    assert target.read().startswith(b"plain")
    assert [note.message for note in report.notes if note.code == "toy_read"] == ["careful: True"]
    (note,) = [note for note in report.notes if note.code == "read_again"]
    assert "SIGSEGV" in note.message and "'toy_careful=True'" in note.message
    assert note.options == ("toy_careful",)
    assert [state.kind for state in progress if state.fraction is None] == ["read", "read", "write"]


def test_an_inspection_is_repeated_after_a_crash_of_the_reader(careful: Registry) -> None:
    inspection = careful.inspect(Source.from_bytes(b"toy! cube", "a.toy"), timeout=120)
    assert "read_again" in {note.code for note in inspection.notes}
    assert inspection.model.watertight


def test_the_second_crash_of_a_reader_is_an_error(careful: Registry) -> None:
    with pytest.raises(WorkerCrashed, match="SIGSEGV"):
        convert(careful, "toy! crash-always")


def test_a_hang_ends_at_the_deadline(registry: Registry) -> None:
    def hang(timeout_s: int) -> str:
        with pytest.raises(ConversionTimeout) as error:
            convert(registry, "toy! hang", timeout=timeout_s)
        return error.value.message

    assert re.search(r"longer than 10{0,2} s.*maintainer of 'toys'", time_out(hang))


def test_a_conversion_that_does_not_begin_is_not_advised_to_be_reduced() -> None:
    with pytest.raises(ConversionTimeout, match="did not begin within 1e-09 s") as error:
        convert(Registry([toys], entry_points=False), "toy!", timeout=1e-9)
    assert "reduce" not in error.value.message


def test_a_response_that_arrives_in_time_is_taken_after_the_deadline(registry: Registry) -> None:
    """The listener blocks the thread that waits for the response until the deadline has passed."""
    # the timeout does not count the time in which libraries are loaded
    convert(registry, "toy!")
    for timeout_s in TIMEOUTS_S:
        end = time.monotonic() + timeout_s + 0.5

        def wait_for_deadline(_: Progress, end: float = end) -> None:
            time.sleep(max(0.0, end - time.monotonic()))

        with contextlib.suppress(ConversionTimeout):
            registry.convert(
                Source.from_bytes(b"toy! sleep 0.3", "a.toy"),
                Target(),
                target="toy",
                timeout=timeout_s,
                progress=wait_for_deadline,
            )
            return
    pytest.fail("the response was dropped")


def test_a_job_ends_when_the_caller_leaves(registry: Registry) -> None:
    cancel = Cancel()
    threading.Timer(0.3, cancel).start()
    with pytest.raises(Canceled):
        convert(registry, "toy! hang", cancel=cancel)
    cancel.close()


def test_in_process_a_deadline_takes_effect_between_steps() -> None:
    here = Registry([toys], entry_points=False)

    def overrun(timeout_s: float) -> str:
        with pytest.raises(ConversionTimeout) as error:
            convert(here, "toy! overrun", timeout=timeout_s)
        return error.value.message

    assert re.search(r"longer than 10{0,2} s.*maintainer of 'toys'", time_out(overrun))
    with pytest.raises(ConversionTimeout):
        here.inspect(Source.from_bytes(b"toy! overrun", "a.toy"), timeout=0.1)


@pytest.mark.parametrize("engine", [InProcess, lambda: Isolated(workers=1)], ids=["in-process", "isolated"])
def test_a_step_can_ask_how_much_time_is_left(engine: Callable[[], Any]) -> None:
    with contextlib.closing(Registry([toys], entry_points=False, engine=engine())) as here:
        bounded, _ = convert(here, "toy! time-left", timeout=600)
        unbounded = here.convert(Source.from_bytes(b"toy! time-left", "a.toy"), Target(), target="toy")
    (left,) = [note.message for note in bounded.notes if note.code == "time_left"]
    assert 0 < float(left) < 600
    assert [note.message for note in unbounded.notes if note.code == "time_left"] == ["None"]


def test_in_process_a_late_last_step_writes_no_file(tmp_path: Path) -> None:
    here = Registry([toys], entry_points=False)
    source = Source.from_bytes(b"toy!", "a.toy")
    with pytest.raises(ConversionTimeout):
        here.convert(source, tmp_path / "b.toy", toy_style="slow", timeout=0.1)
    assert not list(tmp_path.iterdir())
    here.convert(source, tmp_path / "b.toy", toy_style="slow", timeout=120)
    assert [path.name for path in tmp_path.iterdir()] == ["b.toy"]


def test_in_process_a_cancel_takes_effect_between_steps() -> None:
    here = Registry([toys], entry_points=False)
    with contextlib.closing(Cancel()) as cancel:
        threading.Timer(0.1, cancel).start()
        with pytest.raises(Canceled, match="its caller canceled it"):
            convert(here, "toy! sleep 0.5", cancel=cancel)
        with pytest.raises(Canceled):
            convert(here, "toy!", cancel=cancel)


def test_in_process_each_thread_has_its_own_deadline() -> None:
    here = Registry([toys], entry_points=False)
    outcomes: dict[float, str] = {}

    def ask(timeout: float) -> None:
        try:
            convert(here, "toy! sleep 0.5", timeout=timeout)
            outcomes[timeout] = "ok"
        except MeshhubError as error:
            outcomes[timeout] = error.error_code

    threads = [threading.Thread(target=ask, args=(timeout,)) for timeout in (0.1, 120, 0.2, 180)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == {0.1: "conversion_timeout", 0.2: "conversion_timeout", 120: "ok", 180: "ok"}


def test_a_full_queue_rejects_jobs_and_runs_the_queued_ones(registry: Registry, tmp_path: Path) -> None:
    go = tmp_path / "go"
    outcomes: list[object] = []

    def ask() -> None:
        try:
            outcomes.append(convert(registry, f"toy! wait {go}")[1])
        except MeshhubError as error:
            outcomes.append(error)

    threads = [threading.Thread(target=ask) for _ in range(5)]
    for thread in threads:
        thread.start()
    try:
        wait_until(lambda: len(outcomes) == 2)
    finally:
        go.touch()
        for thread in threads:
            thread.join()
    assert sum(isinstance(outcome, ServerBusy) for outcome in outcomes) == 2
    assert sum(isinstance(outcome, bytes) for outcome in outcomes) == 3


def test_no_temporary_file_remains(registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for word in ("cube", "crash", "hang"):
        try:
            convert(registry, f"toy! {word}", timeout=0.5 if word == "hang" else 120)
        except MeshhubError:
            continue
    assert becomes_empty(tmp_path)


def test_a_closed_engine_rejects_tasks() -> None:
    result = Registry([toys], entry_points=False, engine=Isolated())
    result.close()
    with pytest.raises(ShuttingDown):
        convert(result, "toy!")


def test_a_task_that_begins_while_its_engine_is_closed_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry([toys], entry_points=False, engine=Isolated(method="fork"))
    # `sweep` is the last call before the task's worker starts
    monkeypatch.setattr("meshhub.engine.isolated.sweep", lambda _folder: registry.close())
    with pytest.raises(ShuttingDown):
        convert(registry, "toy! hang", timeout=60)


def test_active_children_includes_no_worker(registry: Registry) -> None:
    """`active_children` polls each process, possibly by a descriptor that another thread closed and that was reused."""
    children = set(multiprocessing.active_children())
    # the second conversion uses the spare worker
    convert(registry, "toy!")
    convert(registry, "toy!")
    assert set(multiprocessing.active_children()) <= children


def write_script(folder: Path, code: str) -> Path:
    """Write a script that can import the plug-ins of the tests."""
    script = folder / "script.py"
    script.write_text(
        f"import sys\nsys.path[:0] = {[str(Path(toys.__file__).parent)]!r}\n"
        "import hostile_plugin, toys\n"
        # the libraries of the built-ins, which these scripts do not use, take two seconds of processor time
        "from meshhub.engine import process_start\n"
        "process_start.PRELOAD = {}\n"
        f"from meshhub import ConversionTimeout, Isolated, Registry, Source, Target\n{code}"
    )
    return script


def test_a_program_is_not_run_again_in_its_workers(tmp_path: Path) -> None:
    """The script has no `__main__` guard."""
    script = write_script(
        tmp_path,
        "print('once')\n"
        "registry = Registry([toys], entry_points=False, engine=Isolated(workers=1))\n"
        "report = registry.convert(Source.from_bytes(b'toy!', 'a.toy'), Target(), target='toy')\n"
        "print(report.ok)\n"
        "registry.close()\n",
    )
    result = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=True)
    assert result.stdout.split() == ["once", "True"]


def run_script(script: Path) -> list[str]:
    """Run a script, which must succeed; return the lines that it prints."""
    result = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


CONVERT = """
import multiprocessing, os, resource, threading, time
from pathlib import Path
from meshhub import Cancel, MeshhubError

def convert(text="toy!", cancel=None):
    target = Target()
    try:
        registry.convert(Source.from_bytes(text.encode(), "a.toy"), target, target="toy", timeout=60, cancel=cancel)
    except MeshhubError as error:
        return f"{error.error_code}: {error.message}"
    return target.read().decode().split()[0]

"""
"""Start of the scripts that fork; `plain` is the first word of a result."""

linux = pytest.mark.skipif(sys.platform != "linux" or not hasattr(os, "fork"), reason="uses Linux interfaces")
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


@forks
@pytest.mark.parametrize("method", ["forkserver", "fork"])
def test_a_forked_child_starts_its_own_workers_and_does_not_end_those_of_its_parent(
    tmp_path: Path, method: str
) -> None:
    go, folder = tmp_path / "go", tmp_path / "jobs"
    folder.mkdir()
    script = write_script(
        tmp_path,
        f"{CONVERT}"
        f"engine = Isolated(workers=1, queue=1, method={method!r}, folder={str(folder)!r})\n"
        "registry = Registry([toys], entry_points=False, engine=engine)\n"
        "print(convert(), flush=True)\n"
        "outcome = []\n"
        f"thread = threading.Thread(target=lambda: outcome.append(convert('toy! wait {go}')))\n"
        "thread.start()\n"
        f"while not any(Path({str(folder)!r}).iterdir()):\n"
        "    time.sleep(0.01)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    print('child', convert(), convert(), flush=True)\n"
        "    registry.close()\n"
        "    sys.exit()\n"
        "print(os.waitpid(child, 0)[1], thread.is_alive(), flush=True)\n"
        f"Path({str(go)!r}).touch()\n"
        "thread.join()\n"
        "print(outcome, convert())\n"
        "registry.close()\n",
    )
    assert run_script(script) == ["plain", "child plain plain", "0 True", "['plain'] plain"]
    assert becomes_empty(folder)


@forks
def test_a_child_forked_while_other_threads_convert_starts_its_own_workers(tmp_path: Path) -> None:
    """Locks that other threads hold during the fork stay locked in the child."""
    script = write_script(
        tmp_path,
        f"{CONVERT}"
        "registry = Registry([toys], entry_points=False, engine=Isolated(workers=2))\n"
        "threads = [threading.Thread(target=lambda: [convert() for _ in range(8)]) for _ in range(2)]\n"
        "for thread in threads:\n"
        "    thread.start()\n"
        "before = dict(os.environ)\n"
        "statuses = []\n"
        "for _ in range(2):\n"
        "    time.sleep(0.1)\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        os._exit(0 if 'OMP_NUM_THREADS' not in os.environ and convert() == 'plain' else 1)\n"
        "    statuses.append(os.waitpid(child, 0)[1])\n"
        "for thread in threads:\n"
        "    thread.join()\n"
        "print(statuses)\n"
        "registry.close()\n",
    )
    assert run_script(script) == ["[0, 0]"]


@forks
@pytest.mark.parametrize(
    "pause",
    [
        # during the import of a sniffer
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'meshhub.builtin_plugins.gltf.sniff':\n"
        "            pause()\n"
        "sys.meta_path.insert(0, Finder())\n",
        # during the start of Python's resource tracker
        "from multiprocessing import util\n"
        "start = util.spawnv_passfds\n"
        "def start_after_pause(*arguments):\n"
        "    pause()\n"
        "    return start(*arguments)\n"
        "util.spawnv_passfds = start_after_pause\n",
    ],
    ids=["import", "resource-tracker"],
)
def test_a_child_forked_while_another_thread_holds_a_python_lock_converts(tmp_path: Path, pause: str) -> None:
    script = write_script(
        tmp_path,
        f"{CONVERT}"
        "registry = Registry([toys], entry_points=False, engine=Isolated(workers=1))\n"
        "is_held = threading.Event()\n"
        "def pause():\n"
        "    if not is_held.is_set():\n"
        "        is_held.set()\n"
        "        time.sleep(0.3)\n"
        f"{pause}"
        "thread = threading.Thread(target=convert)\n"
        "thread.start()\n"
        "is_held.wait()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(0 if convert() == 'plain' else 1)\n"
        "print(os.waitpid(child, 0)[1])\n"
        "thread.join()\n"
        "registry.close()\n",
    )
    assert run_script(script) == ["0"]


@forks
@pytest.mark.parametrize(
    ("module", "call"),
    [
        ("meshhub.pipeline.execute", "convert()"),
        ("meshhub.pipeline.inspection", "registry.inspect(Source.from_bytes(b'toy!', 'a.toy'))"),
        ("numpy.ma", "registry.inspect(Source.from_bytes(b'toy!', 'a.toy'))"),
        ("meshhub.pipeline.scene_file", "registry.read(Source.from_bytes(b'toy!', 'a.toy'))"),
        ("meshhub.toolkit.png", "registry.render(Source.from_bytes(b'toy!', 'a.toy'), Target(), size='64x64')"),
    ],
)
def test_a_child_forked_while_a_thread_imports_for_a_task_runs_tasks(tmp_path: Path, module: str, call: str) -> None:
    script = write_script(
        tmp_path,
        f"{CONVERT}"
        "registry = Registry([toys], entry_points=False)\n"
        "is_importing = threading.Event()\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == {module!r}:\n"
        "            is_importing.set()\n"
        "            time.sleep(0.3)\n"
        "sys.meta_path.insert(0, Finder())\n"
        f"thread = threading.Thread(target=lambda: {call})\n"
        "thread.start()\n"
        "is_importing.wait()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        f"    {call}\n"
        "    os._exit(0)\n"
        "print(os.waitpid(child, 0)[1])\n"
        "thread.join()\n",
    )
    assert run_script(script) == ["0"]


@forks
def test_a_fork_while_another_thread_forks_a_worker_does_not_deadlock(tmp_path: Path) -> None:
    """One thread forks to start a worker while the other forks; the registry is imported after the engine."""
    script = write_script(
        tmp_path,
        f"{CONVERT}"
        "registry = Registry([toys], entry_points=False, engine=Isolated(workers=1, method='fork'))\n"
        "is_starting = threading.Event()\n"
        "from meshhub.engine import process_start\n"
        "start = process_start.fork_process\n"
        "def start_slowly(run):\n"
        "    is_starting.set()\n"
        "    time.sleep(0.3)\n"
        "    return start(run)\n"
        "process_start.fork_process = start_slowly\n"
        "outcomes = []\n"
        "thread = threading.Thread(target=lambda: outcomes.append(convert()))\n"
        "thread.start()\n"
        "is_starting.wait()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(0)\n"
        "print(os.waitpid(child, 0)[1])\n"
        "thread.join()\n"
        "print(outcomes)\n"
        "registry.close()\n",
    )
    assert run_script(script) == ["0", "['plain']"]


@forks
def test_forks_do_not_deadlock_with_an_executor_that_is_imported_after_the_engine(tmp_path: Path) -> None:
    """Each fork also takes a lock of `concurrent.futures`; one thread forks a worker per task while the other forks."""
    script = write_script(
        tmp_path,
        f"{CONVERT}"
        "registry = Registry([toys], entry_points=False, engine=Isolated(workers=1, method='fork'))\n"
        "import concurrent.futures.thread\n"
        "outcomes = set()\n"
        "def convert_often():\n"
        "    for _ in range(30):\n"
        "        outcomes.add(convert())\n"
        "thread = threading.Thread(target=convert_often, daemon=True)\n"
        "thread.start()\n"
        "for _ in range(300):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        os._exit(0)\n"
        "    os.waitpid(child, 0)\n"
        "thread.join()\n"
        "print(outcomes)\n"
        "registry.close()\n",
    )
    assert run_script(script) == ["{'plain'}"]


@forks
def test_a_forked_child_does_not_close_a_descriptor_that_was_just_reused(tmp_path: Path) -> None:
    """A descriptor is free before Python records that its pipe is closed; the child's own pipe may reuse it."""
    script = write_script(
        tmp_path,
        f"{CONVERT}"
        "from meshhub.engine.forked_process import PipeEnd\n"
        "registry = Registry([toys], entry_points=False, engine=Isolated(workers=1, method='fork'))\n"
        "is_closed, go_on = threading.Event(), threading.Event()\n"
        "numbers = []\n"
        "def close_slowly(pipe):\n"
        "    numbers.extend(pipe._descriptors)\n"
        "    for number in numbers:\n"
        "        os.close(number)\n"
        "    if threading.current_thread() is thread:\n"
        "        is_closed.set()\n"
        "        go_on.wait(60)\n"
        "PipeEnd.close = close_slowly\n"
        "thread = threading.Thread(target=convert)\n"
        "thread.start()\n"
        "is_closed.wait()\n"
        "while os.open(os.devnull, os.O_RDONLY) != numbers[1]:\n"
        "    pass\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os.fstat(numbers[1])\n"
        "    os._exit(0)\n"
        "print(os.waitpid(child, 0)[1])\n"
        "go_on.set()\n"
        "thread.join()\n"
        "registry.close()\n",
    )
    assert run_script(script) == ["0"]


@forks
@pytest.mark.parametrize("method", ["forkserver", "fork", "spawn"])
def test_a_daemonic_process_can_convert(tmp_path: Path, method: str) -> None:
    """Workers of pools and task queues are daemonic, and their parent may have converted before."""
    script = write_script(
        tmp_path,
        f"{CONVERT}"
        f"registry = Registry([toys], entry_points=False, engine=Isolated(workers=1, method={method!r}))\n"
        "if __name__ == '__main__':\n"
        "    print(convert(), flush=True)\n"
        "    with multiprocessing.get_context('fork').Pool(1) as pool:\n"
        "        print(pool.map(convert, ['toy!', 'toy! crash', 'toy!']))\n"
        "        print(pool.apply(os.getenv, ['PATH']) == os.environ['PATH'])\n"
        "    print(convert())\n"
        "    registry.close()\n",
    )
    first, outcomes, same, last = run_script(script)
    assert (first, same, last) == ("plain", "True", "plain")
    assert outcomes.startswith("['plain', \"worker_crashed: ") and outcomes.endswith(", 'plain']")


@linux
def test_workers_of_a_daemonic_process_end_with_it(tmp_path: Path) -> None:
    folder = tmp_path / "jobs"
    folder.mkdir()
    script = write_script(
        tmp_path,
        f"{CONVERT}"
        f"registry = Registry([toys], entry_points=False, engine=Isolated(workers=1, folder={str(folder)!r}))\n"
        "child = multiprocessing.get_context('fork').Process(target=convert, args=['toy! hang'], daemon=True)\n"
        "child.start()\n"
        f"while not any(Path({str(folder)!r}).iterdir()):\n"
        "    time.sleep(0.01)\n"
        "print(child.is_alive(), flush=True)\n",
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    result = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, timeout=300, check=True
    )
    assert result.stdout.split() == [b"True"]
    wait_until(lambda: find_processes_with_tmpdir(tmp_path) == [])


@forks
def test_a_program_that_reaps_all_its_children_still_converts(tmp_path: Path) -> None:
    """A process manager waits for any child, so Python does not learn that the fork server has ended."""
    script = write_script(
        tmp_path,
        f"{CONVERT}"
        "from multiprocessing import forkserver\n"
        "registry = Registry([toys], entry_points=False, engine=Isolated(workers=1))\n"
        "print(convert())\n"
        "os.kill(forkserver._forkserver._forkserver_pid, 9)\n"
        "os.waitpid(forkserver._forkserver._forkserver_pid, 0)\n"
        "print(convert())\n"
        "registry.close()\n",
    )
    assert run_script(script) == ["plain", "plain"]


@forks
def test_a_cancel_in_a_forked_child_does_not_affect_its_parent(tmp_path: Path) -> None:
    script = write_script(
        tmp_path,
        f"{CONVERT}"
        "registry = Registry([toys], entry_points=False, engine=Isolated(workers=1, method='fork'))\n"
        "cancel = Cancel()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    cancel()\n"
        "    print(convert(cancel=cancel).partition(':')[0], flush=True)\n"
        "    os._exit(0)\n"
        "os.waitpid(child, 0)\n"
        "print(convert(cancel=cancel))\n",
    )
    assert run_script(script) == ["canceled", "plain"]


@linux
@pytest.mark.parametrize("method", ["forkserver", "fork", "spawn"])
def test_a_process_limit_is_one_clear_error(tmp_path: Path, method: str) -> None:
    tmp_path.chmod(0o755)
    script = write_script(
        tmp_path,
        f"{CONVERT}"
        # import first: root has no limit, and other users may not be able to read Python's modules
        "import multiprocessing.popen_fork, multiprocessing.popen_forkserver, multiprocessing.popen_spawn_posix\n"
        "import concurrent.futures.thread\n"
        "if os.getuid() == 0:\n"
        "    os.setgid(48611)\n"
        "    os.setuid(48611)\n"
        f"registry = Registry([toys], entry_points=False, engine=Isolated(workers=1, method={method!r}))\n"
        "resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))\n"
        "for _ in range(2):\n"
        "    print(convert())\n",
    )
    for line in run_script(script):
        assert line.startswith("server_busy: no process or folder could be made")
        assert "Resource temporarily unavailable" in line


@forks
def test_a_system_without_processes_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    registry = Registry([toys], entry_points=False, engine=Isolated(workers=1, method="fork"))
    monkeypatch.setattr(os, "fork", refuse)
    with pytest.raises(EngineError, match=r"no process can be started here.*not implemented.*Registry") as caught:
        convert(registry, "toy!")
    assert caught.value.error_code == "internal_error"
    registry.close()


@pytest.fixture(scope="module")
def hostile() -> Iterator[Registry]:
    result = Registry([hostile_plugin], entry_points=False, engine=Isolated(workers=2))
    yield result
    result.close()


def misbehave(registry: Registry, what: Path, timeout: float = 60) -> str:
    """Run an attack; return the error code, or "ok"."""
    try:
        registry.convert(
            Source.from_bytes(f"hostile {what}".encode(), "a.hostile"), Target(), target="hostile", timeout=timeout
        )
    except MeshhubError as error:
        return error.error_code
    return "ok"


def read_process_ids(what: Path) -> list[int]:
    return [int(line) for line in what.read_text().split()]


def wait_until_ended(processes: list[int]) -> None:
    wait_until(lambda: not any(map(is_running, processes)))


def find_processes_with_tmpdir(folder: Path) -> list[int]:
    """Return the processes that have this temporary folder in their environment."""
    variable = f"TMPDIR={folder}\0".encode()
    process_ids = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if variable in (process / "environ").read_bytes():
                process_ids.append(int(process.name))
    return process_ids


@linux
def test_memory_mapped_before_the_task_does_not_count(registry: Registry, tmp_path: Path) -> None:
    """The worker maps a gigabyte before its task; its later crash is not an exceeded memory limit."""
    limits = Limits(memory_bytes=2 << 30)
    source = Source.from_bytes(b"toy! crash-late", "a.toy")
    chain = resolve(registry.declarations, Request(target="toy"), source, LOCAL)
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    mark = new_mark()
    process = context.Process(target=toys.serve_after_mapping, args=(theirs, limits, mark), daemon=True)
    process.start()
    theirs.close()
    worker = Worker(process, ours, mark)
    try:
        ours.send((Task(chain=chain, source=source, target=Target()), tmp_path, ""))
        with pytest.raises(WorkerCrashed):
            Supervision(chain=chain, limits=limits, timeout_s=60, deadline=time.monotonic() + 60).wait_for_answer(
                worker
            )
    finally:
        assert worker.end(60)


@linux
@pytest.mark.parametrize("method", ["forkserver", "spawn"])
@pytest.mark.parametrize("what", ["fork-children-and-crash", "daemonize-and-crash"])
def test_processes_that_a_crashed_worker_started_end_with_it(tmp_path: Path, method: str, what: str) -> None:
    """The error is a crash although the children still hold the pipe open."""
    registry = Registry([hostile_plugin], entry_points=False, engine=Isolated(workers=1, method=method))
    try:
        assert misbehave(registry, tmp_path / what) == "worker_crashed"
        children = read_process_ids(tmp_path / what)
        assert children
        wait_until_ended(children)
    finally:
        registry.close()


@linux
@pytest.mark.large
def test_a_job_that_kills_the_parent_of_all_workers_does_not_affect_later_jobs(
    hostile: Registry, tmp_path: Path
) -> None:
    assert misbehave(hostile, tmp_path / "kill-its-parent") == "worker_crashed"
    assert misbehave(hostile, tmp_path / "witness") == "ok"


@linux
def test_workers_of_a_killed_program_end_and_the_next_program_ends_their_children(tmp_path: Path) -> None:
    what = tmp_path / "daemonize-and-hang"
    script = write_script(
        tmp_path,
        "registry = Registry([hostile_plugin], entry_points=False, engine=Isolated(workers=1))\n"
        f"source = Source.from_bytes(b'hostile {what}', 'a.hostile')\n"
        "registry.convert(source, Target(), target='hostile')\n",
    )
    with subprocess.Popen([sys.executable, str(script)], env={**os.environ, "TMPDIR": str(tmp_path)}) as program:
        while not (what.exists() and what.read_text().endswith("\n")) and program.poll() is None:
            time.sleep(0.02)
        family = find_processes_with_tmpdir(tmp_path)
        left = read_process_ids(what)
        # check now: the first task of any engine, even in another test, ends the processes of dead programs
        assert left
        assert all(is_running(process) for process in left)
        program.kill()
    # the program, its fork server, Python's resource tracker, and the worker that hangs
    assert len(family) >= 4
    wait_until_ended(family)
    registry = Registry([toys], entry_points=False, engine=Isolated(workers=1, folder=str(tmp_path)))
    try:
        convert(registry, "toy!")
        wait_until_ended(left)
        assert becomes_empty(tmp_path, "meshhub-*")
    finally:
        registry.close()


@linux
def test_the_output_and_log_of_a_job_are_bounded(tmp_path: Path) -> None:
    """Output of a plug-in is dropped, and its log is limited."""
    script = write_script(
        tmp_path,
        "registry = Registry([hostile_plugin], entry_points=False, engine=Isolated(workers=1, log='text'))\n"
        "for what in ('print-without-end', 'log-without-end'):\n"
        "    try:\n"
        "        source = Source.from_bytes(f'hostile {what}'.encode(), 'a.hostile')\n"
        "        registry.convert(source, Target(), target='hostile', timeout=2)\n"
        "    except ConversionTimeout:\n"
        "        print(what)\n"
        "registry.close()\n",
    )
    result = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=True)
    assert result.stdout.split() == ["print-without-end", "log-without-end"]
    lines = result.stderr.splitlines()
    assert "hostile output" not in result.stderr
    assert 0 < len(lines) <= 200
    assert max(map(len, lines)) < 3000


@linux
@pytest.mark.parametrize("what", ["write-a-link", "write-a-pipe", "write-a-folder", "link-its-companion"])
def test_only_regular_files_are_accepted_as_results(hostile: Registry, tmp_path: Path, what: str) -> None:
    with pytest.raises(PluginError):
        hostile.convert(
            Source.from_bytes(b"hostile", "a.hostile"), tmp_path / "out.hostile", hostile_target=what, timeout=60
        )
    assert becomes_empty(tmp_path)


def test_a_missing_companion_is_left_out(hostile: Registry, tmp_path: Path) -> None:
    source = Source.from_bytes(b"hostile", "a.hostile")
    hostile.convert(source, tmp_path / "out.hostile", hostile_target="forget-its-companion", timeout=60)
    assert [path.name for path in tmp_path.iterdir()] == ["out.hostile"]


@linux
def test_the_processor_time_limit_is_a_conversion_timeout(tmp_path: Path) -> None:
    engine = Isolated(workers=1, limits=Limits(cpu_seconds=1))
    registry = Registry([hostile_plugin], entry_points=False, engine=engine)
    try:
        assert misbehave(registry, tmp_path / "busy-loop", timeout=300) == "conversion_timeout"
    finally:
        registry.close()


@linux
def test_the_processor_time_of_tasks_is_measured_also_if_they_are_killed(tmp_path: Path) -> None:
    engine = Isolated(workers=1, limits=Limits(cpu_seconds=1), sharing=WorkerSharing(tasks=10))
    registry = Registry([hostile_plugin, toys], entry_points=False, engine=engine)
    meter = Meter()
    token = METER.set(meter)
    try:
        convert(registry, "toy!")
        first = meter.cpu_seconds
        assert 0 < first < 30
        convert(registry, "toy!")
        assert first < meter.cpu_seconds < 60
        before = meter.cpu_seconds
        misbehave(registry, tmp_path / "busy-loop", timeout=300)
        # its limit is 1 s; the last reading is up to a check old
        assert meter.cpu_seconds - before > 0.3
    finally:
        METER.reset(token)
        registry.close()


@forks
def test_a_worker_that_ends_before_its_task_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    start = Starter.start
    starts = []

    def lose_the_connection(connection: Any, *_: Any) -> None:
        connection.poll(60)
        os._exit(0)

    def start_lost_once(starter: Starter, *arguments: Any, **options: Any) -> Worker:
        starts.append(1)
        return start(starter, lose_the_connection) if len(starts) == 1 else start(starter, *arguments, **options)

    monkeypatch.setattr(Starter, "start", start_lost_once)
    with contextlib.closing(Registry([toys], entry_points=False, engine=Isolated(workers=1, method="fork"))) as here:
        assert convert(here, "toy!")[0].ok
    assert len(starts) > 1


@forks
def test_threads_that_fork_at_the_same_time_do_not_deadlock(tmp_path: Path) -> None:
    """One thread forks to start a worker, which takes a lock; the other calls `os.fork`."""
    script = write_script(
        tmp_path,
        f"{CONVERT}"
        "registry = Registry([toys], entry_points=False, engine=Isolated(workers=2, method='fork'))\n"
        "threads = [threading.Thread(target=lambda: [convert() for _ in range(4)]) for _ in range(2)]\n"
        "for thread in threads:\n"
        "    thread.start()\n"
        "while any(thread.is_alive() for thread in threads):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        os._exit(0)\n"
        "    os.waitpid(child, 0)\n"
        "print('done')\n"
        "registry.close()\n",
    )
    assert run_script(script) == ["done"]
