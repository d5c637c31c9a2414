"""Pictures in terminals: which terminals can show them, and what they receive."""

from __future__ import annotations

import base64
import io
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from meshhub.cli import terminal_pictures
from meshhub.toolkit.png import encode_png
from test_cli import EXAMPLE, meshhub_cli

pytestmark = pytest.mark.once


def test_kitty_and_iterm2_receive_the_file() -> None:
    png = encode_png(np.random.default_rng(1).integers(0, 256, (60, 60, 4), np.uint8))
    kitty = terminal_pictures.encode_picture(png, "kitty")
    chunks = re.findall(r"\x1b_G(?:a=T,f=100,)?m=([01]);([^\x1b]*)\x1b\\", kitty)
    assert base64.standard_b64decode("".join(chunk for _, chunk in chunks)) == png
    assert len(chunks) > 2
    assert [more for more, _ in chunks] == ["1"] * (len(chunks) - 1) + ["0"]
    iterm = re.fullmatch(r"\x1b]1337;File=inline=1;size=(\d+):(.*)\a", terminal_pictures.encode_picture(png, "iterm2"))
    assert iterm is not None
    assert (int(iterm[1]), base64.standard_b64decode(iterm[2])) == (len(png), png)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"TERM": "xterm-kitty"}, "kitty"),
        ({"TERM": "xterm-256color", "KITTY_WINDOW_ID": "1"}, "kitty"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, "iterm2"),
        ({"TERM": "xterm-256color", "LC_TERMINAL": "iTerm2"}, "iterm2"),
        ({"TERM": "xterm-256color"}, None),
        ({"TERM": "tmux-256color", "KITTY_WINDOW_ID": "1"}, None),
        ({"TERM": "dumb", "TERM_PROGRAM": "iTerm.app"}, None),
    ],
)
def test_the_terminal_is_known_by_its_variables(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: str | None
) -> None:
    for name in ("TERM", "TERM_PROGRAM", "KITTY_WINDOW_ID", "LC_TERMINAL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert terminal_pictures.find_protocol() is None
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert terminal_pictures.find_protocol() == expected


def test_a_picture_follows_the_facts(tmp_path: Path) -> None:
    done = meshhub_cli("inspect", EXAMPLE, "--picture", "iterm2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode()
    assert text.index("watertight") < text.index("\x1b]1337;File")
    png = base64.standard_b64decode(text.partition("File=inline=1;size=")[2].partition(":")[2].partition("\a")[0])
    with Image.open(io.BytesIO(png)) as image:
        assert image.size == (480, 360)
    assert b"\x1b" not in meshhub_cli("inspect", EXAMPLE).stdout
    assert b"1337" not in meshhub_cli("inspect", EXAMPLE, "--picture", "iterm2", "--json").stdout
