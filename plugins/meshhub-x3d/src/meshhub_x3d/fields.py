"""Values of fields: every encoding has the same texts, but for brackets and quotes."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from meshhub import UnreadableFile
from meshhub.errors import quote
from meshhub.model.scene import Float64
from meshhub.toolkit.columns import Irregular, read_numbers
from meshhub_x3d.nodes import Node

Index = NDArray[np.int64]

_LONG_CHARACTERS_COUNT = 400
"""Characters from which a text is parsed as a column; for fewer, Python is faster."""

_STRING = re.compile(r'"((?:\\.|[^"\\])*)"', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def read_floats(node: Node, name: str, width: int = 1) -> Float64:
    """Return (n, width) numbers of a field; no rows without the field.

    Raises:
        UnreadableFile: The field has other words, or not a multiple of `width` numbers.
    """
    values: Float64 = _parse(node, name, "f8").astype(np.float64)
    if len(values) % width:
        raise UnreadableFile(
            f"{name} of {quote(node.kind[:40])} has {len(values)} numbers, not a multiple of {width}; is it cut off?"
        )
    return values.reshape(-1, width)


def read_integers(node: Node, name: str) -> Index:
    """Return (n,) integers of a field. Raises UnreadableFile."""
    return _parse(node, name, "i8").astype(np.int64)


def read_vector(node: Node, name: str, default: tuple[float, ...]) -> Float64:
    """Return the numbers of a field with one value; more or fewer count as the default. Raises UnreadableFile."""
    values = _parse(node, name, "f8")
    return values.astype(np.float64) if len(values) == len(default) else np.array(default, np.float64)


def read_float(node: Node, name: str, default: float) -> float:
    """Return the number of a field. Raises UnreadableFile."""
    return float(read_vector(node, name, (default,))[0])


def read_integer(node: Node, name: str, default: int) -> int:
    """Return the integer of a field; more or fewer count as the default. Raises UnreadableFile."""
    values = read_integers(node, name)
    return int(values[0]) if len(values) == 1 else default


def read_flag(node: Node, name: str, default: bool) -> bool:
    """Return the truth value of a field."""
    text = node.text(name).strip().lower()
    return text in ("true", "1") if text else default


def read_texts(node: Node, name: str) -> list[str]:
    """Return the texts of a field: quoted ones, or one without quotes."""
    text = node.text(name).strip()
    if not text.startswith('"'):
        return [text] if text else []
    return [_ESCAPE.sub(r"\1", match) for match in _STRING.findall(text)]


def _parse(node: Node, name: str, dtype: str) -> NDArray[np.generic]:
    text = node.text(name)
    if len(text) >= _LONG_CHARACTERS_COUNT:
        try:
            return read_numbers(text.replace(",", " ").encode(), dtype)[0]
        except Irregular:
            # plus signs and hexadecimal numbers, or a word that is not a number
            pass
    convert = float if dtype == "f8" else _parse_integer
    values = []
    for word in text.replace(",", " ").split():
        try:
            values.append(convert(word))
        except (ValueError, OverflowError):
            raise UnreadableFile(
                f"{name} of {quote(node.kind[:40])} has {quote(word[:40])}, which is not a number; export it again"
            ) from None
    try:
        return np.array(values, dtype)
    except OverflowError:
        raise UnreadableFile(f"{name} of {quote(node.kind[:40])} has a number out of range; export it again") from None


def _parse_integer(word: str) -> int:
    if "x" in word.lower():
        return int(word, 16)
    try:
        return int(word)
    except ValueError:
        number = float(word)
        if number != int(number):
            raise
        return int(number)
