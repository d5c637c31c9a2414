"""Location and values of PLY rows that differ in length.

A row with lists has a length that depends on the counts inside it, so the start of each row depends on the row
before. Nearly all files have equal counts, so a fixed row length is tried first and verified. Otherwise, the length of
a potential row is computed at *every* position of a block at once, and scipy's graph traversal, which is compiled,
follows the chain of actual rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.ply.header import Element
from meshhub.errors import CUT_OFF, UnreadableFile, quote
from meshhub.model.notes import note

Column = NDArray[Any]
Index = NDArray[np.int64]
Rows: TypeAlias = Index | range
"""Position of each row; a range for rows of equal layout, which need no memory for each."""

_MIN_BLOCK_COUNT = 1 << 10
"""Positions in the first block; small, so that a small element is fast; each block doubles."""

_MAX_BLOCK_COUNT = 1 << 20
"""Positions in the largest block; bounds the memory of the graph."""


@dataclass
class ListColumn:
    """List property: the item count of each row, and all items in order."""

    counts: Index
    values: Column


@dataclass(frozen=True)
class TextLines:
    """Lines of a text that hold numbers.

    starts: (n + 1,) position of the first number of each line, and the end of the last line.
    numbers: (n,) line of the file, counted from 1.
    """

    starts: Index
    numbers: Index

    def find(self, position: int) -> int:
        """Return the line of the file in which a position is."""
        return int(self.numbers[np.searchsorted(self.starts[:-1], position, side="right") - 1])


@dataclass
class ElementTable:
    """Selected properties of an element, by name; `starts` has the position of each row, `lines` that in a text."""

    starts: Rows
    lines: TextLines | None
    columns: dict[str, Column] = field(default_factory=dict)
    lists: dict[str, ListColumn] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(self.starts)

    def row_name(self, kind: str, row: int) -> str:
        """Return the location of a row for messages: its line in a text, otherwise its number from 0."""
        place = f"{kind} {row}" if self.lines is None else f"line {self.lines.find(int(self.starts[row]))}"
        return f"{place} of the PLY file"


class DataSection:
    """Data after the header, as positions from which values are read: bytes in binary files, numbers in text."""

    def __init__(
        self,
        length: int,
        view: Callable[[str], Column],
        size: Callable[[str], int],
        unit: str,
        *,
        is_complete: bool = True,
        lines: TextLines | None = None,
    ) -> None:
        """Create a section.

        Args:
            length: Number of positions.
            view: Return an array whose item at a position is the value of the given type that starts there.
            size: Return the number of positions that a value of the given type takes.
            unit: Name of the positions in messages.
            is_complete: Whether the last position is complete; False if the file may end inside a number.
        """
        self.length = length
        self.view = view
        self.size = size
        self.unit = unit
        self.is_complete = is_complete
        self.lines = lines

    def min_row_size(self, element: Element) -> int:
        """Return the smallest number of positions that a row of the element takes."""
        return sum(self.size(column.count_type or column.type) for column in element.properties)


def binary_section(data: bytes, start: int, order: str) -> DataSection:
    """Return the bytes from `start` on as a section; `order` is "<" or ">"."""
    length = len(data) - start

    def view(type_: str) -> Column:
        dtype = np.dtype(order + type_)
        return np.ndarray((max(0, length - dtype.itemsize + 1),), dtype, data, start, (1,))

    return DataSection(length, view, lambda type_: np.dtype(type_).itemsize, "bytes")


def number_section(numbers: NDArray[np.float64], lines: TextLines, *, is_complete: bool = True) -> DataSection:
    """Return numbers parsed from text as a section; `is_complete` is False if the text ends without white space."""
    return DataSection(len(numbers), lambda _: numbers, lambda _: 1, "numbers", is_complete=is_complete, lines=lines)


def locate_rows(section: DataSection, element: Element, start: int) -> tuple[Rows, int]:
    """Find the start of each row of an element, and the end of the last row.

    Args:
        start: Position of its first row.
    Raises:
        UnreadableFile: The data ends before the element, or a line of a text does not hold its row.
    """
    min_size = section.min_row_size(element)
    if start + element.count * min_size > section.length:
        available = max(0, section.length - start)
        raise _cut_off(element, f"which need {element.count * min_size} {section.unit} or more; {available} follow")
    if element.count == 0 or min_size == 0:
        return np.full(element.count if min_size else 0, start, np.int64), start
    by_line = _locate_lines(section, element, start)
    if by_line is not None:
        return by_line
    size = int(_row_ends(section, element, np.array([start]))[0]) - start
    rows = range(start, start + size * element.count, size)
    if rows.stop <= section.length and _are_rows_equal(section, element, rows):
        return rows, rows.stop
    return _follow_rows(section, element, start)


def _are_rows_equal(section: DataSection, element: Element, rows: range) -> bool:
    """Return whether all rows have lists as long as those of the first."""
    offset = 0
    for prop in element.properties:
        if prop.count_type is not None:
            counts = _read_column(section, prop.count_type, rows, offset)
            if not (counts == counts[0]).all():
                return False
            offset += section.size(prop.count_type) + int(counts[0]) * section.size(prop.type)
        else:
            offset += section.size(prop.type)
    return True


def _locate_lines(section: DataSection, element: Element, start: int) -> tuple[Index, int] | None:
    """Find the rows of an element with one row on each line; None if rows and lines differ.

    Raises:
        UnreadableFile: A line does not hold its row.
    """
    if section.lines is None:
        return None
    first = int(np.searchsorted(section.lines.starts, start))
    lines = section.lines.starts[first:]
    if len(lines) <= element.count or lines[0] != start:
        return None
    # extra numbers at the end of a line are not part of the next row
    starts, line_ends = lines[: element.count], lines[1 : element.count + 1]
    row_ends = _row_ends(section, element, starts)
    is_short = row_ends > line_ends
    if not is_short.any():
        return starts, int(line_ends[-1])
    # long lists may continue on more lines, and a text may have any number of values on a line
    has_line_for_each = len(lines) == element.count + 1 if element.list_count else row_ends[0] == line_ends[0]
    if has_line_for_each:
        line = section.lines.numbers[first + int(is_short.argmax())]
        raise UnreadableFile(
            f"line {line} of the PLY file is not a complete row of {quote(element.name)}; export the model again",
            values={"line": line},
        )
    return None


def _follow_rows(section: DataSection, element: Element, start: int) -> tuple[Index, int]:
    """Find the row starts by following the chain from the first row, block by block.

    If the data ends between two rows, the count in the header is wrong, so the rows are read with a note. If it ends
    inside a row, the file is cut off.
    """
    from scipy.sparse import (
        csr_array,
    )  # imported here, because few files need it, and the import would slow down every read
    from scipy.sparse.csgraph import breadth_first_order

    blocks: list[Index] = []
    row_count, position, block_size = 0, start, _MIN_BLOCK_COUNT
    while row_count < element.count:
        if position >= section.length:
            if row_count == 0 or not section.is_complete:
                raise _cut_off(element, f"{row_count} are complete")
            note(
                "wrong_count",
                f"the PLY header declares {element.count} rows of {quote(element.name)}: "
                f"read {row_count} of {element.count}; check that the file is complete",
                declared=element.count,
                read=int(row_count),
            )
            break
        width = min(block_size, section.length - position)
        block_size = min(2 * block_size, _MAX_BLOCK_COUNT)
        offsets = np.minimum(_row_ends(section, element, position + np.arange(width)) - position, width)
        # node `width` is the exit; every other node has one edge, to a later node
        pointers = np.append(np.arange(width + 1, dtype=np.int32), np.int32(width))
        graph = csr_array((np.ones(width), offsets.astype(np.int32), pointers), shape=(width + 1, width + 1))
        visited = breadth_first_order(graph, 0, directed=True, return_predecessors=False)[:-1]
        starts = position + visited.astype(np.int64)[: element.count - row_count]
        blocks.append(starts)
        row_count += len(starts)
        position = int(_row_ends(section, element, starts[-1:])[0])
        if position > section.length:
            raise _cut_off(element, f"{row_count - 1} are complete")
    return np.concatenate(blocks), position


def _row_ends(section: DataSection, element: Element, starts: Index) -> Index:
    """Return the ends of potential rows at `starts`; a position beyond the data for rows that do not fit."""
    ends = starts
    beyond = section.length + 1
    pending = 0  # the size of properties without lists, summed first, because an element may have thousands
    for prop in element.properties:
        if prop.count_type is None:
            pending += section.size(prop.type)
            continue
        ends, pending = ends + pending, 0
        counts, is_inside = _read_counts(section, prop.count_type, ends)
        list_ends = ends + section.size(prop.count_type) + counts * section.size(prop.type)
        ends = np.where(is_inside & (counts >= 0) & (list_ends <= section.length), list_ends, beyond)
    return np.minimum(ends + pending, beyond)


def _read_counts(section: DataSection, type_: str, positions: Index) -> tuple[Index, NDArray[np.bool_]]:
    """Return the list counts at positions, clipped to the data's length, and which positions are inside the data."""
    view = section.view(type_)
    if len(view) == 0:
        return np.zeros(len(positions), np.int64), np.zeros(len(positions), np.bool_)
    is_inside = positions < len(view)
    counts = view[np.minimum(positions, len(view) - 1)]
    if counts.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            is_whole = (counts >= 0) & (counts == np.floor(counts))
            counts = np.where(is_whole, np.minimum(counts, section.length), -1)
    # a uint64 count beyond int64 becomes negative here, and negative counts are rejected
    return np.minimum(counts.astype(np.int64), section.length), is_inside


def read_table(section: DataSection, element: Element, starts: Rows, selection: frozenset[str]) -> ElementTable:
    """Read properties of an element.

    Args:
        starts: Start of each row.
        selection: Names of the properties to read.
    """
    if isinstance(starts, range):
        return _read_equal_rows(section, element, starts, selection)
    table = ElementTable(starts, section.lines)
    step = _row_step(starts)
    positions = starts
    for prop in element.properties:
        if prop.count_type is None:
            if prop.name in selection:
                table.columns[prop.name] = _cast(_read_values(section, prop.type, positions, step), prop.type)
            positions = positions + section.size(prop.type)
            continue
        counts, _ = _read_counts(section, prop.count_type, positions)
        positions = positions + section.size(prop.count_type)
        if prop.name in selection:
            values = _read_items(section, prop.type, positions, counts, step)
            table.lists[prop.name] = ListColumn(counts, _to_native(values))
        positions = positions + counts * section.size(prop.type)
        step = _row_step(positions)  # two lists may differ in length while the rows have equal lengths
    return table


def _read_equal_rows(section: DataSection, element: Element, rows: range, selection: frozenset[str]) -> ElementTable:
    """Read properties of rows of equal layout."""
    table = ElementTable(rows, section.lines)
    offset = 0
    for prop in element.properties:
        size = section.size(prop.type)
        if prop.count_type is None:
            if prop.name in selection:
                table.columns[prop.name] = _cast(_read_column(section, prop.type, rows, offset), prop.type)
            offset += size
            continue
        count = int(_read_column(section, prop.count_type, rows, offset)[0])
        offset += section.size(prop.count_type)
        if prop.name in selection:
            items = np.empty((len(rows), count), np.dtype(prop.type) if section.unit == "bytes" else np.float64)
            for index in range(count):
                items[:, index] = _read_column(section, prop.type, rows, offset + index * size)
            table.lists[prop.name] = ListColumn(np.broadcast_to(np.int64(count), len(rows)), items.reshape(-1))
        offset += count * size
    return table


def _read_column(section: DataSection, type_: str, rows: range, offset: int) -> Column:
    """Return a view of the values at an offset in rows of equal layout."""
    return section.view(type_)[rows.start + offset :: rows.step][: len(rows)]


def _read_items(section: DataSection, type_: str, positions: Index, counts: Index, step: int) -> Column:
    """Return the items of all lists in order; each list starts at its position."""
    size = section.size(type_)
    if step and len(counts) and counts[0] and bool((counts == counts[0]).all()):
        columns = [_read_values(section, type_, positions + size * index, step) for index in range(int(counts[0]))]
        return np.stack(columns, axis=1).reshape(-1)
    before = np.cumsum(counts) - counts
    items: Column = section.view(type_)[
        np.repeat(positions - before * size, counts) + size * np.arange(int(counts.sum()))
    ]
    return items


def _row_step(starts: Index) -> int:
    """Return the distance between rows if it is constant, otherwise 0."""
    if len(starts) < 2:
        return 0
    step = int(starts[1] - starts[0])
    return step if bool((np.diff(starts) == step).all()) else 0


def _read_values(section: DataSection, type_: str, positions: Index, step: int) -> Column:
    """Return the values at positions, which are `step` apart unless it is 0."""
    view = section.view(type_)
    if step:  # a strided view is far faster than indexing
        return view[int(positions[0]) : int(positions[-1]) + 1 : step]
    values: Column = view[positions]
    return values


def _cast(values: Column, type_: str) -> Column:
    """Return values in native byte order; cast numbers from text to the type in the header, clipped to its range."""
    dtype = np.dtype(type_)
    if values.dtype.kind != "f" or dtype.itemsize == 8:
        return _to_native(values)
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return values.astype(np.float32)
    limits = np.iinfo(dtype)
    integers: Column = np.clip(np.rint(np.nan_to_num(values)), limits.min, limits.max).astype(dtype)
    return integers


def _to_native(values: Column) -> Column:
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def _cut_off(element: Element, detail: str) -> UnreadableFile:
    return UnreadableFile(
        f"the PLY file is cut off: its header declares {element.count} rows of {quote(element.name)}, {detail}; "
        "export it again",
        values=CUT_OFF,
    )
