"""Second stage of the reduction, if pymeshlab (GPL-3.0, the extra `meshlab`) is installed."""

from __future__ import annotations

import numpy as np

from meshhub.model.scene import Float64, Int32

BOUNDARY_WEIGHT_RATIO = 100.0
"""Weight of boundary edges relative to inner ones; with a lower weight, an open surface shrinks from its boundary."""


def collapse_edges(vertices: Float64, faces: Int32, target: int, moves_points: bool) -> tuple[Float64, Int32]:
    """Collapse edges in the order of their quadric error until `target` faces are left.

    The cleaning step of the filter is off, because it opens closed meshes.

    Args:
        vertices: (n, 3) welded positions, any length unit.
        faces: (m, 3) vertex indices, without degenerate faces.
        target: Number of faces to reach.
        moves_points: Whether to put a point at the position of least error; otherwise, at an existing position.
    Returns:
        (p, 3) vertices and (q, 3) faces; more than `target` if the topology prevents further collapses.
    Source:
        Garland and Heckbert, "Surface simplification using quadric error metrics", SIGGRAPH 1997.
    """
    import pymeshlab

    meshes = pymeshlab.MeshSet(verbose=False)
    meshes.add_mesh(pymeshlab.Mesh(vertices, faces))
    meshes.meshing_decimation_quadric_edge_collapse(
        targetfacenum=target,
        preservetopology=True,
        boundaryweight=BOUNDARY_WEIGHT_RATIO,
        preservenormal=True,
        planarquadric=True,
        optimalplacement=moves_points,
        autoclean=False,
    )
    current = meshes.current_mesh()
    points = np.array(current.vertex_matrix(), np.float64, order="C")
    return points, np.array(current.face_matrix(), np.int32, order="C")
