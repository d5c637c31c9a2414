"""Traversal of the graph: shapes become parts, in the places that the nodes above them give."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from meshhub import Mesh, ModelTooComplex, Part, note
from meshhub.errors import quote
from meshhub.model.scene import Float64
from meshhub.toolkit.names import single_line
from meshhub.toolkit.visibility import report_hidden
from meshhub_x3d import face_sets, primitives, swept
from meshhub_x3d.appearance import Appearance, find_texture
from meshhub_x3d.attributes import has_colors
from meshhub_x3d.fields import read_flag, read_integer, read_texts
from meshhub_x3d.nodes import Node, check_depth
from meshhub_x3d.surfaces import Surface, to_mesh
from meshhub_x3d.transforms import read_matrix, read_texture_transform, read_transform

_MAX_VISITS_COUNT = 200_000
"""Maximum visited nodes, because USE multiplies, so that a small file can describe billions."""

_GEOMETRIES: dict[str, Callable[[Node], Surface | None]] = {
    "Box": primitives.read_box,
    "Rectangle2D": primitives.read_rectangle,
    "TriangleSet2D": primitives.read_triangles_2d,
    "IndexedFaceSet": face_sets.read_faces,
    "TriangleSet": face_sets.read_triangles,
    "IndexedTriangleSet": face_sets.read_triangles,
    "QuadSet": face_sets.read_quads,
    "IndexedQuadSet": face_sets.read_quads,
    "TriangleStripSet": face_sets.read_strips,
    "IndexedTriangleStripSet": face_sets.read_strips,
    "TriangleFanSet": face_sets.read_fans,
    "IndexedTriangleFanSet": face_sets.read_fans,
    "ElevationGrid": swept.read_elevation_grid,
    "Extrusion": swept.read_extrusion,
}

_ROUND: dict[str, Callable[[Node, int], Surface | None]] = {
    "Sphere": primitives.read_sphere,
    "Cone": primitives.read_cone,
    "Cylinder": primitives.read_cylinder,
    "Disk2D": primitives.read_disk,
}
"""Geometries that also take the number of sides of a circle."""

_SIDES_COUNT = 96
"""Sides of a circle: its area is 0.07 % too small, and a circle of 100 mm deviates by 0.03 mm."""
_MAX_FINE_COUNT = 1000
"""Round shapes up to which each has that many; molecules have thousands of atoms, each of 9000 triangles."""
_FEW_SIDES_COUNT = 24
"""Sides of a circle in a file with more of them."""

_GROUPS = frozenset(
    "Group StaticGroup Anchor Billboard Collision CADAssembly CADFace HAnimSegment Layer LayoutLayer LayerSet "
    "LayoutGroup Viewport PickableGroup ScreenGroup".split()
)
"""Nodes that place others where they are."""
_TRANSFORMS = frozenset("Transform CADPart HAnimHumanoid HAnimJoint HAnimSite EspduTransform".split())
"""Nodes with the fields of a Transform."""

_NOT_DRAWN = ("proxy", "joints", "segments", "sites", "viewpoints", "metadata", "coord", "displacers", "skinCoord")
"""Fields of groups whose nodes are not drawn, or are drawn elsewhere."""

_HARMLESS = re.compile(
    r"\w*(?:Sensor|Light|Interpolator\w*|Sequencer|Chaser|Damper|Viewpoint|Trigger|Toggle|Filter|Background|Fog|Sound"
    r"|Source|Clip|Info|Viewport|Layout|Joint|Motion|Follower|Displacer|ClipPlane|Environment|LightProbe)\Z"
    r"|Metadata\w*|GlobalLights|Coordinate\w*|Normal|Appearance|\w*Texture|ViewpointGroup|Material|Script"
)
"""Nodes without a shape, which are not converted and need no note."""


@dataclass(frozen=True)
class _Place:
    """Group that is being visited: its matrix, the names above and including it, and how deep it is."""

    matrix: Float64
    names: tuple[str, ...] = ()
    depth: int = 0


class SceneBuilder:
    """Meshes and parts of a file.

    Attributes:
        meshes: Meshes, one for each geometry.
        parts: Placed meshes.
    """

    def __init__(self, appearance: Appearance, inline: Callable[[list[str]], tuple[Node, ...]], radians: float) -> None:
        """Create an empty scene.

        Args:
            appearance: Materials.
            inline: Returns the nodes of another file.
            radians: Radians of the unit of angles.
        """
        self.meshes: list[Mesh] = []
        self.parts: list[Part] = []
        self._appearance = appearance
        self._inline = inline
        self._radians = radians
        self._visits_count = 0
        self._hidden_count = 0
        self._reads_hidden = False
        self._is_incomplete = False
        self._mesh_index: dict[object, int | None] = {}
        self._shapes: list[tuple[Node, Node, _Place]] = []
        self._sides_count = _SIDES_COUNT

    def add_all(self, nodes: Sequence[Node], matrix: Float64) -> None:
        """Add the shapes of a scene, placed by a (4, 4) matrix. Raises UnreadableFile or ModelTooComplex."""
        self._visit_all(nodes, _Place(matrix))
        # what is hidden does not stand for a missing Inline file
        self._reads_hidden = self._hidden_count > 0 and not self._shapes and not self._is_incomplete
        if self._reads_hidden:
            self._visit_all(nodes, _Place(matrix))
        report_hidden(self._hidden_count, is_read=self._reads_hidden)
        round_count = sum(geometry.kind in _ROUND for _, geometry, _ in self._shapes)
        self._sides_count = _SIDES_COUNT if round_count <= _MAX_FINE_COUNT else _FEW_SIDES_COUNT
        if round_count > _MAX_FINE_COUNT:
            sides = self._sides_count
            note(
                "few_sides", f"the {round_count} spheres, cones and cylinders have {sides} sides, because they are many"
            )
        for shape, geometry, place in self._shapes:
            self._place_shape(shape, geometry, place)

    def _visit_all(self, nodes: Iterable[Node], place: _Place) -> None:
        for node in nodes:
            self._visit(node, place)

    def _visit(self, node: Node, place: _Place) -> None:
        self._visits_count += 1
        if self._visits_count > _MAX_VISITS_COUNT:
            raise ModelTooComplex(f"the scene has more than {_MAX_VISITS_COUNT:,} nodes after USE; split the model")
        children = _find_children(node)
        if not self._reads_hidden and (children is not None or node.kind == "Inline") and _is_hidden(node):
            self._hidden_count += 1
        elif node.kind == "Shape":
            self._add_shape(node, place)
        elif children is not None:
            self._visit_all(self._find_shown(node, children), self._enter(node, place))
        elif node.kind == "Inline":
            inlined = self._inline(read_texts(node, "url"))
            self._is_incomplete |= not inlined
            self._visit_all(inlined, self._enter(node, place))
        elif not _HARMLESS.match(node.kind):
            note("node_skipped", f"skipped nodes of the type {quote(node.kind[:40])}, which cannot be converted")

    def _find_shown(self, node: Node, children: list[Node]) -> list[Node]:
        """Return the children of a group without those that a layer hides, and count these."""
        if self._reads_hidden or node.kind != "CADLayer":
            return children
        flags = node.text("visible").lower().replace(",", " ").split()
        shown = [child for number, child in enumerate(children) if flags[number : number + 1] != ["false"]]
        self._hidden_count += len(children) - len(shown)
        return shown

    def _enter(self, node: Node, place: _Place) -> _Place:
        matrix = place.matrix
        if node.kind in _TRANSFORMS:
            matrix = matrix @ read_transform(node, self._radians)
        elif node.kind == "MatrixTransform":
            matrix = matrix @ read_matrix(node)
        name = single_line(node.name)
        # Inline files may contain each other
        check_depth(place.depth + 1)
        return _Place(matrix, (*place.names, name) if name else place.names, place.depth + 1)

    def _add_shape(self, shape: Node, place: _Place) -> None:
        """Note a shape, whose mesh is made once the number of round ones is known."""
        geometry = next((each for each in shape.nodes("geometry") if not _HARMLESS.match(each.kind)), None)
        if geometry is None:
            return
        if geometry.kind not in _GEOMETRIES and geometry.kind not in _ROUND:
            note(
                "geometry_skipped", f"skipped a {quote(geometry.kind[:40])}: only surfaces of polygons can be converted"
            )
            return
        self._shapes.append((shape, geometry, place))

    def _place_shape(self, shape: Node, geometry: Node, place: _Place) -> None:
        """Add the part of a shape."""
        appearance = shape.find("appearance", "Appearance")
        texture = find_texture(appearance)
        transform = None if appearance is None else appearance.find("textureTransform", "TextureTransform")
        index = self._find_mesh(geometry, texture is not None, transform)
        if index is None:
            return
        material = self._appearance.material(
            appearance,
            colored=self.meshes[index].colors is not None and has_colors(geometry),
            double_sided=not read_flag(geometry, "solid", True),
        )
        *path, name = (*place.names, single_line(shape.name)) if shape.name else (place.names or ("",))
        self.parts.append(Part(index, place.matrix, name, tuple(path), material))

    def _find_mesh(self, geometry: Node, textured: bool, transform: Node | None) -> int | None:
        """Return the index of the mesh of a geometry; None without triangles."""
        is_simple = all(isinstance(value, str) for value in geometry.fields.values())
        # equal spheres of a molecule share a mesh
        content = (geometry.kind, *sorted(geometry.fields.items())) if is_simple else geometry
        key = (content, textured, transform if textured else None)
        if key not in self._mesh_index:
            surface = self._read_surface(geometry)
            mesh = None
            if surface is not None and len(surface.points):
                if textured:
                    surface = _place_texture(surface, transform, self._radians)
                mesh = to_mesh(surface, textured=textured, is_flipped=not read_flag(geometry, "ccw", True))
            self._mesh_index[key] = None if mesh is None else len(self.meshes)
            if mesh is not None:
                self.meshes.append(replace(mesh, name=single_line(geometry.name)))
        return self._mesh_index[key]

    def _read_surface(self, geometry: Node) -> Surface | None:
        if geometry.kind in _ROUND:
            return _ROUND[geometry.kind](geometry, self._sides_count)
        return _GEOMETRIES[geometry.kind](geometry)


def _find_children(node: Node) -> list[Node] | None:
    """Return the nodes that a group draws if it is shown; None for a node that is not a group."""
    if node.kind == "Shape":
        return []
    if node.kind == "Switch":
        choices = list(node.nodes("choice", "children"))
        return choices if _chooses_nothing(node) else [choices[read_integer(node, "whichChoice", -1)]]
    if node.kind == "LOD":
        # the finest level
        return list(node.nodes("level", "children"))[:1]
    if node.kind == "CADLayer":
        return list(node.nodes("children"))
    if node.kind in _GROUPS or node.kind in _TRANSFORMS or node.kind == "MatrixTransform":
        names = [name for name in node.fields if name not in _NOT_DRAWN]
        return list(node.nodes(*names)) if names else []
    return None


def _is_hidden(node: Node) -> bool:
    """Return whether a file hides a node with all below it."""
    if node.kind == "Switch" and _chooses_nothing(node) and any(node.nodes("choice", "children")):
        return True
    # a layer has a flag for each child
    is_visible = node.kind == "CADLayer" or read_flag(node, "visible", True)
    return not (is_visible and read_flag(node, "render", True))


def _chooses_nothing(switch: Node) -> bool:
    return not 0 <= read_integer(switch, "whichChoice", -1) < len(list(switch.nodes("choice", "children")))


def _place_texture(surface: Surface, transform: Node | None, radians: float) -> Surface:
    """Return a surface with texture coordinates, moved by a TextureTransform; default: those of its box."""
    uv, rows = surface.attributes.get("uv", (None, surface.corners))
    if uv is None:
        # the longest side of the box is as long as the texture (ISO/IEC 19775-1, 13.3.6)
        low, sides = surface.points.min(axis=0), np.ptp(surface.points, axis=0)
        s, t = np.argsort(-sides, kind="stable")[:2]
        uv = ((surface.points - low) / max(float(sides[s]), 1e-30))[:, [s, t]]
    if transform is not None:
        matrix = read_texture_transform(transform, radians)
        uv = uv @ matrix[:2, :2].T + matrix[:2, 2]
    return replace(surface, attributes={**surface.attributes, "uv": (uv, rows)})
