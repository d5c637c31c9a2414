"""The form in which a mesh is repaired: faces over welded points, and where each corner's attributes come from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from meshhub.columns import as_numpy
from meshhub.geometry import face_normals, weld
from meshhub.scene import Float32, Float64, Int32, Mesh
from meshhub.topology import first_members

FAR_OFF = 256.0
"""A mesh further from the origin than this many times its size would lose its shape in float32."""


@dataclass(frozen=True, eq=False)
class Surface:
    """Faces over welded points.

    points: (n, 3) float64
    faces:  (m, 3) int32, into the points
    source: (m, 3) int32, the vertex of the mesh whose normal, UV and colour a corner shows
    parent: (m,) int32, the face of the mesh whose material a face shows
    own:    (m,) bool, whether a face is that face of the mesh, and not one made anew
    shell:  (m,) int32, the shell of a face, 0…, all of them in use; as the last step that counted them left it
    """

    points: Float64
    faces: Int32
    source: Int32
    parent: Int32
    own: NDArray[np.bool_]
    shell: Int32

    @property
    def shells(self) -> int:
        """How many shells the faces are labelled with."""
        return int(self.shell.max(initial=-1)) + 1

    def keep(self, kept: NDArray[Any]) -> Surface:
        """The surface with some of its faces, by mask or index."""
        return replace(
            self,
            faces=self.faces[kept],
            source=self.source[kept],
            parent=self.parent[kept],
            own=self.own[kept],
            shell=self.shell[kept],
        )

    def flip(self, turned: NDArray[np.bool_]) -> Surface:
        """The surface with some of its faces turned over; their first corner stays the first."""
        if not turned.any():
            return self
        faces, source = self.faces.copy(), self.source.copy()
        faces[turned] = faces[turned][:, [0, 2, 1]]
        source[turned] = source[turned][:, [0, 2, 1]]
        return replace(self, faces=faces, source=source)

    def add(self, faces: NDArray[Any], source: NDArray[Any], beside: NDArray[Any]) -> Surface:
        """The surface with new faces at its end, each in the shell and of the material of the one `beside` it."""
        return replace(
            self,
            faces=np.concatenate([self.faces, faces.astype(np.int32)]),
            source=np.concatenate([self.source, source.astype(np.int32)]),
            parent=np.concatenate([self.parent, self.parent[beside]]),
            own=np.concatenate([self.own, np.zeros(len(faces), np.bool_)]),
            shell=np.concatenate([self.shell, self.shell[beside]]),
        )


def rounded(points: Float64) -> NDArray[Any]:
    """The points as the files that hold float32 will have them, where that leaves the shape intact."""
    size = float(np.ptp(points, axis=0).max(initial=0.0)) if len(points) else 0.0
    if float(np.abs(points).max(initial=0.0)) > FAR_OFF * size:
        return points
    return points.astype(np.float32)


def rounded_each(points: Float64, begin: NDArray[np.intp]) -> Float64:
    """The same for the points of several things, those from begin[i] to begin[i + 1], none of them without any."""
    low, high = np.minimum.reduceat(points, begin[:-1]), np.maximum.reduceat(points, begin[:-1])
    size, furthest = (high - low).max(axis=1), np.maximum(np.abs(low), np.abs(high)).max(axis=1)
    far = np.repeat(furthest > FAR_OFF * size, np.diff(begin))
    with np.errstate(over="ignore"):  # of those alone that stay as they are
        return np.where(far[:, None], points, points.astype(np.float32))


def opened(mesh: Mesh) -> tuple[Surface, int]:
    """A mesh as a surface over the points that differ in float32, and how many vertices say the same as another."""
    first, index = weld(rounded(mesh.vertices))
    count = len(mesh.faces)
    surface = Surface(
        mesh.vertices[first],
        index[mesh.faces],
        mesh.faces,
        np.arange(count, dtype=np.int32),
        np.ones(count, np.bool_),
        np.zeros(count, np.int32),
    )
    return surface, said_twice(mesh, len(first))


def said_twice(mesh: Mesh, points: int) -> int:
    """How many vertices say the same as another, given at how many different points they are."""
    merged = len(mesh.vertices) - points
    if merged and _attributes(mesh):
        merged = len(mesh.vertices) - int(_alike(mesh).max()) - 1
    return merged


def rewelded(surface: Surface) -> Surface:
    """The surface with points that share a position joined again."""
    first, index = weld(rounded(surface.points))
    return replace(surface, points=surface.points[first], faces=index[surface.faces])


def _attributes(mesh: Mesh) -> list[NDArray[Any]]:
    return [each for each in (mesh.normals, mesh.uv, mesh.colors) if each is not None]


def _alike(mesh: Mesh) -> Int32:
    """The vertices' names, the same for those with one position and the same attributes."""
    columns = [rounded(mesh.vertices), *_attributes(mesh)]
    return weld(np.concatenate([column.astype(np.float64) for column in columns], axis=1))[1]


def closed(surface: Surface, mesh: Mesh) -> Mesh:
    """A surface as a mesh again: a vertex for each point with the attributes that its corners show.

    Where the mesh has normals, those of turned faces are turned too, and faces made anew get their own.
    """
    corner = surface.faces.ravel()
    if not _attributes(mesh):
        used = np.zeros(len(surface.points), np.bool_)
        used[corner] = True
        faces = (np.cumsum(used, dtype=np.int32) - np.int32(1))[corner].reshape(-1, 3)
        vertices, shown = surface.points[used], None
    else:
        first, faces = _distinct(surface, mesh)
        vertices, shown = surface.points[corner[first]], surface.source.ravel()[first]
    normals = mesh.normals
    if normals is not None:
        normals = _facing(normals[shown], vertices, faces, surface.own)
    return replace(
        mesh,
        vertices=vertices,
        faces=faces,
        normals=normals,
        uv=None if mesh.uv is None else mesh.uv[shown],
        colors=None if mesh.colors is None else mesh.colors[shown],
        face_material=None if mesh.face_material is None else mesh.face_material[surface.parent],
    )


def _distinct(surface: Surface, mesh: Mesh) -> tuple[NDArray[np.intp], Int32]:
    """Which corners become vertices, and the faces over them: one for each point, attributes and kind of face."""
    made = np.repeat(~surface.own, 3) if mesh.normals is not None else 0
    key = (
        _alike(mesh)[surface.source.ravel()].astype(np.int64) * len(surface.points) + surface.faces.ravel()
    ) * 2 + made
    coded = as_numpy(pa.array(key).dictionary_encode().indices)
    return first_members(coded, int(coded.max(initial=-1)) + 1), coded.reshape(-1, 3)


def _facing(normals: Float32, vertices: Float64, faces: Int32, own: NDArray[np.bool_]) -> Float32:
    """The normals on the side that the faces look to; new faces' own ones from their geometry."""
    shown = point_normals(vertices, faces)
    against = (normals * shown).sum(axis=1) < 0
    made = np.zeros(len(vertices), np.bool_)
    made[faces[~own]] = True
    return np.where(made[:, None], shown, np.where(against[:, None], -normals, normals)).astype(np.float32)


def point_normals(points: Float64, faces: Int32) -> Float64:
    """The unit normals of the points, faces weighed by area; zero where they cancel out."""
    normal = face_normals(points, faces)
    total = np.stack(
        [np.bincount(faces.ravel(), np.repeat(normal[:, axis], 3), minlength=len(points)) for axis in range(3)],
        axis=1,
    )
    length = np.linalg.norm(total, axis=1, keepdims=True)
    unit: Float64 = np.divide(total, length, out=np.zeros_like(total), where=length > 0)
    return unit
