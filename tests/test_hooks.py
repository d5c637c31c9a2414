"""Hooks of installed plug-ins: sniffers in a worker, other hooks in the program with a time limit."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("the attacks and the checks use Linux interfaces", allow_module_level=True)

import hostile_plugin
from distributions import install
from hostile_plugin import GRANTS, is_running
from meshhub import Caller, Isolated, MeshhubError, Plan, PluginError, Registry, RequestRefused, Source, Target
from meshhub.engine.process_start import PRELOAD
from meshhub.model.chain import Request
from meshhub.pipeline.hook_threads import MAX_LATE_COUNT, LimitedCalls
from meshhub.pipeline.hooks import Hooks
from neighbors import find_job_processes, sphere_stl
from waiting import wait_until

HARMLESS = ("fork-children", "daemonize")
ENDING = ("hang", "busy-loop", "stop-itself", "segfault", "exit-at-once", "fork-children-and-crash", "scribble")
"""Attacks after which a worker is replaced."""


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with an installed distribution whose hooks attack on request."""
    folder = tmp_path / "installed"
    install(folder, "meshhub-hooked", hooked="hostile_plugin:HostileHooks")
    monkeypatch.syspath_prepend(str(folder))
    return folder


@pytest.fixture
def registry(distribution: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    monkeypatch.setattr("meshhub.engine.process_start.PRELOAD", dict.fromkeys(PRELOAD, ()))
    with Registry(engine=Isolated(workers=2), hooks=Hooks(sniff_s=1, hook_s=1)) as result:
        yield result


def sniff_format(registry: Registry, how: object = "") -> str:
    """Return the format of a file without an extension, or the code of the error."""
    text = f"hooked {how}" if how else "hooked"
    try:
        return registry.resolve(Request(target="stl"), Source.from_bytes(text.encode(), "nameless")).source_format
    except MeshhubError as error:
        return error.error_code


def run_review(registry: Registry, how: object) -> None:
    request = Request(target="stl", options={"hooked_review": str(how)})
    registry.resolve(request, Source.from_bytes(b"hooked", "a.hooked"))


def read_process_ids(pids: Path) -> list[int]:
    return [int(line) for line in pids.read_text().split()] if pids.is_file() else []


def test_sniffers_of_built_ins_and_of_the_program_start_no_process() -> None:
    before = find_job_processes()
    with Registry([hostile_plugin], entry_points=False, engine=Isolated(workers=1)) as registry:
        chain = registry.resolve(Request(target="obj"), Source.from_bytes(b"ply\nformat ascii 1.0\n", "a.ply"))
        assert chain.source_format == "ply"
        assert find_job_processes() == before


def test_a_registry_without_limits_calls_hooks_in_its_own_thread(distribution: Path, tmp_path: Path) -> None:
    before, state_file = find_job_processes(), tmp_path / "witness"
    registry = Registry()
    assert sniff_format(registry) == "hooked"
    with pytest.raises(RequestRefused):
        run_review(registry, "object")
    registry.convert(Source.from_bytes(b"hooked", "a.hooked"), Target(), target="stl", hooked_finished=str(state_file))
    assert state_file.is_file()
    assert find_job_processes() == before


def test_results_of_hooks_are_returned(registry: Registry) -> None:
    assert sniff_format(registry) == "hooked"
    with pytest.raises(RequestRefused, match="an objection") as error:
        run_review(registry, "object")
    assert error.value.error_code == "hooked_refused"
    caller = registry.entitled(Caller(plan=Plan(id="free", label="Free")))
    assert caller.plan.grants == {"hooked"}


@pytest.mark.parametrize("name", [*ENDING, *HARMLESS])
def test_a_misbehaving_sniffer_hides_its_format_only(registry: Registry, tmp_path: Path, name: str) -> None:
    source_format = sniff_format(registry, tmp_path / name)
    assert source_format == ("hooked" if name in HARMLESS else "unsupported_format")
    assert sniff_format(registry) == "hooked"
    registry.close()
    wait_until(lambda: not any(map(is_running, read_process_ids(tmp_path / name))))


def test_a_worker_calls_sniffers_until_one_fails(distribution: Path, registry: Registry, tmp_path: Path) -> None:
    """The neighbor, which is called after the sniffer that fails, answers every time."""
    (distribution / "neighbor.py").write_text(
        "import os\n"
        "from meshhub import Format, Reader, hookimpl\n"
        "@hookimpl\n"
        "def meshhub_readers():\n"
        "    format = Format(id='neighbor', label='Neighbor', extensions=('.neighbor',))\n"
        "    return [Reader(format=format, run='neighbor:sniff', sniff='neighbor:sniff', score=1)]\n"
        "def sniff(head, size):\n"
        f"    with open({str(tmp_path / 'workers')!r}, 'a') as file: file.write(f'{{os.getpid()}} ')\n"
        "    return 80\n"
    )
    install(distribution, "meshhub-neighbor", neighbor="neighbor")
    with Registry(engine=registry.engine, hooks=Hooks(sniff_s=1, hook_s=1)) as both:
        formats = [sniff_format(both, how) for how in ("", "", tmp_path / "hang", tmp_path / "segfault", "")]
    assert formats == ["hooked", "hooked", "neighbor", "neighbor", "hooked"]
    first, second, third, fourth, fifth = (tmp_path / "workers").read_text().split()
    assert first == second
    assert len({first, third, fourth}) == 3
    assert fifth == fourth


@pytest.mark.parametrize("name", hostile_plugin.HOOK_ATTACKS)
def test_a_misbehaving_review_rejects_the_request(registry: Registry, tmp_path: Path, name: str) -> None:
    with pytest.raises(PluginError, match=r"'hooked' \(meshhub-hooked 1.2\)") as error:
        run_review(registry, tmp_path / name)
    assert error.value.error_code == "internal_error"
    assert name != "oversleep" or "took longer than 1 s" in error.value.details
    run_review(registry, "")


@pytest.mark.parametrize("name", hostile_plugin.HOOK_ATTACKS)
def test_a_misbehaving_grant_grants_nothing(registry: Registry, distribution: Path, tmp_path: Path, name: str) -> None:
    (distribution / GRANTS).write_text(f"someone {tmp_path / name}\n")
    plan = Plan(id="free", label="Free", grants=frozenset({"own"}))
    assert registry.entitled(Caller(plan=plan, id="someone")).plan.grants == {"own"}
    assert registry.entitled(Caller(plan=plan, id="other")).plan.grants == {"own", "hooked"}


@pytest.mark.parametrize("name", hostile_plugin.HOOK_ATTACKS)
def test_a_misbehaving_listener_fails_no_conversion(
    registry: Registry, tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    source, state_file = Source.from_bytes(b"hooked", "a.hooked"), tmp_path / "witness"
    for how in (tmp_path / name, state_file):
        registry.convert(source, Target(), target="stl", hooked_finished=str(how))
    # the listener gets the second report although its first call failed
    wait_until(state_file.exists)
    assert "the listener of plug-in 'hooked' failed" in caplog.text


def test_a_slow_listener_delays_neither_the_conversion_nor_other_listeners(distribution: Path, tmp_path: Path) -> None:
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
    with closing(Registry(hooks=Hooks(hook_s=60))) as registry:
        registry.convert(Source.from_bytes(b"hooked", "a.hooked"), Target(), target="stl")
        (tmp_path / "converted").touch()
        wait_until(lambda: {path.name for path in tmp_path.glob("*-done")} == {"first-done", "second-done"})


def test_listeners_are_called_before_the_registry_closes(registry: Registry, tmp_path: Path) -> None:
    state_file = tmp_path / "witness"
    registry.convert(Source.from_bytes(b"hooked", "a.hooked"), Target(), target="stl", hooked_finished=str(state_file))
    registry.close()
    assert state_file.is_file()


def test_late_calls_of_a_plugin_are_limited() -> None:
    calls, enough = LimitedCalls(), threading.Event()
    for _ in range(MAX_LATE_COUNT):
        with pytest.raises(TimeoutError, match=r"took longer than 0\.001 s"):
            calls.call("slow", 0.001, enough.wait)
    with pytest.raises(TimeoutError, match="earlier calls have not ended"):
        calls.call("slow", 60, lambda: 1)
    assert calls.call("other", 60, lambda: 2) == 2
    enough.set()

    def call() -> int | None:
        try:
            return calls.call("slow", 60, lambda: 3)
        except TimeoutError:
            return None

    assert wait_until(call) == 3


FORK = """
import os, sys
sys.path[:0] = {folders!r}
from meshhub import Isolated, Registry, Source, Target
from meshhub.engine import process_start
from meshhub.pipeline.hooks import Hooks

process_start.PRELOAD = {{}}
registry = Registry(engine=Isolated(workers=1), hooks=Hooks(sniff_s=30, hook_s=30))

def convert(name):
    options = {{"hooked_finished": {folder!r} + name + "/witness"}}
    registry.convert(Source.from_bytes(b"hooked", "nameless"), Target(), target="stl", options=options)

convert("parent")
child = os.fork()
if child == 0:
    convert("child")
    registry.close()
    os._exit(0)
print(os.waitpid(child, 0)[1])
registry.close()
"""
"""Program that forks after it has called hooks."""


def test_a_forked_child_calls_hooks_with_its_own_worker_and_threads(distribution: Path, tmp_path: Path) -> None:
    for name in ("parent", "child"):
        (tmp_path / name).mkdir()
    folders = [str(Path(hostile_plugin.__file__).parent), str(distribution)]
    script = tmp_path / "script.py"
    script.write_text(FORK.format(folders=folders, folder=f"{tmp_path}/"))
    result = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=False)
    assert (result.returncode, result.stdout) == (0, "0\n"), result.stderr
    assert (tmp_path / "parent" / "witness").is_file()
    assert (tmp_path / "child" / "witness").is_file()


# the command line


def meshhub_bytes(*arguments: str, path: Path) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(path), *sys.path])}
    return subprocess.run(
        [sys.executable, "-m", "meshhub", *arguments], env=environment, capture_output=True, timeout=300
    )


def meshhub(*arguments: str, path: Path) -> subprocess.CompletedProcess[str]:
    result = meshhub_bytes(*arguments, path=path)
    return subprocess.CompletedProcess(result.args, result.returncode, result.stdout.decode(), result.stderr.decode())


@pytest.mark.once
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
    result = meshhub(*arguments, path=distribution)
    assert result.returncode == (1 if command == "batch" else 2), result.stderr
    # tables wrap lines
    output = re.sub(r"\s+", "", result.stderr + result.stdout)
    assert ("endeditsprocess(exitstatus0)" if name == "exit-at-once" else "tooklongerthan1s") in output
    assert "meshhub-hooked1.2" in output


@pytest.mark.once
@pytest.mark.parametrize("name", ["exit-at-once", "busy-loop"])
def test_the_command_line_converts_by_the_extension_if_a_sniffer_fails(
    distribution: Path, tmp_path: Path, name: str
) -> None:
    source, out = tmp_path / "a.hooked", tmp_path / "out.stl"
    source.write_text(f"hooked {tmp_path / name}")
    result = meshhub("convert", str(source), str(out), "--timeout", "1", path=distribution)
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
    quiet = meshhub("convert", source, str(tmp_path / "a.stl"), path=distribution)
    assert "KeyError: 'in the plug-in' (failing.py:3)" in " ".join(quiet.stderr.split())
    assert "Traceback" not in quiet.stderr
    assert "file may be damaged" not in quiet.stderr
    for arguments in ((source, str(tmp_path / "a.stl")), (source, "--to", "stl", "--output-dir", str(out))):
        loud = meshhub("-v", "convert", *arguments, path=distribution)
        traceback = re.search(r"^Traceback.*?^KeyError: 'in the plug-in'", loud.stderr, re.MULTILINE | re.DOTALL)
        assert traceback is not None
        assert re.findall(r'File "(?:.*/)?(.*)"', traceback[0]) == ["failing.py"]


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """Install distributions that fail in, or disturb, the program that imports them."""
    folder = tmp_path / "broken"
    noisy = (
        "import os, subprocess\nfrom meshhub import hookimpl\n"
        "print('printed')\nos.write(1, b'written')\nsubprocess.run(['echo', 'child'])\n"
        "@hookimpl\ndef meshhub_readers():\n    os.write(1, b'read')\n    return []"
    )
    codes = {
        "raises": "raise KeyError('at import')",
        "quits": "raise SystemExit(0)",
        "declares": "from meshhub import hookimpl\n@hookimpl\ndef meshhub_readers(): raise SystemExit(0)",
        "noisy": noisy,
    }
    for name, code in codes.items():
        install(folder, f"meshhub-{name}", **{name: f"broken_{name}"})
        (folder / f"broken_{name}.py").write_text(f"{code}\n")
    return folder


@pytest.mark.large
def test_the_command_line_survives_imports_and_names_the_distribution(broken: Path, tmp_path: Path) -> None:
    source = tmp_path / "a.stl"
    source.write_bytes(sphere_stl(1))
    plain = meshhub_bytes("convert", str(source), "-", "--to", "ply", "-q", path=tmp_path)
    piped = meshhub_bytes("convert", str(source), "-", "--to", "ply", path=broken)
    assert piped.returncode == 0, piped.stderr
    assert piped.stdout == plain.stdout
    for name in ("raises", "quits", "declares"):
        assert f"fault: {name} (meshhub-{name} 1.2): ".encode() in piped.stderr, name
    assert b"fault: noisy (meshhub-noisy 1.2): prints 'printed' on standard output" in b" ".join(piped.stderr.split())
    for arguments in (("inspect", str(source), "--json"), ("explain", str(source), "ply"), ("plugins",), ("formats",)):
        result = meshhub(*arguments, path=broken)
        assert result.returncode == (1 if arguments == ("plugins",) else 0), result.stderr
        assert ("fault: raises" in result.stderr) == (arguments != ("formats",))
        assert "written" not in result.stdout
    assert "stl" in meshhub("convert", "--help-all", path=broken).stdout.lower()


def test_verbose_shows_the_traceback_of_an_import(broken: Path, tmp_path: Path) -> None:
    (broken / "broken_noisy.py").write_text("")
    for verbose in ((), ("-v",)):
        result = meshhub(*verbose, "plugins", path=broken)
        assert result.returncode == 1
        assert ("Traceback" in result.stderr) == bool(verbose)
        assert (", in meshhub_readers" in result.stderr) == bool(verbose)
        assert "fault: raises (meshhub-raises 1.2): cannot be loaded" in result.stderr
