"""Materials of USD: UsdPreviewSurface, in both directions."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from pxr import Gf, Sdf, UsdShade

from meshhub import Image, Material, note
from meshhub.toolkit.colors import clamp_fraction, decode_srgb, encode_srgb
from meshhub.toolkit.images import decode_image, detect_media_type
from meshhub.toolkit.names import single_line
from meshhub.toolkit.png import encode_png

DEFAULT_UV = "st"
"""Name of the texture coordinates that most exporters use."""

_WRAP: dict[str, Literal["repeat", "clamp", "mirror"]] = {"repeat": "repeat", "clamp": "clamp", "mirror": "mirror"}
_EXTENSIONS = {"image/png": ".png", "image/jpeg": ".jpg"}
"""Images that every viewer of USDZ shows; others are converted to PNG."""

ReadFile = Callable[[Any], "tuple[bytes, str] | None"]
"""Function that returns content and name of an asset, or None."""


class ReadAppearance:
    """Materials and images that were referred to so far.

    Attributes:
        materials: Materials of the scene.
        images: Images of the scene.
        uv_names: Name of the texture coordinates of each material.
        shows_colors: Whether each material shows vertex colors.
    """

    def __init__(self, read_file: ReadFile) -> None:
        """Create an empty library."""
        self.materials: list[Material] = []
        self.images: list[Image] = []
        self.uv_names: list[str] = []
        self.shows_colors: list[bool] = []
        self._read_file = read_file
        self._index: dict[str, int] = {}
        self._image_index: dict[bytes, int] = {}
        self._textures: list[tuple[Any, str]] = []

    def material(self, material: Any) -> int:
        """Return the index of a bound material."""
        path = str(material.GetPath())
        if path not in self._index:
            self._index[path] = len(self.materials)
            self.materials.append(self._read(material))
        return self._index[path]

    def _read(self, material: Any) -> Material:
        name = single_line(material.GetPrim().GetDisplayName() or material.GetPrim().GetName())
        shader = material.ComputeSurfaceSource()[0]
        self.uv_names.append(DEFAULT_UV)
        self.shows_colors.append(False)
        if not shader or shader.GetIdAttr().Get() != "UsdPreviewSurface":
            note("material_simplified", f"material {name[:40]!r} is not a UsdPreviewSurface; only its name was read")
            return Material(name)
        self._textures = []
        color, color_image = self._color(shader, "diffuseColor", (0.18, 0.18, 0.18))
        emissive, emissive_image = self._color(shader, "emissiveColor", (0.0, 0.0, 0.0))
        opacity = self._number(shader, "opacity", 1.0)
        cutoff = self._number(shader, "opacityThreshold", 0.0)
        if opacity <= 0:
            note("invisible_material", f"material {name[:40]!r} is fully transparent; it was read as opaque")
            opacity = 1.0
        mask = (
            "mask" if cutoff > 0 else "blend" if opacity < 1 or self._image(shader, "opacity") is not None else "opaque"
        )
        metal, rough = self._image(shader, "metallic"), self._image(shader, "roughness")
        return Material(
            name,
            (*color, opacity),
            base_color_image=color_image,
            metallic=self._number(shader, "metallic", 0.0),
            roughness=self._number(shader, "roughness", 0.5),
            metallic_roughness_image=metal if metal == rough else None,
            normal_image=self._image(shader, "normal"),
            occlusion_image=self._image(shader, "occlusion"),
            emissive=emissive,
            emissive_image=emissive_image,
            alpha_mode=mask,  # type: ignore[arg-type]
            alpha_cutoff=cutoff or 0.5,
            wrap=self._wrap(),
        )

    def _color(
        self, shader: Any, name: str, default: tuple[float, float, float]
    ) -> tuple[tuple[float, float, float], int | None]:
        """Return the sRGB color of an input, white under a texture, and the image."""
        image = self._image(shader, name)
        if image is not None:
            return (1.0, 1.0, 1.0), image
        if name == "diffuseColor" and self._reads_colors(shader):
            self.shows_colors[-1] = True
            return (1.0, 1.0, 1.0), None
        source = shader.GetInput(name)
        value = source.Get() if source else None
        linear = np.array(default if value is None else tuple(value), np.float64)
        red, green, blue = encode_srgb(linear).tolist()
        return (red, green, blue), None

    def _number(self, shader: Any, name: str, default: float) -> float:
        source = shader.GetInput(name)
        value = source.Get() if source and not source.HasConnectedSource() else None
        return default if not isinstance(value, float) else clamp_fraction(value)

    def _source(self, shader: Any, name: str) -> Any:
        """Return the shader that an input is connected to, or None."""
        source = shader.GetInput(name)
        attributes = source.GetValueProducingAttributes() if source else []
        prim = attributes[0].GetPrim() if attributes else None
        return UsdShade.Shader(prim) if prim and prim != shader.GetPrim() else None

    def _reads_colors(self, shader: Any) -> bool:
        reader = self._source(shader, "diffuseColor")
        return bool(reader) and _text(reader, "varname") == "displayColor"

    def _image(self, shader: Any, name: str) -> int | None:
        """Return the image of an input; None without one, or with a note if it is missing."""
        texture = self._source(shader, name)
        if not texture or texture.GetIdAttr().Get() != "UsdUVTexture":
            return None
        asset = texture.GetInput("file")
        path = asset.Get() if asset else None
        if path is None:
            return None
        reader = self._source(texture, "st")
        if reader and reader.GetIdAttr().Get() == "UsdTransform2d":
            note("uv_transform_dropped", "dropped the transform of texture coordinates")
            reader = self._source(reader, "in")
        if reader:
            self.uv_names[-1] = _text(reader, "varname") or DEFAULT_UV
        self._textures.append((texture, name))
        content = self._read_file(path)
        if content is None:
            note("texture_missing", f"the texture {path.path[-60:]!r} is not in the file; pack it with the model")
            return None
        data, file_name = content
        if data not in self._image_index:
            self._image_index[data] = len(self.images)
            self.images.append(Image(data, detect_media_type(data), single_line(file_name)))
        return self._image_index[data]

    def _wrap(self) -> tuple[Any, Any]:
        if not self._textures:
            return "repeat", "repeat"
        texture = self._textures[0][0]
        first, second = (_WRAP.get(_text(texture, name), "repeat") for name in ("wrapS", "wrapT"))
        return first, second


def _text(shader: Any, name: str) -> str:
    source = shader.GetInput(name)
    attributes = source.GetValueProducingAttributes() if source else []
    value = attributes[0].Get() if attributes else None
    return str(value) if value is not None else ""


class WrittenAppearance:
    """Materials of a stage that is written.

    Attributes:
        files: Content of the textures by their path in the package.
    """

    def __init__(self, stage: Any, scope: str, images: tuple[Image, ...]) -> None:
        """Create an empty library below the path `scope`."""
        self.files: dict[str, bytes] = {}
        self._stage = stage
        self._scope = scope
        self._images = images
        self._paths: dict[int, str | None] = {}

    def define(self, index: int, material: Material) -> Any:
        """Define a material, and return it."""
        path = f"{self._scope}/material_{index}"
        defined = UsdShade.Material.Define(self._stage, path)
        if single_line(material.name):
            defined.GetPrim().SetDisplayName(single_line(material.name))
        surface = UsdShade.Shader.Define(self._stage, path + "/surface")
        surface.CreateIdAttr("UsdPreviewSurface")
        defined.CreateSurfaceOutput().ConnectToSource(surface.ConnectableAPI(), "surface")
        color = Sdf.ValueTypeNames.Color3f
        number = Sdf.ValueTypeNames.Float
        self._input(
            surface, "diffuseColor", color, _linear(material.base_color[:3]), material.base_color_image, material
        )
        self._input(surface, "emissiveColor", color, _linear(material.emissive), material.emissive_image, material)
        is_opaque = material.alpha_mode == "opaque"
        image = None if is_opaque else material.base_color_image
        self._input(surface, "opacity", number, 1.0 if is_opaque else material.base_color[3], image, material)
        if material.alpha_mode == "mask":
            surface.CreateInput("opacityThreshold", number).Set(material.alpha_cutoff)
        packed = material.metallic_roughness_image
        self._input(surface, "metallic", number, material.metallic, packed, material)
        self._input(surface, "roughness", number, material.roughness, packed, material)
        self._input(surface, "occlusion", number, 1.0, material.occlusion_image, material)
        if material.normal_image is not None:
            self._input(surface, "normal", Sdf.ValueTypeNames.Normal3f, (0, 0, 1), material.normal_image, material)
        return defined

    def _input(self, surface: Any, name: str, kind: Any, value: Any, image: int | None, material: Material) -> None:
        """Set an input to a value, or connect it to a texture."""
        source = surface.CreateInput(name, kind)
        path = None if image is None else self._file(image)
        if path is None:
            source.Set(value if kind == Sdf.ValueTypeNames.Float else Gf.Vec3f(*value))
            return
        base = str(surface.GetPath().GetParentPath())
        is_color = name in ("diffuseColor", "emissiveColor", "opacity")
        # one shader for each image and color space
        at = f"{base}/texture_{image}_{'color' if is_color else 'data'}"
        texture = UsdShade.Shader.Define(self._stage, at)
        if not texture.GetIdAttr().Get():
            self._define_texture(texture, path, base, material, name)
        channel = {"metallic": "b", "roughness": "g", "occlusion": "r", "opacity": "a"}.get(name, "rgb")
        output = Sdf.ValueTypeNames.Float3 if channel == "rgb" else Sdf.ValueTypeNames.Float
        source.ConnectToSource(texture.CreateOutput(channel, output))
        if name == "diffuseColor" and min(material.base_color[:3]) < 1:
            texture.CreateInput("scale", Sdf.ValueTypeNames.Float4).Set(Gf.Vec4f(*value, material.base_color[3]))

    def _define_texture(self, texture: Any, path: str, base: str, material: Material, name: str) -> None:
        reader = UsdShade.Shader.Define(self._stage, base + "/uv")
        reader.CreateIdAttr("UsdPrimvarReader_float2")
        reader.CreateInput("varname", Sdf.ValueTypeNames.String).Set(DEFAULT_UV)
        texture.CreateIdAttr("UsdUVTexture")
        texture.CreateInput("file", Sdf.ValueTypeNames.Asset).Set(Sdf.AssetPath(path))
        uv = reader.CreateOutput("result", Sdf.ValueTypeNames.Float2)
        texture.CreateInput("st", Sdf.ValueTypeNames.Float2).ConnectToSource(uv)
        for direction, wrap in zip(("wrapS", "wrapT"), material.wrap, strict=True):
            texture.CreateInput(direction, Sdf.ValueTypeNames.Token).Set(wrap)
        is_color = name in ("diffuseColor", "emissiveColor", "opacity")
        space = texture.CreateInput("sourceColorSpace", Sdf.ValueTypeNames.Token)
        space.Set("sRGB" if is_color else "raw")
        if name == "normal":
            # 0 … 1 in the image is -1 … 1 (UsdPreviewSurface specification, "Texture Reader")
            texture.CreateInput("scale", Sdf.ValueTypeNames.Float4).Set(Gf.Vec4f(2, 2, 2, 1))
            texture.CreateInput("bias", Sdf.ValueTypeNames.Float4).Set(Gf.Vec4f(-1, -1, -1, 0))

    def _file(self, index: int) -> str | None:
        """Return the path of an image in the package; None, with a note, if viewers cannot show it."""
        if index not in self._paths:
            image = self._images[index]
            data, extension = image.data, _EXTENSIONS.get(image.media_type)
            if extension is None:
                pixels = decode_image(data)
                if pixels is None:
                    note("texture_dropped", f"dropped a texture: {image.media_type} cannot be converted to PNG here")
                    self._paths[index] = None
                    return None
                data, extension = encode_png(pixels), ".png"
            path = f"textures/{hashlib.sha256(data).hexdigest()[:16]}{extension}"
            self.files[path] = data
            self._paths[index] = path
        return self._paths[index]


def _linear(color: tuple[float, ...]) -> tuple[float, ...]:
    linear: list[float] = decode_srgb(np.array(color[:3], np.float64)).tolist()
    return tuple(linear)
