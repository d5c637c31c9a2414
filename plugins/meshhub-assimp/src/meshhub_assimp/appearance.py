"""Materials, as assimp maps those of all formats and programs to its keys."""

from __future__ import annotations

import posixpath
from typing import Literal

from meshhub import Image, Material, Source, note
from meshhub.toolkit.colors import clamp_fraction
from meshhub.toolkit.images import detect_media_type
from meshhub.toolkit.names import single_line
from meshhub_assimp.library import Import, MaterialView, String, find_embedded

_DIFFUSE, _EMISSIVE, _NORMALS, _BASE_COLOR, _OCCLUSION = 1, 4, 6, 12, 17
"""Kinds of textures (`aiTextureType`)."""

_DEFAULT_NAME = "DefaultMaterial"
"""Name of the material that assimp adds for faces without one."""

Wrap = Literal["repeat", "clamp", "mirror"]
_WRAPS: dict[int, Wrap] = {0: "repeat", 1: "clamp", 2: "mirror"}


class Appearance:
    """Materials and images that were referred to so far.

    Attributes:
        materials: Materials of the scene.
        images: Images of the scene.
        uv_sets: Set of texture coordinates of each material.
    """

    def __init__(self, file: Import, source: Source) -> None:
        """Create an empty library; textures that are not embedded are companions of `source`."""
        self.materials: list[Material] = []
        self.images: list[Image] = []
        self.uv_sets: list[int] = []
        self._file = file
        self._source = source
        self._index: dict[int, int | None] = {}
        self._image_index: dict[bytes, int | None] = {}

    def material(self, number: int) -> int | None:
        """Return the index of a material of the library; None for the one that it adds."""
        if number not in self._index:
            view = MaterialView(self._file.scene.materials[number])
            name = single_line(self._file.decode(view.text("?mat.name")))
            self._index[number] = None if name == _DEFAULT_NAME else self._add(view, name)
        return self._index[number]

    def _add(self, view: MaterialView, name: str) -> int:
        base = view.texture(_BASE_COLOR) or view.texture(_DIFFUSE)
        image = None if base is None else self._image(base[0])
        white = (1.0, 1.0, 1.0)
        color = white if image is not None else view.numbers("$clr.base", 3) or view.numbers("$clr.diffuse", 3) or white
        alpha = clamp_fraction(*(view.numbers("$mat.opacity", 1) or (1.0,)))
        if alpha <= 0:
            note("invisible_material", f"material {name[:40]!r} is fully transparent; it was read as opaque")
            alpha = 1.0
        modes = (0, 0) if base is None else base[2]
        self.materials.append(
            Material(
                name,
                (*_clamp(color), alpha),
                base_color_image=image,
                metallic=clamp_fraction(*(view.numbers("$mat.metallicFactor", 1) or (0.0,))),
                roughness=clamp_fraction(*(view.numbers("$mat.roughnessFactor", 1) or (1.0,))),
                normal_image=self._image_of(view, _NORMALS),
                occlusion_image=self._image_of(view, _OCCLUSION),
                emissive=_clamp(view.numbers("$clr.emissive", 3) or (0.0, 0.0, 0.0)),
                emissive_image=self._image_of(view, _EMISSIVE),
                alpha_mode="blend" if alpha < 1 else "opaque",
                wrap=(_WRAPS.get(modes[0], "repeat"), _WRAPS.get(modes[1], "repeat")),
            )
        )
        self.uv_sets.append(0 if base is None else base[1])
        return len(self.materials) - 1

    def _image_of(self, view: MaterialView, kind: int) -> int | None:
        texture = view.texture(kind)
        return None if texture is None else self._image(texture[0])

    def _image(self, path: String) -> int | None:
        """Return the index of the image at a path; None if it is missing, with a note."""
        key = bytes(path)
        if key not in self._image_index:
            self._image_index[key] = self._add_image(path)
        return self._image_index[key]

    def _add_image(self, path: String) -> int | None:
        decoded = self._file.decode(path)
        name = single_line(posixpath.basename(decoded.replace("\\", "/")))
        data = find_embedded(self._file.scene, path)
        if not data:
            sibling = self._source.sibling(decoded)
            data = b"" if sibling is None else sibling.read()
        if not data:
            note("texture_missing", f"the texture {name[:60]!r} is missing; keep the textures beside the model")
            return None
        self.images.append(Image(data, detect_media_type(data), name))
        return len(self.images) - 1


def _clamp(color: tuple[float, ...]) -> tuple[float, float, float]:
    red, green, blue = (clamp_fraction(value) if value == value else 0.0 for value in color)
    return red, green, blue
