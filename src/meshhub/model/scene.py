"""Scene model that readers create, operations change and writers write: numpy arrays in frozen dataclasses.

Arrays are read-only views. An operation creates new objects with `dataclasses.replace`. Parts share a mesh that
occurs several times.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from meshhub.model import display
from meshhub.model.capabilities import HOST_FRAME, Feature, Frame
from meshhub.model.notes import Note
from meshhub.model.source import Source

Float64 = NDArray[np.float64]
"""Array of positions, lengths or transforms."""

Float32 = NDArray[np.float32]
"""Array of normals or texture coordinates."""

Int32 = NDArray[np.int32]
"""Array of indices."""

UInt8 = NDArray[np.uint8]
"""Array of color components."""

Array = TypeVar("Array", bound=NDArray[Any])

Color = tuple[float, float, float, float]
"""Red, green, blue in sRGB encoding and alpha, each 0 to 1."""


DESCRIPTIONS = ("Title", "Designer", "Description", "Copyright", "LicenseTerms", "Rating")
"""Names of metadata that describe the model (3MF core §3.4.1); all others, such as dates, describe the file."""


class InvalidIndex(ValueError):
    """A face refers to a vertex that does not exist."""


def read_only(array: Array) -> Array:
    """Give an array away: make it read-only, so that meshes share it instead of copying it."""
    array.flags.writeable = False
    return array


def _freeze(values: Any, dtype: type[np.generic], shape: tuple[int | None, ...], name: str) -> Any:
    """Return a read-only, contiguous view of an array; None in `shape` allows any length.

    A writable array is copied, because its owner may change it later.

    Raises:
        ValueError: The array has another shape; the message names it.
    """
    array = np.ascontiguousarray(values, dtype=dtype)
    if isinstance(values, np.ndarray) and values.flags.writeable and np.may_share_memory(array, values):
        array = array.copy()
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
class Division:
    """Triangles that contain the faces of a mesh, for formats with paint inside triangles; the faces divide each
    triangle into pieces of one color.
    """

    triangles: Int32
    """(c, 3) int32 vertex indices of the triangles, counter-clockwise; the faces cover them exactly."""

    owner: Int32
    """(m,) int32 indices of the triangles that contain the faces."""

    def __post_init__(self) -> None:
        """Convert the arrays to read-only views of the declared types."""
        object.__setattr__(self, "triangles", _freeze(self.triangles, np.int32, (None, 3), "triangles"))
        object.__setattr__(self, "owner", _freeze(self.owner, np.int32, (None,), "owner"))


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangle mesh.

    Vertices with several normals, texture coordinates or colors are duplicated. Arrays that are writable are copied;
    the mesh shares read-only arrays with the caller.

    Raises:
        ValueError: An array has another shape.
        InvalidIndex: A face refers to a vertex that does not exist; a ValueError.
    """

    vertices: Float64
    """(n, 3) float64 positions."""

    faces: Int32
    """(m, 3) int32 vertex indices, counter-clockwise seen from outside."""

    normals: Float32 | None = None
    """(n, 3) float32 unit vectors, or None."""

    uv: Float32 | None = None
    """(n, 2) float32 texture coordinates, origin at the lower left of the image, or None."""

    colors: UInt8 | None = None
    """(n, 4) uint8 sRGB colors with alpha, or None."""

    face_material: Int32 | None = None
    """(m,) int32 indices into the materials of the scene, -1 for the material of the part, or None."""

    name: str = ""
    """Name for people."""

    division: Division | None = field(default=None, init=False)
    """Triangles before their division into faces; `dataclasses.replace` drops it, because the faces may change."""

    def __post_init__(self) -> None:
        """Convert the arrays to read-only views of the declared types."""
        put = object.__setattr__
        put(self, "vertices", _freeze(self.vertices, np.float64, (None, 3), "vertices"))
        put(self, "faces", _freeze(self.faces, np.int32, (None, 3), "faces"))
        n, m = len(self.vertices), len(self.faces)
        # negative indices are huge as unsigned numbers, so one pass finds them and indices that are too large
        if m and self.faces.view(np.uint32).max() >= n:
            raise InvalidIndex(
                f"faces have indices from {self.faces.min()} to {self.faces.max()}, but there are {n} vertices"
            )
        if self.normals is not None:
            put(self, "normals", _freeze(self.normals, np.float32, (n, 3), "normals"))
        if self.uv is not None:
            put(self, "uv", _freeze(self.uv, np.float32, (n, 2), "uv"))
        if self.colors is not None:
            put(self, "colors", _freeze(self.colors, np.uint8, (n, 4), "colors"))
        if self.face_material is not None:
            put(self, "face_material", _freeze(self.face_material, np.int32, (m,), "face_material"))

    def __repr__(self) -> str:
        """Describe the mesh in one line, because its arrays would fill the screen."""
        attributes = ("normals", "uv", "colors", "face_material")
        present = [name for name in attributes if getattr(self, name) is not None]
        named = [f"name={self.name!r}"] if self.name else []
        return f"Mesh({', '.join([f'{len(self.vertices)} vertices', f'{len(self.faces)} faces', *present, *named])})"

    def with_division(self, division: Division | None) -> Mesh:
        """Return the mesh with the triangles that exactly these faces divide."""
        mesh = copy.copy(self)
        object.__setattr__(mesh, "division", division)
        return mesh


@dataclass(frozen=True, eq=False)
class Part:
    """Placed instance of a mesh.

    Raises:
        ValueError: The matrix has another shape.
    """

    mesh: int
    """Index into the meshes of the scene."""

    transform: Float64 = field(default_factory=lambda: np.eye(4))
    """(4, 4) float64 matrix for column vectors: `world = transform @ [x, y, z, 1]`."""

    name: str = ""
    """Name for people."""

    path: tuple[str, ...] = ()
    """Names of the groups that contain the part, outermost first."""

    material: int | None = None
    """Index of the material of faces that have no material themselves; None for no material."""

    plate: int = 0
    """Number of the bed on which the part is printed, from 0; formats without beds do not keep it."""

    def __post_init__(self) -> None:
        """Convert the matrix to a read-only view."""
        object.__setattr__(self, "transform", _freeze(self.transform, np.float64, (4, 4), "transform"))


@dataclass(frozen=True)
class Material:
    """Surface appearance in the metallic-roughness model of glTF 2.0 §3.9.2."""

    name: str = ""
    """Name for people."""

    base_color: Color = (1.0, 1.0, 1.0, 1.0)
    """Color of the surface in sRGB, with alpha; multiplied by the image and by vertex colors."""

    base_color_image: int | None = None
    """Index into the images of the scene, or None; likewise the other images."""

    metallic: float = 0.0
    """0 (dielectric) to 1 (metal)."""

    roughness: float = 1.0
    """0 (smooth) to 1 (rough)."""

    metallic_roughness_image: int | None = None
    """Image with roughness in green and metallic in blue."""

    normal_image: int | None = None
    """Tangent-space normal map."""

    occlusion_image: int | None = None
    """Image with occlusion in red."""

    emissive: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Emitted color in sRGB."""

    emissive_image: int | None = None
    """Image of the emitted color."""

    alpha_mode: Literal["opaque", "mask", "blend"] = "opaque"
    """Whether alpha is ignored, compared with `alpha_cutoff`, or blended."""

    alpha_cutoff: float = 0.5
    """Least alpha that is visible in mode "mask"."""

    double_sided: bool = False
    """Whether the back of the faces is visible."""

    unlit: bool = False
    """Whether the base color is shown without lighting (KHR_materials_unlit)."""

    wrap: tuple[Literal["repeat", "clamp", "mirror"], Literal["repeat", "clamp", "mirror"]] = ("repeat", "repeat")
    """Wrap mode of all images outside 0 to 1, horizontally and vertically."""

    filter: Literal["linear", "nearest"] = "linear"
    """Interpolation between the pixels of all images."""

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
    """Encoded image, unchanged from the source."""

    data: bytes
    """Content of the image file."""

    media_type: str
    """Media type, such as "image/png"."""

    name: str = ""
    """File name or label."""

    def __repr__(self) -> str:
        """Describe the image in one line, without its content."""
        return f"Image({self.media_type!r}, {len(self.data)} bytes, name={self.name!r})"


@dataclass(frozen=True, eq=False)
class Project:
    """File of which a scene is only a part; a writer of the same format can keep all of it for an unchanged scene."""

    format: str
    """Id of the format."""

    kinds: tuple[str, ...]
    """Programs that open the file, by the names that its writer uses."""

    source: Source
    """The file."""

    notes: tuple[Note, ...] = ()
    """Notes on the content that is not in the scene; they are reported if the project is not kept."""


@dataclass(frozen=True, eq=False)
class Scene:
    """Content of a model file."""

    meshes: tuple[Mesh, ...]
    """Meshes, each once."""

    parts: tuple[Part, ...]
    """Placed instances of the meshes."""

    materials: tuple[Material, ...] = ()
    """Materials that meshes and parts refer to."""

    images: tuple[Image, ...] = ()
    """Images that materials refer to."""

    frame: Frame | None = None
    """Unit and up axis of all coordinates; None: the frame that the reader declares, otherwise millimeters, Z up."""

    name: str = ""
    """Name for people."""

    metadata: Mapping[str, str] = field(default_factory=dict)
    """Texts by name, such as author and license."""

    project: Project | None = field(default=None, init=False)
    """Project that holds exactly this scene; `dataclasses.replace` drops it, because it makes a different scene."""

    def __post_init__(self) -> None:
        """Convert sequences to tuples."""
        for name in ("meshes", "parts", "materials", "images"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    def __repr__(self) -> str:
        """Describe the scene in one line."""
        counts = {
            ("mesh", "meshes"): self.meshes,
            ("part", "parts"): self.parts,
            ("material", "materials"): self.materials,
            ("image", "images"): self.images,
        }
        words = [f"{len(items)} {nouns[len(items) > 1]}" for nouns, items in counts.items() if items]
        frame = self.frame or HOST_FRAME
        return f"Scene({', '.join([*words, f'{self.face_count} faces', f'{frame.unit}, {frame.up} up'])})"

    def _repr_html_(self) -> str:
        """Describe the scene for notebooks, with a picture."""
        return display.describe_scene(self)

    @property
    def face_count(self) -> int:
        """The number of triangles; each instance counts."""
        return sum(len(self.meshes[part.mesh].faces) for part in self.parts)

    def features(self) -> frozenset[Feature]:
        """Return the features that the scene has; never "units", which is a property of files."""
        features: set[Feature] = set()
        placed = [self.meshes[part.mesh] for part in self.parts]
        if any(part.name for part in self.parts) or any(mesh.name for mesh in placed):
            features.add("names")
        if any(part.path for part in self.parts):
            features.add("hierarchy")
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
        if any(self.metadata.get(name) for name in DESCRIPTIONS):
            features.add("metadata")
        return frozenset(features)

    def with_project(self, project: Project | None) -> Scene:
        """Return the scene with its project, which holds exactly this scene."""
        scene = copy.copy(self)
        object.__setattr__(scene, "project", project)
        return scene

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
