"""Text of numbers, read and written in columns: no Python loop over rows.

The layout of most files is regular (one blank between numbers, as many in each row), and a CSV
parser reads those several times faster than any other way that was measured. What is irregular is
brought into shape by numpy first, so the result is the same, only slower.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
from numpy.typing import NDArray

_BLANK = np.zeros(256, np.bool_)
_BLANK[[9, 10, 11, 12, 13, 32]] = True
_NEWLINE = 10
_BLOCK = 1 << 22
_TYPES: dict[str, pa.DataType] = {"f4": pa.float32(), "f8": pa.float64(), "i4": pa.int32(), "i8": pa.int64()}
_DTYPES: dict[pa.DataType, np.dtype[Any]] = {arrow: np.dtype(code) for code, arrow in _TYPES.items()}


class Irregular(ValueError):
    """The text is not the table of numbers it was taken for."""


def as_numpy(array: pa.Array) -> NDArray[Any]:
    """A primitive arrow array without nulls as a read-only numpy view (`to_numpy` would import pandas)."""
    kind = _DTYPES[array.type]
    buffer = array.buffers()[1]
    if buffer is None:
        return np.empty(0, kind)
    return np.frombuffer(buffer, kind)[array.offset : array.offset + len(array)]


def read_rows(
    text: bytes | memoryview, width: int, dtype: str, *, delimiter: str = " ", take: Sequence[int] | None = None
) -> NDArray[Any]:
    """A regular table, `width` fields a row, as an (n, len(take)) array.

    dtype: "f4", "f8", "i4" or "i8".
    take:  which fields to read; the others may hold any text. All of them unless told.

    Raises Irregular when any row has another number of fields or one of them is no number; then
    `read_numbers` or a complete parser must have a look.
    """
    fields = list(range(width)) if take is None else list(take)
    if len(text) == 0:
        return np.empty((0, len(fields)), dtype)
    names = [f"f{index}" for index in range(width)]
    wanted = [names[index] for index in fields]
    try:
        table = csv.read_csv(
            pa.BufferReader(pa.py_buffer(text)),
            read_options=csv.ReadOptions(use_threads=False, column_names=names, block_size=_BLOCK),
            parse_options=csv.ParseOptions(delimiter=delimiter, quote_char=False, newlines_in_values=False),
            convert_options=csv.ConvertOptions(
                include_columns=wanted,
                column_types=dict.fromkeys(wanted, _TYPES[dtype]),
                null_values=[],
                strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        raise Irregular(str(error).splitlines()[0]) from None
    made = np.empty((table.num_rows, len(fields)), dtype)
    for index, column in enumerate(table.columns):
        start = 0
        for chunk in column.chunks:
            if chunk.null_count:
                raise Irregular("an empty field")
            made[start : start + len(chunk), index] = as_numpy(chunk)
            start += len(chunk)
    return made


def read_numbers(text: bytes | memoryview, dtype: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Any text of numbers between blanks: all of them in order, and how many stand on each line.

    Returns the (n,) numbers and the (lines,) counts; lines without numbers count 0.
    Raises Irregular when something is not a number.
    """
    letters = np.frombuffer(text, np.uint8)
    blank = _BLANK[letters]
    starts = ~blank
    starts[1:] &= blank[:-1]
    newlines = np.flatnonzero(letters == _NEWLINE)
    before = np.searchsorted(np.flatnonzero(starts), np.append(newlines, len(letters)))
    counts = np.diff(before, prepend=0)
    if len(counts) and counts[-1] == 0 and (len(letters) == 0 or letters[-1] == _NEWLINE):
        counts = counts[:-1]
    keep = ~blank
    keep[1:] |= ~blank[:-1]  # the first blank after a number becomes its line end
    keep[:1] = ~blank[:1]
    column = np.where(blank, np.uint8(_NEWLINE), letters)[keep]
    return read_rows(column.data, 1, dtype)[:, 0], counts


def _texts(values: NDArray[Any]) -> pa.Array:
    return pc.cast(pa.array(np.ascontiguousarray(values)), pa.string())


def shortest(values: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """The same numbers as float32 where each of them is one, so that their text is short.

    A float32's shortest text names that float32 and no other; read as float64 it may differ from it
    beyond float32's precision.
    """
    values = values + 0.0  # -0.0 would be written "-0"
    if values.dtype == np.float32:
        return values
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32)
    return narrow if np.array_equal(narrow, values) else values


def write_rows(literals: Sequence[str], columns: Sequence[NDArray[Any]]) -> memoryview:
    """`literals[0] column[0] literals[1] column[1] … literals[-1]` for every row, as UTF-8.

    Numbers are written as the shortest text that reads back the same; there is one literal more
    than there are columns. All columns have one length.
    """
    if len(literals) != len(columns) + 1:
        raise ValueError("one literal more than columns")
    if len(columns[0]) == 0:
        return memoryview(b"")
    pieces: list[Any] = []
    for literal, column in zip(literals, columns, strict=False):
        pieces += [_literal(literal), _texts(column)]
    step = 1 << 20  # a string array holds at most 2 GiB; slices also bound the memory
    if len(columns[0]) <= step:
        return _joined(pieces, literals[-1])
    out = bytearray()
    for start in range(0, len(columns[0]), step):
        out += _joined([p.slice(start, step) if isinstance(p, pa.Array) else p for p in pieces], literals[-1])
    return memoryview(out)


def _literal(text: str) -> pa.Scalar:
    # without its type, pyarrow looks for dateutil on the disk, every time: a hundred times slower
    return pa.scalar(text, pa.string())


def _joined(pieces: list[Any], last: str) -> memoryview:
    rows = pc.binary_join_element_wise(*pieces, _literal(last), _literal(""))
    offsets = np.frombuffer(rows.buffers()[1], np.int32)
    return memoryview(rows.buffers()[2])[offsets[rows.offset] : offsets[rows.offset + len(rows)]]
