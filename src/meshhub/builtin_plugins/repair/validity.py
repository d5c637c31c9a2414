"""Validity of a surface: before a repair to skip it, and after one to report the remaining defects."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from meshhub.builtin_plugins.repair.fragments import find_fragments
from meshhub.builtin_plugins.repair.orient import find_inverted_shells, measure_shell_volumes
from meshhub.builtin_plugins.repair.welded_mesh import WeldedMesh, round_points
from meshhub.model.scene import Float64, Int32
from meshhub.toolkit import topology
from meshhub.toolkit.geometry import signed_volume, weld

MIN_CLOSED_SHELL_FACES = 4
"""Faces; a closed shell with a volume has at least those of a tetrahedron."""


class SurfaceCheck(NamedTuple):
    """Validity of a surface before its repair. valid: a repair would change nothing."""

    valid: bool
    bodies: int
    volume: float
    edges: topology.Edges


class FileCheck(NamedTuple):
    """Defects of a surface in a file that stores float32 positions without indices, like STL."""

    boundary: int
    nonmanifold: int
    inconsistent: int
    volume: float

    @property
    def valid(self) -> bool:
        """Whether the surface is closed, edge-manifold, consistently oriented, and has a positive volume."""
        return self.boundary == self.nonmanifold == self.inconsistent == 0 and self.volume > 0

    @property
    def defects(self) -> int:
        """The number of invalid edges."""
        return self.boundary + self.nonmanifold + self.inconsistent


def check_surface(surface: WeldedMesh) -> SurfaceCheck:
    """Check whether a surface needs a repair."""
    faces = surface.faces
    mesh_edges = topology.edges(faces)
    count, label = topology.shells(faces, mesh_edges)
    surface = replace(surface, shell=label)
    volume = measure_shell_volumes(surface)
    half_a, half_b = mesh_edges.pairs()
    begin, _ = topology.half_edges(faces)
    no_border = half_a[:0]
    valid = (
        2 * len(half_a) == len(begin)
        and not (begin[half_a] == begin[half_b]).any()
        and bool((np.bincount(label, minlength=count) >= MIN_CLOSED_SHELL_FACES).all())
        and len(topology.remove_degenerate_faces(faces)) == len(faces)
        and topology.is_vertex_manifold(faces, mesh_edges)
        and not find_fragments(surface, no_border).any()
        and not find_inverted_shells(surface, no_border, volume).any()
    )
    return SurfaceCheck(valid, count, float(volume.sum()), mesh_edges)


def check_as_file(points: Float64, faces: Int32) -> FileCheck:
    """Check a surface after its points are rounded to float32 and welded again.

    Args:
        points: (n, 3) positions, any length unit.
        faces: (m, 3) indices into `points`.
    """
    first, index = weld(round_points(points))
    rewelded = topology.remove_degenerate_faces(index[faces])
    return FileCheck(*topology.edge_statistics(rewelded), signed_volume(points[first], rewelded))
