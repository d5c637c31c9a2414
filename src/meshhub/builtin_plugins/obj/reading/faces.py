"""The faces of an OBJ file: all forms of corners, polygons of any size, counted from either end.

The usual layouts (every face with as many corners in the same form) are tables to a CSV parser. All
others are cut into numbers by numpy, which reads everything and takes three times as long.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.obj.reading.lines import VN, VT, F, Index, Lines, V, first_bad, without_comments
from meshhub.errors import ModelTooComplex
from meshhub.model.notes import note
from meshhub.toolkit.columns import Irregular, read_rows

Corners = NDArray[np.int64]

_CORNERS = 16
"""Faces with more corners are not looked at as a regular table."""

_LARGEST = 20_000
"""No face of a model has more corners, and cutting one takes longer than anybody waits."""

_BLANK, _NEWLINE, _SLASH = 32, 10, 47
_TO_LINES = bytes.maketrans(b" /", b"\n\n")


@dataclass(eq=False)
class Faces:
    """Polygons over the three tables.

    counts:    (p,) corners of each
    corners:   v, vt and vn, each (corners,) rows of their tables, -1 for none; vt and vn are None when none has any
    line:      (p,) the line that each stands on
    """

    counts: Index
    v: Corners
    vt: Corners | None
    vn: Corners | None
    line: Index


def read_faces(lines: Lines, sizes: tuple[int, int, int]) -> Faces:
    """All faces. `sizes` are the lengths of the tables of positions, texture coordinates and normals.

    Raises UnreadableFile naming the line, ModelTooComplex.
    """
    line = lines.of(F)
    text = lines.joined(line)
    _check_size(lines, line, None)
    faces = _regular(lines, line, text) or _general(lines, line, text)
    _check_size(lines, line, faces.counts)
    _resolve(lines, faces, sizes)
    return faces


def _check_size(lines: Lines, line: Index, counts: Index | None) -> None:
    """Refuse a face of absurdly many corners; without `counts`, before any work is done on the longest line.

    Raises ModelTooComplex.
    """
    if len(line) == 0:
        return
    if counts is None:
        lengths = lines.ends[line] - lines.starts[line]
        widest = int(lengths.argmax())
        if int(lengths[widest]) <= 2 * _LARGEST:
            return
        blank = lines.letters[lines.starts[line[widest]] : lines.ends[line[widest]]] <= _BLANK
        corners = int((blank[:-1] & ~blank[1:]).sum())
    else:
        widest = int(counts.argmax())
        corners = int(counts[widest])
    if corners > _LARGEST:
        raise ModelTooComplex(
            f"line {lines.counted(int(line[widest]))} of the OBJ is a face with {corners} corners, "
            f"and {_LARGEST} is the most; cut it into triangles before the export"
        )


def _regular(lines: Lines, line: Index, text: memoryview) -> Faces | None:
    """The faces when all have one layout, else None. What is no digit tells the layout."""
    if len(line) == 0:
        return Faces(np.empty(0, np.intp), np.empty(0, np.int64), None, None, line)
    letters = np.frombuffer(text, np.uint8)
    opening = letters[: int(lines.ends[line[0]] - lines.starts[line[0]])]
    pattern = opening[opening < ord("0")]
    corners = int((pattern == _BLANK).sum())
    if not 3 <= corners <= _CORNERS or len(pattern) > 3 * _CORNERS + 1:
        return None
    marks = letters[letters < ord("0")]
    if len(marks) != len(pattern) * len(line) or not (marks.reshape(-1, len(pattern)) == pattern).all():
        return None
    form = pattern.tobytes()[:-1].split(b" ")[1:]
    if any(one != form[0] for one in form) or form[0] not in (b"", b"/", b"//"):
        return None
    # a line of the other form, v//vn among v/vt/vn, leaves an empty field or a slash, which is no number
    between = b"//" if b"//" in opening.tobytes() else b"/"
    slots = 1 + len(form[0]) // len(between)
    table = text.tobytes().replace(between, b" ") if form[0] else text
    try:
        rows = read_rows(table, 1 + corners * slots, "i4", take=range(1, 1 + corners * slots))
    except Irregular:
        return None
    given = rows.reshape(-1, slots).astype(np.int64)
    counts = np.full(len(line), corners, np.intp)
    if between == b"//":
        return Faces(counts, given[:, 0], None, given[:, 1], line)
    return Faces(counts, given[:, 0], given[:, 1] if slots > 1 else None, given[:, 2] if slots > 2 else None, line)


def _general(lines: Lines, line: Index, text: memoryview) -> Faces:
    """The faces of any layout. Raises UnreadableFile."""
    letters = without_comments(text)
    letters[np.append(0, np.cumsum(lines.ends[line] - lines.starts[line])[:-1])] = _BLANK
    column = letters.tobytes()
    values = _integers(lines, line, column)
    at = np.flatnonzero((letters == _BLANK) | (letters == _SLASH) | (letters == _NEWLINE))
    marks = letters[at]
    filled = np.diff(at, append=len(letters)) > 1
    # a corner begins at the last mark that is no slash; the slashes since then tell what a number is
    token = np.flatnonzero(filled)
    anchor = _latest(np.flatnonzero(marks != _SLASH), len(marks))[token]
    slot = token - anchor
    ends = np.flatnonzero(marks == _NEWLINE)
    row = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=-1))[token]
    wrong = np.flatnonzero((slot > 2) | ~filled[anchor])
    if len(wrong):
        raise lines.bad(int(line[row[wrong[0]]]), "a corner is written v, v/vt, v//vn or v/vt/vn")
    leads = slot == 0
    counts = np.bincount(row[leads], minlength=len(line))
    corners = int(counts.sum())

    def other(wanted: int) -> Corners | None:
        chosen = slot == wanted
        if not chosen.any():
            return None
        found: Corners = values[chosen]
        if len(found) == corners:
            return found
        given = np.zeros(corners, np.int64)
        given[np.searchsorted(np.flatnonzero(leads), np.flatnonzero(chosen)) - 1] = found
        return given

    return Faces(counts, values[leads], other(1), other(2), line)


def _latest(chosen: Index, length: int) -> Index:
    """For each of `length` places the last chosen one up to it; the first place must be chosen."""
    return np.repeat(chosen, np.diff(chosen, append=length))


def _integers(lines: Lines, line: Index, text: bytes) -> Corners:
    def read(part: bytes) -> Corners:
        numbers: Corners = read_rows(part.translate(_TO_LINES), 1, "i8")[:, 0]
        return numbers

    def parses(part: bytes) -> bool:
        try:
            read(part)
        except Irregular:
            return False
        return True

    if not text.translate(None, b" /\n"):
        return np.empty(0, np.int64)
    try:
        return read(text)
    except Irregular:
        raise lines.bad(int(line[first_bad(text, parses)]), "an index is not a whole number in range") from None


def _resolve(lines: Lines, faces: Faces, sizes: tuple[int, int, int]) -> None:
    """Indices as rows from 0: negative ones count back from their line, one past the end is refused.

    What is missing of texture coordinates and normals costs those, and not the model.
    """
    if len(faces.v) == 0:
        return
    offset = 1
    if int(faces.v.min()) == 0 and int(faces.v.max()) < sizes[0]:
        offset = 0
        note("counted_from_zero", "the OBJ counts vertices from 0, where the format counts from 1: read as meant")
    faces.v = _rows(lines, faces, faces.v, V, offset)
    wrong = np.flatnonzero((faces.v < 0) | (faces.v >= sizes[0]))
    if len(wrong):
        polygon = int(np.searchsorted(np.cumsum(faces.counts), wrong[0], side="right"))
        raise lines.bad(int(faces.line[polygon]), f"it names a vertex that is not there; {sizes[0]} are")
    faces.vt = _referred(lines, faces, faces.vt, VT, sizes[1], offset)
    faces.vn = _referred(lines, faces, faces.vn, VN, sizes[2], offset)


def _referred(lines: Lines, faces: Faces, given: Corners | None, kind: int, size: int, offset: int) -> Corners | None:
    """Rows of texture coordinates or normals, -1 for none; None when no corner has any."""
    if given is None:
        return None
    rows = _rows(lines, faces, given, kind, offset)
    there = (rows >= 0) & (rows < size)
    lost = int((~there & (given != 0)).sum())
    if lost:
        what = "texture coordinates" if kind == VT else "normals"
        note("missing_references", f"{lost} corners name {what} that the OBJ does not hold: they were left out")
    if there.all():
        return rows
    return np.where(there, rows, -1) if there.any() else None


def _rows(lines: Lines, faces: Faces, given: Corners, kind: int, offset: int) -> Corners:
    if int(given.min()) >= 0:
        return given - offset
    before = np.searchsorted(lines.of(kind), faces.line)
    return np.where(given < 0, given + np.repeat(before, faces.counts), given - offset)
