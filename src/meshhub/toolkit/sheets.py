"""Open surfaces that enclose no volume."""

# why this way: docs/decisions/0012-sheets-and-cavities.md
from __future__ import annotations

import numpy as np

from meshhub.model.scene import Mesh
from meshhub.toolkit.geometry import face_normals, welded
from meshhub.toolkit.topology import edges, remove_degenerate_faces, shells

MIN_OPENING_RATIO = 0.5
"""Area of the opening per area of a shell from which it is a sheet; half a ball has half."""

MIN_SHARE = 0.5
"""Share of the area that sheets have in a mesh that is meant as a sheet; in others, they are debris."""


def is_sheet(mesh: Mesh) -> bool:
    """Return whether a mesh is a sheet, such as a terrain or a piece of cloth, and not a solid with holes.

    The faces of a closed shell add up to a vector area of zero, so that of an open shell is the one of its opening.
    """
    points, faces = welded(mesh)
    faces = remove_degenerate_faces(faces)
    mesh_edges = edges(faces)
    count, label = shells(faces, mesh_edges)
    if count == 0:
        return False
    is_open = np.zeros(count, np.bool_)
    is_open[label[mesh_edges.border() // 3]] = True
    normals = face_normals(points, faces)
    area = np.bincount(label, np.linalg.norm(normals, axis=1), count)
    opening = np.linalg.norm([np.bincount(label, normals[:, axis], count) for axis in range(3)], axis=0)
    is_sheet = is_open & (opening > MIN_OPENING_RATIO * area)
    return bool(area[is_sheet].sum() > MIN_SHARE * area.sum())
