"""The tables of an OBJ file: positions with colours, texture coordinates, normals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.obj.reading.lines import Lines, first_bad, without_comments
from meshhub.toolkit.columns import Irregular, read_numbers, read_rows

_BLANK = 32
_WIDEST = 8
"""A regular table has no more columns: x y z and r g b a."""


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of numbers. `counts` tells how many each line had, where they differ; else all have the table's width."""

    rows: NDArray[Any]
    counts: NDArray[np.int64] | None = None


def read_table(lines: Lines, kind: int, dtype: str, least: int) -> Table:
    """All lines of a kind, at least `least` numbers each; shorter rows are filled with zeros.

    Raises UnreadableFile naming the line.
    """
    chosen = lines.of(kind)
    text = lines.joined(chosen)
    if len(chosen) == 0:
        return Table(np.empty((0, least), dtype))
    opening = lines.text[int(lines.starts[chosen[0]]) : int(lines.ends[chosen[0]])][:256]
    width = opening.count(b" ")
    if opening.endswith(b"\n") and least <= width < _WIDEST:
        try:
            return Table(read_rows(text, width + 1, dtype, take=range(1, width + 1)))
        except Irregular:
            pass
    letters = without_comments(text)
    starts = np.append(0, np.cumsum(lines.ends[chosen] - lines.starts[chosen])[:-1])
    letters[starts] = _BLANK
    letters[starts + 1] = _BLANK
    return _irregular(lines, chosen, letters, dtype, least)


def _irregular(lines: Lines, chosen: NDArray[np.intp], letters: NDArray[np.uint8], dtype: str, least: int) -> Table:
    text = letters.tobytes()
    try:
        numbers, counts = read_numbers(text, dtype)
    except Irregular:

        def parses(part: bytes) -> bool:
            try:
                read_numbers(part, dtype)
            except Irregular:
                return False
            return True

        raise lines.bad(int(chosen[first_bad(text, parses)]), "something in it is not a number") from None
    short = np.flatnonzero(counts < least)
    if len(short):
        raise lines.bad(int(chosen[short[0]]), f"it needs {least} numbers")
    width = int(min(counts.max(), _WIDEST - 1))
    first = np.cumsum(counts) - counts
    rows = np.zeros((len(counts), width), dtype)
    for column in range(width):
        there = counts > column
        rows[there, column] = numbers[first[there] + column]
    return Table(rows, counts)
