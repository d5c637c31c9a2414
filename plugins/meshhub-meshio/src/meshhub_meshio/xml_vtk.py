"""Reader of unstructured grids of VTK in XML, because meshio 5.3 reads neither all cells nor all versions.

Source: VTK file formats, "XML file formats"
"""

from __future__ import annotations

import base64
import binascii
import lzma
import re
import zlib
from collections.abc import Callable
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray

from meshhub import Source, UnreadableFile
from meshhub.errors import quote
from meshhub.toolkit.columns import Irregular, read_numbers
from meshhub.toolkit.safe_xml import read_xml_tree
from meshhub_meshio.cells import CellMesh, Cells, build_mesh

_APPENDED = re.compile(rb"<AppendedData\b[^<>]*>\s*_")
_END = b"</AppendedData>"

_KINDS = {"Int": "i", "UInt": "u", "Float": "f"}
_DTYPE = re.compile(r"(Int|UInt|Float)(8|16|32|64)")

_MAX_ARRAY_BYTES = 4 << 30
"""Maximum bytes of an array; bounds what a compressed file can expand to."""


def _decompress_zlib(data: bytes, size: int) -> bytes:
    return zlib.decompressobj().decompress(data, size)


def _decompress_lzma(data: bytes, size: int) -> bytes:
    return lzma.LZMADecompressor().decompress(data, size)


def _decompress_lz4(data: bytes, size: int) -> bytes:
    import pyarrow as pa

    return bytes(pa.decompress(data, size, codec="lz4_raw"))


_COMPRESSORS: dict[str, Callable[[bytes, int], bytes]] = {
    "vtkZLibDataCompressor": _decompress_zlib,
    "vtkLZMADataCompressor": _decompress_lzma,
    "vtkLZ4DataCompressor": _decompress_lz4,
}


def read_xml_vtk(source: Source) -> CellMesh:
    """Read a file with all its pieces. Raises UnreadableFile."""
    data = source.read()
    match = _APPENDED.search(data)
    appended = b""
    if match is not None:
        end = data.rfind(_END)
        appended = data[match.end() : end if end > match.end() else len(data)]
        data = data[: match.end() - 1] + (data[end:] if end > match.end() else _END + b"</VTKFile>")
    root = read_xml_tree(data, "the VTU file")
    grid = root.find("UnstructuredGrid")
    if root.tag != "VTKFile" or grid is None:
        raise UnreadableFile("the file is not an unstructured grid of VTK; export it as one")
    arrays = _Arrays(root, appended)
    pieces = [arrays.read_piece(piece) for piece in grid.findall("Piece")]
    points = np.concatenate([np.empty((0, 3)), *(piece[0] for piece in pieces)])
    starts = np.cumsum([0, *(len(piece[0]) for piece in pieces)])
    sizes = np.cumsum([0, *(len(piece[1].connectivity) for piece in pieces)])
    empty = np.empty(0, np.int64)
    cells = Cells(
        np.concatenate([empty, *(piece[1].kinds for piece in pieces)]),
        np.concatenate([[0], *(piece[1].offsets + size for piece, size in zip(pieces, sizes, strict=False))]),
        np.concatenate([empty, *(piece[1].connectivity + start for piece, start in zip(pieces, starts, strict=False))]),
    )
    return build_mesh(points, cells, _join([piece[2] for piece in pieces]), _join([piece[3] for piece in pieces]))


def _join(data: list[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Return the data that all pieces have with the same number of components."""
    joined = {}
    for name, first in data[0].items() if data else ():
        values = [each[name] for each in data if name in each and each[name].shape[1:] == first.shape[1:]]
        if len(values) == len(data):
            joined[name] = np.concatenate(values)
    return joined


class _Arrays:
    """Arrays of a file: as text, as base64, or behind the XML."""

    def __init__(self, root: Element, appended: bytes) -> None:
        order = ">" if root.get("byte_order") == "BigEndian" else "<"
        self._order = order
        self._header = np.dtype(f"{order}u8" if root.get("header_type") == "UInt64" else f"{order}u4")
        compressor = root.get("compressor") or ""
        if compressor and compressor not in _COMPRESSORS:
            raise UnreadableFile(
                f"the VTU file is compressed by {quote(compressor[:40])}; save it with zlib, or uncompressed"
            )
        self._decompress = _COMPRESSORS.get(compressor)
        element = root.find("AppendedData")
        self._is_raw = element is None or element.get("encoding") == "raw"
        self._appended = appended

    def read_piece(
        self, piece: Element
    ) -> tuple[NDArray[np.float64], Cells, dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
        """Return points, cells, data at points and data in cells. Raises UnreadableFile."""
        named = {each.get("Name", ""): self.read(each) for each in piece.findall("Cells/DataArray")}
        kinds, offsets, connectivity = (
            named.get(name, np.empty(0)).astype(np.int64).ravel() for name in ("types", "offsets", "connectivity")
        )
        if len(kinds) != len(offsets) or (len(offsets) and offsets[-1] != len(connectivity)):
            raise UnreadableFile("the cells of the VTU file and their offsets do not match; export it again")
        element = piece.find("Points/DataArray")
        points = np.empty(0) if element is None else self.read(element).astype(np.float64)
        if points.size % 3:
            raise UnreadableFile("the points of the VTU file do not have three coordinates; export it again")
        points = points.reshape(-1, 3)
        if len(connectivity) and not 0 <= connectivity.min() <= connectivity.max() < len(points):
            raise UnreadableFile(f"a cell refers to a point outside 0 … {len(points) - 1}; export the file again")
        data = [
            {each.get("Name", ""): self.read(each) for each in piece.findall(f"{name}/DataArray") if _is_number(each)}
            for name in ("PointData", "CellData")
        ]
        return points, Cells(kinds, offsets, connectivity), data[0], data[1]

    def read(self, element: Element) -> NDArray[Any]:
        """Return an array: (n,) or (n, k). Raises UnreadableFile."""
        kind = element.get("type", "")
        match = _DTYPE.fullmatch(kind)
        if match is None:
            raise UnreadableFile(
                f"the VTU file has numbers of the type {quote(kind[:30])}, which is not read; export it again"
            )
        form = element.get("format", "ascii")
        width = element.get("NumberOfComponents") or "1"
        try:
            if form == "ascii":
                values: NDArray[Any] = read_numbers((element.text or "").encode(), "f8")[0]
            else:
                dtype = np.dtype(f"{self._order}{_KINDS[match[1]]}{int(match[2]) // 8}")
                if form == "appended":
                    content = self._take(self._appended, int(element.get("offset", "0")), is_raw=self._is_raw)
                else:
                    content = self._take("".join((element.text or "").split()).encode(), 0, is_raw=False)
                values = np.frombuffer(content, dtype)
            count = int(width)
            return values.reshape(-1, count) if count > 1 else values
        except Irregular as error:
            raise UnreadableFile(f"the VTU file has {quote(error.word)} for a number; export it again") from None
        except (ValueError, IndexError, OSError, binascii.Error, zlib.error, lzma.LZMAError):
            name = quote(element.get("Name", "")[:30])
            raise UnreadableFile(f"the array {name} of the VTU file is damaged or cut off; export it again") from None

    def _take(self, data: bytes, start: int, *, is_raw: bool) -> bytes:
        """Return the content of an array. Raises ValueError or IndexError."""

        def part(at: int, size: int) -> tuple[bytes, int]:
            """Return bytes from a position, and the position behind them."""
            if is_raw:
                return _exact(data[at : at + size], size), at + size
            length = -(-size // 3) * 4
            return _exact(base64.b64decode(data[at : at + length]), size), at + length

        width = self._header.itemsize
        first = int(np.frombuffer(part(start, width)[0], self._header)[0])
        if self._decompress is None:
            # header and content are one text in base64
            return part(start, width + first)[0][width:] if first <= _MAX_ARRAY_BYTES else _exact(b"", first)
        if first > len(data):
            raise ValueError("too many blocks")
        header, at = part(start, width * (3 + first))
        _, full, last, *sizes = np.frombuffer(header, self._header).tolist()
        if first * full > _MAX_ARRAY_BYTES:
            raise ValueError("too large")
        packed, _ = part(at, sum(sizes))
        ends = np.cumsum([0, *sizes]).tolist()
        lengths = [full] * first
        if last and lengths:
            lengths[-1] = last
        blocks = [
            _exact(self._decompress(packed[begin:end], length), length)
            for begin, end, length in zip(ends, ends[1:], lengths, strict=False)
        ]
        return b"".join(blocks)


def _exact(data: bytes, size: int) -> bytes:
    """Return the first bytes of data. Raises ValueError for fewer."""
    if len(data) < size:
        raise ValueError("cut off")
    return data[:size]


def _is_number(element: Element) -> bool:
    return _DTYPE.fullmatch(element.get("type", "")) is not None
