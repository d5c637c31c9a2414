"""The commands of the guides "From a folder to the printer" and "A small farm", with stand-ins for the printers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from printer_services import KEY, Printer, serving

pytest.importorskip("meshhub_slicer")
pytestmark = [
    pytest.mark.large,
    pytest.mark.skipif(shutil.which("prusa-slicer") is None, reason="PrusaSlicer is not installed"),
]

ROOT = Path(__file__).parents[3]
GUIDES = ROOT / "docs" / "how-to"


@pytest.fixture
def voron(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Printer]:
    with serving(Printer("moonraker", "standby")) as running:
        file = tmp_path / "printers.toml"
        names = ("voron", "left", "middle", "right")
        rows = (f'[{name}]\nkind = "moonraker"\nurl = "{running.url}"\nkey = "{KEY}"\n' for name in names)
        file.write_text("".join(rows))
        file.chmod(0o600)
        monkeypatch.setenv("MESHHUB_PRINTER_HOSTS", str(file))
        monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        shutil.copy(ROOT / "examples" / "bracket.stl", tmp_path)
        yield running


def list_blocks(guide: str) -> list[str]:
    text = (GUIDES / guide).read_text(encoding="utf-8")
    return re.findall(r"```(?:console|text)\n(.*?)```", text, re.DOTALL)


def run(script: str, folder: Path) -> None:
    done = subprocess.run(["sh", "-ec", script], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def commands_of(block: str) -> str:
    return "\n".join(line[2:] for line in block.splitlines() if line.startswith("$ "))


def test_one_command_to_the_printer(voron: Printer, tmp_path: Path) -> None:
    (block,) = [block for block in list_blocks("from-a-folder-to-the-printer.md") if "bracket.gcode?print" in block]
    run(commands_of(block), tmp_path)
    assert voron.starts == ["bracket.gcode"]


def test_a_folder_to_the_printer(voron: Printer, tmp_path: Path) -> None:
    blocks = list_blocks("from-a-folder-to-the-printer.md")
    for name in ("incoming", "ready", "sent"):
        (tmp_path / name).mkdir()
    shutil.copy(tmp_path / "bracket.stl", tmp_path / "incoming")
    (watch,) = [block for block in blocks if "--watch" in block]
    # the same options, once instead of until a signal
    run(commands_of(watch).replace("--watch incoming/", "incoming/"), tmp_path)
    (loop,) = [block for block in blocks if "while sleep" in block]
    run(loop.replace("while sleep 10; do", "").rstrip().removesuffix("done"), tmp_path)
    assert list(voron.files) == ["bracket.gcode"]
    assert voron.starts == []
    assert [file.name for file in (tmp_path / "sent").iterdir()] == ["bracket.gcode"]
    assert not list((tmp_path / "ready").iterdir())


def test_a_farm_sends_to_a_printer_that_is_idle(voron: Printer, tmp_path: Path) -> None:
    (script,) = [block for block in list_blocks("small-farm.md") if "meshhub printers --json" in block]
    (tmp_path / "result.gcode").write_text("G28\nG1 X1 E1\n")
    run(script.replace("$1", "result.gcode"), tmp_path)
    assert voron.starts == ["result.gcode"]
    voron.state = "printing"
    done = subprocess.run(
        ["sh", "-ec", script.replace("$1", "result.gcode")], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 1
    assert voron.starts == ["result.gcode"]
