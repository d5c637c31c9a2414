"""The materials that an OBJ names, from the MTL files and pictures that came together with it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.obj.reading.lines import MTLLIB, Lines
from meshhub.builtin_plugins.obj.reading.mtl import LARGEST, Statements, Texture, color, number, parse, texture
from meshhub.builtin_plugins.obj.reading.parts import argument
from meshhub.model.notes import note
from meshhub.model.scene import Float32, Image, Int32, Material
from meshhub.model.source import Source

_LIBRARIES = 64
_PICTURES = 256
"""So many files are looked up; no model has more."""

_NAMED = 10
"""So many missing files and materials are named."""

_OPENINGS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
)
_UNMAPPED = ("map_bump", "bump", "map_d", "map_ks", "map_ns", "map_ka", "disp", "map_disp", "refl", "decal")

Transform = tuple[float, float, float, float]
"""Scale and offset of texture coordinates: `u * scale_u + offset_u`."""


@dataclass(frozen=True)
class Surfaces:
    """Materials, their pictures, and the transforms of texture coordinates, by the material's index."""

    materials: tuple[Material, ...] = ()
    images: tuple[Image, ...] = ()
    transforms: dict[int, Transform] = field(default_factory=dict)


def read_surfaces(source: Source, lines: Lines, names: list[str]) -> Surfaces:
    """A material for each name. What is missing costs its look, never the model, and is named in a note."""
    libraries, complete = _libraries(source, lines)
    folded = {name.casefold(): statements for name, statements in reversed(libraries.items())}
    pictures = _Pictures(source)
    materials: list[Material] = []
    transforms: dict[int, Transform] = {}
    unknown: list[str] = []
    for index, name in enumerate(names):
        plain = " ".join(name.split())
        statements = libraries.get(plain, folded.get(plain.casefold()))
        if statements is None:
            unknown.append(name)
            materials.append(Material(name=name))
            continue
        base = texture(statements.get("map_kd"))
        materials.append(_material(name, statements, base, pictures))
        if base is not None and materials[-1].base_color_image is not None:
            transform = (*base.scale, *base.offset)
            if transform != (1.0, 1.0, 0.0, 0.0):
                transforms[index] = transform
    pictures.tell()
    if unknown and complete and libraries:
        note("missing_material", f"no MTL file defines {_listed(unknown)}: shown without a look of its own")
    return Surfaces(tuple(materials), tuple(pictures.images), transforms)


def with_transforms(
    uv: Float32, rows: NDArray[np.int64], material: Int32, transforms: dict[int, Transform]
) -> tuple[Float32, NDArray[np.int64]]:
    """Texture coordinates with the materials' transforms in them: a longer table, and the rows in it.

    rows: (m, 3) of each triangle's corners, -1 for none; material: (m,)
    """
    table = np.array([(1.0, 1.0, 0.0, 0.0), *transforms.values()])
    which = np.zeros(max(int(material.max()), *transforms) + 2, np.int64)
    which[list(transforms)] = np.arange(1, len(table))
    own = np.repeat(which[material], 3)  # -1, no material, is the last entry, which no transform takes
    flat = rows.ravel()
    keys, index = np.unique(np.where((own > 0) & (flat >= 0), flat * len(table) + own, -1), return_inverse=True)
    new = keys[keys >= 0]
    chosen = table[new % len(table)]
    made = (uv[new // len(table)] * chosen[:, :2] + chosen[:, 2:]).astype(np.float32)
    moved = np.where((own > 0) & (flat >= 0), len(uv) + index.ravel() - (len(keys) - len(new)), flat)
    return np.concatenate([uv, made]), moved.reshape(-1, 3)


def _libraries(source: Source, lines: Lines) -> tuple[dict[str, Statements], bool]:
    """The materials of all MTL files by name, and whether all files that are named are there."""
    found: dict[str, Statements] = {}
    missing: list[str] = []
    seen: set[str] = set()
    for line in lines.of(MTLLIB)[:_LIBRARIES].tolist():
        named = argument(lines, line)
        whole = source.sibling(named) if named else None
        several = [] if whole is not None or not named else named.split()[:_LIBRARIES]
        pairs = [(named, whole)] if len(several) < 2 else [(one, source.sibling(one)) for one in several]
        for reference, library in pairs:
            if not reference or reference in seen:
                continue
            seen.add(reference)
            if library is None:
                missing.append(reference)
                continue
            if library.size > LARGEST:
                note("large_companion", f"only the first {LARGEST >> 20} MiB of {_shown(reference)!r} were read")
            for name, statements in parse(library.head(LARGEST)).items():
                found.setdefault(name, statements)
    if missing:
        note(
            "missing_companion",
            f"{_listed(missing)} did not come with the OBJ, so its materials have no colours: "
            "send the OBJ, its MTL and its textures in one archive",
        )
    return found, not missing


def _material(name: str, statements: Statements, base: Texture | None, pictures: _Pictures) -> Material:
    """One material in the terms of the scene."""
    image = pictures.index(base)
    shade = color(statements.get("kd"))
    if image is not None and shade is not None and not any(shade):
        # exporters write black where they mean the texture alone
        note("black_diffuse_ignored", f"material {_shown(name)!r} is black under its texture: read as white")
        shade = None
    shade = shade or (1.0, 1.0, 1.0)
    alpha = _alpha(name, statements)
    cut_out = texture(statements.get("map_d"))
    blended = base is not None and cut_out is not None and cut_out.reference == base.reference
    glow_image = pictures.index(texture(statements.get("map_ke")))
    glow = color(statements.get("ke")) or ((0.0, 0.0, 0.0) if glow_image is None else (1.0, 1.0, 1.0))
    rough, metal = texture(statements.get("map_pr")), texture(statements.get("map_pm"))
    packed = metal if rough is None else rough if metal is None or metal.reference == rough.reference else None
    left = [key for key in _UNMAPPED if key in statements and not (key == "map_d" and blended)]
    if packed is None and rough is not None:
        left += ["map_Pr", "map_Pm"]
    if left:
        note("textures_left_out", f"textures of the kinds {', '.join(left)} were left out")
    metallic = number(statements.get("pm"))
    return Material(
        name=name,
        base_color=(*shade, alpha),
        base_color_image=image,
        metallic=_unit((0.0 if metal is None else 1.0) if metallic is None else metallic),
        roughness=_roughness(statements, textured=packed is not None),
        metallic_roughness_image=pictures.index(packed),
        normal_image=pictures.index(texture(statements.get("norm"))),
        occlusion_image=pictures.index(texture(statements.get("map_ao"))),
        emissive=glow,
        emissive_image=glow_image,
        alpha_mode="blend" if alpha < 1 or blended else "opaque",
        wrap=("clamp", "clamp") if base is not None and base.clamp else ("repeat", "repeat"),
    )


def _alpha(name: str, statements: Statements) -> float:
    """How opaque; `d` over `Tr`, which is its opposite and often taken for the same. Never invisible."""
    dissolve = number(statements.get("d", "").lower().removeprefix("-halo"))
    transparency = number(statements.get("tr"))
    if dissolve is None:
        dissolve = 1.0 if transparency is None else 1.0 - transparency
    alpha = _unit(dissolve)
    if alpha == 0:
        note("alpha_zero", f"material {_shown(name)!r} is wholly transparent: read as opaque")
        return 1.0
    return alpha


def _roughness(statements: Statements, *, textured: bool) -> float:
    """`Pr`, or from the exponent of Phong's highlight: B. Karis, "Specular BRDF Reference", 2013, n = 2/r⁴ - 2."""
    given = number(statements.get("pr"))
    if given is not None:
        return _unit(given)
    exponent = number(statements.get("ns"))
    highlight = color(statements.get("ks"))
    if textured or exponent is None or exponent <= 0 or highlight is None or not any(highlight):
        return 1.0
    return round(_unit(math.sqrt(math.sqrt(2 / (exponent + 2)))), 6)


class _Pictures:
    """Pictures as they are asked for, each once."""

    def __init__(self, source: Source) -> None:
        self.images: list[Image] = []
        self._source = source
        self._found: dict[str, int | None] = {}
        self._held: dict[str, int] = {}
        self._missing: list[str] = []

    def index(self, wanted: Texture | None) -> int | None:
        """The image's index, or None when it did not come with the file."""
        if wanted is None:
            return None
        key = wanted.reference.casefold()
        if key not in self._found:
            self._found[key] = self._read(wanted.reference) if len(self._found) < _PICTURES else None
        return self._found[key]

    def _read(self, reference: str) -> int | None:
        found = self._source.sibling(reference)
        if found is None:
            self._missing.append(reference)
            return None
        # one file has many spellings, and is held once
        key = str(found.path or found.name)
        if key not in self._held:
            self._held[key] = len(self.images)
            data = found.read()
            last = _shown(reference).replace("\\", "/").rpartition("/")[2]
            self.images.append(Image(data, _media_type(data), last.rpartition(".")[0] or last))
        return self._held[key]

    def tell(self) -> None:
        """Name what is missing."""
        if self._missing:
            note(
                "missing_companion",
                f"{_listed(self._missing)} did not come with the OBJ, so its materials show plain colours: "
                "send the OBJ, its MTL and its textures in one archive",
            )


def _media_type(data: bytes) -> str:
    """What kind of picture the bytes are, by how they begin; TGA begins with nothing of its own."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for opening, kind in _OPENINGS if data.startswith(opening)), "image/x-tga")


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(repr(_shown(name)) for name in names[:_NAMED]) + more


def _shown(name: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in name[:80])


def _unit(value: float) -> float:
    return min(max(value, 0.0), 1.0)
