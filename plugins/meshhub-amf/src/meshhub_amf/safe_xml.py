"""Parse untrusted XML: no document type, no entities, bounded depth and size, no external resources."""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat
from xml.sax.saxutils import escape

from meshhub import ModelTooComplex, UnreadableFile

OFFSET = "\0offset"
"""Attribute that holds the position of the element's tag in the text; no document can contain its name."""

_MAX_DEPTH_COUNT = 64
"""Nested elements; a model needs eight."""

_MAX_ELEMENTS_COUNT = 2_000_000
"""Elements outside the extracted bodies; each takes 200 bytes of memory."""

_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")
_XML_DECLARATION = re.compile(rb"\s*<\?xml[^<>]*\?>")
_END_MARKS = {b"<!--": b"-->", b"<![CDATA[": b"]]>", b"<?": b"?>"}
_OPENING_MARK = re.compile(rb"<!--|<!\[CDATA\[|<\?")


def normalize(data: bytes) -> bytes:
    """Return a document in an encoding that contains ASCII, without comments, CDATA and processing instructions.

    Raises:
        UnreadableFile: The document is malformed UTF-16, or is cut off in a comment.
    """
    if data[:2] in _BYTE_ORDER_MARKS:
        try:
            text = data.decode("utf-16").encode()
        except UnicodeError:
            raise UnreadableFile("the XML starts as UTF-16 but is not valid UTF-16; export the model again") from None
        declaration = _XML_DECLARATION.match(text)
        data = text[declaration.end() :] if declaration else text
    declaration = _XML_DECLARATION.match(data.removeprefix(b"\xef\xbb\xbf"))
    start = data.find(b"?>") + 2 if declaration else 0
    pieces = [data[:start]]
    while mark := _OPENING_MARK.search(data, start):
        end_mark = _END_MARKS[mark.group()]
        end = data.find(end_mark, mark.end())
        if end < 0:
            raise UnreadableFile("the XML ends inside a comment; the file is cut off, export the model again")
        pieces.append(data[start : mark.start()])
        if mark.group() == b"<![CDATA[":
            pieces.append(escape(data[mark.end() : end].decode("latin-1")).encode("latin-1"))
        start = end + len(end_mark)
    pieces.append(data[start:])
    return b"".join(pieces)


def parse(data: bytes) -> Element:
    """Parse a document to a tree.

    Raises:
        UnreadableFile: The document is not well-formed, or declares a document type or entities.
        ModelTooComplex: The document has too many elements.
    """
    parser = expat.ParserCreate()
    parser.buffer_text = True
    builder = TreeBuilder()
    depth = count = 0

    def start_element(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth, count
        depth += 1
        count += 1
        if depth > _MAX_DEPTH_COUNT:
            raise UnreadableFile(f"the XML nests elements more than {_MAX_DEPTH_COUNT} deep; export the model again")
        if count > _MAX_ELEMENTS_COUNT:
            raise ModelTooComplex(f"the file has more than {_MAX_ELEMENTS_COUNT} XML elements; simplify the model")
        attributes[OFFSET] = str(parser.CurrentByteIndex)
        builder.start(name, attributes)

    def end_element(name: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(name)

    parser.StartElementHandler = start_element
    parser.EndElementHandler = end_element
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = _reject
    _feed(parser.Parse, data)
    return builder.close()


def _reject(*_: object) -> None:
    raise UnreadableFile("the XML declares a document type or entities, which is not safe to read; export it again")


def _feed(parse: Callable[[bytes, bool], int], data: bytes) -> None:
    """Parse all data; errors of expat become UnreadableFile."""
    try:
        parse(data, True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code) or "it is malformed"
        raise UnreadableFile(f"not well-formed XML in line {error.lineno} ({reason}); export the model again") from None
    except (LookupError, ValueError):
        raise UnreadableFile("the XML is in an unknown encoding; export the model as UTF-8") from None
