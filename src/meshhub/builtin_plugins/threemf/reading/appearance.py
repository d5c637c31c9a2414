"""Read property groups as materials, vertex colors and texture coordinates.

Base materials become face materials. 3MF has colors and texture coordinates at the corners of triangles, but a scene
has them at vertices, so a vertex is split if its corners differ.
"""

from __future__ import annotations

import bisect
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.threemf.reading.model_document import (
    BaseMaterials,
    ColorGroup,
    CompositeMaterials,
    Int64,
    ModelDocument,
    ModelObject,
    MultiProperties,
    PropertyGroup,
    TextureGroup,
    TriangleMesh,
)
from meshhub.builtin_plugins.threemf.reading.package import Package
from meshhub.errors import quote
from meshhub.model.notes import note
from meshhub.model.scene import Float32, Image, Int32, Material, Mesh, UInt8
from meshhub.toolkit.geometry import weld
from meshhub.toolkit.images import detect_media_type

_Wrap = Literal["repeat", "clamp", "mirror"]
_WRAPS: dict[str, _Wrap] = {"wrap": "repeat", "mirror": "mirror", "clamp": "clamp", "none": "clamp"}
_MEDIA_TYPES = ("image/png", "image/jpeg")
_WHITE = np.array([255, 255, 255, 255], np.uint8)


class _CornerProperties:
    """Properties of the faces of one mesh, at their corners."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.material = np.full(count, -1, np.int32)
        self.has_colors = False
        self._colors: UInt8 | None = None
        self._uv: Float32 | None = None

    def colors(self) -> UInt8:
        """Return the (m, 3, 4) colors, to be changed in place; initially white."""
        if self._colors is None:
            self._colors = np.full((self.count, 3, 4), 255, np.uint8)
            self.has_colors = True
        return self._colors

    def uv(self) -> Float32:
        """Return the (m, 3, 2) texture coordinates, to be changed in place; initially zero."""
        if self._uv is None:
            self._uv = np.zeros((self.count, 3, 2), np.float32)
        return self._uv

    def clear(self, faces: NDArray[np.bool_]) -> None:
        """Remove the properties of the faces (m,), because they have a filament."""
        self.material[faces] = -1
        if self._colors is not None:
            self._colors[faces] = 255

    def build_mesh(self, source: TriangleMesh, name: str) -> Mesh:
        """Return the mesh of the scene, with split vertices where the properties of corners differ."""
        faces = source.triangles.astype(np.int32, copy=False)
        materials = self.material if (self.material >= 0).any() else None
        plain = Mesh(source.vertices, faces, face_material=materials, name=name)
        if self._colors is None and self._uv is None:
            return plain
        columns: list[NDArray[np.int32]] = []
        if self._colors is not None:
            columns.append(np.ascontiguousarray(self._colors).reshape(-1, 4).view(np.int32))
        if self._uv is not None:
            # + 0.0, because -0.0 and 0.0 have different bits
            columns.append(np.ascontiguousarray(self._uv + np.float32(0)).reshape(-1, 2).view(np.int32))
        at_corner = np.concatenate(columns, axis=1)
        corners = faces.ravel()
        at_vertex = np.zeros((len(source.vertices), at_corner.shape[1]), np.int32)
        at_vertex[corners] = at_corner
        vertices = plain.vertices
        if not np.array_equal(at_vertex[corners], at_corner):
            first, index = weld(np.concatenate([corners[:, None], at_corner], axis=1))
            at_vertex, vertices = at_corner[first], vertices[corners[first]]
            faces = index.reshape(-1, 3)
        at_vertex = np.ascontiguousarray(at_vertex)
        colors = uv = None
        if self._colors is not None:
            colors = np.ascontiguousarray(at_vertex[:, :1]).view(np.uint8).reshape(-1, 4)
        if self._uv is not None:
            uv = np.ascontiguousarray(at_vertex[:, -2:]).view(np.float32).reshape(-1, 2)
        return replace(plain, vertices=vertices, faces=faces, colors=colors, uv=uv)


class PropertyReader:
    """Reads the properties of meshes, and collects materials and images."""

    def __init__(self, package: Package) -> None:
        self.materials: list[Material] = []
        self.images: list[Image] = []
        self._package = package
        self._base_cache: dict[tuple[str, int], int] = {}
        self._base_ids: dict[str, list[int]] = {}
        self._texture_cache: dict[tuple[str, int], int] = {}
        self._image_cache: dict[str, int | None] = {}
        self._mixture_cache: dict[tuple[str, int], UInt8] = {}

    def build_mesh(self, document: ModelDocument, model_object: ModelObject, source: TriangleMesh) -> Mesh:
        """Return the mesh of an object with the properties of the triangles and of the object."""
        corners = _CornerProperties(len(source.triangles))
        group, index = _resolve_defaults(source, model_object)
        if group is not None and index is not None:
            order = np.argsort(group, kind="stable")
            ids, starts = np.unique(group[order], return_index=True)
            for number, faces in zip(ids.tolist(), np.split(order, starts[1:]), strict=True):
                if number < 0:
                    continue
                if number not in document.groups:
                    note(
                        "bad_property",
                        f"{quote(document.part)}: triangles name property group {number}, which does not exist",
                    )
                    continue
                self._apply(corners, document, number, faces, index[faces])
        if source.filament is not None:
            corners.clear(source.filament > 0)
        return corners.build_mesh(source, model_object.name)

    def _apply(
        self,
        corners: _CornerProperties,
        document: ModelDocument,
        number: int,
        faces: Int64,
        index: Int64,
        blend: str = "mix",
    ) -> None:
        """Apply properties of a group to faces.

        Args:
            corners: Properties to change.
            document: Model part of the group.
            number: Id of the group.
            faces: (k,) faces.
            index: (k, 3) properties of their corners.
            blend: Blend method, "mix" or "multiply".
        """
        group = document.groups[number]
        is_valid = ((index >= 0) & (index < _count_properties(group))).all(axis=1)
        if not is_valid.all():
            note("bad_property", f"{quote(document.part)}: triangles name properties that group {number} does not have")
            faces, index = faces[is_valid], index[is_valid]
        if isinstance(group, MultiProperties):
            self._apply_layers(corners, document, number, faces, index)
            return
        if len(faces) == 0:
            return
        repeated = self._find_repeated(document, number)
        if isinstance(group, BaseMaterials):
            corners.material[faces] = self._read_base(document, number, group) + index[:, 0]
        elif repeated is not None and blend == "mix":
            corners.material[faces] = repeated
        elif isinstance(group, TextureGroup):
            corners.material[faces] = self._read_texture(document, group.texture)
            corners.uv()[faces] = group.uv[index]
            if blend == "mix" and corners.has_colors:
                corners.colors()[faces] = 255
        else:
            colors = group.colors if isinstance(group, ColorGroup) else self._mix(document, number, group)
            _apply_colors(corners, colors[index], faces, blend)

    def _apply_layers(
        self, corners: _CornerProperties, document: ModelDocument, number: int, faces: Int64, index: Int64
    ) -> None:
        """Apply the layers of multiproperties, each blended onto the previous ones (materials §5)."""
        multi = document.groups[number]
        assert isinstance(multi, MultiProperties)
        for layer, layer_group in enumerate(multi.groups):
            group = document.groups.get(layer_group)
            if group is None or isinstance(group, MultiProperties):
                note(
                    "bad_property",
                    f"{quote(document.part)}: property group {number} has layer {layer_group}, which is not allowed",
                )
                continue
            blend = multi.blends[layer - 1] if 0 < layer <= len(multi.blends) else "mix"
            if isinstance(group, TextureGroup) and blend == "multiply":
                self._keep_base_color(corners, faces)
            self._apply(corners, document, layer_group, faces, multi.indices[:, layer][index], blend)

    def _keep_base_color(self, corners: _CornerProperties, faces: Int64) -> None:
        """Copy the colors of base materials to vertex colors, because a texture replaces the material."""
        faces = faces[corners.material[faces] >= 0]
        used, index = np.unique(corners.material[faces], return_inverse=True)
        base_colors = [self.materials[material].base_color for material in used.tolist()]
        colors = np.rint(np.array(base_colors, np.float64).reshape(-1, 4) * 255).astype(np.uint8)
        is_tinted = (colors != _WHITE).any(axis=1)[index]
        if is_tinted.any():
            corners.colors()[faces[is_tinted]] = colors[index[is_tinted]][:, None]

    def _mix(self, document: ModelDocument, number: int, group: CompositeMaterials) -> UInt8:
        """Return the colors (k, 4) of a group of mixtures."""
        key = (document.part, number)
        if key not in self._mixture_cache:
            self._mixture_cache[key] = _mix_colors(document, group)
        return self._mixture_cache[key]

    def _read_base(self, document: ModelDocument, number: int, group: BaseMaterials) -> int:
        """Return the first material of a group of base materials; add them if they are new."""
        key = (document.part, number)
        if key not in self._base_cache:
            self._base_cache[key] = len(self.materials)
            for name, color in zip(group.names, (group.colors / 255.0).tolist(), strict=True):
                alpha_mode: Literal["opaque", "blend"] = "opaque" if color[3] == 1 else "blend"
                self.materials.append(Material(name=name, base_color=tuple(color), alpha_mode=alpha_mode))
        return self._base_cache[key]

    def _find_repeated(self, document: ModelDocument, number: int) -> int | None:
        """Return the material that a color group repeats, -1 for that of faces without a material, None otherwise.

        The writer adds a group of one color for each base material, and a last white one for faces without a material.
        Their ids follow that of the base materials.
        """
        group = document.groups[number]
        if not isinstance(group, ColorGroup) or len(group.colors) != 1:
            return None
        if document.part not in self._base_ids:
            bases = [index for index, other in document.groups.items() if isinstance(other, BaseMaterials)]
            self._base_ids[document.part] = sorted(bases)
        ids = self._base_ids[document.part]
        place = bisect.bisect_left(ids, number) - 1
        base = document.groups[ids[place]] if place >= 0 else None
        if not isinstance(base, BaseMaterials):
            return None
        row = number - ids[place] - 1
        if row == len(base.colors):
            return -1 if bool((group.colors == _WHITE).all()) else None
        if row > len(base.colors) or not bool((base.colors[row] == group.colors[0]).all()):
            return None
        return self._read_base(document, ids[place], base) + row

    def _read_texture(self, document: ModelDocument, number: int) -> int:
        """Return the material with a texture; add it if it is new."""
        key = (document.part, number)
        if key not in self._texture_cache:
            texture = document.textures.get(number)
            if texture is None:
                note("bad_property", f"{quote(document.part)}: texture {number} does not exist")
                material = Material()
            else:
                u, v = (_WRAPS.get(style, "repeat") for style in texture.tile_styles)
                material = Material(
                    base_color_image=self._read_image(texture.path, document.part),
                    wrap=(u, v),
                    filter="nearest" if texture.filter == "nearest" else "linear",
                )
            self._texture_cache[key] = len(self.materials)
            self.materials.append(material)
        return self._texture_cache[key]

    def _read_image(self, path: str, base: str) -> int | None:
        name = self._package.find(path, base)
        if name is None:
            note(
                "missing_texture",
                f"texture {quote(path)} is not in the file; its faces were read without it",
                name=quote(path),
            )
            return None
        if name not in self._image_cache:
            data = self._package.read(name)
            media_type = detect_media_type(data)
            self._image_cache[name] = None
            if media_type not in _MEDIA_TYPES:
                note(
                    "missing_texture",
                    f"texture {quote(path)} is not PNG or JPEG; its faces were read without it",
                    name=quote(path),
                )
            else:
                self._image_cache[name] = len(self.images)
                stem = name.rsplit("/", 1)[-1].rsplit(".", 1)[0]
                self.images.append(Image(data, media_type, name=stem))
        return self._image_cache[name]


def _resolve_defaults(source: TriangleMesh, model_object: ModelObject) -> tuple[Int64 | None, Int64 | None]:
    """Return the group (m,) and the properties (m, 3) of all triangles; by default, those of the object.

    Source:
        3MF core §4.1.4.
    """
    count = len(source.triangles)
    if source.group is None or source.index is None:
        if model_object.group is None:
            return None, None
        return np.full(count, model_object.group, np.int64), np.full((count, 3), model_object.index, np.int64)
    group, index = source.group.astype(np.int64), source.index.astype(np.int64)
    is_unset = index[:, 0] < 0
    if model_object.group is not None:
        group[is_unset | (group < 0)] = model_object.group
        index[is_unset] = model_object.index
    else:
        group[is_unset] = -1
    return group, index


def _count_properties(group: PropertyGroup) -> int:
    if isinstance(group, BaseMaterials | ColorGroup):
        return len(group.colors)
    if isinstance(group, TextureGroup):
        return len(group.uv)
    return len(group.mixtures if isinstance(group, CompositeMaterials) else group.indices)


def _apply_colors(corners: _CornerProperties, colors: UInt8, faces: Int64, blend: str) -> None:
    """Blend colors (k, 3, 4) onto the properties of faces (k,)."""
    if blend == "multiply":
        below = corners.colors()[faces].astype(np.uint16)
        corners.colors()[faces] = ((below * colors + 127) // 255).astype(np.uint8)
        return
    corners.material[faces] = -1
    corners.colors()[faces] = colors


def _mix_colors(document: ModelDocument, group: CompositeMaterials) -> UInt8:
    """Return the colors (k, 4) of mixtures: averages of base materials, weighted by their shares."""
    base = document.groups.get(group.base)
    colors = np.full((len(group.mixtures), 4), 255, np.uint8)
    if not isinstance(base, BaseMaterials) or not all(member < len(base.colors) for member in group.members):
        note("bad_property", f"{quote(document.part)}: composite materials name base materials that do not exist")
        return colors
    members: Int32 = np.array(group.members, np.int32)
    for row, mixture in enumerate(group.mixtures):
        weights = np.zeros(len(members))
        stated = np.maximum(np.array(mixture[: len(members)], np.float64), 0)
        weights[: len(stated)] = stated
        if weights.sum() > 0:
            colors[row] = np.rint(weights @ base.colors[members] / weights.sum())
    return colors
