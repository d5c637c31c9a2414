"""Filaments that the user lists."""

from __future__ import annotations

import re
from typing import NamedTuple

from meshhub.errors import InvalidOption, quote

_SEPARATORS = re.compile(r"[,;\r\n]+")
_COLOR = re.compile(r"#[0-9a-fA-F]{6}")

MAX_NAME_LENGTH = 60
"""Characters of a filament's name; slicers show it in a narrow list."""


class Filament(NamedTuple):
    """Filament of a palette: its name, "" for none, and its red, green and blue bytes."""

    name: str
    color: tuple[int, int, int]


def parse_color(text: str) -> tuple[int, int, int] | None:
    """Return the bytes of a color such as "#FF8000", None for any other text."""
    if not _COLOR.fullmatch(text):
        return None
    red, green, blue = bytes.fromhex(text[1:])
    return red, green, blue


def check_color(option: str, text: str) -> tuple[int, int, int]:
    """Return the color of an option.

    Raises:
        InvalidOption: The text is not a color.
    """
    color = parse_color(text)
    if color is None:
        raise InvalidOption(
            f"option '{{{option}}}' must be a color such as #FF8000, got {quote(text)}", options=(option,)
        )
    return color


def parse_filaments(text: str, max_count: int) -> list[Filament]:
    """Parse a palette: colors as #RRGGBB or name=#RRGGBB, separated by commas, semicolons or line breaks.

    Raises:
        InvalidOption: An entry is malformed, a color occurs twice, the list is empty, or it has too many entries.
    """
    option = "reduce_colors_palette"
    filaments: list[Filament] = []
    for entry in filter(None, map(str.strip, _SEPARATORS.split(text))):
        name, _, color_text = entry.rpartition("=")
        color = parse_color(color_text.strip())
        if color is None or len(name) > MAX_NAME_LENGTH or not name.isprintable():
            raise InvalidOption(
                f"option '{{{option}}}' lists colors as #RRGGBB or name=#RRGGBB, got {quote(entry)}", options=(option,)
            )
        if any(color == other.color for other in filaments):
            raise InvalidOption(f"option '{{{option}}}' lists the color {color_text.strip()} twice", options=(option,))
        filaments.append(Filament(name.strip(), color))
    if not 1 <= len(filaments) <= max_count:
        raise InvalidOption(
            f"option '{{{option}}}' lists 1 to {max_count} colors, got {len(filaments)}", options=(option,)
        )
    return filaments
