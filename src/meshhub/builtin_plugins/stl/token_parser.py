"""Parser for STL text of any layout: numpy splits the text into tokens. Slower than the column parser."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshhub.errors import format_count
from meshhub.model.notes import note
from meshhub.model.scene import Float64
from meshhub.toolkit.columns import IS_BLANK, Irregular, find_irregular_line, read_rows
from meshhub.toolkit.polygons import triangulate

Index = NDArray[np.intp]

_SEPARATOR = re.compile(rb",(?=\n)|^,|(?<=\d),(?=\d{3}(?:[,.e\n]))", re.MULTILINE)
"""Comma between numbers or thousands, in a text with decimal points; any other one makes the number unreadable."""


class CutOff(Irregular):
    """The text ends inside a facet."""


@dataclass
class Facets:
    """Triangles, and the solid of each.

    corners: (m, 3, 3) positions.
    solid: (m,) index of the solid, ascending.
    """

    corners: Float64
    solid: NDArray[np.int64]


@dataclass
class _Tokens:
    """Runs of characters between white space: their starts and ends in `characters`."""

    characters: NDArray[np.uint8]
    starts: Index
    ends: Index

    def find(self, word: bytes) -> Index:
        """Return the indices of the tokens that equal a word."""
        matches = np.flatnonzero(self.ends - self.starts == len(word))
        for offset, character in enumerate(word):
            matches = matches[self.characters[self.starts[matches] + offset] == character]
        return matches

    def text(self, tokens: Index) -> bytes:
        """Return the tokens as text, one per line."""
        lengths = self.ends[tokens] - self.starts[tokens] + 1
        ends = np.cumsum(lengths)
        positions = np.arange(int(ends[-1])) - np.repeat(ends - lengths - self.starts[tokens], lengths)
        column: NDArray[np.uint8] = self.characters[np.minimum(positions, len(self.characters) - 1)]
        column[ends - 1] = ord("\n")
        return column.tobytes()


class BadNumber(Irregular):
    """Error: a coordinate is not a finite number.

    Attributes:
        vertex: Index of the vertex in the text, from 0.
    """

    def __init__(self, vertex: int, word: str) -> None:
        """Create the error."""
        super().__init__(f"{word!r} is not a finite number", word=word)
        self.vertex = vertex


def parse_tokens(bodies: list[bytes]) -> Facets:
    """Parse the facets of all solids in order.

    Facets with more than three vertices are triangulated. Facets with fewer are skipped, with a note.

    Args:
        bodies: Text of each solid, in lower case, without its header.
    Raises:
        BadNumber: A coordinate is not a finite number.
        Irregular: The text is not STL, or ends inside a facet.
    """
    text = b"\n".join(bodies)
    characters = np.frombuffer(text, np.uint8)
    edges = np.flatnonzero(np.diff(~IS_BLANK[characters], prepend=False, append=False))
    tokens = _Tokens(characters, edges[::2], edges[1::2])
    vertex = tokens.find(b"vertex")
    facet = tokens.find(b"facet")
    if len(vertex) == 0:
        if len(facet) or len(edges):
            raise Irregular("it has no vertex")
        return Facets(np.empty((0, 3, 3)), np.empty(0, np.int64))
    endfacet = tokens.find(b"endfacet")
    if len(endfacet) and len(facet) and facet[-1] > endfacet[-1]:
        raise CutOff(f"it ends inside facet {len(facet)}, after {len(facet) - 1} complete ones; use the whole file")
    if int(vertex[-1]) + 3 >= len(tokens.starts):
        raise CutOff(f"it ends inside vertex {len(vertex)}; use the whole file")
    points = _parse_numbers(tokens.text((vertex[:, None] + np.arange(1, 4)).ravel()), 3 * len(vertex)).reshape(-1, 3)
    ends = np.cumsum([len(body) + 1 for body in bodies])
    solid = np.searchsorted(ends, tokens.starts[vertex], side="right")
    return _triangulate_facets(points, _count_vertices(vertex, facet), solid)


def _parse_numbers(column: bytes, count: int) -> Float64:
    """Parse `count` numbers, one per line, with decimal points or commas. Raises BadNumber, Irregular."""
    words = column
    if b"," in column:
        # "1,5" has a decimal comma; in "1.5," the comma separates numbers, and in "1,000.5" thousands
        column = _SEPARATOR.sub(b"", column) if b"." in column else column.replace(b",", b".")
    try:
        numbers: Float64 = read_rows(column, 1, "f8")[:, 0]
    except Irregular:
        raise _bad_number(words, find_irregular_line(column, lambda part: read_rows(part, 1, "f8"))) from None
    if len(numbers) != count:
        raise Irregular("a comma stands in place of a number")
    is_finite = np.isfinite(numbers)
    if not is_finite.all():
        raise _bad_number(words, int(is_finite.argmin()))
    return numbers


def _bad_number(words: bytes, number: int) -> BadNumber:
    """Return the error for one of the words of vertices, one per line."""
    return BadNumber(number // 3, words.split(b"\n", number + 1)[number].decode("utf-8", "replace"))


def _count_vertices(vertex: Index, facet: Index) -> Index:
    """Count the vertices of each facet; without the keyword "facet", every facet has three. Raises Irregular."""
    if len(facet) == 0:
        if len(vertex) % 3:
            raise CutOff(f"its {len(vertex)} vertices are not a multiple of three; use the whole file")
        return np.full(len(vertex) // 3, 3, np.intp)
    before = np.searchsorted(vertex, facet)
    if before[0] != 0:
        raise Irregular("it has vertices before the first facet")
    return np.diff(before, append=len(vertex))


def _triangulate_facets(points: Float64, counts: Index, solid: NDArray[np.int64]) -> Facets:
    """Triangulate facets with any number of vertices."""
    short_count = int((counts < 3).sum())
    if short_count:
        note(
            "incomplete_facets",
            f"skipped {short_count} of {len(counts)} facets: they have fewer than three vertices",
            count=int(short_count),
            total=len(counts),
        )
    first = np.cumsum(counts) - counts
    faces, polygon = triangulate(points, counts, np.arange(len(points)))
    if int(counts.max()) > 3:
        note(
            "polygons",
            f"triangulated {format_count(int((counts > 3).sum()), 'facet', 'facets')} with more than three vertices",
            count=int((counts > 3).sum()),
        )
    return Facets(points[faces], solid[first[polygon]])
