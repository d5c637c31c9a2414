"""Pictures in terminals: which terminals can show them, and what they receive."""

from __future__ import annotations

import base64
import io
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from meshhub.cli import terminal_pictures
from meshhub.model.scene import UInt8
from meshhub.toolkit.png import decode_png, encode_png
from test_cli import EXAMPLE, meshhub_cli
from waiting import MAX_WAIT_S

pytestmark = pytest.mark.once


def build_picture(width: int = 23, height: int = 15) -> UInt8:
    """Return a picture with a white background, and shades of a few colors."""
    pixels = np.full((height, width, 4), 255, np.uint8)
    pixels[3:12, 4:18, 0] = np.linspace(0, 248, 14).astype(np.uint8) & 0xF8
    pixels[3:12, 4:18, 1] = 128
    return pixels


def read_sixels(text: str) -> UInt8:
    """Return the picture in an escape sequence of sixels."""
    match = re.fullmatch(r'\x1bPq"1;1;(\d+);(\d+)(.*)\x1b\\', text, re.DOTALL)
    assert match is not None
    width, height = int(match[1]), int(match[2])
    pixels = np.zeros((height + 5, width, 3), np.uint8)
    palette: dict[int, list[int]] = {}
    x = y = color = 0
    for number, definition, count, sixel, other in re.findall(
        r"#(\d+)((?:;\d+){4})?|(?:!(\d+))?([?-~])|([$-])", match[3]
    ):
        if number:
            color = int(number)
            if definition:
                palette[color] = [round(int(value) * 2.55) for value in definition.split(";")[2:]]
        elif sixel:
            for _ in range(int(count or 1)):
                for row in range(6):
                    if ord(sixel) - 63 >> row & 1:
                        pixels[y + row, x] = palette[color]
                x += 1
        else:
            x, y = 0, y + 6 * (other == "-")
    return pixels[:height]


def test_sixels_show_the_picture() -> None:
    pixels = build_picture()
    shown = read_sixels(terminal_pictures.encode_sixels(pixels[..., :3]))
    assert shown.shape == (15, 23, 3)
    assert np.abs(shown.astype(int) - pixels[..., :3]).max() <= 10


def test_sixels_of_many_colors_keep_the_frequent_ones() -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (24, 24, 3), np.uint8)
    pixels[:, :12] = 255
    shown = read_sixels(terminal_pictures.encode_sixels(pixels))
    assert (shown[:, :12] >= 250).all()
    assert len(np.unique(shown.reshape(-1, 3), axis=0)) <= terminal_pictures.MAX_SIXEL_COLORS


def test_the_png_decoder_reads_pictures_of_the_encoder() -> None:
    for pixels in (build_picture(), build_picture() // 2):
        png = encode_png(pixels)
        with Image.open(io.BytesIO(png)) as image:
            np.testing.assert_array_equal(decode_png(png), np.asarray(image))


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
    ("variables", "attributes", "expected"),
    [
        ({"TERM": "xterm-kitty"}, [], "kitty"),
        ({"TERM": "xterm-256color", "KITTY_WINDOW_ID": "1"}, [], "kitty"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, [], "iterm2"),
        ({"TERM": "xterm-256color", "LC_TERMINAL": "iTerm2"}, ["4"], "iterm2"),
        ({"TERM": "foot"}, ["62", "4", "22"], "sixel"),
        ({"TERM": "xterm-256color"}, ["64", "22"], None),
        ({"TERM": "tmux-256color", "KITTY_WINDOW_ID": "1"}, ["1", "2"], None),
        ({"TERM": "dumb", "TERM_PROGRAM": "iTerm.app"}, ["4"], None),
    ],
)
def test_the_terminal_is_known_by_its_variables_or_attributes(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], attributes: list[str], expected: str | None
) -> None:
    for name in ("TERM", "TERM_PROGRAM", "KITTY_WINDOW_ID", "LC_TERMINAL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(terminal_pictures, "_ask_attributes", lambda: attributes)
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


@pytest.mark.parametrize("arguments", [(), ("--picture", "no")])
def test_a_terminal_that_reports_sixels_receives_them(arguments: tuple[str, ...]) -> None:
    pty = pytest.importorskip("pty", reason="pseudo-terminals need POSIX")
    master, terminal = pty.openpty()
    output = bytearray()

    def answer() -> None:
        while True:
            try:
                data = os.read(master, 65536)
            except OSError:
                return
            output.extend(data)
            if b"\x1b[c" in data:
                os.write(master, b"\x1b[?62;4;22c")

    reader = threading.Thread(target=answer, daemon=True)
    reader.start()
    # a session of its own takes the terminal as its controlling one
    code = "import fcntl, termios; fcntl.ioctl(1, termios.TIOCSCTTY, 0); from meshhub.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "inspect", str(EXAMPLE), *arguments],
        stdin=terminal,
        stdout=terminal,
        stderr=subprocess.PIPE,
        env={**os.environ, "TERM": "xterm-256color", "TERM_PROGRAM": "", "LC_TERMINAL": ""},
        start_new_session=True,
        timeout=MAX_WAIT_S,
        check=False,
    )
    os.close(terminal)
    reader.join(MAX_WAIT_S)
    os.close(master)
    assert done.returncode == 0, done.stderr
    assert (b'\x1bPq"1;1;480;360' in output) == (not arguments)
    assert (b"\x1b[c" in output) == (not arguments)
