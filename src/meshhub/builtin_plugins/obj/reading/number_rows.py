"""Numbers of `v`, `vt` and `vn` statements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.obj.reading.lines import Index, Lines, remove_comments
from meshhub.toolkit.columns import Irregular, read_numbers, read_rows

_BLANK, _NEWLINE, _COMMA, _POINT = 32, 10, 44, 46
"""ASCII codes."""

_MAX_NUMBERS_COUNT = 7
"""Maximum numbers kept per line: x y z and r g b a."""

_MAX_FIRST_LINE_BYTES = 256
"""Maximum bytes of the first line that show whether the layout is regular; seven numbers take fewer."""


@dataclass(frozen=True, eq=False)
class NumberRows:
    """Numbers of all lines with one statement.

    rows: (n, k) numbers; short lines are padded with zeros.
    counts: (n,) numbers on each line; None if every line has k.
    """

    rows: NDArray[Any]
    counts: NDArray[np.int64] | None = None


def read_number_rows(lines: Lines, statement: int, dtype: str, min_count: int) -> NumberRows:
    """Read the numbers of all lines with a statement.

    Args:
        statement: V, VT or VN.
        dtype: "f4" or "f8".
        min_count: Numbers that each line needs.
    Raises:
        UnreadableFile: A line has too few numbers, or text that is not a number; the message names the line.
    """
    chosen = lines.find(statement)
    text = lines.join(chosen)
    if len(chosen) == 0:
        return NumberRows(np.empty((0, min_count), dtype))
    first_line = lines.text[int(lines.starts[chosen[0]]) : int(lines.ends[chosen[0]])][:_MAX_FIRST_LINE_BYTES]
    width = first_line.count(b" ")
    if first_line.endswith(b"\n") and min_count <= width <= _MAX_NUMBERS_COUNT:
        try:
            return NumberRows(read_rows(text, width + 1, dtype, take=range(1, width + 1)))
        except Irregular:
            pass
    characters = remove_comments(text)
    starts = np.append(0, np.cumsum(lines.lengths(chosen))[:-1])
    characters[starts] = _BLANK
    characters[starts + 1] = _BLANK
    _replace_commas(characters)
    return _read_irregular(lines, chosen, characters, dtype, min_count)


def _replace_commas(characters: NDArray[np.uint8]) -> None:
    """Replace decimal commas by points if the text has no points, and commas before a space by spaces."""
    commas = np.flatnonzero(characters == _COMMA)
    if not len(commas):
        return
    if not (characters == _POINT).any():
        characters[commas] = _POINT
        return
    is_separator = np.isin(characters[np.minimum(commas + 1, len(characters) - 1)], (_BLANK, _NEWLINE))
    characters[commas[is_separator]] = _BLANK


def _read_irregular(
    lines: Lines, chosen: Index, characters: NDArray[np.uint8], dtype: str, min_count: int
) -> NumberRows:
    """Read the numbers of chosen lines of any layout, without their keywords. Raises UnreadableFile."""
    try:
        numbers, counts = read_numbers(characters.data, dtype)
    except Irregular as error:
        raise lines.error(int(chosen[error.line or 0]), "a field is not a number") from None
    short = np.flatnonzero(counts < min_count)
    if len(short):
        raise lines.error(int(chosen[short[0]]), f"the line needs {min_count} numbers")
    width = int(min(counts.max(), _MAX_NUMBERS_COUNT))
    first = np.cumsum(counts) - counts
    rows = np.zeros((len(counts), width), dtype)
    for column in range(width):
        has_column = counts > column
        rows[has_column, column] = numbers[first[has_column] + column]
    return NumberRows(rows, counts)
