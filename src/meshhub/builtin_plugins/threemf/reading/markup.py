"""XML read without trust: no document type, no entities, bounded depth, nothing fetched."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from xml.parsers import expat

from meshhub.errors import UnreadableFile

DEEPEST = 64
"""Elements in elements; a model needs seven."""

Attributes = Mapping[str, str]


def as_utf8(data: bytes) -> tuple[bytes, str | None]:
    """The same document with UTF-16 turned into UTF-8, and the encoding to insist on then."""
    try:
        if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            return data.decode("utf-16").encode(), "utf-8"
        if data[:4] in (b"<\0?\0", b"<\0m\0"):
            return data.decode("utf-16-le").encode(), "utf-8"
        if data[:4] in (b"\0<\0?", b"\0<\0m"):
            return data.decode("utf-16-be").encode(), "utf-8"
    except UnicodeError:
        raise UnreadableFile("the model's text is not the UTF-16 it begins as; export it again") from None
    return data, None


def parse(
    data: bytes,
    what: str,
    *,
    start: Callable[[str, str, Attributes, int], None],
    end: Callable[[], None],
    text: Callable[[str], None] | None = None,
    prefix: Callable[[str, str], None] | None = None,
    encoding: str | None = None,
) -> None:
    """Walk a document.

    start:  called with namespace, local name, attributes (`local`, or `namespace local` for those of
            a namespace) and the byte at which the element starts
    end:    called at the end of every element
    text:   called with pieces of text
    prefix: called with each declared prefix and its namespace, before the element that declares it
    what:   names the document in messages

    Raises UnreadableFile for what is not well-formed or not harmless.
    """
    parser = expat.ParserCreate(encoding, namespace_separator=" ")
    parser.buffer_text = True
    depth = 0

    def started(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise UnreadableFile(f"{what} nests its elements more than {DEEPEST} deep, as no model does")
        namespace, _, local = name.rpartition(" ")
        start(namespace, local, attributes, parser.CurrentByteIndex)

    def ended(_name: str) -> None:
        nonlocal depth
        depth -= 1
        end()

    def refuse(*_: object) -> None:
        raise UnreadableFile(f"{what} declares a document type or entities, which a model must not; export it again")

    parser.StartElementHandler = started
    parser.EndElementHandler = ended
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.CharacterDataHandler = text
    if prefix is not None:
        parser.StartNamespaceDeclHandler = lambda name, uri: prefix(name or "", uri or "")
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code) or "it is malformed"
        raise UnreadableFile(f"{what} is not well-formed XML ({reason}); export the model again") from None
    except (LookupError, ValueError):
        raise UnreadableFile(f"{what} is in an encoding that 3MF does not allow; export it as UTF-8") from None
