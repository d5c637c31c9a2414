"""Write materials, images and vertex colors."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.errors import quote
from meshhub.model.notes import note
from meshhub.model.scene import Material, Scene, UInt8
from meshhub.toolkit.colors import decode_srgb
from meshhub.toolkit.images import convert_to_png

_WRAPS = {"repeat": 10497, "clamp": 33071, "mirror": 33648}
_FILTERS = {"linear": (9729, 9987), "nearest": (9728, 9728)}
"""glTF codes of the magnification and the minification filter."""
_MEDIA_TYPES = ("image/png", "image/jpeg", "image/webp")
_DEFAULT_MATERIAL = Material()
"""Material of faces without one, because the default of glTF is bare metal, which most viewers show as black."""
_TRANSLUCENT_MATERIAL = Material(alpha_mode="blend")
"""The same with transparent vertex colors, whose alpha the default of glTF ignores (glTF 2.0 §3.9.4)."""

Object = dict[str, Any]


class MaterialWriter:
    """Writes materials when they are first used, and collects them with their textures."""

    def __init__(self, scene: Scene, store_image: Callable[[bytes], int]) -> None:
        """Start without materials.

        Args:
            scene: Scene whose materials are written.
            store_image: Adds the bytes of an image to the buffer and returns the index of its view.
        """
        self.materials: list[Object] = []
        self.textures: list[Object] = []
        self.samplers: list[Object] = []
        self.images: list[Object] = []
        self.extensions: set[str] = set()
        self.required: set[str] = set()
        self._scene = scene
        self._store_image = store_image
        self._material_cache: dict[tuple[int | None, bool, bool], int] = {}
        self._image_cache: dict[int, int | None] = {}
        self._texture_cache: dict[tuple[int, tuple[str, str], str], int | None] = {}

    def write(self, material: int | None, *, has_uv: bool, is_translucent: bool) -> int:
        """Write a material, and return its index.

        Args:
            material: Index in the scene, or None.
            has_uv: Whether the mesh has texture coordinates; without them, textures are left out.
            is_translucent: Whether the mesh has transparent vertex colors.
        """
        plain = _TRANSLUCENT_MATERIAL if is_translucent else _DEFAULT_MATERIAL
        source = plain if material is None else self._scene.materials[material]
        key = (material, has_uv and bool(source.images()), is_translucent and material is None)
        if key not in self._material_cache:
            self._material_cache[key] = len(self.materials)
            self.materials.append(self._convert(source, has_textures=key[1]))
        return self._material_cache[key]

    def _convert(self, material: Material, *, has_textures: bool) -> Object:
        def textures(images: dict[str, int | None]) -> Object:
            indices = {
                key: self._write_texture(image, material)
                for key, image in images.items()
                if has_textures and image is not None
            }
            return {key: {"index": index} for key, index in indices.items() if index is not None}

        beside_metal = textures(
            {
                "normalTexture": material.normal_image,
                "occlusionTexture": material.occlusion_image,
                "emissiveTexture": material.emissive_image,
            }
        )
        metal: Object = {}
        color = [*_decode_color(material.base_color[:3]), _clip(material.base_color[3])]
        if color != [1.0, 1.0, 1.0, 1.0]:
            metal["baseColorFactor"] = color
        metal["metallicFactor"] = _clip(material.metallic)
        metal["roughnessFactor"] = _clip(material.roughness)
        metal |= textures(
            {
                "baseColorTexture": material.base_color_image,
                "metallicRoughnessTexture": material.metallic_roughness_image,
            }
        )
        result: Object = {"name": material.name} if material.name else {}
        result["pbrMetallicRoughness"] = metal
        result |= beside_metal
        emissive = _decode_color(material.emissive)
        if any(emissive):
            result["emissiveFactor"] = emissive
        if material.alpha_mode != "opaque":
            result["alphaMode"] = material.alpha_mode.upper()
        if material.alpha_mode == "mask" and material.alpha_cutoff != 0.5:
            result["alphaCutoff"] = material.alpha_cutoff
        if material.double_sided:
            result["doubleSided"] = True
        if material.unlit:
            result["extensions"] = {"KHR_materials_unlit": {}}
            self.extensions.add("KHR_materials_unlit")
        return result

    def _write_texture(self, image: int, material: Material) -> int | None:
        """Write a texture, and return its index; None if glTF does not support the format of the image."""
        key = (image, material.wrap, material.filter)
        if key not in self._texture_cache:
            source = self._write_image(image)
            self._texture_cache[key] = None if source is None else self._add_texture(source, material)
        return self._texture_cache[key]

    def _add_texture(self, source: int, material: Material) -> int:
        magnification, minification = _FILTERS[material.filter]
        wrap_s, wrap_t = (_WRAPS[wrap] for wrap in material.wrap)
        sampler = {"magFilter": magnification, "minFilter": minification, "wrapS": wrap_s, "wrapT": wrap_t}
        if sampler not in self.samplers:
            self.samplers.append(sampler)
        texture: Object = {"sampler": self.samplers.index(sampler)}
        if self.images[source]["mimeType"] == "image/webp":
            texture["extensions"] = {"EXT_texture_webp": {"source": source}}
            self.extensions.add("EXT_texture_webp")
            self.required.add("EXT_texture_webp")
        else:
            texture["source"] = source
        self.textures.append(texture)
        return len(self.textures) - 1

    def _write_image(self, index: int) -> int | None:
        if index not in self._image_cache:
            image = self._scene.images[index]
            data, media_type = image.data, image.media_type
            if media_type not in _MEDIA_TYPES:
                data, media_type = convert_to_png(data) or b"", "image/png"
            if not data:
                name = quote(image.name) if image.name else "a texture"
                note(
                    "texture_dropped",
                    f"{name} ({quote(image.media_type)}) could not be converted to PNG for glTF and was left out",
                )
                self._image_cache[index] = None
            else:
                entry: Object = {"name": image.name} if image.name else {}
                entry |= {"bufferView": self._store_image(data), "mimeType": media_type}
                self._image_cache[index] = len(self.images)
                self.images.append(entry)
        return self._image_cache[index]


def _decode_color(color: tuple[float, ...]) -> list[float]:
    return [_clip(value) for value in decode_srgb(np.array(color)).tolist()]


def _clip(value: float) -> float:
    """Clip to 0 … 1, and round to nine digits, which removes the noise of the conversion."""
    return min(max(round(value, 9), 0.0), 1.0)


def decode_vertex_colors(colors: UInt8) -> NDArray[np.uint16]:
    """Return (n, 4) sRGB colors as linear 16-bit colors, from which every sRGB byte can be restored."""
    linear = np.empty((len(colors), 4), np.uint16)
    linear[:, :3] = _linear_table()[colors[:, :3]]
    linear[:, 3] = colors[:, 3].astype(np.uint16) * 257
    return linear


@cache
def _linear_table() -> NDArray[np.uint16]:
    """Return the linear 16-bit value of every sRGB byte."""
    return np.rint(decode_srgb(np.arange(256) / 255) * 65_535).astype(np.uint16)
