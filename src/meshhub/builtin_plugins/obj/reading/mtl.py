"""MTL text: what each material says, and the file names and options of its textures.

Source: Wavefront Technologies, "MTL material format", version 4.2, 1995; the keys Pr, Pm, Ke, map_Pr,
map_Pm, map_Ke and norm are the physically based extension of Clara.io and Exocortex.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from meshhub.builtin_plugins.obj.sniff import narrowed

LARGEST = 16 << 20
"""More bytes of materials than any model has."""

_NUMBERS = {"-o": 3, "-s": 3, "-t": 3, "-mm": 2, "-bm": 1, "-boost": 1, "-texres": 1}
"""How many numbers an option takes at most; the format lets the last ones be left out."""

_WORDS = frozenset(("-blendu", "-blendv", "-cc", "-clamp", "-imfchan", "-type", "-colorspace"))
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)
_GOES_ON = re.compile(rb"\\\r?\n")
_REMARK = re.compile(r"(?:^|\s)#.*$")

Statements = dict[str, str]
"""A material's keys in lower case, and what stands after each."""


@dataclass(frozen=True)
class Texture:
    """A picture and how it is laid on: `uv * scale + offset`."""

    reference: str
    scale: tuple[float, float] = (1.0, 1.0)
    offset: tuple[float, float] = (0.0, 0.0)
    clamp: bool = False


def parse(data: bytes) -> dict[str, Statements]:
    """The materials of an MTL file by name; a name that comes twice keeps what it said first."""
    data = _GOES_ON.sub(b" ", narrowed(data[:LARGEST]))
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    found: dict[str, Statements] = {}
    current: Statements = {}
    for line in re.split(r"[\r\n]+", text):
        words = _REMARK.sub("", line).strip().split(None, 1)
        if not words:
            continue
        key, rest = words[0].lower(), words[1].strip() if len(words) > 1 else ""
        if key == "newmtl":
            current = {}
            found.setdefault(" ".join(rest.split()), current)
        else:
            current[key] = rest
    return found


def numbers(text: str | None) -> list[float]:
    """The finite numbers that a value begins with."""
    values: list[float] = []
    for word in (text or "").split()[:8]:
        if not _NUMBER.fullmatch(word):
            break
        value = float(word)
        if not math.isfinite(value):
            break
        values.append(value)
    return values


def number(text: str | None) -> float | None:
    """The first number of a value."""
    return next(iter(numbers(text)), None)


def color(text: str | None) -> tuple[float, float, float] | None:
    """Red, green, blue, 0 to 1; one number is a grey, and numbers up to 255 are understood. None without numbers."""
    values = numbers(text)
    if not values:
        return None
    values = values[:3] if len(values) >= 3 else values[:1] * 3
    largest = max(values)
    if 1 < largest <= 255:
        values = [value / (255 if largest > 2 else largest) for value in values]
    red, green, blue = (min(max(value, 0.0), 1.0) for value in values)
    return red, green, blue


def texture(text: str | None) -> Texture | None:
    """A texture statement: options, then a file name that may hold blanks. None without a name."""
    words = (text or "").split(" ")
    scale, offset, clamp = (1.0, 1.0), (0.0, 0.0), False
    at = 0
    while at < len(words):
        word = words[at].lower()
        if not word:
            at += 1
        elif word in _NUMBERS:
            values: list[float] = []
            at += 1
            while at < len(words) - 1 and len(values) < _NUMBERS[word] and _NUMBER.fullmatch(words[at]):
                values += numbers(words[at])
                at += 1
            if word == "-s" and values:
                scale = (values[0], values[1] if len(values) > 1 else 1.0)
            elif word == "-o" and values:
                offset = (values[0], values[1] if len(values) > 1 else 0.0)
        elif word in _WORDS:
            clamp = clamp or (word == "-clamp" and words[at + 1 : at + 2] == ["on"])
            at += 2
        else:
            break
    reference = " ".join(words[at:]).strip().strip('"')
    return Texture(reference, scale, offset, clamp) if reference else None
