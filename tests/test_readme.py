"""The README's examples, run as they stand."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def blocks(document: str, language: str) -> list[str]:
    text = (ROOT / document).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


def commands(document: str) -> list[str]:
    return [line[2:] for block in blocks(document, "console") for line in block.splitlines() if line.startswith("$ ")]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    return tmp_path


@pytest.mark.parametrize("document", ["README.md", "docs/embedding.md"])
def test_python_examples(place: Path, document: str) -> None:
    code = "\n".join(blocks(document, "python"))
    assert "Registry" in code
    guarded = "if __name__ == '__main__':\n" + textwrap.indent(code, "    ")
    (place / "example.py").write_text(guarded, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "example.py"], cwd=place, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr


def test_command_line_examples(place: Path) -> None:
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    tried = [line for line in commands("README.md") if line.startswith("meshhub ") and "serve" not in line]
    assert len(tried) >= 5
    for line in tried:
        done = subprocess.run(
            line.replace("meshhub ", f"{sys.executable} -m meshhub ", 1),
            shell=True,
            cwd=place,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env={**os.environ, "PATH": programs},
        )
        assert done.returncode == 0, f"{line}: {done.stderr}"


def test_the_first_command_does_the_main_job(place: Path) -> None:
    first = commands("README.md")[0].split(" && ")[-1]
    line = first.replace(".venv/bin/meshhub", f"{sys.executable} -m meshhub")
    done = subprocess.run(line, shell=True, cwd=place, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert (place / "bracket.3mf").stat().st_size > 1000


def test_continuous_integration_calls_the_second_command() -> None:
    second = commands("README.md")[1]
    assert second.endswith("tox")
    assert second in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_reference_tells_what_is_registered() -> None:
    code = "import make_reference as m; print(m.page() == m.PAGE.read_text('utf-8'))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT / "docs", capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True", "run python docs/make_reference.py"


def test_no_link_leads_nowhere() -> None:
    for document in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for link in re.findall(r"\]\(([^)#]+)", document.read_text(encoding="utf-8")):
            assert "://" in link or (document.parent / link).exists(), f"{document.name} links to {link}"
