"""Accessors: typed rows over the bytes of buffer views."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.gltf.reading.buffers import Buffers
from meshhub.builtin_plugins.gltf.reading.document import Item
from meshhub.model.scene import Float64

_COMPONENTS: dict[int, np.dtype[Any]] = {
    5120: np.dtype("i1"),
    5121: np.dtype("u1"),
    5122: np.dtype("<i2"),
    5123: np.dtype("<u2"),
    5125: np.dtype("<u4"),
    5126: np.dtype("<f4"),
}
_WIDTHS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT4": 16}

ZERO_ROWS = 65_536
"""How many rows an accessor without any bytes may have, beside as many as the file has bytes."""


@dataclass(frozen=True, eq=False)
class Column:
    """Rows of an accessor as they are stored.

    values:     (n, width), a view of the file's bytes where it can be
    normalized: whether integers stand for 0 … 1 or -1 … 1
    """

    values: NDArray[Any]
    normalized: bool = False
    where: str = ""

    def __len__(self) -> int:
        """How many rows."""
        return len(self.values)

    @property
    def width(self) -> int:
        """How many components a row has."""
        return int(self.values.shape[1])

    def rows(self, chosen: NDArray[np.intp] | None) -> Column:
        """Some of the rows, or all of them."""
        return self if chosen is None else Column(self.values[chosen], self.normalized, self.where)

    def floats(self) -> Float64:
        """The rows as numbers, integers normalised where the accessor says so (glTF 2.0 §3.6.2.2)."""
        kind = self.values.dtype
        plain = self.values.astype(np.float64)
        if not self.normalized or kind.kind == "f":
            return plain
        plain /= np.iinfo(kind).max
        return np.maximum(plain, -1.0, out=plain) if kind.kind == "i" else plain


class Accessors:
    """The accessors of a document."""

    def __init__(self, document: Item, buffers: Buffers) -> None:
        """Reads nothing yet."""
        self._document = document
        self._buffers = buffers
        self._known: dict[int, Column] = {}

    def column(self, index: int, named_by: str) -> Column:
        """The rows of an accessor; its declared count is checked against the bytes there are.

        Raises UnreadableFile, naming the member at fault.
        """
        if index not in self._known:
            self._known[index] = self._column(self._document.entry("accessors", index, named_by))
        return self._known[index]

    def matrix(self, index: int, named_by: str) -> Float64:
        """The first (4, 4) matrix of an accessor. Raises UnreadableFile."""
        column = self.column(index, named_by)
        if column.width != 16 or not len(column):
            self._document.refuse(f"accessors[{index}]", "must have matrices of type MAT4")
        return column.rows(np.zeros(1, np.intp)).floats().reshape(4, 4).T

    def shape(self, index: int, named_by: str) -> Item:
        """The accessor's own object."""
        return self._document.entry("accessors", index, named_by)

    def _column(self, item: Item) -> Column:
        kind = self._component(item)
        named = item.text("type")
        if named not in _WIDTHS:
            item.refuse("type", f"is {named[:20]!r}; it must be SCALAR, VEC2, VEC3, VEC4 or MAT4 here")
        width = _WIDTHS[named]
        count = item.integer("count")
        sparse = item.item("sparse")
        if item.data.get("bufferView") is None:
            if count > ZERO_ROWS + self._buffers.size:
                item.refuse("count", f"is {count}, and there are no bytes for it")
            values = np.broadcast_to(np.zeros(1, kind), (count, width))
        else:
            values = self._read(item, kind, width, count)
        if sparse is not None:
            values = self._replaced(sparse, values)
        return Column(values, item.flag("normalized"), item.where)

    def _component(self, item: Item) -> np.dtype[Any]:
        code = item.integer("componentType")
        if code not in _COMPONENTS:
            item.refuse("componentType", f"is {code}, which glTF 2.0 does not have")
        return _COMPONENTS[code]

    def _read(self, item: Item, kind: np.dtype[Any], width: int, count: int) -> NDArray[Any]:
        view, stride = self._buffers.view(item.integer("bufferView"), item.place("bufferView"))
        offset = item.integer("byteOffset", 0)
        row = kind.itemsize * width
        if stride is None:
            stride = row
        if stride < row:
            item.refuse("bufferView", f"has a byteStride of {stride}, less than the {row} bytes of a row")
        if count == 0:
            return np.empty((0, width), kind)
        needed = offset + stride * (count - 1) + row
        if needed > len(view):
            item.refuse("count", f"is {count}, for which {needed} bytes are needed and {len(view)} are there")
        return np.ndarray((count, width), kind, view, offset, (stride, kind.itemsize))

    def _replaced(self, sparse: Item, values: NDArray[Any]) -> NDArray[Any]:
        """glTF 2.0 §3.6.2.3: some rows given one by one."""
        count = sparse.integer("count")
        indices, replacements = sparse.item("indices"), sparse.item("values")
        if indices is None or replacements is None:
            sparse.refuse("indices", "or values is missing")
        kind = self._component(indices)
        if kind.kind != "u":
            indices.refuse("componentType", "must be that of unsigned integers")
        where = self._read(indices, kind, 1, count)[:, 0]
        rows = self._read(replacements, values.dtype, values.shape[1], count)
        if count and int(where.max()) >= len(values):
            indices.refuse("bufferView", f"has row {int(where.max())}, and the accessor has {len(values)} rows")
        self._buffers.spend(len(values))
        changed = np.array(values)
        changed[where] = rows
        return changed
