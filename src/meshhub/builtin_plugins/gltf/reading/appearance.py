"""Materials, textures and images of a document as the scene's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from meshhub.builtin_plugins.gltf.reading.buffers import Buffers, media_type
from meshhub.builtin_plugins.gltf.reading.document import Item
from meshhub.builtin_plugins.gltf.reading.findings import Findings
from meshhub.errors import UnreadableFile
from meshhub.model.scene import Image, Material
from meshhub.toolkit.colors import encode_srgb

Affine = tuple[float, float, float, float, float, float]
"""u' = a·u + b·v + c, v' = d·u + e·v + f."""

Wrap = Literal["repeat", "clamp", "mirror"]
_WRAPS: dict[int, Wrap] = {10497: "repeat", 33071: "clamp", 33648: "mirror"}
Filter = Literal["linear", "nearest"]
_FILTERS: dict[int, Filter] = {9728: "nearest", 9729: "linear"}
_MODES: dict[str, Literal["opaque", "mask", "blend"]] = {"OPAQUE": "opaque", "MASK": "mask", "BLEND": "blend"}


@dataclass(frozen=True)
class Mapping:
    """Which texture coordinates a surface uses, and how they are moved."""

    set: int = 0
    transform: Affine | None = None


@dataclass(frozen=True)
class Surface:
    """A material's index in the scene, -1 for none, and its mapping."""

    material: int = -1
    mapping: Mapping = Mapping()


@dataclass(frozen=True)
class _Texture:
    image: int
    mapping: Mapping
    wrap: tuple[Wrap, Wrap]
    filter: Filter


class Materials:
    """Turns materials into the scene's when they are first asked for."""

    def __init__(self, document: Item, buffers: Buffers, findings: Findings) -> None:
        """Reads nothing yet."""
        self.materials: list[Material] = []
        self.images: list[Image] = []
        self._document = document
        self._buffers = buffers
        self._findings = findings
        self._surfaces: dict[int, Surface] = {}
        self._loaded: dict[int, int | None] = {}
        self._by_content: dict[int, int] = {}

    def surface(self, index: int | None, named_by: str) -> Surface:
        """The surface of a primitive. What is wrong with it is told, and never stops the geometry."""
        if index is None:
            return Surface()
        if index not in self._surfaces:
            try:
                self._surfaces[index] = self._surface(self._document.entry("materials", index, named_by))
            except UnreadableFile as error:
                self._findings.add("material_ignored", error.message)
                self._surfaces[index] = Surface()
        return self._surfaces[index]

    def _surface(self, item: Item) -> Surface:
        metal = item.item("pbrMetallicRoughness") or Item({}, item.place("pbrMetallicRoughness"))
        glossy = item.extension("KHR_materials_pbrSpecularGlossiness")
        if glossy is not None:
            color = glossy.numbers("diffuseFactor", 4, (1.0, 1.0, 1.0, 1.0))
            base = self._texture(glossy, "diffuseTexture")
            metallic, roughness, rough = 0.0, 1.0 - glossy.number("glossinessFactor", 1.0), None
        else:
            color = metal.numbers("baseColorFactor", 4, (1.0, 1.0, 1.0, 1.0))
            base = self._texture(metal, "baseColorTexture")
            metallic, roughness = metal.number("metallicFactor", 1.0), metal.number("roughnessFactor", 1.0)
            rough = self._texture(metal, "metallicRoughnessTexture")
        normal = self._texture(item, "normalTexture")
        occlusion = self._texture(item, "occlusionTexture")
        glow = self._texture(item, "emissiveTexture")
        slots = (base, glow, rough, normal, occlusion)
        leader = next((slot for slot in slots if slot is not None), None)
        kept = [self._following(slot, leader, item) for slot in slots]
        emissive = np.array(item.numbers("emissiveFactor", 3, (0.0, 0.0, 0.0)))
        strength = item.extension("KHR_materials_emissive_strength")
        if strength is not None:
            emissive *= strength.number("emissiveStrength", 1.0)
        red, green, blue = (_clear(value) for value in encode_srgb(np.array(color[:3])).tolist())
        red_glow, green_glow, blue_glow = (_clear(value) for value in encode_srgb(emissive).tolist())
        material = Material(
            name=item.name(),
            base_color=(red, green, blue, _unit(color[3])),
            base_color_image=kept[0],
            metallic=_unit(metallic),
            roughness=_unit(roughness),
            metallic_roughness_image=kept[2],
            normal_image=kept[3],
            occlusion_image=kept[4],
            emissive=(red_glow, green_glow, blue_glow),
            emissive_image=kept[1],
            alpha_mode=_MODES.get(item.name("alphaMode"), "opaque"),
            alpha_cutoff=_unit(item.number("alphaCutoff", 0.5)),
            double_sided=item.flag("doubleSided"),
            unlit=item.extension("KHR_materials_unlit") is not None,
            wrap=leader.wrap if leader is not None else ("repeat", "repeat"),
            filter=leader.filter if leader is not None else "linear",
        )
        mapping = leader.mapping if leader is not None else Mapping()
        if material == Material():
            # what a writer without materials puts there, ours too: no material at all
            return Surface()
        self.materials.append(material)
        return Surface(len(self.materials) - 1, mapping)

    def _following(self, slot: _Texture | None, leader: _Texture | None, item: Item) -> int | None:
        """The image of a texture, if it is mapped like the first one: a mesh of the scene has one mapping."""
        if slot is None or leader is None:
            return None
        if slot.mapping != leader.mapping:
            self._findings.add(
                "texture_dropped", f"{item.where} has textures that are mapped differently; the first one was kept"
            )
            return None
        return slot.image

    def _texture(self, owner: Item, key: str) -> _Texture | None:
        """A texture that is there and can be shown; None otherwise, with a remark."""
        try:
            info = owner.item(key)
            if info is None:
                return None
            texture = self._document.entry("textures", info.integer("index"), info.place("index"))
            image = self._image(texture)
            if image is None:
                return None
            return _Texture(image, self._mapping(info), *self._sampler(texture))
        except UnreadableFile as error:
            self._findings.add("texture_dropped", error.message)
            return None

    def _mapping(self, info: Item) -> Mapping:
        """The coordinates a texture uses (KHR_texture_transform; rotation turns the coordinates as they are seen)."""
        chosen = info.integer("texCoord", 0)
        try:
            transform = info.extension("KHR_texture_transform")
        except UnreadableFile as error:
            self._findings.add("texture_transform_ignored", error.message)
            transform = None
        if transform is None:
            return Mapping(chosen)
        chosen = transform.integer("texCoord", chosen)
        (du, dv), (su, sv) = transform.numbers("offset", 2, (0.0, 0.0)), transform.numbers("scale", 2, (1.0, 1.0))
        angle = transform.number("rotation", 0.0)
        c, s = float(np.cos(angle)), float(np.sin(angle))
        affine = (c * su, s * sv, du, -s * su, c * sv, dv)
        return Mapping(chosen, None if affine == (1.0, 0.0, 0.0, 0.0, 1.0, 0.0) else affine)

    def _sampler(self, texture: Item) -> tuple[tuple[Wrap, Wrap], Filter]:
        """How a texture continues, and how its pixels are blended where it is enlarged."""
        index = texture.optional("sampler")
        if index is None:
            return ("repeat", "repeat"), "linear"
        sampler = self._document.entry("samplers", index, texture.place("sampler"))
        across, up = (_WRAPS.get(sampler.integer(key, 10497), "repeat") for key in ("wrapS", "wrapT"))
        return (across, up), _FILTERS.get(sampler.integer("magFilter", 9729), "linear")

    def _image(self, texture: Item) -> int | None:
        webp = texture.extension("EXT_texture_webp")
        index = webp.optional("source") if webp is not None else None
        if index is None:
            index = texture.optional("source")
        if index is None:
            self._findings.add("texture_dropped", f"{texture.where} has no picture in a format that can be read")
            return None
        if index not in self._loaded:
            self._loaded[index] = self._load(self._document.entry("images", index, texture.place("source")))
        return self._loaded[index]

    def _load(self, item: Item) -> int | None:
        uri = item.data.get("uri")
        if uri is not None:
            content = self._buffers.content(item.text("uri"), item.place("uri"))
            if content is None:
                self._findings.add(
                    "texture_missing",
                    f"the texture {item.text('uri')[:120]!r} did not come with the model and was left out; "
                    "send them together in a ZIP archive",
                )
                return None
            stated, data = item.name("mimeType") or media_type(item.text("uri")), content
        else:
            view, _ = self._buffers.view(item.integer("bufferView"), item.place("bufferView"))
            self._buffers.spend(len(view))
            stated, data = item.name("mimeType"), bytes(view)
        kind = _sniffed(data)
        if not kind:
            self._findings.add(
                "texture_dropped",
                f"{item.where} ({stated[:40] or 'of unknown type'}) is no PNG, JPEG or WebP picture and was left out",
            )
            return None
        # one file may be named by thousands of images; the scene's own keeps these bytes, and their id with them
        if id(data) not in self._by_content:
            self._by_content[id(data)] = len(self.images)
            self.images.append(Image(data, kind, item.name()))
        return self._by_content[id(data)]


def _sniffed(data: bytes) -> str:
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return ""


def _unit(value: float) -> float:
    return min(max(value, 0.0), 1.0)


def _clear(value: float) -> float:
    """Without the digits that only the conversion made."""
    return _unit(round(value, 9))
