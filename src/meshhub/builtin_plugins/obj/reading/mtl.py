"""Parser for MTL text: the statements of each material, and the file names and options of its textures.

Source: Wavefront Technologies, "MTL material format", version 4.2, 1995. The keys Pr, Pm, Ke, map_Pr, map_Pm, map_Ke
and norm are the physically based extension of Clara.io and Exocortex.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from meshhub.toolkit.colors import clamp_fraction

MAX_MTL_BYTES = 16 << 20
"""Maximum bytes to read of an MTL file; real files have a few KiB."""

_MAX_NUMBERS_COUNT = 8
"""Maximum numbers to read of a value; no statement has more than three."""

_COLOR_COUNTS = (1, 3, 4)
"""Numbers of a color: gray, red, green and blue, or these with an alpha, which is left out."""

_NUMBER_OPTIONS = {"-o": 3, "-s": 3, "-t": 3, "-mm": 2, "-bm": 1, "-boost": 1, "-texres": 1}
"""Largest number of values for each numeric option; the last ones are optional."""

_WORD_OPTIONS = frozenset(("-blendu", "-blendv", "-cc", "-clamp", "-imfchan", "-type", "-colorspace"))
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)
_CONTINUATION = re.compile(rb"(?im)^([ \t]*(?:k[ade]|ks|tf|n[si]|d|tr|p[rmsc]|illum)\b[^\r\n#]*)\\\r?\n")
"""Statement of numbers that continues on the next line; at the end of a name or a path, a backslash belongs to it."""

_COMMENT = re.compile(r"(?:^|\s)#.*$")

Statements = dict[str, str]
"""Values of a material by lower-case key."""


@dataclass(frozen=True)
class TextureReference:
    """File name of a texture, and its mapping: `uv * scale + offset`."""

    file_name: str
    scale: tuple[float, float] = (1.0, 1.0)
    offset: tuple[float, float] = (0.0, 0.0)
    clamp: bool = False


def parse_mtl(data: bytes) -> dict[str, Statements]:
    """Return the statements of each material by name; if a name repeats, those of the first material."""
    data = _CONTINUATION.sub(rb"\1 ", data[:MAX_MTL_BYTES])
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    materials: dict[str, Statements] = {}
    current: Statements = {}
    for line in re.split(r"[\r\n]+", text):
        words = _COMMENT.sub("", line).strip().split(None, 1)
        if not words:
            continue
        key, value = words[0].lower(), words[1].strip() if len(words) > 1 else ""
        if key == "newmtl":
            current = {}
            materials.setdefault(" ".join(value.split()), current)
        else:
            current[key] = value
    return materials


def parse_numbers(text: str | None) -> list[float]:
    """Return the finite numbers of a value, with decimal points or commas; none if a word is not a number."""
    numbers: list[float] = []
    for word in (text or "").split()[:_MAX_NUMBERS_COUNT]:
        # "1,5" has a decimal comma; in "1.5,2.5" and "1,0,0", the commas separate numbers
        is_list = "." in word or word.count(",") > 1 or word.endswith(",")
        for part in filter(None, word.split(",")) if is_list else (word.replace(",", "."),):
            if not _NUMBER.fullmatch(part) or not math.isfinite(float(part)):
                return []
            numbers.append(float(part))
    return numbers


def parse_number(text: str | None) -> float | None:
    """Return the first number of a value."""
    return next(iter(parse_numbers(text)), None)


def parse_color(text: str | None) -> tuple[float, float, float] | None:
    """Return red, green and blue, 0 … 1, or None without numbers. One number is gray; numbers up to 255 are scaled."""
    values = parse_numbers(text)
    if len(values) not in _COLOR_COUNTS:
        return None
    values = values[:3] if len(values) >= 3 else values * 3
    largest = max(values)
    if 1 < largest <= 255:
        values = [value / (255 if largest > 2 else largest) for value in values]
    red, green, blue = (clamp_fraction(value) for value in values)
    return red, green, blue


def find_malformed(statements: Statements) -> list[str]:
    """Return the keys of colors and numbers whose values cannot be read."""
    colors = [key for key in ("kd", "ks", "ke") if statements.get(key) and parse_color(statements[key]) is None]
    numbers = [
        key
        for key in ("d", "tr", "ns", "pr", "pm")
        if statements.get(key) and not parse_numbers(strip_halo(statements[key]))
    ]
    return colors + numbers


def strip_halo(text: str) -> str:
    """Return the value of `d` without its option."""
    return text.lower().removeprefix("-halo")


def parse_texture(text: str | None) -> TextureReference | None:
    """Parse a texture statement: options, then a file name, which may contain spaces. Return None without a name."""
    words = (text or "").split(" ")
    scale, offset, clamp = (1.0, 1.0), (0.0, 0.0), False
    position = 0
    while position < len(words):
        option = words[position].lower()
        if not option:
            position += 1
        elif option in _NUMBER_OPTIONS:
            values, position = _parse_option_values(words, position + 1, _NUMBER_OPTIONS[option])
            if option == "-s" and values:
                scale = (values[0], values[1] if len(values) > 1 else 1.0)
            elif option == "-o" and values:
                offset = (values[0], values[1] if len(values) > 1 else 0.0)
        elif option in _WORD_OPTIONS:
            clamp = clamp or (option == "-clamp" and words[position + 1 : position + 2] == ["on"])
            position += 2
        else:
            break
    file_name = " ".join(words[position:]).strip().strip('"')
    return TextureReference(file_name, scale, offset, clamp) if file_name else None


def _parse_option_values(words: list[str], position: int, max_count: int) -> tuple[list[float], int]:
    """Return up to `max_count` numbers from a position on, and the position after them; the last word is a name."""
    values: list[float] = []
    while position < len(words) - 1 and len(values) < max_count and len(parse_numbers(words[position])) == 1:
        values += parse_numbers(words[position])
        position += 1
    return values, position
