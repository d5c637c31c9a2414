"""FBX files that assimp rejects or reads incompletely, written anew.

It drops vertex colors for each polygon, and one for the whole mesh, without a word: their layer gets an index for each
corner, which it reads. It rejects binary files of its own version 5.2, whose lists of records lack their ends. A binary
file is parsed into records, and written as version 7.4, whose records have the same content as those of later ones.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from meshhub import note
from meshhub_assimp.records import Record, encode_file

Index = NDArray[np.int32]

_LAYER = re.compile(rb"\x11LayerElementColor(?=[IL])|LayerElementColor[ \t]{0,8}:")
"""Begin of a layer of colors, in a binary or a text file; the table of layers has the name as a value instead."""

_FIELD = rb"%s(?:S(?P<size>....)|[ \t]{0,8}:[ \t]{0,8}\")(?P<text>\w{1,40})"
_MAPPING, _REFERENCE = (
    re.compile(_FIELD % name, re.DOTALL) for name in (b"MappingInformationType", b"ReferenceInformationType")
)
_HEAD_BYTES = 1000
"""Bytes of a layer in which its mapping is, before its arrays; also those of a file in which its creator is."""

_READ = ({"ByPolygonVertex", "ByVertice"}, {"Direct", "IndexToDirect"})
"""Mappings and references that assimp reads."""

_MAGIC = b"Kaydara FBX Binary  \0"
_CREATOR = b"Open Asset Import Library (Assimp)"
"""Program whose files may lack the ends of lists of records."""
_FIRST_RECORD = 27
"""Offset of the first record: after the magic bytes and the version."""
_WIDE_VERSION = 7500
"""Version from which the head of a record has numbers of 64 bits."""
_HEADS = (struct.Struct("<IIIB"), struct.Struct("<QQQB"))
_MAX_DEPTH_COUNT = 32
"""Maximum records inside records; files have up to eight."""

_SCALAR_BYTES = {b"Y": 2, b"C": 1, b"B": 1, b"I": 4, b"F": 4, b"D": 8, b"L": 8}
_ARRAY_DTYPES = {b"i": "<i4", b"l": "<i8"}

_GEOMETRY = re.compile(rb"^[ \t]*Geometry:", re.MULTILINE)
_ARRAY = rb"%s:[^{}\"]{0,40}\{\s*a:([-+\d,.eE\s]*)\}"
_CORNERS = re.compile(_ARRAY % b"PolygonVertexIndex")
_COLOR_INDEX = re.compile(_ARRAY % b"ColorIndex")


class _Damaged(Exception):
    """The records do not follow the format; assimp says where."""


def prepare(data: bytes) -> bytes:
    """Return a file that assimp reads with its colors; those with an unknown mapping are left out with a note."""
    is_binary = data.startswith(_MAGIC)
    has_colors = all(_is_read(*_find_mapping(data, layer.start())) for layer in _LAYER.finditer(data))
    if has_colors and not (is_binary and _CREATOR in data[:_HEAD_BYTES]):
        return data
    try:
        return _prepare_binary(data) if is_binary else _prepare_text(data)
    except _Damaged:
        if not has_colors:
            note("colors_not_read", "dropped vertex colors of a damaged file; export it again")
        return data


def _is_read(mapping: str, reference: str) -> bool:
    return mapping in _READ[0] and reference in _READ[1]


def _find_mapping(data: bytes, start: int) -> tuple[str, str]:
    """Return mapping and reference of the layer at an offset."""
    head = data[start : start + _HEAD_BYTES]
    words = []
    for pattern in (_MAPPING, _REFERENCE):
        match = pattern.search(head)
        # in a binary file, more letters may follow
        size = None if match is None or match["size"] is None else int.from_bytes(match["size"], "little")
        words.append("" if match is None else match["text"][:size].decode("ascii", "replace"))
    return words[0], words[1]


def _spread(mapping: str, own: Index | None, corners: NDArray[np.integer]) -> Index | None:
    """Return the color of each corner, with a note if the mapping is unknown or the index does not fit.

    Args:
        mapping: Mapping of the layer.
        own: Its index, or None if its colors are in order.
        corners: Vertex of each corner; the last corner of each polygon is its complement.
    """
    ends = corners < 0
    rows = {
        "ByPolygon": np.cumsum(ends) - ends,
        "ByPolygonVertex": np.arange(len(corners)),
        "ByVertice": np.where(ends, ~corners, corners),
        "ByVertex": np.where(ends, ~corners, corners),
        "AllSame": np.zeros(len(corners), np.int64),
    }.get(mapping)
    if rows is None or (own is not None and len(rows) and int(rows.max()) >= len(own)):
        note("colors_not_read", f"dropped vertex colors that are mapped {mapping[:40]!r}; map them by polygon vertex")
        return None
    return (rows if own is None else own[rows]).astype(np.int32)


def _prepare_text(data: bytes) -> bytes:
    starts = [match.start() for match in _GEOMETRY.finditer(data)]
    bounds = [0, *starts, len(data)]
    pieces = [data[: bounds[1]]]
    for start, end in pairwise(bounds[1:]):
        geometry = data[start:end]
        corners = _CORNERS.search(geometry)
        for layer in reversed(list(_LAYER.finditer(geometry))):
            mapping, reference = _find_mapping(geometry, layer.start())
            if corners is not None and not _is_read(mapping, reference):
                own = None if reference == "Direct" else _find_index(geometry, layer.start())
                index = _spread(mapping, own, _parse(corners[1]))
                geometry = geometry if index is None else _replace_text(geometry, layer.end(), index)
        pieces.append(geometry)
    return b"".join(pieces)


def _find_index(geometry: bytes, start: int) -> Index:
    """Return the index of the layer of colors at an offset; empty without one."""
    match = _COLOR_INDEX.search(geometry, start)
    return np.empty(0, np.int32) if match is None else _parse(match[1])


def _parse(text: bytes) -> Index:
    try:
        return np.array(text.split(b","), np.int32)
    except (ValueError, OverflowError):
        raise _Damaged from None


def _replace_text(geometry: bytes, start: int, index: Index) -> bytes:
    """Return a geometry whose layer of colors at an offset has this index."""
    head, layer = geometry[:start], geometry[start:]
    for pattern, word in ((_MAPPING, b"ByPolygonVertex"), (_REFERENCE, b"IndexToDirect")):
        match = pattern.search(layer)
        if match is not None:
            layer = layer[: match.start("text")] + word + layer[match.end("text") :]
    array = b"ColorIndex: *%d { a: %s }" % (len(index), ",".join(map(str, index.tolist())).encode())
    old = _COLOR_INDEX.search(layer)
    if old is not None and b"LayerElement" not in layer[: old.start()]:
        return head + layer[: old.start()] + array + layer[old.end() :]
    brace = layer.index(b"{") + 1
    return head + layer[:brace] + b"\n" + array + b"\n" + layer[brace:]


def _prepare_binary(data: bytes) -> bytes:
    head = _HEADS[struct.unpack_from("<I", data, len(_MAGIC) + 2)[0] >= _WIDE_VERSION]
    try:
        records = list(_read_records(data, _FIRST_RECORD, len(data), head, 0))
        for geometry in [each for objects in _find(records, "Objects") for each in _find(objects.children, "Geometry")]:
            corners = next(iter(_find(geometry.children, "PolygonVertexIndex")), None)
            for layer in _find(geometry.children, "LayerElementColor"):
                if corners is not None:
                    _replace_records(layer, _decode(corners))
        return b"".join(encode_file(records))
    except (struct.error, zlib.error, KeyError, IndexError, ValueError):
        raise _Damaged from None


def _read_records(data: bytes, start: int, end: int, head: struct.Struct, depth: int) -> Iterator[Record]:
    """Yield the records between two offsets."""
    if depth > _MAX_DEPTH_COUNT:
        raise _Damaged
    while start + head.size <= end:
        stop, count, size, length = head.unpack_from(data, start)
        if stop == 0:
            return
        name_end = start + head.size + length
        if not name_end + size <= stop <= end:
            raise _Damaged
        record = Record(data[start + head.size : name_end].decode("ascii"))
        record.properties = list(_read_properties(data, name_end, count))
        record.children = list(_read_records(data, name_end + size, stop, head, depth + 1))
        yield record
        start = stop


def _read_properties(data: bytes, start: int, count: int) -> Iterator[bytes]:
    """Yield the properties of a record, encoded."""
    for _ in range(count):
        kind = data[start : start + 1]
        if kind in _SCALAR_BYTES:
            size = _SCALAR_BYTES[kind]
        elif kind in (b"S", b"R"):
            size = 4 + struct.unpack_from("<I", data, start + 1)[0]
        else:
            size = 12 + struct.unpack_from("<I", data, start + 9)[0]
        if kind in b"fdilbc":
            elements, encoding = struct.unpack_from("<II", data, start + 1)
            # arrays that are not compressed state no size
            size = 12 + elements * {b"f": 4, b"i": 4, b"b": 1, b"c": 1}.get(kind, 8) if encoding == 0 else size
        yield data[start : start + 1 + size]
        start += 1 + size


def _find(records: list[Record], name: str) -> list[Record]:
    return [record for record in records if record.name == name]


def _decode(record: Record) -> Index:
    """Return the integers of an array."""
    data = record.properties[0]
    count, encoding, size = struct.unpack_from("<III", data, 1)
    dtype = np.dtype(_ARRAY_DTYPES[data[:1]])
    content = (
        data[13 : 13 + size] if encoding == 0 else zlib.decompressobj().decompress(data[13:], count * dtype.itemsize)
    )
    return np.frombuffer(content, dtype, count).astype(np.int32)


def _replace_records(layer: Record, corners: Index) -> None:
    """Give a layer of colors an index for each corner."""
    fields = {child.name: child for child in layer.children}
    mapping, reference = (
        fields[name].properties[0][5:].decode("ascii", "replace")
        for name in ("MappingInformationType", "ReferenceInformationType")
    )
    if _is_read(mapping, reference):
        return
    own = None if reference == "Direct" else _decode(fields["ColorIndex"])
    index = _spread(mapping, own, corners)
    if index is None:
        return
    layer.children = [
        child
        for child in layer.children
        if child.name not in ("MappingInformationType", "ReferenceInformationType", "ColorIndex")
    ]
    layer.add("MappingInformationType", "ByPolygonVertex")
    layer.add("ReferenceInformationType", "IndexToDirect")
    layer.add("ColorIndex", index)
