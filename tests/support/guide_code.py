"""Code of the guides in `docs/how-to`, for tests that follow them as written."""

from __future__ import annotations

import re
from pathlib import Path

GUIDES = Path(__file__).parents[2] / "docs" / "how-to"


def read_section(guide: str, heading: str) -> str:
    """Return the text below a heading of any level, up to the next heading."""
    text = (GUIDES / guide).read_text(encoding="utf-8")
    # a `#` in a block of code is a comment
    parts = re.split(r"^#+ (.*)\n", re.sub(r"^```.*?^```", _mask_comments, text, flags=re.M | re.S), flags=re.M)
    (section,) = [body for title, body in zip(parts[1::2], parts[2::2], strict=True) if title == heading]
    return section.replace(_MASK, "#")


def read_blocks(guide: str, heading: str, language: str) -> list[str]:
    """Return the blocks of code of a language below a heading."""
    blocks: list[str] = re.findall(rf"^```{language}\n(.*?)^```", read_section(guide, heading), re.M | re.S)
    assert blocks, f"{guide}: no {language} below {heading}"
    return blocks


def read_commands(guide: str, heading: str, number: int = 0) -> list[str]:
    """Return the commands of a block of the console below a heading."""
    lines = read_blocks(guide, heading, "console")[number].splitlines()
    assert all(line.startswith("$ ") for line in lines)
    return [line.removeprefix("$ ") for line in lines]


def read_inline(guide: str, heading: str, start: str) -> str:
    """Return the code in a sentence below a heading, by its first words."""
    text = " ".join(re.sub(r"^```.*?^```", "", read_section(guide, heading), flags=re.M | re.S).split())
    codes: list[str] = re.findall(r"`([^`]+)`", text)
    (code,) = {code for code in codes if code.startswith(start)}
    return code


_MASK = "\0"


def _mask_comments(block: re.Match[str]) -> str:
    return block[0].replace("#", _MASK)
