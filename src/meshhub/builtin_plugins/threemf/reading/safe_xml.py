"""Parse untrusted XML: no document type, no entities, bounded depth, no external resources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from xml.parsers import expat

from meshhub.errors import UnreadableFile

_MAX_DEPTH_COUNT = 64
"""Nested elements; a model needs seven."""

Attributes = Mapping[str, str]


def as_utf8(data: bytes) -> tuple[bytes, str | None]:
    """Convert UTF-16 to UTF-8.

    Returns:
        The document, and the encoding to pass to `parse`; None for a document that was not converted.
    Raises:
        UnreadableFile: The text is malformed UTF-16.
    """
    try:
        if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            return data.decode("utf-16").encode(), "utf-8"
        if data[:4] in (b"<\0?\0", b"<\0m\0"):
            return data.decode("utf-16-le").encode(), "utf-8"
        if data[:4] in (b"\0<\0?", b"\0<\0m"):
            return data.decode("utf-16-be").encode(), "utf-8"
    except UnicodeError:
        raise UnreadableFile("the XML starts as UTF-16 but is not valid UTF-16; export the model again") from None
    return data, None


def parse(
    data: bytes,
    document: str,
    *,
    start: Callable[[str, str, Attributes, int], None],
    end: Callable[[], None],
    text: Callable[[str], None] | None = None,
    prefix: Callable[[str, str], None] | None = None,
    encoding: str | None = None,
) -> None:
    """Parse a document with callbacks.

    Args:
        data: The document.
        document: Name of the document for error messages.
        start: Called with namespace, local name, attributes (keys `local`, or `namespace local` for those with a
            namespace) and the byte offset of each element.
        end: Called at the end of each element.
        text: Called with pieces of text.
        prefix: Called with each declared prefix and its namespace, before the element that declares it.
        encoding: Encoding that replaces the declared one.
    Raises:
        UnreadableFile: The document is not well-formed, or uses a forbidden construct.
    """
    parser = expat.ParserCreate(encoding, namespace_separator=" ")
    parser.buffer_text = True
    depth = 0

    def start_element(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _MAX_DEPTH_COUNT:
            raise UnreadableFile(f"{document} nests elements more than {_MAX_DEPTH_COUNT} deep; export the model again")
        namespace, _, local = name.rpartition(" ")
        start(namespace, local, attributes, parser.CurrentByteIndex)

    def end_element(_name: str) -> None:
        nonlocal depth
        depth -= 1
        end()

    def reject(*_: object) -> None:
        raise UnreadableFile(f"{document} declares a document type or entities, which 3MF forbids; export it again")

    parser.StartElementHandler = start_element
    parser.EndElementHandler = end_element
    parser.StartDoctypeDeclHandler = reject
    parser.EntityDeclHandler = reject
    parser.CharacterDataHandler = text
    if prefix is not None:
        parser.StartNamespaceDeclHandler = lambda name, uri: prefix(name or "", uri or "")
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code) or "it is malformed"
        raise UnreadableFile(f"{document} is not well-formed XML ({reason}); export the model again") from None
    except (LookupError, ValueError):
        raise UnreadableFile(f"{document} is in an encoding that 3MF forbids; export it as UTF-8") from None
