"""Materials of an OBJ file, from the MTL files and images among its companions."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.obj.reading.lines import MTLLIB, Lines
from meshhub.builtin_plugins.obj.reading.mtl import (
    MAX_MTL_BYTES,
    Statements,
    TextureReference,
    find_malformed,
    parse_color,
    parse_mtl,
    parse_number,
    parse_texture,
    strip_halo,
)
from meshhub.builtin_plugins.obj.reading.parts import read_argument
from meshhub.errors import format_number, printable, quote
from meshhub.model.notes import note
from meshhub.model.scene import Float32, Image, Int32, Material
from meshhub.model.source import Source
from meshhub.toolkit.colors import clamp_fraction
from meshhub.toolkit.images import detect_media_type

_MAX_LIBRARIES_COUNT = 64
"""Maximum MTL files to look up; real files name one or a few."""

_MAX_IMAGES_COUNT = 256
"""Maximum image files to look up; more than real models have."""

_MAX_LISTED_COUNT = 3
"""Maximum names that a note lists; with the rest of the note they fit into one line."""

_MAX_IMAGE_NAME_LENGTH = 80
"""Maximum characters of an image's file name; bounds names from hostile files."""

_UNSUPPORTED_TEXTURES = (
    "map_bump", "bump", "map_d", "map_ks", "map_ns", "map_ka", "disp", "map_disp", "refl", "decal",
)  # fmt: skip

Transform = tuple[float, float, float, float]
"""Scale and offset of texture coordinates: `u * scale_u + offset_u`."""

_MAX_GRAY_SPREAD = 1 / 255
"""Difference of channels beyond which a color is not gray, and of a gray from white: one step of an image."""

_IDENTITY: Transform = (1.0, 1.0, 0.0, 0.0)


@dataclass(frozen=True)
class ObjMaterials:
    """Materials and their images, and the transforms of texture coordinates by material index."""

    materials: tuple[Material, ...] = ()
    images: tuple[Image, ...] = ()
    transforms: dict[int, Transform] = field(default_factory=dict)


def read_materials(source: Source, lines: Lines, names: list[str], *, ignores_gray: bool) -> ObjMaterials:
    """Read the materials with the given names.

    A missing file or material gives a note, and a material without appearance.

    Args:
        source: The file, with its companions.
        names: Material names, one for each material to return.
        ignores_gray: Whether a gray `Kd` does not darken the texture of its material.
    """
    library, is_complete = _read_libraries(source, lines)
    folded = {name.casefold(): statements for name, statements in reversed(library.items())}
    images = _TextureImages(source)
    materials: list[Material] = []
    transforms: dict[int, Transform] = {}
    undefined: list[str] = []
    for index, name in enumerate(names):
        key = " ".join(name.split())
        statements = library.get(key, folded.get(key.casefold()))
        if statements is None:
            undefined.append(name)
            materials.append(Material(name=name))
            continue
        base = parse_texture(statements.get("map_kd"))
        material = _build_material(name, statements, base, images)
        materials.append(_handle_gray(material, ignores_gray=ignores_gray))
        if base is not None and materials[-1].base_color_image is not None:
            transform = (*base.scale, *base.offset)
            if transform != _IDENTITY:
                transforms[index] = transform
    images.note_missing()
    if undefined and is_complete and library:
        note(
            "missing_material",
            f"no MTL file defines {_list_names(undefined)}: used the default material",
            names=_list_names(undefined),
        )
    return ObjMaterials(tuple(materials), tuple(images.images), transforms)


def apply_transforms(
    uv: Float32, rows: NDArray[np.int64], material: Int32, transforms: dict[int, Transform]
) -> tuple[Float32, NDArray[np.int64]]:
    """Apply the transforms of the materials to texture coordinates.

    Args:
        uv: (t, 2) texture coordinates.
        rows: (m, 3) row of each triangle's corners, -1 for none.
        material: (m,) material of each triangle, -1 for none.
    Returns:
        The table, with transformed rows appended, and the (m, 3) rows in it.
    """
    table = np.array([_IDENTITY, *transforms.values()])
    transform_of_material = np.zeros(max(int(material.max()), *transforms) + 2, np.int64)
    transform_of_material[list(transforms)] = np.arange(1, len(table))
    transform = np.repeat(
        transform_of_material[material], 3
    )  # -1 means no material, and indexes the last entry: the identity
    flat_rows = rows.ravel()
    is_changed = (transform > 0) & (flat_rows >= 0)
    keys, index = np.unique(np.where(is_changed, flat_rows * len(table) + transform, -1), return_inverse=True)
    new_keys = keys[keys >= 0]
    parameters = table[new_keys % len(table)]
    new_uv = (uv[new_keys // len(table)] * parameters[:, :2] + parameters[:, 2:]).astype(np.float32)
    new_rows = np.where(is_changed, len(uv) + index.ravel() - (len(keys) - len(new_keys)), flat_rows)
    return np.concatenate([uv, new_uv]), new_rows.reshape(-1, 3)


def _read_libraries(source: Source, lines: Lines) -> tuple[dict[str, Statements], bool]:
    """Return the materials of all MTL files by name, and whether all files that the OBJ names are present."""
    materials: dict[str, Statements] = {}
    missing: list[str] = []
    for reference, library in _find_libraries(source, lines).items():
        if library is None:
            missing.append(reference)
            continue
        if library.size > MAX_MTL_BYTES:
            note(
                "large_companion",
                f"read only the first {MAX_MTL_BYTES >> 20} MiB of {quote(reference)}",
                name=quote(reference),
                size=MAX_MTL_BYTES >> 20,
            )
        for name, statements in parse_mtl(library.head(MAX_MTL_BYTES)).items():
            materials.setdefault(name, statements)
    _note_missing_companions(missing)
    return materials, not missing


def _find_libraries(source: Source, lines: Lines) -> dict[str, Source | None]:
    """Return the MTL files that the OBJ names, by name; None for a missing one.

    The words of a `mtllib` line are one name with spaces if such a file exists, otherwise several names.
    """
    libraries: dict[str, Source | None] = {}
    for line in lines.find(MTLLIB)[:_MAX_LIBRARIES_COUNT].tolist():
        argument = read_argument(lines, line)
        if not argument:
            continue
        library = source.sibling(argument)
        references = argument.split()[:_MAX_LIBRARIES_COUNT]
        if library is not None or len(references) < 2:
            libraries.setdefault(argument, library)
            continue
        for reference in references:
            if reference not in libraries:
                libraries[reference] = source.sibling(reference)
    return libraries


def _build_material(
    name: str, statements: Statements, base: TextureReference | None, images: _TextureImages
) -> Material:
    """Build the material of the scene from MTL statements; `base` is the parsed `map_Kd`."""
    malformed = find_malformed(statements)
    if malformed:
        listed = ", ".join(f"{key.capitalize()} {quote(statements[key])}" for key in malformed[:_MAX_LISTED_COUNT])
        note(
            "value_ignored",
            f"material {quote(name)}: ignored invalid values: {listed}; export the material again",
        )
    image = images.index(base)
    base_color = parse_color(statements.get("kd"))
    if image is not None and base_color is not None and not any(base_color):
        # exporters write black if only the texture matters
        note(
            "black_diffuse_ignored",
            f"material {quote(name)} is black and has a texture: read its color as white",
            name=quote(name),
        )
        base_color = None
    alpha = _read_alpha(name, statements)
    alpha_texture = parse_texture(statements.get("map_d"))
    has_alpha_texture = base is not None and alpha_texture is not None and alpha_texture.file_name == base.file_name
    emissive_image = images.index(parse_texture(statements.get("map_ke")))
    default_emissive = (0.0, 0.0, 0.0) if emissive_image is None else (1.0, 1.0, 1.0)
    roughness_texture, metallic_texture = (parse_texture(statements.get(key)) for key in ("map_pr", "map_pm"))
    packed = _pack_textures(roughness_texture, metallic_texture)
    unsupported = [
        key for key in _UNSUPPORTED_TEXTURES if key in statements and not (key == "map_d" and has_alpha_texture)
    ]
    if packed is None and roughness_texture is not None:
        unsupported += ["map_Pr", "map_Pm"]
    if unsupported:
        note("textures_left_out", f"dropped textures of unsupported kinds: {', '.join(unsupported)}")
    metallic = parse_number(statements.get("pm"))
    if metallic is None:
        metallic = 0.0 if metallic_texture is None else 1.0
    return Material(
        name=name,
        base_color=(*(base_color or (1.0, 1.0, 1.0)), alpha),
        base_color_image=image,
        metallic=clamp_fraction(metallic),
        roughness=_read_roughness(statements, has_texture=packed is not None),
        metallic_roughness_image=images.index(packed),
        normal_image=images.index(parse_texture(statements.get("norm"))),
        occlusion_image=images.index(parse_texture(statements.get("map_ao"))),
        emissive=parse_color(statements.get("ke")) or default_emissive,
        emissive_image=emissive_image,
        alpha_mode="blend" if alpha < 1 or has_alpha_texture else "opaque",
        wrap=("clamp", "clamp") if base is not None and base.clamp else ("repeat", "repeat"),
    )


def _handle_gray(material: Material, *, ignores_gray: bool) -> Material:
    """Note a gray color that darkens a texture, or replace it with white."""
    red, green, blue, alpha = material.base_color
    is_gray = max(red, green, blue) - min(red, green, blue) <= _MAX_GRAY_SPREAD and red < 1 - _MAX_GRAY_SPREAD
    if material.base_color_image is None or not is_gray:
        return material
    if ignores_gray:
        return replace(material, base_color=(1.0, 1.0, 1.0, alpha))
    note(
        "texture_darkened",
        f"material {quote(material.name)} multiplies its texture by the gray {format_number(red, 3)}; "
        "if it is too dark, set {obj_kd=ignore}",
        options=("obj_kd",),
        name=quote(material.name),
        gray=float(red),
    )
    return material


def _pack_textures(roughness: TextureReference | None, metallic: TextureReference | None) -> TextureReference | None:
    """Return the one texture that has both roughness and metallic; None if two files have them.

    A material of the scene has a single image for both.
    """
    if roughness is None:
        return metallic
    return roughness if metallic is None or metallic.file_name == roughness.file_name else None


def _read_alpha(name: str, statements: Statements) -> float:
    """Return the opacity from `d`, otherwise from `Tr`.

    `Tr` is the transparency, but many programs write the opacity there, so `d` is preferred. A material with opacity 0
    would be invisible, so it is read as opaque.
    """
    alpha = parse_number(strip_halo(statements.get("d", "")))
    if alpha is None:
        transparency = parse_number(statements.get("tr"))
        alpha = 1.0 if transparency is None else 1.0 - transparency
    alpha = clamp_fraction(alpha)
    if alpha == 0:
        note("alpha_zero", f"material {quote(name)} is fully transparent: read as opaque")
        return 1.0
    return alpha


def _read_roughness(statements: Statements, *, has_texture: bool) -> float:
    """Return `Pr`, or convert the Phong exponent `Ns`.

    Source:
        B. Karis, "Specular BRDF Reference", 2013: n = 2/r⁴ - 2.
    """
    roughness = parse_number(statements.get("pr"))
    if roughness is not None:
        return clamp_fraction(roughness)
    exponent = parse_number(statements.get("ns"))
    highlight = parse_color(statements.get("ks"))
    if has_texture or exponent is None or exponent <= 0 or highlight is None or not any(highlight):
        return 1.0
    return round(clamp_fraction(math.sqrt(math.sqrt(2 / (exponent + 2)))), 6)


class _TextureImages:
    """Images of textures, read on first use; each file becomes one image."""

    def __init__(self, source: Source) -> None:
        self.images: list[Image] = []
        self._source = source
        self._index_of_reference: dict[str, int | None] = {}
        self._index_of_file: dict[str, int] = {}
        self._missing: list[str] = []

    def index(self, texture: TextureReference | None) -> int | None:
        """Return the index of a texture's image, or None if the texture is None or its file is missing."""
        if texture is None:
            return None
        key = texture.file_name.casefold()
        if key not in self._index_of_reference:
            has_room = len(self._index_of_reference) < _MAX_IMAGES_COUNT
            self._index_of_reference[key] = self._read(texture.file_name) if has_room else None
        return self._index_of_reference[key]

    def _read(self, reference: str) -> int | None:
        companion = self._source.sibling(reference)
        if companion is None:
            self._missing.append(reference)
            return None
        # several spellings may name one file
        key = str(companion.path or companion.name)
        if key not in self._index_of_file:
            self._index_of_file[key] = len(self.images)
            data = companion.read_binary()
            file_name = printable(reference[:_MAX_IMAGE_NAME_LENGTH]).replace("\\", "/").rpartition("/")[2]
            self.images.append(Image(data, detect_media_type(data), file_name.rpartition(".")[0] or file_name))
        return self._index_of_file[key]

    def note_missing(self) -> None:
        """Add a note with the names of the missing files."""
        _note_missing_companions(self._missing)


def _note_missing_companions(names: list[str]) -> None:
    if names:
        note(
            "missing_companion",
            f"missing {_list_names(names)}: keep MTL and textures beside the OBJ, or pack all in one archive",
            names=_list_names(names),
        )


def _list_names(names: list[str]) -> str:
    more = f", … (+{len(names) - _MAX_LISTED_COUNT})" if len(names) > _MAX_LISTED_COUNT else ""
    return ", ".join(map(quote, names[:_MAX_LISTED_COUNT])) + more
