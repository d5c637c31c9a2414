"""Content of one model part of a package: resources, build items, metadata."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.model.capabilities import Unit
from meshhub.model.scene import Float64, Int32, UInt8

CORE = frozenset(
    (
        "",
        "http://schemas.microsoft.com/3dmanufacturing/core/2015/02",
        "http://schemas.microsoft.com/3dmanufacturing/2013/01",
    )
)
MATERIAL = "http://schemas.microsoft.com/3dmanufacturing/material/2015/02"
PRODUCTION = "http://schemas.microsoft.com/3dmanufacturing/production/2015/06"
BEAM_LATTICE = "http://schemas.microsoft.com/3dmanufacturing/beamlattice/2017/02"
BALLS = "http://schemas.microsoft.com/3dmanufacturing/beamlattice/balls/2020/07"
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
"""Kind of paint for each triangle attribute of slicers, by local name: PrusaSlicer writes a prefix
(`slic3rpe:custom_seam`), BambuStudio and OrcaSlicer do not (`paint_seam`)."""

CURA = "http://software.ultimaker.com/xml/cura/3mf/2015/10"
"""Namespace of the settings of Cura."""

CURA_KEYS = frozenset(f"cura:{key}_mesh" for key in ("infill", "cutting", "support", "anti_overhang")) | {
    "cura:extruder_nr"
}
"""Object metadata in which Cura states that an object is not printed, and its filament, counted from 0."""

MAX_PARTS_COUNT = 100_000
"""Maximum parts of a scene, placed directly or through components; small files could place billions."""

Int64 = NDArray[np.int64]


@dataclass(frozen=True)
class BaseMaterials:
    """Base materials: names and display colors (k, 4)."""

    names: tuple[str, ...]
    colors: UInt8


@dataclass(frozen=True)
class ColorGroup:
    """Color group: (k, 4) colors."""

    colors: UInt8


@dataclass(frozen=True)
class TextureGroup:
    """Texture coordinates (k, 2) on one texture, origin at the lower left."""

    texture: int
    uv: Float64


@dataclass(frozen=True)
class TextureResource:
    """Image in the package, its tile styles along u and v, and its filter."""

    path: str
    tile_styles: tuple[str, str]
    filter: str = "auto"


@dataclass(frozen=True)
class CompositeMaterials:
    """Mixtures of base materials.

    base:     group of the base materials
    members:  base materials that are mixed
    mixtures: share of each member, for each mixture
    """

    base: int
    members: tuple[int, ...]
    mixtures: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class MultiProperties:
    """Layers of property groups.

    groups:  ids of the groups
    blends:  blend method of each group but the first
    indices: (k, layers) properties
    """

    groups: tuple[int, ...]
    blends: tuple[str, ...]
    indices: Int64


PropertyGroup = BaseMaterials | ColorGroup | TextureGroup | CompositeMaterials | MultiProperties


@dataclass
class TriangleMesh:
    """Mesh of an object.

    vertices:  (n, 3)
    triangles: (m, 3) vertex indices
    group:     (m,) property groups, -1 for none
    index:     (m, 3) properties of the corners, -1 for none
    paint:     (m,) paint of the triangles for each kind, as index into the `paint_codes` of the document; 0 for none
    filament:  (m,) filaments that a slicer assigns to volumes, from 1; 0 for none
    """

    vertices: Float64
    triangles: NDArray[Any]
    group: NDArray[Any] | None = None
    index: NDArray[Any] | None = None
    paint: dict[str, NDArray[np.int32]] = field(default_factory=dict)
    filament: NDArray[np.int32] | None = None

    def joined(self, vertices: Float64, faces: Int32) -> TriangleMesh:
        """Return the mesh with further triangles, which have the appearance of the object."""
        count = len(faces)
        # without triangles, no face uses the vertices
        own = self.vertices if len(self.triangles) else self.vertices[:0]

        def pad(values: NDArray[Any], fill: int) -> NDArray[Any]:
            return np.concatenate([values, np.full((count, *values.shape[1:]), fill, values.dtype)])

        return TriangleMesh(
            np.concatenate([own, vertices]),
            np.concatenate([self.triangles, faces + len(own)]),
            None if self.group is None else pad(self.group, -1),
            None if self.index is None else pad(self.index, -1),
            {kind: pad(codes, 0) for kind, codes in self.paint.items()},
            None if self.filament is None else pad(self.filament, 0),
        )


@dataclass
class BeamLattice:
    """Beams and balls of an object, as in the file.

    radius, ball_radius: of beams and balls without one
    ball_mode:           "mixed" for balls that are listed, "all" for all ends of beams, otherwise none
    is_round:            whether the ends of beams are round unless they say otherwise
    min_length:          length from which a beam counts
    clipping:            "inside" or "outside", which part of the lattice stays; otherwise all
    clip_object:         id of the object that clips it
    has_properties:      whether beams have colors of their own
    beams:               two vertices, two radii, and whether each end is round, one after the other
    balls:               vertex and radius, one after the other
    """

    radius: float
    ball_radius: float
    ball_mode: str
    is_round: bool
    min_length: float
    clipping: str
    clip_object: int | None
    has_properties: bool
    beams: array[float] = field(default_factory=lambda: array("d"))
    balls: array[float] = field(default_factory=lambda: array("d"))

    @property
    def count(self) -> int:
        """The number of beams and balls."""
        return len(self.beams) // 6 + len(self.balls) // 2


@dataclass(frozen=True)
class ObjectPlacement:
    """Component or build item: an object of this or another model part, placed by a (4, 4) matrix.

    filament: filament of the volume that a slicer makes of a component; 0 for that of the object, None without a volume
    """

    object: int
    part: str | None
    matrix: Float64
    name: str = ""
    is_printable: bool = True
    filament: int | None = None


@dataclass
class ModelObject:
    """Object resource.

    group, index:      property of the triangles without one
    cura:              metadata with one of CURA_KEYS
    lattice:           beams that have no triangles yet
    foreign:           namespaces of extension elements in the object
    has_slices:        slices store its shape, too
    is_low_resolution: the slices are finer than the mesh
    """

    id: int
    kind: str = "model"
    name: str = ""
    group: int | None = None
    index: int = 0
    mesh: TriangleMesh | None = None
    lattice: BeamLattice | None = None
    components: list[ObjectPlacement] = field(default_factory=list)
    cura: dict[str, str] = field(default_factory=dict)
    foreign: set[str] = field(default_factory=set)
    has_slices: bool = False
    is_low_resolution: bool = False

    @property
    def has_surface(self) -> bool:
        """Whether the object has triangles, or a lattice that becomes triangles."""
        return self.lattice is not None or (self.mesh is not None and len(self.mesh.triangles) > 0)


@dataclass
class ModelDocument:
    """Content of one model part.

    required:    namespace of each required extension, by prefix
    paint_codes: different texts of slicer paint; the first one is empty
    """

    part: str
    unit: Unit = "mm"
    objects: dict[int, ModelObject] = field(default_factory=dict)
    groups: dict[int, PropertyGroup] = field(default_factory=dict)
    textures: dict[int, TextureResource] = field(default_factory=dict)
    items: list[ObjectPlacement] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)
    required: dict[str, str] = field(default_factory=dict)
    paint_codes: list[bytes] = field(default_factory=list)
