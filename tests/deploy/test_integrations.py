"""Files for other programs, run as these run them: the action of GitHub, the thumbnailer of desktops."""

from __future__ import annotations

import configparser
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from PIL import Image

ROOT = Path(__file__).parents[2]
PROGRAMS = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a repository with a damaged and a valid model."""
    (tmp_path / "parts" / "deep").mkdir(parents=True)
    shutil.copy(ROOT / "examples" / "bracket.stl", tmp_path / "parts")
    shutil.copy(ROOT / "examples" / "bracket-clean.stl", tmp_path / "parts" / "deep")
    return tmp_path


def run_action(folder: Path, **inputs: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run the script of the action as a runner does; return the process, and the paths of the output `files`."""
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    step = next(step for step in action["runs"]["steps"] if step.get("id") == "convert")
    given = {name: declared.get("default", "") for name, declared in action["inputs"].items()}
    given |= {name.replace("_", "-"): value for name, value in inputs.items()}
    variables = {name: given[value.split(".")[1].split(" ")[0]] for name, value in step["env"].items()}
    output = folder / "output"
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder,
        env={**os.environ, "PATH": PROGRAMS, "GITHUB_OUTPUT": str(output), **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = output.read_text().splitlines() if output.exists() else []
    return done, lines[1:-1]


def test_the_action_converts_all_models(checkout: Path) -> None:
    done, files = run_action(checkout, files="parts/**/*.stl", to="obj")
    assert done.returncode == 0, done.stderr
    assert files == ["converted/bracket-clean.obj", "converted/bracket.obj"]
    assert all((checkout / name).stat().st_size for name in files)


def test_the_action_checks_models(checkout: Path) -> None:
    done, files = run_action(checkout, files="parts/*.stl", fail_on="error")
    assert done.returncode != 0 and not files
    assert "open_edges" in done.stdout


def test_the_action_says_that_nothing_matches(checkout: Path) -> None:
    done, _ = run_action(checkout, files="models/*.stl")
    assert done.returncode == 1 and "::error::no file matches models/*.stl" in done.stdout


def test_inputs_of_the_action_are_not_run(checkout: Path) -> None:
    run_action(checkout, files="parts/*.stl", options="--repair; touch run", to="$(touch run)")
    assert not (checkout / "run").exists()


def test_the_thumbnailer_draws_a_square_picture(checkout: Path) -> None:
    entry = configparser.ConfigParser(interpolation=None)
    entry.read(ROOT / "integrations" / "thumbnailer" / "meshhub.thumbnailer")
    section = entry["Thumbnailer Entry"]
    assert shutil.which(section["TryExec"], path=PROGRAMS)
    picture = checkout / "thumbnail.png"
    # Thunar creates the file before it calls the thumbnailer
    picture.touch()
    values = {"%i": str(checkout / "parts" / "bracket.stl"), "%o": str(picture), "%s": "128"}
    words = shlex.split(section["Exec"])
    for mark, value in values.items():
        words = [word.replace(mark, value) for word in words]
    subprocess.run(words, env={**os.environ, "PATH": PROGRAMS}, check=True)
    with Image.open(picture) as drawn:
        assert drawn.size == (128, 128)
