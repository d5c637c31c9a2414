"""Notes about sniffers that fail say how, and where in the plug-in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("stopped processes are found in /proc", allow_module_level=True)

from distributions import install
from meshhub import Isolated, Registry, Request, Source
from meshhub.pipeline.hooks import Hooks

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
    "return True": "returned True; a score is a whole number from 0 to 100",
    "return 101": "returned 101; a score is a whole number from 0 to 100",
    "return None": "returned None; a score is a whole number from 0 to 100",
    "time.sleep(60)": "took longer than 1 s",
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
    with Registry(engine=Isolated(workers=1), hooks=Hooks(sniff_s=1)) as registry:
        (message,) = read_notes(registry)
    start = "could not check whether the content is Sniffed: the sniffer of plug-in 'sniffed' (meshhub-sniffed 1.2) "
    assert message == start + FAILURES[code]


def test_notes_of_the_service_omit_the_texts_of_exceptions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_sniffer(tmp_path, "raise KeyError('secret')")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "sniffed", raising=False)
    with Registry(hooks=Hooks(has_details=False)) as registry:
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


def test_verbose_shows_the_traceback_of_a_sniffer_alone(tmp_path: Path) -> None:
    install_sniffer(tmp_path, "raise KeyError('in it')")
    (tmp_path / "a.stl").write_bytes(STL)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
    }
    for verbose in ((), ("-v",)):
        command = [sys.executable, "-m", "meshhub", *verbose, "explain", "a.stl", "obj"]
        result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
        output = " ".join((result.stderr + result.stdout).split())
        assert "raised KeyError: 'in it' (sniffed.py:12)" in output
        assert result.stderr.count("Traceback") == len(verbose)
        assert result.stderr.count("  File ") == len(verbose)
        assert ('sniffed.py", line 12, in sniff' in result.stderr) == bool(verbose)
