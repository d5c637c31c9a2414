"""Reader of legacy VTK files, because meshio 5.3 reads neither polygons nor many cells, types and sections.

Source: VTK file formats, "Legacy file formats", versions 1 to 5.1
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub import Source, UnreadableFile
from meshhub.errors import quote
from meshhub.model.scene import Float64
from meshhub.toolkit.columns import IS_BLANK, Irregular, read_numbers
from meshhub_meshio.cells import POLYGON, STRIP, CellMesh, Cells, build_grid, build_mesh, find_grid_surface
from meshhub_meshio.surface import Index

_HEADER = re.compile(rb"# vtk DataFile Version[^\n]*\n[^\n]*\n\s*(ASCII|BINARY)\b[^\n]*\n", re.IGNORECASE)
_TOKEN = re.compile(rb"\s*(\S+)")

_DTYPES = {
    "bit": "u1", "char": "i1", "signed_char": "i1", "unsigned_char": "u1", "short": ">i2", "unsigned_short": ">u2",
    "int": ">i4", "unsigned_int": ">u4", "long": ">i8", "unsigned_long": ">u8", "long_long": ">i8",
    "unsigned_long_long": ">u8", "float": ">f4", "double": ">f8", "vtkidtype": ">i4", "vtktypeint8": "i1",
    "vtktypeuint8": "u1", "vtktypeint16": ">i2", "vtktypeuint16": ">u2", "vtktypeint32": ">i4", "vtktypeuint32": ">u4",
    "vtktypeint64": ">i8", "vtktypeuint64": ">u8", "vtktypefloat32": ">f4", "vtktypefloat64": ">f8",
}  # fmt: skip
"""Numbers of binary files, which are big-endian."""

_STRINGS = ("string", "utf8_string")
_WIDTHS = {"VECTORS": 3, "NORMALS": 3, "TENSORS": 9, "TENSORS6": 6, "GLOBAL_IDS": 1, "PEDIGREE_IDS": 1, "EDGE_FLAGS": 1}
"""Components of data whose header has a name and a type alone."""

_LISTS = {"VERTICES": 1, "LINES": 4, "POLYGONS": POLYGON, "TRIANGLE_STRIPS": STRIP}
"""Lists of cells of polygonal data, in the order of data in cells, with their type of VTK."""

_LENGTH_BYTES = (8, 4, 2, 1)
"""Bytes of the length of a string, by its two upper bits."""


def read_legacy_vtk(source: Source) -> CellMesh:
    """Read a file. Raises UnreadableFile."""
    reader = _Reader(source.read())
    while (word := reader.word()) is not None:
        reader.section(word.upper())
    return reader.build()


class _Reader:
    """Position in a file, and the sections before it."""

    def __init__(self, data: bytes) -> None:
        match = _HEADER.match(data)
        if match is None:
            raise UnreadableFile("the header of the VTK file is damaged; export it again")
        self._is_binary = match[1].upper() == b"BINARY"
        self._data = data if self._is_binary else data.replace(b"\r\n", b"\n")
        self._at = match.end() - (0 if self._is_binary else match[0].count(b"\r\n"))
        self._starts: Index | None = None
        self._dataset = ""
        self._data_of: dict[str, NDArray[Any]] = {}
        self._count = 0
        self.points: Float64 = np.empty((0, 3))
        self.point_data: dict[str, NDArray[Any]] = {}
        self.cell_data: dict[str, NDArray[Any]] = {}
        self._lists: dict[str, tuple[Index, Index]] = {}
        self._kinds: Index = np.empty(0, np.int64)
        self._size = (0, 0, 0)
        self._origin, self._spacing = np.zeros(3), np.ones(3)
        self._axes: dict[str, Float64] = {}

    def word(self) -> str | None:
        """Return the next word; None at the end."""
        match = _TOKEN.match(self._data, self._at)
        if match is None:
            return None
        self._at = match.end()
        return match[1].decode("utf-8", "replace")

    def _next(self) -> str:
        word = self.word()
        if word is None:
            raise UnreadableFile("the VTK file is cut off; export it again", values={"defect": "cut_off"})
        return word

    def _integer(self) -> int:
        word = self._next()
        if not word.isdecimal() or len(word) > 15:
            raise UnreadableFile(f"the VTK file has {quote(word[:30])} where a count belongs; export it again")
        return int(word)

    def section(self, word: str) -> None:
        """Read a section. Raises UnreadableFile for an unknown or damaged one."""
        sections: dict[str, Callable[[], None]] = {
            "DATASET": self._read_dataset,
            "POINTS": self._read_points,
            "CELL_TYPES": self._read_kinds,
            "DIMENSIONS": self._read_size,
            "METADATA": self._skip_metadata,
            "FIELD": self._read_field,
            "SCALARS": self._read_scalars,
            "COLOR_SCALARS": self._read_colors,
            "TEXTURE_COORDINATES": self._read_texture,
            "LOOKUP_TABLE": self._read_table,
        }
        if word in sections:
            sections[word]()
        elif word == "CELLS" or word in _LISTS:
            self._lists[word] = self._read_list()
        elif word in ("POINT_DATA", "CELL_DATA"):
            self._count = self._integer()
            self._data_of = self.point_data if word == "POINT_DATA" else self.cell_data
        elif word in _WIDTHS:
            name, kind = self._next(), self._next()
            self._add(name, self._numbers(self._count * _WIDTHS[word], kind), _WIDTHS[word])
        elif word in ("ORIGIN", "SPACING", "ASPECT_RATIO"):
            values = np.array([self._float() for _ in range(3)])
            self._origin, self._spacing = (values, self._spacing) if word == "ORIGIN" else (self._origin, values)
        elif word in ("X_COORDINATES", "Y_COORDINATES", "Z_COORDINATES"):
            count = self._integer()
            self._axes[word] = self._numbers(count, self._next()).astype(np.float64)
        else:
            raise UnreadableFile(f"the VTK file has a section {quote(word[:30])} that is not read; export it again")

    def _float(self) -> float:
        word = self._next()
        try:
            return float(word)
        except ValueError:
            raise UnreadableFile(f"the VTK file has {quote(word[:30])} for a number; export it again") from None

    def _read_dataset(self) -> None:
        self._dataset = self._next().upper()

    def _read_points(self) -> None:
        count = self._integer()
        values = self._numbers(3 * count, self._next())
        self.points = values.astype(np.float64).reshape(-1, 3)

    def _read_kinds(self) -> None:
        self._kinds = self._numbers(self._integer(), "int").astype(np.int64)

    def _read_size(self) -> None:
        self._size = (self._integer(), self._integer(), self._integer())

    def _skip_metadata(self) -> None:
        """Skip to the empty line that ends the section."""
        end = self._data.find(b"\n\n", self._at)
        self._at = len(self._data) if end < 0 else end

    def _read_list(self) -> tuple[Index, Index]:
        """Return offsets and indices of points of a list of cells, as versions up to 4 and from 5 write it."""
        count, size = self._integer(), self._integer()
        start = self._at
        if count == 0:
            return np.zeros(1, np.int64), np.empty(0, np.int64)
        if self.word() == "OFFSETS":
            offsets = self._numbers(count, self._next()).astype(np.int64)
            if self._next() != "CONNECTIVITY":
                raise UnreadableFile("cells of the VTK file have no CONNECTIVITY; export it again")
            return offsets, self._numbers(size, self._next()).astype(np.int64)
        self._at = start
        return _split_counts(self._numbers(size, "int").astype(np.int64), count)

    def _read_scalars(self) -> None:
        name, kind = self._next(), self._next()
        word = self._next()
        width = int(word) if word.isdecimal() and len(word) < 3 else 1
        if word.isdecimal():
            word = self._next()
        if word.upper() == "LOOKUP_TABLE":
            self._next()
        self._add(name, self._numbers(self._count * width, kind), width)

    def _read_colors(self) -> None:
        name, width = self._next(), self._integer()
        self._add(name, self._numbers(self._count * width, "unsigned_char" if self._is_binary else "float"), width)

    def _read_texture(self) -> None:
        name, width, kind = self._next(), self._integer(), self._next()
        self._add(name, self._numbers(self._count * width, kind), width)

    def _read_table(self) -> None:
        self._next()
        self._numbers(4 * self._integer(), "unsigned_char" if self._is_binary else "float")

    def _read_field(self) -> None:
        self._next()
        for _ in range(self._integer()):
            name = self._next()
            if name.upper() == "METADATA":
                self._skip_metadata()
                name = self._next()
            width, count, kind = self._integer(), self._integer(), self._next()
            values = self._numbers(width * count, kind)
            if len(values) and count == self._count:
                self._add(name, values, width)

    def _add(self, name: str, values: NDArray[Any], width: int) -> None:
        self._data_of[name] = values.reshape(-1, width) if width > 1 else values

    def _numbers(self, count: int, kind: str) -> NDArray[Any]:
        """Return numbers, and move behind them; none for strings. Raises UnreadableFile."""
        kind = kind.lower()
        end = self._data.find(b"\n", self._at)
        if kind in _STRINGS:
            self._at = self._skip_strings(end + 1 if end >= 0 else len(self._data), count)
            return np.empty(0)
        if kind not in _DTYPES:
            raise UnreadableFile(
                f"the VTK file has numbers of the type {quote(kind[:30])}, which is not read; export it again"
            )
        if self._is_binary:
            return self._take_binary(end + 1, count, kind)
        return self._take_text(count)

    def _take_binary(self, start: int, count: int, kind: str) -> NDArray[Any]:
        dtype = np.dtype(_DTYPES[kind])
        size = (count + 7) // 8 if kind == "bit" else count * dtype.itemsize
        if start == 0 or start + size > len(self._data):
            raise UnreadableFile("the VTK file is cut off; export it again", values={"defect": "cut_off"})
        self._at = start + size
        values = np.frombuffer(self._data[start : self._at], dtype)
        return np.unpackbits(values)[:count] if kind == "bit" else values

    def _take_text(self, count: int) -> NDArray[Any]:
        if self._starts is None:
            blank = IS_BLANK[np.frombuffer(self._data, np.uint8)]
            starts = ~blank
            starts[1:] &= blank[:-1]
            self._starts = np.flatnonzero(starts)
        first = int(np.searchsorted(self._starts, self._at))
        if first + count > len(self._starts):
            raise UnreadableFile("the VTK file is cut off; export it again", values={"defect": "cut_off"})
        begin = self._at
        self._at = int(self._starts[first + count]) if first + count < len(self._starts) else len(self._data)
        try:
            return read_numbers(self._data[begin : self._at], "f8")[0]
        except Irregular as error:
            raise UnreadableFile(f"the VTK file has {quote(error.word)} for a number; export it again") from None

    def _skip_strings(self, at: int, count: int) -> int:
        """Return the position behind strings."""
        for _ in range(count):
            if not self._is_binary:
                at = self._data.find(b"\n", at) + 1 or len(self._data)
            elif at < len(self._data):
                width = _LENGTH_BYTES[self._data[at] >> 6]
                length = int.from_bytes(self._data[at : at + width], "big") & ((1 << (8 * width - 2)) - 1)
                at += width + length
            if at >= len(self._data):
                return len(self._data)
        return at

    def build(self) -> CellMesh:
        """Return the mesh of all sections. Raises UnreadableFile."""
        if self._dataset in ("STRUCTURED_POINTS", "STRUCTURED_GRID", "RECTILINEAR_GRID"):
            return self._build_grid()
        if self._dataset == "UNSTRUCTURED_GRID":
            offsets, connectivity = self._lists.get("CELLS", (np.zeros(1, np.int64), np.empty(0, np.int64)))
            return build_mesh(self.points, Cells(self._kinds, offsets, connectivity), self.point_data, self.cell_data)
        if self._dataset != "POLYDATA":
            raise UnreadableFile(
                f"the VTK file has the data {quote(self._dataset[:30])}, which are not read; export a mesh"
            )
        lists = [(kind, *self._lists[name]) for name, kind in _LISTS.items() if name in self._lists]
        return build_mesh(self.points, join_lists(lists), self.point_data, self.cell_data)

    def _build_grid(self) -> CellMesh:
        size = self._size
        grid = find_grid_surface(size) if min(size) > 0 else find_grid_surface((1, 1, 1))
        index = (
            np.stack(
                [grid.points % size[0], grid.points // size[0] % size[1], grid.points // (size[0] * size[1])], axis=1
            )
            if len(grid.points)
            else np.empty((0, 3), np.int64)
        )
        if self._dataset == "STRUCTURED_POINTS":
            points = self._origin + index * self._spacing
        elif self._dataset == "RECTILINEAR_GRID":
            axes = [self._axes.get(f"{axis}_COORDINATES", np.empty(0)) for axis in "XYZ"]
            if tuple(map(len, axes)) != size:
                raise UnreadableFile("the coordinates of the VTK file do not match its DIMENSIONS; export it again")
            points = np.stack([axis[index[:, number]] for number, axis in enumerate(axes)], axis=1)
        else:
            if len(self.points) != np.prod(size):
                raise UnreadableFile("the points of the VTK file do not match its DIMENSIONS; export it again")
            points = self.points[grid.points]
        return build_grid(points, grid, self.point_data, self.cell_data, size)


def _split_counts(values: Index, count: int) -> tuple[Index, Index]:
    """Return offsets and indices of a list in which each cell begins with its number of points."""
    starts = np.empty(count, np.int64)
    at = 0
    size = len(values)
    stride = int(values[0]) + 1 if size else 0
    if stride > 0 and size == count * stride and (values[::stride] == stride - 1).all():
        starts = np.arange(count) * stride
    else:
        # each start depends on the one before
        plain = values.tolist()
        for number in range(count):
            if at >= size or plain[at] < 0:
                raise UnreadableFile("the cells of the VTK file do not match their counts; export it again")
            starts[number] = at
            at += plain[at] + 1
        if at > size:
            raise UnreadableFile("the cells of the VTK file do not match their counts; export it again")
    is_index = np.ones(size, np.bool_)
    is_index[starts] = False
    return np.concatenate([[0], np.cumsum(values[starts])]), values[is_index]


def join_lists(lists: list[tuple[int, Index, Index]]) -> Cells:
    """Return the cells of several lists: their type, offsets and indices of points."""
    kinds = [np.full(len(offsets) - 1, kind) for kind, offsets, _ in lists]
    starts = np.cumsum([0, *(int(offsets[-1]) for _, offsets, _ in lists)])
    ends = [offsets[1:] + start for (_, offsets, _), start in zip(lists, starts, strict=False)]
    empty = np.empty(0, np.int64)
    return Cells(
        np.concatenate([empty, *kinds]),
        np.concatenate([[0], *ends]).astype(np.int64),
        np.concatenate([empty, *(connectivity[: offsets[-1]] for _, offsets, connectivity in lists)]),
    )
