"""Notes about sniffers that fail say how, and where in the plug-in."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("stopped processes are found in /proc", allow_module_level=True)

from distributions import install
from meshhub import Registry, Request, Source
from meshhub.engine.hook_process import HookProcess
from meshhub.engine.plugin_records import PluginRecords

PLUGIN = """
import os, signal, time
from meshhub import Format, Reader, hookimpl

FORMAT = Format(id="sniffed", label="Sniffed", extensions=(".sniffed",))

@hookimpl
def meshhub_readers():
    return [Reader(format=FORMAT, run="sniffed:read", sniff="sniffed:sniff")]

def sniff(head, size):
    {code}
"""

STL = (
    b"solid a\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\n"
    b"endsolid a\n"
)

FAILURES = {
    "raise KeyError('secret')": "raised KeyError: 'secret' (sniffed.py:12)",
    "raise SystemExit(3)": "raised SystemExit: 3 (sniffed.py:12)",
    "raise KeyboardInterrupt('own')": "raised KeyboardInterrupt: own (sniffed.py:12)",
    "return True": "returned True; a score is a whole number from 0 to 100",
    "return 101": "returned 101; a score is a whole number from 0 to 100",
    "return None": "returned None; a score is a whole number from 0 to 100",
    "time.sleep(60)": "took longer than 1 s",
    "os.kill(os.getpid(), signal.SIGSTOP)": "stopped its process (SIGSTOP)",
    "os.kill(os.getpid(), signal.SIGKILL)": "ended its process (killed by SIGKILL)",
    "os._exit(7)": "ended its process (exit status 7)",
}
"""How a sniffer fails, and the end of the note."""


def install_sniffer(folder: Path, code: str) -> None:
    install(folder, "meshhub-sniffed", sniffed="sniffed")
    (folder / "sniffed.py").write_text(PLUGIN.replace("{code}", code))


def read_notes(registry: Registry) -> list[str]:
    chain = registry.resolve(Request(target="obj"), Source.from_bytes(STL, "a.stl"))
    assert {note.code for note in chain.notes} <= {"sniffer_failed"}
    return [note.message for note in chain.notes]


@pytest.mark.parametrize("code", FAILURES)
def test_a_note_says_how_a_sniffer_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    install_sniffer(tmp_path, code)
    monkeypatch.syspath_prepend(str(tmp_path))
    with contextlib.closing(Registry(hooks=HookProcess(sniff_s=1, has_details=True))) as registry:
        (message,) = read_notes(registry)
    start = "could not check whether the content is Sniffed: the sniffer of plug-in 'sniffed' (meshhub-sniffed 1.2) "
    assert message == start + FAILURES[code]


def test_notes_of_the_service_omit_the_texts_of_exceptions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_sniffer(tmp_path, "raise KeyError('secret')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with contextlib.closing(Registry(hooks=HookProcess())) as registry:
        (message,) = read_notes(registry)
    assert message.endswith("(meshhub-sniffed 1.2) raised KeyError")


@pytest.mark.parametrize(
    "code", ["raise KeyError('secret')", "return True", "raise SystemExit(3)"], ids=["raise", "return", "exit"]
)
def test_a_note_of_an_embedded_call_says_how_a_sniffer_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    install_sniffer(tmp_path, code)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "sniffed", raising=False)
    (message,) = read_notes(Registry())
    assert message.endswith(FAILURES[code])


def test_an_import_that_stops_its_process_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_sniffer(tmp_path, "return 0")
    (tmp_path / "sniffed.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("meshhub.engine.hook_process.PROBE_S", 1.0)
    with contextlib.closing(Registry(hooks=HookProcess(records=PluginRecords(tmp_path / "cache")))) as registry:
        (message,) = [fault.message for fault in registry.faults if fault.plugin == "sniffed"]
    assert message == "is not loaded: its import stopped the process (SIGSTOP)"


HOSTILE = {
    "raise type('Own', (BaseException,), {})('x')": "raised Own: x (sniffed.py:12)",
    "return type('Odd', (), {'__index__': lambda self: 'x', '__repr__': lambda self: 1 / 0})()": (
        "returned an object of type Odd; a score is a whole number from 0 to 100"
    ),
    r"raise type('\x1b[2J', (Exception,), {})('\x1b[2J')": "raised ?[2J: ?[2J (sniffed.py:12)",
}
"""Sniffers that fail in ways that few plug-ins do by accident."""


@pytest.mark.parametrize("code", HOSTILE)
@pytest.mark.parametrize("has_details", [None, False, True])
def test_a_hostile_sniffer_affects_its_note_alone(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    code: str,
    has_details: bool | None,
) -> None:
    install_sniffer(tmp_path, code)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "sniffed", raising=False)
    hooks = None if has_details is None else HookProcess(has_details=has_details)
    with contextlib.closing(Registry(hooks=hooks)) as registry:
        (message,) = read_notes(registry)
    expected = HOSTILE[code]
    assert message.endswith(expected.partition(": ")[0] if has_details is False else expected)
    assert message.isprintable()
    assert "in score_of" not in caplog.text


def test_a_score_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_sniffer(tmp_path, "return type('Odd', (), {'n': [500, 10], '__index__': lambda self: self.n.pop()})()")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "sniffed", raising=False)
    chain = Registry().resolve(Request(target="obj"), Source.from_bytes(STL, "a.stl"))
    assert (chain.source_format, chain.notes) == ("stl", ())


def test_verbose_shows_the_traceback_of_a_sniffer_alone(tmp_path: Path) -> None:
    install_sniffer(tmp_path, "raise KeyError('in it')")
    (tmp_path / "a.stl").write_bytes(STL)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    for verbose in ((), ("-v",)):
        command = [sys.executable, "-m", "meshhub", *verbose, "explain", "a.stl", "obj"]
        result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
        output = " ".join((result.stderr + result.stdout).split())
        assert "raised KeyError: 'in it' (sniffed.py:12)" in output
        assert result.stderr.count("Traceback") == len(verbose)
        assert result.stderr.count("  File ") == len(verbose)
        assert ('sniffed.py", line 12, in sniff' in result.stderr) == bool(verbose)
