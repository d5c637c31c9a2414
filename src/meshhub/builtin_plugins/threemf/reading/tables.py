"""Long runs of one kind of element, read in columns instead of one by one.

Exporters write `<vertex x="1" y="2" z="3"/>` a line, so a CSV parser that splits at the quotation mark
finds numbers in every second field. The fields between hold the markup, and are verified: each of
them must be the same element with the same attributes, or the whole run is left to the XML parser.
That is an order of magnitude faster than any XML parser that was measured.
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

from meshhub.builtin_plugins.threemf.reading.document import PAINT
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
_WORTHWHILE = 4096
"""Bytes below which the XML parser is faster."""
_MOST_LITERALS = 64
_MOST_KINDS = 16
_MOST_FIELDS = 64
_HEX = np.full(256, 255, np.uint8)
_HEX[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)
_HEX[np.frombuffer(b"ABCDEF", np.uint8)] = np.arange(10, 16)


def lift(data: bytes) -> tuple[bytes, dict[int, Columns]]:
    """A document without the bodies of its long elements, and those bodies as columns.

    The key is the byte at which the element starts in the document that is returned. What is not
    regular stays where it was, for the XML parser.

    Columns: float64 `x y z`; int32 `v1 v2 v3`, and `pid p1 p2 p3` with -1 where a row has none; float64 `u v`;
    `rgba` (n, 4) uint8; int32 for each attribute of slicer paint, positive where a triangle has it.
    """
    pieces: list[bytes] = []
    lifted: dict[int, Columns] = {}
    kept = at = removed = 0
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
        if stop - match.end() < _WORTHWHILE:
            continue
        try:
            columns = read_elements(data[match.end() : stop], container.decode(), prefix.decode())
        except Irregular:
            continue
        lifted[match.start() - removed] = columns
        pieces.append(data[kept : match.end()])
        removed += stop - match.end()
        kept = stop
    pieces.append(data[kept:])
    return b"".join(pieces), lifted


def read_elements(body: bytes, container: str, prefix: str = "") -> Columns:
    """The child elements of a container, in columns. Raises Irregular when they are not uniform enough."""
    tag = prefix + _CHILD[container]
    body = body[body.rfind(b"\n", 0, max(body.find(b"<"), 0)) + 1 :].rstrip()
    if b"</" in body[:1000]:
        body = body.replace(f"></{tag}>".encode(), b"/>")
    first = body[: body.find(b"\n") + 1 or None]
    if first.count(b"<", 0, 4000) > 1:
        body = body.replace(b"><", b">\n<")
    fields = _FIELDS[container]
    count = body.count(b"<")
    if count == 0:
        if body:
            raise Irregular("text where elements should be")
        return _finished({}, container, 0)
    found: Columns = {}
    try:
        found = _uniform(body, tag, fields)
    except Irregular:
        for rows, text in _kinds(body):
            part = _uniform(text, tag, fields)
            if any(name not in part for name in _required(container)):
                raise Irregular("elements without their attributes") from None
            for name, column in part.items():
                whole = found.setdefault(name, _absent(count, column))
                if len(column) != len(rows) or len(whole) <= rows[-1]:
                    raise Irregular("rows that are no elements") from None
                whole[rows] = column
    if any(name not in found or len(found[name]) != count for name in _required(container)):
        raise Irregular("rows that are no elements")
    return _finished(found, container, count)


def _required(container: str) -> tuple[str, ...]:
    return ("rgba",) if container == "colorgroup" else _REQUIRED[container]


def _absent(count: int, like: NDArray[Any]) -> NDArray[Any]:
    made = np.empty((count, *like.shape[1:]), like.dtype)
    made.fill(-1 if like.dtype.kind != "u" else 0)
    return made


def _finished(found: Columns, container: str, count: int) -> Columns:
    if count == 0:
        kinds = {"vertices": "f8", "triangles": "i4", "texture2dgroup": "f8"}
        if container == "colorgroup":
            return {"rgba": np.empty((0, 4), np.uint8)}
        return {name: np.empty(0, kinds[container]) for name in _REQUIRED[container]}
    return found


def _kinds(body: bytes) -> Iterator[tuple[NDArray[np.intp], bytes]]:
    """The lines of a text sorted by how many attributes they have: their numbers, and they themselves."""
    letters = np.frombuffer(body, np.uint8)
    ends = np.append(np.flatnonzero(letters == 10) + 1, len(letters))
    if len(ends) > 1 and ends[-1] == ends[-2]:
        ends = ends[:-1]
    marks = np.diff(np.searchsorted(np.flatnonzero(letters == 34), ends), prepend=0)
    lengths = np.diff(ends, prepend=0)
    kinds = np.unique(marks)
    if len(kinds) > _MOST_KINDS or len(kinds) < 2:
        raise Irregular("too many kinds of rows")
    for kind in kinds:
        mine = marks == kind
        yield np.flatnonzero(mine), letters[np.repeat(mine, lengths)].tobytes()


def _names(line: str, tag: str) -> list[str]:
    """The names of the attributes of one element."""
    parts = line.split('"')
    opening = re.fullmatch(_OPENING_FIELD.format(tag=re.escape(tag), name=r"[A-Za-z_][\w.-]*"), parts[0])
    inner = [_ATTRIBUTE.fullmatch(part) for part in parts[2:-1:2]]
    if len(parts) % 2 == 0 or len(parts) > _MOST_FIELDS or opening is None or not _END.fullmatch(parts[-1]):
        raise Irregular("not one element a line")
    names = [opening.group(1)]
    for match in inner:
        if match is None:
            raise Irregular("not one element a line")
        names.append(match.group(1))
    if len(set(names)) < len(names):
        raise Irregular("an attribute twice")
    return names


def _uniform(text: bytes, tag: str, fields: dict[str, pa.DataType]) -> Columns:
    """Lines that each hold one element with the same attributes in the same order."""
    try:
        names = _names(text[: text.find(b"\n") + 1 or None][:4000].decode().strip("\r\n"), tag)
    except UnicodeDecodeError:
        raise Irregular("not UTF-8") from None
    columns = [f"f{index}" for index in range(2 * len(names) + 1)]
    # PrusaSlicer's paint has a prefix
    names_read = [local if (local := name.rpartition(":")[2]) in PAINT else name for name in names]
    wanted = {columns[2 * index + 1]: fields[name] for index, name in enumerate(names_read) if name in fields}
    types = wanted | dict.fromkeys(columns[::2], pa.binary())
    try:
        table = csv.read_csv(
            pa.BufferReader(pa.py_buffer(text)),
            read_options=csv.ReadOptions(use_threads=False, column_names=columns, block_size=1 << 20),
            parse_options=csv.ParseOptions(delimiter='"', quote_char=False, newlines_in_values=False),
            convert_options=csv.ConvertOptions(
                include_columns=list(types), column_types=types, null_values=[], strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid as error:
        raise Irregular(str(error).splitlines()[0]) from None
    _verify(table, columns[::2], names, tag)
    found: Columns = {}
    for index, name in enumerate(names_read):
        column = columns[2 * index + 1]
        if column in wanted:
            values = table.column(column)
            if wanted[column] == pa.string():
                found["rgba"] = colors_of(values.combine_chunks())
            elif wanted[column] == pa.binary():
                is_painted = pc.cast(pc.greater(pc.binary_length(values), 0), pa.int32())
                found[name] = np.concatenate([as_numpy(chunk) for chunk in is_painted.chunks])
            else:
                found[name] = np.concatenate([as_numpy(chunk) for chunk in values.chunks])
                if not np.isfinite(found[name]).all():
                    raise Irregular("a number that is not finite")
    return found


def _verify(table: pa.Table, columns: list[str], names: list[str], tag: str) -> None:
    """That the markup between the values says the same in every row."""
    patterns = [re.compile(_OPENING_FIELD.format(tag=re.escape(tag), name=re.escape(names[0])))]
    patterns += [re.compile(rf"\s+{re.escape(name)}\s*=\s*") for name in names[1:]]
    for column, pattern in zip(columns, [*patterns, _END], strict=True):
        for chunk in table.column(column).chunks:
            if not all(pattern.fullmatch(text) for text in _distinct(chunk)):
                raise Irregular("rows that are not all the same element")


def _distinct(texts: pa.Array) -> list[str]:
    """The different texts of a column; a comparison with the last is several times faster than a dictionary."""
    last = texts[len(texts) - 1]
    if pc.all(pc.equal(texts, last)).as_py():
        return [_decoded(last.as_py())]
    different = pc.unique(texts)
    if len(different) > _MOST_LITERALS:
        raise Irregular("markup of too many kinds")
    return [_decoded(text) for text in different.to_pylist()]


def _decoded(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise Irregular("not UTF-8") from None


def colors_of(texts: pa.Array) -> UInt8:
    """`#RRGGBB` and `#RRGGBBAA` as (n, 4) uint8. Raises Irregular for anything else."""
    if len(texts) == 0:
        return np.empty((0, 4), np.uint8)
    texts = pc.ascii_trim_whitespace(texts)
    if not set(pc.unique(pc.binary_length(texts)).to_pylist()) <= {7, 9}:
        raise Irregular("a colour that is neither #RRGGBB nor #RRGGBBAA")
    letters = np.frombuffer(_padded(texts), np.uint8)
    if len(letters) != 9 * len(texts):
        raise Irregular("a colour that is not plain text")
    letters = letters.reshape(-1, 9)
    digits = _HEX[letters[:, 1:]]
    if (letters[:, 0] != ord("#")).any() or (digits == 255).any():
        raise Irregular("a colour that is neither #RRGGBB nor #RRGGBBAA")
    return (digits[:, 0::2] << 4 | digits[:, 1::2]).astype(np.uint8)


def _padded(texts: pa.Array) -> memoryview:
    """The texts as one run of bytes, nine each."""
    wide = pc.ascii_rpad(texts, 9, "F")
    offsets = np.frombuffer(wide.buffers()[1], np.int32)
    return memoryview(wide.buffers()[2])[offsets[wide.offset] : offsets[wide.offset + len(wide)]]
