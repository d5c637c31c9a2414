"""Scene model that readers create, operations change and writers write: numpy arrays in frozen dataclasses.

Arrays are read-only views. An operation creates new objects with `dataclasses.replace`. Parts share a mesh that
occurs several times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from meshhub.model.capabilities import HOST_FRAME, Feature, Frame

Float64 = NDArray[np.float64]
"""Array of positions, lengths or transforms."""

Float32 = NDArray[np.float32]
"""Array of normals or texture coordinates."""

Int32 = NDArray[np.int32]
"""Array of indices."""

UInt8 = NDArray[np.uint8]
"""Array of color components."""

Color = tuple[float, float, float, float]
"""Red, green, blue in sRGB encoding and alpha, each 0 to 1."""


def _freeze(values: Any, dtype: type[np.generic], shape: tuple[int | None, ...], name: str) -> Any:
    """Return a read-only, contiguous view of an array; None in `shape` allows any length.

    Raises:
        ValueError: The array has another shape; the message names it.
    """
    array = np.ascontiguousarray(values, dtype=dtype)
    if array.size == 0 and array.ndim == 1 and len(shape) == 2:
        array = array.reshape(0, shape[1] or 0)
    if array.ndim != len(shape) or any(
        expected is not None and expected != actual for expected, actual in zip(shape, array.shape, strict=True)
    ):
        expected_shape = "×".join("n" if side is None else str(side) for side in shape)
        raise ValueError(f"{name} must be an array of shape {expected_shape}, got {array.shape}")
    view: NDArray[Any] = array.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangle mesh.

    Vertices with several normals, texture coordinates or colors are duplicated.

    Attributes:
        vertices: (n, 3) float64 positions.
        faces: (m, 3) int32 vertex indices, counter-clockwise seen from outside.
        normals: (n, 3) float32 unit vectors, or None.
        uv: (n, 2) float32 texture coordinates, origin at the lower left of the image, or None.
        colors: (n, 4) uint8 sRGB colors with alpha, or None.
        face_material: (m,) int32 indices into the materials of the scene, -1 for the material of the part, or None.
        name: Name for people.
    Raises:
        ValueError: An array has another shape.
    """

    vertices: Float64
    faces: Int32
    normals: Float32 | None = None
    uv: Float32 | None = None
    colors: UInt8 | None = None
    face_material: Int32 | None = None
    name: str = ""

    def __post_init__(self) -> None:
        """Convert the arrays to read-only views of the declared types."""
        put = object.__setattr__
        put(self, "vertices", _freeze(self.vertices, np.float64, (None, 3), "vertices"))
        put(self, "faces", _freeze(self.faces, np.int32, (None, 3), "faces"))
        n, m = len(self.vertices), len(self.faces)
        if self.normals is not None:
            put(self, "normals", _freeze(self.normals, np.float32, (n, 3), "normals"))
        if self.uv is not None:
            put(self, "uv", _freeze(self.uv, np.float32, (n, 2), "uv"))
        if self.colors is not None:
            put(self, "colors", _freeze(self.colors, np.uint8, (n, 4), "colors"))
        if self.face_material is not None:
            put(self, "face_material", _freeze(self.face_material, np.int32, (m,), "face_material"))


@dataclass(frozen=True, eq=False)
class Part:
    """Placed instance of a mesh.

    Attributes:
        mesh: Index into the meshes of the scene.
        transform: (4, 4) float64 matrix for column vectors: `world = transform @ [x, y, z, 1]`.
        name: Name for people.
        path: Names of the groups that contain the part, outermost first.
        material: Index of the material of the faces without one; None for no material.
    Raises:
        ValueError: The matrix has another shape.
    """

    mesh: int
    transform: Float64 = field(default_factory=lambda: np.eye(4))
    name: str = ""
    path: tuple[str, ...] = ()
    material: int | None = None

    def __post_init__(self) -> None:
        """Convert the matrix to a read-only view."""
        object.__setattr__(self, "transform", _freeze(self.transform, np.float64, (4, 4), "transform"))


@dataclass(frozen=True)
class Material:
    """Surface appearance in the metallic-roughness model of glTF 2.0 §3.9.2.

    Attributes:
        name: Name for people.
        base_color: Color of the surface in sRGB, with alpha; multiplied by the image and by vertex colors.
        base_color_image: Index into the images of the scene, or None; likewise the other images.
        metallic: 0 (dielectric) to 1 (metal).
        roughness: 0 (smooth) to 1 (rough).
        metallic_roughness_image: Image with roughness in green and metallic in blue.
        normal_image: Tangent-space normal map.
        occlusion_image: Image with occlusion in red.
        emissive: Emitted color in sRGB.
        emissive_image: Image of the emitted color.
        alpha_mode: Whether alpha is ignored, compared with `alpha_cutoff`, or blended.
        alpha_cutoff: Least alpha that is visible in mode "mask".
        double_sided: Whether the back of the faces is visible.
        unlit: Whether the base color is shown without lighting (KHR_materials_unlit).
        wrap: Continuation of all images outside of 0 to 1, horizontally and vertically.
        filter: Interpolation between the pixels of all images.
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
        """Return the indices of the images that the material uses."""
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
    """Encoded image, unchanged from the source.

    Attributes:
        data: Content of the image file.
        media_type: Media type, such as "image/png".
        name: File name or label.
    """

    data: bytes
    media_type: str
    name: str = ""


@dataclass(frozen=True, eq=False)
class Scene:
    """Content of a model file.

    Attributes:
        meshes: Meshes, each once.
        parts: Placed instances of the meshes.
        materials: Materials that meshes and parts refer to.
        images: Images that materials refer to.
        frame: Unit and up axis of all coordinates.
        name: Name for people.
        metadata: Texts by name, such as author and license.
    """

    meshes: tuple[Mesh, ...]
    parts: tuple[Part, ...]
    materials: tuple[Material, ...] = ()
    images: tuple[Image, ...] = ()
    frame: Frame = HOST_FRAME
    name: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Convert sequences to tuples."""
        for name in ("meshes", "parts", "materials", "images"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @property
    def face_count(self) -> int:
        """The number of triangles; each instance counts."""
        return sum(len(self.meshes[part.mesh].faces) for part in self.parts)

    def features(self) -> frozenset[Feature]:
        """Return the features that the scene has. "units" is never among them: it is a property of files."""
        features: set[Feature] = set()
        placed = [self.meshes[part.mesh] for part in self.parts]
        if any(part.name or part.path for part in self.parts) or any(mesh.name for mesh in placed):
            features.add("names")
        if len({part.mesh for part in self.parts}) < len(self.parts):
            features.add("instances")
        if any(mesh.normals is not None for mesh in placed):
            features.add("normals")
        if any(mesh.uv is not None for mesh in placed):
            features.add("uv")
        if any(mesh.colors is not None for mesh in placed):
            features.add("colors")
        used = self.used_materials()
        if used:
            features.add("materials")
        if any(self.materials[index].images() for index in used):
            features.add("textures")
        return frozenset(features)

    def used_materials(self) -> tuple[int, ...]:
        """Return the indices of the materials that faces use, in ascending order."""
        used: set[int] = set()
        for part in self.parts:
            own = self.meshes[part.mesh].face_material
            if own is not None:
                used.update(np.unique(own).tolist())
            if part.material is not None and (own is None or bool((own < 0).any())):
                used.add(part.material)
        used.discard(-1)
        return tuple(sorted(used))
