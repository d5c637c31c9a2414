"""Numbers, matrices and colours from the attributes of a model part."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from meshhub.builtin_plugins.threemf.reading.markup import Attributes
from meshhub.builtin_plugins.threemf.reading.tables import colors_of
from meshhub.errors import UnreadableFile
from meshhub.model.scene import Float64, UInt8
from meshhub.toolkit.columns import Irregular

_NUMBER = re.compile(r"\s*[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
_COLOR = re.compile(r"\s*#([0-9A-Fa-f]{6}|[0-9A-Fa-f]{8})\s*")
_INTEGER = re.compile(r"\s*\+?\d{1,10}\s*", re.ASCII)

_IDENTITY = np.eye(4)
_IDENTITY.setflags(write=False)


class Values:
    """Reads values, and says in which part a wrong one stands. All of it raises UnreadableFile."""

    def __init__(self, part: str) -> None:
        self._part = part

    def wrong(self, what: str) -> UnreadableFile:
        """The error for a part that says something impossible."""
        return UnreadableFile(f"{self._part!r}: {what}; export the model again")

    def number(self, attributes: Attributes, name: str, what: str) -> float:
        """A finite number from an attribute."""
        text = attributes.get(name)
        if text is None or not _NUMBER.fullmatch(text):
            raise self.wrong(f"a {what} has no number as its {name!r}, but {(text or '')[:40]!r}")
        number = float(text)
        if not math.isfinite(number):
            raise self.wrong(f"a {what} has {text[:40]!r} as its {name!r}, which is not finite")
        return number

    def integer(self, attributes: Attributes, name: str, what: str) -> int:
        """A whole number from an attribute."""
        text = attributes.get(name)
        if text is None or not _INTEGER.fullmatch(text):
            raise self.wrong(f"an element {what!r} has no whole number as its {name!r}, but {(text or '')[:40]!r}")
        return int(text)

    def numbers(self, text: str, what: str) -> list[float]:
        """Numbers between blanks."""
        words = text.split()
        if not all(_NUMBER.fullmatch(word) for word in words):
            raise self.wrong(f"an element {what!r} holds {text[:40]!r} where numbers should be")
        return [float(word) for word in words]

    def integers(self, text: str, what: str) -> list[int]:
        """Whole numbers between blanks."""
        words = text.split()
        if not all(_INTEGER.fullmatch(word) for word in words):
            raise self.wrong(f"an element {what!r} holds {text[:40]!r} where whole numbers should be")
        return [int(word) for word in words]

    def matrix(self, text: str | None, what: str) -> Float64:
        """Core §3.3: twelve numbers, row vectors, translation last."""
        if text is None:
            return _IDENTITY
        numbers = self.numbers(text, what)
        if len(numbers) != 12:
            raise self.wrong(f"the transform of an element {what!r} has {len(numbers)} numbers instead of 12")
        made = np.eye(4)
        made[:3] = np.array(numbers).reshape(4, 3).T
        return made

    def colors(self, texts: Sequence[str]) -> UInt8:
        """Colours (k, 4) from their texts."""
        try:
            return colors_of(pa.array(texts, pa.string()))
        except Irregular:
            wrong = next((text for text in texts if not _COLOR.fullmatch(text)), "")
            raise self.wrong(f"{wrong[:40]!r} is no colour, which is written #RRGGBB") from None
