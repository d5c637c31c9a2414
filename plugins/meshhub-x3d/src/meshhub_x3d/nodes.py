"""Graph of nodes, as every encoding of X3D and VRML describes it: fields, names and prototypes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from meshhub import ModelTooComplex, note
from meshhub.errors import quote

_MAX_DEPTH_COUNT = 120
"""Maximum nodes inside nodes, after USE and prototypes; real files stay below 50, and Python's stack holds 150."""

_MAX_NODES_COUNT = 2_000_000
"""Maximum nodes of a file; each takes about 500 bytes of memory."""

_MAX_COPIES_COUNT = 100_000
"""Maximum nodes of instances of prototypes, because prototypes inside prototypes multiply."""


@dataclass(frozen=True)
class Link:
    """Value of a field inside a prototype: that of the prototype's field with this name (IS)."""

    name: str


@dataclass(frozen=True, eq=False)
class Node:
    """Node of the graph; its owners may be several, because of USE.

    Attributes:
        kind: Type, such as "Transform".
        name: Name by DEF, or "".
        fields: Texts of values by field; nodes as a tuple. XML does not name the field of most nodes: its key is "".
        depth: Nodes below this one, on the longest path.
        is_open: Whether this node or one in it depends on fields of a prototype.
    """

    kind: str
    name: str = ""
    fields: Mapping[str, Value] = field(default_factory=dict)
    depth: int = field(init=False)
    is_open: bool = field(init=False)

    def __post_init__(self) -> None:
        """Compute depth and dependence. Raises ModelTooComplex."""
        nodes = [node for value in self.fields.values() if isinstance(value, tuple) for node in value]
        depth = 1 + max((node.depth for node in nodes), default=0)
        if depth > _MAX_DEPTH_COUNT:
            raise_too_deep()
        is_open = any(isinstance(value, Link) for value in self.fields.values()) or any(node.is_open for node in nodes)
        object.__setattr__(self, "depth", depth)
        object.__setattr__(self, "is_open", is_open)

    def text(self, name: str) -> str:
        """Return the text of a field; "" without it."""
        value = self.fields.get(name, "")
        return value if isinstance(value, str) else ""

    def nodes(self, *names: str) -> Iterator[Node]:
        """Yield the nodes in some fields, or those whose field the file does not name; default: in all fields."""
        for name, value in self.fields.items():
            if isinstance(value, tuple) and (not names or not name or name in names):
                yield from value

    def find(self, name: str, *kinds: str) -> Node | None:
        """Return the first node of a kind in a field; None without one."""
        return next((node for node in self.nodes(name) if node.kind in kinds), None)


Value = str | tuple[Node, ...] | Link
"""Value of a field."""


def raise_too_deep() -> None:
    """Raise ModelTooComplex for nodes that are nested too deep."""
    raise ModelTooComplex(f"the file nests nodes more than {_MAX_DEPTH_COUNT} deep; flatten its groups")


def check_depth(depth: int) -> None:
    """Raise ModelTooComplex before the nesting of a file exhausts the stack of a parser."""
    if depth > _MAX_DEPTH_COUNT:
        raise_too_deep()


@dataclass(frozen=True, eq=False)
class Prototype:
    """Declared type: the default values of its fields, and the first node of its body, which stands for it."""

    defaults: Mapping[str, Value]
    body: Node | None


class Names:
    """Names and prototypes of a scope, and what the whole file has of nodes.

    A prototype sees the prototypes around it, but has its own names (ISO/IEC 19775-1, 4.4.4.4).
    """

    def __init__(self, parent: Names | None = None) -> None:
        """Open a scope."""
        self.prototypes: dict[str, Prototype] = {} if parent is None else dict(parent.prototypes)
        self._nodes: dict[str, Node] = {}
        self._counts: Counter[str] = Counter() if parent is None else parent._counts

    def make(self, kind: str, name: str, fields: Mapping[str, Value]) -> Node:
        """Return a node, or what the prototype of that name stands for. Raises ModelTooComplex."""
        self._count("nodes", _MAX_NODES_COUNT)
        prototype = self.prototypes.get(kind)
        node = Node(kind, name, fields) if prototype is None else self._expand(prototype, name, fields)
        if name:
            # after its fields, so that no node is used inside itself
            self._nodes[name] = node
        return node

    def use(self, name: str) -> Node | None:
        """Return the node of a name; None, with a note, without one."""
        if name not in self._nodes:
            note("node_missing", f"a USE refers to {quote(name[:40])}, which no node before it defines")
        return self._nodes.get(name)

    def _expand(self, prototype: Prototype, name: str, fields: Mapping[str, Value]) -> Node:
        if prototype.body is None:
            return Node("Group", name)
        body = self._fill(prototype.body, {**prototype.defaults, **fields}, {})
        return Node(body.kind, name, body.fields) if name else body

    def _fill(self, node: Node, values: Mapping[str, Value], copies: dict[Node, Node]) -> Node:
        """Return a node of a body with values in place of links; a node without links is shared by all instances."""
        if not node.is_open:
            return node
        if node not in copies:
            self._count("nodes of prototypes", _MAX_COPIES_COUNT)
            filled: dict[str, Value] = {}
            for key, value in node.fields.items():
                if isinstance(value, Link):
                    if value.name in values:
                        filled[key] = values[value.name]
                elif isinstance(value, tuple):
                    filled[key] = tuple(self._fill(each, values, copies) for each in value)
                else:
                    filled[key] = value
            copies[node] = Node(node.kind, node.name, filled)
        return copies[node]

    def _count(self, what: str, limit: int) -> None:
        self._counts[what] += 1
        if self._counts[what] > limit:
            raise ModelTooComplex(f"the file has more than {limit:,} {what}; reduce or split the model")
