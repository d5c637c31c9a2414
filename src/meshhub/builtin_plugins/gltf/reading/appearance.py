"""Read materials, textures, images and vertex colors of a document."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.gltf.reading.accessors import AttributeRows
from meshhub.builtin_plugins.gltf.reading.buffers import MAX_URI_CHARACTERS_COUNT, Buffers, parse_media_type
from meshhub.builtin_plugins.gltf.reading.json_object import JsonObject
from meshhub.errors import UnreadableFile, quote
from meshhub.model.notes import note
from meshhub.model.scene import Image, Material, UInt8
from meshhub.toolkit.colors import encode_srgb
from meshhub.toolkit.images import detect_media_type

Affine = tuple[float, float, float, float, float, float]
"""(a, b, c, d, e, f): u' = a·u + b·v + c, v' = d·u + e·v + f."""
_IDENTITY: Affine = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)

Wrap = Literal["repeat", "clamp", "mirror"]
_WRAPS: dict[int, Wrap] = {10497: "repeat", 33071: "clamp", 33648: "mirror"}
Filter = Literal["linear", "nearest"]
_FILTERS: dict[int, Filter] = {9728: "nearest", 9729: "linear"}
_ALPHA_MODES: dict[str, Literal["opaque", "mask", "blend"]] = {"OPAQUE": "opaque", "MASK": "mask", "BLEND": "blend"}

_MEDIA_TYPES = ("image/png", "image/jpeg", "image/webp", "image/bmp", "image/gif", "image/tiff")
"""Media types that are read; glTF allows the first three, and some exporters embed the others."""


@dataclass(frozen=True)
class UvMapping:
    """Set of texture coordinates that a material uses, and their transform."""

    set: int = 0
    transform: Affine | None = None


@dataclass(frozen=True)
class MappedMaterial:
    """Index of a material in the scene, -1 for none, its mapping, and whether alpha is ignored."""

    material: int = -1
    mapping: UvMapping = UvMapping()
    is_opaque: bool = True


@dataclass(frozen=True)
class _Texture:
    image: int
    mapping: UvMapping
    wrap: tuple[Wrap, Wrap] = ("repeat", "repeat")
    filter: Filter = "linear"


@dataclass(frozen=True)
class _Shading:
    """Parameters of either workflow, metallic-roughness or specular-glossiness."""

    color: tuple[float, ...]
    color_texture: _Texture | None
    metallic: float
    roughness: float
    metallic_roughness_texture: _Texture | None


class MaterialReader:
    """Reads materials when they are first used, and collects them with their images."""

    def __init__(self, document: JsonObject, buffers: Buffers) -> None:
        self.materials: list[Material] = []
        self.images: list[Image] = []
        self._document = document
        self._buffers = buffers
        self._cache: dict[int, MappedMaterial] = {}
        self._image_cache: dict[int, int | None] = {}
        self._image_by_content: dict[int, int] = {}

    def read(self, index: int | None, referrer: str) -> MappedMaterial:
        """Read the material of a primitive; an invalid one causes a note, and the geometry is read without it.

        Args:
            index: Position in `materials`, or None.
            referrer: JSON path of the value that holds the index.
        """
        if index is None:
            return MappedMaterial()
        if index not in self._cache:
            try:
                self._cache[index] = self._read(self._document.entry("materials", index, referrer))
            except UnreadableFile as error:
                note("material_ignored", error.message)
                self._cache[index] = MappedMaterial()
        return self._cache[index]

    def _read(self, source: JsonObject) -> MappedMaterial:
        shading = self._read_shading(source)
        normal = self._read_texture(source, "normalTexture")
        occlusion = self._read_texture(source, "occlusionTexture")
        emission = self._read_texture(source, "emissiveTexture")
        textures = (shading.color_texture, emission, shading.metallic_roughness_texture, normal, occlusion)
        first = next((texture for texture in textures if texture is not None), None)
        images = [self._image_mapped_like(texture, first, source) for texture in textures]
        emissive = np.array(source.numbers("emissiveFactor", 3, (0.0, 0.0, 0.0)))
        strength = source.extension("KHR_materials_emissive_strength")
        if strength is not None:
            emissive *= strength.number("emissiveStrength", 1.0)
        red, green, blue = _encode_color(np.array(shading.color[:3]))
        alpha_mode = _read_alpha_mode(source)
        is_opaque = alpha_mode == "opaque"
        material = Material(
            name=source.name(),
            # other formats have no alpha mode that ignores alpha
            base_color=(red, green, blue, 1.0 if is_opaque else _clip(shading.color[3])),
            base_color_image=images[0],
            metallic=_clip(shading.metallic),
            roughness=_clip(shading.roughness),
            metallic_roughness_image=images[2],
            normal_image=images[3],
            occlusion_image=images[4],
            emissive=_encode_color(emissive),
            emissive_image=images[1],
            alpha_mode=alpha_mode,
            alpha_cutoff=_clip(source.number("alphaCutoff", 0.5)),
            double_sided=source.flag("doubleSided"),
            unlit=source.extension("KHR_materials_unlit") is not None,
            wrap=first.wrap if first is not None else ("repeat", "repeat"),
            filter=first.filter if first is not None else "linear",
        )
        if material == Material():
            # writers without materials, including ours, write this default, so it carries no information
            return MappedMaterial()
        self.materials.append(material)
        return MappedMaterial(len(self.materials) - 1, first.mapping if first is not None else UvMapping(), is_opaque)

    def _read_shading(self, source: JsonObject) -> _Shading:
        metal = source.child_or_empty("pbrMetallicRoughness")
        glossy = source.extension("KHR_materials_pbrSpecularGlossiness")
        if glossy is not None:
            return _Shading(
                color=glossy.numbers("diffuseFactor", 4, (1.0, 1.0, 1.0, 1.0)),
                color_texture=self._read_texture(glossy, "diffuseTexture"),
                metallic=0.0,
                roughness=1.0 - glossy.number("glossinessFactor", 1.0),
                metallic_roughness_texture=None,
            )
        return _Shading(
            color=metal.numbers("baseColorFactor", 4, (1.0, 1.0, 1.0, 1.0)),
            color_texture=self._read_texture(metal, "baseColorTexture"),
            metallic=metal.number("metallicFactor", 1.0),
            roughness=metal.number("roughnessFactor", 1.0),
            metallic_roughness_texture=self._read_texture(metal, "metallicRoughnessTexture"),
        )

    def _image_mapped_like(self, texture: _Texture | None, first: _Texture | None, source: JsonObject) -> int | None:
        """Return the image of a texture if its mapping is that of the first; a mesh of the scene has one mapping."""
        if texture is None or first is None:
            return None
        if texture.mapping != first.mapping:
            note("texture_dropped", f"{source.path} has textures with different mappings; only the first one was kept")
            return None
        return texture.image

    def _read_texture(self, owner: JsonObject, key: str) -> _Texture | None:
        """Read a texture; None without a texture, or with a note if it cannot be read."""
        try:
            info = owner.child(key)
            if info is None:
                return None
            texture = self._document.entry("textures", info.integer("index"), info.path_of("index"))
            image = self._read_image(texture)
            if image is None:
                return None
            mapping = self._read_mapping(info)
            index = texture.integer_or_none("sampler")
            if index is None:
                return _Texture(image, mapping)
            sampler = self._document.entry("samplers", index, texture.path_of("sampler"))
            wrap_s, wrap_t = (_WRAPS.get(sampler.integer(axis, 10497), "repeat") for axis in ("wrapS", "wrapT"))
            magnification = _FILTERS.get(sampler.integer("magFilter", 9729), "linear")
            return _Texture(image, mapping, (wrap_s, wrap_t), magnification)
        except UnreadableFile as error:
            note("texture_dropped", error.message)
            return None

    def _read_mapping(self, info: JsonObject) -> UvMapping:
        """Read the set of coordinates of a texture, and its KHR_texture_transform."""
        uv_set = info.integer("texCoord", 0)
        try:
            transform = info.extension("KHR_texture_transform")
        except UnreadableFile as error:
            note("texture_transform_ignored", error.message)
            transform = None
        if transform is None:
            return UvMapping(uv_set)
        uv_set = transform.integer("texCoord", uv_set)
        (du, dv), (su, sv) = transform.numbers("offset", 2, (0.0, 0.0)), transform.numbers("scale", 2, (1.0, 1.0))
        angle = transform.number("rotation", 0.0)
        c, s = float(np.cos(angle)), float(np.sin(angle))
        affine = (c * su, s * sv, du, -s * su, c * sv, dv)
        return UvMapping(uv_set, None if affine == _IDENTITY else affine)

    def _read_image(self, texture: JsonObject) -> int | None:
        webp = texture.extension("EXT_texture_webp")
        index = webp.integer_or_none("source") if webp is not None else None
        if index is None:
            index = texture.integer_or_none("source")
        if index is None:
            basis = texture.extension("KHR_texture_basisu") is not None
            reason = "only a KTX2 image, which is not read; export PNG or JPEG" if basis else "no image that is read"
            note("texture_dropped", f"{texture.path} has {reason}")
            return None
        if index not in self._image_cache:
            self._image_cache[index] = self._load_image(
                self._document.entry("images", index, texture.path_of("source"))
            )
        return self._image_cache[index]

    def _load_image(self, source: JsonObject) -> int | None:
        if source.data.get("uri") is not None:
            uri = source.text("uri")
            content = self._buffers.load_uri(uri, source.path_of("uri"))
            if content is None:
                note(
                    "texture_missing",
                    f"the texture {uri[:MAX_URI_CHARACTERS_COUNT]!r} is missing and was left out; "
                    "keep it beside the model, or pack both in a ZIP archive",
                    name=quote(uri),
                )
                return None
            stated_type, data = source.name("mimeType") or parse_media_type(uri), content
        else:
            view, _ = self._buffers.view(source.integer("bufferView"), source.path_of("bufferView"))
            self._buffers.spend(len(view))
            stated_type, data = source.name("mimeType"), bytes(view)
        media_type = detect_media_type(data)
        if media_type not in _MEDIA_TYPES:
            note(
                "texture_dropped",
                f"{source.path} ({quote(stated_type) if stated_type else 'type unknown'}) is not a PNG, JPEG, WebP, "
                "BMP, GIF or TIFF image and was left out",
            )
            return None
        # thousands of images can name one file; the scene keeps the bytes alive, so that their id stays unique
        if id(data) not in self._image_by_content:
            self._image_by_content[id(data)] = len(self.images)
            self.images.append(Image(data, media_type, source.name()))
        return self._image_by_content[id(data)]


def _read_alpha_mode(source: JsonObject) -> Literal["opaque", "mask", "blend"]:
    stated = source.name("alphaMode") or "OPAQUE"
    mode = _ALPHA_MODES.get(stated.upper())
    if mode is None:
        note(
            "value_ignored",
            f"{source.path_of('alphaMode')} is {quote(stated)}, not OPAQUE, MASK or BLEND: read as OPAQUE",
        )
    return mode or "opaque"


def _clip(value: float) -> float:
    return min(max(value, 0.0), 1.0)


def _encode_color(linear: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return a linear color as sRGB 0 … 1, rounded to nine digits, which removes the noise of the conversion."""
    red, green, blue = (_clip(round(value, 9)) for value in encode_srgb(linear).tolist())
    return red, green, blue


def encode_vertex_colors(rows: AttributeRows) -> UInt8:
    """Return linear vertex colors as (n, 4) sRGB with linear alpha.

    Args:
        rows: COLOR_0: three or four components.
    Source:
        glTF 2.0 §3.7.2.1: COLOR_0 is linear.
    """
    values = rows.values
    colors = np.full((len(values), 4), 255, np.uint8)
    if values.dtype.kind == "u" and values.dtype.itemsize <= 2:
        colors[:, :3] = _srgb_table(values.dtype.itemsize)[values[:, :3]]
        alpha: NDArray[Any] = values[:, 3:4].astype(np.float64) / np.iinfo(values.dtype).max
    else:
        floats = rows.as_floats()
        colors[:, :3] = np.rint(encode_srgb(floats[:, :3]) * 255)
        alpha = np.clip(np.nan_to_num(floats[:, 3:4]), 0, 1)
    if alpha.shape[1]:
        colors[:, 3:4] = np.rint(alpha * 255)
    return colors


@cache
def _srgb_table(itemsize: int) -> UInt8:
    """Return the sRGB byte of every linear integer of one or two bytes."""
    count = 256**itemsize
    return np.rint(encode_srgb(np.arange(count) / (count - 1)) * 255).astype(np.uint8)
