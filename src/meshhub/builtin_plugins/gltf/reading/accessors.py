"""Accessors: typed rows over the bytes of buffer views (glTF 2.0 §3.6.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.gltf.reading.buffers import Buffers
from meshhub.builtin_plugins.gltf.reading.json_object import JsonObject
from meshhub.errors import CUT_OFF, UnreadableFile, quote
from meshhub.model.scene import Float64

_DTYPES: dict[int, np.dtype[Any]] = {
    5120: np.dtype("i1"),
    5121: np.dtype("u1"),
    5122: np.dtype("<i2"),
    5123: np.dtype("<u2"),
    5125: np.dtype("<u4"),
    5126: np.dtype("<f4"),
}
_WIDTHS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT4": 16}

_MAX_FREE_ZERO_ROWS_COUNT = 65_536
"""Maximum rows of an accessor without bytes beyond one per byte of the file; bounds the memory of small files."""


@dataclass(frozen=True, eq=False)
class AttributeRows:
    """Rows of an accessor as the file stores them.

    values:        (n, width); a view of the bytes of the file where possible
    is_normalized: integers represent 0 … 1 or -1 … 1
    path:          JSON path of the accessor
    """

    values: NDArray[Any]
    is_normalized: bool = False
    path: str = ""

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.values)

    @property
    def width(self) -> int:
        """Components per row."""
        return int(self.values.shape[1])

    def select(self, indices: NDArray[np.intp] | None) -> AttributeRows:
        """Return the rows with the given indices; None selects all of them."""
        return self if indices is None else AttributeRows(self.values[indices], self.is_normalized, self.path)

    def as_floats(self) -> Float64:
        """Return (n, width) numbers; normalized integers are scaled (glTF 2.0 §3.6.2.2)."""
        dtype = self.values.dtype
        floats = self.values.astype(np.float64)
        if not self.is_normalized or dtype.kind == "f":
            return floats
        floats /= np.iinfo(dtype).max
        return np.maximum(floats, -1.0, out=floats) if dtype.kind == "i" else floats


class Accessors:
    """Accessors of a document; each is read when it is first used."""

    def __init__(self, document: JsonObject, buffers: Buffers) -> None:
        self._document = document
        self._buffers = buffers
        self._cache: dict[int, AttributeRows] = {}

    def read(self, index: int, referrer: str) -> AttributeRows:
        """Read the rows of an accessor.

        Args:
            referrer: JSON path of the value that holds the index.
        Raises:
            UnreadableFile: The accessor is invalid, or states more rows than its bytes hold.
        """
        if index not in self._cache:
            self._cache[index] = self._read(self.declaration(index, referrer))
        return self._cache[index]

    def read_first_matrix(self, index: int, referrer: str) -> Float64:
        """Read the first (4, 4) matrix of an accessor.

        Raises:
            UnreadableFile: The accessor is invalid or holds no matrix.
        """
        rows = self.read(index, referrer)
        if rows.width != 16 or not len(rows):
            self._document.reject(f"accessors[{index}]", "must have matrices of type MAT4")
        return rows.select(np.zeros(1, np.intp)).as_floats().reshape(4, 4).T

    def declaration(self, index: int, referrer: str) -> JsonObject:
        """Return the JSON object of an accessor."""
        return self._document.entry("accessors", index, referrer)

    def _read(self, accessor: JsonObject) -> AttributeRows:
        dtype = _read_dtype(accessor)
        type_name = accessor.text("type")
        if type_name not in _WIDTHS:
            accessor.reject("type", f"is {quote(type_name)}; it must be SCALAR, VEC2, VEC3, VEC4 or MAT4 here")
        width = _WIDTHS[type_name]
        count = accessor.integer("count")
        sparse = accessor.child("sparse")
        if accessor.data.get("bufferView") is None:
            if count > _MAX_FREE_ZERO_ROWS_COUNT + self._buffers.size:
                accessor.reject("count", f"is {count}, but the accessor has no bytes")
            values = np.broadcast_to(np.zeros(1, dtype), (count, width))
        else:
            values = self._view_rows(accessor, dtype, width, count)
        if sparse is not None:
            values = self._substitute(sparse, values)
        return AttributeRows(values, accessor.flag("normalized"), accessor.path)

    def _view_rows(self, source: JsonObject, dtype: np.dtype[Any], width: int, count: int) -> NDArray[Any]:
        """Return (count, width) values as a view of the bytes that `source` names."""
        index = source.integer("bufferView")
        view, stride = self._buffers.view(index, source.path_of("bufferView"))
        offset = source.integer("byteOffset", 0)
        row_bytes = dtype.itemsize * width
        if stride is None:
            stride = row_bytes
        if stride < row_bytes:
            source.reject("bufferView", f"has a byteStride of {stride}, less than the {row_bytes} bytes of a row")
        if count == 0:
            return np.empty((0, width), dtype)
        required = offset + stride * (count - 1) + row_bytes
        if required > len(view) and self._buffers.is_cut_short(index):
            raise UnreadableFile(
                f"{source.path_of('count')} is {count}, but the file ends before these values: it was cut short; "
                "use a complete copy",
                values=CUT_OFF,
            )
        if required > len(view):
            source.reject("count", f"is {count}, which requires {required} bytes, but the view has {len(view)}")
        return np.ndarray((count, width), dtype, view, offset, (stride, dtype.itemsize))

    def _substitute(self, sparse: JsonObject, values: NDArray[Any]) -> NDArray[Any]:
        """Return a copy of the rows with the substitutions of a sparse accessor (glTF 2.0 §3.6.2.3)."""
        count = sparse.integer("count")
        indices, replacements = sparse.child("indices"), sparse.child("values")
        if indices is None or replacements is None:
            sparse.reject("indices", "or 'values' is missing")
        dtype = _read_dtype(indices)
        if dtype.kind != "u":
            indices.reject("componentType", "must be an unsigned integer type")
        targets = self._view_rows(indices, dtype, 1, count)[:, 0]
        rows = self._view_rows(replacements, values.dtype, values.shape[1], count)
        if count and int(targets.max()) >= len(values):
            indices.reject("bufferView", f"names row {int(targets.max())}, but the accessor has {len(values)} rows")
        self._buffers.spend(len(values))
        result = np.array(values)
        result[targets] = rows
        return result


def _read_dtype(source: JsonObject) -> np.dtype[Any]:
    code = source.integer("componentType")
    if code not in _DTYPES:
        source.reject("componentType", f"is {code}, which glTF 2.0 does not define")
    return _DTYPES[code]
