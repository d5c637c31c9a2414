"""Errors of steps that run third parties' code: they name the plug-in and its distribution, not the file."""

from __future__ import annotations

import os
import pickle
import re
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("workers have these limits on Linux", allow_module_level=True)

from deadlines import TIMEOUTS_S, time_out
from distributions import install
from meshhub import ConversionTimeout, Isolated, MeshhubError, ModelTooComplex, PluginError, Registry, Source, Target
from meshhub.engine.limits import Limits
from meshhub.model.chain import Position, Request
from test_cli import meshhub_process

PLUGIN = """
import ctypes, errno, os, signal, tempfile, time
from typing import Annotated
from meshhub import Format, Mesh, Operation, Part, Reader, Scene, Stage, hookimpl
from msgspec import Meta, Struct

class Options(Struct, frozen=True, kw_only=True):
    culprit: Annotated[str | None, Meta(title="Misdeed")] = None

def fail(name):
    if name == "sleep":
        time.sleep(1.5)
    if name == "hang":
        time.sleep(600)
    while name == "compute":
        pass
    if name == "crash":
        ctypes.string_at(0)
    if name == "exit":
        os._exit(0)
    if name == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if name == "memory":
        bytearray(1 << 30)
    if name == "take":
        held = bytearray(200 << 20)
        time.sleep(0.5)
        os.abort()
    if name == "disk":
        with tempfile.NamedTemporaryFile() as file:
            file.write(bytes(3 << 20)), file.flush()
            with tempfile.NamedTemporaryFile() as other:
                other.write(bytes(3 << 20)), other.flush()
                time.sleep(600)
    if name == "raise":
        raise ValueError("unit is missing")
    if name == "interrupt":
        raise KeyboardInterrupt("own")
    if name == "signal":
        # a shell starts background commands with the signal ignored
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(9)
    if name == "base":
        raise BaseException("of all")
    if name == "no memory":
        raise MemoryError("no room for 3 widgets")
    if name == "file":
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))

def read(source, options):
    import numpy as np
    fail(source.read().decode())
    points = np.array([[0, 0, 0], [9, 0, 0], [0, 9, 0], [0, 0, 9]], float)
    mesh = Mesh(points, np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], np.int32))
    return Scene(meshes=(mesh,), parts=(Part(0),))

def run(scene, options):
    fail(options.culprit)
    return scene

@hookimpl
def meshhub_readers():
    return [Reader(format=Format(id="culprit", label="Culprit", extensions=(".culprit",), media_types=("model/x-c",)),
                   run="culprit:read")]

@hookimpl
def meshhub_operations():
    return [Operation(id="culprit", label="Misbehave", stage=Stage.PLACE, run="culprit:run", options=Options)]
"""

FAILURE_CODES = {
    "hang": "conversion_timeout",
    "compute": "conversion_timeout",
    "crash": "worker_crashed",
    "exit": "worker_crashed",
    "kill": "worker_crashed",
    "memory": "model_too_complex",
    "take": "model_too_complex",
    "disk": "model_too_complex",
    "file": "model_too_complex",
}

LIMITS = Limits(memory_bytes=400 << 20, file_bytes=4 << 20, cpu_seconds=2)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "installed"
    install(folder, "meshhub-culprit", culprit="culprit")
    (folder / "culprit.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "culprit", raising=False)
    return folder


@pytest.fixture
def registry(installed: Path) -> Iterator[Registry]:
    registry = Registry(engine=Isolated(workers=1, limits=LIMITS))
    yield registry
    registry.close()


@pytest.mark.parametrize("isolated", [False, True])
def test_the_text_of_an_error_has_the_exception_of_the_plugin(installed: Path, isolated: bool) -> None:
    registry = Registry(engine=Isolated(workers=1) if isolated else None)
    with closing(registry), pytest.raises(PluginError) as raised:
        registry.convert(Source.from_bytes(b"raise", "a.culprit"), Target(), target="stl")
    error = raised.value
    assert re.fullmatch(r"ValueError: unit is missing \(culprit\.py:\d+\)", error.details)
    assert str(error) == f"{error.message}: {error.details}"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert "unit is missing" not in error.message


@pytest.mark.parametrize(
    ("name", "details"),
    [
        ("interrupt", r"KeyboardInterrupt: own \(culprit\.py:\d+\)"),
        ("signal", r"KeyboardInterrupt \(culprit\.py:\d+\)"),
        ("base", r"BaseException: of all \(culprit\.py:\d+\)"),
    ],
)
def test_an_exception_that_ends_programs_ends_no_worker(registry: Registry, name: str, details: str) -> None:
    with pytest.raises(PluginError) as raised:
        registry.convert(Source.from_bytes(name.encode(), "a.culprit"), Target(), target="stl")
    assert re.fullmatch(details, raised.value.details)
    assert "report it to the maintainer of 'culprit'" in raised.value.message


@pytest.mark.parametrize("isolated", [False, True])
def test_a_lack_of_memory_names_the_exception_of_the_plugin(installed: Path, isolated: bool) -> None:
    registry = Registry(engine=Isolated(workers=1) if isolated else None)
    with closing(registry), pytest.raises(ModelTooComplex) as raised:
        registry.convert(Source.from_bytes(b"no memory", "a.culprit"), Target(), target="stl")
    (details,) = raised.value.__notes__
    assert re.fullmatch(r"MemoryError: no room for 3 widgets \(culprit\.py:\d+\)", details)
    assert "widgets" not in raised.value.message


@pytest.mark.parametrize("result", ["None", "[1]", "'scene'"])
def test_a_result_that_is_no_scene_names_the_maintainer(installed: Path, result: str) -> None:
    code = PLUGIN.replace("    fail(source.read().decode())\n", f"    return {result}\n")
    (installed / "culprit.py").write_text(code)
    with pytest.raises(PluginError, match=r"instead of a scene; report it to the maintainer of 'culprit'"):
        Registry().convert(Source.from_bytes(b"x", "a.culprit"), Target(), target="stl")


def test_verbose_shows_the_traceback_of_the_plugin_alone(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(installed), *sys.path]))
    (tmp_path / "a.culprit").write_text("raise")
    result = meshhub_process("-v", "convert", "a.culprit", "a.stl", cwd=tmp_path)
    assert result.returncode == 4
    message = result.stderr.decode()
    frames = re.findall(r'File "([^"]+)"', message)
    assert {Path(name).name for name in frames} == {"culprit.py"}
    assert message.count("ValueError: unit is missing (culprit.py:") == 1


@pytest.mark.once
@pytest.mark.parametrize("step", ["reader", "operation"])
@pytest.mark.parametrize("name", FAILURE_CODES)
def test_the_file_is_not_blamed_for_a_plugin(registry: Registry, step: str, name: str) -> None:
    source = Source.from_bytes(name.encode() if step == "reader" else b"good", "a.culprit")
    options = {"culprit": name} if step == "operation" else {}

    def convert(timeout_s: int) -> str:
        with pytest.raises(MeshhubError) as error:
            registry.convert(source, Target(), target="stl", timeout=timeout_s, **options)
        assert error.value.error_code == FAILURE_CODES[name]
        return error.value.message

    message = time_out(convert) if name == "hang" else convert(TIMEOUTS_S[-1])
    expected = {"reader": "the reader of Culprit", "operation": "the operation Misbehave"}[step]
    assert f"{expected} (plug-in 'culprit', meshhub-culprit 1.2)" in message
    assert "report it to the maintainer of 'culprit'" in message
    for word in ("reduce", "optimize_target_faces", "damaged"):
        assert word not in message


def test_a_built_in_step_after_a_plugin_names_both_remedies(installed: Path) -> None:
    chain = Registry().resolve(Request(target="stl"), Source.from_bytes(b"good", "a.culprit"))
    late = Position(chain, 1)
    assert late.text == " in the writer of STL (plug-in 'stl')"
    assert late.reduction == (
        "reduce the model with {optimize_target_faces} "
        "or report it to the maintainer of 'culprit' (meshhub-culprit 1.2)"
    )


def test_in_process_a_plugin_that_is_late_is_named(installed: Path) -> None:
    registry = Registry()
    registry.convert(Source.from_bytes(b"good", "a.culprit"), Target(), target="stl")
    with pytest.raises(ConversionTimeout, match=r"meshhub-culprit 1\.2.*; report it to the maintainer") as error:
        registry.convert(Source.from_bytes(b"sleep", "a.culprit"), Target(), target="stl", timeout=1)
    assert "reduce" not in error.value.message


def test_the_command_line_names_the_plugin_that_hangs(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(installed), *sys.path]))
    (tmp_path / "a.culprit").write_text("hang")

    def convert(timeout_s: int) -> str:
        result = meshhub_process("convert", "a.culprit", "a.stl", "--timeout", timeout_s, cwd=tmp_path)
        assert result.returncode == 5
        return result.stderr.decode()

    message = time_out(convert)
    assert "meshhub-culprit 1.2" in message
    assert "--optimize-target-faces" not in message
