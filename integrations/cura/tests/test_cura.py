"""The plug-in in a real Cura without a window: `tox -e cura`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from meshhub import Registry

FOLDER = Path(__file__).parents[1] / "meshhub_cura"
EXAMPLES = Path(__file__).parents[3] / "examples"
PYTHON = "/usr/bin/python3"
"""The Python that Debian's Cura runs in."""
TIMEOUT_S = 240
"""Seconds for Cura to start, and to use the plug-in."""

pytestmark = pytest.mark.skipif(
    not shutil.which("cura") or not shutil.which("Xvfb"),
    reason="Cura and Xvfb are not installed (apt install cura xvfb)",
)


@pytest.fixture(scope="module")
def display() -> Iterator[str]:
    """Start a display, which Cura needs for OpenGL."""
    reader, writer = os.pipe()
    words = ["Xvfb", "-displayfd", str(writer), "-screen", "0", "800x600x24", "-nolisten", "tcp"]
    with subprocess.Popen(words, pass_fds=[writer], stderr=subprocess.DEVNULL) as server:
        os.close(writer)
        with os.fdopen(reader) as stream:
            yield f":{stream.readline().strip()}"
        server.terminate()


@pytest.fixture
def cura(tmp_path: Path, display: str) -> Any:
    """Return a function that starts Cura, opens a file, uses an item of the menu, and returns what happened."""
    plugin = tmp_path / "data" / "cura" / "4.13" / "plugins" / FOLDER.name / FOLDER.name
    shutil.copytree(FOLDER, plugin)
    homes = {"HOME": ".", "XDG_DATA_HOME": "data", "XDG_CONFIG_HOME": "config", "XDG_CACHE_HOME": "cache"}
    environment = {name: str(tmp_path / folder) for name, folder in homes.items()}
    environment |= {"PATH": os.environ["PATH"], "DISPLAY": display, "LANG": "C.UTF-8", "USER": "user"}

    def run(path: Path, *items: str, command: str = f"'{sys.executable}' -m meshhub") -> Any:
        done = subprocess.run(
            [PYTHON, str(Path(__file__).with_name("drive_cura.py")), command, str(path), *items],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            env=environment,
            check=False,
        )
        answers = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
        assert answers, done.stdout[-3000:] + done.stderr[-3000:]
        return json.loads(answers[0].removeprefix("RESULT "))

    return run


def write_boxes(path: Path, *left: float) -> None:
    """Write a file with a box of 10 × 20 × 30 mm at each of these places along X."""
    lines = []
    for number, x in enumerate(left):
        lines.append(f"o box{number}")
        lines += [f"v {x + 10 * i} {20 * j} {30 * k}" for k in (0, 1) for j in (0, 1) for i in (0, 1)]
        for quad in ((1, 3, 4, 2), (5, 6, 8, 7), (1, 2, 6, 5), (3, 7, 8, 4), (1, 5, 7, 3), (2, 4, 8, 6)):
            lines.append("f " + " ".join(str(corner + 8 * number) for corner in quad))
    obj = path.with_suffix(".obj")
    obj.write_text("\n".join(lines), encoding="utf-8")
    Registry(entry_points=False).convert(obj, path)


def test_a_step_file_is_opened_in_its_size(cura: Any, tmp_path: Path) -> None:
    path = tmp_path / "a box.step"
    write_boxes(path, 0)
    (box,) = cura(path)["models"]
    assert (box["name"], box["file"], box["faces"]) == (path.name, str(path), 12)
    assert box["size"] == pytest.approx([10, 20, 30], abs=1e-3)


def test_parts_of_a_step_file_keep_their_places(cura: Any, tmp_path: Path) -> None:
    path = tmp_path / "boxes.step"
    write_boxes(path, 0, 25)
    (group,) = cura(path)["models"]
    assert group["size"] == pytest.approx([35, 20, 30], abs=1e-3)
    assert [child["size"] for child in group["children"]] == [pytest.approx([10, 20, 30], abs=1e-3)] * 2


def test_a_model_is_repaired_and_the_repair_undone(cura: Any) -> None:
    result = cura(EXAMPLES / "bracket.stl", "Repair")
    assert result["menu"][:2] == ["Check", "Repair"]
    (before,), (after,), (undone,) = result["models"], result["after"], result["undone"]
    # without three fragments beside it
    assert (before["size"], after["size"]) == (pytest.approx([62.4, 40, 50]), pytest.approx([60, 40, 50]))
    assert undone == before
    assert "closed 2 holes" in result["messages"][-1]


def test_a_check_shows_what_is_wrong(cura: Any) -> None:
    assert "16 edges are open" in cura(EXAMPLES / "bracket.stl", "Check")["messages"][-1]


def test_errors_are_shown(cura: Any, tmp_path: Path) -> None:
    path = tmp_path / "text.step"
    path.write_text("no model", encoding="utf-8")
    result = cura(path)
    assert not result["models"]
    assert any("[unreadable_file]" in message for message in result["messages"])
    result = cura(EXAMPLES / "bracket.stl", "Check", command="no-such-program")
    assert "install meshhub" in result["messages"][-1]
