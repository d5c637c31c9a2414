"""Reduction of one mesh: keep its attribute seams unchanged if possible, otherwise reduce across them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meshhub.builtin_plugins.optimize.charts import Charts, find_charts
from meshhub.builtin_plugins.optimize.welded_reduction import (
    AGGRESSIVENESS_EXPONENT,
    MIN_FACES_PER_BOUNDARY_EDGE_RATIO,
    WeldedReduction,
    simplify_fast,
)
from meshhub.model.scene import Float64, Int32, Mesh
from meshhub.toolkit.geometry import weld
from meshhub.toolkit.topology import components, edges, remove_degenerate_faces

NORMALIZED_DIAGONAL = 100.0
"""Diagonal, without unit, to which a mesh is scaled, because the thresholds of fast-simplification suit this size."""


class ReducedSurface(NamedTuple):
    """Surface after a reduction.

    points, faces: over welded points, in the frame of the mesh; `faces` is the mesh's own array if nothing was removed
    pieces:        (m,) connected region of each face, in one chart, or None if seams were not kept
    charts:        charts of the mesh before the reduction, or None if it has no attributes
    """

    points: Float64
    faces: Int32
    pieces: Int32 | None
    charts: Charts | None


class MeshReduction:
    """Reduction of one mesh, which is scaled to a standard size and centered on the origin for the reduction."""

    def __init__(self, mesh: Mesh, placement: Float64) -> None:
        """Prepare the reduction of a mesh with faces; `placement` (4, 4) is the transform of one of its parts."""
        self.mesh = mesh
        self.size = len(mesh.faces)
        first, self.index = weld(mesh.vertices)
        faces = self.index[mesh.faces]
        self.points = mesh.vertices[first]
        used = np.zeros(len(self.points), np.bool_)
        used[faces] = True
        low, high = self.points[used].min(axis=0), self.points[used].max(axis=0)
        self.center = (low + high) / 2
        self.scale = max(float(np.linalg.norm(high - low)) / NORMALIZED_DIAGONAL, np.finfo(np.float64).tiny)
        to_scene = placement.copy()
        to_scene[:3, :3] *= self.scale
        to_scene[:3, 3] += placement[:3, :3] @ self.center
        normalized = (self.points - self.center) / self.scale
        self.welded = WeldedReduction(normalized, remove_degenerate_faces(faces), to_scene)

    @property
    def min_faces(self) -> int:
        """The minimum number of faces."""
        return min(self.size, max(self.welded.min_faces, 1))

    def reduce(self, goal: int) -> ReducedSurface:
        """Reduce the mesh to `goal` faces; if a valid result needs more, to as few as possible."""
        if goal >= self.size or len(self.welded.faces) == 0:
            return ReducedSurface(self.mesh.vertices, self.mesh.faces, None, None)
        charts = find_charts(self.mesh, self.index)
        color_charts = find_charts(self.mesh, self.index, by_color=True)
        if charts is not None and color_charts is not None and color_charts.has_seams:
            result = self._reduce_charts(color_charts, goal)
            if result is not None:
                return ReducedSurface(*result, charts)
        points, faces = self.welded.reduce(goal)
        if len(faces) >= self.size:
            return ReducedSurface(self.mesh.vertices, self.mesh.faces, None, None)
        return ReducedSurface(self._to_mesh_frame(points), faces, None, charts)

    def _reduce_charts(self, charts: Charts, goal: int) -> tuple[Float64, Int32, Int32] | None:
        """Reduce the charts and keep their seams unchanged.

        In the split mesh the seams are boundaries, which stay unchanged. So the charts still fit together afterwards.

        Returns:
            Points, faces and pieces, or None if this does not reach the goal.
        """
        if goal < MIN_FACES_PER_BOUNDARY_EDGE_RATIO * int((edges(charts.faces).size == 1).sum()):
            return None
        row = self.index[charts.first]
        is_proper = np.ones(len(charts.faces), np.bool_)
        welded = row[charts.faces]
        for corner, next_corner in ((0, 1), (1, 2), (2, 0)):
            is_proper &= welded[:, corner] != welded[:, next_corner]
        points, split_faces = simplify_fast(
            self.welded.points[row], charts.faces[is_proper], goal, AGGRESSIVENESS_EXPONENT, keep_border=True
        )
        if len(split_faces) > goal + 1 or len(split_faces) == 0:
            return None
        first, index = weld(points)
        faces = index[split_faces]
        if self.welded.measure_damage((points[first], faces), goal):
            return None
        a, b, c = split_faces.T
        _, label = components(len(points), np.concatenate([a, b]), np.concatenate([b, c]))
        return self._to_mesh_frame(points[first]), faces, label[a]

    def _to_mesh_frame(self, points: Float64) -> Float64:
        """Convert points back to the frame of the mesh; points that did not move get their exact coordinates."""
        count = len(self.welded.points)
        first, index = weld(np.concatenate([self.welded.points, points]))
        origin = first[index[count:]]
        result: Float64 = points * self.scale + self.center
        is_unmoved = origin < count
        result[is_unmoved] = self.points[origin[is_unmoved]]
        return result
