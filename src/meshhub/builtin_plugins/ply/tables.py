"""The elements of a PLY file as tables, whatever its encoding."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.ply.header import Element, Header
from meshhub.builtin_plugins.ply.rows import Body, Index, Table, binary_body, number_body, row_starts, table
from meshhub.errors import UnreadableFile
from meshhub.toolkit.columns import Irregular, read_numbers, read_rows

Wanted = dict[str, frozenset[str]]
"""Names of properties by the name of their element."""


def read_tables(data: bytes, header: Header, wanted: Wanted) -> dict[str, Table]:
    """The wanted elements by name, each with its wanted properties; of two of one name the first.

    Raises UnreadableFile.
    """
    last = max((index for index, one in enumerate(header.elements) if one.name in wanted), default=-1)
    elements = header.elements[: last + 1]
    if header.encoding == "ascii":
        return _text(data[header.body :], elements, wanted)
    order = "<" if header.encoding == "binary_little_endian" else ">"
    return _bodies(binary_body(data, header.body, order), elements, wanted)


def _bodies(body: Body, elements: list[Element], wanted: Wanted, lines: Index | None = None) -> dict[str, Table]:
    """The tables of elements that follow each other from the beginning of `body`."""
    made: dict[str, Table] = {}
    at = 0
    for element in elements:
        here = None if lines is None else lines[int(np.searchsorted(lines, at)) :]
        starts, at = row_starts(body, element, at, here)
        if element.name in wanted and element.name not in made:
            made[element.name] = table(body, element, starts, wanted[element.name])
    return made


def _text(text: bytes, elements: list[Element], wanted: Wanted) -> dict[str, Table]:
    """The tables of a text: element by element while the lines are regular, the rest as a stream of numbers."""
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if b"\t" in text:
        text = text.replace(b"\t", b" ")
    newlines = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))
    made: dict[str, Table] = {}
    line = at = 0
    for index, element in enumerate(elements):
        if element.count == 0:
            continue
        last = line + element.count - 1
        end = int(newlines[last]) + 1 if last < len(newlines) else len(text)
        numbers = _regular(memoryview(text)[at:end], element)
        if numbers is None:
            return made | _stream(text[at:], elements[index:], {k: v for k, v in wanted.items() if k not in made})
        if element.name in wanted and element.name not in made:
            width = numbers.shape[1]
            starts = width * np.arange(element.count)
            made[element.name] = table(number_body(numbers.reshape(-1)), element, starts, wanted[element.name])
        line, at = last + 1, end
    return made


def _regular(text: memoryview, element: Element) -> NDArray[np.float64] | None:
    """An element's rows when each stands on its line, with the same blanks and as many numbers; else None."""
    line = bytes(text[:65_536]).partition(b"\n")[0].split(b" ")
    take = [index for index, word in enumerate(line) if word]
    if not take or not element.properties:
        return None
    try:
        numbers: NDArray[np.float64] = read_rows(text, len(line), "f8", take=take)
        if len(numbers) != element.count:
            return None
        _, end = row_starts(number_body(numbers[0]), Element(element.name, 1, element.properties), 0)
        if end > len(take):
            return None
        at = 0
        for one in element.properties:  # a count that differs would shift what follows it
            if one.count_type is not None:
                counts = numbers[:, at]
                if not (counts == counts[0]).all():
                    return None
                at += int(counts[0])
            at += 1
    except (Irregular, UnreadableFile):
        return None
    return numbers


def _stream(text: bytes, elements: list[Element], wanted: Wanted) -> dict[str, Table]:
    """The tables of a text of any layout. Raises UnreadableFile."""
    try:
        numbers, counts = read_numbers(text, "f8")
    except Irregular as error:
        raise UnreadableFile(f"the PLY text holds something that is no number: {error}; export it again") from None
    lines = np.append((np.cumsum(counts) - counts)[counts > 0], len(numbers))
    return _bodies(number_body(numbers, text[-1:].isspace()), elements, wanted, lines)
