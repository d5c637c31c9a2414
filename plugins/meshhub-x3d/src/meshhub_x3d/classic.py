"""Text encodings: VRML 1.0, VRML 2.0 (ISO/IEC 14772-1) and the classic encoding of X3D (ISO/IEC 19776-2)."""

from __future__ import annotations

import re

from meshhub import UnreadableFile, note
from meshhub.errors import quote
from meshhub_x3d.document import Document
from meshhub_x3d.nodes import Link, Names, Node, Prototype, Value, check_depth
from meshhub_x3d.vrml1 import convert_vrml1

_COMMENT = re.compile(r'("(?:\\.|[^"\\])*(?:"|\Z))|#[^\r\n]*', re.DOTALL)
_TOKEN = re.compile(r'[\s,]*("(?:\\.|[^"\\])*(?:"|\Z)|[\[\]{}]|[^\s,\[\]{}"]+)', re.DOTALL)
_NUMBER = re.compile(r"[-+]?\.?\d")
_NUMBERS = re.compile(r"(?:[\s,]*[-+]?\.?\d[^\s,\[\]{}\"]*)+")
_ROW_OF_NUMBERS = re.compile(r"\s*[-+.\d][^\[\]{}\"]*\]")

_VRML1 = "#VRML V1.0 ascii"
_HEADERS = (_VRML1, "#VRML V2.0 utf8", "#X3D V")

_PROGRAMS = frozenset({"Script", "ComposedShader", "PackagedShader", "ShaderProgram", "ShaderPart"})
"""Nodes that only programs run, and that declare fields."""

_WORDS_OF_STATEMENTS = {"PROFILE": 1, "COMPONENT": 1, "EXPORT": 1, "IMPORT": 1, "ROUTE": 3}
"""Words after the names of statements that declare nothing."""

_VALUED = frozenset({"field", "exposedField", "initializeOnly", "inputOutput"})
"""Access types of fields of prototypes with a value."""


def parse_classic(data: bytes) -> Document:
    """Parse a file. Raises UnreadableFile or ModelTooComplex."""
    try:
        text = data.decode("utf-8-sig").lstrip()
    except UnicodeDecodeError:
        text = data.decode("latin-1").lstrip()
    if not text.startswith(_HEADERS):
        begin = text[: len(_VRML1)]
        raise UnreadableFile(f"the file begins with {quote(begin)}, not '#VRML V2.0 utf8' or '#X3D V'; save it as X3D")
    is_vrml1 = text.startswith(_VRML1)
    parser = _Parser(_COMMENT.sub(lambda match: match[1] or " ", text), is_vrml1)
    names = Names()
    nodes = parser.read_nodes(0, "", names)
    return Document(convert_vrml1(nodes, names) if is_vrml1 else nodes, parser.units, parser.texts)


class _Parser:
    """Reader of statements, from a position in the text.

    Attributes:
        units: Conversion factors by category.
        texts: Metadata by name.
    """

    def __init__(self, text: str, is_vrml1: bool) -> None:
        self.units: dict[str, str] = {}
        self.texts: dict[str, str] = {}
        self._text = text
        self._position = 0
        self._is_vrml1 = is_vrml1

    def _peek(self) -> str:
        match = _TOKEN.match(self._text, self._position)
        return match[1] if match else ""

    def _take(self) -> str:
        match = _TOKEN.match(self._text, self._position)
        if match is None:
            raise UnreadableFile("the file is cut off inside a node; export it again", values={"defect": "cut_off"})
        self._position = match.end()
        return match[1]

    def read_nodes(self, depth: int, end: str, names: Names) -> tuple[Node, ...]:
        """Read nodes up to a token, or up to the end of the file."""
        nodes: list[Node] = []
        while self._peek() != end:
            node = self._read_statement(depth, names)
            if node is not None:
                nodes.append(node)
        if end:
            self._take()
        return tuple(nodes)

    def _read_statement(self, depth: int, names: Names) -> Node | None:
        """Return a node; None for a statement of another kind, or a reference to a missing node."""
        check_depth(depth)
        word = self._take()
        if word in _WORDS_OF_STATEMENTS:
            for _ in range(_WORDS_OF_STATEMENTS[word]):
                self._take()
            if self._peek() == "AS":
                self._take()
                self._take()
        elif word == "META":
            name, content = _unquote(self._take()), _unquote(self._take())
            self.texts[name] = content
        elif word == "UNIT":
            category, _, self.units[category] = self._take(), self._take(), self._take()
        elif word in ("PROTO", "EXTERNPROTO"):
            self._read_prototype(depth, names, is_extern=word == "EXTERNPROTO")
        elif word == "USE":
            return names.use(self._take())
        elif word != "NULL":
            return self._read_node(word, depth, names)
        return None

    def _read_node(self, word: str, depth: int, names: Names) -> Node | None:
        """Return the node that begins with a word; None for a program."""
        name = ""
        if word == "DEF":
            name, word = self._take(), self._take()
        if self._peek() != "{" or word[0] in '"[]{}':
            raise UnreadableFile(f"{quote(word[:40])} in the file is not a node; export it again")
        if word in _PROGRAMS:
            self._skip_block()
            return None
        self._take()
        return names.make(word, name, self._read_fields(depth, names))

    def _read_fields(self, depth: int, names: Names) -> dict[str, Value]:
        """Return the fields up to the end of the node."""
        fields: dict[str, Value] = {}
        children: list[Node] = []
        while (field := self._take()) != "}":
            if field in ("ROUTE", "PROTO", "EXTERNPROTO") or (self._is_vrml1 and self._is_node(field)):
                self._position -= len(field)
                node = self._read_statement(depth + 1, names)
                if node is not None:
                    children.append(node)
                continue
            if self._is_vrml1 and field in ("fields", "isA"):
                self._skip_block()
                continue
            value = self._read_value(depth, names)
            # nodes of repeated fields add up
            before = fields.get(field)
            fields[field] = before + value if isinstance(before, tuple) and isinstance(value, tuple) else value
        if children:
            fields["children"] = tuple(children)
        return fields

    def _is_node(self, word: str) -> bool:
        """Return whether a word in a node of VRML 1.0 begins a node, which has no field there."""
        return word in ("DEF", "USE") or self._peek() == "{"

    def _read_value(self, depth: int, names: Names) -> Value:
        word = self._peek()
        if word == "[":
            return self._read_list(depth, names)
        if _NUMBER.match(word) and (match := _NUMBERS.match(self._text, self._position)):
            self._position = match.end()
            return match[0]
        if word == "IS":
            self._take()
            return Link(self._take())
        if word[:1] == '"' or word in ("TRUE", "FALSE"):
            return self._take()
        if self._is_vrml1 and not self._begins_node():
            return self._read_words()
        node = self._read_statement(depth + 1, names)
        return () if node is None else (node,)

    def _begins_node(self) -> bool:
        """Return whether the value of a field of VRML 1.0 is a node instead of a word."""
        begin = self._position
        is_node = self._is_node(self._take())
        self._position = begin
        return is_node

    def _read_words(self) -> str:
        """Return a word, or words in parentheses: "(SIDES | TOP)"."""
        words = self._take()
        while words.startswith("(") and not words.endswith(")"):
            words += " " + self._take()
        return words

    def _read_list(self, depth: int, names: Names) -> Value:
        """Return numbers or texts up to the end of a list as they are, or nodes."""
        self._take()
        if _ROW_OF_NUMBERS.match(self._text, self._position):
            begin, self._position = self._position, self._text.index("]", self._position) + 1
            return self._text[begin : self._position - 1]
        word = self._peek()
        if word[:1] == '"' or word in ("TRUE", "FALSE") or (self._is_vrml1 and not self._begins_node()):
            begin = self._position
            while self._take() != "]":
                pass
            return self._text[begin : self._position - 1]
        return self.read_nodes(depth + 1, "]", names)

    def _read_prototype(self, depth: int, names: Names, *, is_extern: bool) -> None:
        """Declare a prototype; the body of an external one is in another file, which is not read."""
        name = self._take()
        if is_extern:
            note("prototype_missing", f"skipped nodes of the type {quote(name[:40])}, which another file declares")
            # the interface, then addresses
            self._skip_block()
            self._skip_block()
            names.prototypes[name] = Prototype({}, None)
            return
        scope = Names(names)
        defaults: dict[str, Value] = {}
        self._take()
        while (access := self._take()) != "]":
            _, field = self._take(), self._take()
            if access in _VALUED:
                defaults[field] = self._read_value(depth, scope)
        self._take()
        body = self.read_nodes(depth + 1, "}", scope)
        names.prototypes[name] = Prototype(defaults, body[0] if body else None)

    def _skip_block(self) -> None:
        """Skip a token, or all up to the bracket that closes it."""
        depth = 0
        while True:
            token = self._take()
            depth += (token in ("[", "{")) - (token in ("]", "}"))
            if depth <= 0:
                return


def _unquote(token: str) -> str:
    return token.strip('"').replace('\\"', '"').replace("\\\\", "\\")
