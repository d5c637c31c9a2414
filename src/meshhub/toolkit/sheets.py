"""Open surfaces that enclose no volume."""

# why this way: docs/decisions/0012-sheets-and-cavities.md
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64, Int32, Mesh
from meshhub.toolkit.geometry import IntIndex, face_normals, welded
from meshhub.toolkit.topology import edges, shells

MIN_OPENING_RATIO = 0.5
"""Area of the opening per area of a shell from which it is a sheet; half a ball has half."""

MIN_SHARE = 0.5
"""Share of the area that sheets have in a mesh that is meant as a sheet; in others, they are debris."""


class Shells(NamedTuple):
    """Shells of a mesh.

    chosen:  (k,) faces that do not collapse to an edge
    normals: (k, 3) their normals, twice their area long
    label:   (k,) their shells
    is_open: (s,) mask of shells with a border
    """

    chosen: IntIndex
    normals: Float64
    label: Int32
    is_open: NDArray[np.bool_]


def find_shells(mesh: Mesh) -> Shells:
    """Return the shells of a mesh, and which of them are open."""
    points, faces = welded(mesh)
    a, b, c = faces.T
    chosen = np.flatnonzero((a != b) & (b != c) & (c != a))
    faces = faces[chosen]
    mesh_edges = edges(faces)
    count, label = shells(faces, mesh_edges)
    is_open = np.zeros(count, np.bool_)
    is_open[label[mesh_edges.border() // 3]] = True
    return Shells(chosen, face_normals(points, faces), label, is_open)


def is_sheet(mesh: Mesh) -> bool:
    """Return whether a mesh is a sheet, such as a terrain or a piece of cloth, and not a solid with holes.

    The faces of a closed shell add up to a vector area of zero, so that of an open shell is the one of its opening.
    """
    _, normals, label, is_open = find_shells(mesh)
    count = len(is_open)
    area = np.bincount(label, np.linalg.norm(normals, axis=1), count)
    opening = np.linalg.norm([np.bincount(label, normals[:, axis], count) for axis in range(3)], axis=0)
    is_sheet = is_open & (opening > MIN_OPENING_RATIO * area)
    return bool(area[is_sheet].sum() > MIN_SHARE * area.sum())
