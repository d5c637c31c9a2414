"""From materials, vertex colours and texture coordinates to property groups.

Plain materials become base materials, which slicers list by name; vertex colours become a colour
group, what a material adds to them multiplied in; textures become texture groups, under a colour
group where they are tinted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.threemf.writing.text import color, escaped
from meshhub.model.notes import note
from meshhub.model.scene import Int32, Material, Mesh, Scene, UInt8
from meshhub.toolkit.colors import multiply_colors
from meshhub.toolkit.columns import shortest, write_rows
from meshhub.toolkit.geometry import weld

Piece = bytes | memoryview

_MAGIC = ((b"\x89PNG\r\n\x1a\n", ".png"), (b"\xff\xd8\xff", ".jpg"))
_TILES = {"repeat": "wrap", "mirror": "mirror", "clamp": "clamp"}
_TYPES = {".png": "image/png", ".jpg": "image/jpeg"}
_WHITE = (255, 255, 255, 255)


@dataclass
class Painted:
    """What the triangles of one object say.

    pieces: the groups that must stand before the object
    group:  (m,) the property group of each triangle, index (m, 3) its corners' properties; None for plain objects
    """

    pieces: list[Piece] = field(default_factory=list)
    group: Int32 | None = None
    index: Int32 | None = None


class Palette:
    """The property resources of one model. Resource ids are handed out by `next_id`."""

    def __init__(self, scene: Scene, ids: Iterator[int]) -> None:
        self.pieces: list[Piece] = []
        self.pictures: dict[str, bytes] = {}
        self._ids = ids
        self._scene = scene
        self._tints = np.array([_tint(one) for one in scene.materials], np.uint8).reshape(-1, 4)
        self._files = self._named_images()
        self._textures: dict[tuple[int, tuple[str, str], str], int] = {}
        self._base: int | None = None
        self._rows: dict[int, int] = {}
        self._declare_base()
        _note_losses([scene.materials[index] for index in scene.used_materials()])

    def paint(self, mesh: Mesh, faces: Int32, material: int | None) -> Painted:
        """The properties of a mesh's faces (m, 3), where `material` is shown by faces that name none."""
        made = Painted()
        shown = self._shown(mesh, material)
        textured = self._textured(mesh, shown)
        if mesh.colors is None and not textured.any():
            if (shown >= 0).any():
                self._put_base(made, shown, np.arange(len(shown)))
            return made
        colors = np.full((len(faces), 3, 4), 255, np.uint8) if mesh.colors is None else mesh.colors[faces]
        colors = self._tinted(colors, shown)
        tinted = (colors != 255).any(axis=(1, 2))
        plain = np.flatnonzero(~textured)
        if mesh.colors is None:
            self._put_base(made, shown, plain)
            plain = plain[:0]
        self._put_textures(made, mesh, faces, shown, textured, tinted, colors)
        if len(plain):
            group, index = self._color_group(made, colors[plain])
            _put(made, len(faces), plain, group, index)
        return made

    # -- what is declared once --

    def _named_images(self) -> dict[int, str]:
        """The part of the package for each image that can be in one."""
        used = {self._scene.materials[index].base_color_image for index in self._scene.used_materials()} - {None}
        files: dict[int, str] = {}
        for image in sorted(one for one in used if one is not None):
            data = self._scene.images[image].data
            extension = next((extension for magic, extension in _MAGIC if data.startswith(magic)), None)
            if extension is None:
                note("texture_format_unsupported", "3MF holds PNG and JPEG textures only; others were left out")
                continue
            files[image] = f"/3D/Textures/texture{len(files) + 1}{extension}"
            self.pictures[files[image][1:]] = data
        return files

    def _declare_base(self) -> None:
        """One group with every material that is shown plainly, and a white one for bare faces beside others."""
        plain, bare = self._plain()
        if not plain and not bare:
            return
        self._base = next(self._ids)
        rows = [f'<basematerials id="{self._base}">\n']
        for row, index in enumerate(plain):
            self._rows[index] = row
            name = escaped(self._scene.materials[index].name) or f"Material {row + 1}"
            red, green, blue, alpha = self._tints[index].tolist()
            rows.append(f'<base name="{name}" displaycolor="{color((red, green, blue, alpha))}"/>\n')
        if bare:
            self._rows[-1] = len(plain)
            rows.append('<base name="Default" displaycolor="#FFFFFF"/>\n')
        self.pieces.append("".join([*rows, "</basematerials>\n"]).encode())

    def _plain(self) -> tuple[list[int], bool]:
        """The materials shown without a picture or colours, and whether faces without any stand beside others."""
        plain: set[int] = set()
        bare = False
        uses: dict[int, list[int]] = {}
        for part in self._scene.parts:
            mesh = self._scene.meshes[part.mesh]
            if mesh.colors is not None or len(mesh.faces) == 0:
                continue
            if part.mesh not in uses:
                own = mesh.face_material
                uses[part.mesh] = [-1] if own is None else (np.flatnonzero(np.bincount(own + 1)) - 1).tolist()
            shown = {part.material if index < 0 else index for index in uses[part.mesh]}
            bare = bare or (None in shown and len(shown) > 1)
            named = {index for index in shown if index is not None}
            if mesh.uv is None and any(self._is_textured(index) for index in named):
                note("texture_without_uv", "a texture on a mesh without texture coordinates cannot be shown; left out")
            plain |= {index for index in named if mesh.uv is None or not self._is_textured(index)}
        return sorted(plain), bare

    def _is_textured(self, material: int) -> bool:
        return self._scene.materials[material].base_color_image in self._files

    def _texture(self, material: Material) -> int:
        """The id of a material's texture."""
        assert material.base_color_image is not None
        key = (material.base_color_image, material.wrap, material.filter)
        if key not in self._textures:
            path = self._files[material.base_color_image]
            kind = _TYPES[path[-4:]]
            self._textures[key] = next(self._ids)
            u, v = (_TILES[way] for way in material.wrap)
            # materials §6: "auto" is the default, and blends
            blend = ' filter="nearest"' if material.filter == "nearest" else ""
            self.pieces.append(
                f'<m:texture2d id="{self._textures[key]}" path="{path}" contenttype="{kind}" '
                f'tilestyleu="{u}" tilestylev="{v}"{blend}/>\n'.encode()
            )
        return self._textures[key]

    # -- one mesh --

    def _shown(self, mesh: Mesh, material: int | None) -> Int32:
        own = mesh.face_material
        fallback = -1 if material is None else material
        if own is None:
            return np.full(len(mesh.faces), fallback, np.int32)
        return np.where(own < 0, np.int32(fallback), own)

    def _textured(self, mesh: Mesh, shown: Int32) -> NDArray[np.bool_]:
        """Which faces show a picture."""
        if mesh.uv is None or not self._files:
            if mesh.uv is not None:
                note("uv_dropped", "texture coordinates without a texture cannot be kept in 3MF")
            return np.zeros(len(shown), np.bool_)
        table = np.array([self._is_textured(index) for index in range(len(self._scene.materials))] + [False])
        textured: NDArray[np.bool_] = table[shown]
        return textured

    def _tinted(self, colors: UInt8, shown: Int32) -> UInt8:
        """Corner colours (m, 3, 4) times the colours of the faces' materials, in linear light."""
        tints = np.concatenate([self._tints, [_WHITE]]).astype(np.uint8)[shown]
        some = np.flatnonzero((tints != 255).any(axis=1))
        if len(some) == 0:
            return colors
        colors = colors.copy()
        colors[some] = multiply_colors(colors[some], tints[some][:, None, :])
        return colors

    def _put_base(self, made: Painted, shown: Int32, faces: NDArray[np.intp]) -> None:
        """Base materials for faces that show no picture and have no colours of their own."""
        if len(faces) == 0:
            return
        table = np.full(len(self._scene.materials) + 1, self._rows.get(-1, 0), np.int32)
        for material, row in self._rows.items():
            table[material] = row
        index = np.repeat(table[shown[faces]][:, None], 3, axis=1)
        assert self._base is not None
        _put(made, len(shown), faces, self._base, index)

    def _put_textures(
        self,
        made: Painted,
        mesh: Mesh,
        faces: Int32,
        shown: Int32,
        textured: NDArray[np.bool_],
        tinted: NDArray[np.bool_],
        colors: UInt8,
    ) -> None:
        """A texture group for each material with a picture, under a colour group where it is tinted."""
        assert mesh.uv is not None or not textured.any()
        for material in np.unique(shown[textured]).tolist():
            mine = np.flatnonzero(textured & (shown == material))
            texture = self._texture(self._scene.materials[material])
            assert mesh.uv is not None
            first, index = weld(mesh.uv[faces[mine]].reshape(-1, 2))
            uv = shortest(mesh.uv[faces[mine]].reshape(-1, 2)[first])
            group, corners = next(self._ids), index.reshape(-1, 3)
            made.pieces += [
                f'<m:texture2dgroup id="{group}" texid="{texture}">\n'.encode(),
                write_rows(['<m:tex2coord u="', '" v="', '"/>\n'], [uv[:, 0], uv[:, 1]]),
                b"</m:texture2dgroup>\n",
            ]
            if tinted[mine].any():
                group, corners = self._multi(made, group, corners, colors[mine])
            _put(made, len(faces), mine, group, corners)

    def _color_group(self, made: Painted, colors: UInt8) -> tuple[int, Int32]:
        """A colour group of corner colours (k, 3, 4): its id, and the corners' indices (k, 3)."""
        rows = np.ascontiguousarray(colors).reshape(-1, 4)
        first, index = weld(rows.view(np.int32))
        group = next(self._ids)
        lines = _color_lines(rows[first])
        made.pieces += [f'<m:colorgroup id="{group}">\n'.encode(), lines, b"</m:colorgroup>\n"]
        return group, index.reshape(-1, 3)

    def _multi(self, made: Painted, texture: int, corners: Int32, colors: UInt8) -> tuple[int, Int32]:
        """A texture group with a colour group multiplied onto it."""
        tint, shades = self._color_group(made, colors)
        pairs = np.stack([corners.ravel(), shades.ravel()], axis=1)
        first, index = weld(pairs)
        group = next(self._ids)
        made.pieces += [
            f'<m:multiproperties id="{group}" pids="{texture} {tint}" blendmethods="multiply">\n'.encode(),
            write_rows(['<m:multi pindices="', " ", '"/>\n'], [pairs[first, 0], pairs[first, 1]]),
            b"</m:multiproperties>\n",
        ]
        return group, index.reshape(-1, 3)


def _put(made: Painted, count: int, faces: NDArray[np.intp], group: int, index: Int32) -> None:
    """Give faces their property group and their corners' indices."""
    if made.group is None or made.index is None:
        made.group, made.index = np.zeros(count, np.int32), np.zeros((count, 3), np.int32)
    made.group[faces] = group
    made.index[faces] = index


def _color_lines(colors: UInt8) -> bytes:
    """`<m:color …/>` for each of (k, 4) colours, without alpha when all are opaque."""
    channels = 3 if bool((colors[:, 3] == 255).all()) else 4
    head, tail = b'<m:color color="#', b'"/>\n'
    digits = np.frombuffer(b"0123456789ABCDEF", np.uint8)
    lines = np.empty((len(colors), len(head) + 2 * channels + len(tail)), np.uint8)
    lines[:, : len(head)] = np.frombuffer(head, np.uint8)
    lines[:, len(head) : -len(tail) : 2] = digits[colors[:, :channels] >> 4]
    lines[:, len(head) + 1 : -len(tail) : 2] = digits[colors[:, :channels] & 15]
    lines[:, -len(tail) :] = np.frombuffer(tail, np.uint8)
    return lines.tobytes()


def _note_losses(materials: list[Material]) -> None:
    """Note what 3MF cannot store of materials: it has their base color and one texture."""
    properties = {
        "emissive colors": [any(material.emissive) for material in materials],
        "normal maps": [material.normal_image is not None for material in materials],
        "occlusion maps": [material.occlusion_image is not None for material in materials],
        "metallic and roughness maps": [material.metallic_roughness_image is not None for material in materials],
    }
    lost = [name for name, has in properties.items() if any(has)]
    if lost:
        count = sum(map(any, zip(*properties.values(), strict=True)))
        owners = f"{count} material" + "s" * (count != 1)
        note("material_properties_dropped", f"3MF keeps base colors alone; {', '.join(lost)} of {owners} were left out")
    if any(material.alpha_mode == "mask" for material in materials):
        note("alpha_cutoff_dropped", "3MF has no alpha cutoff; materials were written without theirs")


def _tint(material: Material) -> tuple[int, int, int, int]:
    red, green, blue, alpha = (round(min(max(value, 0.0), 1.0) * 255) for value in material.base_color)
    return red, green, blue, 255 if material.alpha_mode == "opaque" else alpha
