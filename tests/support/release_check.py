"""Build every distribution, check the files, and try them in fresh environments: `tox -e build`.

Each distribution is installed twice: with the lowest versions that its requirements allow, and with the highest. The
installed program then converts a model, finds the plug-ins and checks itself. The base is also tried alone, in an
environment that has nothing else, as `uvx meshhub` runs it; `release_check.py --alone FOLDER` does only this with a
wheel that is already built.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent

PROJECTS = [ROOT, *sorted(path.parent for path in (ROOT / "plugins").glob("*/pyproject.toml"))]
"""Folders of the distributions; meshhub first."""

RESOLUTIONS = ("lowest-direct", "highest")
"""How uv chooses versions: those at the lower bounds of the requirements, or the newest."""


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Run a command; end with its output if it fails."""
    print("$", *command, flush=True)
    # a fresh environment must not see the modules of this one
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=cwd, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        print(done.stdout)
        sys.exit(f"status {done.returncode}: {' '.join(map(str, command))}")
    return done.stdout


def read_project(folder: Path) -> dict[str, Any]:
    """Return the table `project` of a distribution."""
    project: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project


def build(folder: Path) -> list[Path]:
    """Build and check the distributions; return the wheels, that of meshhub first."""
    wheels = []
    for project in PROJECTS:
        run("uv", "build", "--quiet", "--out-dir", folder, project)
        name = read_project(project)["name"]
        wheels += folder.glob(f"{name.replace('-', '_')}-[0-9]*.whl")
    run(sys.executable, "-m", "twine", "check", "--strict", *folder.glob("*.whl"), *folder.glob("*.tar.gz"))
    run("check-wheel-contents", *wheels)
    return wheels


def try_wheels(wheels: list[Path], resolution: str, folder: Path) -> None:
    """Install wheels in a fresh environment, and convert a model there."""
    run("uv", "venv", "--quiet", "--python", sys.executable, folder / "venv")
    programs = folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
    # uv lowers only what the command line names
    requirements = [
        requirement
        for project in PROJECTS
        for requirement in read_project(project).get("dependencies", ())
        if not requirement.startswith("meshhub")
    ]
    python, meshhub = programs / "python", programs / "meshhub"
    run("uv", "pip", "install", "--quiet", "--python", python, "--resolution", resolution, *wheels, *requirements)
    print(run("uv", "pip", "list", "--python", python))
    assert run(meshhub, "--version").split() == ["meshhub", read_project(ROOT)["version"]]
    result = folder / "bracket.3mf"
    flags = ["--repair", "--optimize-target-faces", "1k", "--flatten-base-mm", "1", "--place-on-bed"]
    run(meshhub, "convert", ROOT / "examples" / "bracket.stl", result, *flags, cwd=folder)
    inspection = json.loads(run(meshhub, "inspect", result, "--json", cwd=folder))
    assert inspection["model"]["watertight"]
    origins = {plugin["origin"] for plugin in json.loads(run(meshhub, "plugins", "--json"))["plugins"]}
    for project in map(read_project, PROJECTS):
        if "meshhub" in project.get("entry-points", ()):
            assert f"{project['name']} {project['version']}" in origins
        for program in project.get("scripts", ()):
            run(programs / program, "--help")
    assert json.loads(run(meshhub, "doctor", "--json"))["can_convert"]
    # the templates are in the wheel
    run(meshhub, "plugin", "new", "acme", "--reader", "tri", "--policy", cwd=folder)
    assert (folder / "venv" / "share" / "man" / "man1" / "meshhub.1").is_file()


def try_alone(folder: Path) -> None:
    """Run the wheel of meshhub in a folder as `uvx` does, with this Python: no extra, no plug-in, no cache of it."""
    (wheel,) = folder.glob("meshhub-[0-9]*.whl")
    command = ("uv", "tool", "run", "--isolated", "--python", sys.executable, "--from", wheel, "meshhub")
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        model, result = ROOT / "examples" / "bracket.stl", place / "bracket.3mf"
        assert run(*command, "--version", cwd=place).split() == ["meshhub", wheel.name.split("-")[1]]
        run(*command, model, result, "--repair", "--target-height-mm", "40", cwd=place)
        assert json.loads(run(*command, "inspect", result, "--json", cwd=place))["model"]["watertight"]
        run(*command, "check", result, "--fail-on", "never", cwd=place)
        run(*command, "render", result, place / "bracket.png", "--size", "320x240", cwd=place)
        assert json.loads(run(*command, "doctor", "--json", cwd=place))["can_convert"]


def main() -> None:
    """Build into the folder that the command names (default: a temporary one), and check the result."""
    if sys.argv[1:2] == ["--alone"]:
        try_alone(Path(sys.argv[2]).resolve())
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(temporary) / "dist"
        wheels = build(folder.resolve())
        try_alone(folder.resolve())
        for resolution in RESOLUTIONS:
            place = Path(temporary) / resolution
            place.mkdir()
            try_wheels(wheels, resolution, place)


if __name__ == "__main__":
    main()
