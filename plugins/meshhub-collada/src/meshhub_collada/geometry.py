"""Meshes of COLLADA: sources, and primitives that index them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray

from meshhub import UnreadableFile, note
from meshhub.toolkit.geometry import distinct
from meshhub.toolkit.polygons import triangulate_corners
from meshhub_collada.document import Document, numbers
from meshhub_collada.holes import triangulate_holes

Index = NDArray[np.int64]
Values = NDArray[np.float64]

_MAX_OFFSET_COUNT = 64
"""Maximum inputs of a primitive; exporters write at most five."""

_ATTRIBUTES = {"NORMAL": 3, "TEXCOORD": 2, "COLOR": 4}
"""Components of each attribute beside the position."""

_LINES = ("lines", "linestrips")


@dataclass(frozen=True)
class Geometry:
    """Triangles of a <geometry>; attributes are per vertex.

    Attributes:
        symbols: Material symbols.
        face_symbol: (m,) index into `symbols`, -1 for faces without one.
    """

    vertices: Values
    faces: NDArray[np.int32]
    attributes: dict[str, Values]
    symbols: tuple[str, ...]
    face_symbol: NDArray[np.int32]


@dataclass(frozen=True)
class _Corners:
    """Triangles of one primitive: (m, 3) corners, as a row of each source or -1, and their sources by semantic."""

    rows: dict[str, Index]
    symbol: str


class _Sources:
    """Sources of a mesh as one array per semantic; each source has a range of rows."""

    def __init__(self, document: Document, mesh: Element) -> None:
        self._elements = {each.get("id", ""): each for each in mesh.findall("source")}
        self._document = document
        self._start: dict[tuple[str, str], tuple[int, int]] = {}
        self.arrays: dict[str, list[Values]] = {"POSITION": [], **{name: [] for name in _ATTRIBUTES}}

    def rows(self, semantic: str, url: str) -> tuple[int, int]:
        """Return the first row of a source and the number of its rows. Raises UnreadableFile."""
        key = (semantic, url)
        if key not in self._start:
            element = self._elements.get(url.removeprefix("#"), self._document.resolve(url))
            if element is None or element.tag != "source":
                raise UnreadableFile(f"a mesh refers to the source {url[:40]!r}, which does not exist; export it again")
            values = _read_source(element, _ATTRIBUTES.get(semantic, 3))
            self._start[key] = (sum(map(len, self.arrays[semantic])), len(values))
            self.arrays[semantic].append(values)
        return self._start[key]

    def table(self, semantic: str) -> Values:
        """Return all rows of a semantic."""
        arrays = self.arrays[semantic]
        return np.concatenate(arrays) if arrays else np.empty((0, _ATTRIBUTES.get(semantic, 3)))


def _read_source(source: Element, width: int) -> Values:
    """Return (n, width) rows of a source; missing components of colors are 1. Raises UnreadableFile."""
    array = source.find("float_array")
    accessor = source.find("technique_common/accessor")
    values = numbers(None if array is None else array.text, "f8", "a <float_array>").astype(np.float64)
    try:
        stride = 3 if accessor is None else int(accessor.get("stride", "1"))
        offset = 0 if accessor is None else int(accessor.get("offset", "0"))
        count = len(values) // 3 if accessor is None else int(accessor.get("count", "0"))
    except ValueError:
        raise UnreadableFile("an <accessor> has a count that is not a number; export the file again") from None
    if stride < 1 or offset < 0 or count < 0 or (count and offset + count * stride > len(values) + stride - 1):
        raise UnreadableFile(
            f"an <accessor> needs {count} rows of {stride} numbers, but there are {len(values)}; the file is cut off"
        )
    params = [] if accessor is None else accessor.findall("param")
    columns = [position for position, param in enumerate(params) if param.get("name")] or list(range(stride))
    columns = [column for column in columns if column < stride][:width]
    rows = np.ones((count, width)) if width == 4 else np.zeros((count, width))
    for position, column in enumerate(columns):
        cells = values[offset + column :: stride][:count]
        if len(cells) < count:
            raise UnreadableFile(f"a <float_array> ends before row {count} of its accessor; the file is cut off")
        rows[:, position] = cells
    return rows


def read_geometry(document: Document, geometry: Element) -> Geometry | None:
    """Read a <geometry> element; None, with a note, if it is not a mesh of polygons.

    Raises:
        UnreadableFile: Indices or sources do not match.
    """
    mesh = geometry.find("mesh")
    if mesh is None:
        note("geometry_skipped", "skipped a geometry that is not a mesh, such as a spline")
        return None
    sources = _Sources(document, mesh)
    corners = []
    for primitive in mesh:
        if primitive.tag in _COUNTERS:
            corners.append(_read_primitive(sources, mesh, primitive))
        elif primitive.tag in _LINES:
            note("lines_skipped", "skipped lines: only surfaces can be converted")
    corners = [each for each in corners if len(each.rows["POSITION"])]
    if not corners:
        return None
    # attributes that only some primitives have: normals are dropped, others get a default
    present = [name for name in _ATTRIBUTES if any(name in each.rows for each in corners)]
    if "NORMAL" in present and not all("NORMAL" in each.rows for each in corners):
        present.remove("NORMAL")
    columns = [
        np.concatenate([each.rows.get(name, np.full_like(each.rows["POSITION"], -1)) for each in corners]).ravel()
        for name in ("POSITION", *present)
    ]
    rows, index = distinct(np.stack(columns, axis=1).astype(np.int32))
    vertices = sources.table("POSITION")[rows[:, 0]]
    attributes: dict[str, Values] = {}
    for position, name in enumerate(present, 1):
        default = np.full((1, _ATTRIBUTES[name]), 1.0 if name == "COLOR" else 0.0)
        attributes[name] = np.concatenate([sources.table(name), default])[rows[:, position]]
    symbols = tuple(dict.fromkeys(each.symbol for each in corners if each.symbol))
    face_symbol = [
        np.full(len(each.rows["POSITION"]), symbols.index(each.symbol) if each.symbol else -1, np.int32)
        for each in corners
    ]
    return Geometry(vertices, index.reshape(-1, 3), attributes, symbols, np.concatenate(face_symbol))


def _read_primitive(sources: _Sources, mesh: Element, primitive: Element) -> _Corners:
    """Return the triangles of a primitive. Raises UnreadableFile."""
    inputs = [(*_read_input(each), each.get("source", "")) for each in primitive.findall("input")]
    width = max((offset for offset, _, _ in inputs), default=0) + 1
    indices, counts = _COUNTERS[primitive.tag](primitive, width)
    table = indices.reshape(-1, width)
    rows: dict[str, Index] = {}
    for offset, semantic, url in inputs:
        if semantic == "VERTEX":
            vertices = mesh.find("vertices")
            for each in [] if vertices is None else vertices.findall("input"):
                _add_rows(rows, sources, each.get("semantic", ""), each.get("source", ""), table[:, offset])
        else:
            _add_rows(rows, sources, semantic, url, table[:, offset])
    if "POSITION" not in rows:
        if len(table):
            raise UnreadableFile("a primitive has no positions; export the file again")
        return _Corners({"POSITION": np.empty((0, 3), np.int64)}, "")
    strips = _CORNERS.get(primitive.tag)
    if strips is not None:
        corners: NDArray[Any] = strips(counts)
    else:
        corners = _polygon_corners(primitive, sources.table("POSITION"), counts, rows["POSITION"])
    return _Corners({name: each[corners] for name, each in rows.items()}, primitive.get("material", ""))


def _polygon_corners(primitive: Element, points: Values, counts: Index, rows: Index) -> Index:
    """Return (m, 3) corners of the triangles of polygons, as positions in `rows`."""
    contours = np.array([len(_contours(each)) for each in primitive.findall("ph")], np.int64)
    plain = len(counts) - int(contours.sum())
    start = int(counts[:plain].sum())
    corners, _ = triangulate_corners(points, counts[:plain], rows[:start])
    if not contours.any():
        return corners
    holed = triangulate_holes(points[rows[start:]], counts[plain:], contours[contours > 0])
    return np.concatenate([corners, holed + start])


def _read_input(element: Element) -> tuple[int, str]:
    """Return offset and semantic of an <input>. Raises UnreadableFile."""
    try:
        offset = int(element.get("offset", "0"))
    except ValueError:
        offset = -1
    if not 0 <= offset < _MAX_OFFSET_COUNT:
        raise UnreadableFile(f"an <input> has the offset {element.get('offset', '')[:20]!r}; export the file again")
    return offset, element.get("semantic", "")


def _add_rows(rows: dict[str, Index], sources: _Sources, semantic: str, url: str, indices: Index) -> None:
    """Add the rows of an attribute; the first input of a semantic counts. Raises UnreadableFile."""
    if semantic in rows or semantic not in sources.arrays:
        return
    start, count = sources.rows(semantic, url)
    if len(indices) and (indices.min() < 0 or indices.max() >= count):
        raise UnreadableFile(
            f"an index of {semantic} lies outside 0 … {count - 1}; the file is damaged, export the model again"
        )
    rows[semantic] = indices + start


def _integers(text: str | None, width: int) -> Index:
    """Return the indices of a <p>. Raises UnreadableFile."""
    values: Index = numbers(text, "i8", "a <p>").astype(np.int64)
    if len(values) % width:
        raise UnreadableFile(f"a <p> has {len(values)} indices, not a multiple of {width}; the file is cut off")
    return values


def _read_triangles(primitive: Element, width: int) -> tuple[Index, Index]:
    indices = _integers(primitive.findtext("p"), width)
    if len(indices) % (3 * width):
        raise UnreadableFile("<triangles> has a triangle without three corners; the file is cut off")
    return indices, np.full(len(indices) // (3 * width), 3, np.int64)


def _read_polylist(primitive: Element, width: int) -> tuple[Index, Index]:
    indices = _integers(primitive.findtext("p"), width)
    counts: Index = numbers(primitive.findtext("vcount"), "i8", "a <vcount>").astype(np.int64)
    if len(counts) and (counts.min() < 0 or counts.max() > len(indices)):
        raise UnreadableFile("a <vcount> has a number out of range; export the file again")
    if int(counts.sum()) * width != len(indices):
        raise UnreadableFile(f"<vcount> needs {int(counts.sum())} corners, <p> has {len(indices) // width}; cut off?")
    return indices, counts


def _read_lists(primitive: Element, width: int) -> tuple[Index, Index]:
    """Return the corners of a primitive with a <p> per polygon, strip or fan."""
    lists = primitive.findall("p")
    for holed in primitive.findall("ph"):
        lists += _contours(holed)
    texts = [" ".join((each.text or "").split()) for each in lists]
    indices = _integers("\n".join(texts), width)
    counts = np.array([text.count(" ") + 1 if text else 0 for text in texts], np.int64)
    if (counts % width).any():
        raise UnreadableFile(f"a <p> does not have a multiple of {width} indices; the file is cut off")
    return indices, counts // width


def _contours(holed: Element) -> list[Element]:
    """Return the outline of a <ph>, and its holes; none without an outline."""
    outline = holed.findall("p")[:1]
    return outline + holed.findall("h") if outline else []


def _strip_corners(counts: Index) -> Index:
    """Return (m, 3) corners of triangle strips; every second triangle is turned."""
    first, step = _run_positions(counts)
    odd = step % 2
    return np.stack([first + step + odd, first + step + 1 - odd, first + step + 2], axis=1)


def _fan_corners(counts: Index) -> Index:
    """Return (m, 3) corners of triangle fans."""
    first, step = _run_positions(counts)
    return np.stack([first, first + step + 1, first + step + 2], axis=1)


def _run_positions(counts: Index) -> tuple[Index, Index]:
    """Return the first corner of the run of each triangle, and the number of the triangle in its run."""
    triangles = np.maximum(counts - 2, 0)
    first = np.repeat(np.cumsum(counts) - counts, triangles)
    step = np.arange(int(triangles.sum())) - np.repeat(np.cumsum(triangles) - triangles, triangles)
    return first, step


_COUNTERS = {
    "triangles": _read_triangles,
    "polylist": _read_polylist,
    "polygons": _read_lists,
    "tristrips": _read_lists,
    "trifans": _read_lists,
}
"""Functions that return the indices and the number of corners of each polygon, strip or fan."""

_CORNERS = {"tristrips": _strip_corners, "trifans": _fan_corners}
