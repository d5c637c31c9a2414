"""Engines: answers, deadlines, crashes, leaving nothing behind."""

from __future__ import annotations

import contextlib
import errno
import multiprocessing
import os
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
from folders import becomes_empty
from hostile_plugin import is_running
from meshhub import (
    Cancel,
    Cancelled,
    ConversionTimeout,
    EngineError,
    InProcess,
    Isolated,
    MeshhubError,
    ModelTooComplex,
    PluginError,
    Registry,
    ServerBusy,
    ShuttingDown,
    Source,
    Target,
    WorkerCrashed,
)
from meshhub.engine.contract import Task
from meshhub.engine.descendants import new_mark
from meshhub.engine.limits import Limits
from meshhub.engine.process_start import Starter
from meshhub.engine.supervision import Supervision
from meshhub.engine.worker_process import Worker
from meshhub.model.chain import Request
from meshhub.model.plans import LOCAL
from meshhub.model.report import Inspection, Report
from meshhub.pipeline.resolve import resolve


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    made = Registry([toys], entry_points=False, engine=Isolated(workers=2, queue=1))
    yield made
    made.close()


def convert(registry: Registry, text: str, timeout: float = 30, cancel: Cancel | None = None) -> tuple[Report, bytes]:
    target = Target()
    report = registry.convert(
        Source.from_bytes(text.encode(), "a.toy"), target, to="toy", timeout=timeout, cancel=cancel
    )
    return report, target.read()


def test_the_answer_is_the_same_as_in_process(registry: Registry) -> None:
    here = Registry([toys], entry_points=False, engine=InProcess())
    report, data = convert(registry, "toy! note")
    told, same = convert(here, "toy! note")
    assert data == same
    assert report.notes == told.notes
    assert report.target == told.target


def test_an_inspection_crosses_the_border(registry: Registry) -> None:
    found = registry.inspect(Source.from_bytes(b"toy!", "a.toy"), timeout=30)
    assert isinstance(found, Inspection)
    assert found.model.watertight
    assert found.model.volume_mm3 == pytest.approx(100 * 200 * 300)


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
def test_what_goes_wrong_has_its_code(registry: Registry, word: str, error: type[MeshhubError]) -> None:
    with pytest.raises(error):
        convert(registry, f"toy! {word}")


def test_a_hang_ends_at_the_deadline(registry: Registry) -> None:
    with pytest.raises(ConversionTimeout, match=r"longer than 0\.5 s.*maintainer of 'toys'"):
        convert(registry, "toy! hang", timeout=0.5)


def test_the_caller_may_leave(registry: Registry) -> None:
    cancel = Cancel()
    threading.Timer(0.3, cancel).start()
    with pytest.raises(Cancelled):
        convert(registry, "toy! hang", cancel=cancel)
    cancel.close()


def test_in_process_a_deadline_takes_effect_between_steps() -> None:
    here = Registry([toys], entry_points=False)
    # imports the reader, so that the deadline passes in it
    assert convert(here, "toy! sleep 0.3")[0].ok
    with pytest.raises(ConversionTimeout, match=r"longer than 0\.1 s.*maintainer of 'toys'"):
        convert(here, "toy! sleep 0.3", timeout=0.1)
    with pytest.raises(ConversionTimeout):
        here.inspect(Source.from_bytes(b"toy! sleep 0.3", "a.toy"), timeout=0.1)


@pytest.mark.parametrize("engine", [InProcess, lambda: Isolated(workers=1)], ids=["in-process", "isolated"])
def test_a_step_can_ask_how_much_time_is_left(engine: Callable[[], Any]) -> None:
    with contextlib.closing(Registry([toys], entry_points=False, engine=engine())) as here:
        bounded, _ = convert(here, "toy! time-left", timeout=600)
        unbounded = here.convert(Source.from_bytes(b"toy! time-left", "a.toy"), Target(), to="toy")
    (left,) = [note.message for note in bounded.notes if note.code == "time_left"]
    assert 0 < float(left) < 600
    assert [note.message for note in unbounded.notes if note.code == "time_left"] == ["None"]


def test_in_process_a_late_last_step_writes_no_file(tmp_path: Path) -> None:
    here = Registry([toys], entry_points=False)
    source = Source.from_bytes(b"toy!", "a.toy")
    with pytest.raises(ConversionTimeout):
        here.convert(source, tmp_path / "b.toy", toy_style="slow", timeout=0.1)
    assert not list(tmp_path.iterdir())
    here.convert(source, tmp_path / "b.toy", toy_style="slow", timeout=30)
    assert [path.name for path in tmp_path.iterdir()] == ["b.toy"]


def test_in_process_the_caller_may_leave_between_steps() -> None:
    here = Registry([toys], entry_points=False)
    with contextlib.closing(Cancel()) as cancel:
        threading.Timer(0.1, cancel).start()
        with pytest.raises(Cancelled, match="caller left"):
            convert(here, "toy! sleep 0.5", cancel=cancel)
        with pytest.raises(Cancelled):
            convert(here, "toy!", cancel=cancel)


def test_in_process_threads_have_deadlines_of_their_own() -> None:
    here = Registry([toys], entry_points=False)
    outcomes: dict[float, str] = {}

    def ask(timeout: float) -> None:
        try:
            convert(here, "toy! sleep 0.5", timeout=timeout)
            outcomes[timeout] = "ok"
        except MeshhubError as error:
            outcomes[timeout] = f"{error.code} {error.message.split()[5]}"

    threads = [threading.Thread(target=ask, args=(timeout,)) for timeout in (0.1, 60, 0.2, 90)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == {0.1: "conversion_timeout 0.1", 0.2: "conversion_timeout 0.2", 60: "ok", 90: "ok"}


def test_a_full_queue_is_busy_and_others_are_served(registry: Registry, tmp_path: Path) -> None:
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
    limit = time.monotonic() + 20
    while len(outcomes) < 2 and time.monotonic() < limit:
        time.sleep(0.01)
    go.touch()
    for thread in threads:
        thread.join()
    assert sum(isinstance(outcome, ServerBusy) for outcome in outcomes) == 2
    assert sum(isinstance(outcome, bytes) for outcome in outcomes) == 3


def test_nothing_is_left_behind(registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for word in ("cube", "crash", "hang"):
        try:
            convert(registry, f"toy! {word}", timeout=0.5 if word == "hang" else 30)
        except MeshhubError:
            continue
    assert becomes_empty(tmp_path)


def test_a_closed_engine_takes_no_task() -> None:
    made = Registry([toys], entry_points=False, engine=Isolated())
    made.close()
    with pytest.raises(ShuttingDown):
        convert(made, "toy!")


def test_a_task_that_begins_while_its_engine_is_closed_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Registry([toys], entry_points=False, engine=Isolated(method="fork"))
    # the last thing before the task's worker is started
    monkeypatch.setattr("meshhub.engine.isolated.sweep", lambda _folder: made.close())
    with pytest.raises(ShuttingDown):
        convert(made, "toy! hang", timeout=20)


def test_nobody_else_asks_how_a_worker_ended(registry: Registry) -> None:
    """Who asks may read from a pipe that another thread has just closed, and so from somebody else's."""
    known = set(multiprocessing.active_children())
    # the second has the worker that was started ahead
    convert(registry, "toy!")
    convert(registry, "toy!")
    assert set(multiprocessing.active_children()) <= known


def written(folder: Path, code: str) -> Path:
    """A program of its own, which can import the tests' plug-ins."""
    script = folder / "script.py"
    script.write_text(
        f"import sys\nsys.path[:0] = {[str(Path(toys.__file__).parent)]!r}\n"
        "import hostile_plugin, toys\n"
        f"from meshhub import ConversionTimeout, Isolated, Registry, Source, Target\n{code}"
    )
    return script


def test_a_program_is_not_run_again_in_its_workers(tmp_path: Path) -> None:
    """A script without a guard around its main part, as people write them."""
    script = written(
        tmp_path,
        "print('once')\n"
        "registry = Registry([toys], entry_points=False, engine=Isolated(workers=1))\n"
        "report = registry.convert(Source.from_bytes(b'toy!', 'a.toy'), Target(), to='toy')\n"
        "print(report.ok)\n"
        "registry.close()\n",
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["once", "True"]


def printed(script: Path) -> list[str]:
    """The lines that a program prints; it must end well."""
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


CONVERT = """
import multiprocessing, os, resource, threading, time
from pathlib import Path
from meshhub import Cancel, MeshhubError

def convert(text="toy!", cancel=None):
    target = Target()
    try:
        registry.convert(Source.from_bytes(text.encode(), "a.toy"), target, to="toy", timeout=60, cancel=cancel)
    except MeshhubError as error:
        return f"{error.code}: {error.message}"
    return target.read().decode().split()[0]

"""
"""What programs that fork begin with; `plain` is the first word of a result."""

linux = pytest.mark.skipif(sys.platform != "linux", reason="what Linux has")
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


@forks
@pytest.mark.parametrize("method", ["forkserver", "fork"])
def test_a_forked_child_has_workers_of_its_own_and_leaves_its_parents_alone(tmp_path: Path, method: str) -> None:
    go, folder = tmp_path / "go", tmp_path / "jobs"
    folder.mkdir()
    script = written(
        tmp_path,
        f"{CONVERT}"
        f"engine = Isolated(workers=1, queue=0, method={method!r}, folder={str(folder)!r})\n"
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
    assert printed(script) == ["plain", "child plain plain", "0 True", "['plain'] plain"]
    assert becomes_empty(folder)


@forks
def test_a_child_that_was_forked_from_a_thread_has_workers_of_its_own(tmp_path: Path) -> None:
    """While other threads convert: what they hold at that moment is held for ever in the child."""
    script = written(
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
    assert printed(script) == ["[0, 0]"]


@forks
@pytest.mark.parametrize(
    "pause",
    [
        # a sniffer is imported
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'meshhub.builtin_plugins.gltf.sniff':\n"
        "            pause()\n"
        "sys.meta_path.insert(0, Finder())\n",
        # Python's resource tracker is started
        "from multiprocessing import util\n"
        "start = util.spawnv_passfds\n"
        "def start_after_pause(*arguments):\n"
        "    pause()\n"
        "    return start(*arguments)\n"
        "util.spawnv_passfds = start_after_pause\n",
    ],
    ids=["import", "resource-tracker"],
)
def test_a_child_converts_when_it_was_forked_while_another_thread_held_a_lock_of_python(
    tmp_path: Path, pause: str
) -> None:
    script = written(
        tmp_path,
        f"{CONVERT}"
        "from meshhub.engine import process_start\n"
        "process_start.PRELOAD = ()\n"
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
    assert printed(script) == ["0"]


@forks
def test_a_fork_while_another_thread_forks_a_worker_does_not_wait_for_ever(tmp_path: Path) -> None:
    """One starts a worker by a fork while the other forks; the registry is imported after the engine."""
    script = written(
        tmp_path,
        f"{CONVERT}"
        "registry = Registry([toys], entry_points=False, engine=Isolated(workers=1, method='fork'))\n"
        "is_starting = threading.Event()\n"
        "start = multiprocessing.get_context('fork').Process.start\n"
        "def start_slowly(process):\n"
        "    is_starting.set()\n"
        "    time.sleep(0.3)\n"
        "    start(process)\n"
        "multiprocessing.get_context('fork').Process.start = start_slowly\n"
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
    assert printed(script) == ["0", "['plain']"]


@forks
def test_a_forked_child_closes_no_number_that_another_thread_has_just_closed(tmp_path: Path) -> None:
    """The number is free before Python records that the pipe is closed; it may be that of the child's own pipe."""
    script = written(
        tmp_path,
        f"{CONVERT}"
        "from multiprocessing.connection import Connection\n"
        "registry = Registry([toys], entry_points=False, engine=Isolated(workers=1, method='fork'))\n"
        "is_closed, go_on = threading.Event(), threading.Event()\n"
        "numbers = []\n"
        "def close_slowly(connection):\n"
        "    number = connection.fileno()\n"
        "    os.close(number)\n"
        "    if threading.current_thread() is thread:\n"
        "        numbers.append(number)\n"
        # the first is the worker's end, which is closed as soon as the worker has it
        "        if len(numbers) == 2:\n"
        "            is_closed.set()\n"
        "            go_on.wait(60)\n"
        "Connection._close = close_slowly\n"
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
    assert printed(script) == ["0"]


@forks
@pytest.mark.parametrize("method", ["forkserver", "fork", "spawn"])
def test_a_daemonic_process_may_convert(tmp_path: Path, method: str) -> None:
    """As the workers of pools and task queues are, whose parent has converted before."""
    script = written(
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
    first, outcomes, same, last = printed(script)
    assert (first, same, last) == ("plain", "True", "plain")
    assert outcomes.startswith("['plain', \"worker_crashed: ") and outcomes.endswith(", 'plain']")


@linux
def test_workers_of_a_daemonic_process_end_with_it(tmp_path: Path) -> None:
    folder = tmp_path / "jobs"
    folder.mkdir()
    script = written(
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
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, timeout=120, check=True)
    assert done.stdout.split() == [b"True"]
    limit = time.monotonic() + 30
    while told_to_use(tmp_path) and time.monotonic() < limit:
        time.sleep(0.02)
    assert told_to_use(tmp_path) == []


@forks
def test_a_program_that_reaps_all_its_children_still_converts(tmp_path: Path) -> None:
    """A process manager waits for any child; when the fork server dies, Python does not hear of it."""
    script = written(
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
    assert printed(script) == ["plain", "plain"]


@forks
def test_a_cancel_stops_nothing_in_the_parent_of_a_fork(tmp_path: Path) -> None:
    script = written(
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
    assert printed(script) == ["cancelled", "plain"]


@linux
@pytest.mark.parametrize("method", ["forkserver", "fork", "spawn"])
def test_no_more_processes_is_one_clear_error(tmp_path: Path, method: str) -> None:
    tmp_path.chmod(0o755)
    script = written(
        tmp_path,
        f"{CONVERT}"
        # the superuser has no limit, and other users may not be able to read Python's modules
        "import multiprocessing.popen_fork, multiprocessing.popen_forkserver, multiprocessing.popen_spawn_posix\n"
        "if os.getuid() == 0:\n"
        "    os.setgid(48611)\n"
        "    os.setuid(48611)\n"
        f"registry = Registry([toys], entry_points=False, engine=Isolated(workers=1, method={method!r}))\n"
        "resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))\n"
        "for _ in range(2):\n"
        "    print(convert())\n",
    )
    for line in printed(script):
        assert line.startswith("server_busy: no process or folder could be made")
        assert "Resource temporarily unavailable" in line


@forks
def test_a_system_without_processes_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    made = Registry([toys], entry_points=False, engine=Isolated(workers=1, method="fork"))
    monkeypatch.setattr(os, "fork", refuse)
    with pytest.raises(EngineError, match=r"no process can be started here.*not implemented.*Registry"):
        convert(made, "toy!")
    made.close()


@pytest.fixture(scope="module")
def hostile() -> Iterator[Registry]:
    made = Registry([hostile_plugin], entry_points=False, engine=Isolated(workers=2))
    yield made
    made.close()


def misbehave(registry: Registry, what: Path, timeout: float = 60) -> str:
    """Its code."""
    try:
        registry.convert(
            Source.from_bytes(f"hostile {what}".encode(), "a.hostile"), Target(), to="hostile", timeout=timeout
        )
    except MeshhubError as error:
        return error.code
    return "ok"


def started(what: Path) -> list[int]:
    return [int(line) for line in what.read_text().split()]


def gone(processes: list[int]) -> bool:
    limit = time.monotonic() + 30
    while any(is_running(process) for process in processes) and time.monotonic() < limit:
        time.sleep(0.02)
    return not any(is_running(process) for process in processes)


def told_to_use(folder: Path) -> list[int]:
    """The processes that were started with this temporary folder in their environment."""
    told = f"TMPDIR={folder}\0".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if told in (process / "environ").read_bytes():
                found.append(int(process.name))
    return found


@linux
def test_what_a_worker_maps_before_its_task_is_not_put_down_to_it(registry: Registry, tmp_path: Path) -> None:
    """A gigabyte while it warms up, under its parent's eye; its crash is none of memory."""
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
        assert worker.end(30)


@linux
@pytest.mark.parametrize("method", ["forkserver", "spawn"])
@pytest.mark.parametrize("what", ["fork-children-and-crash", "daemonise-and-crash"])
def test_what_a_crashed_worker_started_ends_with_it(tmp_path: Path, method: str, what: str) -> None:
    """And it is a crash, though its children still hold the line."""
    registry = Registry([hostile_plugin], entry_points=False, engine=Isolated(workers=1, method=method))
    try:
        assert misbehave(registry, tmp_path / what) == "worker_crashed"
        children = started(tmp_path / what)
        assert children
        assert gone(children)
    finally:
        registry.close()


@linux
def test_a_job_that_kills_the_parent_of_all_workers_hurts_none_after_it(hostile: Registry, tmp_path: Path) -> None:
    assert misbehave(hostile, tmp_path / "kill-its-parent") == "worker_crashed"
    assert misbehave(hostile, tmp_path / "witness") == "ok"


@linux
def test_a_killed_program_takes_its_workers_along_and_the_next_one_ends_what_they_started(tmp_path: Path) -> None:
    what = tmp_path / "daemonise-and-hang"
    script = written(
        tmp_path,
        "registry = Registry([hostile_plugin], entry_points=False, engine=Isolated(workers=1))\n"
        f"source = Source.from_bytes(b'hostile {what}', 'a.hostile')\n"
        "registry.convert(source, Target(), to='hostile')\n",
    )
    with subprocess.Popen([sys.executable, str(script)], env={**os.environ, "TMPDIR": str(tmp_path)}) as program:
        limit = time.monotonic() + 60
        while not (what.exists() and what.read_text().endswith("\n")) and time.monotonic() < limit:
            time.sleep(0.02)
        family = told_to_use(tmp_path)
        left = started(what)
        # not later: any engine's first task, of another test too, ends what dead programs left
        assert left
        assert all(is_running(process) for process in left)
        program.kill()
    # the program, its fork server, Python's resource tracker, and the worker that hangs
    assert len(family) >= 4
    assert gone(family)
    registry = Registry([toys], entry_points=False, engine=Isolated(workers=1, folder=str(tmp_path)))
    try:
        convert(registry, "toy!")
        assert gone(left)
        assert becomes_empty(tmp_path, "meshhub-*")
    finally:
        registry.close()


@linux
def test_what_a_job_prints_reaches_nobody(tmp_path: Path) -> None:
    """The output and the log of a program are not its plug-ins'."""
    script = written(
        tmp_path,
        "registry = Registry([hostile_plugin], entry_points=False, engine=Isolated(workers=1, log='text'))\n"
        "for what in ('print-without-end', 'log-without-end'):\n"
        "    try:\n"
        "        source = Source.from_bytes(f'hostile {what}'.encode(), 'a.hostile')\n"
        "        registry.convert(source, Target(), to='hostile', timeout=1)\n"
        "    except ConversionTimeout:\n"
        "        print(what)\n"
        "registry.close()\n",
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=100, check=True)
    assert done.stdout.split() == ["print-without-end", "log-without-end"]
    lines = done.stderr.splitlines()
    assert "hostile output" not in done.stderr
    assert 0 < len(lines) <= 200
    assert max(map(len, lines)) < 3000


@linux
@pytest.mark.parametrize("what", ["write-a-link", "write-a-pipe", "write-a-folder", "link-its-companion"])
def test_only_plain_files_are_taken(hostile: Registry, tmp_path: Path, what: str) -> None:
    with pytest.raises(PluginError):
        hostile.convert(
            Source.from_bytes(b"hostile", "a.hostile"), tmp_path / "out.hostile", hostile_target=what, timeout=60
        )
    assert becomes_empty(tmp_path)


def test_a_companion_that_is_not_there_is_not_told_of(hostile: Registry, tmp_path: Path) -> None:
    source = Source.from_bytes(b"hostile", "a.hostile")
    hostile.convert(source, tmp_path / "out.hostile", hostile_target="forget-its-companion", timeout=60)
    assert [path.name for path in tmp_path.iterdir()] == ["out.hostile"]


@linux
def test_processor_time_is_a_deadline_too(tmp_path: Path) -> None:
    engine = Isolated(workers=1, limits=Limits(cpu_seconds=1))
    registry = Registry([hostile_plugin], entry_points=False, engine=engine)
    try:
        assert misbehave(registry, tmp_path / "busy-loop", timeout=300) == "conversion_timeout"
    finally:
        registry.close()


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
def test_threads_that_fork_at_once_do_not_wait_for_each_other(tmp_path: Path) -> None:
    """One forks to start a worker, which takes a lock; the other forks by itself."""
    script = written(
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
    assert printed(script) == ["done"]
