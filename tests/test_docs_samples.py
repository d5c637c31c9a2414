"""Every block of code in the documentation runs, or the line above it says why not."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
import textwrap
import tomllib
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from meshhub import Registry
from meshhub.model.scene import Image, Material, Part, Scene
from models import brick
from test_cli import meshhub_cli

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "plugins").glob("*/*.md")]
)

NOT_RUN = re.compile(r"<!-- not run: \S.* -->")
"""The line above a block that no test runs; it states the reason."""

PLAIN = {"text", "nginx", "ini", "html", "js", "py", "ts", "yaml"}
"""Languages of blocks that are not run here. Other tests check nginx (test_deploy.py) and html (tests/page).
The js is code of a page of another origin, py are signatures, and yaml is for other programs."""

FILES = {"docs/tutorial/first-plugin.md", "docs/how-to/write-a-plugin.md", "docs/how-to/frameworks.md"}
"""Pages whose blocks are the files that tests/test_docs_plugins.py and tests/guides write and run."""

LARGE = {"docs/how-to/check-a-model.md", "docs/how-to/convert-many-files.md"}
"""Pages whose blocks take more than ten seconds."""

SERVICE = "http://127.0.0.1:8000/"
"""Address of the service in commands; tests/http/test_http_docs.py runs pages that use it."""


@dataclass
class Block:
    """A fenced block: its language, its text, and the line above it."""

    language: str
    text: str
    above: str

    @property
    def is_run(self) -> bool:
        return not NOT_RUN.fullmatch(self.above)


def blocks(page: str) -> list[Block]:
    text = (ROOT / page).read_text(encoding="utf-8")
    matches = re.findall(r"(?:^([^\n]*)\n)?^```(\w*)\n(.*?)^```$", text, re.M | re.S)
    return [Block(language, body, above) for above, language, body in matches]


def code(page: str, language: str) -> list[str]:
    return [block.text for block in blocks(page) if block.language == language and block.is_run]


def commands(page: str) -> list[str]:
    return [line[2:] for block in code(page, "console") for line in block.splitlines()]


def shell(command: str, folder: Path, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Run a command as a reader would, with the meshhub and the Python that run this test."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = re.sub(r"^meshhub ", f"{sys.executable} -m meshhub ", command)
    return subprocess.run(
        command,
        shell=True,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env={**os.environ, "PATH": programs},
    )


def run_command(command: str, folder: Path) -> str:
    """Run a command of a page without a shell if it is one of meshhub, which starts no process; return its output."""
    program, *words = shlex.split(command)
    if program != "meshhub":
        result = shell(command, folder)
        assert result.returncode == 0, f"{command}: {result.stderr}"
        return result.stdout
    arguments = [name for word in words for name in expand(word, folder)]
    done = meshhub_cli(*arguments, cwd=folder)
    assert done.returncode == 0, f"{command}: {done.stderr.decode()}"
    return done.stdout.decode()


def expand(word: str, folder: Path) -> list[str]:
    """Return the files that a pattern matches, as a shell does, or the word itself."""
    matches = sorted(str(path.relative_to(folder)) for path in folder.glob(word)) if "*" in word else []
    return matches or [word]


def copy_examples(folder: Path) -> None:
    """Copy the examples at 40 percent of their size: checks take time in proportion to the volume."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    record = np.dtype([("corners", "<f4", 12), ("attribute", "<u2")])
    for path in (folder / "examples").glob("*.stl"):
        facets = np.frombuffer(path.read_bytes(), record, offset=84).copy()
        facets["corners"] *= 0.4
        path.write_bytes(path.read_bytes()[:84] + facets.tobytes())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    copy_examples(tmp_path)
    write_textured_model(tmp_path / "model.glb")
    (tmp_path / "filaments.csv").write_text(
        "name,hex,td\nWhite,#FFFFFF,4.5\nFire red,#D01020,3.5\nSky blue,#3090D0,8\nBlack,#000000,0.6\n", "utf-8"
    )
    return tmp_path


def write_textured_model(path: Path) -> None:
    """Write a brick with a texture, two rows of one pixel."""
    mesh = brick()
    uv = mesh.vertices[:, :2] / mesh.vertices[:, :2].max(axis=0)
    material = Material(base_color_image=0, filter="nearest")
    rows = zlib.compress(b"\x00\xc8\x14\x28" + b"\x00\x00\x52\xb4")
    png = b"\x89PNG\r\n\x1a\n"
    for kind, data in ((b"IHDR", struct.pack(">IIBBBBB", 1, 2, 8, 2, 0, 0, 0)), (b"IDAT", rows), (b"IEND", b"")):
        png += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    image = Image(png, "image/png")
    Registry().write(Scene((replace(mesh, uv=uv),), (Part(0, material=0),), (material,), (image,)), path)


def test_every_page_states_the_language_of_its_blocks() -> None:
    for page in PAGES:
        languages = {block.language for block in blocks(page)}
        assert languages <= {"python", "console", "toml", "json", *PLAIN}, page


def test_pages_of_files_have_files_only() -> None:
    for page in FILES:
        for block in blocks(page):
            if block.language in ("python", "toml"):
                assert re.match(r"# \S+\.\w+\n", block.text), page


def as_params(pages: Iterable[str]) -> list[object]:
    return [pytest.param(page, marks=pytest.mark.large) if page in LARGE else page for page in pages]


@pytest.mark.once
@pytest.mark.parametrize("page", as_params(page for page in PAGES if page not in FILES and code(page, "python")))
def test_python_blocks_run(folder: Path, page: str) -> None:
    # without the extra `http`, the other blocks of the page run
    has_service = find_spec("litestar") is not None
    script = "\n".join(block for block in code(page, "python") if has_service or "meshhub.http" not in block)
    guarded = "if __name__ == '__main__':\n" + textwrap.indent(script, "    ")
    (folder / "example.py").write_text(guarded, encoding="utf-8")
    result = shell(f"{sys.executable} example.py", folder)
    assert result.returncode == 0, result.stderr


def without_service(page: str) -> bool:
    text = "\n".join(commands(page))
    return bool(text) and page != "README.md" and SERVICE not in text


@pytest.mark.once
@pytest.mark.parametrize("page", as_params(page for page in PAGES if without_service(page)))
def test_commands_run(folder: Path, page: str) -> None:
    if "reduce-colors" in " ".join(commands(page)):
        pytest.importorskip("PIL", reason="textures need the extra textures")
    for command in commands(page):
        if command.startswith("meshhub keys"):
            pytest.importorskip("sqlalchemy", reason="keys need the extra http")
        run_command(command, folder)


def test_data_blocks_are_well_formed() -> None:
    for block in [block for page in PAGES for block in blocks(page)]:
        if block.language == "json":
            json.loads(block.text)
        elif block.language == "toml":
            tomllib.loads(block.text)


def test_a_marker_states_a_reason_and_stands_above_a_block() -> None:
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        assert text.count("\n<!-- not run") == sum(not block.is_run for block in blocks(page)), page
