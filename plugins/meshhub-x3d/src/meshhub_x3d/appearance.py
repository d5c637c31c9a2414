"""Materials and textures (ISO/IEC 19775-1, 12 and 18)."""

from __future__ import annotations

import base64
import binascii
import posixpath
from dataclasses import replace
from urllib.parse import unquote, unquote_to_bytes

import numpy as np
from numpy.typing import NDArray

from meshhub import Image, Material, Source, UnreadableFile, note
from meshhub.model.scene import Color
from meshhub.toolkit.colors import clamp_fraction
from meshhub.toolkit.images import detect_media_type
from meshhub.toolkit.names import single_line
from meshhub.toolkit.png import encode_png
from meshhub_x3d.fields import read_flag, read_float, read_integers, read_texts, read_vector
from meshhub_x3d.nodes import Node

_MAX_IMAGE_BYTES = 256 << 20
"""Maximum bytes of an image; larger ones cannot be shown."""

_MATERIALS = ("Material", "TwoSidedMaterial", "PhysicalMaterial", "UnlitMaterial")
_TEXTURES = ("ImageTexture", "PixelTexture", "MovieTexture")
_GRAY = (0.8, 0.8, 0.8)
"""Default of `diffuseColor`."""


class Appearance:
    """Materials and images that were referred to so far.

    Attributes:
        materials: Materials of the scene, each once.
        images: Images of the scene.
    """

    def __init__(self, source: Source) -> None:
        """Create an empty library; textures are companions of `source`, or in the file."""
        self.materials: list[Material] = []
        self.images: list[Image] = []
        self._source = source
        self._material_index: dict[Material, int] = {}
        self._image_index: dict[str | Node, int | None] = {}

    def material(self, appearance: Node | None, *, colored: bool, double_sided: bool) -> int | None:
        """Return the index of the material of a shape; None if the file states none.

        Args:
            appearance: Appearance node.
            colored: Whether the geometry has colors, which replace that of the material.
            double_sided: Whether both sides of the faces are visible.
        """
        node = None if appearance is None else appearance.find("material", *_MATERIALS)
        texture = find_texture(appearance)
        if appearance is None or (node is None and texture is None):
            return None
        material = Material(single_line(appearance.name)) if node is None else self._read_material(node, appearance)
        if texture is not None:
            material = self._with_texture(material, texture)
        if colored:
            material = replace(material, base_color=(1.0, 1.0, 1.0, material.base_color[3]))
        material = replace(material, double_sided=double_sided)
        if material not in self._material_index:
            self._material_index[material] = len(self.materials)
            self.materials.append(material)
        return self._material_index[material]

    def _read_material(self, node: Node, appearance: Node) -> Material:
        name = single_line(node.name or appearance.name)
        alpha = 1 - clamp_fraction(read_float(node, "transparency", 0))
        if alpha <= 0:
            note("invisible_material", f"material {name[:40]!r} is fully transparent; it was read as opaque")
            alpha = 1.0
        is_physical = node.kind == "PhysicalMaterial"
        emissive = _read_color(node, "emissiveColor", (1, 1, 1) if node.kind == "UnlitMaterial" else (0, 0, 0))
        color = _read_color(node, "baseColor", (1, 1, 1)) if is_physical else _read_color(node, "diffuseColor", _GRAY)
        # a black material that emits light is not lit
        is_unlit = node.kind == "UnlitMaterial" or (not any(color) and any(emissive))
        base = node.find("baseTexture" if is_physical else "diffuseTexture", *_TEXTURES)
        material = Material(
            name,
            (*(emissive if is_unlit else color), alpha),
            metallic=clamp_fraction(read_float(node, "metallic", 1)) if is_physical else 0.0,
            roughness=clamp_fraction(read_float(node, "roughness", 1)) if is_physical else 1.0,
            emissive=(0.0, 0.0, 0.0) if is_unlit else emissive,
            unlit=is_unlit,
            alpha_mode="blend" if alpha < 1 else "opaque",
        )
        # XML always names the fields of textures in materials
        return material if base is None or "" in node.fields else self._with_texture(material, base)

    def _with_texture(self, material: Material, texture: Node) -> Material:
        """Return a material with a texture, which replaces its color unless it is gray."""
        image = self._image(texture)
        if image is None:
            return material
        is_gray = texture.kind == "PixelTexture" and _read_size(texture)[2] < 3
        color: Color = material.base_color if is_gray else (1.0, 1.0, 1.0, material.base_color[3])
        wrap_s, wrap_t = (read_flag(texture, name, True) for name in ("repeatS", "repeatT"))
        return replace(
            material,
            base_color=color,
            base_color_image=image,
            wrap=("repeat" if wrap_s else "clamp", "repeat" if wrap_t else "clamp"),
        )

    def _image(self, texture: Node) -> int | None:
        """Return the index of the image of a texture; None if it is missing, with a note."""
        if texture.kind == "PixelTexture":
            if texture not in self._image_index:
                pixels = _read_pixels(texture)
                self._image_index[texture] = None if pixels is None else self._add(encode_png(pixels), texture.name)
            return self._image_index[texture]
        urls = [url for url in read_texts(texture, "url") if url.strip()]
        key = "\n".join(urls)
        if key not in self._image_index:
            self._image_index[key] = self._find_image(urls)
        return self._image_index[key]

    def _find_image(self, urls: list[str]) -> int | None:
        """Add the first image of a list of addresses that is in the file or beside it."""
        for url in urls:
            data = decode_url(url) if url.startswith("data:") else self._find_file(url)
            if data:
                return self._add(data, "" if url.startswith("data:") else posixpath.basename(unquote(url)))
        if not urls:
            return None
        name = posixpath.basename(urls[0].replace("\\", "/"))
        note(
            "texture_missing", f"the texture {single_line(name)[:60]!r} is missing; keep the textures beside the model"
        )
        return None

    def _find_file(self, url: str) -> bytes:
        sibling = self._source.sibling(url)
        return b"" if sibling is None or sibling.size > _MAX_IMAGE_BYTES else sibling.read()

    def _add(self, data: bytes, name: str) -> int:
        self.images.append(Image(data, detect_media_type(data), single_line(name)))
        return len(self.images) - 1


def find_texture(appearance: Node | None) -> Node | None:
    """Return the texture of an appearance; of several layers, the first."""
    if appearance is None:
        return None
    layers = appearance.find("texture", "MultiTexture")
    return (appearance if layers is None else layers).find("texture", *_TEXTURES)


def decode_url(url: str) -> bytes:
    """Return the content of a data URL; empty if it is damaged."""
    head, _, text = url.partition(",")
    try:
        return base64.b64decode(unquote(text)) if head.endswith(";base64") else unquote_to_bytes(text)
    except (binascii.Error, ValueError):
        return b""


def _read_color(node: Node, name: str, default: tuple[float, float, float]) -> tuple[float, float, float]:
    values = np.nan_to_num(read_vector(node, name, default)).tolist()
    red, green, blue = (clamp_fraction(value) for value in values)
    return red, green, blue


def _read_size(texture: Node) -> tuple[int, int, int]:
    """Return width, height and components of a PixelTexture."""
    values = read_integers(texture, "image")[:3].tolist()
    return (values[0], values[1], values[2]) if len(values) == 3 else (0, 0, 0)


def _read_pixels(texture: Node) -> NDArray[np.uint8] | None:
    """Return the picture of a PixelTexture, whose rows go up; None if it is empty. Raises UnreadableFile."""
    width, height, components = _read_size(texture)
    values = read_integers(texture, "image")[3:]
    if width < 1 or height < 1 or not 1 <= components <= 4:
        return None
    if len(values) < width * height:
        raise UnreadableFile(f"a PixelTexture has {len(values)} pixels for {width} × {height}; is the file cut off?")
    rows = values[: width * height].reshape(height, width)[::-1]
    parts = [(rows >> 8 * shift & 255).astype(np.uint8) for shift in reversed(range(components))]
    alpha = parts.pop() if components in (2, 4) else np.full(rows.shape, 255, np.uint8)
    return np.stack([*(parts if len(parts) == 3 else parts * 3), alpha], axis=-1)
