"""Pictures in terminals that can show them: kitty, iTerm2, and programs with the protocol of one of them."""

from __future__ import annotations

import base64
import os
import sys
from typing import Literal

Protocol = Literal["kitty", "iterm2"]
"""How a terminal receives pictures."""

_CHUNK_BYTES = 4096
"""Maximum bytes of one escape sequence of kitty."""


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
    return None


def encode_picture(png: bytes, protocol: Protocol) -> str:
    """Return the escape sequence that shows a picture of `encode_png` in a terminal."""
    text = base64.standard_b64encode(png).decode()
    if protocol == "iterm2":
        return f"\x1b]1337;File=inline=1;size={len(png)}:{text}\a"
    chunks = [text[begin : begin + _CHUNK_BYTES] for begin in range(0, len(text), _CHUNK_BYTES)]
    return "".join(
        f"\x1b_G{'a=T,f=100,' if number == 0 else ''}m={int(number < len(chunks) - 1)};{chunk}\x1b\\"
        for number, chunk in enumerate(chunks)
    )
