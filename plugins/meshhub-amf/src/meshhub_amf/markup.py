"""Markup that hides tags from a search for them: UTF-16, comments, CDATA sections, processing instructions."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape

from meshhub import UnreadableFile

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
            raise UnreadableFile(
                "the XML ends inside a comment; the file is cut off, export the model again",
                values={"defect": "cut_off"},
            )
        pieces.append(data[start : mark.start()])
        if mark.group() == b"<![CDATA[":
            pieces.append(escape(data[mark.end() : end].decode("latin-1")).encode("latin-1"))
        start = end + len(end_mark)
    pieces.append(data[start:])
    return b"".join(pieces)
