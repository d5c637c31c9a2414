"""Where a mesh's attributes are continuous: its charts, cut apart at the seams."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

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
    seams:   whether there is any place where charts meet
    """

    of_face: Int32
    faces: Int32
    first: IntIndex
    seams: bool


def charts(mesh: Mesh, index: Int32) -> Charts | None:
    """The charts of a mesh, or None when it has neither materials, colours nor texture coordinates.

    index: (n,) which welded point each vertex is, from `geometry.weld`.
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
    if mesh.colors is not None:
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
    points_used = len(np.unique(index[vertex]))
    return Charts(label[faces[:, 0]], faces, vertex.astype(np.intp), count > points_used)
