"""Reads OFF text: the numbers in one pass, then everything by whole arrays."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from meshhub import Material, Mesh, NoOptions, Part, Scene, Source, UnreadableFile, note
from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.columns import Irregular, read_numbers
from meshhub.toolkit.polygons import triangulate
from meshhub_off.sniff import KEYWORD

_COMMENT = re.compile(rb"#[^\r\n]*")
_COUNTS = re.compile(
    rb"\s*(\d{1,15})\s+(\d{1,15})(?:[ \t]+\d+[ \t]*(?=\n|$)|[ \t]*\n\s*\d+[ \t]*(?=\n|$)|[ \t]*(?=\n|$))"
)
"""Vertices, faces and edges; the edges may be missing, and each may have a line of its own."""

Numbers = NDArray[np.float64]
Index = NDArray[np.int64]


def read(source: Source, options: NoOptions) -> Scene:  # noqa: ARG001
    """An OFF file as a scene of one mesh, in the file's own numbers.

    Raises UnreadableFile.
    """
    text = source.read()
    keyword = KEYWORD.match(text)
    if keyword is None:
        raise UnreadableFile("the file does not begin with the word OFF; check that it is one, or export it again")
    textured, coloured, normals, four, other, binary = (part is not None for part in keyword.groups())
    if binary:
        raise UnreadableFile("binary OFF cannot be read; save it as text (OFF without the word BINARY)")
    if four or other:
        raise UnreadableFile("only points of three numbers can be read, not 4OFF or nOFF; export plain OFF")
    body = _COMMENT.sub(b"", text[keyword.end() :]).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    counts = _COUNTS.match(body)
    if counts is None:
        raise UnreadableFile("the numbers of vertices and faces are missing after the word OFF; export the file again")
    vertex_count, face_count = int(counts[1]), int(counts[2])
    numbers, per_line = _numbers(body[counts.end() :])

    width, first = _vertices(per_line, len(numbers), vertex_count, 3 + 3 * normals + 2 * textured, coloured)
    table = numbers[: vertex_count * width].reshape(vertex_count, width)
    paint = table[:, 3 + 3 * normals : width - 2 * textured]
    faces, material, materials = _faces(table[:, :3], numbers[vertex_count * width :], per_line[first:], face_count)
    mesh = Mesh(
        np.ascontiguousarray(table[:, :3]),
        faces,
        normals=table[:, 3:6].astype(np.float32) if normals else None,
        uv=table[:, width - 2 :].astype(np.float32) if textured else None,
        colors=np.rint(_rgba(paint) * 255).astype(np.uint8) if paint.shape[1] else None,
        face_material=material,
    )
    return Scene((mesh,), (Part(0),), materials)


def _numbers(body: bytes) -> tuple[Numbers, Index]:
    """All numbers, and how many stand on each line that has some. Raises UnreadableFile."""
    try:
        numbers, per_line = read_numbers(body, "f8")
    except Irregular as error:
        raise UnreadableFile(f"something among the vertices and faces is no number: {error}") from None
    if not np.isfinite(numbers).all():
        raise UnreadableFile("some numbers are infinite or no numbers at all; repair the model and export it again")
    return numbers, per_line[per_line > 0]


def _vertices(per_line: Index, available: int, count: int, bare: int, coloured: bool) -> tuple[int, int]:
    """How many numbers a vertex has, and the line that the faces begin on. Raises UnreadableFile."""
    if count == 0 or available < count * bare:
        raise UnreadableFile(
            f"the file is cut off or not OFF: it tells {count} vertices of at least {bare} numbers, "
            f"and {available} numbers are there"
        )
    first = per_line[:count]
    line = int(first[0])
    # some programs write colours without saying so in the first word
    if len(first) == count and (first == line).all() and line - bare in ((3, 4) if coloured else (0, 3, 4)):
        return line, count
    width = bare + 4 * coloured
    ends = np.cumsum(per_line)
    last = int(np.searchsorted(ends, count * width))
    if last == len(ends) or ends[last] != count * width:
        raise UnreadableFile(
            f"the vertices are not {count} of {width} numbers each, with the faces on lines of their own"
        )
    return width, last + 1


def _faces(
    points: Float64, numbers: Numbers, per_line: Index, count: int
) -> tuple[Int32, Int32 | None, tuple[Material, ...]]:
    """Triangles, the material of each, and the materials. Raises UnreadableFile."""
    if len(per_line) < count:
        raise UnreadableFile(f"the file is cut off: it tells {count} faces, and {len(per_line)} are there")
    per_line = per_line[:count]
    start = np.cumsum(per_line) - per_line
    sizes = numbers[start]
    if not ((sizes == np.rint(sizes)) & (sizes >= 1) & (sizes < per_line)).all():
        raise UnreadableFile("a face has more corners, or fewer, than there are numbers on its line")
    corners = sizes.astype(np.int64)
    named = numbers[_runs(start + 1, corners)]
    if not ((named == np.rint(named)) & (named >= 0) & (named < len(points))).all():
        raise UnreadableFile(f"a face names a vertex outside 0 … {len(points) - 1}; export the file again")
    if (corners < 3).any():
        note("faces_left_out", f"{int((corners < 3).sum())} faces of fewer than three corners were left out")
    faces, polygon = triangulate(points, corners, named.astype(np.int64))
    shade, materials = _face_colours(numbers, start + 1 + corners, per_line - 1 - corners)
    return faces, None if shade is None else shade[polygon], materials


def _face_colours(numbers: Numbers, start: Index, left: Index) -> tuple[Int32 | None, tuple[Material, ...]]:
    """The material of each face, from the three or four numbers behind its corners, and the materials."""
    if (left == 1).any():
        note("colour_numbers_left_out", "faces are coloured by numbers of a palette that the file does not hold")
    coloured = np.flatnonzero(left >= 3)
    if len(coloured) == 0:
        return None, ()
    found = numbers[start[coloured, None] + np.minimum(np.arange(4), left[coloured, None] - 1)]
    found[left[coloured] == 3, 3] = np.nan
    shades, index = np.unique(np.rint(_rgba(found) * 255), axis=0, return_inverse=True)
    material = np.full(len(left), -1, np.int32)
    material[coloured] = index.reshape(-1)
    red_green_blue_alpha = (shades / 255).tolist()
    return material, tuple(Material(base_color=(r, g, b, a)) for r, g, b, a in red_green_blue_alpha)


def _rgba(paint: Numbers) -> Numbers:
    """(n, 4) fractions from three or four columns of bytes or of fractions; no alpha is opaque."""
    known = paint[np.isfinite(paint)]
    scale = 255.0 if len(known) and known.max() > 1 else 1.0
    shades = np.ones((len(paint), 4))
    shades[:, : paint.shape[1]] = np.where(np.isfinite(paint), paint / scale, 1.0)
    return np.clip(shades, 0.0, 1.0)


def _runs(start: Index, length: Index) -> Index:
    """The numbers start, start + 1, … of every run, one run after the other."""
    offset = np.cumsum(length) - length
    runs: Index = np.arange(int(length.sum())) + np.repeat(start - offset, length)
    return runs
