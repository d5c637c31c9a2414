"""The commands that the README shows for the service, run as they stand but for the port."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from http_serving import Running
from meshhub.registry import Registry

ROOT = Path(__file__).parent.parent.parent
COMMANDS = re.findall(r"^\$ (curl .*)$", (ROOT / "README.md").read_text(encoding="utf-8"), re.M)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    return tmp_path


def test_the_readme_shows_the_endpoints() -> None:
    shown = [command.rpartition("/")[2] for command in COMMANDS]
    assert shown == ["convert", "convert-many", "inspect", "supported"]


def test_the_commands_of_the_readme(service: Running, place: Path) -> None:
    printed: dict[str, bytes] = {}
    for command in COMMANDS:
        assert "http://127.0.0.1:8000/" in command
        here = command.replace("http://127.0.0.1:8000/", f"{service.url}/")
        done = subprocess.run(here, shell=True, cwd=place, capture_output=True, timeout=120, check=False)
        assert done.returncode == 0, f"{command}: {done.stderr.decode()}"
        printed[command.rpartition("/")[2]] = done.stdout

    looked_at = Registry().inspect(place / "bracket.3mf")
    assert looked_at.source.format == "3mf"
    assert looked_at.model.watertight
    with zipfile.ZipFile(place / "parts.zip") as archive:
        assert sorted(archive.namelist()) == ["bracket-clean.glb", "bracket.glb"]
        assert archive.read("bracket.glb").startswith(b"glTF")
    assert json.loads(printed["inspect"])["source"]["format"] == "stl"
    assert "3mf" in json.loads(printed["supported"])["output_formats"]
