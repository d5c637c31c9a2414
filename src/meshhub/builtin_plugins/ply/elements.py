"""Elements of a PLY file as tables, from any encoding."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.ply.header import Element, Header
from meshhub.builtin_plugins.ply.row_layout import (
    DataSection,
    ElementTable,
    TextLines,
    binary_section,
    locate_rows,
    number_section,
    read_table,
)
from meshhub.errors import UnreadableFile, quote

Selection = dict[str, frozenset[str]]
"""Property names to read, by element name."""

_MAX_FIRST_LINE_BYTES = 65_536
"""Maximum bytes searched for the first line of a regular table; longer lines go to the general parser."""


def read_elements(data: bytes, header: Header, selection: Selection) -> dict[str, ElementTable]:
    """Read the selected elements.

    Args:
        selection: Elements and properties to read.
    Returns:
        Tables by element name; if a name repeats, the first element with it.
    Raises:
        UnreadableFile: The data is cut off or damaged.
    """
    last = max((index for index, element in enumerate(header.elements) if element.name in selection), default=-1)
    elements = header.elements[: last + 1]
    if header.encoding == "ascii":
        return _read_text(data[header.data_start :], header.line_count + 1, elements, selection)
    order = "<" if header.encoding == "binary_little_endian" else ">"
    return _read_section(binary_section(data, header.data_start, order), elements, selection)


def _read_section(section: DataSection, elements: list[Element], selection: Selection) -> dict[str, ElementTable]:
    """Read consecutive elements from the start of `section`."""
    tables: dict[str, ElementTable] = {}
    position = 0
    for element in elements:
        starts, position = locate_rows(section, element, position)
        if element.name in selection and element.name not in tables:
            tables[element.name] = read_table(section, element, starts, selection[element.name])
    return tables


def _read_text(text: bytes, first_line: int, elements: list[Element], selection: Selection) -> dict[str, ElementTable]:
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
            return tables | _read_stream(text[start:], first_line + line, elements[index:], rest)
        if element.name in selection and element.name not in tables:
            width = numbers.shape[1]
            lines = TextLines(width * np.arange(element.count + 1), first_line + line + np.arange(element.count))
            section = number_section(numbers.reshape(-1), lines)
            rows = range(0, width * element.count, width)
            tables[element.name] = read_table(section, element, rows, selection[element.name])
        line, start = last + 1, end
    return tables


def _read_regular(text: memoryview, element: Element) -> NDArray[np.float64] | None:
    """Read rows that are on separate lines, with equal spaces and equally many numbers; None for other layouts."""
    from meshhub.toolkit.columns import Irregular, read_rows

    first_line = bytes(text[:_MAX_FIRST_LINE_BYTES]).partition(b"\n")[0].split(b" ")
    take = [index for index, word in enumerate(first_line) if word]
    if not take or not element.properties:
        return None
    try:
        numbers: NDArray[np.float64] = read_rows(text, len(first_line), "f8", take=take)
        if len(numbers) != element.count:
            return None
    except Irregular:
        return None
    return numbers if _has_equal_counts(numbers, element) else None


def _has_equal_counts(numbers: NDArray[np.float64], element: Element) -> bool:
    """Return whether the lists have equal counts in all rows, so that each column holds one property."""
    column, width = 0, numbers.shape[1]
    for prop in element.properties:
        if prop.count_type is not None and column < width:
            count = float(numbers[0, column])
            if not (0 <= count <= width and count.is_integer() and bool((numbers[:, column] == count).all())):
                return False
            column += int(count)
        column += 1
    return bool(column <= width)


def _read_stream(
    text: bytes, first_line: int, elements: list[Element], selection: Selection
) -> dict[str, ElementTable]:
    """Read the elements of a text of any layout, which starts at line `first_line` of the file.

    Raises:
        UnreadableFile: The text is cut off or damaged; the message names the line of a word that is not a number.
    """
    from meshhub.toolkit.columns import Irregular, read_numbers

    try:
        numbers, counts = read_numbers(text, "f8")
    except Irregular as error:
        line = first_line + (error.line or 0)
        raise UnreadableFile(
            f"line {line} of the PLY file has {quote(error.word)}, which is not a number; export the model again",
            values={"line": line},
        ) from None
    starts = np.append((np.cumsum(counts) - counts)[counts > 0], len(numbers))
    lines = TextLines(starts, first_line + np.flatnonzero(counts))
    return _read_section(number_section(numbers, lines, is_complete=text[-1:].isspace()), elements, selection)
