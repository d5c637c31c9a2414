"""Boundary loops of holes, and the triangles that close them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meshhub.builtin_plugins.repair.welded_mesh import WeldedMesh
from meshhub.toolkit import topology
from meshhub.toolkit.topology import Index


class Loops(NamedTuple):
    """Boundary loops of holes, in the direction of the patches that close them.

    point:    (n,) points, loop by loop
    source:   (n,) vertex of the original mesh at each point
    neighbor: (n,) face on the other side of the edge that starts at each point
    begin:    (l + 1,) position where each loop begins
    """

    point: Index
    source: Index
    neighbor: Index
    begin: Index


class Patches(NamedTuple):
    """Triangles that close loops: (t, 3) positions in `Loops.point`, and the (t,) loop of each triangle."""

    triangle: Index
    loop: Index


def find_loops(surface: WeldedMesh, mesh_edges: topology.Edges) -> Loops:
    """Find the boundary loops of a mesh whose points have one fan each."""
    half, begin = topology.boundary_loops(mesh_edges.border(), surface.faces.ravel())
    # patches have the opposite direction: reverse each loop
    length = np.diff(begin)
    loop = np.repeat(np.arange(len(length)), length)
    half = half[begin[loop] + begin[loop + 1] - 1 - np.arange(len(half))]
    return Loops(surface.faces.ravel()[half], surface.source.ravel()[half], half // 3, begin)
