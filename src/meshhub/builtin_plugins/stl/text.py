"""STL text: a column parser for the regular layout, a token parser for every other.

The regular layout is seven lines a facet with the same blanks everywhere, as nearly all programs
write it. Joined to one line a facet, it is a table that a CSV parser reads. Uneven blanks
are evened out first; what is not regular then (decimal commas, everything on one line) is cut into
tokens by numpy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

import numpy as np

from meshhub.builtin_plugins.stl.tokens import Facets, read_tokens
from meshhub.errors import EmptyModel, ModelTooComplex, UnreadableFile
from meshhub.model.notes import note
from meshhub.model.scene import Float64, Mesh, Part, Scene
from meshhub.toolkit.columns import Irregular, read_rows
from meshhub.toolkit.geometry import weld
from meshhub.toolkit.names import single_line

_LINES = 7
"""facet, outer loop, three vertices, endloop, endfacet"""

_BOM = b"\xef\xbb\xbf"
_FACET = re.compile(rb"(?:^|\s)facet(?=\s+normal\b)")
_COMMENT = re.compile(rb"(?:^|\s)#(?:\s.*)?$")

_LINE = 4096
"""Longer lines than this, and longer blank stretches, are not looked for."""

_WORDS = 1000
"""Blanks in a facet; it needs 21, and some programs indent its lines."""

_SOLIDS = 100_000
"""More solids than any program writes, and few enough to hold."""


@dataclass
class _Solid:
    """A stretch of text that holds facets, and its name as it stands there."""

    name: bytes
    spans: list[tuple[int, int]] = field(default_factory=list)


def read_text(data: bytes) -> Scene:
    """STL text as a scene: a part for each solid that has facets.

    Raises UnreadableFile, EmptyModel.
    """
    text = data.removeprefix(_BOM)
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if b"\t" in text:
        text = text.replace(b"\t", b" ")
    words = _without_comments(text) if b"#" in text else text
    lowered = b"facet" not in words[:_LINE]
    if lowered:
        words = words.lower()
    solids, closed = _solids(text, words)
    facets = _regular(words, [solid.spans for solid in solids])
    if facets is None:
        if not lowered:  # a file may change its mind about the case
            words = words.lower()
            solids, closed = _solids(text, words)
        facets = _irregular([b"".join(words[start:end] for start, end in solid.spans) for solid in solids])
    if not closed:
        note(
            "no_end",
            f"no endsolid closes the file: the {len(facets.corners)} triangles that are there were read; "
            "check that the file is complete",
        )
    return _scene(solids, facets)


def _without_comments(text: bytes) -> bytes:
    """The text with blanks in place of everything from a # to the end of its line."""
    letters = np.frombuffer(text, np.uint8)
    marks = np.flatnonzero(letters == ord("#"))
    ends = np.append(np.flatnonzero(letters == ord("\n")), len(letters))
    ends = ends[np.searchsorted(ends, marks)]
    first = np.flatnonzero(np.diff(ends, prepend=-1))
    runs = np.stack([marks[first], ends[first]], axis=1).ravel()
    inside = np.resize([False, True], len(runs) + 1)
    lengths = np.diff(runs, prepend=0, append=len(letters))
    return np.where(np.repeat(inside, lengths), np.uint8(ord(" ")), letters).tobytes()


def _irregular(bodies: list[bytes]) -> Facets:
    """The facets of all solids in order, from each one's text; often only the blanks are uneven.

    Raises UnreadableFile.
    """
    bodies = [_squeezed(body) for body in bodies]
    ends = list(accumulate(map(len, bodies), initial=0))
    facets = _regular(b"".join(bodies), [[span] for span in pairwise(ends)])
    if facets is not None:
        return facets
    try:
        return read_tokens(bodies)
    except Irregular as error:
        raise UnreadableFile(f"the STL text cannot be read: {error}; export the model again") from None


def _squeezed(body: bytes) -> bytes:
    """The text without more than one blank anywhere, and none at either end of a line."""
    letters = np.frombuffer(body, np.uint8)
    needless = letters == ord(" ")
    needless[1:] &= needless[:-1] | (letters[:-1] == ord("\n"))
    body = letters[~needless].tobytes().replace(b" \n", b"\n")
    while b"\n\n" in body:
        body = body.replace(b"\n\n", b"\n")
    return body.strip() + b"\n"


def _regular(words: bytes, solids: list[list[tuple[int, int]]]) -> Facets | None:
    """The facets of all solids in order, from each one's spans of text, when their layout is regular; else None."""
    counts: list[int] = []
    spans: list[tuple[int, int]] = []
    for own in solids:
        lines = 0
        for start, end in own:
            start, end = _trimmed(words, start, end)
            if start < end:
                spans.append((start, end))
                lines += words.count(b"\n", start, end) + 1
        facets, rest = divmod(lines, _LINES)
        if rest:
            return None
        counts.append(facets)
    try:
        points = _columns(words, spans)
    except Irregular:
        return None
    return Facets(points.reshape(-1, 3, 3), np.repeat(np.arange(len(counts)), counts))


def _trimmed(words: bytes, start: int, end: int) -> tuple[int, int]:
    """A span without the blank lines before it and the blanks behind it."""
    head = words[start : min(start + _LINE, end)]
    start += len(head) - len(head.lstrip(b"\n"))
    tail = words[max(start, end - _LINE) : end]
    return start, end - (len(tail) - len(tail.rstrip()))


def _columns(words: bytes, spans: list[tuple[int, int]]) -> Float64:
    """(3 m, 3) corners of m facets in the regular layout. Raises Irregular for any other."""
    source = np.frombuffer(words, np.uint8)
    letters = np.empty(sum(end - start + 1 for start, end in spans), np.uint8)
    at = 0
    for start, end in spans:
        letters[at : at + end - start] = source[start:end]
        at += end - start + 1
        letters[at - 1] = ord("\n")
    ends = np.flatnonzero(letters == ord("\n"))
    letters[ends] = ord(" ")
    letters[ends[_LINES - 1 :: _LINES]] = ord("\n")
    if len(ends) < _LINES:
        raise Irregular("no facet")
    first = letters[: ends[_LINES - 1]].tobytes()
    if first.count(b" ") > _WORDS:
        raise Irregular("a facet of needless blanks")
    row = first.split(b" ")
    vertices = [index for index, word in enumerate(row) if word == b"vertex"]
    if len(vertices) != 3 or b"facet" not in row or row.count(b"endfacet") != 1:
        raise Irregular("no facet of three vertices on seven lines")
    take = [index + 1 + axis for index in vertices for axis in range(3)]
    if take[-1] >= len(row):
        raise Irregular("a vertex of fewer than three numbers")
    numbers: Float64 = read_rows(letters.data, len(row), "f8", take=take)
    if not np.isfinite(numbers).all():
        raise Irregular("a number that is not finite")
    return numbers.reshape(-1, 3)


def _solids(text: bytes, words: bytes) -> tuple[list[_Solid], bool]:
    """The solids with the spans of their facets, and whether the last of them is closed.

    words: the same without comments, in lower case.
    Raises ModelTooComplex.
    """
    # most of them stand at the beginning of a line, and are counted in no time
    if words.count(b"\nsolid ") + words.count(b"\nsolid\n") > _SOLIDS:
        raise _too_many()
    solids = [_Solid(b"")]
    begin, at, closed, stop = 0, words.find(b"solid"), False, 0
    while at >= 0:
        if stop <= at:
            stop = words.find(b"\n", at) + 1 or len(words)
        ending = words[max(0, at - 3) : at] == b"end"
        opening = at - 3 if ending else at
        line = words[max(0, opening - _LINE) : opening].rpartition(b"\n")[2]
        alone = line.strip() == b"" and len(line) < _LINE
        token = words[at + 5 : at + 6].strip() == b"" and (alone or words[opening - 1 : opening] == b" ")
        if not token or not (alone or ending):
            at = words.find(b"solid", at + 5)
            continue
        # everything on one line: the name ends where the first facet begins
        facet = _FACET.search(words, at + 5, stop)
        after = stop if facet is None else facet.start()
        solids[-1].spans.append((begin, opening))
        if not ending:
            solids.append(_Solid(text[at + 5 : after]))
        if len(solids) > _SOLIDS:
            raise _too_many()
        closed, begin = ending, after
        at = words.find(b"solid", after)
    solids[-1].spans.append((begin, len(words)))
    return solids, closed


def _too_many() -> ModelTooComplex:
    return ModelTooComplex(f"the STL text holds more than {_SOLIDS} solids; merge them and export again")


def _name(raw: bytes) -> str:
    """A solid's name as text."""
    raw = _COMMENT.sub(b"", raw.strip()).strip()
    try:
        name = raw.decode("utf-8")
    except UnicodeDecodeError:
        name = raw.decode("latin-1")
    return single_line(name)


def _scene(solids: list[_Solid], facets: Facets) -> Scene:
    """A mesh and a part for each solid that has facets. Raises EmptyModel."""
    if len(facets.corners) == 0:
        raise EmptyModel("the STL text holds no facet; export the model again")
    bounds = np.searchsorted(facets.solid, np.arange(len(solids) + 1)).tolist()
    meshes: list[Mesh] = []
    parts: list[Part] = []
    for solid, start, end in zip(solids, bounds, bounds[1:], strict=False):
        if start == end:
            continue
        corners = facets.corners[start:end].reshape(-1, 3)
        first, index = weld(corners)
        name = _name(solid.name)
        parts.append(Part(len(meshes), name=name))
        meshes.append(Mesh(corners[first], index.reshape(-1, 3), name=name))
    empty = sum(1 for solid, start, end in zip(solids[1:], bounds[1:], bounds[2:], strict=False) if start == end)
    if empty:
        note("empty_solids", f"{empty} of {len(solids) - 1} solids hold no facet and were left out")
    return Scene(tuple(meshes), tuple(parts))
