"""Where a mesh's attributes are continuous: its charts, cut apart at the seams."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.geometry import IntIndex, weld
from meshhub.scene import Int32, Mesh
from meshhub.topology import components

LEVELS = 64
"""Colours that differ by less than this, of 255, are of one class, with no seam between them."""


class Charts(NamedTuple):
    """A mesh cut apart wherever material, colour or texture coordinates change abruptly.

    of_face: (m,) the chart of each face
    faces:   (m, 3) over the rows of the cut mesh
    first:   (r,) the mesh's own vertex for each of these rows
    seams:   whether there is any place where it was cut
    rim:     (m,) which faces touch a seam where a chart meets itself, as a label around a bottle does
    """

    of_face: Int32
    faces: Int32
    first: IntIndex
    seams: bool
    rim: NDArray[np.bool_]


def charts(mesh: Mesh, index: Int32, *, by_color: bool = False) -> Charts | None:
    """The charts of a mesh, or None when it has neither materials, colours nor texture coordinates.

    index:    (n,) which welded point each vertex is, from `geometry.weld`.
    by_color: cut along smooth changes of colour too, between classes of it.
    """
    if mesh.uv is None and mesh.colors is None and mesh.face_material is None:
        return None
    columns = [index[:, None].astype(np.float64)]
    if mesh.uv is not None:
        columns.append(mesh.uv.astype(np.float64))
    if mesh.colors is not None:
        columns.append(mesh.colors.astype(np.float64))
    _, row = weld(np.concatenate(columns, axis=1))
    kind = np.zeros(len(mesh.faces), np.int64)
    if mesh.face_material is not None:
        kind += mesh.face_material.astype(np.int64) + 1
    if by_color and mesh.colors is not None:
        # the mean of the corners: a face between two colours is a class of its own
        mean = mesh.colors[mesh.faces].mean(axis=1) / LEVELS
        levels = np.minimum(mean.astype(np.int64), 255 // LEVELS)
        kind = kind * 256 + levels @ np.array([64, 16, 4, 1])
    _, kind = np.unique(kind, return_inverse=True)
    nodes = np.stack([row[mesh.faces].ravel().astype(np.float64), np.repeat(kind, 3).astype(np.float64)], axis=1)
    node_first, node = weld(nodes)
    faces = node.reshape(-1, 3).astype(np.int32)
    vertex = mesh.faces.ravel()[node_first]
    count = len(node_first)
    _, label = components(count, np.concatenate([faces[:, 0], faces[:, 1]]), np.concatenate([faces[:, 1], faces[:, 2]]))
    _, place = weld(np.stack([index[vertex].astype(np.float64), label.astype(np.float64)], axis=1))
    doubled = np.bincount(place)[place] > 1
    used = np.zeros(int(index.max()) + 1, np.bool_)
    used[index[vertex]] = True
    rim: NDArray[np.bool_] = doubled[faces].max(axis=1)
    return Charts(label[faces[:, 0]], faces, vertex.astype(np.intp), count > int(used.sum()), rim)
