"""Extract long runs of equal elements as columns, before the XML parser runs.

Exporters write one `<vertex x="1" y="2" z="3"/>` per line. A CSV parser that splits at quotation marks finds numbers
in every second field. The fields between hold the markup and are verified: each must be the same element with the same
attributes. Otherwise, the run is left to the XML parser. This is ten times faster than any XML parser that was
measured.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
from numpy.typing import NDArray

from meshhub.builtin_plugins.threemf.reading.model_document import PAINT
from meshhub.model.progress import advance
from meshhub.model.scene import UInt8
from meshhub.toolkit.columns import Irregular, as_numpy

Columns = dict[str, NDArray[Any]]

_FIELDS: dict[str, dict[str, pa.DataType]] = {
    "vertices": dict.fromkeys(("x", "y", "z"), pa.float64()),
    "triangles": dict.fromkeys(("v1", "v2", "v3", "pid", "p1", "p2", "p3"), pa.int32())
    | dict.fromkeys(PAINT, pa.binary()),
    "texture2dgroup": dict.fromkeys(("u", "v"), pa.float64()),
    "colorgroup": {"color": pa.string()},
}
_REQUIRED = {
    "vertices": ("x", "y", "z"),
    "triangles": ("v1", "v2", "v3"),
    "texture2dgroup": ("u", "v"),
    "colorgroup": ("color",),
}
_CHILD = {"vertices": "vertex", "triangles": "triangle", "texture2dgroup": "tex2coord", "colorgroup": "color"}
_TOKEN = re.compile(
    rb"<!--|<!\[CDATA\[|<\?"
    rb"|<((?:[A-Za-z_][\w.-]*:)?)(?:(vertices|triangles)\s*>|(texture2dgroup|colorgroup)\b[^<>]*(?<!/)>)"
)
_CLOSING = {b"<!--": b"-->", b"<![CDATA[": b"]]>", b"<?": b"?>"}
_OPENING_FIELD = r"\s*<{tag}\s+({name})\s*=\s*"
_ATTRIBUTE = re.compile(r"\s+([A-Za-z_][\w.-]*(?::[\w.-]+)?)\s*=\s*")
_END = re.compile(r"\s*/>\s*")
_MIN_BODY_BYTES = 4096
"""Minimum bytes of a body; for smaller ones, the XML parser is faster."""
_MAX_LITERALS_COUNT = 64
"""Maximum different markup texts in one column; more than one, because white space varies in real files."""
_MAX_KINDS_COUNT = 16
"""Maximum different attribute counts in one body; each costs a pass over the text."""
_MAX_FIELDS_COUNT = 64
"""Maximum fields per line; real elements have at most 17."""
_BLOCK_BYTES = 1 << 20
"""Bytes that pyarrow parses at a time; bounds the memory for one block."""
_MAX_LINE_BYTES = 4000
"""Maximum bytes of the first line that are inspected; bounds the time for text without line ends."""
_HEX = np.full(256, 255, np.uint8)
_HEX[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)
_HEX[np.frombuffer(b"ABCDEF", np.uint8)] = np.arange(10, 16)


PaintCodes = dict[bytes, int]
"""Numbers of the texts of slicer paint in a model part, by text; 0 is the empty text."""


def extract_columns(data: bytes, codes: PaintCodes) -> tuple[bytes, dict[int, Columns]]:
    """Extract the bodies of long containers from a document. Irregular bodies stay in place for the XML parser.

    Args:
        data: XML in UTF-8.
        codes: Numbers of the texts of slicer paint; new texts are added.
    Returns:
        The document without the extracted bodies, and the columns by the byte offset of their container in it:
        float64 `x y z`; int32 `v1 v2 v3`, and `pid p1 p2 p3` with -1 for missing attributes; float64 `u v`;
        `rgba` (n, 4) uint8; int32 per attribute of slicer paint: the number of its text, -1 for a missing attribute.
    """
    pieces: list[bytes] = []
    extracted: dict[int, Columns] = {}
    copied = at = removed = 0
    while match := _TOKEN.search(data, at):
        closing = _CLOSING.get(match.group())
        if closing is not None:
            at = data.find(closing, match.end())
            if at < 0:
                break
            continue
        prefix, container = match.group(1), match.group(2) or match.group(3)
        stop = data.find(b"</" + prefix + container, match.end())
        if stop < 0:
            break
        at = stop
        if stop - match.end() < _MIN_BODY_BYTES:
            continue
        try:
            columns = read_elements(data[match.end() : stop], container.decode(), codes, prefix.decode())
        except Irregular:
            continue
        advance(stop / len(data))
        extracted[match.start() - removed] = columns
        pieces.append(data[copied : match.end()])
        removed += stop - match.end()
        copied = stop
    pieces.append(data[copied:])
    return b"".join(pieces), extracted


def read_elements(body: bytes, container: str, codes: PaintCodes, prefix: str = "") -> Columns:
    """Read the child elements of a container as columns.

    Args:
        body: Text between the tags of the container.
        container: Local name of the container.
        codes: Numbers of the texts of slicer paint; new texts are added.
        prefix: Namespace prefix of container and children, with its colon.
    Returns:
        Columns, as `extract_columns`.
    Raises:
        Irregular: The elements are not uniform enough.
    """
    tag = prefix + _CHILD[container]
    body = _one_element_per_line(body, tag)
    count = body.count(b"<")
    if count == 0:
        if body:
            raise Irregular("text instead of elements")
        return _empty_columns(container)
    fields = _FIELDS[container]
    required = ("rgba",) if container == "colorgroup" else _REQUIRED[container]
    try:
        columns = _read_uniform(body, tag, fields, codes)
    except Irregular:
        columns = _read_mixed(body, tag, fields, required, count, codes)
    if any(name not in columns or len(columns[name]) != count for name in required):
        raise Irregular("lines that are not elements")
    return columns


def _one_element_per_line(body: bytes, tag: str) -> bytes:
    """Return the body with one self-closing element per line, if its start shows another layout."""
    body = body[body.rfind(b"\n", 0, max(body.find(b"<"), 0)) + 1 :].rstrip()
    if b"</" in body[:1000]:
        body = body.replace(f"></{tag}>".encode(), b"/>")
    first = body[: body.find(b"\n") + 1 or None]
    if first.count(b"<", 0, _MAX_LINE_BYTES) > 1:
        body = body.replace(b"><", b">\n<")
    return body


def _empty_columns(container: str) -> Columns:
    if container == "colorgroup":
        return {"rgba": np.empty((0, 4), np.uint8)}
    dtypes = {"vertices": "f8", "triangles": "i4", "texture2dgroup": "f8"}
    return {name: np.empty(0, dtypes[container]) for name in _REQUIRED[container]}


def _read_mixed(
    body: bytes, tag: str, fields: dict[str, pa.DataType], required: tuple[str, ...], count: int, codes: PaintCodes
) -> Columns:
    """Read elements that have different attributes; missing ones become -1, missing colors transparent black."""
    columns: Columns = {}
    for rows, text in _split_by_attribute_count(body):
        part = _read_uniform(text, tag, fields, codes)
        if any(name not in part for name in required):
            raise Irregular("elements without required attributes")
        for name, values in part.items():
            if name not in columns:
                columns[name] = np.full((count, *values.shape[1:]), 0 if values.dtype.kind == "u" else -1, values.dtype)
            if len(values) != len(rows) or len(columns[name]) <= rows[-1]:
                raise Irregular("lines that are not elements")
            columns[name][rows] = values
    return columns


def _split_by_attribute_count(body: bytes) -> Iterator[tuple[NDArray[np.intp], bytes]]:
    """Yield the lines with each number of attributes: their indices, and their text."""
    letters = np.frombuffer(body, np.uint8)
    ends = np.append(np.flatnonzero(letters == ord("\n")) + 1, len(letters))
    if len(ends) > 1 and ends[-1] == ends[-2]:
        ends = ends[:-1]
    quotes = np.diff(np.searchsorted(np.flatnonzero(letters == ord('"')), ends), prepend=0)
    lengths = np.diff(ends, prepend=0)
    kinds = np.unique(quotes)
    if len(kinds) > _MAX_KINDS_COUNT or len(kinds) < 2:
        raise Irregular("too many kinds of rows")
    for kind in kinds:
        is_kind = quotes == kind
        yield np.flatnonzero(is_kind), letters[np.repeat(is_kind, lengths)].tobytes()


def _parse_names(line: str, tag: str) -> list[str]:
    """Return the names of the attributes of one element."""
    parts = line.split('"')
    opening = re.fullmatch(_OPENING_FIELD.format(tag=re.escape(tag), name=r"[A-Za-z_][\w.-]*"), parts[0])
    inner = [_ATTRIBUTE.fullmatch(part) for part in parts[2:-1:2]]
    if len(parts) % 2 == 0 or len(parts) > _MAX_FIELDS_COUNT or opening is None or not _END.fullmatch(parts[-1]):
        raise Irregular("not one element per line")
    names = [opening.group(1)]
    for match in inner:
        if match is None:
            raise Irregular("not one element per line")
        names.append(match.group(1))
    if len(set(names)) < len(names):
        raise Irregular("duplicate attribute")
    return names


def _read_uniform(text: bytes, tag: str, fields: dict[str, pa.DataType], codes: PaintCodes) -> Columns:
    """Read lines that each hold one element with the same attributes in the same order."""
    try:
        names = _parse_names(text[: text.find(b"\n") + 1 or None][:_MAX_LINE_BYTES].decode().strip("\r\n"), tag)
    except UnicodeDecodeError:
        raise Irregular("not UTF-8") from None
    csv_names = [f"f{index}" for index in range(2 * len(names) + 1)]
    # PrusaSlicer writes paint with a prefix
    keys = [local if (local := name.rpartition(":")[2]) in PAINT else name for name in names]
    value_types = {csv_names[2 * index + 1]: fields[key] for index, key in enumerate(keys) if key in fields}
    types = value_types | dict.fromkeys(csv_names[::2], pa.binary())
    try:
        table = csv.read_csv(
            pa.BufferReader(pa.py_buffer(text)),
            read_options=csv.ReadOptions(use_threads=False, column_names=csv_names, block_size=_BLOCK_BYTES),
            parse_options=csv.ParseOptions(delimiter='"', quote_char=False, newlines_in_values=False),
            convert_options=csv.ConvertOptions(
                include_columns=list(types), column_types=types, null_values=[], strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid as error:
        raise Irregular(str(error).splitlines()[0]) from None
    _verify_markup(table, csv_names[::2], names, tag)
    columns: Columns = {}
    for index, key in enumerate(keys):
        csv_name = csv_names[2 * index + 1]
        if csv_name in value_types:
            if key in PAINT:
                columns[key] = _number_texts(table.column(csv_name), codes)
            elif value_types[csv_name] == pa.string():
                columns["rgba"] = parse_colors(table.column(csv_name).combine_chunks())
            else:
                columns[key] = _read_numbers(table.column(csv_name))
    return columns


def _number_texts(texts: pa.ChunkedArray, codes: PaintCodes) -> NDArray[np.int32]:
    """Return the number of each text."""
    numbers = []
    for chunk in texts.chunks:
        encoded = chunk.dictionary_encode()
        known = np.array([codes.setdefault(text, len(codes)) for text in encoded.dictionary.to_pylist()], np.int32)
        numbers.append(known[as_numpy(encoded.indices)])
    return np.concatenate(numbers)


def _read_numbers(values: pa.ChunkedArray) -> NDArray[Any]:
    numbers = np.concatenate([as_numpy(chunk) for chunk in values.chunks])
    if not np.isfinite(numbers).all():
        raise Irregular("a number that is not finite")
    return numbers


def _verify_markup(table: pa.Table, columns: list[str], names: list[str], tag: str) -> None:
    """Raise Irregular unless every row has the same markup between its values."""
    patterns = [re.compile(_OPENING_FIELD.format(tag=re.escape(tag), name=re.escape(names[0])))]
    patterns += [re.compile(rf"\s+{re.escape(name)}\s*=\s*") for name in names[1:]]
    for column, pattern in zip(columns, [*patterns, _END], strict=True):
        for chunk in table.column(column).chunks:
            if not all(pattern.fullmatch(text) for text in _distinct_texts(chunk)):
                raise Irregular("lines with different elements")


def _distinct_texts(texts: pa.Array) -> list[str]:
    """Return the different texts of a column; comparing with the last one is several times faster than a dictionary."""
    last = texts[len(texts) - 1]
    if pc.all(pc.equal(texts, last)).as_py():
        return [_decode(last.as_py())]
    different = pc.unique(texts)
    if len(different) > _MAX_LITERALS_COUNT:
        raise Irregular("too many kinds of markup")
    return [_decode(text) for text in different.to_pylist()]


def _decode(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise Irregular("not UTF-8") from None


def parse_colors(texts: pa.Array) -> UInt8:
    """Parse `#RRGGBB` and `#RRGGBBAA` to (n, 4) uint8.

    Raises:
        Irregular: A text has another form.
    """
    if len(texts) == 0:
        return np.empty((0, 4), np.uint8)
    texts = pc.ascii_trim_whitespace(texts)
    if not set(pc.unique(pc.binary_length(texts)).to_pylist()) <= {7, 9}:
        raise Irregular("a color that is neither #RRGGBB nor #RRGGBBAA")
    letters = np.frombuffer(_join_padded(texts), np.uint8)
    if len(letters) != 9 * len(texts):
        raise Irregular("a color that is not ASCII")
    letters = letters.reshape(-1, 9)
    digits = _HEX[letters[:, 1:]]
    if (letters[:, 0] != ord("#")).any() or (digits == 255).any():
        raise Irregular("a color that is neither #RRGGBB nor #RRGGBBAA")
    return (digits[:, 0::2] << 4 | digits[:, 1::2]).astype(np.uint8)


def _join_padded(texts: pa.Array) -> memoryview:
    """Return the texts as nine characters each; the padding is an opaque alpha."""
    wide = pc.ascii_rpad(texts, 9, "F")
    offsets = np.frombuffer(wide.buffers()[1], np.int32)
    return memoryview(wide.buffers()[2])[offsets[wide.offset] : offsets[wide.offset + len(wide)]]
