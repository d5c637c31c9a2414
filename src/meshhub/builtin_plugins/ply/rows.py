"""Rows of differing lengths in numpy: where each begins, and what stands in it.

A row that holds lists tells its length only by the counts in it, so each row is found from the one
before. With equal counts (nearly all files) a fixed layout is tried and verified. Else the length of
a would-be row is computed at *every* position of a stretch at once, and the chain of the true rows
is followed by scipy's graph traversal, in compiled code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.ply.header import Element
from meshhub.errors import UnreadableFile
from meshhub.model.notes import note

Column = NDArray[Any]
Index = NDArray[np.int64]

_FIRST_STRETCH = 1 << 10
_STRETCH = 1 << 20
"""How many positions are looked at together: few at first, for an element of few rows, then ever more."""


@dataclass
class Lists:
    """A list property: how many items each row has, and all items one after the other."""

    counts: Index
    values: Column


@dataclass
class Table:
    """An element's properties by name."""

    count: int
    columns: dict[str, Column]
    lists: dict[str, Lists]


class Body:
    """The data as positions that can be read as any type: bytes in binary, whole numbers in text.

    view: gives an array whose item at a position is the value of that type which begins there
    size: gives how many positions a type takes
    """

    def __init__(
        self, length: int, view: Callable[[str], Column], size: Callable[[str], int], unit: str, closed: bool = True
    ) -> None:
        """`length` is the number of positions, `unit` what they are called in messages.

        Not `closed`, the last of them may have been cut off in its middle.
        """
        self.length = length
        self.view = view
        self.size = size
        self.unit = unit
        self.closed = closed

    def narrowest(self, element: Element) -> int:
        """The fewest positions that a row of the element takes."""
        return sum(self.size(one.count_type or one.type) for one in element.properties)


def binary_body(data: bytes, start: int, order: str) -> Body:
    """The bytes from `start`; `order` is "<" or ">"."""
    length = len(data) - start

    def view(type_: str) -> Column:
        kind = np.dtype(order + type_)
        return np.ndarray((max(0, length - kind.itemsize + 1),), kind, data, start, (1,))

    return Body(length, view, lambda type_: np.dtype(type_).itemsize, "bytes")


def number_body(numbers: NDArray[np.float64], closed: bool = True) -> Body:
    """Numbers that were read from text; not `closed` when the text ends without a blank."""
    return Body(len(numbers), lambda _: numbers, lambda _: 1, "numbers", closed)


def row_starts(body: Body, element: Element, start: int, lines: Index | None = None) -> tuple[Index, int]:
    """Where each row of an element begins, and where the last one ends.

    lines: where the lines of a text begin from `start` on, and where the last one ends.
    Raises UnreadableFile when the data ends before the element does.
    """
    narrowest = body.narrowest(element)
    if start + element.count * narrowest > body.length:
        raise _cut_off(
            element, f"at least {element.count * narrowest} {body.unit}, {max(0, body.length - start)} follow"
        )
    if element.count == 0 or narrowest == 0:
        return np.full(element.count if narrowest else 0, start, np.int64), start
    if lines is not None and len(lines) > element.count and lines[0] == start:
        # numbers too many at the end of a line are no part of the next row
        starts, after = lines[: element.count], lines[1 : element.count + 1]
        if (_ends(body, element, starts) <= after).all():
            return starts, int(after[-1])
    if not element.lists:
        return start + narrowest * np.arange(element.count), start + narrowest * element.count
    first = int(_ends(body, element, np.array([start]))[0])
    if start + (first - start) * element.count <= body.length:
        starts = start + (first - start) * np.arange(element.count)
        ends = _ends(body, element, starts)
        if np.array_equal(ends[:-1], starts[1:]) and int(ends[-1]) <= body.length:
            return starts, int(ends[-1])
    return _chained(body, element, start)


def _chained(body: Body, element: Element, start: int) -> tuple[Index, int]:
    """Row starts by following the chain from the first one, stretch by stretch.

    Data that ends after a whole row makes a wrong count, with a note; inside a row, a file cut off.
    """
    from scipy.sparse import csr_array  # few files need it, and every reader would wait for it
    from scipy.sparse.csgraph import breadth_first_order

    found: list[Index] = []
    rows, at, stretch = 0, start, _FIRST_STRETCH
    while rows < element.count:
        if at >= body.length:
            if rows == 0 or not body.closed:
                raise _cut_off(element, f"{rows} whole ones are there")
            note(
                "wrong_count",
                f"the PLY header tells {element.count} rows of {element.name!r}, the file ends after {rows}: "
                f"read {rows} of {element.count}; check that the file is complete",
            )
            break
        width = min(stretch, body.length - at)
        stretch = min(2 * stretch, _STRETCH)
        after = np.minimum(_ends(body, element, at + np.arange(width)) - at, width)
        # node `width` is the way out; every other node leads to exactly one node behind it
        pointers = np.append(np.arange(width + 1, dtype=np.int32), np.int32(width))
        graph = csr_array((np.ones(width), after.astype(np.int32), pointers), shape=(width + 1, width + 1))
        visited = breadth_first_order(graph, 0, directed=True, return_predecessors=False)[:-1]
        starts = at + visited.astype(np.int64)[: element.count - rows]
        found.append(starts)
        rows += len(starts)
        at = int(_ends(body, element, starts[-1:])[0])
        if at > body.length:
            raise _cut_off(element, f"{rows - 1} whole ones are there")
    return np.concatenate(found), at


def _ends(body: Body, element: Element, starts: Index) -> Index:
    """Where rows that would begin at `starts` would end; behind the data when they cannot be whole."""
    ends = starts
    beyond = body.length + 1
    plain = 0  # what properties without lists take, added up: there may be thousands
    for one in element.properties:
        if one.count_type is None:
            plain += body.size(one.type)
            continue
        ends, plain = ends + plain, 0
        counts, inside = _counts(body, one.count_type, ends)
        longer = ends + body.size(one.count_type) + counts * body.size(one.type)
        ends = np.where(inside & (counts >= 0) & (longer <= body.length), longer, beyond)
    return np.minimum(ends + plain, beyond)


def _counts(body: Body, type_: str, positions: Index) -> tuple[Index, NDArray[np.bool_]]:
    """List counts at positions, and which positions are inside the data; a count is bounded by its length."""
    view = body.view(type_)
    if len(view) == 0:
        return np.zeros(len(positions), np.int64), np.zeros(len(positions), np.bool_)
    inside = positions < len(view)
    raw = view[np.minimum(positions, len(view) - 1)]
    if raw.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            raw = np.where((raw >= 0) & (raw == np.floor(raw)), np.minimum(raw, body.length), -1)
    # a count of 64 bits without sign may turn negative here, which is refused as it should be
    return np.minimum(raw.astype(np.int64), body.length), inside


def table(body: Body, element: Element, starts: Index, wanted: frozenset[str]) -> Table:
    """The wanted properties of an element whose rows begin at `starts`."""
    made = Table(len(starts), {}, {})
    step = _step(starts)
    at = starts
    for one in element.properties:
        if one.count_type is None:
            if one.name in wanted:
                made.columns[one.name] = _typed(_taken(body, one.type, at, step), one.type)
            at = at + body.size(one.type)
            continue
        counts, _ = _counts(body, one.count_type, at)
        at = at + body.size(one.count_type)
        size = body.size(one.type)
        if one.name in wanted:
            equal = int(counts[0]) if step and len(counts) and bool((counts == counts[0]).all()) else 0
            if equal:
                columns = [_taken(body, one.type, at + size * index, step) for index in range(equal)]
                values = np.stack(columns, axis=1).reshape(-1)
            else:
                before = np.cumsum(counts) - counts
                values = body.view(one.type)[
                    np.repeat(at - before * size, counts) + size * np.arange(int(counts.sum()))
                ]
            made.lists[one.name] = Lists(counts, _native(values))
        at = at + counts * size
        step = _step(at)  # two lists may be uneven in rows of one length
    return made


def _step(starts: Index) -> int:
    """The distance between rows when it is always the same, else 0."""
    if len(starts) < 2:
        return 0
    step = int(starts[1] - starts[0])
    return step if bool((np.diff(starts) == step).all()) else 0


def _taken(body: Body, type_: str, positions: Index, step: int) -> Column:
    """The values at positions, which lie `step` apart unless it is 0."""
    view = body.view(type_)
    if step:  # a strided view is far cheaper than a gather
        return view[int(positions[0]) : int(positions[-1]) + 1 : step]
    gathered: Column = view[positions]
    return gathered


def _typed(values: Column, type_: str) -> Column:
    """Values in native byte order; those of a text as the header's type, bounded to its range."""
    kind = np.dtype(type_)
    if values.dtype.kind != "f" or kind.itemsize == 8:
        return _native(values)
    if kind.kind == "f":
        with np.errstate(over="ignore"):
            return values.astype(np.float32)
    limits = np.iinfo(kind)
    whole: Column = np.clip(np.rint(np.nan_to_num(values)), limits.min, limits.max).astype(kind)
    return whole


def _native(values: Column) -> Column:
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def _cut_off(element: Element, found: str) -> UnreadableFile:
    return UnreadableFile(
        f"the PLY file is cut off: its header tells {element.count} rows of {element.name!r}, {found}; "
        "send the whole file, or export it again"
    )
