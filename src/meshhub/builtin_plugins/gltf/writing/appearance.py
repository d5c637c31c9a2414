"""The scene's materials and images as glTF's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from meshhub.model.notes import note
from meshhub.model.scene import Material, Scene
from meshhub.toolkit.colors import decode_srgb

_WRAPS = {"repeat": 10497, "clamp": 33071, "mirror": 33648}
_FILTERS = {"linear": (9729, 9987), "nearest": (9728, 9728)}
"""glTF's filters for a texture that is enlarged, and one that is reduced."""
_PLAIN = Material()
"""What faces without a material get: glTF's own default is bare metal, and black in most viewers."""

Object = dict[str, Any]


class Surfaces:
    """Materials, made when they are first asked for."""

    def __init__(self, scene: Scene, store: Callable[[bytes], int]) -> None:
        """`store` puts a picture's bytes into the buffer and returns its view."""
        self.materials: list[Object] = []
        self.textures: list[Object] = []
        self.samplers: list[Object] = []
        self.images: list[Object] = []
        self.extensions: set[str] = set()
        self.required: set[str] = set()
        self._scene = scene
        self._store = store
        self._made: dict[tuple[int | None, bool], int] = {}
        self._stored: dict[int, int | None] = {}
        self._textured: dict[tuple[int, tuple[str, str], str], int | None] = {}

    def index(self, material: int | None, textured: bool) -> int:
        """The index of a material; without textures for a mesh that has no texture coordinates."""
        chosen = _PLAIN if material is None else self._scene.materials[material]
        key = (material, textured and bool(chosen.images()))
        if key not in self._made:
            self._made[key] = len(self.materials)
            self.materials.append({})
            self.materials[self._made[key]] = self._material(chosen, key[1])
        return self._made[key]

    def _material(self, material: Material, textured: bool) -> Object:
        def texture(image: int | None) -> Object | None:
            index = self._texture(image, material) if textured and image is not None else None
            return None if index is None else {"index": index}

        made: Object = {"name": material.name} if material.name else {}
        metal: Object = {}
        color = [*_linear(material.base_color[:3]), _clear(material.base_color[3])]
        if color != [1.0, 1.0, 1.0, 1.0]:
            metal["baseColorFactor"] = color
        metal["metallicFactor"] = _clear(material.metallic)
        metal["roughnessFactor"] = _clear(material.roughness)
        emissive = _linear(material.emissive)
        members = {
            "normalTexture": texture(material.normal_image),
            "occlusionTexture": texture(material.occlusion_image),
            "emissiveTexture": texture(material.emissive_image),
        }
        for key, image in (
            ("baseColorTexture", material.base_color_image),
            ("metallicRoughnessTexture", material.metallic_roughness_image),
        ):
            found = texture(image)
            if found is not None:
                metal[key] = found
        made["pbrMetallicRoughness"] = metal
        made.update({key: value for key, value in members.items() if value is not None})
        if any(emissive):
            made["emissiveFactor"] = emissive
        if material.alpha_mode != "opaque":
            made["alphaMode"] = material.alpha_mode.upper()
        if material.alpha_mode == "mask" and material.alpha_cutoff != 0.5:
            made["alphaCutoff"] = material.alpha_cutoff
        if material.double_sided:
            made["doubleSided"] = True
        if material.unlit:
            made["extensions"] = {"KHR_materials_unlit": {}}
            self.extensions.add("KHR_materials_unlit")
        return made

    def _texture(self, image: int, material: Material) -> int | None:
        key = (image, material.wrap, material.filter)
        if key not in self._textured:
            self._textured[key] = self._made_texture(image, material)
        return self._textured[key]

    def _made_texture(self, image: int, material: Material) -> int | None:
        source = self._image(image)
        if source is None:
            return None
        enlarged, reduced = _FILTERS[material.filter]
        across, up = (_WRAPS[way] for way in material.wrap)
        sampler = {"magFilter": enlarged, "minFilter": reduced, "wrapS": across, "wrapT": up}
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

    def _image(self, index: int) -> int | None:
        if index not in self._stored:
            image = self._scene.images[index]
            if image.media_type not in ("image/png", "image/jpeg", "image/webp"):
                note(
                    "texture_dropped",
                    f"glTF takes PNG, JPEG and WebP pictures; {image.name[:60] or 'a texture'!r} is "
                    f"{image.media_type[:40]} and was left out",
                )
                self._stored[index] = None
            else:
                made: Object = {"name": image.name} if image.name else {}
                made |= {"bufferView": self._store(image.data), "mimeType": image.media_type}
                self._stored[index] = len(self.images)
                self.images.append(made)
        return self._stored[index]


def _linear(color: tuple[float, ...]) -> list[float]:
    return [_clear(value) for value in decode_srgb(np.array(color)).tolist()]


def _clear(value: float) -> float:
    """Within 0 … 1, and without the digits that only the conversion made."""
    return min(max(round(value, 9), 0.0), 1.0)
