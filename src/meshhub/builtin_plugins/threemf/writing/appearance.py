"""Write materials, vertex colors and texture coordinates as property groups.

Untextured materials become base materials, which have names, and one color group each, because BambuStudio does not
read base materials, and OrcaSlicer reads one color of a group. Vertex colors become a color group, multiplied by the
color of the material. Textures become texture groups, multiplied by a color group if they are tinted.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.threemf.writing.xml_text import escape_xml, format_color
from meshhub.model.notes import note
from meshhub.model.scene import Int32, Material, Mesh, Scene, UInt8
from meshhub.toolkit.colors import multiply_colors
from meshhub.toolkit.columns import shortest, write_rows
from meshhub.toolkit.geometry import weld
from meshhub.toolkit.images import convert_to_png, detect_media_type
from meshhub.toolkit.materials import note_lost_finish

Chunk = bytes | memoryview
"""Bytes of a part of the package."""

_EXTENSIONS = {"image/png": ".png", "image/jpeg": ".jpg"}
_TILE_STYLES = {"repeat": "wrap", "mirror": "mirror", "clamp": "clamp"}
_WHITE = (255, 255, 255, 255)


@dataclass
class FaceProperties:
    """Properties of the triangles of one object.

    chunks: property groups to write before the object
    group:  (m,) property group of each triangle; None for an object without properties
    index:  (m, 3) properties of the corners
    """

    chunks: list[Chunk] = field(default_factory=list)
    group: Int32 | None = None
    index: Int32 | None = None

    def set(self, count: int, faces: NDArray[np.intp], group: int | Int32, index: Int32) -> None:
        """Set the property groups and the properties (k, 3) of the triangles `faces` (k,) among `count` triangles."""
        if self.group is None or self.index is None:
            self.group, self.index = np.zeros(count, np.int32), np.zeros((count, 3), np.int32)
        self.group[faces] = group
        self.index[faces] = index


class PropertyWriter:
    """Writes the property resources of a model."""

    def __init__(self, scene: Scene, ids: Iterator[int], *, has_color_groups: bool) -> None:
        """Write the base materials.

        Args:
            scene: Scene whose materials are written.
            ids: Source of resource ids.
            has_color_groups: Whether to color all triangles of a scene with colors by color groups. Projects of slicers
                have filaments instead.
        """
        self.chunks: list[Chunk] = []
        self.images: dict[str, bytes] = {}
        self._ids = ids
        self._scene = scene
        self._tints = np.array([_get_tint(material) for material in scene.materials], np.uint8).reshape(-1, 4)
        self._image_paths = self._add_images()
        self._textures: dict[tuple[int, tuple[str, str], str], int] = {}
        self._has_color_groups = has_color_groups
        self._base_group: int | None = None
        self._base_rows: dict[int, int] = {}
        self._color_groups: list[int] = []
        self._write_base_materials()
        _note_losses([scene.materials[index] for index in scene.used_materials()], self._image_paths)

    def assign(self, mesh: Mesh, faces: Int32, material: int | None) -> FaceProperties:
        """Write the property groups of a mesh, and assign them to its faces.

        Args:
            mesh: Source of materials, colors and texture coordinates.
            faces: (m, 3) indices of the vertices that have them.
            material: Material of the faces without one.
        """
        result = FaceProperties()
        materials = _get_face_materials(mesh, material)
        is_textured = self._find_textured_faces(mesh, materials)
        if mesh.colors is None and not is_textured.any():
            if (materials >= 0).any() or (self._has_color_groups and -1 in self._base_rows):
                self._assign_base(result, materials, np.arange(len(materials)))
            return result
        colors = np.full((len(faces), 3, 4), 255, np.uint8) if mesh.colors is None else mesh.colors[faces]
        colors = self._tint(colors, materials)
        untextured = np.flatnonzero(~is_textured)
        if mesh.colors is None:
            self._assign_base(result, materials, untextured)
        if is_textured.any():
            assert mesh.uv is not None
            self._assign_textures(result, mesh.uv[faces], colors, np.where(is_textured, materials, -1))
        if mesh.colors is not None and len(untextured):
            group, index = self._write_color_group(result, colors[untextured])
            result.set(len(faces), untextured, group, index)
        return result

    # -- resources of the whole model --

    def _add_images(self) -> dict[int, str]:
        """Add the images that 3MF supports, and return the path of each in the package."""
        used = {self._scene.materials[index].base_color_image for index in self._scene.used_materials()}
        paths: dict[int, str] = {}
        for image in sorted(index for index in used if index is not None):
            data = self._scene.images[image].data
            if detect_media_type(data) not in _EXTENSIONS:
                data = convert_to_png(data) or b""
            extension = _EXTENSIONS.get(detect_media_type(data))
            if extension is None:
                note(
                    "texture_format_unsupported",
                    "3MF supports PNG and JPEG textures; others could not be decoded and were left out",
                )
                continue
            paths[image] = f"/3D/Textures/texture{len(paths) + 1}{extension}"
            self.images[paths[image][1:]] = data
        return paths

    def _write_base_materials(self) -> None:
        """Write one group of all untextured materials, and color groups; faces without material get a white one."""
        materials, needs_default = self._find_base_materials()
        self._base_rows = {index: row for row, index in enumerate(materials)}
        rows = [(self._scene.materials[index].name, tuple(self._tints[index].tolist())) for index in materials]
        if needs_default:
            self._base_rows[-1] = len(rows)
            rows.append(("Default", _WHITE))
        if not rows:
            return
        named = rows[: len(materials)] if self._has_color_groups else rows
        lines = []
        if named:
            self._base_group = next(self._ids)
            lines.append(f'<basematerials id="{self._base_group}">\n')
            for row, (name, color) in enumerate(named, 1):
                text = escape_xml(name) or f"Material {row}"
                lines.append(f'<base name="{text}" displaycolor="{format_color(color)}"/>\n')
            lines.append("</basematerials>\n")
        if self._has_color_groups:
            # the reader finds the material of a color group by its id
            self._color_groups = [next(self._ids) for _ in rows]
            for group, (_, color) in zip(self._color_groups, rows, strict=True):
                lines.append(f'<m:colorgroup id="{group}"><m:color color="{format_color(color)}"/></m:colorgroup>\n')
        self.chunks.append("".join(lines).encode())

    def _find_base_materials(self) -> tuple[list[int], bool]:
        """Return the materials used without texture and colors, and whether faces without one need a color.

        They do beside colored faces, because BambuStudio ignores all colors of a model if one face has no color.
        """
        base: set[int] = set()
        has_colors = has_bare_faces = needs_default = False
        used_by_mesh: dict[int, list[int]] = {}
        for part in self._scene.parts:
            mesh = self._scene.meshes[part.mesh]
            has_colors = has_colors or mesh.colors is not None
            if mesh.colors is not None or len(mesh.faces) == 0:
                continue
            if part.mesh not in used_by_mesh:
                own = mesh.face_material
                used_by_mesh[part.mesh] = [-1] if own is None else (np.flatnonzero(np.bincount(own + 1)) - 1).tolist()
            used = {part.material if index < 0 else index for index in used_by_mesh[part.mesh]}
            has_bare_faces = has_bare_faces or None in used
            needs_default = needs_default or (None in used and len(used) > 1)
            materials = {index for index in used if index is not None}
            has_colors = has_colors or bool(materials)
            if mesh.uv is None and any(self._is_textured(index) for index in materials):
                note("texture_without_uv", "a mesh without texture coordinates has a texture, which was left out")
            base |= {index for index in materials if mesh.uv is None or not self._is_textured(index)}
        return sorted(base), needs_default or (self._has_color_groups and has_colors and has_bare_faces)

    def _is_textured(self, material: int) -> bool:
        return self._scene.materials[material].base_color_image in self._image_paths

    def _write_texture(self, material: Material) -> int:
        """Return the id of the texture of a material; write it if it is new."""
        assert material.base_color_image is not None
        key = (material.base_color_image, material.wrap, material.filter)
        if key not in self._textures:
            path = self._image_paths[material.base_color_image]
            media_type = detect_media_type(self.images[path[1:]])
            self._textures[key] = next(self._ids)
            u, v = (_TILE_STYLES[wrap] for wrap in material.wrap)
            # materials §6: "auto", the default, interpolates
            nearest = ' filter="nearest"' if material.filter == "nearest" else ""
            self.chunks.append(
                f'<m:texture2d id="{self._textures[key]}" path="{path}" contenttype="{media_type}" '
                f'tilestyleu="{u}" tilestylev="{v}"{nearest}/>\n'.encode()
            )
        return self._textures[key]

    # -- properties of one mesh --

    def _find_textured_faces(self, mesh: Mesh, materials: Int32) -> NDArray[np.bool_]:
        if mesh.uv is None or not self._image_paths:
            if mesh.uv is not None:
                note("uv_dropped", "3MF stores texture coordinates only with a texture; they were left out")
            return np.zeros(len(materials), np.bool_)
        table = np.array([self._is_textured(index) for index in range(len(self._scene.materials))] + [False])
        is_textured: NDArray[np.bool_] = table[materials]
        return is_textured

    def _tint(self, colors: UInt8, materials: Int32) -> UInt8:
        """Multiply corner colors (m, 3, 4) by the colors of the materials (m,), in linear light."""
        tints = np.concatenate([self._tints, [_WHITE]]).astype(np.uint8)[materials]
        tinted = np.flatnonzero((tints != 255).any(axis=1))
        if len(tinted) == 0:
            return colors
        colors = colors.copy()
        colors[tinted] = multiply_colors(colors[tinted], tints[tinted][:, None, :])
        return colors

    def _assign_base(self, result: FaceProperties, materials: Int32, faces: NDArray[np.intp]) -> None:
        """Assign base materials to faces without texture and colors."""
        if len(faces) == 0:
            return
        table = np.full(len(self._scene.materials) + 1, self._base_rows.get(-1, 0), np.int32)
        for material, row in self._base_rows.items():
            table[material] = row
        rows = table[materials[faces]]
        if self._has_color_groups:
            groups = np.array(self._color_groups, np.int32)[rows]
            result.set(len(materials), faces, groups, np.zeros((len(rows), 3), np.int32))
        else:
            assert self._base_group is not None
            result.set(len(materials), faces, self._base_group, np.repeat(rows[:, None], 3, axis=1))

    def _assign_textures(
        self, result: FaceProperties, uv: NDArray[np.float32], colors: UInt8, materials: Int32
    ) -> None:
        """Assign a texture group to the faces of each textured material, multiplied by a color group if it is tinted.

        Args:
            result: Properties to change.
            uv: (m, 3, 2) texture coordinates of the corners.
            colors: (m, 3, 4) colors of the corners.
            materials: (m,) textured material of each face, or -1.
        """
        is_tinted = (colors != 255).any(axis=(1, 2))
        for material in np.unique(materials[materials >= 0]).tolist():
            faces = np.flatnonzero(materials == material)
            texture = self._write_texture(self._scene.materials[material])
            corners = uv[faces].reshape(-1, 2)
            first, inverse = weld(corners)
            distinct = shortest(corners[first])
            group, index = next(self._ids), inverse.reshape(-1, 3)
            result.chunks += [
                f'<m:texture2dgroup id="{group}" texid="{texture}">\n'.encode(),
                write_rows(['<m:tex2coord u="', '" v="', '"/>\n'], [distinct[:, 0], distinct[:, 1]]),
                b"</m:texture2dgroup>\n",
            ]
            if is_tinted[faces].any():
                group, index = self._multiply(result, group, index, colors[faces])
            result.set(len(materials), faces, group, index)

    def _write_color_group(self, result: FaceProperties, colors: UInt8) -> tuple[int, Int32]:
        """Write a color group of corner colors (k, 3, 4); return its id and the indices of the corners (k, 3)."""
        rows = np.ascontiguousarray(colors).reshape(-1, 4)
        first, inverse = weld(rows.view(np.int32))
        group = next(self._ids)
        result.chunks += [f'<m:colorgroup id="{group}">\n'.encode(), _format_colors(rows[first]), b"</m:colorgroup>\n"]
        return group, inverse.reshape(-1, 3)

    def _multiply(self, result: FaceProperties, texture_group: int, index: Int32, colors: UInt8) -> tuple[int, Int32]:
        """Multiply a texture group by corner colors; return the id and the indices as `_write_color_group` does."""
        color_group, color_index = self._write_color_group(result, colors)
        pairs = np.stack([index.ravel(), color_index.ravel()], axis=1)
        first, inverse = weld(pairs)
        group = next(self._ids)
        result.chunks += [
            f'<m:multiproperties id="{group}" pids="{texture_group} {color_group}" blendmethods="multiply">\n'.encode(),
            write_rows(['<m:multi pindices="', " ", '"/>\n'], [pairs[first, 0], pairs[first, 1]]),
            b"</m:multiproperties>\n",
        ]
        return group, inverse.reshape(-1, 3)


def _get_face_materials(mesh: Mesh, default: int | None) -> Int32:
    """Return the material (m,) of each face, -1 for none."""
    fallback = -1 if default is None else default
    if mesh.face_material is None:
        return np.full(len(mesh.faces), fallback, np.int32)
    return np.where(mesh.face_material < 0, np.int32(fallback), mesh.face_material)


def _format_colors(colors: UInt8) -> bytes:
    """Return `<m:color …/>` for each of (k, 4) colors, without alpha for opaque ones.

    Slicers compare the texts of colors.
    """
    head, tail = b'<m:color color="#', b'"/>\n'
    digits = np.frombuffer(b"0123456789ABCDEF", np.uint8)
    lines = np.empty((len(colors), len(head) + 8 + len(tail)), np.uint8)
    lines[:, : len(head)] = np.frombuffer(head, np.uint8)
    lines[:, len(head) : -len(tail) : 2] = digits[colors >> 4]
    lines[:, len(head) + 1 : -len(tail) : 2] = digits[colors & 15]
    lines[:, -len(tail) :] = np.frombuffer(tail, np.uint8)
    is_written = np.ones(lines.shape, np.bool_)
    is_written[colors[:, 3] == 255, len(head) + 6 : -len(tail)] = False
    return lines[is_written].tobytes()


def _note_losses(materials: list[Material], stored_images: Container[int | None]) -> None:
    """Add notes for the properties of materials that 3MF cannot store: it has a base color or one texture."""
    properties = {
        "emissive colors": [any(material.emissive) for material in materials],
        "normal maps": [material.normal_image is not None for material in materials],
        "occlusion maps": [material.occlusion_image is not None for material in materials],
        "metallic and roughness maps": [material.metallic_roughness_image is not None for material in materials],
    }
    lost = [name for name, has_property in properties.items() if any(has_property)]
    if lost:
        count = sum(map(any, zip(*properties.values(), strict=True)))
        owners = f"{count} material" + "s" * (count != 1)
        note("material_properties_dropped", f"3MF stores only base colors; {', '.join(lost)} of {owners} were left out")
    note_lost_finish("3MF", materials, kept=("names", "emission", "cutoff"))
    textured = [material for material in materials if material.base_color_image in stored_images]
    note_lost_finish("textured 3MF", textured, kept=("metal", "emission", "cutoff", "sides", "unlit"))
    if any(material.alpha_mode == "mask" for material in materials):
        note("alpha_cutoff_dropped", "3MF has no alpha cutoff; materials were written without it")


def _get_tint(material: Material) -> tuple[int, int, int, int]:
    """Return the base color as sRGB bytes; opaque materials ignore alpha."""
    red, green, blue, alpha = (round(min(max(value, 0.0), 1.0) * 255) for value in material.base_color)
    return red, green, blue, 255 if material.alpha_mode == "opaque" else alpha
