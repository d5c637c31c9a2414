"""Hooks of third parties in a separate process: replies, deadlines, faults, cleanup."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("the attacks and the checks use Linux interfaces", allow_module_level=True)

import hostile_plugin
from distributions import install
from hostile_plugin import GRANTS, is_running
from meshhub import Caller, MeshhubError, Plan, PluginError, Registry, RequestRefused, Source, Target, UnsupportedFormat
from meshhub.engine import hook_connection
from meshhub.engine.contract import CALLER
from meshhub.engine.failures import OFF_S, Failures, HookName
from meshhub.engine.hook_connection import HookConnection
from meshhub.engine.hook_process import HookProcess
from meshhub.engine.hook_worker import Question, Reply
from meshhub.engine.plugin_records import PluginRecords
from meshhub.model.chain import Request
from meshhub.pipeline.loading import Fault
from neighbors import find_job_processes, sphere_stl
from waiting import wait_until

HARMLESS = ("fork-children", "daemonize")
ENDING = ("hang", "busy-loop", "segfault", "exit-at-once", "fork-children-and-crash", "scribble")
"""Attacks after which the hook process is replaced."""


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with an installed distribution whose hooks attack on request."""
    folder = tmp_path / "installed"
    install(folder, "meshhub-hooked", hooked="hostile_plugin:HostileHooks")
    monkeypatch.syspath_prepend(str(folder))
    return folder


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def registry(distribution: Path, work: Path) -> Iterator[Registry]:
    hooks = HookProcess(sniff_s=1, hook_s=1, folder=str(work))
    result = Registry(hooks=hooks)
    yield result
    result.close()


def sniff_format(registry: Registry, how: object = "") -> str:
    """Return the format of a file without an extension, or the code of the error."""
    text = f"hooked {how}" if how else "hooked"
    try:
        return registry.resolve(Request(target="stl"), Source.from_bytes(text.encode(), "nameless")).source_format
    except MeshhubError as error:
        return error.code


def run_review(registry: Registry, how: object) -> None:
    request = Request(target="stl", options={"hooked_review": str(how)})
    registry.resolve(request, Source.from_bytes(b"hooked", "a.hooked"))


def read_process_ids(pids: Path) -> list[int]:
    return [int(line) for line in pids.read_text().split()] if pids.is_file() else []


def test_sniffers_of_built_ins_start_no_process(work: Path) -> None:
    before = find_job_processes()
    registry = Registry([hostile_plugin], entry_points=False, hooks=HookProcess(folder=str(work)))
    chain = registry.resolve(Request(target="obj"), Source.from_bytes(b"ply\nformat ascii 1.0\n", "a.ply"))
    assert chain.source_format == "ply"
    registry.convert(Source.from_bytes(b"hostile", "a.hostile"), Target(), to="stl")
    assert (find_job_processes(), list(work.iterdir())) == (before, [])


def test_embedding_calls_hooks_in_its_own_process(distribution: Path, tmp_path: Path) -> None:
    before, state_file = find_job_processes(), tmp_path / "witness"
    registry = Registry()
    assert sniff_format(registry) == "hooked"
    with pytest.raises(RequestRefused):
        run_review(registry, "object")
    registry.convert(Source.from_bytes(b"hooked", "a.hooked"), Target(), to="stl", hooked_finished=str(state_file))
    assert state_file.is_file()
    assert find_job_processes() == before


def test_replies_of_hooks_are_returned_from_their_process(registry: Registry) -> None:
    assert sniff_format(registry) == "hooked"
    with pytest.raises(RequestRefused, match="an objection") as error:
        run_review(registry, "object")
    assert error.value.code == "hooked_refused"
    caller = registry.entitled(Caller(plan=Plan(id="free", label="Free")))
    assert caller.plan.grants == {"hooked"}


def test_a_plugin_that_leaves_little_memory_does_not_end_the_process(distribution: Path, tmp_path: Path) -> None:
    loads = tmp_path / "loads"
    install(distribution, "meshhub-large", large="large")
    (distribution / "large.py").write_text(
        "import mmap\n"
        "from meshhub import hookimpl\n"
        f"with open({str(loads)!r}, 'a') as file: file.write('.')\n"
        "memory = []\n"
        "try:\n"
        "    for _ in range(128): memory.append(mmap.mmap(-1, 16 << 20))\n"
        "except OSError: pass\n"
        "del memory[-25:]\n"
        "@hookimpl\n"
        "def meshhub_review(chain, caller): return []\n"
    )
    loaded = ""
    with contextlib.closing(Registry(hooks=HookProcess(hook_s=20))) as registry:
        for _ in range(20):
            with pytest.raises(RequestRefused):
                run_review(registry, "object")
            loaded = loaded or loads.read_text()
    assert loads.read_text() == loaded


@pytest.mark.parametrize("name", [*ENDING, *HARMLESS])
def test_a_misbehaving_sniffer_hides_its_format_only(registry: Registry, tmp_path: Path, name: str) -> None:
    source_format = sniff_format(registry, tmp_path / name)
    assert source_format == ("hooked" if name in HARMLESS else "unsupported_format")
    assert sniff_format(registry) == "hooked"
    wait_until(lambda: not any(map(is_running, read_process_ids(tmp_path / name))))


@pytest.mark.parametrize("name", hostile_plugin.HOOK_ATTACKS)
def test_a_misbehaving_review_rejects_the_request(registry: Registry, tmp_path: Path, name: str) -> None:
    if name in HARMLESS:
        run_review(registry, tmp_path / name)
    else:
        with pytest.raises(PluginError, match=r"'hooked' \(meshhub-hooked 1.2\)") as error:
            run_review(registry, tmp_path / name)
        assert error.value.code == "internal_error"
    run_review(registry, "")
    wait_until(lambda: not any(map(is_running, read_process_ids(tmp_path / name))))


@pytest.mark.parametrize("name", ["hang", "ignore-signals", "segfault", "exit-at-once"])
def test_a_misbehaving_grant_grants_nothing(registry: Registry, distribution: Path, tmp_path: Path, name: str) -> None:
    (distribution / GRANTS).write_text(f"someone {tmp_path / name}\n")
    plan = Plan(id="free", label="Free", grants=frozenset({"own"}))
    assert registry.entitled(Caller(plan=plan, id="someone")).plan.grants == {"own"}
    assert registry.entitled(Caller(plan=plan, id="other")).plan.grants == {"own", "hooked"}


@pytest.mark.parametrize("name", ["hang", "ignore-signals", "segfault", "exit-at-once", "fork-children"])
def test_a_misbehaving_listener_fails_no_conversion(registry: Registry, work: Path, tmp_path: Path, name: str) -> None:
    options = {"hooked_finished": str(tmp_path / name)}
    for _ in range(2):
        registry.convert(Source.from_bytes(b"hooked", "a.hooked"), Target(), to="stl", options=options)
    assert sniff_format(registry) == "hooked"
    registry.close()
    assert list(work.iterdir()) == []
    wait_until(lambda: not any(map(is_running, read_process_ids(tmp_path / name))))


def test_a_slow_listener_delays_neither_the_conversion_nor_other_listeners(
    distribution: Path, work: Path, tmp_path: Path
) -> None:
    """Two listeners wait for each other, and for the return of the conversion."""
    for name, other in (("first", "second"), ("second", "first")):
        (distribution / f"{name}_listener.py").write_text(
            "import time\n"
            "from pathlib import Path\n"
            "from meshhub import hookimpl\n"
            f"folder = Path({str(tmp_path)!r})\n"
            "@hookimpl\n"
            "def meshhub_finished(report):\n"
            f"    (folder / '{name}-called').touch()\n"
            f"    while not ((folder / '{other}-called').exists() and (folder / 'converted').exists()):\n"
            "        time.sleep(0.01)\n"
            f"    (folder / '{name}-done').touch()\n"
        )
        install(distribution, f"{name}-listener", **{name: f"{name}_listener"})
    with contextlib.closing(Registry(hooks=HookProcess(hook_s=60, folder=str(work)))) as registry:
        registry.convert(Source.from_bytes(b"hooked", "a.hooked"), Target(), to="stl")
        (tmp_path / "converted").touch()
        wait_until(lambda: {path.name for path in tmp_path.glob("*-done")} == {"first-done", "second-done"})


def test_listeners_are_called_before_the_registry_closes(registry: Registry, tmp_path: Path) -> None:
    state_file = tmp_path / "witness"
    registry.convert(Source.from_bytes(b"hooked", "a.hooked"), Target(), to="stl", hooked_finished=str(state_file))
    registry.close()
    assert state_file.is_file()


@pytest.mark.parametrize("name", [name for name in ENDING if name != "busy-loop"])
def test_calls_during_an_attack_that_ends_the_process_are_answered(
    registry: Registry, tmp_path: Path, name: str
) -> None:
    """Four callers continue; repeated failures count against the misbehaving caller alone."""
    enough = threading.Event()

    def live(number: int) -> list[str]:
        CALLER.set(f"neighbor {number}")
        answers = []
        while not enough.is_set():
            answers.append(sniff_format(registry))
            run_review(registry, "")
        return answers

    with ThreadPoolExecutor(4) as street:
        neighbors = [street.submit(live, number) for number in range(4)]
        try:
            results = [sniff_format(registry, tmp_path / name) for _ in range(4)]
        finally:
            enough.set()
        answers = [neighbor.result() for neighbor in neighbors]
    assert results == ["unsupported_format"] * 4
    assert {answer for lives in answers for answer in lives} == {"hooked"}
    assert all(answers)
    assert registry.faults == ()


def test_a_call_beside_one_that_leaves_processes_is_repeated(
    distribution: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second review begins before the process of the first is killed, and its thread notices the kill first."""
    (distribution / "leaving.py").write_text(
        "import subprocess, time\n"
        "from pathlib import Path\n"
        "from meshhub import hookimpl\n"
        f"folder = Path({str(tmp_path)!r})\n"
        "@hookimpl\n"
        "def meshhub_review(chain, caller):\n"
        "    if not (folder / 'first').exists():\n"
        "        (folder / 'first').touch()\n"
        "        while not (folder / 'waiting').exists(): time.sleep(0.01)\n"
        "        subprocess.Popen(['sleep', '60'])\n"
        "    elif not (folder / 'second').exists():\n"
        "        (folder / 'second').touch()\n"
        "        time.sleep(60)\n"
        "    return []\n"
    )
    install(distribution, "meshhub-leaving", leaving="leaving")
    ask, close, kill = HookConnection.ask, HookConnection.close, hook_connection.kill_marked
    closing = threading.Event()

    def ask_in_turn(self: HookConnection, question: Question, budget: float | None) -> Reply:
        if question.plugin == "leaving" and (tmp_path / "first").exists() and not closing.is_set():
            (tmp_path / "waiting").touch()
            closing.wait(60)
        return ask(self, question, budget)

    def close_later(self: HookConnection) -> None:
        closing.set()
        wait_until(lambda: (tmp_path / "second").exists())
        close(self)

    def kill_slowly(mark: int, timeout_s: float) -> bool:
        time.sleep(1)
        return kill(mark, timeout_s)

    monkeypatch.setattr(HookConnection, "ask", ask_in_turn)
    monkeypatch.setattr(HookConnection, "close", close_later)
    monkeypatch.setattr(hook_connection, "kill_marked", kill_slowly)
    with contextlib.closing(Registry(hooks=HookProcess(hook_s=50))) as registry, ThreadPoolExecutor(2) as callers:
        first = callers.submit(run_review, registry, "")
        wait_until(lambda: (tmp_path / "first").exists())
        second = callers.submit(run_review, registry, "")
        assert [first.result(), second.result()] == [None, None]
        assert registry.faults == ()


def test_no_process_or_file_remains_after_close(registry: Registry, work: Path, tmp_path: Path) -> None:
    for name in ("hang", "daemonize", "fork-children-and-crash"):
        sniff_format(registry, tmp_path / name)
    registry.close()
    assert list(work.iterdir()) == []
    children = [*read_process_ids(tmp_path / "daemonize"), *read_process_ids(tmp_path / "fork-children-and-crash")]
    assert children
    wait_until(lambda: not any(map(is_running, children)))


def test_a_process_that_was_stopped_is_replaced(registry: Registry, tmp_path: Path) -> None:
    assert sniff_format(registry, tmp_path / "stop-itself") == "unsupported_format"
    assert sniff_format(registry) == "hooked"


def test_a_sniffer_that_stops_its_process_for_three_callers_is_disabled(registry: Registry, tmp_path: Path) -> None:
    for caller in ("one", "two", "three"):
        CALLER.set(caller)
        assert sniff_format(registry, tmp_path / "stop-itself") == "unsupported_format"
        CALLER.set("other")
        run_review(registry, "")
    (fault,) = registry.faults
    assert (fault.plugin, fault.hook) == ("hooked", "sniff hooked")
    assert "stopped its process (SIGSTOP)" in fault.message
    run_review(registry, "")


def test_a_hook_that_fails_for_three_callers_is_disabled(registry: Registry, tmp_path: Path) -> None:
    for caller in ("one", "one", "one", "one", "two"):
        CALLER.set(caller)
        assert sniff_format(registry, tmp_path / "exit-at-once") == "unsupported_format"
    assert sniff_format(registry) == "hooked"
    assert registry.faults == ()
    CALLER.set("one")
    assert sniff_format(registry) == "unsupported_format", "its own calls fail too often"
    CALLER.set("three")
    sniff_format(registry, tmp_path / "exit-at-once")
    (fault,) = registry.faults
    assert (fault.plugin, fault.origin, fault.hook) == ("hooked", "meshhub-hooked 1.2", "sniff hooked")
    assert "ended its process (exit status 0)" in fault.message
    with pytest.raises(UnsupportedFormat, match="is disabled because it failed repeatedly"):
        registry.resolve(Request(target="stl"), Source.from_bytes(b"hooked", "nameless"))
    run_review(registry, "")


def test_a_hook_that_raises_for_every_caller_is_a_fault(registry: Registry, tmp_path: Path) -> None:
    def review(caller: str, how: object) -> None:
        CALLER.set(caller)
        with contextlib.suppress(PluginError):
            run_review(registry, how)

    broken = tmp_path / "raise-something"
    for caller, how in (("one", broken), ("two", broken), ("four", ""), ("three", broken), ("one", broken)):
        review(caller, how)
    assert registry.faults == (), "it succeeds for others"
    review("two", broken)
    (fault,) = registry.faults
    assert (fault.hook, fault.message.partition(" for ")[0]) == ("meshhub_review", "meshhub_review raised an error")
    with pytest.raises(PluginError, match="failed, so the request was rejected"):
        run_review(registry, "")


SLOW = """
import time
from meshhub import hookimpl

@hookimpl
def meshhub_review(chain, caller):
    if caller.id == "slow":
        time.sleep(1.2)
    return []
"""


def test_a_hook_that_another_hook_interrupts_is_not_blamed(
    distribution: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow_review.py").write_text(SLOW)
    install(tmp_path, "meshhub-slow", slow="slow_review")
    monkeypatch.syspath_prepend(str(tmp_path))
    with contextlib.closing(Registry(hooks=HookProcess(sniff_s=1, hook_s=2))) as registry:
        assert sniff_format(registry) == "hooked"

        def review(name: str) -> None:
            CALLER.set(name)
            caller = Caller(plan=Plan(id="free", label="Free"), id="slow")
            with contextlib.suppress(PluginError):
                registry.resolve(Request(target="stl"), Source.from_bytes(b"hooked", "a.hooked"), caller)

        with ThreadPoolExecutor(4) as threads:
            slow = [threads.submit(review, name) for name in ("one", "two", "three")]
            time.sleep(0.1)
            assert sniff_format(registry, tmp_path / "hang") == "unsupported_format"
            for future in slow:
                future.result()
        assert registry.faults == ()


def test_a_hook_is_tried_again_after_a_minute() -> None:
    now = 1000.0
    hook = HookName("p", "p 1", "sniff p")
    failures = Failures(lambda: now)
    assert [failures.add(hook, caller, "late") for caller in "abc"] == [False, False, True]
    assert failures.is_off(hook, "d")
    now += OFF_S - 1
    assert failures.is_off(hook, "d")
    now += 2
    assert not failures.is_off(hook, "a")
    assert [*failures.off()] == []
    assert not failures.add(hook, "a", "late"), "one caller cannot switch it off again"
    assert not failures.is_off(hook, "b")


def test_failures_of_one_caller_do_not_disable_a_hook_for_others() -> None:
    now = 1000.0
    hook, other = HookName("p", "p 1", "sniff p"), HookName("p", "p 1", "meshhub_review")
    failures = Failures(lambda: now)
    for _ in range(50):
        assert not failures.add(hook, "a", "late")
        now += 1
    assert failures.is_off(hook, "a")
    assert not failures.is_off(hook, "b")
    assert not failures.is_off(other, "a")
    now += OFF_S
    assert not failures.is_off(hook, "a")


IMPORTS = {
    "sleeps": "import time; time.sleep(600)",
    "exits": "import os; os._exit(0)",
    "crashes": "import ctypes; ctypes.string_at(0)",
}


@pytest.fixture
def wrong_at_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install distributions that cannot be loaded, and one that prints."""
    folder = tmp_path / "wrong"
    for name, code in {**IMPORTS, "prints": "import os; print('printed'); os.write(1, b'written')"}.items():
        install(folder, f"meshhub-{name}", **{name: f"wrong_{name}"})
        (folder / f"wrong_{name}.py").write_text(
            f"with open({str(tmp_path / name)!r}, 'a') as file: file.write('.')\n{code}\n"
        )
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr("meshhub.engine.hook_process.PROBE_S", 2.0)
    return folder


def test_plugins_that_cannot_be_loaded_are_reported_as_faults(wrong_at_import: Path, tmp_path: Path) -> None:
    for _ in range(2):
        hooks = HookProcess(records=PluginRecords(tmp_path / "cache"))
        registry = Registry(hooks=hooks)
        registry.close()
        faults = {fault.plugin: fault for fault in registry.faults if fault.plugin != "prints"}
        assert faults.keys() == IMPORTS.keys()
        assert faults["sleeps"].message == "is not loaded: its import took longer than 2 s"
        assert "exit status 0" in faults["exits"].message
        assert "SIGSEGV" in faults["crashes"].message
        assert faults["exits"].origin == "meshhub-exits 1.2"
        assert "prints" in [plugin.name for plugin in registry.plugins]
    # the second registry uses the recorded probes
    assert {name: (tmp_path / name).read_text() for name in IMPORTS} == dict.fromkeys(IMPORTS, ".")


def test_a_changed_distribution_is_probed_again(wrong_at_import: Path, tmp_path: Path) -> None:
    def faults() -> set[str]:
        registry = Registry(hooks=HookProcess(records=PluginRecords(tmp_path / "cache")))
        registry.close()
        return {fault.plugin for fault in registry.faults} - {"prints"}

    assert "exits" in faults()
    time.sleep(0.01)
    (wrong_at_import / "wrong_exits.py").write_text("fixed = True\n")
    assert faults() == IMPORTS.keys() - {"exits"}


def test_plugins_are_probed_each_time_if_results_cannot_be_stored(wrong_at_import: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    registry = Registry(hooks=HookProcess(records=PluginRecords(tmp_path / "file" / "cache")))
    registry.close()
    assert {fault.plugin for fault in registry.faults} - {"prints"} == IMPORTS.keys()


def test_faults_of_a_running_service_can_be_read(tmp_path: Path) -> None:
    records = PluginRecords(tmp_path)
    fault = Fault("p", "is off", "p 1", "sniff p")
    records.keep_faults((fault,), 60)
    assert records.faults() == (fault,)
    records.keep_faults((fault,), -1)
    assert records.faults() == ()
    records.keep_faults((fault,), 60)
    records.forget_faults()
    assert records.faults() == ()


# the command line


def meshhub_bytes(*arguments: str, path: Path, cache: Path) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(path), *sys.path]), "XDG_CACHE_HOME": str(cache)}
    return subprocess.run(
        [sys.executable, "-m", "meshhub", *arguments], env=environment, capture_output=True, timeout=300
    )


def meshhub(*arguments: str, path: Path, cache: Path) -> subprocess.CompletedProcess[str]:
    result = meshhub_bytes(*arguments, path=path, cache=cache)
    return subprocess.CompletedProcess(result.args, result.returncode, result.stdout.decode(), result.stderr.decode())


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("convert", "exit-at-once"),
        ("convert", "busy-loop"),
        ("inspect", "exit-at-once"),
        ("explain", "exit-at-once"),
        ("batch", "busy-loop"),
    ],
)
def test_the_command_line_survives_a_misbehaving_sniffer(
    distribution: Path, tmp_path: Path, command: str, name: str
) -> None:
    source = tmp_path / "nameless"
    source.write_text(f"hooked {tmp_path / name}")
    out = tmp_path / "out.stl"
    arguments = {
        "convert": ("convert", str(source), str(out), "--timeout", "1"),
        "inspect": ("inspect", str(source), "--timeout", "1"),
        "explain": ("explain", str(source), "stl"),
        "batch": ("convert", str(source), "--to", "stl", "--output-dir", str(tmp_path / "to"), "--timeout", "1"),
    }[command]
    result = meshhub(*arguments, path=distribution, cache=tmp_path)
    assert result.returncode == (1 if command == "batch" else 2), result.stderr
    # tables wrap lines
    output = re.sub(r"\s+", "", result.stderr + result.stdout)
    assert ("endeditsprocess(exitstatus0)" if name == "exit-at-once" else "tooklongerthan1s") in output
    assert "meshhub-hooked1.2" in output


@pytest.mark.parametrize("name", ["exit-at-once", "busy-loop"])
def test_the_command_line_converts_by_the_extension_if_a_sniffer_fails(
    distribution: Path, tmp_path: Path, name: str
) -> None:
    source, out = tmp_path / "a.hooked", tmp_path / "out.stl"
    source.write_text(f"hooked {tmp_path / name}")
    result = meshhub("convert", str(source), str(out), "--timeout", "1", path=distribution, cache=tmp_path)
    assert (result.returncode, out.is_file()) == (0, True), result.stderr
    assert "[sniffer_failed]" in result.stderr


def test_verbose_shows_the_traceback_of_a_plugin(distribution: Path, tmp_path: Path) -> None:
    (distribution / "failing.py").write_text(
        "from meshhub import Format, Reader, hookimpl\n"
        "def read(source, options):\n    raise KeyError('in the plug-in')\n"
        "@hookimpl\ndef meshhub_readers():\n"
        "    format = Format(id='failing', label='Failing', extensions=('.failing',))\n"
        "    return [Reader(format=format, run='failing:read')]\n"
    )
    install(distribution, "meshhub-failing", failing="failing")
    (tmp_path / "a.failing").touch()
    (tmp_path / "a.failing").write_text("x")
    source, out = str(tmp_path / "a.failing"), tmp_path / "to"
    quiet = meshhub("convert", source, str(tmp_path / "a.stl"), path=distribution, cache=tmp_path)
    assert "KeyError: 'in the plug-in' (failing.py:3)" in " ".join(quiet.stderr.split())
    assert "Traceback" not in quiet.stderr
    assert "file may be damaged" not in quiet.stderr
    for arguments in ((source, str(tmp_path / "a.stl")), (source, "--to", "stl", "--output-dir", str(out))):
        loud = meshhub("-v", "convert", *arguments, path=distribution, cache=tmp_path)
        traceback = re.search(r"^Traceback.*?^KeyError: 'in the plug-in'", loud.stderr, re.MULTILINE | re.DOTALL)
        assert traceback is not None
        assert re.findall(r'File "(?:.*/)?(.*)"', traceback[0]) == ["failing.py"]


def test_plugins_lists_those_that_cannot_be_loaded(distribution: Path, tmp_path: Path) -> None:
    (distribution / "ends.py").write_text("import os; os._exit(0)")
    install(distribution, "meshhub-ends", ends="ends")
    PluginRecords(tmp_path / "meshhub" / "plugins").keep_faults((Fault("hooked", "is off", "meshhub-hooked 1.2"),), 60)
    result = meshhub("plugins", path=distribution, cache=tmp_path)
    assert result.returncode == 1
    assert "fault: ends (meshhub-ends 1.2): is not loaded: its import ended the process" in result.stderr
    assert "fault: hooked (meshhub-hooked 1.2): is off" in result.stderr
    assert "hooked" in result.stdout


def test_help_and_listings_probe_nothing(distribution: Path, tmp_path: Path) -> None:
    for arguments in (("--help",), ("convert", "--help"), ("formats",)):
        assert meshhub(*arguments, path=distribution, cache=tmp_path / "cache").returncode == 0
    assert not (tmp_path / "cache").exists()


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """Install distributions that end, block or disturb the program that imports them."""
    folder = tmp_path / "broken"
    noisy = (
        "import os, subprocess\nfrom meshhub import hookimpl\n"
        "print('printed')\nos.write(1, b'written')\nsubprocess.run(['echo', 'child'])\n"
        "@hookimpl\ndef meshhub_readers():\n    os.write(1, b'read')\n    return []"
    )
    codes = {
        **IMPORTS,
        "raises": "raise KeyError('at import')",
        "quits": "raise SystemExit(0)",
        "interrupts": "raise KeyboardInterrupt",
        "declares": "from meshhub import hookimpl\n@hookimpl\ndef meshhub_readers(): raise SystemExit(0)",
        "noisy": noisy,
    }
    for name, code in codes.items():
        install(folder, f"meshhub-{name}", **{name: f"broken_{name}"})
        (folder / f"broken_{name}.py").write_text(f"{code}\n")
    return folder


def test_the_command_line_survives_imports_and_names_the_distribution(broken: Path, tmp_path: Path) -> None:
    source = tmp_path / "a.stl"
    source.write_bytes(sphere_stl(1))
    plain = meshhub_bytes("convert", str(source), "-", "--to", "ply", "-q", path=tmp_path, cache=tmp_path / "none")
    piped = meshhub_bytes("convert", str(source), "-", "--to", "ply", path=broken, cache=tmp_path / "cache")
    assert piped.returncode == 0, piped.stderr
    assert piped.stdout == plain.stdout
    for name in ("sleeps", "exits", "crashes", "raises", "quits", "interrupts", "declares"):
        assert f"fault: {name} (meshhub-{name} 1.2): ".encode() in piped.stderr, name
    assert b"fault: noisy (meshhub-noisy 1.2): prints 'printed' on standard output" in b" ".join(piped.stderr.split())
    # the recorded probes are used
    for arguments in (("inspect", str(source), "--json"), ("explain", str(source), "ply"), ("plugins",), ("formats",)):
        result = meshhub(*arguments, path=broken, cache=tmp_path / "cache")
        assert result.returncode == (1 if arguments == ("plugins",) else 0), result.stderr
        assert ("fault: exits" in result.stderr) == (arguments != ("formats",))
        assert "written" not in result.stdout
    assert "stl" in meshhub("convert", "--help-all", path=broken, cache=tmp_path / "cache").stdout.lower()


def test_verbose_shows_the_traceback_of_an_import(broken: Path, tmp_path: Path) -> None:
    for name in (*IMPORTS, "interrupts", "noisy"):
        (broken / f"broken_{name}.py").write_text("")
    for verbose in ((), ("-v",)):
        result = meshhub(*verbose, "plugins", path=broken, cache=tmp_path / "cache")
        assert result.returncode == 1
        assert ("Traceback" in result.stderr) == bool(verbose)
        assert (", in meshhub_readers" in result.stderr) == bool(verbose)
        assert "fault: raises (meshhub-raises 1.2): cannot be loaded" in result.stderr


def test_all_plugins_are_probed_before_one_is_loaded(tmp_path: Path) -> None:
    """A probe forks, which a thread of a loaded plug-in would disturb."""
    folder = tmp_path / "installed"
    for name in ("first", "second"):
        install(folder, f"meshhub-{name}", **{name: f"order_{name}"})
        (folder / f"order_{name}.py").write_text(
            f"import os\nwith open({str(tmp_path / 'order')!r}, 'a') as file: file.write(f'{{os.getpid()}} ')\n"
        )
    assert meshhub("plugins", path=folder, cache=tmp_path / "cache").returncode == 0
    first_probe, second_probe, first_load, second_load = (tmp_path / "order").read_text().split()
    assert first_load == second_load
    assert len({first_probe, second_probe, first_load}) == 3


FORK = """
import os, sys, threading, time
sys.path[:0] = {folders!r}
from pathlib import Path
from meshhub import Registry, Source, Target
from meshhub.engine import hook_connection, process_start
from meshhub.engine.hook_connection import HookConnection
from meshhub.engine.hook_process import HookProcess
from meshhub.engine.hook_worker import Question, Reply

process_start.PRELOAD = {{}}
registry = Registry(hooks=HookProcess(sniff_s=10, hook_s=10, folder={work!r}))
is_held = threading.Event()

def pause_first(function):
    def paused(*arguments):
        if not is_held.is_set():
            is_held.set()
            time.sleep(0.5)
        return function(*arguments)
    return paused

def convert(path=""):
    options = {{"hooked_finished": path}} if path else {{}}
    registry.convert(Source.from_bytes(b"hooked", "nameless"), Target(), to="stl", options=options)

{before}
child = os.fork()
if child == 0:
    {in_child}
    registry.close()
    os._exit(0)
print(os.waitpid(child, 0)[1])
registry.close()
"""
"""Program that forks while another thread uses the hook process."""


@pytest.mark.parametrize(
    ("before", "in_child"),
    [
        (
            "hook_connection.Scratch = pause_first(hook_connection.Scratch)\n"
            "threading.Thread(target=convert).start()\n"
            "is_held.wait()",
            "convert()",
        ),
        (
            "convert()\n"
            "hook_connection.kill_marked = pause_first(hook_connection.kill_marked)\n"
            "threading.Thread(target=registry.close).start()\n"
            "is_held.wait()",
            "pass",
        ),
        ("convert()", "convert('{report}')"),
    ],
    ids=["during a start", "during a close", "after a report"],
)
def test_a_forked_child_calls_hooks_in_its_own_process(
    distribution: Path, work: Path, tmp_path: Path, before: str, in_child: str
) -> None:
    report = tmp_path / "witness"
    folders = [str(Path(hostile_plugin.__file__).parent), str(distribution)]
    in_child = in_child.replace("{report}", str(report))
    script = tmp_path / "script.py"
    script.write_text(FORK.format(folders=folders, work=str(work), before=before, in_child=in_child))
    result = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=False)
    assert (result.returncode, result.stdout) == (0, "0\n"), result.stderr
    assert report.is_file() == (str(report) in in_child)
