"""Parse untrusted XML: no document type, no entities, bounded depth, no external resources.

`parse_xml` calls functions for elements, for large documents. `read_xml_tree` returns a tree, for small ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from xml.etree import ElementTree
from xml.parsers import expat

from meshhub.errors import ModelTooComplex, UnreadableFile

MAX_DEPTH_COUNT = 64
"""Maximum nested elements; a model needs fewer than twenty."""

MAX_TREE_ELEMENTS_COUNT = 1_000_000
"""Maximum elements of a tree; each takes about 500 bytes of memory, and a small archive can hold billions."""

OFFSET = "\0offset"
"""Attribute with the byte offset of an element's tag; the name cannot occur in a document."""

Attributes = Mapping[str, str]
"""Attributes of an element; keys are `local`, or `namespace local` for those with a namespace."""


_OTHER_ENCODING = re.compile(rb"\s*<\?xml[^<>]{0,200}?encoding\s*=\s*[\"'](?!utf-?8[\"'])", re.IGNORECASE)
_INVALID = re.compile("[\udc80-\udcff]")
"""Bytes that are not UTF-8, as Python's `surrogateescape` decodes them."""


def as_utf8(data: bytes) -> tuple[bytes, str | None]:
    """Convert UTF-16 to UTF-8, and replace bytes that are not UTF-8, which some programs write in names, by "?".

    Returns:
        The document, and the encoding to pass to `parse_xml`; None for a document that was not converted.
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
    if data.isascii() or _OTHER_ENCODING.match(data):
        return data, None
    try:
        data.decode()
    except UnicodeDecodeError:
        # the number of bytes stays, and with it the offsets of elements
        return _INVALID.sub("?", data.decode("utf-8", "surrogateescape")).encode(), None
    return data, None


def parse_xml(  # noqa: PLR0913 - callbacks and limits are keywords, and have defaults
    data: bytes,
    document: str,
    *,
    start: Callable[[str, str, Attributes, int], None],
    end: Callable[[], None],
    text: Callable[[str], None] | None = None,
    prefix: Callable[[str, str], None] | None = None,
    encoding: str | None = None,
    namespaces: bool = True,
    max_depth: int = MAX_DEPTH_COUNT,
) -> None:
    """Parse a document with callbacks.

    Args:
        data: The document.
        document: Name of the document for error messages.
        start: Called with namespace, local name, attributes and byte offset of each element.
        end: Called at the end of each element.
        text: Called with pieces of text.
        prefix: Called with each declared prefix and its namespace, before the element that declares it.
        encoding: Encoding that replaces the declared one.
        namespaces: Whether prefixes stand for namespaces; otherwise, they are part of local names, declared or not.
        max_depth: Maximum number of nested elements.
    Raises:
        UnreadableFile: The document is not well-formed, declares a document type or entities, nests elements more than
            `max_depth` deep, or has an unknown encoding.
    """
    parser = expat.ParserCreate(encoding, namespace_separator=" " if namespaces else None)
    parser.buffer_text = True
    depth = 0

    def start_element(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > max_depth:
            raise UnreadableFile(f"{document} nests elements more than {max_depth} deep; export the model again")
        start(*_split_name(name), attributes, parser.CurrentByteIndex)

    def end_element(_name: str) -> None:
        nonlocal depth
        depth -= 1
        end()

    def reject(*_: object) -> None:
        raise UnreadableFile(f"{document} declares a document type or entities, which are unsafe; export it again")

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
        raise UnreadableFile(f"{document} is in an encoding that cannot be read; export it as UTF-8") from None


def read_xml_tree(
    data: bytes,
    document: str,
    *,
    max_elements: int = MAX_TREE_ELEMENTS_COUNT,
    max_depth: int = MAX_DEPTH_COUNT,
    namespaces: bool = True,
    offsets: bool = False,
) -> ElementTree.Element:
    """Parse a document into a tree, in UTF-8, UTF-16 or another declared encoding.

    Args:
        data: The document.
        document: Name of the document for error messages.
        max_elements: Maximum number of elements.
        max_depth: Maximum number of nested elements.
        namespaces: Whether names include their namespace; otherwise, prefixes need no declaration.
        offsets: Whether each element has the attribute OFFSET.
    Returns:
        Root element; tags and attributes are `local`, or `{namespace}local` for those with a namespace.
    Raises:
        UnreadableFile: See `parse_xml`.
        ModelTooComplex: The document has more than `max_elements` elements.
    """
    make_tag = _tag if namespaces else _drop_prefix
    builder = ElementTree.TreeBuilder()
    open_tags: list[str] = []
    count = 0

    def start(namespace: str, local: str, attributes: Attributes, at: int) -> None:
        nonlocal count
        count += 1
        if count > max_elements:
            raise ModelTooComplex(f"{document} has more than {max_elements:,} elements; reduce the model")
        own = {
            make_tag(*_split_name(name)): value for name, value in attributes.items() if not name.startswith("xmlns")
        }
        open_tags.append(make_tag(namespace, local))
        builder.start(open_tags[-1], own | {OFFSET: str(at)} if offsets else own)

    def end() -> None:
        builder.end(open_tags.pop())

    document_bytes, encoding = as_utf8(data)
    parse_xml(
        document_bytes,
        document,
        start=start,
        end=end,
        text=builder.data,
        encoding=encoding,
        namespaces=namespaces,
        max_depth=max_depth,
    )
    root: ElementTree.Element = builder.close()
    return root


def _split_name(name: str) -> tuple[str, str]:
    namespace, _, local = name.rpartition(" ")
    return namespace, local


def _tag(namespace: str, local: str) -> str:
    return f"{{{namespace}}}{local}" if namespace else local


def _drop_prefix(_namespace: str, local: str) -> str:
    return local.rpartition(":")[2]
