"""Writer: meshes as objects on layers; a mesh that several parts share becomes a block."""

from __future__ import annotations

import base64
import uuid
from collections import Counter
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from meshhub import Mesh, NoOptions, Part, Scene, Target
from meshhub.model.scene import Color, UInt8
from meshhub.toolkit.geometry import compacted, placed_mesh
from meshhub.toolkit.materials import note_lost_finish
from meshhub.toolkit.names import single_line
from meshhub_rhino.archive import build_mesh, make_definition, remove_dates, rhino3dm
from meshhub_rhino.reader import DEFAULT_LAYER

_NAMESPACE = uuid.UUID("6b0ce0b4-5f2d-4f5c-9a34-4e9c3d8d3f5a")
"""Namespace of the ids of objects, which are the same for the same place in a scene."""

_VERSION = 7
"""Version of Rhino files; Rhino 7 and later read them."""


class _Block(NamedTuple):
    """Block with one object: its id, and that of the object."""

    own_id: uuid.UUID
    member_id: uuid.UUID


class _File:
    """File while it is written."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.file = rhino3dm.File3dm()
        self.file.StartSectionComments = "meshhub"
        self.file.Settings.ModelUnitSystem = rhino3dm.UnitSystem.Millimeters
        self._layers: dict[tuple[str, ...], int] = {}
        self._count = 0
        self._materials: dict[int, int] = {}

    def make_id(self) -> uuid.UUID:
        """Return the next id."""
        self._count += 1
        return uuid.uuid5(_NAMESPACE, str(self._count))

    def add_block(self, name: str) -> _Block:
        """Add the definition of a block, whose object is added later."""
        block = _Block(self.make_id(), self.make_id())
        self.file.InstanceDefinitions.AddInstanceDefinition(make_definition(name, *block))
        return block

    def find_layer(self, path: tuple[str, ...]) -> int:
        """Return the index of the layer of a path, which is added with the layers above it."""
        path = path or (DEFAULT_LAYER,)
        if path not in self._layers:
            layer = rhino3dm.Layer()
            layer.Id = self.make_id()
            # a name must not be empty, and must not have the separator of paths
            layer.Name = single_line(path[-1]).replace("::", ":") or DEFAULT_LAYER
            if len(path) > 1:
                layer.ParentLayerId = self.file.Layers[self.find_layer(path[:-1])].Id
            self._layers[path] = self.file.Layers.Add(layer)
        return self._layers[path]

    def find_material(self, index: int) -> int:
        """Return the index of a material of the scene, which is added."""
        if index not in self._materials:
            material = self.scene.materials[index]
            result = rhino3dm.Material()
            result.Id = self.make_id()
            result.Name = single_line(material.name)
            result.DiffuseColor = (*_bytes_of(material.base_color)[:3], 255)
            result.Transparency = 1.0 - material.base_color[3]
            self._materials[index] = self.file.Materials.Add(result)
        return self._materials[index]

    def make_attributes(self, part: Part, material: int | None) -> Any:
        """Return the attributes of an object: name, layer, and color for display and for rendering."""
        attributes = rhino3dm.ObjectAttributes()
        attributes.Id = self.make_id()
        attributes.Name = single_line(part.name or self.scene.meshes[part.mesh].name)
        attributes.LayerIndex = self.find_layer(part.path)
        if material is not None:
            attributes.MaterialSource = rhino3dm.ObjectMaterialSource.MaterialFromObject
            attributes.MaterialIndex = self.find_material(material)
            attributes.ColorSource = rhino3dm.ObjectColorSource.ColorFromObject
            attributes.ObjectColor = (*_bytes_of(self.scene.materials[material].base_color)[:3], 255)
        return attributes


def write(scene: Scene, target: Target, options: NoOptions) -> None:  # noqa: ARG001
    """Write a scene as a file of Rhino 7, in millimeters.

    A mesh has one material in Rhino: materials of single faces become vertex colors.
    """
    note_lost_finish("3DM", [scene.materials[index] for index in scene.used_materials()])
    output = _File(scene)
    uses = Counter(part.mesh for part in scene.parts)
    blocks: dict[tuple[int, int | None], _Block] = {}
    for part in scene.parts:
        mesh = compacted(scene.meshes[part.mesh])
        if not len(mesh.faces):
            continue
        if mesh.face_material is not None:
            mesh, material = _paint(mesh, scene, part.material)
        else:
            material = part.material
        if uses[part.mesh] == 1:
            placed = placed_mesh(mesh, part.transform)
            output.file.Objects.AddMesh(build_mesh(placed), output.make_attributes(part, material))
            continue
        key = (part.mesh, part.material)
        if key not in blocks:
            blocks[key] = output.add_block(f"{single_line(mesh.name or part.name) or 'Block'} {len(blocks) + 1}")
            inner = output.make_attributes(Part(part.mesh, name=mesh.name), material)
            inner.Mode = rhino3dm.ObjectMode.InstanceDefinitionObject
            inner.Id = blocks[key].member_id
            output.file.Objects.AddMesh(build_mesh(mesh), inner)
        reference = rhino3dm.InstanceReference(blocks[key].own_id, _as_transform(part.transform))
        output.file.Objects.AddInstanceObject(reference, output.make_attributes(part, material))
    options_of_file = rhino3dm.File3dmWriteOptions()
    options_of_file.Version = _VERSION
    data = base64.b64decode(output.file.Encode(options_of_file))
    with target.open() as file:
        file.write(remove_dates(data))


def _as_transform(matrix: Any) -> Any:
    result = rhino3dm.Transform(1.0)
    for row in range(4):
        for column in range(4):
            setattr(result, f"M{row}{column}", float(matrix[row, column]))
    return result


def _bytes_of(color: Color) -> tuple[int, ...]:
    return tuple(round(255 * min(max(value, 0.0), 1.0)) for value in color)


def _paint(mesh: Mesh, scene: Scene, material: int | None) -> tuple[Mesh, int | None]:
    """Return a mesh with the colors of the materials of its faces at its vertices, and the one material of all faces.

    Vertices between colors are doubled; Rhino takes points at the same place for one, so that the mesh stays closed.
    """
    own = np.asarray(mesh.face_material)
    own = np.where(own >= 0, own, -1 if material is None else material)
    used = np.unique(own)
    if len(used) == 1:
        return replace(mesh, face_material=None), int(used[0]) if used[0] >= 0 else None
    if mesh.colors is not None:
        # vertex colors are finer
        return replace(mesh, face_material=None), material
    palette = np.array([_bytes_of(each.base_color) for each in scene.materials] + [(255, 255, 255, 255)], np.uint8)
    corners = np.column_stack([mesh.faces.ravel(), np.repeat(own, 3)])
    distinct, index = np.unique(corners, axis=0, return_inverse=True)
    vertex = distinct[:, 0]
    colors: UInt8 = palette[distinct[:, 1]]
    return (
        Mesh(
            mesh.vertices[vertex],
            index.reshape(-1, 3).astype(np.int32),
            normals=None if mesh.normals is None else mesh.normals[vertex],
            colors=colors,
            name=mesh.name,
        ),
        None,
    )
