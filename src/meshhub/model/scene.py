"""The data that flows from readers through operations to writers: numpy arrays in frozen dataclasses.

Nothing here changes in place: arrays are read-only views, and a step that changes something makes a
new object with `dataclasses.replace`. A mesh is held once however many parts place it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from meshhub.model.capabilities import HOST_FRAME, Feature, Frame

Float64 = NDArray[np.float64]
Float32 = NDArray[np.float32]
Int32 = NDArray[np.int32]
UInt8 = NDArray[np.uint8]

Color = tuple[float, float, float, float]
"""Red, green, blue in sRGB encoding and alpha, each 0 to 1."""


def _frozen(values: Any, dtype: type[np.generic], shape: tuple[int | None, ...], what: str) -> Any:
    array = np.ascontiguousarray(values, dtype=dtype)
    if array.size == 0 and array.ndim == 1 and len(shape) == 2:
        array = array.reshape(0, shape[1] or 0)
    if array.ndim != len(shape) or any(
        want is not None and want != have for want, have in zip(shape, array.shape, strict=True)
    ):
        wanted = "×".join("n" if side is None else str(side) for side in shape)
        raise ValueError(f"{what} must be an array of {wanted}, got {array.shape}")
    view: NDArray[Any] = array.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles over shared vertices. What is per vertex is duplicated at seams; faces are never cut apart.

    vertices:      (n, 3) float64
    faces:         (m, 3) int32, counter-clockwise seen from outside
    normals:       (n, 3) float32 or None, unit length
    uv:            (n, 2) float32 or None, origin at the lower left of the image
    colors:        (n, 4) uint8 or None, sRGB with alpha
    face_material: (m,) int32 or None, an index into the scene's materials, -1 for none
    """

    vertices: Float64
    faces: Int32
    normals: Float32 | None = None
    uv: Float32 | None = None
    colors: UInt8 | None = None
    face_material: Int32 | None = None
    name: str = ""

    def __post_init__(self) -> None:
        """Freeze the arrays; raises ValueError for a wrong shape."""
        put = object.__setattr__
        put(self, "vertices", _frozen(self.vertices, np.float64, (None, 3), "vertices"))
        put(self, "faces", _frozen(self.faces, np.int32, (None, 3), "faces"))
        n, m = len(self.vertices), len(self.faces)
        if self.normals is not None:
            put(self, "normals", _frozen(self.normals, np.float32, (n, 3), "normals"))
        if self.uv is not None:
            put(self, "uv", _frozen(self.uv, np.float32, (n, 2), "uv"))
        if self.colors is not None:
            put(self, "colors", _frozen(self.colors, np.uint8, (n, 4), "colors"))
        if self.face_material is not None:
            put(self, "face_material", _frozen(self.face_material, np.int32, (m,), "face_material"))


@dataclass(frozen=True, eq=False)
class Part:
    """One placed mesh.

    transform: (4, 4) float64, column vectors: `world = transform @ [x, y, z, 1]`
    path:      names of the groups above it, outermost first
    material:  this instance's own, for the faces that name none; an index, or None
    """

    mesh: int
    transform: Float64 = field(default_factory=lambda: np.eye(4))
    name: str = ""
    path: tuple[str, ...] = ()
    material: int | None = None

    def __post_init__(self) -> None:
        """Freeze the matrix; raises ValueError for a wrong shape."""
        object.__setattr__(self, "transform", _frozen(self.transform, np.float64, (4, 4), "transform"))


@dataclass(frozen=True)
class Material:
    """A surface, in the terms of glTF's metallic-roughness model.

    Image fields are indices into the scene's images. Colors are sRGB; `emissive` too. `wrap` (across, up) and `filter`
    hold for all images of the material: how they continue, and whether their pixels are blended or keep hard edges.
    """

    name: str = ""
    base_color: Color = (1.0, 1.0, 1.0, 1.0)
    base_color_image: int | None = None
    metallic: float = 0.0
    roughness: float = 1.0
    metallic_roughness_image: int | None = None
    normal_image: int | None = None
    occlusion_image: int | None = None
    emissive: tuple[float, float, float] = (0.0, 0.0, 0.0)
    emissive_image: int | None = None
    alpha_mode: Literal["opaque", "mask", "blend"] = "opaque"
    alpha_cutoff: float = 0.5
    double_sided: bool = False
    unlit: bool = False
    wrap: tuple[Literal["repeat", "clamp", "mirror"], Literal["repeat", "clamp", "mirror"]] = ("repeat", "repeat")
    filter: Literal["linear", "nearest"] = "linear"

    def images(self) -> tuple[int, ...]:
        """The indices of the images this material uses."""
        slots = (
            self.base_color_image,
            self.metallic_roughness_image,
            self.normal_image,
            self.occlusion_image,
            self.emissive_image,
        )
        return tuple(slot for slot in slots if slot is not None)


@dataclass(frozen=True)
class Image:
    """An encoded picture, as it came."""

    data: bytes
    media_type: str
    name: str = ""


@dataclass(frozen=True, eq=False)
class Scene:
    """Everything a file holds that meshhub carries; see the field types."""

    meshes: tuple[Mesh, ...]
    parts: tuple[Part, ...]
    materials: tuple[Material, ...] = ()
    images: tuple[Image, ...] = ()
    frame: Frame = HOST_FRAME
    name: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Turn sequences into tuples."""
        for name in ("meshes", "parts", "materials", "images"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @property
    def face_count(self) -> int:
        """Triangles, each instance counted."""
        return sum(len(self.meshes[part.mesh].faces) for part in self.parts)

    def features(self) -> frozenset[Feature]:
        """What the scene really holds beside its triangles (`units` is a file's matter, not a scene's)."""
        found: set[Feature] = set()
        placed = [self.meshes[part.mesh] for part in self.parts]
        if any(part.name or part.path for part in self.parts) or any(mesh.name for mesh in placed):
            found.add("names")
        if len({part.mesh for part in self.parts}) < len(self.parts):
            found.add("instances")
        if any(mesh.normals is not None for mesh in placed):
            found.add("normals")
        if any(mesh.uv is not None for mesh in placed):
            found.add("uv")
        if any(mesh.colors is not None for mesh in placed):
            found.add("colors")
        used = self.used_materials()
        if used:
            found.add("materials")
        if any(self.materials[index].images() for index in used):
            found.add("textures")
        return frozenset(found)

    def used_materials(self) -> tuple[int, ...]:
        """Indices of the materials that some face shows, ascending."""
        used: set[int] = set()
        for part in self.parts:
            own = self.meshes[part.mesh].face_material
            if own is not None:
                used.update(np.unique(own).tolist())
            if part.material is not None and (own is None or bool((own < 0).any())):
                used.add(part.material)
        used.discard(-1)
        return tuple(sorted(used))
