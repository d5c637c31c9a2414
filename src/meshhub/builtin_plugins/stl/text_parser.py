"""Parser for STL text: by columns if the layout is regular, otherwise by tokens.

The regular layout has seven lines per facet and the same spaces in every facet; nearly all programs write it. With
the lines of each facet joined, the text is a table for a CSV parser. If the layout is irregular, the spaces are
normalized first. Text that is still irregular (decimal commas, everything on one line) goes to the token parser.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import accumulate, islice, pairwise

import numpy as np

from meshhub.builtin_plugins.stl.token_parser import BadNumber, CutOff, Facets, parse_tokens
from meshhub.errors import CUT_OFF, EmptyModel, ModelTooComplex, UnreadableFile, format_count, quote
from meshhub.model.notes import note
from meshhub.model.scene import Float64, Mesh, Part, Scene
from meshhub.toolkit.columns import Irregular, blank_comments, read_rows
from meshhub.toolkit.geometry import weld
from meshhub.toolkit.names import single_line

_LINES_PER_FACET = 7
"""facet, outer loop, three vertices, endloop, endfacet."""

_FACET = re.compile(rb"(?:^|\s)facet(?=\s+normal\b)")
_VERTEX = re.compile(rb"(?<!\S)vertex(?!\S)")
_COMMENT = re.compile(rb"(?:^|\s)#(?:\s.*)?$")
_KEYWORD = b"solid"
_COLOR = re.compile(rb"(?im)(?:^ *|endfacet +)colou?r +[-+.\d]")

_MAX_LINE_BYTES = 4096
"""Maximum bytes searched for the start of a line, or for blank lines; bounds the work on hostile text."""

_MAX_SPACES_PER_FACET = 1000
"""Maximum spaces per facet: a facet needs 21, and indentation adds some; every space is a column for the CSV parser."""

_MAX_SOLIDS_COUNT = 100_000
"""More solids than any program writes; bounds the memory for their names and spans."""

Span = tuple[int, int]
"""Start and end of a stretch of text."""


@dataclass
class _Solid:
    """Name of a solid as it stands in the file, and the spans of text with its facets."""

    name: bytes
    spans: list[Span] = field(default_factory=list)


def parse_text(data: bytes) -> Scene:
    """Parse STL text.

    Returns:
        Scene with a part for each solid that has facets.
    Raises:
        UnreadableFile: The text is damaged or cut off.
        EmptyModel: The text has no facets.
        ModelTooComplex: The text has too many solids.
    """
    text = data
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if b"\t" in text:
        text = text.replace(b"\t", b" ")
    words = _remove_comments(text) if b"#" in text else text
    is_lowered = b"facet" not in words[:_MAX_LINE_BYTES]
    if is_lowered:
        words = words.lower()
    solids, is_closed = _find_solids(text, words)
    facets = _parse_regular(words, [solid.spans for solid in solids])
    # a plain search is fast where a pattern is not
    has_color = any(word in words for word in (b"color", b"COLOR", b"colour"))
    color_count = len(_COLOR.findall(words)) if has_color else 0
    if facets is None:
        if not is_lowered:  # keywords further down may be in upper case
            words = words.lower()
            solids, is_closed = _find_solids(text, words)
        facets = _parse_irregular(words, [solid.spans for solid in solids])
    if not is_closed:
        note(
            "no_end",
            f"the file does not end with endsolid: read its {len(facets.corners)} triangles; "
            "check that the file is complete",
            count=len(facets.corners),
        )
    if color_count:
        note(
            "value_ignored",
            f"the STL text has {format_count(color_count, 'line', 'lines')} with a color, which the format does not "
            "have: read the shape alone",
        )
    return _build_scene(solids, facets)


def _remove_comments(text: bytes) -> bytes:
    """Replace everything from a # to the end of its line with spaces."""
    characters = np.frombuffer(text, np.uint8)
    return blank_comments(characters, np.flatnonzero(characters == ord("#"))).tobytes()


def _parse_irregular(words: bytes, solids: list[list[Span]]) -> Facets:
    """Parse the facets of all solids in order, from the spans of each. Raises UnreadableFile."""
    bodies = [_normalize_spaces(b"".join(words[start:end] for start, end in spans)) for spans in solids]
    ends = list(accumulate(map(len, bodies), initial=0))
    facets = _parse_regular(b"".join(bodies), [[span] for span in pairwise(ends)])
    if facets is not None:
        return facets
    try:
        return parse_tokens(bodies)
    except BadNumber as error:
        line = _find_line(words, solids, error.vertex)
        raise UnreadableFile(
            f"line {line} of the STL text has {quote(error.word)} in place of a number; export the model again",
            values={"line": line},
        ) from None
    except Irregular as error:
        values = CUT_OFF if isinstance(error, CutOff) else None
        raise UnreadableFile(f"the STL text cannot be read: {error}; export the model again", values=values) from None


def _find_line(words: bytes, solids: list[list[Span]], vertex: int) -> int:
    """Return the line of a vertex, counted from 1."""
    starts = (match.start() for spans in solids for span in spans for match in _VERTEX.finditer(words, *span))
    return words.count(b"\n", 0, next(islice(starts, vertex, None), 0)) + 1


def _normalize_spaces(body: bytes) -> bytes:
    """Reduce runs of spaces to one, and remove blank lines and the spaces at both ends of each line."""
    characters = np.frombuffer(body, np.uint8)
    is_redundant = characters == ord(" ")
    is_redundant[1:] &= is_redundant[:-1] | (characters[:-1] == ord("\n"))
    body = characters[~is_redundant].tobytes().replace(b" \n", b"\n")
    while b"\n\n" in body:
        body = body.replace(b"\n\n", b"\n")
    return body.strip() + b"\n"


def _parse_regular(words: bytes, solids: list[list[Span]]) -> Facets | None:
    """Parse the facets of all solids in order, from the spans of each; return None if the layout is irregular."""
    counts: list[int] = []
    spans: list[Span] = []
    for solid_spans in solids:
        line_count = 0
        for span in solid_spans:
            start, end = _trim(words, *span)
            if start < end:
                spans.append((start, end))
                line_count += words.count(b"\n", start, end) + 1
        facet_count, rest = divmod(line_count, _LINES_PER_FACET)
        if rest:
            return None
        counts.append(facet_count)
    try:
        points = _parse_columns(words, spans)
    except Irregular:
        return None
    return Facets(points.reshape(-1, 3, 3), np.repeat(np.arange(len(counts)), counts))


def _trim(words: bytes, start: int, end: int) -> Span:
    """Shorten a span by the line feeds at its start and the white space at its end."""
    head = words[start : min(start + _MAX_LINE_BYTES, end)]
    start += len(head) - len(head.lstrip(b"\n"))
    tail = words[max(start, end - _MAX_LINE_BYTES) : end]
    return start, end - (len(tail) - len(tail.rstrip()))


def _parse_columns(words: bytes, spans: list[Span]) -> Float64:
    """Return the (3 m, 3) corners of m facets in the regular layout. Raises Irregular for any other."""
    source = np.frombuffer(words, np.uint8)
    characters = np.empty(sum(end - start + 1 for start, end in spans), np.uint8)
    position = 0
    for start, end in spans:
        characters[position : position + end - start] = source[start:end]
        position += end - start + 1
        characters[position - 1] = ord("\n")
    ends = np.flatnonzero(characters == ord("\n"))
    characters[ends] = ord(" ")
    characters[ends[_LINES_PER_FACET - 1 :: _LINES_PER_FACET]] = ord("\n")
    if len(ends) < _LINES_PER_FACET:
        raise Irregular("no facet")
    first_facet = characters[: ends[_LINES_PER_FACET - 1]].tobytes()
    if first_facet.count(b" ") > _MAX_SPACES_PER_FACET:
        raise Irregular("too many spaces in the first facet")
    row = first_facet.split(b" ")
    vertices = [index for index, word in enumerate(row) if word == b"vertex"]
    if len(vertices) != 3 or b"facet" not in row or row.count(b"endfacet") != 1:
        raise Irregular("the first seven lines are not a facet of three vertices")
    take = [index + 1 + axis for index in vertices for axis in range(3)]
    if take[-1] >= len(row):
        raise Irregular("a vertex has fewer than three numbers")
    numbers: Float64 = read_rows(characters.data, len(row), "f8", take=take)
    if not np.isfinite(numbers).all():
        raise Irregular("a number is not finite")
    return numbers.reshape(-1, 3)


def _find_solids(text: bytes, words: bytes) -> tuple[list[_Solid], bool]:
    """Find the solids and the spans of their facets.

    Args:
        text: The file; the names are read from it.
        words: The same text without comments, in lower case where needed to find keywords.
    Returns:
        The solids; the first one, without a name, holds the text before the first keyword. Also whether "endsolid"
        closes the last one.
    Raises:
        ModelTooComplex: There are more than _MAX_SOLIDS_COUNT solids.
    """
    # this count is fast, and detects hostile files, where nearly all keywords start a line
    if words.count(b"\nsolid") > _MAX_SOLIDS_COUNT:
        raise _too_many_solids()
    solids = [_Solid(b"")]
    start, is_closed, line_end = 0, False, 0
    keyword = words.find(_KEYWORD)
    while keyword >= 0:
        if line_end <= keyword:
            line_end = words.find(b"\n", keyword) + 1 or len(words)
        is_end = words[max(0, keyword - 3) : keyword] == b"end"
        keyword_end = keyword + len(_KEYWORD)
        word_start = keyword - 3 if is_end else keyword
        if not _is_keyword(words, word_start, keyword_end, is_end=is_end):
            keyword = words.find(_KEYWORD, keyword_end)
            continue
        # if everything is on one line, the name ends where the first facet starts
        facet = _FACET.search(words, keyword_end, line_end)
        name_end = line_end if facet is None else facet.start()
        solids[-1].spans.append((start, word_start))
        if not is_end:
            solids.append(_Solid(text[keyword_end:name_end]))
        if len(solids) > _MAX_SOLIDS_COUNT:
            raise _too_many_solids()
        is_closed, start = is_end, name_end
        keyword = words.find(_KEYWORD, name_end)
    solids[-1].spans.append((start, len(words)))
    return solids, is_closed


def _is_keyword(words: bytes, start: int, end: int, *, is_end: bool) -> bool:
    """Return whether "solid" at the start of a line, or "endsolid" anywhere, is a separate word."""
    line = words[max(0, start - _MAX_LINE_BYTES) : start].rpartition(b"\n")[2]
    is_first_word = line.strip() == b"" and len(line) < _MAX_LINE_BYTES
    if words[end : end + 1].strip() != b"":
        return False
    return is_first_word or (is_end and words[start - 1 : start] == b" ")


def _too_many_solids() -> ModelTooComplex:
    return ModelTooComplex(
        f"the STL text has more than {_MAX_SOLIDS_COUNT} solids; merge them and export again",
        values={"limit": _MAX_SOLIDS_COUNT},
    )


def _decode_name(raw: bytes) -> str:
    raw = _COMMENT.sub(b"", raw.strip()).strip()
    try:
        name = raw.decode("utf-8")
    except UnicodeDecodeError:
        name = raw.decode("latin-1")
    return single_line(name)


def _build_scene(solids: list[_Solid], facets: Facets) -> Scene:
    """Build a mesh and a part for each solid that has facets. Raises EmptyModel."""
    if len(facets.corners) == 0:
        raise EmptyModel("the STL text has no facets; export the model again")
    bounds = np.searchsorted(facets.solid, np.arange(len(solids) + 1)).tolist()
    meshes: list[Mesh] = []
    parts: list[Part] = []
    for solid, (start, end) in zip(solids, pairwise(bounds), strict=True):
        if start == end:
            continue
        corners = facets.corners[start:end].reshape(-1, 3)
        first, index = weld(corners)
        name = _decode_name(solid.name)
        parts.append(Part(len(meshes), name=name))
        meshes.append(Mesh(corners[first], index.reshape(-1, 3), name=name))
    # the first solid is the text before the first keyword
    empty_count = sum(start == end for start, end in pairwise(bounds[1:]))
    if empty_count:
        note(
            "empty_solids",
            f"skipped {empty_count} of {len(solids) - 1} solids: they have no facets",
            count=int(empty_count),
            total=len(solids) - 1,
        )
    return Scene(tuple(meshes), tuple(parts))
