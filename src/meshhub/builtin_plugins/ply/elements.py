"""Elements of a PLY file as tables, from any encoding."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.ply.header import Element, Header
from meshhub.builtin_plugins.ply.row_layout import (
    DataSection,
    ElementTable,
    Index,
    binary_section,
    locate_rows,
    number_section,
    read_table,
)
from meshhub.errors import UnreadableFile
from meshhub.toolkit.columns import Irregular, read_numbers, read_rows

Selection = dict[str, frozenset[str]]
"""Property names to read, by element name."""

_MAX_FIRST_LINE_BYTES = 65_536
"""Bytes searched for the first line of a regular table; longer lines go to the general parser."""


def read_elements(data: bytes, header: Header, selection: Selection) -> dict[str, ElementTable]:
    """Read the selected elements.

    Args:
        data: The whole file.
        header: Its parsed header.
        selection: Elements and properties to read.
    Returns:
        Tables by element name; if a name repeats, the first element with it.
    Raises:
        UnreadableFile: The data is cut off or damaged.
    """
    last = max((index for index, element in enumerate(header.elements) if element.name in selection), default=-1)
    elements = header.elements[: last + 1]
    if header.encoding == "ascii":
        return _read_text(data[header.data_start :], elements, selection)
    order = "<" if header.encoding == "binary_little_endian" else ">"
    return _read_section(binary_section(data, header.data_start, order), elements, selection)


def _read_section(
    section: DataSection, elements: list[Element], selection: Selection, lines: Index | None = None
) -> dict[str, ElementTable]:
    """Read consecutive elements from the start of `section`; `lines` are the line starts of a text."""
    tables: dict[str, ElementTable] = {}
    position = 0
    for element in elements:
        next_lines = None if lines is None else lines[int(np.searchsorted(lines, position)) :]
        starts, position = locate_rows(section, element, position, next_lines)
        if element.name in selection and element.name not in tables:
            tables[element.name] = read_table(section, element, starts, selection[element.name])
    return tables


def _read_text(text: bytes, elements: list[Element], selection: Selection) -> dict[str, ElementTable]:
    """Read elements as regular tables until one is irregular; read that one and the rest as a stream of numbers."""
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if b"\t" in text:
        text = text.replace(b"\t", b" ")
    newlines = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))
    tables: dict[str, ElementTable] = {}
    line = start = 0
    for index, element in enumerate(elements):
        if element.count == 0:
            continue
        last = line + element.count - 1
        end = int(newlines[last]) + 1 if last < len(newlines) else len(text)
        numbers = _read_regular(memoryview(text)[start:end], element)
        if numbers is None:
            rest = {name: properties for name, properties in selection.items() if name not in tables}
            return tables | _read_stream(text[start:], elements[index:], rest)
        if element.name in selection and element.name not in tables:
            row_starts = numbers.shape[1] * np.arange(element.count)
            section = number_section(numbers.reshape(-1))
            tables[element.name] = read_table(section, element, row_starts, selection[element.name])
        line, start = last + 1, end
    return tables


def _read_regular(text: memoryview, element: Element) -> NDArray[np.float64] | None:
    """Read the rows of an element if each is on its own line, with equal spaces and equally many numbers; else None."""
    first_line = bytes(text[:_MAX_FIRST_LINE_BYTES]).partition(b"\n")[0].split(b" ")
    take = [index for index, word in enumerate(first_line) if word]
    if not take or not element.properties:
        return None
    try:
        numbers: NDArray[np.float64] = read_rows(text, len(first_line), "f8", take=take)
        if len(numbers) != element.count:
            return None
        _, end = locate_rows(number_section(numbers[0]), Element(element.name, 1, element.properties), 0)
    except (Irregular, UnreadableFile):
        return None
    if end > len(take) or not _has_equal_counts(numbers, element):
        return None
    return numbers


def _has_equal_counts(numbers: NDArray[np.float64], element: Element) -> bool:
    """Return whether the lists have equal counts in all rows, so that each column holds one property."""
    column = 0
    for prop in element.properties:
        if prop.count_type is not None:
            counts = numbers[:, column]
            if not (counts == counts[0]).all():
                return False
            column += int(counts[0])
        column += 1
    return True


def _read_stream(text: bytes, elements: list[Element], selection: Selection) -> dict[str, ElementTable]:
    """Read the elements of a text of any layout. Raises UnreadableFile."""
    try:
        numbers, counts = read_numbers(text, "f8")
    except Irregular as error:
        raise UnreadableFile(f"the PLY text has something other than numbers: {error}; export it again") from None
    lines = np.append((np.cumsum(counts) - counts)[counts > 0], len(numbers))
    return _read_section(number_section(numbers, is_complete=text[-1:].isspace()), elements, selection, lines)
