"""The better half of reduction, where pymeshlab (GPL-3.0, the extra `meshlab`) is installed."""

from __future__ import annotations

import importlib.util
from functools import cache

import numpy as np

from meshhub.scene import Float64, Int32

BORDER = 100.0
"""How heavy the outline of an open surface weighs: without it a sheet is eaten from its rim."""


@cache
def available() -> bool:
    """Whether pymeshlab is installed; found without importing it."""
    return importlib.util.find_spec("pymeshlab") is not None


def quadric(vertices: Float64, faces: Int32, target: int, moving: bool) -> tuple[Float64, Int32]:
    """Collapse edges in the order of their quadric error until `target` faces are left.

    vertices (n, 3), faces (m, 3): welded, without degenerate faces; moving: whether a point may be put
    where the error is least, or only where one was. The filter's own cleaning is off: it opens closed meshes.
    Source: Garland and Heckbert, "Surface simplification using quadric error metrics", 1997.
    """
    import pymeshlab

    meshes = pymeshlab.MeshSet(verbose=False)
    meshes.add_mesh(pymeshlab.Mesh(vertices, faces))
    meshes.meshing_decimation_quadric_edge_collapse(
        targetfacenum=target,
        preservetopology=True,
        boundaryweight=BORDER,
        preservenormal=True,
        planarquadric=True,
        optimalplacement=moving,
        autoclean=False,
    )
    made = meshes.current_mesh()
    points = np.array(made.vertex_matrix(), np.float64, order="C")
    return points, np.array(made.face_matrix(), np.int32, order="C")
