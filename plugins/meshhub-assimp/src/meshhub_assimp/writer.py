"""FBX writer, without assimp: binary, version 7.4, centimeters and Y up, which are the defaults of FBX."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import numpy as np
from numpy.typing import NDArray

from meshhub import Image, Material, Mesh, NoOptions, Part, Scene, Target, note
from meshhub.errors import ConversionFailed
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import placed_mesh, welded
from meshhub.toolkit.materials import note_lost_finish
from meshhub.toolkit.names import single_line
from meshhub_assimp.records import FILE_ID, FIXED_TIME, VERSION, Id, Record, Value, encode_file

_EXTENSIONS = {"image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp", "image/gif": ".gif",
               "image/bmp": ".bmp", "image/tiff": ".tif", "image/x-tga": ".tga"}  # fmt: skip

_SETTINGS = {
    "UpAxis": 1,
    "UpAxisSign": 1,
    "FrontAxis": 2,
    "FrontAxisSign": 1,
    "CoordAxis": 0,
    "CoordAxisSign": 1,
    "OriginalUpAxis": -1,
    "OriginalUpAxisSign": 1,
}
"""Axes with Y up; the unit is a centimeter."""

_DATE_PARTS = ("Year", "Month", "Day", "Hour", "Minute", "Second", "Millisecond")
_FIXED_DATE = (1970, 1, 1, 10, 0, 0, 0)
"""FIXED_TIME as numbers: equal scenes give equal bytes."""

_RIGID_TOLERANCE = 1e-9
"""Sine of an angle up to which the axes of a matrix are perpendicular."""

_MIN_ALPHA = 1e-9
"""Opacity below which a material would be invisible."""

_FIRST_ID = 1_000_000
"""Id of the first object; 0 is the scene."""

DEFAULT_MATERIAL = Material("DefaultMaterial")
"""Material of faces without one in a mesh that has some; readers of assimp drop it by its name."""


class _Document:
    """Objects and connections of a file."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.objects = Record("Objects")
        self.connections = Record("Connections")
        self._ids = count(_FIRST_ID)
        self._groups: dict[tuple[str, ...], Id] = {(): Id(0)}
        self._materials: dict[int, Id] = {}
        self._videos: dict[int, Id] = {}
        self._geometries: dict[int, tuple[Id, list[int]]] = {}

    def add_part(self, part: Part) -> None:
        """Add the node of a part, with the geometry that it shares with others."""
        parameters = _decompose(part.transform)
        if parameters is None:
            # FBX has no matrices: shear and mirrors become part of the vertices
            geometry, slots = self._add_geometry(placed_mesh(self.scene.meshes[part.mesh], part.transform))
            parameters = np.array([[0, 0, 0], [0, 0, 0], [1, 1, 1]], np.float64)
        else:
            if part.mesh not in self._geometries:
                self._geometries[part.mesh] = self._add_geometry(self.scene.meshes[part.mesh])
            geometry, slots = self._geometries[part.mesh]
        model = self._add_model(part.name, "Mesh", parameters, self._find_group(part.path))
        self._connect(geometry, model)
        materials = [part.material if slot < 0 else slot for slot in slots]
        if materials != [None]:
            for material in materials:
                self._connect(self._find_material(-1 if material is None else material), model)

    def _add(self, kind: str, name: str, subclass: str) -> tuple[Id, Record]:
        """Add an object; return its id and its record."""
        own_id = Id(next(self._ids))
        return own_id, self.objects.add(kind, own_id, _full_name(name, kind), subclass)

    def _connect(self, child: Id, parent: Id, *slot: str) -> None:
        self.connections.add("C", "OP" if slot else "OO", child, parent, *slot)

    def _add_model(self, name: str, subclass: str, parameters: Float64, parent: Id) -> Id:
        own_id, record = self._add("Model", name, subclass)
        record.add("Version", 232)
        properties = record.add("Properties70")
        for key, values in zip(("Translation", "Rotation", "Scaling"), parameters.tolist(), strict=True):
            _add_property(properties, f"Lcl {key}", f"Lcl {key}", "", *values, flags="A")
        _add_property(properties, "DefaultAttributeIndex", "int", "Integer", 0)
        _add_property(properties, "InheritType", "enum", "", 1)
        record.add("Shading", True)
        record.add("Culling", "CullingOff")
        self._connect(own_id, parent)
        return own_id

    def _find_group(self, path: tuple[str, ...]) -> Id:
        """Return the id of the node of a group, which is added with the groups around it."""
        if path not in self._groups:
            parent = self._find_group(path[:-1])
            identity = np.array([[0, 0, 0], [0, 0, 0], [1, 1, 1]], np.float64)
            model = self._add_model(path[-1], "Null", identity, parent)
            attribute, record = self._add("NodeAttribute", path[-1], "Null")
            record.add("TypeFlags", "Null")
            self._connect(attribute, model)
            self._groups[path] = model
        return self._groups[path]

    def _add_geometry(self, mesh: Mesh) -> tuple[Id, list[int]]:
        """Add a mesh; return its id and the material of each slot, -1 for that of the part."""
        own_id, record = self._add("Geometry", mesh.name, "Mesh")
        record.add("GeometryVersion", 124)
        points, faces = welded(mesh)
        record.add("Vertices", _doubles(points))
        corners = faces.astype("<i4")
        # the last corner of a polygon is the complement of its index
        corners[:, 2] = ~corners[:, 2]
        record.add("PolygonVertexIndex", corners)
        index = mesh.faces.astype("<i4")
        layers = Record("Layer", 0)
        layers.add("Version", 100)
        if mesh.normals is not None:
            layer = _add_layer(record, layers, "Normal", "Direct")
            layer.add("Normals", _doubles(mesh.normals[mesh.faces]))
        if mesh.colors is not None:
            layer = _add_layer(record, layers, "Color", "IndexToDirect")
            layer.add("Colors", _doubles(np.round(mesh.colors / 255, 6)))
            layer.add("ColorIndex", index)
        if mesh.uv is not None:
            layer = _add_layer(record, layers, "UV", "IndexToDirect")
            layer.add("UV", _doubles(mesh.uv))
            layer.add("UVIndex", index)
        slots, slot = [-1], np.zeros(1, "<i4")
        if mesh.face_material is not None:
            values, numbers = np.unique(mesh.face_material, return_inverse=True)
            slots, slot = values.tolist(), numbers.astype("<i4")
        mapping = "AllSame" if len(slots) == 1 else "ByPolygon"
        layer = _add_layer(record, layers, "Material", "IndexToDirect", mapping)
        layer.add("Materials", slot[:1] if len(slots) == 1 else slot)
        record.children.append(layers)
        return own_id, slots

    def _find_material(self, index: int) -> Id:
        """Return the id of a material of the scene, which is added; -1: the default material."""
        if index not in self._materials:
            material = DEFAULT_MATERIAL if index < 0 else self.scene.materials[index]
            self._materials[index] = self._add_material(material)
        return self._materials[index]

    def _add_material(self, material: Material) -> Id:
        own_id, record = self._add("Material", material.name, "")
        record.add("Version", 102)
        record.add("ShadingModel", "lambert")
        record.add("MultiLayer", 0)
        properties = record.add("Properties70")
        red, green, blue, alpha = map(float, material.base_color)
        _add_property(properties, "DiffuseColor", "Color", "", red, green, blue, flags="A")
        _add_property(properties, "EmissiveColor", "Color", "", *map(float, material.emissive), flags="A")
        if material.alpha_mode != "opaque" and _MIN_ALPHA < alpha < 1:
            _add_property(properties, "TransparentColor", "Color", "", 1.0, 1.0, 1.0, flags="A")
            _add_property(properties, "TransparencyFactor", "Number", "", 1 - alpha, flags="A")
            _add_property(properties, "Opacity", "double", "Number", alpha)
        if len(material.images()) > len(self._add_textures(own_id, material)):
            note("maps_dropped", "dropped roughness and occlusion maps: FBX has no standard place for them")
        if material.base_color_image is not None and min(material.base_color[:3]) < 1:
            note("tint_dropped", "dropped the color of a material with a texture: FBX holds one or the other")
        return own_id

    def _add_textures(self, own_id: Id, material: Material) -> list[int]:
        """Add the textures of a material; return their images."""
        slots = {
            "DiffuseColor": material.base_color_image,
            "EmissiveColor": material.emissive_image,
            "NormalMap": material.normal_image,
        }
        for slot, image in slots.items():
            if image is not None:
                texture = self._add_texture(image, material.wrap)
                self._connect(texture, own_id, slot)
        return [image for image in slots.values() if image is not None]

    def _add_texture(self, index: int, wrap: Sequence[str]) -> Id:
        image = self.scene.images[index]
        name, file_name = single_line(image.name), _file_name(index, image)
        own_id, record = self._add("Texture", name, "")
        record.add("Type", "TextureVideoClip")
        record.add("Version", 202)
        record.add("TextureName", _full_name(name, "Texture"))
        record.add("Media", _full_name(name, "Video"))
        record.add("FileName", file_name)
        record.add("RelativeFilename", file_name)
        properties = record.add("Properties70")
        for axis, mode in zip("UV", wrap, strict=True):
            # FBX has no mirrored textures
            _add_property(properties, f"WrapMode{axis}", "enum", "", int(mode == "clamp"))
        _add_property(properties, "UseMaterial", "bool", "", 1)
        if index not in self._videos:
            self._videos[index] = self._add_video(name, file_name, image)
        self._connect(self._videos[index], own_id)
        return own_id

    def _add_video(self, name: str, file_name: str, image: Image) -> Id:
        """Add the content of an image."""
        own_id, record = self._add("Video", name, "Clip")
        record.add("Type", "Clip")
        _add_property(record.add("Properties70"), "Path", "KString", "XRefUrl", file_name)
        record.add("UseMipMap", 0)
        record.add("Filename", file_name)
        record.add("RelativeFilename", file_name)
        record.add("Content", image.data)
        return own_id


def write(scene: Scene, target: Target, options: NoOptions) -> None:  # noqa: ARG001
    """Write a scene as FBX; each mesh once, placed by nodes, textures in the file.

    Args:
        scene: Centimeters, Y up.
    Raises:
        ConversionFailed: The file would exceed 4 GiB.
    """
    note_lost_finish("FBX", [scene.materials[index] for index in scene.used_materials()], ("names", "emission"))
    document = _Document(scene)
    for part in scene.parts:
        if len(scene.meshes[part.mesh].faces):
            document.add_part(part)
    records = [*_begin(), _define(document.objects), document.objects, document.connections]
    try:
        pieces = encode_file(records)
        with target.open() as file:
            for piece in pieces:
                file.write(piece)
    except ValueError as error:
        raise ConversionFailed(str(error)) from None


def _begin() -> list[Record]:
    """Return the records before the definitions."""
    header = Record("FBXHeaderExtension")
    header.add("FBXHeaderVersion", 1003)
    header.add("FBXVersion", VERSION)
    header.add("EncryptionType", 0)
    stamp = header.add("CreationTimeStamp")
    stamp.add("Version", 1000)
    for name, value in zip(_DATE_PARTS, _FIXED_DATE, strict=True):
        stamp.add(name, value)
    header.add("Creator", "meshhub")
    root = Record("")
    root.add("FileId", FILE_ID)
    root.add("CreationTime", FIXED_TIME)
    root.add("Creator", "meshhub")
    settings = root.add("GlobalSettings")
    settings.add("Version", 1000)
    properties = settings.add("Properties70")
    for name, value in _SETTINGS.items():
        _add_property(properties, name, "int", "Integer", value)
    _add_property(properties, "UnitScaleFactor", "double", "Number", 1.0)
    _add_property(properties, "OriginalUnitScaleFactor", "double", "Number", 1.0)
    documents = root.add("Documents")
    documents.add("Count", 1)
    document = documents.add("Document", Id(_FIRST_ID - 1), "", "Scene")
    document.add("RootNode", Id(0))
    root.add("References")
    return [header, *root.children]


def _define(objects: Record) -> Record:
    """Return the number of objects of each type."""
    definitions = Record("Definitions")
    kinds = [record.name for record in objects.children]
    definitions.add("Version", 100)
    definitions.add("Count", len(kinds) + 1)
    definitions.add("ObjectType", "GlobalSettings").add("Count", 1)
    for kind in sorted(set(kinds)):
        definitions.add("ObjectType", kind).add("Count", kinds.count(kind))
    return definitions


def _full_name(name: str, kind: str) -> str:
    return f"{single_line(name)}\0\1{kind}"


def _file_name(index: int, image: Image) -> str:
    return f"texture-{index}{_EXTENSIONS.get(image.media_type, '.bin')}"


def _add_property(properties: Record, name: str, kind: str, label: str, *values: Value, flags: str = "") -> None:
    properties.add("P", name, kind, label, flags, *values)


def _add_layer(geometry: Record, layers: Record, kind: str, reference: str, mapping: str = "ByPolygonVertex") -> Record:
    """Add a layer of attributes to a geometry, and its entry to the table of layers; return the layer."""
    layer = geometry.add(f"LayerElement{kind}", 0)
    layer.add("Version", 101)
    layer.add("Name", "")
    layer.add("MappingInformationType", mapping)
    layer.add("ReferenceInformationType", reference)
    entry = layers.add("LayerElement")
    entry.add("Type", f"LayerElement{kind}")
    entry.add("TypedIndex", 0)
    return layer


def _doubles(values: NDArray[np.floating]) -> NDArray[np.float64]:
    return np.ascontiguousarray(values, "<f8")


def _decompose(matrix: Float64) -> Float64 | None:
    """Return translation, rotation in degrees and scale of a matrix; None if it mirrors, shears or flattens.

    The rotation is about X, then Y, then Z.
    """
    linear = matrix[:3, :3]
    scale = np.linalg.norm(linear, axis=0)
    if not scale.min() > 0:
        return None
    turn = linear / scale
    if np.abs(turn.T @ turn - np.eye(3)).max() > _RIGID_TOLERANCE or np.linalg.det(turn) < 0:
        return None
    y = np.arcsin(np.clip(-turn[2, 0], -1, 1))
    if abs(turn[2, 0]) < 1 - _RIGID_TOLERANCE:
        x, z = np.arctan2(turn[2, 1], turn[2, 2]), np.arctan2(turn[1, 0], turn[0, 0])
    else:
        x, z = 0.0, np.arctan2(-turn[0, 1], turn[1, 1])
    return np.stack([matrix[:3, 3], np.degrees([x, y, z]), scale])
