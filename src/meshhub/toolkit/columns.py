"""Numeric text, read and written in columns: no Python loop over rows.

Most files are regular: one blank between numbers, the same count in each row. A CSV parser reads them several times
faster than numpy. Numpy first normalizes irregular text, so the result is the same, but slower.
"""

# why pyarrow, and what was measured: docs/decisions/0042-size-of-the-base.md
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
from numpy.typing import NDArray

try:
    # `pyarrow.compute` has the same names, but takes longer to import than all else of pyarrow: it builds a documented
    # Python function for each of 300 kernels
    from pyarrow import _compute as kernels
except ImportError:
    import pyarrow.compute as kernels

from meshhub.errors import quote
from meshhub.toolkit.threads import MAX_THREADS, map_threads

IS_BLANK = np.zeros(256, np.bool_)
"""Whether each ASCII code is white space."""
IS_BLANK[[9, 10, 11, 12, 13, 32]] = True
_NEWLINE = 10
"""ASCII code of the line feed, which also ends the lines of CRLF files."""

_BLOCK_BYTES = 1 << 22
"""Bytes that pyarrow parses at a time; bounds the memory for one block."""

MIN_BYTES_PER_THREAD = 1 << 19
"""Bytes of text from which a thread pays off."""

_MAX_LINE_BYTES = 1 << 16
"""Bytes in which a line feed is looked for where a text is halved."""

MIN_ROWS_PER_THREAD = 1 << 15
"""Rows from which a thread pays off."""

_MAX_ROWS_PER_SLICE = 1 << 20
"""Rows written at a time; bounds the memory, and keeps a string array below its limit of 2 GiB."""

_MANY_ROWS = 1_000_000
"""Rows whose hash table takes tens of megabytes."""

_TYPES: dict[str, pa.DataType] = {"f4": pa.float32(), "f8": pa.float64(), "i4": pa.int32(), "i8": pa.int64()}
_DTYPES: dict[pa.DataType, np.dtype[Any]] = {arrow: np.dtype(code) for code, arrow in _TYPES.items()}

# the first call starts pyarrow's allocator and its functions; if another thread forked meanwhile, the child would hang
kernels.call_function("dictionary_encode", [pa.nulls(1, pa.int64())])


class TextColumn(NamedTuple):
    """Column of texts.

    text: (k,) UTF-8 codes of all texts, one after the other
    ends: (n + 1,) start of each text, then the end of the last one
    """

    text: NDArray[np.uint8]
    ends: NDArray[np.int64]

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.ends) - 1

    def rows(self, rows: slice) -> TextColumn:
        """Return the texts of consecutive rows."""
        ends = self.ends[rows.start : rows.stop + 1]
        return TextColumn(self.text[ends[0] : ends[-1]], ends - ends[0])


class Irregular(ValueError):
    """Error: the text is not a regular table of numbers.

    Attributes:
        line: Index of the faulty line, from 0; None if unknown.
        word: Text that is not a number; "" if unknown.
    """

    def __init__(self, message: str, line: int | None = None, word: str = "") -> None:
        """Create the error."""
        super().__init__(message)
        self.line = line
        self.word = word


def as_numpy(array: pa.Array) -> NDArray[Any]:
    """View a primitive arrow array without nulls as a read-only numpy array (`to_numpy` would import pandas)."""
    dtype = _DTYPES[array.type]
    buffer = array.buffers()[1]
    if buffer is None:
        return np.empty(0, dtype)
    return np.frombuffer(buffer, dtype)[array.offset : array.offset + len(array)]


def encode_rows(rows: pa.Array) -> pa.DictionaryArray:
    """Return the distinct values of an array in order of first occurrence, and the index of each value among them."""
    return kernels.call_function("dictionary_encode", [rows])


def encode_bytes(rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return the distinct rows of a contiguous array (n, k), and the distinct row of each row, by their bytes."""
    width = rows.shape[1] * rows.itemsize
    encoded = encode_rows(pa.Array.from_buffers(pa.binary(width), len(rows), [None, pa.py_buffer(rows)]))
    if len(rows) > _MANY_ROWS:
        # the memory of the hash table, which Arrow would keep
        pa.default_memory_pool().release_unused()
    values = np.frombuffer(encoded.dictionary.buffers()[1], rows.dtype, len(encoded.dictionary) * rows.shape[1])
    return values.reshape(-1, rows.shape[1]), as_numpy(encoded.indices)


def read_rows(
    text: bytes | memoryview, width: int, dtype: str, *, delimiter: str = " ", take: Sequence[int] | None = None
) -> NDArray[Any]:
    """Read a regular table of numbers.

    Args:
        text: One row per line, without a blank at either end of a line.
        width: Fields per row.
        dtype: "f4", "f8", "i4" or "i8".
        delimiter: Single character between fields.
        take: Fields to read; the others may hold any text. Default: all fields.
    Returns:
        (n, len(take)) numbers.
    Raises:
        Irregular: A row has a different number of fields, or a field is not a number. On this error, use `read_numbers`
            or a complete parser.
    """
    fields = list(range(width)) if take is None else list(take)
    if len(text) == 0:
        return np.empty((0, len(fields)), dtype)
    tables = map_threads(lambda part: _read_table(part, width, dtype, delimiter, fields), _halve_lines(text))
    ends = np.cumsum([table.num_rows for table in tables])
    rows = np.empty((ends[-1], len(fields)), dtype)
    for table, end in zip(tables, ends.tolist(), strict=True):
        for index, column in enumerate(table.columns):
            start = end - table.num_rows
            for chunk in column.chunks:
                if chunk.null_count:
                    raise Irregular("empty field")
                rows[start : start + len(chunk), index] = as_numpy(chunk)
                start += len(chunk)
    return rows


def _halve_lines(text: bytes | memoryview) -> list[bytes | memoryview]:
    """Return both halves of a long text, which ends at a line feed, or else the text."""
    middle = len(text) // 2
    if middle < MIN_BYTES_PER_THREAD:
        return [text]
    view = memoryview(text)
    end = middle + bytes(view[middle : middle + _MAX_LINE_BYTES]).find(b"\n") + 1
    return [text] if end in (middle, len(text)) else [view[:end], view[end:]]


def _read_table(text: bytes | memoryview, width: int, dtype: str, delimiter: str, fields: list[int]) -> pa.Table:
    names = [f"f{index}" for index in range(width)]
    columns = [names[index] for index in fields]
    try:
        return csv.read_csv(
            pa.BufferReader(pa.py_buffer(text)),
            read_options=csv.ReadOptions(use_threads=False, column_names=names, block_size=_BLOCK_BYTES),
            parse_options=csv.ParseOptions(delimiter=delimiter, quote_char=False, newlines_in_values=False),
            convert_options=csv.ConvertOptions(
                include_columns=columns,
                column_types=dict.fromkeys(columns, _TYPES[dtype]),
                null_values=[],
                strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        raise Irregular(str(error).splitlines()[0]) from None


def read_numbers(text: bytes | memoryview, dtype: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Read numbers separated by any white space, and count those on each line.

    Args:
        text: Numbers in any layout.
        dtype: "f4", "f8", "i4" or "i8".
    Returns:
        (n,) numbers in order, and (lines,) counts; 0 for lines without numbers.
    Raises:
        Irregular: The text contains something other than numbers; the message names the line and the word.
    """
    characters = np.frombuffer(text, np.uint8)
    blank = IS_BLANK[characters]
    starts = ~blank
    starts[1:] &= blank[:-1]
    newlines = np.flatnonzero(characters == _NEWLINE)
    before = np.searchsorted(np.flatnonzero(starts), np.append(newlines, len(characters)))
    counts = np.diff(before, prepend=0)
    if len(counts) and counts[-1] == 0 and (len(characters) == 0 or characters[-1] == _NEWLINE):
        counts = counts[:-1]
    keep = ~blank
    keep[1:] |= ~blank[:-1]  # the first blank after a number becomes a line end
    keep[:1] = ~blank[:1]
    column = np.where(blank, np.uint8(_NEWLINE), characters)[keep]
    try:
        return read_rows(column.data, 1, dtype)[:, 0], counts
    except Irregular:
        raise _find_bad_number(column.tobytes(), counts, dtype) from None


def _find_bad_number(column: bytes, counts: NDArray[np.int64], dtype: str) -> Irregular:
    """Return the error for the first word, one per line of `column`, that is not a number.

    Args:
        column: Words, one per line.
        counts: Words on each line of the text.
        dtype: Type of the numbers.
    """
    number = find_irregular_line(column, lambda part: read_rows(part, 1, dtype))
    word = column.split(b"\n", number + 1)[number].decode("utf-8", "replace")
    line = int(np.searchsorted(np.cumsum(counts), number, side="right"))
    kind = "a number" if dtype.startswith("f") else "an integer in range"
    return Irregular(f"{quote(word)} in line {line + 1} is not {kind}", line, word)


def find_irregular_line(text: bytes, parse: Callable[[bytes], object]) -> int:
    """Return the index of the first line for which `parse` raises Irregular.

    Bisection, at about twice the cost of parsing the whole text.

    Args:
        text: Text for which `parse` raises Irregular.
        parse: Parses consecutive lines.
    """
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == _NEWLINE) + 1
    if not text.endswith(b"\n"):
        ends = np.append(ends, len(text))
    low, high = 0, len(ends)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            parse(text[int(ends[low - 1]) if low else 0 : int(ends[middle - 1])])
        except Irregular:
            high = middle
        else:
            low = middle
    return low


def blank_comments(characters: NDArray[np.uint8], marks: NDArray[np.intp]) -> NDArray[np.uint8]:
    """Replace comments with spaces; line feeds stay.

    Args:
        characters: (n,) text.
        marks: Positions of comment marks, ascending; a comment ends where its line ends.
    Returns:
        (n,) copy of the text.
    """
    result = characters.copy()
    if len(marks) == 0:
        return result
    ends = np.append(np.flatnonzero(characters == _NEWLINE), len(characters))
    ends = ends[np.searchsorted(ends, marks)]
    first = np.flatnonzero(np.diff(ends, prepend=-1))
    boundaries = np.stack([marks[first], ends[first]], axis=1).ravel()
    is_comment = np.resize([False, True], len(boundaries) + 1)
    result[np.repeat(is_comment, np.diff(boundaries, prepend=0, append=len(characters)))] = ord(" ")
    return result


def _format_column(values: NDArray[Any] | TextColumn) -> pa.Array:
    if isinstance(values, TextColumn):
        ends = pa.py_buffer(values.ends.astype(np.int32))
        return pa.StringArray.from_buffers(len(values), ends, pa.py_buffer(values.text))
    # `pa.array` would import numpy.ma
    column = np.ascontiguousarray(values)
    numbers = pa.Array.from_buffers(pa.from_numpy_dtype(column.dtype), len(column), [None, pa.py_buffer(column)])
    return kernels.call_function("cast", [numbers], kernels.CastOptions.safe(pa.string()))


def shortest(values: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """Return the numbers as float32 if all are exact float32 values, because their text is then short.

    The shortest text of a float32 value identifies it among float32 values only: read as float64, it may differ
    beyond float32 precision.
    """
    values = values + 0.0  # -0.0 would be written "-0"
    if values.dtype == np.float32:
        return values
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32)
    return narrow if np.array_equal(narrow, values) else values


def write_rows(literals: Sequence[str], columns: Sequence[NDArray[Any] | TextColumn]) -> memoryview:
    """Write `literals[0] column[0] literals[1] column[1] … literals[-1]` for every row.

    Args:
        literals: Text around the columns; one more than `columns`.
        columns: Columns of equal length. Each number becomes the shortest text that reads back to the same value.
    Returns:
        UTF-8 text.
    Raises:
        ValueError: The number of literals is wrong.
    """
    if len(literals) != len(columns) + 1:
        raise ValueError(f"{len(columns)} columns need {len(columns) + 1} literals, not {len(literals)}")
    if len(columns[0]) == 0:
        return memoryview(b"")
    count = len(columns[0])
    length = min(_MAX_ROWS_PER_SLICE, max(MIN_ROWS_PER_THREAD, -(-count // MAX_THREADS)))
    if count <= length:
        return _write_slice(literals, columns)
    slices = [slice(start, start + length) for start in range(0, count, length)]
    out = bytearray()
    for number in range(0, len(slices), MAX_THREADS):
        group = slices[number : number + MAX_THREADS]
        for text in map_threads(
            lambda rows: _write_slice(literals, [_take_rows(column, rows) for column in columns]), group
        ):
            out += text
    return memoryview(out)


def _take_rows(column: NDArray[Any] | TextColumn, rows: slice) -> NDArray[Any] | TextColumn:
    return column.rows(rows) if isinstance(column, TextColumn) else column[rows]


def _write_slice(literals: Sequence[str], columns: Sequence[NDArray[Any] | TextColumn]) -> memoryview:
    pieces: list[Any] = []
    for literal, column in zip(literals, columns, strict=False):
        pieces += [_literal(literal), _format_column(column)]
    rows = kernels.call_function("binary_join_element_wise", [*pieces, _literal(literals[-1]), _literal("")])
    offsets = np.frombuffer(rows.buffers()[1], np.int32)
    return memoryview(rows.buffers()[2])[offsets[rows.offset] : offsets[rows.offset + len(rows)]]


def _literal(text: str) -> pa.Scalar:
    # to infer the type, pyarrow would search for dateutil on disk at every call, which is a hundred times slower
    return pa.scalar(text, pa.string())
