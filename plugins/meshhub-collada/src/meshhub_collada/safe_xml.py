"""Parse untrusted XML: no document type, no entities, bounded depth and size, no external resources."""

from __future__ import annotations

from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from meshhub import ModelTooComplex, UnreadableFile

_MAX_DEPTH_COUNT = 512
"""Nested elements; each node of a hierarchy is one, and bones of characters form long chains."""

_MAX_ELEMENTS_COUNT = 2_000_000
"""Elements of a document; each takes 200 bytes of memory."""


def parse(data: bytes) -> Element:
    """Parse a document to a tree of local names, without namespaces.

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
            raise ModelTooComplex(f"the file has more than {_MAX_ELEMENTS_COUNT} XML elements; triangulate the model")
        builder.start(name.rpartition(":")[2], attributes)

    def end_element(name: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(name.rpartition(":")[2])

    def reject(*_: object) -> None:
        raise UnreadableFile("the XML declares a document type or entities, which is not safe to read")

    parser.StartElementHandler = start_element
    parser.EndElementHandler = end_element
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = reject
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code) or "it is malformed"
        raise UnreadableFile(f"not well-formed XML in line {error.lineno} ({reason}); export the model again") from None
    except (LookupError, ValueError):
        raise UnreadableFile("the XML is in an unknown encoding; export the model as UTF-8") from None
    return builder.close()
