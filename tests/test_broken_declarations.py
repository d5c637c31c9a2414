"""Plug-ins that declare anything: each mistake is a fault of its own plug-in, and everything else works."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import meshhub
from broken_declarations import CASES, PACKAGE, BrokenPlugin, Lenient, good_plan, install_all, write_package
from distributions import install
from meshhub import LOCAL, Registry, Source
from meshhub.model.chain import Request
from meshhub.pipeline.hooks import Hooks
from meshhub.pipeline.loading import Fault
from meshhub.supported import supported
from test_cli import meshhub_cli, meshhub_process

pytestmark = pytest.mark.once

OBJ = b"v 0 0 0\nv 9 0 0\nv 0 9 0\nv 0 0 9\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder for distributions with the package whose import raises."""
    write_package(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop(PACKAGE, None)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install every broken plug-in, and write a model."""
    folder = tmp_path / "installed"
    folder.mkdir()
    install_all(folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    (tmp_path / "a.obj").write_bytes(OBJ)
    yield tmp_path
    sys.modules.pop(PACKAGE, None)


def check_fault(name: str, fault: Fault) -> None:
    assert fault.plugin == name
    assert CASES[name].expected in fault.message
    assert len(fault.message) < 500
    assert fault.message.isprintable()


def check_works(registry: Registry) -> None:
    msgspec.json.encode(supported(registry, LOCAL))
    assert registry.convert_bytes(OBJ, "ply").startswith(b"ply")


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_is_a_fault_that_names_plugin_and_field(name: str, package: Path) -> None:
    registry = Registry([BrokenPlugin(name)], entry_points=False, builtins=False)
    (fault,) = registry.faults
    check_fault(name, fault)
    assert good_plan(name) in registry.plans
    assert "bad" not in registry.declarations.formats
    msgspec.json.encode(supported(registry, LOCAL))


class SeveralMistakes:
    @meshhub.hookimpl
    def meshhub_readers(self) -> list[object]:
        wrong = meshhub.Format(id="Several", label=3, extensions=("several",))  # type: ignore[arg-type]
        return [meshhub.Reader(format=wrong, run="several.read", score=500)]


def test_a_fault_lists_all_invalid_fields_of_a_declaration() -> None:
    (fault,) = Registry([SeveralMistakes()], entry_points=False, builtins=False).faults
    for field in ("format.id", "format.label", "format.extensions[0]", "run", "score"):
        assert re.search(rf"(: |; ){re.escape(field)}( must be |: Expected )", fault.message)
    assert fault.message.count(", got ") == 5


def test_mistakes_of_many_plugins_are_blamed_on_each_of_them(package: Path) -> None:
    registry = Registry([Lenient(), *map(BrokenPlugin, CASES)], entry_points=False)
    faults = {fault.plugin: fault for fault in registry.faults}
    assert len(faults) == len(registry.faults)
    assert faults.keys() == CASES.keys()
    for name, fault in faults.items():
        check_fault(name, fault)
    assert {good_plan(name) for name in CASES} <= registry.plans.keys()
    assert registry.formats["lenient"].extensions == (".lenient",)
    check_works(registry)


def run(*arguments: str, status: int = 0) -> tuple[str, str]:
    """Run a command in this process; return its output and its messages on one line."""
    done = meshhub_cli(*arguments)
    output, messages = done.stdout.decode(), " ".join(done.stderr.decode().split())
    assert done.returncode == status, messages
    assert "defect of meshhub" not in messages
    return output, messages


def test_commands_work_beside_broken_plugins(installed: Path) -> None:
    source, target = str(installed / "a.obj"), installed / "a.ply"
    _, messages = run("convert", source, str(target))
    assert target.read_bytes().startswith(b"ply")
    for name in CASES:
        assert f"fault: {name} (meshhub-broken 1.2): " in messages
    assert json.loads(run("inspect", source, "--json")[0])["model"]["faces"] == 4
    assert "3mf" in run("formats")[0]
    assert "broken" not in run("formats")[0]
    listed = json.loads(run("plugins", "--json", status=1)[0])
    assert len(listed["faults"]) == len(CASES)
    for fault in listed["faults"]:
        check_fault(fault["plugin"], msgspec.convert(fault, Fault))


def test_the_program_shows_the_traceback_of_the_plugin_alone(installed: Path) -> None:
    done = meshhub_process("-v", "convert", installed / "a.obj", "-", "--to", "ply")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"ply")
    text = done.stderr.decode()
    tracebacks = [part.partition("\n\n")[0] for part in text.split("Traceback (most recent call last):\n")[1:]]
    assert tracebacks
    package = f"{Path(meshhub.__file__).parent}{os.sep}"
    for traceback in tracebacks:
        assert package not in traceback.partition("Error")[0]
    assert "LookupError: no more readers" in text


def test_hooks_work_beside_broken_plugins(installed: Path) -> None:
    install(installed / "installed", "meshhub-hooked", hooked="hostile_plugin:HostileHooks")
    with Registry(hooks=Hooks(hook_s=20)) as registry:
        chain = registry.resolve(Request(target="stl"), Source.from_bytes(b"hooked", "nameless"))
        assert chain.source_format == "hooked"
        assert {fault.plugin for fault in registry.faults} == CASES.keys()


def test_a_malformed_entry_point_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "meshhub-malformed", malformed="my module:plug-in")
    monkeypatch.syspath_prepend(str(tmp_path))
    (fault,) = Registry().faults
    assert fault.plugin == "malformed"
    assert fault.message.endswith("'package.module' or 'package.module:object', got 'my module:plug-in'")


PRINTING = """
import sys
from meshhub import hookimpl
print("imported")
@hookimpl
def meshhub_readers():
    print("declared")
    return []
"""


def test_a_plugin_that_prints_is_named_and_spoils_no_output(installed: Path) -> None:
    folder = installed / "printing"
    install(folder, "meshhub-printing", printing="printing_plugin")
    (folder / "printing_plugin.py").write_text(PRINTING)
    environment = {"PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", environment["PYTHONPATH"])
        done = meshhub_process("convert", installed / "a.obj", "-", "--to", "ply")
        listed = json.loads(meshhub_process("plugins", "--json").stdout)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"ply")
    messages = [fault["message"] for fault in listed["faults"] if fault["plugin"] == "printing"]
    assert messages == [
        f"prints {word!r} on standard output, which may carry a model; log it instead"
        for word in ("imported", "declared")
    ]


@pytest.mark.parametrize(
    "code",
    [
        "import os; os.write(1, b'raw')",
        "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(\"raw\")'])",
    ],
)
def test_a_plugin_that_prints_through_a_descriptor_is_named(tmp_path: Path, code: str) -> None:
    for name, first_line in (("quiet", ""), ("loud", code)):
        install(tmp_path, f"meshhub-{name}", **{name: f"{name}_plugin"})
        (tmp_path / f"{name}_plugin.py").write_text(f"{first_line}\n")
    (tmp_path / "a.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
        done = meshhub_process("convert", "a.obj", "-", "--to", "ply", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"ply")
    assert b"fault: loud (meshhub-loud 1.2): prints 'raw" in done.stderr
    assert b"fault: quiet" not in done.stderr
