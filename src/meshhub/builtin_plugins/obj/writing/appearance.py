"""Materials as MTL text, and the pictures they name; all names of files come from content."""

from __future__ import annotations

import hashlib

from meshhub.builtin_plugins.obj.writing.names import Names
from meshhub.model.notes import note
from meshhub.model.scene import Material, Scene

_EXTENSIONS = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/webp": "webp",
    "image/gif": "gif",
    "image/bmp": "bmp",
    "image/tiff": "tif",
    "image/x-tga": "tga",
}

_WRAPS = (("repeat", "repeat"), ("clamp", "clamp"))
"""The ways in which an MTL texture can continue."""


class Library:
    """The materials of a scene, under names that tell them apart, and the files that they need."""

    def __init__(self, scene: Scene, used: tuple[int, ...], *, textured: bool) -> None:
        """`used` are indices of materials, -1 the one that faces without a material get.

        `textured` tells whether any mesh has texture coordinates: without them pictures are of no use.
        """
        self.files: dict[str, bytes] = {}
        self._scene = scene
        self._textured = textured
        names = Names("material")
        shown = {index: scene.materials[index] if index >= 0 else Material(name="plain") for index in used}
        self.names = {index: names.unique(material.name) for index, material in shown.items()}
        text = "\n".join(self._text(self.names[index], material) for index, material in shown.items())
        self._data = text.encode()
        self.name = f"meshhub-{_digest(self._data)}.mtl"
        self.files = {self.name: self._data, **self.files}

    def _text(self, name: str, material: Material) -> str:
        """One material. MTL 4.2; Pr, Pm, Ke, norm of the physically based extension."""
        *base, alpha = (_unit(value) for value in material.base_color)
        rough = _unit(material.roughness)
        # n = 2/r⁴ - 2, for programs that know no Pr; a dull surface has no highlight
        shine = min(2 / rough**4 - 2, 1000.0) if rough > 0.2 else 1000.0
        rows = [
            f"newmtl {name}",
            f"Kd {_row(base)}",
            f"Ks {_row([0.0] * 3 if shine < 1 else [0.5] * 3)}",
            f"Ns {_row([shine])}",
            f"d {_row([alpha])}",
            f"illum {1 if shine < 1 else 2}",
            f"Pr {_row([rough])}",
            f"Pm {_row([_unit(material.metallic)])}",
        ]
        if any(material.emissive):
            rows.append(f"Ke {_row([_unit(value) for value in material.emissive])}")
        self._note_losses(material)
        clamp = "-clamp on " if material.wrap == ("clamp", "clamp") else ""
        see_through = material.base_color_image if material.alpha_mode != "opaque" else None
        for key, image in (
            ("map_Kd", material.base_color_image),
            ("map_d", see_through),
            ("map_Pr", material.metallic_roughness_image),
            ("map_Pm", material.metallic_roughness_image),
            ("norm", material.normal_image),
            ("map_ao", material.occlusion_image),
            ("map_Ke", material.emissive_image),
        ):
            if image is not None and self._textured:
                rows.append(f"{key} {clamp}{self._picture(image)}")
        return "\n".join(rows) + "\n"

    def _note_losses(self, material: Material) -> None:
        """Note what MTL cannot store of a material."""
        if material.alpha_mode == "mask":
            note("alpha_cutoff_dropped", "MTL has no alpha cutoff; materials were written without theirs")
        if not self._textured or not material.images():
            return
        if material.wrap not in _WRAPS or material.filter == "nearest":
            note(
                "texture_sampling_dropped",
                "MTL textures repeat or are clamped in both directions, and are blended; other ways were left out",
            )

    def _picture(self, index: int) -> str:
        image = self._scene.images[index]
        name = f"meshhub-{_digest(image.data)}.{_EXTENSIONS.get(image.media_type, 'img')}"
        self.files[name] = image.data
        return name


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:8]


def _row(values: list[float]) -> str:
    return " ".join(f"{round(value, 6):.10g}" for value in values)


def _unit(value: float) -> float:
    return min(max(float(value), 0.0), 1.0)
