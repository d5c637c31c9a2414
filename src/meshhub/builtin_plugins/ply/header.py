"""Header of a PLY file: encoding, elements and their properties, textures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from meshhub.errors import CUT_OFF, OTHER_KIND, UnreadableFile, quote
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
"""numpy codes for the types of the format, and for the 64-bit integers that some programs add."""

MAX_HEADER_BYTES = 1 << 20
"""Maximum bytes searched for the end of the header; far more than the header of any real file."""

MAX_LISTS_COUNT = 32
"""Maximum lists per element; the time to locate its rows grows with their number, and real files have at most three."""

_END = re.compile(rb"(?:\r\n|\r|\n)[ \t]*end_header[ \t]*(\r\n|\r|\n|\Z)")
_COUNT = re.compile(r"\d{1,18}", re.ASCII)
_COMMENT_KEYWORDS = frozenset(("comment", "obj_info"))
_KEYWORDS = _COMMENT_KEYWORDS | {"ply", "format", "element", "property", "end_header"}


@dataclass(frozen=True)
class Property:
    """Column of an element; `count_type` is the type of the count if every value is a list."""

    name: str
    type: str
    count_type: str | None = None


@dataclass
class Element:
    """Table declared in the header."""

    name: str
    count: int
    properties: list[Property] = field(default_factory=list)

    @property
    def list_count(self) -> int:
        """Number of list properties; if there are any, the rows may differ in length."""
        return sum(column.count_type is not None for column in self.properties)


@dataclass
class Header:
    """Parsed header; `data_start` is the offset of the first byte after it, and `line_count` counts its lines."""

    encoding: Encoding
    elements: list[Element]
    textures: list[str]
    data_start: int
    line_count: int

    @property
    def is_gaussian_splat(self) -> bool:
        """Whether the points are Gaussians of a radiance field, plain or as PlayCanvas compresses them."""
        names = {(element.name, prop.name) for element in self.elements for prop in element.properties}
        return ("vertex", "f_dc_0") in names or ("vertex", "packed_position") in names


def read_header(data: bytes) -> Header:
    """Parse the header of a PLY file.

    Raises:
        UnreadableFile: The header is damaged; the message names the line.
    """
    head = data[:MAX_HEADER_BYTES]
    if not head.startswith(b"ply"):
        raise UnreadableFile('the file is not PLY: it does not start with "ply"; check its format', values=OTHER_KIND)
    end = _END.search(head)
    if end is None:
        raise UnreadableFile(
            "the PLY header has no end_header line: the file is cut off or damaged; export it again", values=CUT_OFF
        )
    lines = re.split(r"\r\n|\r|\n", head[: end.start()].decode("latin-1"))
    header = Header("ascii", [], [], _data_start(head, end), len(lines) + 1)
    has_format = False
    for number, line, words in _statements(lines):
        if words[0] == "comment":
            _add_texture(header, line, words)
        elif words[0] == "format" and len(words) >= 2 and words[1] in _ENCODINGS:
            header.encoding, has_format = _ENCODINGS[words[1]], True
        elif words[0] == "element" and len(words) == 3 and _COUNT.fullmatch(words[2]):
            header.elements.append(Element(words[1].lower(), int(words[2])))
        elif words[0] == "property" and header.elements:
            header.elements[-1].properties.append(_parse_property(words, number, line))
        else:
            raise _bad_line(number, line)
    if any(element.list_count > MAX_LISTS_COUNT for element in header.elements):
        raise UnreadableFile(f"an element of the PLY file has more than {MAX_LISTS_COUNT} lists; export it again")
    if not has_format:
        raise UnreadableFile("the PLY header has no format line (ascii, binary_little_endian or binary_big_endian)")
    return header


def _add_texture(header: Header, line: str, words: list[str]) -> None:
    """Add the file name of a `comment TextureFile` line; ignore other comments."""
    if len(words) > 2 and words[1].lower() == "texturefile":
        header.textures.append(line.split(None, 2)[2].strip())


def _statements(lines: list[str]) -> Iterator[tuple[int, str, list[str]]]:
    """Yield each statement and comment of the header: line number from 1, line, words."""
    in_comment = has_element = False
    ignored: list[int] = []
    for number, line in enumerate(lines[1:], 2):
        words = line.split()
        if not words:
            continue
        if (in_comment or not has_element) and words[0].lower() not in _KEYWORDS:
            # some programs wrap long comments without repeating the keyword; Blender 2.47 wrote its name without one
            ignored.append(number)
            continue
        if words[0] == "property" and ignored and not has_element:
            raise _bad_line(ignored[0], lines[ignored[0] - 1])
        in_comment = words[0] in _COMMENT_KEYWORDS
        has_element = has_element or words[0] == "element"
        if words[0] != "obj_info":
            yield number, line, words
    if ignored:
        first = f"line {ignored[0]} of the PLY header ({quote(lines[ignored[0] - 1])})"
        more = f"; so were {len(ignored) - 1:,} more lines" if len(ignored) > 1 else ""
        note("header_line_ignored", f"{first} has no keyword and was ignored{more}")


def _data_start(head: bytes, end: re.Match[bytes]) -> int:
    """Return the offset of the data. If lines end with a bare CR, an LF after the header is already data."""
    line_end = re.search(rb"\r\n|\r|\n", head)
    if line_end is not None and line_end.group() == b"\r" and end.group(1) == b"\r\n":
        return end.end() - 1
    return end.end()


def _parse_property(words: list[str], number: int, line: str) -> Property:
    if len(words) == 3 and words[1].lower() in TYPES:
        return Property(words[2].lower(), TYPES[words[1].lower()])
    if len(words) == 5 and words[1] == "list":
        count, item = TYPES.get(words[2].lower(), ""), TYPES.get(words[3].lower(), "")
        if item and count[:1] in ("i", "u"):
            return Property(words[4].lower(), item, count)
    raise _bad_line(number, line)


def _bad_line(number: int, line: str) -> UnreadableFile:
    return UnreadableFile(
        f"line {number} of the PLY header is not valid: {quote(line)}; export the model again", values={"line": number}
    )
