"""Fast reduction for display: merge the vertices in each cell of a grid. Quality and topology do not matter."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64, Mesh, Scene
from meshhub.toolkit.geometry import IntIndex

_MAX_CELLS_PER_SIDE = 2048
"""Finest grid to try; its triangles are below a pixel on every screen."""

_MAX_SAMPLE_COUNT = 100_000
"""Triangles in the sample by which a grid is chosen; only the grids that are tried at the end count all triangles. """

_SEARCH_STEPS = 9
"""Halvings of the interval of grids; the last one changes the number of triangles by about 3 %."""

_SHRINK_RATIO = 0.93
"""Factor by which the resolution of a grid is reduced if it leaves too many triangles in spite of the sample."""

_UV_CELLS = 32
"""Cells per side of the texture; only vertices in the same one are merged, so that the sides of seams stay apart. """

_AXIS_BITS = 21
"""Bits of a cell's number along one axis, so that three fit into 63 bits."""


@dataclass(frozen=True, eq=False)
class _Soup:
    """Meshes that parts use, in one array, each scaled as its largest part is.

    vertices: (n, 3) positions from the lowest corner of their mesh
    faces:    (m, 3) indices into `vertices`
    weight:   (m,) number of parts that show the face
    extent:   longest side of a mesh
    first_vertex, first_face: (k + 1,) where each mesh begins
    """

    vertices: Float64
    faces: NDArray[np.int64]
    weight: IntIndex
    extent: float
    first_vertex: IntIndex
    first_face: IntIndex

    def cells(self, per_side: float) -> NDArray[np.int64]:
        """Return the (n,) cell of each vertex in a grid with `per_side` cells along the longest side."""
        number = (self.vertices * (per_side / self.extent)).astype(np.int64)
        return number[:, 0] | number[:, 1] << _AXIS_BITS | number[:, 2] << 2 * _AXIS_BITS


def reduce_for_display(scene: Scene, max_faces: int) -> Scene:
    """Return a scene of at most `max_faces` triangles, each instance counted, that looks similar.

    Normals are left out of a reduced scene. Materials, texture coordinates and colors stay.

    Args:
        scene: Any frame.
        max_faces: Maximum number of triangles of all parts; at least one per part must fit.
    Returns:
        The scene itself if it has no more triangles.
    Source:
        Rossignac and Borrel, "Multi-resolution 3D approximations for rendering complex scenes", 1993.
    """
    if scene.face_count <= max_faces:
        return scene
    soup = _join(scene)
    if soup.extent > 0:
        cells = soup.cells(per_side := _choose_resolution(soup, max_faces))
        while 0 < max_faces < _count(soup, cells):
            per_side *= _SHRINK_RATIO
            cells = soup.cells(per_side)
        if _count(soup, cells):
            meshes = (_cluster(mesh, *_slice(soup, cells, index)) for index, mesh in enumerate(scene.meshes))
            return replace(scene, meshes=tuple(meshes))
    # no grid keeps a triangle, so some of them are shown unchanged
    stride = -(-scene.face_count // max_faces)
    return replace(scene, meshes=tuple(_select(mesh, np.arange(0, len(mesh.faces), stride)) for mesh in scene.meshes))


def _join(scene: Scene) -> _Soup:
    scales, weights = np.zeros(len(scene.meshes)), np.zeros(len(scene.meshes), np.intp)
    for part in scene.parts:
        scale = float(np.linalg.norm(part.transform[:3, :3], axis=0).max())
        scales[part.mesh] = max(scales[part.mesh], scale)
        weights[part.mesh] += 1
    first_vertex = np.cumsum([0, *(len(mesh.vertices) for mesh in scene.meshes)])
    first_face = np.cumsum([0, *(len(mesh.faces) for mesh in scene.meshes)])
    vertices = np.concatenate(
        [
            (mesh.vertices - mesh.vertices.min(axis=0, initial=np.inf)) * scale
            for mesh, scale in zip(scene.meshes, scales, strict=True)
        ]
    )
    faces = np.concatenate(
        [mesh.faces.astype(np.int64) + start for mesh, start in zip(scene.meshes, first_vertex, strict=False)]
    )
    weight = np.repeat(weights, np.diff(first_face))
    return _Soup(vertices, faces, weight, float(vertices.max(initial=0.0)), first_vertex, first_face)


def _choose_resolution(soup: _Soup, max_faces: int) -> float:
    """Return the number of cells per side with which about `max_faces` triangles remain, from a sample of them."""
    stride = -(-len(soup.faces) // _MAX_SAMPLE_COUNT)
    # only the corners of the sample get cells
    corners = soup.vertices[soup.faces[::stride]].reshape(-1, 3)
    faces = np.arange(len(corners)).reshape(-1, 3)
    sample = replace(soup, vertices=corners, faces=faces, weight=soup.weight[::stride])
    low, high = 1.0, float(_MAX_CELLS_PER_SIDE)
    for _ in range(_SEARCH_STEPS):
        middle = (low * high) ** 0.5
        if _count(sample, sample.cells(middle)) * stride <= max_faces:
            low = middle
        else:
            high = middle
    return low


def _count(soup: _Soup, cells: NDArray[np.int64]) -> int:
    return int(soup.weight[_remaining(cells[soup.faces])].sum())


def _remaining(corners: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return the mask of triangles whose corners are in three cells."""
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    mask: NDArray[np.bool_] = (a != b) & (b != c) & (c != a)
    return mask


def _slice(soup: _Soup, cells: NDArray[np.int64], mesh: int) -> tuple[NDArray[np.int64], IntIndex]:
    """Return the cells of the vertices of a mesh, and its remaining faces."""
    begin, end = soup.first_vertex[mesh : mesh + 2]
    first, last = soup.first_face[mesh : mesh + 2]
    return cells[begin:end], np.flatnonzero(_remaining(cells[soup.faces[first:last]]))


def _cluster(mesh: Mesh, cell: NDArray[np.int64], remaining: IntIndex) -> Mesh:
    """Return the mesh with one position in each cell, and its remaining faces."""
    _, index = np.unique(cell, return_inverse=True)
    members = np.bincount(index)
    center = np.stack([np.bincount(index, mesh.vertices[:, axis]) / members for axis in range(3)], axis=1)
    key = index
    if mesh.uv is not None:
        texture = np.floor(np.nan_to_num(mesh.uv).astype(np.float64) * _UV_CELLS).astype(np.int64) & 0xFFFF
        key = (index << 32) | (texture[:, 0] << 16) | texture[:, 1]
    _, first, vertex = np.unique(key, return_index=True, return_inverse=True)
    return replace(
        _select(mesh, remaining),
        vertices=center[index[first]],
        faces=vertex[mesh.faces[remaining]].astype(np.int32),
        normals=None,
        uv=None if mesh.uv is None else mesh.uv[first],
        colors=None if mesh.colors is None else mesh.colors[first],
    )


def _select(mesh: Mesh, faces: IntIndex) -> Mesh:
    material = None if mesh.face_material is None else mesh.face_material[faces]
    return replace(mesh, faces=mesh.faces[faces], face_material=material)
