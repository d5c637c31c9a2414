"""XML encoding of X3D (ISO/IEC 19776-1)."""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element

from meshhub import UnreadableFile, note
from meshhub.errors import quote
from meshhub.toolkit.safe_xml import as_utf8, read_xml_tree
from meshhub_x3d.document import Document
from meshhub_x3d.nodes import Link, Names, Node, Prototype, Value

_DECLARATION = re.compile(rb"<\?xml[^>]{0,1000}\?>")
"""Declaration of an encoding that the text no longer has."""

_DOCTYPE = re.compile(rb"<!DOCTYPE[^\[>]{0,1000}(?:\[[^\]]{0,100000}\]\s{0,80})?>")
"""Declaration that most files have; entities that it declares are not read."""

_MAX_DEPTH_COUNT = 512
"""Maximum nested elements; those around nodes in prototypes count, too."""

_MAX_ELEMENTS_COUNT = 2_000_000
"""Maximum elements of a document; each takes about 500 bytes of memory."""

_NOT_NODES = frozenset({"ROUTE", "Script", "IMPORT", "EXPORT", "IS", "field", "fieldValue", "component", "head"})
"""Elements that are not nodes, or nodes that only programs run."""


def parse_xml_encoding(data: bytes) -> Document:
    """Parse a file. Raises UnreadableFile or ModelTooComplex."""
    data, encoding = as_utf8(data)
    if encoding is not None:
        data = _DECLARATION.sub(b"", data, count=1)
    data = _DOCTYPE.sub(b"", data, count=1)
    root = read_xml_tree(
        data, "the X3D file", max_elements=_MAX_ELEMENTS_COUNT, max_depth=_MAX_DEPTH_COUNT, namespaces=False
    )
    scene = root if root.tag == "Scene" else root.find("Scene")
    if scene is None or root.tag not in ("X3D", "Scene"):
        raise UnreadableFile(f"the root element is {quote(root.tag[:40])}, not 'X3D' with a 'Scene'; check the format")
    units = {each.get("category", ""): each.get("conversionFactor", "") for each in root.findall("head/unit")}
    texts = {each.get("name", ""): each.get("content", "") for each in root.findall("head/meta")}
    return Document(_read_nodes(scene, Names()), units, texts)


def _read_nodes(parent: Element, names: Names) -> tuple[Node, ...]:
    """Return the nodes in an element."""
    nodes = (_read_statement(element, names) for element in parent)
    return tuple(node for node in nodes if node is not None)


def _read_statement(element: Element, names: Names) -> Node | None:
    """Return the node of an element; declare a prototype."""
    if element.tag == "ProtoDeclare":
        _declare(element, names)
    elif element.tag == "ExternProtoDeclare":
        _declare_extern(element, names)
    elif element.tag not in _NOT_NODES:
        return _read_node(element, names)
    return None


def _read_node(element: Element, names: Names) -> Node | None:
    """Return the node of an element; None for a reference to a missing one."""
    if "USE" in element.attrib:
        return names.use(element.get("USE", ""))
    fields: dict[str, Value] = dict(element.attrib)
    name = str(fields.pop("DEF", ""))
    kind = element.tag
    if kind == "ProtoInstance":
        kind = element.get("name", "")
        fields = {each.get("name", ""): _read_value(each, names) for each in element.findall("fieldValue")}
        if kind not in names.prototypes:
            note("prototype_missing", f"skipped nodes of the type {quote(kind[:40])}, which the file does not declare")
    else:
        for child in element:
            node = _read_statement(child, names)
            if node is not None:
                # XML does not state the field of most nodes
                field = child.get("containerField", "")
                value = fields.get(field, ())
                fields[field] = (*value, node) if isinstance(value, tuple) else (node,)
    for connection in element.findall("IS/connect"):
        fields[connection.get("nodeField", "")] = Link(connection.get("protoField", ""))
    return names.make(kind, name, fields)


def _read_value(element: Element, names: Names) -> Value:
    """Return the value of a <field> or <fieldValue>: an attribute, or nodes."""
    return element.get("value", "") if len(element) == 0 else _read_nodes(element, names)


def _declare(element: Element, names: Names) -> None:
    """Declare a prototype."""
    scope = Names(names)
    interface = element.findall("ProtoInterface/field")
    defaults = {
        each.get("name", ""): _read_value(each, scope) for each in interface if "value" in each.attrib or len(each)
    }
    body = element.find("ProtoBody")
    nodes = [] if body is None else _read_nodes(body, scope)
    names.prototypes[element.get("name", "")] = Prototype(defaults, nodes[0] if nodes else None)


def _declare_extern(element: Element, names: Names) -> None:
    """Declare a prototype whose body is in another file, which is not read."""
    name = element.get("name", "")
    note("prototype_missing", f"skipped nodes of the type {quote(name[:40])}, which another file declares")
    names.prototypes[name] = Prototype({}, None)
