"""Nodes of COLLADA: the hierarchy that places geometries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from xml.etree.ElementTree import Element

import numpy as np

from meshhub import Mesh, ModelTooComplex, Part, UnreadableFile, note
from meshhub.model.scene import Float64
from meshhub.toolkit.names import single_line
from meshhub_collada.appearance import Appearance
from meshhub_collada.document import Document, numbers
from meshhub_collada.geometry import Geometry, read_geometry

_MAX_NODES_COUNT = 100_000
"""Maximum visited nodes, because nested instances multiply, so that a small file can describe billions."""

_MAX_DEPTH_COUNT = 256
"""Maximum nested nodes, instances included."""


@dataclass(frozen=True)
class _Placement:
    """Node that is being visited."""

    matrix: Float64
    path: tuple[str, ...]
    name: str


class SceneBuilder:
    """Meshes and parts of a document.

    Attributes:
        meshes: Meshes, one for each geometry and set of bound materials.
        parts: Placed meshes.
    """

    def __init__(self, document: Document, appearance: Appearance) -> None:
        """Create an empty scene."""
        self.meshes: list[Mesh] = []
        self.parts: list[Part] = []
        self._document = document
        self._appearance = appearance
        self._geometries: dict[str, Geometry | None] = {}
        self._mesh_index: dict[tuple[str, tuple[int | None, ...]], int] = {}
        self._nodes_count = 0
        self._matrices: dict[int, Float64] = {}

    def build(self, matrix: Float64) -> None:
        """Add the parts of the scene of the document, placed by a (4, 4) matrix.

        Raises:
            UnreadableFile: The document is damaged, or a node contains itself.
            ModelTooComplex: The document has too many nodes.
        """
        root = self._document.root
        instance = root.find("scene/instance_visual_scene")
        scene = self._document.resolve(None if instance is None else instance.get("url"))
        if scene is None:
            scene = root.find("library_visual_scenes/visual_scene")
        if scene is not None:
            self._visit_children(scene, _Placement(matrix, (), ""), ())
            return
        note("scene_missing", "the file has no scene; every geometry was placed at the origin")
        for geometry in root.findall("library_geometries/geometry"):
            url = "#" + geometry.get("id", "")
            self._place(geometry, url, None, _Placement(matrix, (), ""), np.eye(4))

    def _visit_children(self, node: Element, place: _Placement, ancestors: tuple[Element, ...]) -> None:
        if any(node is ancestor for ancestor in ancestors):
            raise UnreadableFile(f"node {node.get('id', '')[:40]!r} contains itself; correct its <instance_node>")
        if len(ancestors) > _MAX_DEPTH_COUNT:
            raise UnreadableFile(f"nodes are nested more than {_MAX_DEPTH_COUNT} deep; simplify the hierarchy")
        ancestors = (*ancestors, node)
        for element in node:
            if element.tag == "node":
                self._visit_node(element, place, ancestors)
            elif element.tag == "instance_node":
                target = self._document.resolve(element.get("url"))
                if target is None:
                    note("node_missing", f"a node refers to {element.get('url', '')[:40]!r}, which does not exist")
                else:
                    self._visit_node(target, place, ancestors)
            elif element.tag == "instance_geometry":
                url = element.get("url", "")
                self._place(self._document.resolve(url), url, element, place, np.eye(4))
            elif element.tag == "instance_controller":
                self._place_controller(element, place)

    def _visit_node(self, node: Element, place: _Placement, ancestors: tuple[Element, ...]) -> None:
        self._nodes_count += 1
        if self._nodes_count > _MAX_NODES_COUNT:
            raise ModelTooComplex(f"the scene has more than {_MAX_NODES_COUNT} nodes; merge or split the model")
        name = single_line(node.get("name", ""))
        path = (*place.path, place.name) if place.name else place.path
        # the tree lives as long as this builder, so ids of elements are unique
        if id(node) not in self._matrices:
            self._matrices[id(node)] = _node_matrix(node)
        self._visit_children(node, _Placement(place.matrix @ self._matrices[id(node)], path, name), ancestors)

    def _place_controller(self, instance: Element, place: _Placement) -> None:
        """Place the geometry of a skin or morph in its bind pose."""
        matrix = np.eye(4)
        controller = self._document.resolve(instance.get("url"))
        seen: list[Element] = []
        url = ""
        while controller is not None and controller.tag == "controller":
            if any(controller is each for each in seen):
                raise UnreadableFile(f"controller {controller.get('id', '')[:40]!r} contains itself; correct the file")
            seen.append(controller)
            skin, morph = controller.find("skin"), controller.find("morph")
            if skin is not None and skin.find("bind_shape_matrix") is not None:
                matrix = matrix @ _square(_values(skin.findtext("bind_shape_matrix"), 16, "bind_shape_matrix"))
            source = skin if skin is not None else morph
            url = "" if source is None else source.get("source", "")
            controller = self._document.resolve(url)
        note("bind_pose", "dropped bones and morphs; the model has its bind pose")
        self._place(controller, url, instance, place, matrix)

    def _place(
        self, geometry: Element | None, url: str, instance: Element | None, place: _Placement, own: Float64
    ) -> None:
        """Add a part for an instance of a geometry; `own` is a matrix that applies before those of the nodes."""
        if geometry is None or geometry.tag != "geometry":
            note("geometry_missing", f"a node refers to the geometry {url[:40]!r}, which does not exist")
            return
        if url not in self._geometries:
            self._geometries[url] = read_geometry(self._document, geometry)
        read = self._geometries[url]
        if read is None:
            return
        bound: dict[str, str] = {}
        for each in [] if instance is None else instance.findall("bind_material/technique_common/instance_material"):
            bound[each.get("symbol", "")] = each.get("target", "")
        # some exporters bind nothing, and name the material itself
        materials = tuple(
            self._appearance.material(bound.get(symbol, symbol))
            if symbol in bound or self._document.resolve(symbol) is not None
            else None
            for symbol in read.symbols
        )
        single = None
        if len(materials) == 1 and (read.face_symbol == 0).all():
            single, materials = materials[0], ()
        elif not materials and len(bound) == 1:
            # primitives without a symbol, and only one material to bind
            single = self._appearance.material(next(iter(bound.values())))
        key = (url, materials)
        if key not in self._mesh_index:
            self._mesh_index[key] = len(self.meshes)
            self.meshes.append(_to_mesh(read, materials, single_line(geometry.get("name", ""))))
        self.parts.append(Part(self._mesh_index[key], place.matrix @ own, place.name, place.path, single))


def _to_mesh(geometry: Geometry, materials: tuple[int | None, ...], name: str) -> Mesh:
    """Return a mesh; `materials` are those of its symbols, or none if the part has the only one."""
    index = np.array([*(-1 if each is None else each for each in materials), -1], np.int32)
    face_material = index[geometry.face_symbol] if (index >= 0).any() else None
    normals, uv, colors = (geometry.attributes.get(key) for key in ("NORMAL", "TEXCOORD", "COLOR"))
    return Mesh(
        geometry.vertices,
        geometry.faces,
        normals=None if normals is None else _unit(normals).astype(np.float32),
        uv=None if uv is None else uv.astype(np.float32),
        colors=None if colors is None else np.rint(np.clip(np.nan_to_num(colors), 0, 1) * 255).astype(np.uint8),
        face_material=face_material,
        name=name,
    )


def _unit(vectors: Float64) -> Float64:
    """Return vectors of length 1; vectors that are not finite become zero."""
    vectors = np.where(np.isfinite(vectors), vectors, 0.0)
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Float64 = vectors / np.where(length > 0, length, 1.0)
    return unit


def _node_matrix(node: Element) -> Float64:
    """Return the product of the transforms of a node, in their order. Raises UnreadableFile."""
    matrix = np.eye(4)
    for element in node:
        if element.tag in _TRANSFORMS:
            count, convert = _TRANSFORMS[element.tag]
            matrix = matrix @ convert(_values(element.text, count, element.tag))
    return matrix


def _values(text: str | None, count: int, what: str) -> Float64:
    """Return the numbers of a transform. Raises UnreadableFile."""
    values = numbers(text, "f8", f"a <{what}>").astype(np.float64)
    if len(values) != count or not np.isfinite(values).all():
        raise UnreadableFile(f"a <{what}> has {len(values)} numbers, not {count} finite ones; export the file again")
    return values


def _translation(values: Float64) -> Float64:
    matrix = np.eye(4)
    matrix[:3, 3] = values
    return matrix


def _scale(values: Float64) -> Float64:
    return np.diag([*values, 1.0])


def _rotation(values: Float64) -> Float64:
    """Return the rotation about an axis by an angle in degrees (Rodrigues' formula)."""
    matrix = np.eye(4)
    length = float(np.linalg.norm(values[:3]))
    if length > 0:
        x, y, z = values[:3] / length
        cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        angle = np.radians(values[3])
        matrix[:3, :3] += np.sin(angle) * cross + (1 - np.cos(angle)) * (cross @ cross)
    return matrix


def _lookat(values: Float64) -> Float64:
    """Return the matrix of a camera at a point, with the directions of its axes."""
    eye, target, up = values.reshape(3, 3)
    back = _unit((eye - target)[None])[0]
    side = _unit(np.cross(up, back)[None])[0]
    matrix = np.eye(4)
    matrix[:3] = np.stack([side, np.cross(back, side), back, eye], axis=1)
    return matrix


def _skew(values: Float64) -> Float64:
    """Return the shear along an axis (RenderMan's RiSkew: angle, rotation axis, translation axis)."""
    rotated, moved = _unit(values[1:].reshape(2, 3))
    across = rotated - moved * float(rotated @ moved)
    length = float(np.linalg.norm(across))
    cosine, sine = float(rotated @ moved), length
    angle = np.arctan2(cosine, sine) + np.radians(values[0])
    matrix = np.eye(4)
    if length > 0 and abs(np.cos(angle)) > 1e-9:
        matrix[:3, :3] += (np.tan(angle) - cosine / sine) * np.outer(moved, across / length)
    return matrix


def _square(values: Float64) -> Float64:
    return values.reshape(4, 4)


_TRANSFORMS: dict[str, tuple[int, Callable[[Float64], Float64]]] = {
    "matrix": (16, _square),
    "translate": (3, _translation),
    "rotate": (4, _rotation),
    "scale": (3, _scale),
    "lookat": (9, _lookat),
    "skew": (7, _skew),
}
"""Number of values and function of each transform element."""
