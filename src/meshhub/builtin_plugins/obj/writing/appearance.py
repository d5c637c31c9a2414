"""Materials as MTL text, and their images. File names are content hashes, so the output is reproducible."""

# why this way: docs/decisions/0003-obj-companions.md
from __future__ import annotations

import hashlib

from meshhub.builtin_plugins.obj.writing.names import UniqueNames
from meshhub.model.notes import note
from meshhub.model.scene import Material, Scene
from meshhub.toolkit.colors import clamp_fraction
from meshhub.toolkit.materials import note_lost_finish

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
"""Wrap modes that MTL can express."""

_MAX_PHONG_EXPONENT = 1000.0
"""Largest `Ns` of MTL 4.2; a roughness below 0.21 would exceed it."""


class MaterialLibrary:
    """The used materials of a scene as an MTL file, with unique names, and the image files that they need."""

    def __init__(self, scene: Scene, used: tuple[int, ...], *, has_uv: bool) -> None:
        """Build the library.

        Args:
            used: Material indices; -1 adds a plain material for faces without one.
            has_uv: Whether any mesh has texture coordinates; textures are left out otherwise.
        """
        self.files: dict[str, bytes] = {}
        self._scene = scene
        self._has_uv = has_uv
        stored = [scene.materials[index] for index in used if index >= 0]
        note_lost_finish("OBJ", stored, kept=("names", "metal", "emission", "cutoff"))
        names = UniqueNames("material")
        materials = {index: scene.materials[index] if index >= 0 else Material(name="plain") for index in used}
        self.names = {index: names.unique(material.name) for index, material in materials.items()}
        text = "\n".join(self._format_material(self.names[index], material) for index, material in materials.items())
        data = text.encode()
        self.name = f"meshhub-{_digest(data)}.mtl"
        self.files = {self.name: data, **self.files}

    def _format_material(self, name: str, material: Material) -> str:
        """Return a material as MTL 4.2 text; Pr, Pm, Ke and norm are of the physically based extension."""
        *base, alpha = (clamp_fraction(value) for value in material.base_color)
        roughness = clamp_fraction(material.roughness)
        # n = 2/r⁴ - 2, for programs without Pr; a rough surface has no highlight
        exponent = min(2 / roughness**4 - 2, _MAX_PHONG_EXPONENT) if roughness > 0.2 else _MAX_PHONG_EXPONENT
        has_highlight = exponent >= 1
        rows = [
            f"newmtl {name}",
            f"Kd {_format_numbers(base)}",
            f"Ks {_format_numbers([0.5] * 3 if has_highlight else [0.0] * 3)}",
            f"Ns {_format_numbers([exponent])}",
            f"d {_format_numbers([alpha])}",
            f"illum {2 if has_highlight else 1}",
            f"Pr {_format_numbers([roughness])}",
            f"Pm {_format_numbers([clamp_fraction(material.metallic)])}",
        ]
        if any(material.emissive):
            rows.append(f"Ke {_format_numbers([clamp_fraction(value) for value in material.emissive])}")
        self._note_losses(material)
        clamp = "-clamp on " if material.wrap == ("clamp", "clamp") else ""
        alpha_image = material.base_color_image if material.alpha_mode != "opaque" else None
        for key, image in (
            ("map_Kd", material.base_color_image),
            ("map_d", alpha_image),
            ("map_Pr", material.metallic_roughness_image),
            ("map_Pm", material.metallic_roughness_image),
            ("norm", material.normal_image),
            ("map_ao", material.occlusion_image),
            ("map_Ke", material.emissive_image),
        ):
            if image is not None and self._has_uv:
                rows.append(f"{key} {clamp}{self._add_image(image)}")
        return "\n".join(rows) + "\n"

    def _note_losses(self, material: Material) -> None:
        """Note the properties of a material that MTL cannot store."""
        if material.alpha_mode == "mask":
            note("alpha_cutoff_dropped", "MTL has no alpha cutoff: wrote the materials without it")
        if not self._has_uv or not material.images():
            return
        if material.wrap not in _WRAPS or material.filter == "nearest":
            note(
                "texture_sampling_dropped",
                "MTL textures repeat or clamp in both directions and are filtered linearly: dropped other sampling",
            )

    def _add_image(self, index: int) -> str:
        """Add an image to the files, and return its file name."""
        image = self._scene.images[index]
        name = f"meshhub-{_digest(image.data)}.{_EXTENSIONS.get(image.media_type, 'img')}"
        self.files[name] = image.data
        return name


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:8]


def _format_numbers(values: list[float]) -> str:
    return " ".join(f"{round(value, 6):.10g}" for value in values)
