"""Welded surface of one mesh: its first, fast reduction, and checks of its result."""

from __future__ import annotations

from typing import NamedTuple

import fast_simplification
import numpy as np

from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.geometry import extremes, weld
from meshhub.toolkit.topology import EdgeStatistics, edge_statistics, edges, remove_degenerate_faces, shells

Triangles = tuple[Float64, Int32]
"""Points (n, 3) and faces (m, 3)."""

DIAGONAL = 100.0
"""Diagonal, without unit, to which a mesh is scaled, because the thresholds of fast-simplification suit this size."""

AGGRESSIVENESS_EXPONENT = 7.0
"""Exponent of fast-simplification's error threshold; below 7, it may stall above its target."""

MIN_FACES_PER_BOUNDARY_EDGE_RATIO = 2.5
"""Minimum faces per edge of a boundary that is kept; with fewer, the surface between boundaries is distorted."""

MAX_FAST_VOLUME_CHANGE_RATIO = 0.02
"""Share of the volume that the fast stage may change; a larger change means that parts are lost."""

MAX_FAST_SIZE_CHANGE_RATIO = 1e-4
"""Change of a side of the box that the fast stage may make, per diagonal; the queue makes none."""

MAX_COLLAPSE_FACES = 500_000
"""Faces up to which collapsing edges alone is fast enough: 10 s for a million."""

FAST_STAGE_RATIO = 4
"""Multiple of the goal at which the fast stage ends; its order of edges is coarser than that of the second stage."""


class SurfaceState(NamedTuple):
    """Properties of a surface that a reduction must preserve.

    handles:  number of handles, such as through holes, of a closed surface; 0 for others
    inward:   number of shells with negative volume
    volume:   signed, in cubed units of the points
    """

    edges: EdgeStatistics
    shells: int
    handles: int
    inward: int
    volume: float

    @property
    def closed(self) -> bool:
        """Whether every edge is on two faces that traverse it in opposite directions."""
        return self.edges == (0, 0, 0)


def simplify_fast(points: Float64, faces: Int32, goal: int, keep_border: bool) -> Triangles:
    """Reduce a surface with fast-simplification; remove degenerate faces and unused points.

    Args:
        points: (n, 3) welded positions; the thresholds of the library suit a diagonal of about 100.
        faces: (m, 3) indices into `points`.
        goal: Number of faces to reach.
        keep_border: Whether the boundary stays unchanged.
    Source:
        Forstmann, "Fast Quadric Mesh Simplification", 2014.
    """
    # the library rejects read-only arrays
    points, faces = fast_simplification.simplify(
        points.copy(),
        faces.astype(np.int32),
        target_count=min(goal, len(faces)),
        agg=AGGRESSIVENESS_EXPONENT,
        preserve_border=keep_border,
    )
    return points, remove_degenerate_faces(faces).astype(np.int32, copy=False)


def measure_state(points: Float64, faces: Int32) -> SurfaceState:
    """Measure the edges, shells and volume of a surface over welded points."""
    mesh_edges = edges(faces)
    statistics = edge_statistics(faces, mesh_edges)
    count, labels = shells(faces, mesh_edges)
    if count == 0:
        return SurfaceState(statistics, 0, 0, 0, 0.0)
    a, b, c = (points[faces[:, corner]] for corner in range(3))
    volumes = np.bincount(labels, np.einsum("ij,ij->i", a, np.cross(b, c)), minlength=count) / 6
    # Euler's formula
    doubled = 2 * count - (len(np.unique(faces)) - len(mesh_edges.size) + len(faces))
    handles = max(doubled, 0) // 2 if statistics == (0, 0, 0) else 0
    return SurfaceState(statistics, count, handles, int((volumes < 0).sum()), float(volumes.sum()))


class WeldedSurface:
    """Surface of one mesh over welded points.

    points:    (n, 3) centered on the origin, with a diagonal of about 100, which suits fast-simplification
    faces:     (m, 3) indices into `points`
    placement: (4, 4) transform to the scene, to find out which points a float32 file would merge
    """

    def __init__(self, points: Float64, faces: Int32, placement: Float64) -> None:
        self.points, self.faces, self.placement = points, faces, placement
        self.state = measure_state(points, faces)
        self._own_float32_edges: EdgeStatistics | None = None

    @property
    def min_faces(self) -> int:
        """The minimum number of faces: a tetrahedron for each shell of a surface without a boundary."""
        return min(len(self.faces), 2 if self.state.edges.boundary else 4 * self.state.shells)

    def reduce_partly(self, points: Float64, faces: Int32, goal: int, keep_border: bool) -> Triangles:
        """Reduce a huge surface to a multiple of the goal with the fast stage, if that does not damage it.

        Args:
            points: (n, 3) positions, possibly split at seams.
            faces: (m, 3) indices into `points`.
            goal: Number of faces that the second stage is to reach.
            keep_border: Whether the boundary stays unchanged.
        """
        target = max(FAST_STAGE_RATIO * goal, MAX_COLLAPSE_FACES // 2)
        if len(faces) <= MAX_COLLAPSE_FACES or target >= len(faces):
            return points, faces
        result = simplify_fast(points, faces, target, keep_border or self.state.edges.boundary > 0)
        change = np.abs(np.subtract(extremes(result[0]), extremes(points[np.unique(faces)]))).max()
        if change > MAX_FAST_SIZE_CHANGE_RATIO * DIAGONAL or self.is_damaged(result, MAX_FAST_VOLUME_CHANGE_RATIO):
            return points, faces
        return result

    def is_damaged(self, result: Triangles, max_volume_change: float = np.inf) -> bool:
        """Return whether a reduction added defects that the surface did not have.

        Args:
            result: Reduced surface, in the frame of `points`, possibly split at seams.
            max_volume_change: Share of the volume that may change.
        """
        first, index = weld(result[0])
        points, faces = result[0][first], index[result[1]]
        if len(faces) == 0:
            return True
        after, before = measure_state(points, faces), self.state
        if _count_added(after.edges, before.edges):
            return True
        if before.edges.boundary == 0 and after.shells != before.shells:
            return True
        if before.closed and (
            after.inward != before.inward or abs(after.volume - before.volume) > max_volume_change * abs(before.volume)
        ):
            return True
        return self._is_damaged_in_float32(points, faces)

    def _is_damaged_in_float32(self, points: Float64, faces: Int32) -> bool:
        """Return whether a float32 file has invalid edges, beyond those that the surface had there."""
        after = self._float32_edges(points, faces)
        if not _count_added(after, self.state.edges):
            return False
        if self._own_float32_edges is None:
            self._own_float32_edges = self._float32_edges(self.points, self.faces)
        return _count_added(after, self._own_float32_edges) > 0

    def _float32_edges(self, points: Float64, faces: Int32) -> EdgeStatistics:
        """Return the edge statistics of the placed surface as an STL file would store it."""
        placed = (points @ self.placement[:3, :3].T + self.placement[:3, 3]).astype(np.float32)
        return edge_statistics(remove_degenerate_faces(weld(placed)[1][faces]))


def _count_added(after: EdgeStatistics, before: EdgeStatistics) -> int:
    return sum(max(0, now - allowed) for now, allowed in zip(after, before, strict=True))
