"""VRML 2.0 (ISO/IEC 14772-1) as X3D, which has the same nodes and fields in XML, because assimp reads only that."""

from __future__ import annotations

import re
from xml.sax.saxutils import quoteattr

from meshhub import ModelTooComplex, UnreadableFile
from meshhub.errors import quote

_COMMENT = re.compile(r'("(?:\\.|[^"\\])*(?:"|\Z))|#[^\r\n]*', re.DOTALL)
_TOKEN = re.compile(r'[\s,]*("(?:\\.|[^"\\])*(?:"|\Z)|[\[\]{}]|[^\s,\[\]{}"]+)', re.DOTALL)
_NUMBER = re.compile(r"[-+]?\.?\d")
_NUMBERS = re.compile(r"(?:[\s,]*[-+]?\.?\d[^\s,\[\]{}\"]*)+")
_ROW_OF_NUMBERS = re.compile(r"\s*[-+.\d][^\[\]{}\"]*\]")

_MAX_DEPTH_COUNT = 200
"""Maximum nodes inside nodes."""

_HEADER = "#VRML V2.0"


def convert_to_x3d(data: bytes) -> bytes:
    """Return a VRML file as X3D; prototypes, scripts and routes are left out.

    Raises:
        UnreadableFile: The file is damaged, compressed, or VRML 1.0.
        ModelTooComplex: The file nests nodes too deep.
    """
    text = data.decode("utf-8", "replace").lstrip("\ufeff")
    if not text.startswith(_HEADER):
        version = text[: len(_HEADER)]
        raise UnreadableFile(f"the file begins with {quote(version)} instead of {_HEADER}; save it as VRML 2.0 or X3D")
    parser = _Parser(_COMMENT.sub(lambda match: match[1] or " ", text))
    nodes = "".join(parser.read_nodes(0, ""))
    return f'<X3D profile="Immersive" version="3.3"><Scene>{nodes}</Scene></X3D>'.encode()


class _Parser:
    """Reader of statements, from a position in the text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._types: dict[str, str] = {}

    def _peek(self) -> str:
        match = _TOKEN.match(self._text, self._position)
        return match[1] if match else ""

    def _take(self) -> str:
        match = _TOKEN.match(self._text, self._position)
        if match is None:
            raise UnreadableFile(
                "the VRML file is cut off inside a node; export it again", values={"defect": "cut_off"}
            )
        self._position = match.end()
        return match[1]

    def read_nodes(self, depth: int, end: str) -> list[str]:
        """Read nodes up to a token, or up to the end of the file."""
        nodes: list[str] = []
        while self._peek() != end:
            nodes.append(self._read_node(depth))
        if end:
            self._take()
        return nodes

    def _read_node(self, depth: int) -> str:
        """Return the element of a node or of a reference to one; "" for a statement without a shape."""
        if depth > _MAX_DEPTH_COUNT:
            raise ModelTooComplex(f"the file nests nodes more than {_MAX_DEPTH_COUNT} deep; flatten its groups")
        kind, name = self._take(), ""
        if kind == "ROUTE":
            for _ in range(3):
                self._take()
            return ""
        if kind in ("PROTO", "EXTERNPROTO"):
            self._take()
            self._skip_block()
            # the body, or the address of a file
            self._skip_block()
            return ""
        if kind == "USE":
            name = self._take()
            return f"<{self._types[name]} USE={quoteattr(name)}/>" if name in self._types else ""
        if kind == "DEF":
            name, kind = self._take(), self._take()
        if self._peek() != "{" or not kind.isidentifier():
            raise UnreadableFile(f"{quote(kind[:40])} in the VRML file is not a node; export it again")
        if kind == "Script":
            self._skip_block()
            return ""
        self._take()
        attributes, children = self._read_fields(depth)
        if name:
            # after its fields, so that no node is used inside itself
            self._types[name] = kind
            attributes.insert(0, f" DEF={quoteattr(name)}")
        return f"<{kind}{''.join(attributes)}>{''.join(children)}</{kind}>"

    def _read_fields(self, depth: int) -> tuple[list[str], list[str]]:
        """Return the attributes and the nodes of the fields up to the end of the node."""
        attributes: list[str] = []
        children: list[str] = []
        while (field := self._take()) != "}":
            if field in ("ROUTE", "PROTO", "EXTERNPROTO"):
                self._position -= len(field)
                self._read_node(depth)
                continue
            value = self._read_value(depth, children)
            if value is not None and field.isidentifier():
                attributes.append(f" {field}={quoteattr(value)}")
        return attributes, children

    def _read_value(self, depth: int, children: list[str]) -> str | None:
        """Return a value as text; append values that are nodes to the children, and return None."""
        word = self._peek()
        if word == "[":
            return self._read_list(depth, children)
        if _NUMBER.match(word) and (match := _NUMBERS.match(self._text, self._position)):
            self._position = match.end()
            return _join(match[0])
        if word[:1] == '"':
            return _unquote(self._take())
        if word in ("TRUE", "FALSE"):
            return self._take().lower()
        if word in ("NULL", "IS"):
            # "IS" and a field of the prototype
            for _ in range(1 + (word == "IS")):
                self._take()
            return None
        children.append(self._read_node(depth + 1))
        return None

    def _read_list(self, depth: int, children: list[str]) -> str | None:
        """Return a list of numbers, or the first text of a list; append nodes to the children."""
        self._take()
        if _ROW_OF_NUMBERS.match(self._text, self._position):
            begin, self._position = self._position, self._text.index("]", self._position) + 1
            return _join(self._text[begin : self._position - 1])
        word = self._peek()
        if word[:1] == '"' or word in ("TRUE", "FALSE"):
            while self._take() != "]":
                pass
            # assimp takes one text
            return _unquote(word) if word[:1] == '"' else None
        children += self.read_nodes(depth + 1, "]")
        return None

    def _skip_block(self) -> None:
        """Skip a token, or all up to the bracket that closes it."""
        depth = 0
        while True:
            token = self._take()
            depth += (token in ("[", "{")) - (token in ("]", "}"))
            if depth <= 0:
                return


def _join(numbers: str) -> str:
    """Return numbers with one space between them; assimp reads no references to line breaks."""
    return " ".join(numbers.replace(",", " ").split())


def _unquote(token: str) -> str:
    return token[1:-1].replace('\\"', '"').replace("\\\\", "\\")
