"""Faces of an OBJ file: all corner forms, polygons of any size, positive and negative indices.

If all faces have the same corner count and form, as in most files, the text is a table for a CSV parser. Otherwise,
numpy splits it into numbers, which works for every layout and takes three times as long.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.obj.reading.lines import (
    VN,
    VT,
    F,
    Index,
    Lines,
    V,
    remove_comments,
)
from meshhub.errors import ModelTooComplex, format_count
from meshhub.model.notes import note
from meshhub.toolkit.columns import Irregular, find_irregular_line, read_rows

Corners = NDArray[np.int64]

_MAX_REGULAR_CORNERS_COUNT = 16
"""Maximum corners per face in the fast path, which needs one CSV column per number."""

_MAX_CORNERS_COUNT = 20_000
"""Maximum corners per face; real models stay far below, and triangulating a larger face takes longer than a deadline.
"""

_BLANK, _NEWLINE, _SLASH = 32, 10, 47
"""ASCII codes."""

_TO_LINES = bytes.maketrans(b" /", b"\n\n")


@dataclass(eq=False)
class Faces:
    """Polygons.

    counts: (p,) corner count of each.
    v, vt, vn: (corners,) row in the table of each attribute, -1 for none; vt and vn are None if no corner has one.
    line: (p,) line number of each.
    """

    counts: Index
    v: Corners
    vt: Corners | None
    vn: Corners | None
    line: Index


def read_faces(lines: Lines, table_sizes: tuple[int, int, int]) -> Faces:
    """Read all faces.

    Args:
        table_sizes: Number of positions, texture coordinates and normals.
    Raises:
        UnreadableFile: A face is damaged; the message names the line.
        ModelTooComplex: A face has too many corners.
    """
    line = lines.find(F)
    text = lines.join(line)
    _check_line_lengths(lines, line)
    faces = _read_regular(lines, line, text) or _read_irregular(lines, line, text)
    if len(line):
        largest = int(faces.counts.argmax())
        _check_corner_count(lines, int(line[largest]), int(faces.counts[largest]))
    _resolve_indices(lines, faces, table_sizes)
    return faces


def _check_line_lengths(lines: Lines, line: Index) -> None:
    """Reject a face with too many corners, with its line, before any other work on it. Raises ModelTooComplex."""
    if len(line) == 0:
        return
    lengths = lines.lengths(line)
    longest = int(lengths.argmax())
    if int(lengths[longest]) <= 2 * _MAX_CORNERS_COUNT:
        return
    number = int(line[longest])
    is_blank = lines.characters[lines.starts[number] : lines.ends[number]] <= _BLANK
    _check_corner_count(lines, number, int((is_blank[:-1] & ~is_blank[1:]).sum()))


def _check_corner_count(lines: Lines, number: int, count: int) -> None:
    if count > _MAX_CORNERS_COUNT:
        raise ModelTooComplex(
            f"line {lines.editor_number(number)} of the OBJ is a face with {count} corners, more than "
            f"{_MAX_CORNERS_COUNT}; triangulate the model before the export"
        )


def _read_regular(lines: Lines, line: Index, text: memoryview) -> Faces | None:
    """Read the faces if all have the same layout, which the characters other than digits show; None otherwise."""
    if len(line) == 0:
        return Faces(np.empty(0, np.intp), np.empty(0, np.int64), None, None, line)
    characters = np.frombuffer(text, np.uint8)
    first_line = characters[: int(lines.lengths(line[:1])[0])]
    pattern = first_line[first_line < ord("0")]
    corner_count = int((pattern == _BLANK).sum())
    max_pattern_length = 3 * _MAX_REGULAR_CORNERS_COUNT + 1
    if not 3 <= corner_count <= _MAX_REGULAR_CORNERS_COUNT or len(pattern) > max_pattern_length:
        return None
    marks = characters[characters < ord("0")]
    if len(marks) != len(pattern) * len(line) or not (marks.reshape(-1, len(pattern)) == pattern).all():
        return None
    forms = pattern.tobytes()[:-1].split(b" ")[1:]
    if any(form != forms[0] for form in forms) or forms[0] not in (b"", b"/", b"//"):
        return None
    # a line of another form (v//vn among v/vt/vn) leaves an empty field or a slash, which the parser rejects
    separator = b"//" if b"//" in first_line.tobytes() else b"/"
    slots = 1 + len(forms[0]) // len(separator)
    table = text.tobytes().replace(separator, b" ") if forms[0] else text
    try:
        rows = read_rows(table, 1 + corner_count * slots, "i4", take=range(1, 1 + corner_count * slots))
    except Irregular:
        return None
    indices = rows.reshape(-1, slots).astype(np.int64)
    counts = np.full(len(line), corner_count, np.intp)
    if separator == b"//":
        return Faces(counts, indices[:, 0], None, indices[:, 1], line)
    vt, vn = (indices[:, slot] if slots > slot else None for slot in (1, 2))
    return Faces(counts, indices[:, 0], vt, vn, line)


def _read_irregular(lines: Lines, line: Index, text: memoryview) -> Faces:
    """Read faces of any layout. Raises UnreadableFile."""
    characters = remove_comments(text)
    characters[np.append(0, np.cumsum(lines.lengths(line))[:-1])] = _BLANK
    values = _parse_integers(lines, line, characters.tobytes())
    positions = np.flatnonzero((characters == _BLANK) | (characters == _SLASH) | (characters == _NEWLINE))
    marks = characters[positions]
    has_number = np.diff(positions, append=len(characters)) > 1
    # a corner starts at a mark that is not a slash; the slashes since then give the slot of a number
    number_mark = np.flatnonzero(has_number)
    corner_mark = _last_chosen(np.flatnonzero(marks != _SLASH), len(marks))[number_mark]
    slot = number_mark - corner_mark
    line_ends = np.flatnonzero(marks == _NEWLINE)
    row = np.repeat(np.arange(len(line_ends)), np.diff(line_ends, prepend=-1))[number_mark]
    bad = np.flatnonzero((slot > 2) | ~has_number[corner_mark])
    if len(bad):
        raise lines.error(int(line[row[bad[0]]]), "a corner must be v, v/vt, v//vn or v/vt/vn")
    vt, vn = (_read_slot(values, slot, index) for index in (1, 2))
    return Faces(np.bincount(row[slot == 0], minlength=len(line)), values[slot == 0], vt, vn, line)


def _read_slot(values: Corners, slot: Index, index: int) -> Corners | None:
    """Return the index in one slot of each corner, 0 if a corner has none; None if no corner has one."""
    is_chosen = slot == index
    if not is_chosen.any():
        return None
    is_corner = slot == 0
    numbers: Corners = values[is_chosen]
    corner_count = int(is_corner.sum())
    if len(numbers) == corner_count:
        return numbers
    result = np.zeros(corner_count, np.int64)
    result[np.searchsorted(np.flatnonzero(is_corner), np.flatnonzero(is_chosen)) - 1] = numbers
    return result


def _last_chosen(chosen: Index, length: int) -> Index:
    """Return the last chosen index up to each of `length` indices; the first index must be chosen."""
    return np.repeat(chosen, np.diff(chosen, append=length))


def _parse_integers(lines: Lines, line: Index, text: bytes) -> Corners:
    """Return the integers between spaces and slashes. Raises UnreadableFile."""

    def parse(part: bytes) -> Corners:
        numbers: Corners = read_rows(part.translate(_TO_LINES), 1, "i8")[:, 0]
        return numbers

    if not text.translate(None, b" /\n"):
        return np.empty(0, np.int64)
    try:
        return parse(text)
    except Irregular:
        number = int(line[find_irregular_line(text, parse)])
        raise lines.error(number, "an index is not an integer in range") from None


def _resolve_indices(lines: Lines, faces: Faces, table_sizes: tuple[int, int, int]) -> None:
    """Convert indices to rows from 0. A negative index counts back from its line.

    A bad reference to texture coordinates or normals is dropped, with a note. Raises UnreadableFile for a bad vertex.
    """
    if len(faces.v) == 0:
        return
    offset = 1
    if int(faces.v.min()) == 0 and int(faces.v.max()) < table_sizes[0]:
        offset = 0
        note("counted_from_zero", "the OBJ counts vertices from 0, not from 1 as the format requires: read from 0")
    faces.v = _to_rows(lines, faces, faces.v, V, offset)
    bad = np.flatnonzero((faces.v < 0) | (faces.v >= table_sizes[0]))
    if len(bad):
        polygon = int(np.searchsorted(np.cumsum(faces.counts), bad[0], side="right"))
        raise lines.error(
            int(faces.line[polygon]), f"the face refers to a vertex that is not among the {table_sizes[0]} in the file"
        )
    faces.vt = _resolve_attribute(lines, faces, faces.vt, VT, table_sizes[1], offset)
    faces.vn = _resolve_attribute(lines, faces, faces.vn, VN, table_sizes[2], offset)


def _resolve_attribute(
    lines: Lines, faces: Faces, indices: Corners | None, statement: int, table_size: int, offset: int
) -> Corners | None:
    """Return the rows of texture coordinates or normals, -1 for none; None if no corner has one."""
    if indices is None:
        return None
    rows = _to_rows(lines, faces, indices, statement, offset)
    is_valid = (rows >= 0) & (rows < table_size)
    missing_count = int((~is_valid & (indices != 0)).sum())
    if missing_count:
        attribute = "texture coordinates" if statement == VT else "normals"
        note(
            "missing_references",
            f"{format_count(int(missing_count), 'corner', 'corners')} "
            f"with references to {attribute} that the OBJ does not have",
            count=int(missing_count),
        )
    if is_valid.all():
        return rows
    return np.where(is_valid, rows, -1) if is_valid.any() else None


def _to_rows(lines: Lines, faces: Faces, indices: Corners, statement: int, offset: int) -> Corners:
    if int(indices.min()) >= 0:
        return indices - offset
    before = np.searchsorted(lines.find(statement), faces.line)
    return np.where(indices < 0, indices + np.repeat(before, faces.counts), indices - offset)
