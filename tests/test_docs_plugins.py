"""The files in the tutorial and the guide make a plug-in that is found, converts, and passes its own tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

DOCS = Path(__file__).parent.parent / "docs"
TUTORIAL = (DOCS / "tutorial" / "first-plugin.md").read_text(encoding="utf-8")
GUIDE = (DOCS / "how-to" / "write-a-plugin.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tutorial's files, with the metadata that an installer would make of its pyproject.toml."""
    root = tmp_path_factory.mktemp("tutorial")
    for path, code in re.findall(r"^```\w+\n# (\S+\.\w+)\n(.*?)^```$", TUTORIAL + GUIDE, re.M | re.S):
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(code, encoding="utf-8")
    project_table = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    metadata = root / "src" / f"{project_table['name'].replace('-', '_')}-{project_table['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.3\nName: {project_table['name']}\nVersion: {project_table['version']}\n"
    )
    points = [f"{name} = {value}" for name, value in project_table["entry-points"]["meshhub"].items()]
    (metadata / "entry_points.txt").write_text("\n".join(["[meshhub]", *points, ""]))
    return root


def environment(project: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(project / "src"), os.environ.get("PYTHONPATH", "")])}


def run(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=environment(project),
    )


def test_every_block_of_code_is_a_file_of_it() -> None:
    blocks = re.findall(r"^```(?:python|toml)\n(.*?)^```$", TUTORIAL + GUIDE, re.M | re.S)
    assert len(blocks) >= 9
    assert all(re.match(r"# \S+\.\w+\n", block) for block in blocks)


@pytest.mark.large
def test_its_own_tests_pass(project: Path) -> None:
    result = run(project, "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "tests")
    assert result.returncode == 0, result.stdout
    passed = re.search(r"(\d+) passed", result.stdout)
    assert passed is not None
    assert int(passed[1]) > 60


def test_its_commands_convert(project: Path) -> None:
    lines = re.findall(r"^\$ ((?:echo|meshhub) .*)$", TUTORIAL, re.M)
    assert len(lines) == 3
    for line in lines:
        subprocess.run(
            line.replace("meshhub ", f"{sys.executable} -m meshhub ", 1),
            shell=True,
            cwd=project,
            check=True,
            env=environment(project),
        )
    assert (project / "one.3mf").stat().st_size > 0


def test_it_is_found_and_converts(project: Path) -> None:
    assert "meshhub-tri 0.1.0" in run(project, "meshhub", "plugins").stdout
    (project / "one.tri").write_text("0 0 0 10 0 0 0 10 0\n\n0 0 0 0 10 0 0 0 10\n")
    result = run(project, "meshhub", "convert", "one.tri", "one.stl")
    assert result.returncode == 0, result.stderr
    assert (project / "one.stl").stat().st_size == 84 + 2 * 50
    assert "empty lines" in result.stdout + result.stderr
    result = run(project, "meshhub", "convert", "one.stl", "two.tri", "--tri-decimals", "1")
    assert result.returncode == 0, result.stderr
    assert (project / "two.tri").read_text().splitlines()[0] == "0 0 0 10 0 0 0 10 0"
    (project / "bad.tri").write_text("0 0 0 10 0 0 0 10\n")
    result = run(project, "meshhub", "convert", "bad.tri", "bad.stl")
    assert result.returncode != 0
    assert "line 1 does not hold nine numbers" in result.stderr
