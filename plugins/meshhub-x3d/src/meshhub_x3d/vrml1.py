"""VRML 1.0 as VRML 2.0: its nodes change a state, by which the shapes after them are drawn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from meshhub import ModelTooComplex
from meshhub.model.scene import Float64
from meshhub_x3d.fields import read_integer, read_integers, read_vector
from meshhub_x3d.nodes import Names, Node, Value
from meshhub_x3d.transforms import VRML1_TRANSFORMS

_MAX_SHAPES_COUNT = 100_000
"""Maximum shapes and groups, because USE multiplies them."""

_MATERIAL_FIELDS = ("diffuseColor", "emissiveColor", "transparency")
_WIDTHS = (3, 3, 1)

_SHAPES = {
    "Cube": "Box",
    "Sphere": "Sphere",
    "Cone": "Cone",
    "Cylinder": "Cylinder",
    "IndexedFaceSet": "IndexedFaceSet",
    "IndexedLineSet": "IndexedLineSet",
    "PointSet": "PointSet",
    "AsciiText": "Text",
}
"""Shapes, and their types in VRML 2.0."""

_KEPT = {
    "Coordinate3": "coordinate",
    "Normal": "normal",
    "TextureCoordinate2": "texture_coordinate",
    "Material": "material",
    "Texture2": "texture",
    "Texture2Transform": "texture_transform",
    "ShapeHints": "hints",
    "MaterialBinding": "material_binding",
    "NormalBinding": "normal_binding",
}
"""Nodes that replace a part of the state."""


@dataclass(frozen=True)
class _State:
    """Nodes that apply to the next shape."""

    matrix: Float64
    coordinate: Node | None = None
    normal: Node | None = None
    texture_coordinate: Node | None = None
    material: Node | None = None
    texture: Node | None = None
    texture_transform: Node | None = None
    hints: Node | None = None
    material_binding: Node | None = None
    normal_binding: Node | None = None


def convert_vrml1(nodes: Iterable[Node], names: Names) -> tuple[Node, ...]:
    """Return the nodes of VRML 2.0. Raises UnreadableFile or ModelTooComplex."""
    converter = _Converter(names)
    converter.add_all(nodes, _State(np.eye(4)))
    return tuple(converter.nodes)


class _Converter:
    """Nodes of VRML 2.0 that were made so far."""

    def __init__(self, names: Names) -> None:
        self.nodes: list[Node] = []
        self._names = names
        self._count = 0

    def add_all(self, nodes: Iterable[Node], state: _State) -> _State:
        for node in nodes:
            state = self.add(node, state)
        return state

    def add(self, node: Node, state: _State) -> _State:
        """Add the shapes of a node; return the state after it."""
        self._count += 1
        if self._count > _MAX_SHAPES_COUNT:
            raise ModelTooComplex(f"the file has more than {_MAX_SHAPES_COUNT:,} nodes after USE; split the model")
        if node.kind in ("Separator", "WWWAnchor", "LOD"):
            children = list(node.nodes("children"))
            self._add_group(node.name, children[:1] if node.kind == "LOD" else children, state)
        elif node.kind == "Group":
            return self.add_all(node.nodes("children"), state)
        elif node.kind == "TransformSeparator":
            return replace(self.add_all(node.nodes("children"), state), matrix=state.matrix)
        elif node.kind == "Switch":
            return self._add_switch(node, state)
        elif node.kind in _KEPT:
            changes: dict[str, Any] = {_KEPT[node.kind]: node}
            return replace(state, **changes)
        elif node.kind in VRML1_TRANSFORMS:
            return replace(state, matrix=state.matrix @ VRML1_TRANSFORMS[node.kind](node))
        elif node.kind in _SHAPES:
            self.nodes.append(_make_shape(node, state, self._names))
        elif node.kind == "WWWInline":
            self.nodes.append(self._names.make("Inline", "", {"url": node.text("name")}))
        return state

    def _add_group(self, name: str, children: list[Node], state: _State) -> None:
        outer, self.nodes = self.nodes, []
        self.add_all(children, state)
        if self.nodes and name:
            self.nodes = [self._names.make("Group", name, {"children": tuple(self.nodes)})]
        self.nodes = [*outer, *self.nodes]

    def _add_switch(self, node: Node, state: _State) -> _State:
        choice = read_integer(node, "whichChild", -1)
        children = list(node.nodes("children"))
        if choice == -1 and children:
            self._add_hidden(children, state)
        return self.add_all(children if choice == -3 else children[choice : choice + 1] if choice >= 0 else (), state)

    def _add_hidden(self, children: list[Node], state: _State) -> None:
        """Add a Switch of VRML 2.0 that chooses none of the children."""
        outer, self.nodes = self.nodes, []
        self.add_all(children, state)
        switch = self._names.make("Switch", "", {"whichChoice": "-1", "choice": tuple(self.nodes)})
        self.nodes = [*outer, switch]


def _make_shape(node: Node, state: _State, names: Names) -> Node:
    """Return a shape of VRML 2.0 in the place of the state."""
    fields = dict(node.fields)
    if node.kind == "IndexedFaceSet":
        fields |= _read_face_fields(node, state)
    elif node.kind == "Cube":
        size = [float(read_vector(node, name, (2,))[0]) for name in ("width", "height", "depth")]
        fields["size"] = " ".join(map(repr, size))
    parts = node.text("parts")
    if parts and "ALL" not in parts:
        fields |= {name: str(word in parts) for name, word in (("side", "SIDES"), ("top", "TOP"), ("bottom", "BOTTOM"))}
    geometry = Node(_SHAPES[node.kind], "", fields)
    look = _read_look(state)
    shape: dict[str, Value] = {"geometry": (geometry,), "appearance": (Node("Appearance", "", look),)}
    numbers = " ".join(map(repr, state.matrix.T.ravel().tolist()))
    return names.make("MatrixTransform", node.name, {"matrix": numbers, "children": (Node("Shape", "", shape),)})


def _read_look(state: _State) -> dict[str, Value]:
    """Return the fields of the appearance: the first values of the material, and the texture."""
    look: dict[str, Value] = {}
    if state.material is not None:
        first = {
            name: " ".join(words[:width])
            for name, width in zip(_MATERIAL_FIELDS, _WIDTHS, strict=True)
            if (words := state.material.text(name).replace(",", " ").split())
        }
        look["material"] = (Node("Material", state.material.name, first),)
    if state.texture is not None:
        fields: dict[str, Value] = {
            f"repeat{axis}": str("CLAMP" not in state.texture.text(f"wrap{axis}")) for axis in "ST"
        }
        url, image = state.texture.text("filename"), state.texture.text("image")
        kind, own = ("ImageTexture", {"url": url}) if url.strip('" ') else ("PixelTexture", {"image": image})
        look["texture"] = (Node(kind, "", fields | own),)
    if state.texture_transform is not None:
        moved = dict(state.texture_transform.fields)
        moved["scale"] = moved.pop("scaleFactor", "1 1")
        look["textureTransform"] = (Node("TextureTransform", "", moved),)
    return look


def _read_face_fields(node: Node, state: _State) -> dict[str, Value]:
    """Return the fields of a face set that the state has."""
    fields: dict[str, Value] = {}
    if state.coordinate is not None:
        fields["coord"] = (Node("Coordinate", "", state.coordinate.fields),)
    if state.texture_coordinate is not None:
        fields["texCoord"] = (Node("TextureCoordinate", "", state.texture_coordinate.fields),)
        fields["texCoordIndex"] = _read_index(node, "textureCoordIndex")
    ordering = "" if state.hints is None else state.hints.text("vertexOrdering")
    fields["ccw"] = str(ordering != "CLOCKWISE")
    fields["solid"] = str(state.hints is not None and state.hints.text("shapeType") == "SOLID")
    if state.normal is not None:
        # normals apply to the vertices by default
        binding = _read_binding(state.normal_binding, "PER_VERTEX_INDEXED")
        fields |= _bind(node, binding, "normal", "normalIndex")
        fields["normal"] = (Node("Normal", "", state.normal.fields),)
    binding = _read_binding(state.material_binding, "OVERALL")
    if state.material is not None and binding != "OVERALL":
        fields |= _bind(node, binding, "color", "materialIndex")
        fields["color"] = (Node("Color", "", {"color": state.material.text("diffuseColor")}),)
    return fields


def _read_binding(node: Node | None, default: str) -> str:
    value = "DEFAULT" if node is None else node.text("value").strip()
    return default if value in ("", "DEFAULT", "NONE") else value


def _bind(node: Node, binding: str, name: str, index_field: str) -> dict[str, Value]:
    """Return the fields that state where colors or normals apply."""
    index = _read_index(node, index_field) if binding.endswith("_INDEXED") else ""
    if binding == "PER_VERTEX":
        # a value for each corner, in their order
        is_corner = read_integers(node, "coordIndex") >= 0
        index = " ".join(map(str, np.where(is_corner, np.cumsum(is_corner) - 1, -1).tolist()))
    return {f"{name}Index": index, f"{name}PerVertex": str(not binding.startswith(("PER_FACE", "PER_PART", "OVERALL")))}


def _read_index(node: Node, name: str) -> str:
    """Return an index; -1, the default, means that of the coordinates."""
    text = node.text(name)
    return "" if text.strip() == "-1" else text
