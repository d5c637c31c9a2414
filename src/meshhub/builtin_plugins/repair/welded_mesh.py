"""Representation of a mesh during its repair: faces over welded points, and the origin of each corner's attributes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from meshhub.model.scene import Float32, Float64, Int32, Mesh
from meshhub.toolkit.colors import has_color_seam
from meshhub.toolkit.columns import as_numpy, encode_rows
from meshhub.toolkit.geometry import face_normals, weld
from meshhub.toolkit.topology import first_members

MAX_FLOAT32_OFFSET_RATIO = 256.0
"""Distance from the origin per size; a mesh farther away would lose its shape in float32, and is not rounded."""


@dataclass(frozen=True, eq=False)
class WeldedMesh:
    """Faces over welded points.

    points:      (n, 3) float64, in the frame of the mesh
    faces:       (m, 3) int32 indices into `points`
    source:      (m, 3) int32 vertex of the original mesh that provides normal, UV and color of each corner
    parent:      (m,) int32 face of the original mesh that provides the material of each face
    is_original: (m,) bool, whether the face is its parent, and not a new one
    shell:       (m,) int32 shell of each face, 0…s-1 without gaps, as of the last step that labeled the shells
    """

    points: Float64
    faces: Int32
    source: Int32
    parent: Int32
    is_original: NDArray[np.bool_]
    shell: Int32

    @property
    def shell_count(self) -> int:
        """The number of labeled shells."""
        return int(self.shell.max(initial=-1)) + 1

    def with_shells(self, shell: Int32) -> WeldedMesh:
        """Return the mesh with other labels of its shells."""
        return replace(self, shell=shell)

    def keep_faces(self, kept: NDArray[Any]) -> WeldedMesh:
        """Return the mesh with some of its faces, by mask or index."""
        return replace(
            self,
            faces=self.faces[kept],
            source=self.source[kept],
            parent=self.parent[kept],
            is_original=self.is_original[kept],
            shell=self.shell[kept],
        )

    def flip_faces(self, flip: NDArray[np.bool_]) -> WeldedMesh:
        """Return the mesh with some of its faces flipped; the first corner stays the first."""
        if not flip.any():
            return self
        faces, source = self.faces.copy(), self.source.copy()
        faces[flip] = faces[flip][:, [0, 2, 1]]
        source[flip] = source[flip][:, [0, 2, 1]]
        return replace(self, faces=faces, source=source)

    def add_faces(self, faces: NDArray[Any], source: NDArray[Any], neighbor: NDArray[Any]) -> WeldedMesh:
        """Append new faces, each with the shell and the material of its `neighbor` (k,)."""
        return replace(
            self,
            faces=np.concatenate([self.faces, faces.astype(np.int32)]),
            source=np.concatenate([self.source, source.astype(np.int32)]),
            parent=np.concatenate([self.parent, self.parent[neighbor]]),
            is_original=np.concatenate([self.is_original, np.zeros(len(faces), np.bool_)]),
            shell=np.concatenate([self.shell, self.shell[neighbor]]),
        )


def round_points(points: Float64) -> NDArray[Any]:
    """Round points to float32, as most formats do; return them unchanged if rounding would change the shape."""
    size = float(np.ptp(points, axis=0).max(initial=0.0)) if len(points) else 0.0
    if float(np.abs(points).max(initial=0.0)) > MAX_FLOAT32_OFFSET_RATIO * size:
        return points
    return points.astype(np.float32)


def round_points_by_mesh(points: Float64, begin: NDArray[np.intp]) -> Float64:
    """Apply `round_points` to several meshes; mesh i has the points begin[i] to begin[i + 1], at least one."""
    low, high = np.minimum.reduceat(points, begin[:-1]), np.maximum.reduceat(points, begin[:-1])
    size, farthest = (high - low).max(axis=1), np.maximum(np.abs(low), np.abs(high)).max(axis=1)
    is_distant = np.repeat(farthest > MAX_FLOAT32_OFFSET_RATIO * size, np.diff(begin))
    with np.errstate(over="ignore"):  # only for distant points, which stay unchanged
        return np.where(is_distant[:, None], points, points.astype(np.float32))


def weld_mesh(mesh: Mesh) -> tuple[WeldedMesh, int]:
    """Weld a mesh at positions that are equal in float32.

    Returns:
        The welded mesh, and the number of vertices that duplicate another one with the same attributes.
    """
    first, index = weld(round_points(mesh.vertices))
    count = len(mesh.faces)
    surface = WeldedMesh(
        mesh.vertices[first],
        index[mesh.faces],
        mesh.faces,
        np.arange(count, dtype=np.int32),
        np.ones(count, np.bool_),
        np.zeros(count, np.int32),
    )
    return surface, count_duplicate_vertices(mesh, len(first))


def count_duplicate_vertices(mesh: Mesh, points: int) -> int:
    """Count the vertices that duplicate another one with the same attributes, in a mesh with `points` positions."""
    count = len(mesh.vertices) - points
    if count and _list_attributes(mesh):
        count = len(mesh.vertices) - int(_label_equal_vertices(mesh).max()) - 1
    return count


def reweld(surface: WeldedMesh) -> WeldedMesh:
    """Weld the points again that share a position in float32."""
    first, index = weld(round_points(surface.points))
    return replace(surface, points=surface.points[first], faces=index[surface.faces])


def _list_attributes(mesh: Mesh) -> list[NDArray[Any]]:
    return [attribute for attribute in (mesh.normals, mesh.uv, mesh.colors) if attribute is not None]


def _label_equal_vertices(mesh: Mesh) -> Int32:
    """Return a label for each vertex: equal for the same position and attributes."""
    columns = [round_points(mesh.vertices), *_list_attributes(mesh)]
    return weld(np.concatenate([column.astype(np.float64) for column in columns], axis=1))[1]


def to_mesh(surface: WeldedMesh, mesh: Mesh) -> Mesh:
    """Convert a welded mesh to a mesh, with one vertex per point and set of attributes.

    Normals of flipped faces are flipped, and new faces get their own normals, if the mesh has normals. A new face has
    the texture coordinates of one corner: between corners of different charts, it would show other parts of the image.
    At a seam between colors, it has the color of one corner.

    Args:
        surface: Result of the repair.
        mesh: Mesh before the repair, which provides the attributes.
    """
    corner = surface.faces.ravel()
    if mesh.uv is not None or crosses_color_seam(surface, mesh):
        source = np.where(surface.is_original[:, None], surface.source, surface.source[:, :1])
        surface = replace(surface, source=source)
    if not _list_attributes(mesh):
        used = np.zeros(len(surface.points), np.bool_)
        used[corner] = True
        faces = (np.cumsum(used, dtype=np.int32) - np.int32(1))[corner].reshape(-1, 3)
        vertices, origin = surface.points[used], None
    else:
        first, faces = _choose_vertices(surface, mesh)
        vertices, origin = surface.points[corner[first]], surface.source.ravel()[first]
    normals = mesh.normals
    if normals is not None:
        normals = _update_normals(normals[origin], vertices, faces, surface.is_original)
    return replace(
        mesh,
        vertices=vertices,
        faces=faces,
        normals=normals,
        uv=None if mesh.uv is None else mesh.uv[origin],
        colors=None if mesh.colors is None else mesh.colors[origin],
        face_material=None if mesh.face_material is None else mesh.face_material[surface.parent],
    )


def crosses_color_seam(surface: WeldedMesh, mesh: Mesh) -> bool:
    """Return whether new faces have a point where vertices have different colors."""
    if mesh.colors is None or surface.is_original.all():
        return False
    at_new = np.zeros(len(surface.points), np.bool_)
    at_new[surface.faces[~surface.is_original]] = True
    corner = np.flatnonzero(at_new[surface.faces.ravel()])
    return has_color_seam(mesh.colors[surface.source.ravel()[corner]], surface.faces.ravel()[corner])


def _choose_vertices(surface: WeldedMesh, mesh: Mesh) -> tuple[NDArray[np.intp], Int32]:
    """Return the corners that become vertices, one per point and set of attributes, and the faces over them."""
    # with normals, new faces do not share vertices with original ones
    is_new = np.repeat(~surface.is_original, 3) if mesh.normals is not None else 0
    label = _label_equal_vertices(mesh)[surface.source.ravel()].astype(np.int64)
    key = (label * len(surface.points) + surface.faces.ravel()) * 2 + is_new
    index = as_numpy(encode_rows(pa.array(key)).indices)
    return first_members(index, int(index.max(initial=-1)) + 1), index.reshape(-1, 3)


def _update_normals(normals: Float32, vertices: Float64, faces: Int32, is_original: NDArray[np.bool_]) -> Float32:
    """Flip the normals that are opposite to their faces, and compute the normals of new faces."""
    computed = point_normals(vertices, faces)
    is_opposite = (normals * computed).sum(axis=1) < 0
    is_new = np.zeros(len(vertices), np.bool_)
    is_new[faces[~is_original]] = True
    flipped = np.where(is_opposite[:, None], -normals, normals)
    return np.where(is_new[:, None], computed, flipped).astype(np.float32)


def point_normals(points: Float64, faces: Int32) -> Float64:
    """Compute the unit normals of points, weighted by the areas of their faces; zero where they cancel out."""
    normal = face_normals(points, faces)
    total = np.stack(
        [np.bincount(faces.ravel(), np.repeat(normal[:, axis], 3), minlength=len(points)) for axis in range(3)],
        axis=1,
    )
    length = np.linalg.norm(total, axis=1, keepdims=True)
    unit: Float64 = np.divide(total, length, out=np.zeros_like(total), where=length > 0)
    return unit
