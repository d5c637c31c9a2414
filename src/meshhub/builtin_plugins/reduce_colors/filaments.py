"""Filaments that the user lists."""

# why this way: docs/decisions/0028-colors-left-out.md
from __future__ import annotations

import re
from typing import NamedTuple

from meshhub.builtin_plugins.reduce_colors.color_names import CSS_COLORS
from meshhub.errors import InvalidOption, quote

OPTION = "reduce_colors_palette"
"""Option that lists the filaments."""

_SEPARATORS = re.compile(r"[,;\r\n]+")
_COLOR = re.compile(r"#[0-9a-fA-F]{6}")

MAX_NAME_LENGTH = 60
"""Maximum characters of a filament's name; slicers show it in a narrow list."""


class Filament(NamedTuple):
    """Filament of a palette.

    name: "" for none
    color: red, green and blue bytes
    transmission_mm: thickness that lets a tenth of the light through; 0 if it is unknown
    """

    name: str
    color: tuple[int, int, int]
    transmission_mm: float = 0.0


def parse_color(text: str) -> tuple[int, int, int] | None:
    """Return the bytes of a color such as "#FF8000" or "white", None for any other text."""
    code = CSS_COLORS.get(text.lower(), text)
    if not _COLOR.fullmatch(code):
        return None
    red, green, blue = bytes.fromhex(code[1:])
    return red, green, blue


def check_color(option: str, text: str) -> tuple[int, int, int]:
    """Return the color of an option.

    Raises:
        InvalidOption: The text is not a color.
    """
    color = parse_color(text)
    if color is None:
        raise InvalidOption(
            f"option '{{{option}}}' must be a color such as #FF8000 or white, got {quote(text)}", options=(option,)
        )
    return color


def parse_list(text: str) -> list[Filament]:
    """Parse entries separated by commas, semicolons or line breaks: #RRGGBB, red or name=#RRGGBB.

    Raises:
        InvalidOption: An entry is malformed, or a color occurs twice.
    """
    filaments: dict[tuple[int, int, int], Filament] = {}
    for entry in filter(None, map(str.strip, _SEPARATORS.split(text))):
        name, _, color_text = entry.rpartition("=")
        name, color = name.strip(), parse_color(color_text.strip())
        if color is None or len(name) > MAX_NAME_LENGTH or not name.isprintable():
            raise InvalidOption(
                f"option '{{{OPTION}}}' lists colors as #RRGGBB, red or name=#RRGGBB, got {quote(entry)}",
                options=(OPTION,),
            )
        if color in filaments:
            raise InvalidOption(f"option '{{{OPTION}}}' lists the color {color_text.strip()} twice", options=(OPTION,))
        is_named_color = not name and not color_text.strip().startswith("#")
        filaments[color] = Filament(color_text.strip() if is_named_color else name, color)
    return list(filaments.values())
