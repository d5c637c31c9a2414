"""The header of a PLY file: what elements follow, of which properties, in which encoding."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from meshhub.errors import UnreadableFile
from meshhub.model.notes import note

Encoding = Literal["ascii", "binary_little_endian", "binary_big_endian"]

_ENCODINGS: dict[str, Encoding] = {
    "ascii": "ascii",
    "binary_little_endian": "binary_little_endian",
    "binary_big_endian": "binary_big_endian",
}

TYPES: dict[str, str] = {
    "char": "i1", "int8": "i1", "uchar": "u1", "uint8": "u1",
    "short": "i2", "int16": "i2", "ushort": "u2", "uint16": "u2",
    "int": "i4", "int32": "i4", "uint": "u4", "uint32": "u4",
    "long": "i8", "int64": "i8", "ulong": "u8", "uint64": "u8",
    "float": "f4", "float32": "f4", "double": "f8", "float64": "f8",
}  # fmt: skip
"""The types of the format, and the 64-bit integers that some programs add, as numpy's codes."""

_END = re.compile(rb"(?:\r\n|\r|\n)[ \t]*end_header[ \t]*(\r\n|\r|\n|\Z)")
_LIMIT = 1 << 20
_MOST_LISTS = 32
"""Lists in an element; where its rows end is found in time that grows with them."""

_COUNT = re.compile(r"\d{1,18}", re.ASCII)
_REMARKS = frozenset(("comment", "obj_info"))
_KEYWORDS = _REMARKS | {"ply", "format", "element", "property", "end_header"}


@dataclass(frozen=True)
class Property:
    """A column of an element: numbers of one type, or lists of them with a count of its own type."""

    name: str
    type: str
    count_type: str | None = None


@dataclass
class Element:
    """A table of the file."""

    name: str
    count: int
    properties: list[Property] = field(default_factory=list)

    @property
    def lists(self) -> int:
        """How many properties are lists, by which rows may differ in length."""
        return sum(one.count_type is not None for one in self.properties)


@dataclass
class Header:
    """What the header says; `body` is where the data begins."""

    encoding: Encoding
    elements: list[Element]
    textures: list[str]
    body: int


def read_header(data: bytes) -> Header:
    """The header of a PLY file. Raises UnreadableFile, naming the line."""
    head = data[:_LIMIT].removeprefix(b"\xef\xbb\xbf")
    skipped = 3 if data.startswith(b"\xef\xbb\xbf") else 0
    if not head.startswith(b"ply"):
        raise UnreadableFile('not a PLY file: it does not begin with "ply"')
    end = _END.search(head)
    if end is None:
        raise UnreadableFile("the PLY header has no end_header line: the file is cut off or damaged; export it again")
    lines = re.split(r"\r\n|\r|\n", head[: end.start()].decode("latin-1"))
    header = Header("ascii", [], [], skipped + _body(head, end))
    known = False
    for number, line, words in _statements(lines):
        if words[0] == "comment":
            if len(words) > 2 and words[1].lower() == "texturefile":
                header.textures.append(line.split(None, 2)[2].strip())
        elif words[0] == "format" and len(words) >= 2 and words[1] in _ENCODINGS:
            header.encoding, known = _ENCODINGS[words[1]], True
        elif words[0] == "element" and len(words) == 3 and _COUNT.fullmatch(words[2]):
            header.elements.append(Element(words[1].lower(), int(words[2])))
        elif words[0] == "property" and header.elements:
            header.elements[-1].properties.append(_property(words, number, line))
        else:
            raise _wrong(number, line)
    if any(one.lists > _MOST_LISTS for one in header.elements):
        raise UnreadableFile(f"an element of the PLY file has more than {_MOST_LISTS} lists, as no program writes")
    if not known:
        raise UnreadableFile("the PLY header has no format line (ascii, binary_little_endian or binary_big_endian)")
    return header


def _statements(lines: list[str]) -> Iterator[tuple[int, str, list[str]]]:
    """Yield each statement and comment of the header: the line's number from 1, the line, its words."""
    in_remark = False
    wrapped: list[int] = []
    for number, line in enumerate(lines[1:], 2):
        words = line.split()
        if not words:
            continue
        if in_remark and words[0].lower() not in _KEYWORDS:
            # programs wrap long comments without repeating the keyword
            wrapped.append(number)
            continue
        in_remark = words[0] in _REMARKS
        if words[0] != "obj_info":
            yield number, line, words
    if wrapped:
        first = f"line {wrapped[0]} of the PLY header ({_printable(lines[wrapped[0] - 1])!r})"
        more = f"; so were {len(wrapped) - 1:,} more" if len(wrapped) > 1 else ""
        note("header_line_ignored", f"{first} has no keyword and was read as part of the comment{more}")


def _body(head: bytes, end: re.Match[bytes]) -> int:
    """Where the data begins. With bare CR as line end, an LF after the header is data already."""
    bare = re.search(rb"\r\n|\r|\n", head)
    if bare is not None and bare.group() == b"\r" and end.group(1) == b"\r\n":
        return end.end() - 1
    return end.end()


def _property(words: list[str], number: int, line: str) -> Property:
    if len(words) == 3 and words[1].lower() in TYPES:
        return Property(words[2].lower(), TYPES[words[1].lower()])
    if len(words) == 5 and words[1] == "list":
        count, item = TYPES.get(words[2].lower(), ""), TYPES.get(words[3].lower(), "")
        if item and count[:1] in ("i", "u"):
            return Property(words[4].lower(), item, count)
    raise _wrong(number, line)


def _wrong(number: int, line: str) -> UnreadableFile:
    shown = _printable(line)
    return UnreadableFile(f"line {number} of the PLY header cannot be understood: {shown!r}; export the model again")


def _printable(line: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in line[:60])
