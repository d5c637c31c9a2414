"""What one model part of a package says, as data: resources, build items, metadata."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.model.capabilities import Unit
from meshhub.model.scene import Float64, UInt8

CORE = frozenset(
    (
        "",
        "http://schemas.microsoft.com/3dmanufacturing/core/2015/02",
        "http://schemas.microsoft.com/3dmanufacturing/2013/01",
    )
)
MATERIAL = "http://schemas.microsoft.com/3dmanufacturing/material/2015/02"
PRODUCTION = "http://schemas.microsoft.com/3dmanufacturing/production/2015/06"
SLICE = "http://schemas.microsoft.com/3dmanufacturing/slice/2015/07"

UNITS: dict[str, Unit] = {
    "micron": "um",
    "millimeter": "mm",
    "centimeter": "cm",
    "meter": "m",
    "inch": "in",
    "foot": "ft",
}

PAINT = {
    "mmu_segmentation": "color",
    "paint_color": "color",
    "custom_seam": "seam",
    "paint_seam": "seam",
    "custom_supports": "supports",
    "paint_supports": "supports",
    "fuzzy_skin": "fuzzy skin",
    "paint_fuzzy_skin": "fuzzy skin",
    "paint_fuzzy": "fuzzy skin",
}
"""Local names of the attributes in which slicers keep the paint of a triangle: PrusaSlicer's have a prefix
(`slic3rpe:custom_seam`), those of BambuStudio and OrcaSlicer have none (`paint_seam`)."""

CURA = frozenset(f"cura:{key}_mesh" for key in ("infill", "cutting", "support", "anti_overhang")) | {"cura:extruder_nr"}
"""Names of an object's metadata by which Cura states that it is not printed, and its filament, counted from 0."""

MOST_PARTS = 100_000
"""Parts that a model may place, directly or through components."""

Int = NDArray[np.int64]


@dataclass(frozen=True)
class Base:
    """Base materials: names and display colours (k, 4)."""

    names: tuple[str, ...]
    colors: UInt8


@dataclass(frozen=True)
class Colors:
    """A colour group: (k, 4)."""

    colors: UInt8


@dataclass(frozen=True)
class TextureGroup:
    """Texture coordinates (k, 2), origin at the lower left, on one texture."""

    texture: int
    uv: Float64


@dataclass(frozen=True)
class Texture:
    """A picture in the package."""

    path: str
    tiles: tuple[str, str]
    filter: str = "auto"


@dataclass(frozen=True)
class Composite:
    """Mixtures of base materials: which of them, and how much of each in each mixture."""

    base: int
    members: tuple[int, ...]
    mixtures: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Multi:
    """Layers of property groups: their ids, how each but the first is blended, and (k, layers) indices."""

    groups: tuple[int, ...]
    blends: tuple[str, ...]
    indices: Int


Group = Base | Colors | TextureGroup | Composite | Multi


@dataclass
class Triangles:
    """A mesh: (n, 3) vertices, (m, 3) triangles, by row the property group (m,) and its indices (m, 3), or -1.

    paint: for each kind of slicer paint, whether a triangle has it (m,)
    """

    vertices: Float64
    triangles: NDArray[Any]
    group: NDArray[Any] | None = None
    index: NDArray[Any] | None = None
    paint: dict[str, NDArray[np.bool_]] = field(default_factory=dict)


@dataclass(frozen=True)
class Component:
    """An object placed in another, or in the build: matrix (4, 4) of column vectors."""

    object: int
    part: str | None
    matrix: Float64
    name: str = ""
    printable: bool = True


@dataclass
class Object:
    """A resource that can be placed.

    cura: what Cura's metadata states of it, see `CURA`
    """

    id: int
    kind: str = "model"
    name: str = ""
    group: int | None = None
    index: int = 0
    mesh: Triangles | None = None
    components: list[Component] = field(default_factory=list)
    cura: dict[str, str] = field(default_factory=dict)
    foreign: set[str] = field(default_factory=set)
    coarse: bool = False


@dataclass
class Document:
    """One model part."""

    part: str
    unit: Unit = "mm"
    objects: dict[int, Object] = field(default_factory=dict)
    groups: dict[int, Group] = field(default_factory=dict)
    textures: dict[int, Texture] = field(default_factory=dict)
    items: list[Component] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)
    required: dict[str, str] = field(default_factory=dict)
