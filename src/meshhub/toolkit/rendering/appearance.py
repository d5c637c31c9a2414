"""Colors of the visible triangles: materials, vertex colors, textures, or one color for each part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshhub.model.installing import describe_install
from meshhub.model.notes import note
from meshhub.model.scene import Material, Mesh, Scene, UInt8
from meshhub.toolkit.colors import multiply_colors
from meshhub.toolkit.images import decode_image
from meshhub.toolkit.rendering.camera import Float32
from meshhub.toolkit.rendering.triangles import PlacedTriangles

UNCOLORED = np.array([178, 187, 198, 255], np.uint8)
"""Color of faces without a color: a light, cool gray."""

DARKEST = 56.0
"""Largest of red, green and blue that a lit material has at least, of 255: of a darker one, only the outline shows."""

PART_PALETTE = np.array(
    [
        (86, 142, 196), (231, 149, 76), (104, 173, 110), (199, 98, 96), (146, 122, 186), (158, 128, 103),
        (220, 143, 188), (137, 141, 145), (189, 183, 82), (92, 180, 190),
    ],
    np.uint8,
)  # fmt: skip
"""Colors of parts; repeated after the last one."""


@dataclass(eq=False)
class Appearance:
    """Colors of some faces.

    corner_color: (v, 3, 4) sRGB of the corners
    is_uniform:   (v,) whether the corners of a face have one color
    is_unlit:     (v,) whether a face is shown without shading
    texture:      (v,) index of the image, -1 for none
    uv:           (v, 3, 2) texture coordinates of the corners; zero without a texture
    textures:     the images, by their index in the scene
    """

    corner_color: UInt8
    is_uniform: NDArray[np.bool_]
    is_unlit: NDArray[np.bool_]
    texture: NDArray[np.int32]
    uv: Float32
    textures: dict[int, Texture]


@dataclass(frozen=True, eq=False)
class Texture:
    """Decoded image, and its continuation outside 0 to 1."""

    pixels: UInt8
    wrap: tuple[str, str]


def part_color(number: int) -> UInt8:
    """Return the (4,) color of a part in the mode "part"."""
    return np.append(PART_PALETTE[number % len(PART_PALETTE)], np.uint8(255))


def collect_appearance(scene: Scene, triangles: PlacedTriangles, seen: NDArray[np.intp], color_by: str) -> Appearance:
    """Return the colors of faces.

    Args:
        scene: The scene.
        triangles: Its triangles.
        seen: (v,) faces, ascending.
        color_by: "part", "none", or another mode, which takes the colors of the scene.
    """
    count = len(seen)
    appearance = Appearance(
        np.broadcast_to(UNCOLORED, (count, 3, 4)).copy(),
        np.ones(count, np.bool_),
        np.zeros(count, np.bool_),
        np.full(count, -1, np.int32),
        np.zeros((count, 3, 2), np.float32),
        {},
    )
    if color_by == "none":
        return appearance
    borders = np.searchsorted(seen, triangles.first_face)
    textures = _Textures(scene)
    for number in np.flatnonzero(np.diff(borders)).tolist():
        rows = slice(borders[number], borders[number + 1])
        if color_by == "part":
            appearance.corner_color[rows] = part_color(number)
            continue
        part = scene.parts[number]
        local = seen[rows] - triangles.first_face[number]
        _paint_part(appearance, rows, scene, scene.meshes[part.mesh], local, part.material, textures)
        if triangles.is_flipped[number]:
            appearance.corner_color[rows] = appearance.corner_color[rows][:, ::-1]
            appearance.uv[rows] = appearance.uv[rows][:, ::-1]
    appearance.textures = textures.decoded
    return appearance


class _Textures:
    """Decoded textures of a scene; each image is decoded once."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._failed: set[int] = set()
        self.decoded: dict[int, Texture] = {}

    def find(self, material: Material) -> int:
        """Return the index of a material's image, -1 if the material has none or it cannot be decoded."""
        number = material.base_color_image
        if number is None or number in self._failed:
            return -1
        if number not in self.decoded:
            pixels = decode_image(self._scene.images[number].data)
            if pixels is None:
                self._failed.add(number)
                note(
                    "texture_not_shown",
                    "a texture cannot be decoded and is not shown; "
                    f"`{describe_install('meshhub[textures]')}` adds a decoder",
                )
                return -1
            self.decoded[number] = Texture(pixels, material.wrap)
        return number


def _paint_part(
    appearance: Appearance,
    rows: slice,
    scene: Scene,
    mesh: Mesh,
    local: NDArray[np.intp],
    part_material: int | None,
    textures: _Textures,
) -> None:
    """Set the colors of the faces `local` of one part in the rows of the appearance."""
    material = np.full(len(local), -1 if part_material is None else part_material, np.int32)
    if mesh.face_material is not None:
        own = mesh.face_material[local]
        material = np.where(own < 0, material, own)
    corner_color, texture = appearance.corner_color[rows], appearance.texture[rows]
    corners = mesh.faces[local]
    for number in np.flatnonzero(np.bincount(material[material >= 0])).tolist():
        chosen = material == number
        description = scene.materials[number]
        color = np.rint(np.array(description.base_color) * 255)
        if not description.unlit and description.base_color_image is None and mesh.colors is None:
            color[:3] += max(0.0, DARKEST - color[:3].max())
        corner_color[chosen] = color.astype(np.uint8)
        appearance.is_unlit[rows][chosen] = description.unlit
        if mesh.uv is not None:
            texture[chosen] = textures.find(description)
    if mesh.colors is not None:
        colors = mesh.colors[corners]
        has_material = material >= 0
        corner_color[has_material] = multiply_colors(corner_color[has_material], colors[has_material])
        corner_color[~has_material] = colors[~has_material]
        appearance.is_uniform[rows] = (colors == colors[:, :1]).all(axis=(1, 2))
    if mesh.uv is not None:
        appearance.uv[rows] = mesh.uv[corners]
