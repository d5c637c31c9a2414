"""Pictures in terminals that can show them: kitty, iTerm2, and those with sixels."""

from __future__ import annotations

import base64
import contextlib
import os
import re
import select
import sys
import time
from typing import Literal

import numpy as np

from meshhub.model.scene import Int32, UInt8
from meshhub.toolkit.png import decode_png

Protocol = Literal["kitty", "iterm2", "sixel"]
"""How a terminal receives pictures."""

MAX_SIXEL_COLORS = 64
"""Colors of a picture in sixels; shaded models have few, and each color costs time in each band."""

_CHUNK_BYTES = 4096
"""Maximum bytes of one escape sequence of kitty."""

_ANSWER_S = 0.3
"""Seconds to wait for the attributes of a terminal; without an answer, no picture is shown."""

_ATTRIBUTES = re.compile(rb"\x1b\[\?([\d;]*)c")
"""Answer of a terminal to the request for its primary attributes (ECMA-48 §8.3.24); 4 stands for sixels."""


def find_protocol() -> Protocol | None:
    """Return the protocol by which standard output can show pictures; None if it cannot, or is not a terminal."""
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    term, program = os.environ.get("TERM", ""), os.environ.get("TERM_PROGRAM", "")
    if not term.startswith(("screen", "tmux", "dumb")):
        # a multiplexer passes on the variables of the terminal around it, but not its pictures
        if "KITTY_WINDOW_ID" in os.environ or term in ("xterm-kitty", "xterm-ghostty") or program == "ghostty":
            return "kitty"
        if program in ("iTerm.app", "WezTerm", "mintty") or os.environ.get("LC_TERMINAL") == "iTerm2":
            return "iterm2"
    return "sixel" if term != "dumb" and "4" in _ask_attributes() else None


def _ask_attributes() -> list[str]:
    """Return the numbers of the primary attributes of the controlling terminal; none without an answer."""
    try:
        import termios
        import tty

        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except (ImportError, OSError):
        return []
    try:
        before = termios.tcgetattr(terminal)
        try:
            tty.setcbreak(terminal)
            os.write(terminal, b"\x1b[c")
            answer, deadline = b"", time.monotonic() + _ANSWER_S
            while not (match := _ATTRIBUTES.search(answer)):
                if not select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))[0]:
                    return []
                answer += os.read(terminal, 64)
            return match[1].decode().split(";")
        finally:
            termios.tcsetattr(terminal, termios.TCSAFLUSH, before)
    except (termios.error, OSError):
        return []
    finally:
        with contextlib.suppress(OSError):
            os.close(terminal)


def encode_picture(png: bytes, protocol: Protocol) -> str:
    """Return the escape sequence that shows a picture of `encode_png` in a terminal."""
    text = base64.standard_b64encode(png).decode()
    if protocol == "iterm2":
        return f"\x1b]1337;File=inline=1;size={len(png)}:{text}\a"
    if protocol == "sixel":
        return encode_sixels(decode_png(png)[..., :3])
    chunks = [text[begin : begin + _CHUNK_BYTES] for begin in range(0, len(text), _CHUNK_BYTES)]
    return "".join(
        f"\x1b_G{'a=T,f=100,' if number == 0 else ''}m={int(number < len(chunks) - 1)};{chunk}\x1b\\"
        for number, chunk in enumerate(chunks)
    )


def encode_sixels(pixels: UInt8) -> str:
    """Return the escape sequence of a picture in sixels, with the most frequent of its colors.

    Args:
        pixels: (height, width, 3) sRGB.
    Source:
        DEC STD 070, §8: bands of six rows, each color of a band one after the other.
    """
    height, width = pixels.shape[:2]
    palette, index = _reduce(pixels)
    colors = np.rint(palette / 2.55).astype(int).tolist()
    parts = [f'\x1bPq"1;1;{width};{height}', *(f"#{n};2;{r};{g};{b}" for n, (r, g, b) in enumerate(colors))]
    padded = np.full((-(-height // 6) * 6, width), -1, np.int16)
    padded[:height] = index
    for band in padded.reshape(-1, 6, width):
        for color in np.unique(band[band >= 0]).tolist():
            sixels = 63 + ((band == color) << np.arange(6)[:, None]).sum(axis=0)
            parts.append(f"#{color}{_repeat(sixels)}$")
        parts.append("-")
    return "".join([*parts, "\x1b\\"])


def _reduce(pixels: UInt8) -> tuple[UInt8, Int32]:
    """Return the most frequent colors of a picture, and the nearest of them for each pixel."""
    codes = (pixels >> 3).astype(np.int32) @ np.array([1 << 10, 1 << 5, 1])
    _, inverse, counts = np.unique(codes, return_inverse=True, return_counts=True)
    inverse = inverse.ravel()
    sums = [np.bincount(inverse, weights=channel) for channel in pixels.reshape(-1, 3).T]
    colors = np.stack(sums, axis=1) / counts[:, None]
    frequent = np.argsort(-counts, kind="stable")[:MAX_SIXEL_COLORS]
    palette = np.rint(colors[frequent]).astype(np.uint8)
    distances = ((colors[:, None] - colors[frequent]) ** 2).sum(axis=2)
    return palette, distances.argmin(axis=1).astype(np.int32)[inverse].reshape(pixels.shape[:2])


def _repeat(sixels: Int32) -> str:
    """Return the characters of a row of sixels, with counts for repeated ones."""
    begins = np.flatnonzero(np.diff(sixels, prepend=-1))
    counts = np.diff(begins, append=len(sixels)).tolist()
    characters = map(chr, sixels[begins].tolist())
    return "".join(
        f"!{count}{each}" if count > 3 else each * count for count, each in zip(counts, characters, strict=True)
    )
