"""Charts: connected regions of a mesh where material, color and texture coordinates are continuous."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Int32, Mesh
from meshhub.toolkit.geometry import IntIndex, weld
from meshhub.toolkit.topology import components

COLOR_CLASS_LEVELS = 64
"""Width of a color class, of 255 levels per channel; faces of one class have no seam between them."""


class Charts(NamedTuple):
    """Mesh split into charts at its seams.

    of_face:   (m,) chart of each face
    faces:     (m, 3) indices into the rows of the split mesh
    first:     (r,) vertex of the original mesh for each row
    has_seams: whether the mesh has any seam
    on_seam:   (m,) faces at a seam where a chart meets itself, like the seam of a label around a bottle
    """

    of_face: Int32
    faces: Int32
    first: IntIndex
    has_seams: bool
    on_seam: NDArray[np.bool_]


def find_charts(mesh: Mesh, index: Int32, *, by_color: bool = False) -> Charts | None:
    """Split a mesh into charts wherever material, color or texture coordinates change abruptly.

    Args:
        mesh: Any frame.
        index: (n,) welded point of each vertex, from `geometry.weld`.
        by_color: Also split smooth color gradients into classes.
    Returns:
        The charts, or None if the mesh has no materials, colors and texture coordinates.
    """
    if mesh.uv is None and mesh.colors is None and mesh.face_material is None:
        return None
    columns = [index[:, None].astype(np.float64)]
    if mesh.uv is not None:
        columns.append(mesh.uv.astype(np.float64))
    if mesh.colors is not None:
        columns.append(mesh.colors.astype(np.float64))
    _, row = weld(np.concatenate(columns, axis=1))
    face_class = np.repeat(_classify_faces(mesh, by_color=by_color), 3)
    nodes = np.stack([row[mesh.faces].ravel().astype(np.float64), face_class.astype(np.float64)], axis=1)
    node_first, node = weld(nodes)
    faces = node.reshape(-1, 3).astype(np.int32)
    vertex = mesh.faces.ravel()[node_first]
    count = len(node_first)
    _, label = components(count, np.concatenate([faces[:, 0], faces[:, 1]]), np.concatenate([faces[:, 1], faces[:, 2]]))
    _, place = weld(np.stack([index[vertex].astype(np.float64), label.astype(np.float64)], axis=1))
    is_repeated = np.bincount(place)[place] > 1
    used = np.zeros(int(index.max()) + 1, np.bool_)
    used[index[vertex]] = True
    on_seam: NDArray[np.bool_] = is_repeated[faces].max(axis=1)
    return Charts(label[faces[:, 0]], faces, vertex.astype(np.intp), count > int(used.sum()), on_seam)


def _classify_faces(mesh: Mesh, *, by_color: bool) -> IntIndex:
    """Return a class for each face: equal for faces of one material and, if `by_color`, of similar color."""
    face_class = np.zeros(len(mesh.faces), np.int64)
    if mesh.face_material is not None:
        face_class += mesh.face_material.astype(np.int64) + 1
    if by_color and mesh.colors is not None:
        # the mean of the corners, so that a face between two colors gets a separate class
        mean = mesh.colors[mesh.faces].mean(axis=1) / COLOR_CLASS_LEVELS
        levels = np.minimum(mean.astype(np.int64), 255 // COLOR_CLASS_LEVELS)
        face_class = face_class * 256 + levels @ np.array([64, 16, 4, 1])
    classes: IntIndex = np.unique(face_class, return_inverse=True)[1]
    return classes
