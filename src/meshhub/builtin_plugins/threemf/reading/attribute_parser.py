"""Parse numbers, matrices and colors in the attributes of a model part."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from meshhub.builtin_plugins.threemf.reading.element_columns import parse_colors
from meshhub.errors import UnreadableFile, quote
from meshhub.model.scene import Float64, UInt8
from meshhub.toolkit.columns import Irregular
from meshhub.toolkit.safe_xml import Attributes

_NUMBER = re.compile(r"\s*[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
_COLOR = re.compile(r"\s*#([0-9A-Fa-f]{6}|[0-9A-Fa-f]{8})\s*")
_INTEGER = re.compile(r"\s*\+?\d{1,10}\s*", re.ASCII)

_IDENTITY = np.eye(4)
_IDENTITY.setflags(write=False)


class AttributeParser:
    """Parses attribute values. Every method raises UnreadableFile, which names the model part, for a wrong value."""

    def __init__(self, part: str) -> None:
        self._part = part

    def error(self, problem: str) -> UnreadableFile:
        """Return the error for a problem of the model part."""
        return UnreadableFile(f"{quote(self._part)}: {problem}; export the model again")

    def number(self, attributes: Attributes, name: str, element: str) -> float:
        """Return a finite number."""
        text = attributes.get(name)
        if text is None or not _NUMBER.fullmatch(text):
            raise self.error(f"{name!r} of <{element}> is {quote(text or '')}; it must be a number")
        number = float(text)
        if not math.isfinite(number):
            raise self.error(f"{name!r} of <{element}> is {quote(text)}; it must be finite")
        return number

    def integer(self, attributes: Attributes, name: str, element: str) -> int:
        """Return a non-negative integer."""
        text = attributes.get(name)
        if text is None or not _INTEGER.fullmatch(text):
            raise self.error(f"{name!r} of <{element}> is {quote(text or '')}; it must be an integer")
        return int(text)

    def numbers(self, text: str, element: str) -> list[float]:
        """Return numbers separated by white space."""
        words = text.split()
        if not all(_NUMBER.fullmatch(word) for word in words):
            raise self.error(f"<{element}> has {quote(text)} where numbers are required")
        return [float(word) for word in words]

    def integers(self, text: str, element: str) -> list[int]:
        """Return non-negative integers separated by white space."""
        words = text.split()
        if not all(_INTEGER.fullmatch(word) for word in words):
            raise self.error(f"<{element}> has {quote(text)} where integers are required")
        return [int(word) for word in words]

    def matrix(self, text: str | None, element: str) -> Float64:
        """Return a (4, 4) matrix for column vectors.

        Source:
            3MF core §3.3: twelve numbers, for row vectors, translation last.
        """
        if text is None:
            return _IDENTITY
        numbers = self.numbers(text, element)
        if len(numbers) != 12:
            raise self.error(f"'transform' of <{element}> has {len(numbers)} numbers; it must have 12")
        matrix = np.eye(4)
        matrix[:3] = np.array(numbers).reshape(4, 3).T
        return matrix

    def colors(self, texts: Sequence[str]) -> UInt8:
        """Return (k, 4) colors."""
        try:
            return parse_colors(pa.array(texts, pa.string()))
        except Irregular:
            wrong = next((text for text in texts if not _COLOR.fullmatch(text)), "")
            raise self.error(f"color {quote(wrong)} must be #RRGGBB or #RRGGBBAA") from None
