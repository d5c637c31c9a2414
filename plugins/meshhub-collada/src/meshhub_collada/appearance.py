"""Materials of COLLADA: effects of the common profile, and the images of their textures."""

from __future__ import annotations

import posixpath
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from meshhub import Image, Material, note
from meshhub.model.scene import Color
from meshhub.toolkit.images import detect_media_type
from meshhub.toolkit.names import single_line
from meshhub_collada.document import Document, child, numbers

_SHADERS = ("phong", "lambert", "blinn", "constant")
_LUMINANCE = (0.212671, 0.715160, 0.072169)
"""Weights of red, green and blue in the opaque mode RGB_ZERO (COLLADA 1.4.1, chapter 7, "Determining Transparency")."""


class Appearance:
    """Materials and images that were referred to so far.

    Attributes:
        materials: Materials of the scene.
        images: Images of the scene.
    """

    def __init__(self, document: Document) -> None:
        """Create an empty library."""
        self.materials: list[Material] = []
        self.images: list[Image] = []
        self._document = document
        self._material_index: dict[str, int | None] = {}
        self._image_index: dict[str, int | None] = {}

    def material(self, url: str) -> int | None:
        """Return the index of the material at a reference; None if it does not exist, with a note."""
        if url not in self._material_index:
            self._material_index[url] = self._add_material(url)
        return self._material_index[url]

    def _add_material(self, url: str) -> int | None:
        element = self._document.resolve(url)
        effect = None
        if element is not None:
            instance = element.find("instance_effect")
            effect = self._document.resolve(None if instance is None else instance.get("url"))
        if element is None or effect is None:
            note("material_missing", f"a mesh refers to the material {single_line(url)[:40]!r}, which does not exist")
            return None
        name = single_line(element.get("name") or element.get("id") or "")
        self.materials.append(self._read_effect(effect, name))
        return len(self.materials) - 1

    def _read_effect(self, effect: Element, name: str) -> Material:
        profile = effect.find("profile_COMMON")
        technique = child(profile, "technique")
        shader = None if technique is None else next((each for each in technique if each.tag in _SHADERS), None)
        if profile is None or shader is None:
            return Material(name)
        is_unlit = shader.tag == "constant"
        source = shader.find("emission" if is_unlit else "diffuse")
        image = self._texture(effect, profile, source)
        color = (1.0, 1.0, 1.0, 1.0) if image is not None else _read_color(source) or (1.0, 1.0, 1.0, 1.0)
        alpha = _read_alpha(shader)
        if alpha <= 0:
            note("invisible_material", f"material {name[:40]!r} is fully transparent; it was read as opaque")
            alpha = 1.0
        emission = None if is_unlit else shader.find("emission")
        emissive = _read_color(emission) or (0.0, 0.0, 0.0, 1.0)
        return Material(
            name,
            (*color[:3], alpha),
            base_color_image=image,
            emissive=emissive[:3],
            emissive_image=self._texture(effect, profile, emission),
            alpha_mode="blend" if alpha < 1 else "opaque",
            unlit=is_unlit,
            double_sided=(effect.findtext(".//double_sided") or "").strip() == "1",
        )

    def _texture(self, effect: Element, profile: Element, slot: Element | None) -> int | None:
        """Return the index of the image of a color slot; None without one."""
        texture = child(slot, "texture")
        if texture is None:
            return None
        parameters = {each.get("sid", ""): each for owner in (effect, profile) for each in owner.findall("newparam")}
        name = texture.get("texture", "")
        sampler = child(parameters.get(name), "sampler2D")
        # COLLADA 1.5 samples an image, 1.4 a surface of an image; some exporters name the image itself
        instance = child(sampler, "instance_image")
        if instance is not None:
            name = instance.get("url", "")
        elif sampler is not None:
            surface = parameters.get((sampler.findtext("source") or "").strip())
            name = (surface.findtext("surface/init_from") or "" if surface is not None else "").strip()
        return self._image(name)

    def _image(self, reference: str) -> int | None:
        if reference not in self._image_index:
            element = self._document.resolve(reference)
            path = reference
            if element is not None:
                path = (element.findtext("init_from/ref") or element.findtext("init_from") or "").strip()
            self._image_index[reference] = self._add_image(path)
        return self._image_index[reference]

    def _add_image(self, path: str) -> int | None:
        name = single_line(posixpath.basename(unquote(path).replace("\\", "/")))
        data = self._document.find_file(path) if path else None
        if not data:
            note("texture_missing", f"the texture {name[:60]!r} is missing; keep the textures beside the model")
            return None
        self.images.append(Image(data, detect_media_type(data), name))
        return len(self.images) - 1


def _read_color(slot: Element | None) -> Color | None:
    """Return the <color> of a slot, clamped; None without one."""
    color = child(slot, "color")
    if color is None:
        return None
    values = [min(max(value, 0.0), 1.0) for value in numbers(color.text, "f8", "a <color>").tolist()]
    if len(values) < 3 or any(value != value for value in values):
        return None
    return values[0], values[1], values[2], values[3] if len(values) > 3 else 1.0


def _read_alpha(shader: Element) -> float:
    """Return the opacity of an effect (COLLADA 1.4.1, chapter 7, "Determining Transparency")."""
    transparent = shader.find("transparent")
    values = numbers(shader.findtext("transparency/float"), "f8", "a <transparency>").tolist()
    amount = values[0] if values and 0 <= values[0] <= 1 else 1.0
    color = _read_color(transparent)
    if color is None or transparent is None:
        # without a color, exporters mean either the opacity or its inverse; 0 cannot be the opacity
        return amount or 1.0
    if transparent.get("opaque", "A_ONE") == "RGB_ZERO":
        luminance = sum(weight * value for weight, value in zip(_LUMINANCE, color, strict=False))
        return 1.0 - luminance * amount
    return color[3] * amount
