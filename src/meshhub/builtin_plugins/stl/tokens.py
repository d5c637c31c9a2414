"""STL text of any layout, cut into tokens by numpy: the complete parser behind the fast one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshhub.model.notes import note
from meshhub.model.scene import Float64
from meshhub.toolkit.columns import Irregular, read_rows
from meshhub.toolkit.polygons import triangulate

_BLANK = np.zeros(256, np.bool_)
_BLANK[[9, 10, 11, 12, 13, 32]] = True

Index = NDArray[np.intp]


@dataclass
class Facets:
    """Triangles and whose they are.

    corners: (m, 3, 3) positions
    solid:   (m,) the index of each one's solid, ascending
    """

    corners: Float64
    solid: NDArray[np.int64]


@dataclass
class _Tokens:
    """Words between blanks: where they begin and end in `letters`."""

    letters: NDArray[np.uint8]
    starts: Index
    ends: Index

    def matching(self, word: bytes) -> Index:
        """Which tokens are this word."""
        found = np.flatnonzero(self.ends - self.starts == len(word))
        for offset, letter in enumerate(word):
            found = found[self.letters[self.starts[found] + offset] == letter]
        return found

    def text(self, tokens: Index) -> bytes:
        """The tokens one below the other."""
        lengths = self.ends[tokens] - self.starts[tokens] + 1
        last = np.cumsum(lengths)
        at = np.arange(int(last[-1])) - np.repeat(last - lengths - self.starts[tokens], lengths)
        column: NDArray[np.uint8] = self.letters[np.minimum(at, len(self.letters) - 1)]
        column[last - 1] = ord("\n")
        return column.tobytes()


def read_tokens(bodies: list[bytes]) -> Facets:
    """The facets of all solids in order; `bodies` is each one's text in lower case, without its header.

    Facets with more than three vertices are cut into triangles. What has fewer is left out, with a note.
    Raises Irregular when the text is no STL, or breaks off in a facet.
    """
    text = b"\n".join(bodies)
    letters = np.frombuffer(text, np.uint8)
    edges = np.flatnonzero(np.diff(~_BLANK[letters], prepend=False, append=False))
    tokens = _Tokens(letters, edges[::2], edges[1::2])
    vertex = tokens.matching(b"vertex")
    facet = tokens.matching(b"facet")
    if len(vertex) == 0:
        if len(facet) or len(edges):
            raise Irregular("it has no vertex")
        return Facets(np.empty((0, 3, 3)), np.empty(0, np.int64))
    endfacet = tokens.matching(b"endfacet")
    if len(endfacet) and len(facet) and facet[-1] > endfacet[-1]:
        raise Irregular(f"it breaks off in facet {len(facet)}, after {len(facet) - 1} whole ones; send the whole file")
    if int(vertex[-1]) + 3 >= len(tokens.starts):
        raise Irregular(f"it breaks off in vertex {len(vertex)}; send the whole file")
    points = _numbers(tokens.text((vertex[:, None] + np.arange(1, 4)).ravel()), 3 * len(vertex)).reshape(-1, 3)
    ends = np.cumsum([len(body) + 1 for body in bodies])
    solid = np.searchsorted(ends, tokens.starts[vertex], side="right")
    counts = _counts(vertex, facet)
    return _triangles(points, counts, solid)


def _numbers(column: bytes, count: int) -> Float64:
    """So many numbers one below the other, with points or with commas. Raises Irregular."""
    if b"," in column:
        # "1,5" has a decimal comma, "1.5," a comma between numbers
        column = column.replace(b",", b"" if b"." in column else b".")
    numbers: Float64 = read_rows(column, 1, "f8")[:, 0]
    if len(numbers) != count:
        raise Irregular("a comma stands where a number should")
    return numbers


def _counts(vertex: Index, facet: Index) -> Index:
    """How many vertices each facet has; without the word "facet" three each. Raises Irregular."""
    if len(facet) == 0:
        if len(vertex) % 3:
            raise Irregular(f"its {len(vertex)} vertices are no whole number of triangles; send the whole file")
        return np.full(len(vertex) // 3, 3, np.intp)
    before = np.searchsorted(vertex, facet)
    if before[0] != 0:
        raise Irregular("it has vertices before the first facet")
    return np.diff(before, append=len(vertex))


def _triangles(points: Float64, counts: Index, solid: NDArray[np.int64]) -> Facets:
    """Facets of any number of vertices as triangles."""
    short = int((counts < 3).sum())
    if short:
        note("incomplete_facets", f"{short} of {len(counts)} facets have fewer than three vertices and were left out")
    first = np.cumsum(counts) - counts
    faces, polygon = triangulate(points, counts, np.arange(len(points)))
    if int(counts.max()) > 3:
        note("polygons", f"{int((counts > 3).sum())} facets have more than three vertices and were cut into triangles")
    return Facets(points[faces], solid[first[polygon]])
