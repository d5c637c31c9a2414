"""Reader: meshes, render meshes of solids and surfaces, and blocks, with layers, names and colors."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from meshhub import EmptyModel, Frame, Material, Mesh, Part, Scene, Source, UnreadableFile, note
from meshhub.errors import format_count
from meshhub.model.capabilities import Unit
from meshhub.model.scene import Float64
from meshhub.toolkit.names import single_line
from meshhub.toolkit.visibility import report_hidden
from meshhub_rhino.archive import read_arrays, rhino3dm

_UNITS: dict[str, tuple[Unit, float]] = {
    "Microns": ("um", 1.0),
    "Millimeters": ("mm", 1.0),
    "Centimeters": ("cm", 1.0),
    "Meters": ("m", 1.0),
    "Inches": ("in", 1.0),
    "Feet": ("ft", 1.0),
    "Angstroms": ("mm", 1e-7),
    "Nanometers": ("mm", 1e-6),
    "Decimeters": ("mm", 100.0),
    "Dekameters": ("m", 10.0),
    "Hectometers": ("m", 100.0),
    "Kilometers": ("m", 1000.0),
    "Microinches": ("in", 1e-6),
    "Mils": ("in", 1e-3),
    "Yards": ("ft", 3.0),
    "Miles": ("ft", 5280.0),
}
"""Unit of the scene, and its number in each unit of a file; others are read as millimeters."""

_MAX_DEPTH = 32
"""Blocks inside blocks; deeper ones are left out, because a damaged file may contain itself."""

_MAX_PARTS_COUNT = 1_000_000
"""Parts of a scene; blocks inside blocks multiply."""

DEFAULT_LAYER = "Default"
"""Layer that every file has; its objects belong to no group."""

_BLACK = (0, 0, 0)
"""Color of the default layer, which stands for no color."""


class _Placement(NamedTuple):
    """Where a block is.

    transform: (4, 4) matrix of all blocks around an object
    attributes: attributes of the innermost block, whose color and material objects may take over
    depth: number of blocks around an object
    name: name of the innermost block; of a block with one object, that object takes it
    path: groups that contain the objects; None: the layer of each object
    """

    transform: Float64
    attributes: Any
    depth: int
    name: str = ""
    path: tuple[str, ...] | None = None


class _Model:
    """Scene of a file while it is read."""

    def __init__(self, file: Any, *, reads_hidden: bool = False) -> None:
        self.hidden_count = 0
        self._reads_hidden = reads_hidden
        self.file = file
        self.layers = {layer.Index: layer for layer in file.Layers}
        self.meshes: list[Mesh] = []
        self.parts: list[Part] = []
        self.materials: list[Material] = []
        self.skipped: Counter[str] = Counter()
        self._mesh_by_id: dict[str, int | None] = {}
        self._objects = {str(item.Attributes.Id): item for item in file.Objects}
        self._members: dict[str, list[Any]] = {}

    def add_all(self) -> None:
        """Add all objects that are visible and not in blocks."""
        top = _Placement(np.eye(4), None, 0)
        for item in self._objects.values():
            if not item.Attributes.IsInstanceDefinitionObject:
                self._add(item, top)

    def _add(self, item: Any, placement: _Placement) -> None:
        attributes, geometry = item.Attributes, item.Geometry
        layer = self.layers.get(attributes.LayerIndex)
        if not self._reads_hidden and (not attributes.Visible or (layer is not None and not layer.Visible)):
            self.hidden_count += 1
            return
        if geometry.ObjectType == rhino3dm.ObjectType.InstanceReference:
            self._add_block(item, placement)
            return
        key = str(attributes.Id)
        if key not in self._mesh_by_id:
            self._mesh_by_id[key] = self._add_mesh(geometry)
        index = self._mesh_by_id[key]
        if index is None:
            return
        if len(self.parts) == _MAX_PARTS_COUNT:
            raise UnreadableFile(f"the 3DM file has more than {_MAX_PARTS_COUNT:,} objects in blocks; explode some")
        path = placement.path if placement.path is not None else _list_layers(layer)
        name = placement.name or single_line(attributes.Name)
        self.parts.append(Part(index, placement.transform, name, path, self._find_material(attributes, placement)))

    def _add_block(self, item: Any, placement: _Placement) -> None:
        if placement.depth == _MAX_DEPTH:
            self.skipped["blocks inside too many others"] += 1
            return
        key = str(item.Geometry.ParentIdefId)
        if key not in self._members:
            definition = self.file.InstanceDefinitions.FindId(item.Geometry.ParentIdefId)
            ids = definition.GetObjectIds() if definition is not None else ()
            self._members[key] = [self._objects[str(each)] for each in ids if str(each) in self._objects]
        members = self._members[key]
        path = (
            placement.path if placement.path is not None else _list_layers(self.layers.get(item.Attributes.LayerIndex))
        )
        name = placement.name or single_line(item.Attributes.Name)
        if len(members) > 1:
            definition = self.file.InstanceDefinitions.FindId(item.Geometry.ParentIdefId)
            path, name = (*path, name or single_line(definition.Name)), ""
        matrix = np.array(item.Geometry.Xform.ToFloatArray(True), np.float64).reshape(4, 4)
        inner = _Placement(placement.transform @ matrix, item.Attributes, placement.depth + 1, name, path)
        for member in members:
            self._add(member, inner)

    def _add_mesh(self, geometry: Any) -> int | None:
        """Add the mesh of an object; return its index, or None without a mesh."""
        kind = geometry.ObjectType
        if kind == rhino3dm.ObjectType.Mesh:
            sources = [geometry]
        elif kind == rhino3dm.ObjectType.Brep:
            sources = [face.GetMesh(rhino3dm.MeshType.Any) for face in geometry.Faces]
        elif kind == rhino3dm.ObjectType.Extrusion:
            sources = [geometry.GetMesh(rhino3dm.MeshType.Any)]
        else:
            self.skipped[kind.name.lower()] += 1
            return None
        present = [source for source in sources if source is not None]
        if not present or len(present) < len(sources):
            self.skipped["without render mesh"] += 1
        meshes = [mesh for mesh in map(_convert, present) if len(mesh.faces)]
        if not meshes:
            return None
        self.meshes.append(_join(meshes) if len(meshes) > 1 else meshes[0])
        return len(self.meshes) - 1

    def _find_material(self, attributes: Any, placement: _Placement) -> int | None:
        """Return the index of the material of an object: that for rendering, otherwise its color."""
        layer = self.layers.get(attributes.LayerIndex)
        source = attributes.MaterialSource
        index = attributes.MaterialIndex
        if source == rhino3dm.ObjectMaterialSource.MaterialFromLayer:
            index = layer.RenderMaterialIndex if layer is not None else -1
        elif source == rhino3dm.ObjectMaterialSource.MaterialFromParent and placement.attributes is not None:
            index = placement.attributes.MaterialIndex
        if 0 <= index < len(self.file.Materials):
            return self._number(_convert_material(self.file.Materials[index]))
        color, name = None, ""
        if attributes.ColorSource == rhino3dm.ObjectColorSource.ColorFromObject:
            color = attributes.ObjectColor
        elif attributes.ColorSource == rhino3dm.ObjectColorSource.ColorFromParent and placement.attributes is not None:
            color = placement.attributes.DrawColor(self.file)
        elif layer is not None:
            color, name = layer.Color, single_line(layer.Name)
        if color is None or tuple(color[:3]) == _BLACK:
            return None
        red, green, blue = (value / 255 for value in color[:3])
        return self._number(Material(name=name, base_color=(red, green, blue, 1.0)))

    def _number(self, material: Material) -> int:
        if material not in self.materials:
            self.materials.append(material)
        return self.materials.index(material)


def read(source: Source, options: object) -> Scene:  # noqa: ARG001
    """Read a 3DM file.

    Returns:
        Scene in the unit of the file, with a part of each visible object; the path of a part is its layers.
    Raises:
        UnreadableFile: The file is damaged.
        EmptyModel: The file has no meshes.
    """
    file = rhino3dm.File3dm.FromByteArray(source.read())
    if file is None:
        raise UnreadableFile("the 3DM file is damaged or cut off; save it again in Rhino")
    model = _Model(file)
    model.add_all()
    hidden_count = model.hidden_count
    is_all_hidden = hidden_count > 0 and not model.parts
    if is_all_hidden:
        model = _Model(file, reads_hidden=True)
        model.add_all()
    report_hidden(hidden_count, is_read=is_all_hidden)
    missing = model.skipped.pop("without render mesh", 0)
    if missing:
        note(
            "render_meshes_missing",
            f"{format_count(missing, 'solid or surface lacks', 'solids or surfaces lack')} "
            "faces, without a complete render mesh; show the model shaded in Rhino "
            "and save it, not small, or export STEP",
        )
    if model.skipped:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(model.skipped.items()))
        note("objects_left_out", f"objects without triangles were left out: {kinds}")
    if not model.parts:
        raise EmptyModel("the 3DM file has no meshes; show the model shaded in Rhino, save it, not small, or mesh it")
    unit, factor = _UNITS.get(file.Settings.ModelUnitSystem.name, ("mm", 1.0))
    parts = model.parts
    if factor != 1:
        scale = np.diag([factor, factor, factor, 1.0])
        parts = [Part(part.mesh, scale @ part.transform, part.name, part.path, part.material) for part in model.parts]
    return Scene(tuple(model.meshes), tuple(parts), tuple(model.materials), frame=Frame(unit, "z"))


def _list_layers(layer: Any) -> tuple[str, ...]:
    """Return the names of a layer and of those around it, without the layer of files without layers."""
    names = () if layer is None else tuple(single_line(name) for name in layer.FullPath.split("::") if name)
    return () if names == (DEFAULT_LAYER,) else names


def _convert(source: Any) -> Mesh:
    """Return a mesh of rhino3dm with triangles only."""
    arrays = read_arrays(source)
    quads = arrays.faces
    if len(quads) and not 0 <= quads.min() <= quads.max() < len(arrays.vertices):
        raise UnreadableFile("a face of a mesh in the 3DM file refers to a missing vertex; repair it in Rhino")
    is_quad = quads[:, 2] != quads[:, 3]
    # the shorter diagonal, as Rhino divides a quad
    corners = arrays.vertices[quads[is_quad]]
    first = np.linalg.norm(corners[:, 2] - corners[:, 0], axis=1) <= np.linalg.norm(
        corners[:, 3] - corners[:, 1], axis=1
    )
    orders = np.where(first[:, None], [[0, 1, 2, 0, 2, 3]], [[0, 1, 3, 1, 2, 3]])
    divided = np.take_along_axis(quads[is_quad], orders, axis=1).reshape(-1, 3)
    faces = np.concatenate([quads[~is_quad, :3], divided])
    return Mesh(arrays.vertices, faces, normals=arrays.normals, colors=arrays.colors)


def _join(meshes: list[Mesh]) -> Mesh:
    """Return the meshes of the faces of a solid as one. Their borders have the same points, which stay separate."""
    starts = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    vertices = np.concatenate([mesh.vertices for mesh in meshes])
    faces = np.concatenate([mesh.faces + start for mesh, start in zip(meshes, starts, strict=False)])
    normals = [mesh.normals for mesh in meshes if mesh.normals is not None]
    colors = [mesh.colors for mesh in meshes if mesh.colors is not None]
    return Mesh(
        vertices,
        faces,
        normals=np.concatenate(normals) if len(normals) == len(meshes) else None,
        colors=np.concatenate(colors) if len(colors) == len(meshes) else None,
    )


def _convert_material(material: Any) -> Material:
    color = material.DiffuseColor
    alpha = 1.0 - min(max(material.Transparency, 0.0), 1.0)
    red, green, blue = (value / 255 for value in color[:3])
    return Material(
        name=single_line(material.Name),
        base_color=(red, green, blue, alpha),
        alpha_mode="opaque" if alpha == 1 else "blend",
    )
