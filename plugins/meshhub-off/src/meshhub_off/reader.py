"""OFF reader: parse all numbers in one pass, then work on whole arrays."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshhub import EmptyModel, Material, Mesh, NoOptions, Part, Scene, Source, UnreadableFile, note
from meshhub.errors import format_count, quote
from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.columns import Irregular, read_numbers
from meshhub.toolkit.polygons import triangulate
from meshhub_off.sniff import KEYWORD

_COMMENT = re.compile(rb"#[^\r\n]*")
_COUNTS = re.compile(
    rb"\s*(\d{1,15})\s+(\d{1,15})(?:[ \t]+\d+[ \t]*(?=\n|$)|[ \t]*\n\s*\d+[ \t]*(?=\n|$)|[ \t]*(?=\n|$))"
)
"""Numbers of vertices, faces and edges. The last may be missing, and each may be on its own line."""

_MAX_COUNTS_BYTES = 1 << 16
"""Bytes in which the counts of a file without the first word are looked for."""

_UNIT_TOLERANCE = 0.01
"""Difference of the length of a normal from 1; programs write few digits."""

Numbers = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True)
class Layout:
    """Attributes of each vertex, in file order: position, normal, color, texture coordinates.

    MeshLab writes colors before normals, and NC in the first word.
    """

    has_normals: bool = False
    has_colors: bool = False
    has_uv: bool = False
    has_colors_first: bool = False

    @property
    def min_width(self) -> int:
        """Numbers per vertex, without the color."""
        return 3 + 3 * self.has_normals + 2 * self.has_uv


def read(source: Source, options: NoOptions) -> Scene:  # noqa: ARG001
    """Read an OFF file.

    Returns:
        Scene with one mesh, in the units of the file.
    Raises:
        UnreadableFile: The file is damaged, cut off, or a kind of OFF that is not supported.
    """
    text = source.read()
    layout, start = _read_keyword(text)
    body = _COMMENT.sub(b"", text[start:]).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    counts = _COUNTS.match(body)
    if counts is None:
        raise UnreadableFile("the numbers of vertices and faces are missing after the word OFF; export the file again")
    vertex_count, face_count = int(counts[1]), int(counts[2])
    lines_before = len((text[:start] + b".").splitlines()) - 1 + body.count(b"\n", 0, counts.end())
    numbers, per_line = _read_body(body[counts.end() :], lines_before)

    width, first_face_line = _measure_vertices(per_line, len(numbers), vertex_count, layout)
    table = numbers[: vertex_count * width].reshape(vertex_count, width)
    normals, colors, uv = _divide_columns(table, layout)
    faces, face_material, materials = _read_faces(
        table[:, :3], numbers[vertex_count * width :], per_line[first_face_line:], face_count
    )
    mesh = Mesh(
        np.ascontiguousarray(table[:, :3]),
        faces,
        normals=normals.astype(np.float32) if normals.shape[1] else None,
        uv=uv.astype(np.float32) if uv.shape[1] else None,
        colors=np.rint(_to_fractions(colors) * 255).astype(np.uint8) if colors.shape[1] else None,
        face_material=face_material,
    )
    return Scene((mesh,), (Part(0),), materials)


def _read_keyword(text: bytes) -> tuple[Layout, int]:
    """Return the layout that the first word declares, and the position after it. Raises UnreadableFile."""
    keyword = KEYWORD.match(text)
    if keyword is None:
        # the word is optional in Geomview
        if _COUNTS.match(_COMMENT.sub(b"", text[:_MAX_COUNTS_BYTES]).replace(b"\r", b"\n")):
            return Layout(), 0
        raise UnreadableFile("the file does not begin with the word OFF; check its format, or export it again")
    word = keyword[1].decode()
    if keyword[2]:
        raise UnreadableFile("binary OFF is not supported; save the model as text (OFF without the word BINARY)")
    if "4" in word or "n" in word.removesuffix("off"):
        raise UnreadableFile("4OFF and nOFF are not supported, only points of three numbers; export plain OFF")
    letters = word.upper()[: -len("OFF")]
    layout = Layout("N" in letters, "C" in letters, "S" in letters, has_colors_first="NC" in letters)
    return layout, keyword.end()


def _divide_columns(table: Numbers, layout: Layout) -> tuple[Numbers, Numbers, Numbers]:
    """Return normals, colors and texture coordinates of the vertices; without columns for those that are missing."""
    last = table.shape[1] - 2 * layout.has_uv
    own, uv = table[:, 3:last], table[:, last:]
    if not layout.has_normals:
        is_normal = own.shape[1] == 3 and not layout.has_colors and own.min(initial=0.0) < 0
        return (own, own[:, :0], uv) if is_normal else (own[:, :0], own, uv)
    is_first, is_last = _are_normals(own[:, :3]), _are_normals(own[:, -3:])
    if (is_last and not is_first) or (layout.has_colors_first and is_first == is_last):
        return own[:, -3:], own[:, :-3], uv
    return own[:, :3], own[:, 3:], uv


def _are_normals(vectors: Numbers) -> bool:
    """Return whether vectors have the length 1, or 0 for a missing normal."""
    length = np.linalg.norm(vectors, axis=1)
    return bool(((np.abs(length - 1) < _UNIT_TOLERANCE) | (length == 0)).all())


def _read_body(body: bytes, lines_before: int) -> tuple[Numbers, Index]:
    """Return all numbers, and the count on each line that is not empty. Raises UnreadableFile."""
    try:
        numbers, per_line = read_numbers(body, "f8")
    except Irregular as error:
        line = lines_before + (error.line or 0) + 1
        raise UnreadableFile(
            f"line {line} of the OFF file has {quote(error.word)}, which is not a number; export it again"
        ) from None
    if not np.isfinite(numbers).all():
        raise UnreadableFile("the file has infinite or NaN numbers; repair the model and export it again")
    return numbers, per_line[per_line > 0]


def _measure_vertices(per_line: Index, available: int, count: int, layout: Layout) -> tuple[int, int]:
    """Return the numbers per vertex, and the line of the first face. Raises UnreadableFile."""
    min_width = layout.min_width
    if count == 0:
        raise EmptyModel("the OFF file declares 0 vertices; export the model again")
    if available < count * min_width:
        raise UnreadableFile(
            f"the file is cut off or not OFF: it declares {count} vertices of at least {min_width} numbers, "
            f"and has {available} numbers"
        )
    first = per_line[:count]
    width = int(first[0])
    # some programs write colors without declaring them in the first word
    color_widths = (3, 4) if layout.has_colors else (0, 3, 4)
    if len(first) == count and (first == width).all() and width - min_width in color_widths:
        return width, count
    width = min_width + 4 * layout.has_colors
    ends = np.cumsum(per_line)
    last = int(np.searchsorted(ends, count * width))
    if last == len(ends) or ends[last] != count * width:
        raise UnreadableFile(
            f"the file does not have {count} vertices of {width} numbers, with the faces on separate lines; "
            "export it again"
        )
    return width, last + 1


def _read_faces(
    points: Float64, numbers: Numbers, per_line: Index, count: int
) -> tuple[Int32, Int32 | None, tuple[Material, ...]]:
    """Return triangles, the material of each, and the materials. Raises UnreadableFile."""
    if len(per_line) < count:
        raise UnreadableFile(
            f"the file is cut off: it declares {count} faces and has {len(per_line)}; export it again",
            values={"defect": "cut_off"},
        )
    per_line = per_line[:count]
    start = np.cumsum(per_line) - per_line
    sizes = numbers[start]
    if not ((sizes == np.rint(sizes)) & (sizes >= 1) & (sizes < per_line)).all():
        raise UnreadableFile("the corner count of a face does not match its line; export the file again")
    corner_counts = sizes.astype(np.int64)
    indices = numbers[_expand_runs(start + 1, corner_counts)]
    if not ((indices == np.rint(indices)) & (indices >= 0) & (indices < len(points))).all():
        raise UnreadableFile(f"a face refers to a vertex outside 0 … {len(points) - 1}; export the file again")
    if (corner_counts < 3).any():
        short_count = int((corner_counts < 3).sum())
        note("faces_left_out", f"skipped {format_count(short_count, 'face', 'faces')} with fewer than three corners")
    faces, polygon = triangulate(points, corner_counts, indices.astype(np.int64))
    material, materials = _read_face_colors(numbers, start + 1 + corner_counts, per_line - 1 - corner_counts)
    return faces, None if material is None else material[polygon], materials


def _read_face_colors(numbers: Numbers, start: Index, color_width: Index) -> tuple[Int32 | None, tuple[Material, ...]]:
    """Return the material of each face, from the three or four numbers after its corners, and the materials.

    Args:
        numbers: Numbers of all faces.
        start: (m,) position of each face's color.
        color_width: (m,) count of numbers after each face's corners.
    """
    if (color_width == 1).any():
        note("color_numbers_left_out", "dropped face colors that are indices of a palette: the file has no palette")
    colored = np.flatnonzero(color_width >= 3)
    if len(colored) == 0:
        return None, ()
    colors = numbers[start[colored, None] + np.minimum(np.arange(4), color_width[colored, None] - 1)]
    colors[color_width[colored] == 3, 3] = np.nan
    distinct_colors, index = np.unique(np.rint(_to_fractions(colors) * 255), axis=0, return_inverse=True)
    material = np.full(len(color_width), -1, np.int32)
    material[colored] = index.reshape(-1)
    materials = (distinct_colors / 255).tolist()
    return material, tuple(Material(base_color=(r, g, b, a)) for r, g, b, a in materials)


def _to_fractions(colors: Numbers) -> Numbers:
    """Return (n, 4) fractions from three or four columns of bytes or fractions; a missing alpha is opaque."""
    is_known = np.isfinite(colors)
    is_whole = ((colors == np.rint(colors)) | ~is_known).all(axis=1)
    # "1 0 0" is a byte beside other bytes; some programs write bytes and fractions in one file
    is_bytes = is_whole & bool((colors[is_known] > 1).any())
    scale = np.where(is_bytes, 255.0, 1.0)[:, None]
    fractions = np.ones((len(colors), 4))
    fractions[:, : colors.shape[1]] = np.where(np.isfinite(colors), colors / scale, 1.0)
    return np.clip(fractions, 0.0, 1.0)


def _expand_runs(start: Index, length: Index) -> Index:
    """Return start, start + 1, … for the length of each run, all runs concatenated."""
    offset = np.cumsum(length) - length
    runs: Index = np.arange(int(length.sum())) + np.repeat(start - offset, length)
    return runs
