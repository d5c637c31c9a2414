"""The folders in `integrations/`: each with the program that it is for, or with what that program would run."""

from __future__ import annotations

import configparser
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from meshhub import Registry

pytestmark = pytest.mark.once

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "integrations"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return variables with a `meshhub` that is the one of this test, and a folder with the example."""
    programs = tmp_path / "bin"
    programs.mkdir()
    program = programs / "meshhub"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m meshhub "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    (tmp_path / "my parts").mkdir()
    shutil.copy(ROOT / "examples" / "bracket.stl", tmp_path / "my parts" / "bracket.stl")
    return {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}


def run(command: list[str], environment: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=100, check=False
    )


def test_the_thumbnailer_draws_a_square(tmp_path: Path, environment: dict[str, str]) -> None:
    entry = configparser.ConfigParser(interpolation=None)
    entry.read(FOLDER / "thumbnailer" / "meshhub.thumbnailer", encoding="utf-8")
    section = entry["Thumbnailer Entry"]
    command = shlex.split(section["exec"])
    assert command[0] == section["tryexec"] == "meshhub"
    values = {"%i": str(tmp_path / "my parts" / "bracket.stl"), "%o": str(tmp_path / "a.png"), "%s": "128"}
    for name, value in values.items():
        command = [word.replace(name, value) for word in command]
    (tmp_path / "a.png").write_bytes(b"an old one")
    done = run(command, environment, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with pytest.importorskip("PIL.Image").open(tmp_path / "a.png") as image:
        assert (image.size, image.mode) == ((128, 128), "RGBA")
    known = {kind for each in Registry(entry_points=False).formats.values() for kind in each.media_types}
    assert len(known & set(section["mimetype"].split(";"))) >= 5


def test_the_slicer_gets_repaired_models(tmp_path: Path, environment: dict[str, str]) -> None:
    script = str(FOLDER / "slicers" / "meshhub-slice")
    environment["MESHHUB_SLICE_OPTIONS"] = "--target-height-mm 40"
    done = run([script, "echo", "--load", "a b.ini", "my parts/bracket.stl", "none.stl"], environment, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "--load a b.ini my parts/bracket-repaired.3mf none.stl\n"
    model = Registry().inspect(tmp_path / "my parts" / "bracket-repaired.3mf").model
    assert model.watertight
    assert model.size_mm[2] == pytest.approx(40)
    (tmp_path / "text.stl").write_text("no model", encoding="utf-8")
    assert run([script, "echo", "text.stl"], environment, tmp_path).returncode == 3
    assert run([script, "echo"], environment, tmp_path).returncode == 2


def test_prusaslicer_finds_the_repaired_model_manifold(tmp_path: Path, environment: dict[str, str]) -> None:
    if shutil.which("prusa-slicer") is None:
        pytest.skip("PrusaSlicer is not installed")
    assert "manifold = no" in run(["prusa-slicer", "--info", "my parts/bracket.stl"], environment, tmp_path).stdout
    script = str(FOLDER / "slicers" / "meshhub-slice")
    done = run([script, "prusa-slicer", "--info", "my parts/bracket.stl"], environment, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "manifold = yes" in done.stdout


@pytest.mark.large
def test_the_action_converts_and_checks(tmp_path: Path, environment: dict[str, str]) -> None:
    yaml = pytest.importorskip("yaml")
    action = yaml.safe_load((FOLDER / "github-action" / "action.yml").read_text(encoding="utf-8"))
    inputs = {name: str(each.get("default", "")) for name, each in action["inputs"].items()}
    step = action["runs"]["steps"][-1]
    assert "${{" not in step["run"]
    (tmp_path / "my parts").rename(tmp_path / "parts")
    for values, status in (
        ({"models": "parts/", "to": "3mf", "options": "--repair", "check": "error"}, 0),
        ({"models": "parts/*.stl", "to": "ply", "check": "error", "output": "out"}, 1),
        ({"models": "parts/", "to": "ply; touch injected", "output": "$(touch injected)"}, 2),
    ):
        variables = {}
        for name, value in step["env"].items():
            key = value.removeprefix("${{ inputs.").removesuffix(" }}")
            variables[name] = {**inputs, **values}[key]
        done = run(["bash", "-e", "-c", step["run"]], environment | variables, tmp_path)
        assert done.returncode == status, done.stdout + done.stderr
    assert Registry().inspect(tmp_path / "converted" / "bracket.3mf").model.watertight
    assert not (tmp_path / "injected").exists()


def test_the_action_fits_its_schema() -> None:
    pytest.importorskip("check_jsonschema")
    path = FOLDER / "github-action" / "action.yml"
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-actions", str(path)]
    assert subprocess.run(command, check=False).returncode == 0


@pytest.mark.parametrize("file", ["blender/meshhub_blender/__init__.py", "slicers/meshhub-slice"])
def test_integrations_list_each_format_that_is_read(file: str) -> None:
    text = (FOLDER / file).read_text(encoding="utf-8")
    readers = Registry(entry_points=False).declarations.readers
    extensions = {extension for reader in readers for extension in reader.capability.format.extensions}
    assert sorted(extension for extension in extensions if f"*{extension}" not in text) == []
