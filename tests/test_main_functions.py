"""Plug-ins that a program defines itself, with functions of `__main__`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

PROGRAM = """
from typing import Annotated

from msgspec import Meta, Struct

from meshhub.engine import process_start
from meshhub import EngineError, InProcess, Isolated, Mesh, Operation, Part, Registry, Scene, Stage, did, hookimpl


class LiftOptions(Struct, frozen=True, kw_only=True):
    lift_mm: Annotated[float, Meta(title="Lift")] | None = None


def run(scene, options):
    did(lifted_mm=options.lift_mm)
    return scene


class Lift:
    @hookimpl
    def meshhub_operations(self):
        return [Operation(id="lift", label="Lift", stage=Stage.PLACE, options=LiftOptions, run="__main__:run")]


# the libraries of the built-ins, which this program does not use, take two seconds of processor time
process_start.PRELOAD = {}
if __name__ == "__main__":
    scene = Scene((Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 1]], [[0, 1, 2]]),), (Part(0),))
    with Registry([Lift()], entry_points=False, engine=ENGINE) as registry:
        try:
            print(len(registry.faults), registry.write(scene, "a.stl", options={"lift_mm": 3}).steps[1].figures)
        except EngineError as error:
            print(error.error_code, error.message)
"""

RESULT = "0 {'lifted_mm': 3.0}\n"
ENGINES = ["InProcess()", "Isolated(workers=1)", "Isolated(workers=1, method='spawn')"]
if sys.platform != "win32":
    ENGINES.append("Isolated(workers=1, method='fork')")


def run(tmp_path: Path, *arguments: str, text: str | None = None) -> str:
    command = [sys.executable, *arguments]
    done = subprocess.run(command, input=text, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("engine", ENGINES)
def test_a_script_uses_its_own_functions(engine: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(PROGRAM.replace("ENGINE", engine))
    assert run(tmp_path, "script.py") == RESULT


def test_a_module_that_is_run_uses_its_own_functions(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(PROGRAM.replace("ENGINE", ENGINES[1]))
    assert run(tmp_path, "-m", "script") == RESULT


@pytest.mark.parametrize("engine", ENGINES)
def test_a_program_without_a_file_does_where_it_can(engine: str, tmp_path: Path) -> None:
    """A notebook has no file that another process could import, as a program from standard input."""
    shown = run(tmp_path, "-", text=PROGRAM.replace("ENGINE", engine))
    if "Process" in engine or ("'fork'" in engine and hasattr(os, "fork")):
        assert shown == RESULT
    else:
        assert "cannot import functions of a notebook" in shown
        assert "put them into a module, or use Isolated(method=" in shown
