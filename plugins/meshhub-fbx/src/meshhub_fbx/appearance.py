"""Materials of FBX, as ufbx maps those of all programs to one model."""

from __future__ import annotations

from typing import Any, Literal

import ufbx

from meshhub import Image, Material, Source, note
from meshhub.toolkit.colors import clamp_fraction
from meshhub.toolkit.images import detect_media_type
from meshhub.toolkit.names import single_line
from meshhub_fbx.elements import hold, hold_all

Wrap = Literal["repeat", "clamp"]


class Appearance:
    """Materials and images that were referred to so far.

    Attributes:
        materials: Materials of the scene.
        images: Images of the scene.
        uv_sets: Name of the texture coordinates of each material, or "".
    """

    def __init__(self, source: Source) -> None:
        """Create an empty library; textures that are not embedded are companions of `source`."""
        self.materials: list[Material] = []
        self.images: list[Image] = []
        self.uv_sets: list[str] = []
        self._source = source
        self._index: dict[int, int] = {}
        self._image_index: dict[int, int | None] = {}

    def material(self, material: Any) -> int:
        """Return the index of a material."""
        key = material.element_id
        if key not in self._index:
            self._index[key] = len(self.materials)
            self.uv_sets.append("")
            self.materials.append(self._read(material))
        return self._index[key]

    def _read(self, material: Any) -> Material:
        name, pbr = single_line(material.name), material.pbr
        image = self._image(pbr.base_color)
        color = (1.0, 1.0, 1.0) if image is not None else _color(pbr.base_color, pbr.base_factor, 1.0)
        alpha = _alpha(material)
        if alpha <= 0:
            note("invisible_material", f"material {name[:40]!r} is fully transparent; it was read as opaque")
            alpha = 1.0
        base = self._texture(pbr.base_color)
        metal, rough = self._image(pbr.metalness), self._image(pbr.roughness)
        return Material(
            name,
            (*color, alpha),
            base_color_image=image,
            metallic=_number(pbr.metalness, 0.0),
            roughness=_number(pbr.roughness, 1.0),
            metallic_roughness_image=metal if metal == rough else None,
            normal_image=self._image(pbr.normal_map),
            occlusion_image=self._image(pbr.ambient_occlusion),
            emissive=_color(pbr.emission_color, pbr.emission_factor, 0.0),
            emissive_image=self._image(pbr.emission_color),
            alpha_mode="blend" if alpha < 1 else "opaque",
            double_sided=bool(material.features.double_sided.enabled),
            wrap=("repeat", "repeat") if base is None else (_wrap(base.wrap_u), _wrap(base.wrap_v)),
        )

    def _texture(self, slot: Any) -> Any:
        """Return the file texture of a slot; the lowest of several layers."""
        texture = hold(slot.texture)
        if texture is None or not slot.texture_enabled:
            return None
        files = hold_all(texture.file_textures)
        return files[0] if files else None

    def _image(self, slot: Any) -> int | None:
        """Return the index of the image of a slot; None without one, or with a note if it is missing."""
        texture = self._texture(slot)
        if texture is None:
            return None
        if texture.has_uv_transform:
            note("uv_transform_dropped", "dropped the transform of texture coordinates")
        self.uv_sets[-1] = self.uv_sets[-1] or texture.uv_set
        key = texture.element_id
        if key not in self._image_index:
            self._image_index[key] = self._add_image(texture)
        return self._image_index[key]

    def _add_image(self, texture: Any) -> int | None:
        paths = [path for path in (texture.relative_filename, texture.filename, texture.absolute_filename) if path]
        data = bytes(texture.content or b"")
        for path in paths if not data else ():
            sibling = self._source.sibling(path)
            data = b"" if sibling is None else sibling.read()
            if data:
                break
        name = single_line((paths[0] if paths else texture.name).replace("\\", "/").rpartition("/")[2])
        if not data:
            note("texture_missing", f"the texture {name[:60]!r} was not sent; send the model and its textures together")
            return None
        self.images.append(Image(data, detect_media_type(data), name))
        return len(self.images) - 1


def _color(slot: Any, factor: Any, default: float) -> tuple[float, float, float]:
    """Return the color of a slot times its factor."""
    if not slot.has_value:
        return (default, default, default)
    scale = factor.value_vec4.x if factor.has_value else 1.0
    red, green, blue = (clamp_fraction(value * scale) for value in slot.value_vec4[:3])
    return red, green, blue


def _alpha(material: Any) -> float:
    """Return the opacity of a material; the classic shaders hold a color and a factor of transparency instead."""
    if material.pbr.opacity.has_value:
        return clamp_fraction(material.pbr.opacity.value_vec4.x)
    color, factor = material.fbx.transparency_color, material.fbx.transparency_factor
    mean = sum(color.value_vec4[:3]) / 3 if color.has_value else 1.0
    return clamp_fraction(1.0 - mean * factor.value_vec4.x) if factor.has_value else 1.0


def _number(slot: Any, default: float) -> float:
    return clamp_fraction(slot.value_vec4.x) if slot.has_value else default


def _wrap(mode: Any) -> Wrap:
    return "clamp" if mode == ufbx.WrapMode.CLAMP else "repeat"
