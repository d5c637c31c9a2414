"""Reduction of one mesh: keep its attribute seams unchanged if possible, otherwise reduce across them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meshhub.builtin_plugins.optimize.charts import Charts, find_charts
from meshhub.builtin_plugins.optimize.edge_collapse import Bool, EdgeCollapse
from meshhub.builtin_plugins.optimize.welded_surface import (
    DIAGONAL,
    MIN_FACES_PER_BOUNDARY_EDGE_RATIO,
    WeldedSurface,
)
from meshhub.model.scene import Float64, Int32, Mesh
from meshhub.toolkit.geometry import extremes, weld
from meshhub.toolkit.topology import components, edges, half_edges, remove_degenerate_faces

MIN_FACES_PER_BODY = 16
"""Faces per body of the goal from which bodies keep their boxes; fewer are needed for their shape."""


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


class ReducibleSurface(NamedTuple):
    """Surface to reduce, in a normalized frame.

    points:     (n, 3) positions, centered on the origin; split at the seams if these are to be kept
    faces:      (m, 3) indices into `points`, without degenerate faces
    fixed:      (n,) points that must not move
    keeps_seams: whether the seams are kept
    """

    points: Float64
    faces: Int32
    fixed: Bool
    keeps_seams: bool


class MeshReduction:
    """Reduction of one mesh, which is scaled to a standard size, centered on the origin, and turned as in the scene.

    size:  number of faces of the mesh
    scale: millimeters in the scene for one unit of the normalized frame
    """

    def __init__(self, mesh: Mesh, placement: Float64) -> None:
        """Prepare the reduction of a mesh with faces; `placement` (4, 4) is the transform of one of its parts."""
        self.mesh = mesh
        self.size = len(mesh.faces)
        first, self.index = weld(mesh.vertices)
        faces = self.index[mesh.faces]
        self._points = mesh.vertices[first]
        self._rotation = _find_rotation(placement[:3, :3])
        turned = self._points @ self._rotation.T
        low, high = extremes(turned[np.unique(faces)])
        self._center = (low + high) / 2
        self._unit = max(float(np.linalg.norm(high - low)) / DIAGONAL, np.finfo(np.float64).tiny)
        to_scene = placement.copy()
        to_scene[:3, :3] = placement[:3, :3] @ self._rotation.T
        to_scene[:3, 3] += to_scene[:3, :3] @ self._center
        to_scene[:3, :3] *= self._unit
        self.scale = float(np.linalg.norm(to_scene[:3, :3], 2))
        normalized = (turned - self._center) / self._unit
        self.welded = WeldedSurface(normalized, remove_degenerate_faces(faces), to_scene)
        self._charts = find_charts(mesh, self.index)

    @property
    def min_faces(self) -> int:
        """The minimum number of faces."""
        return min(self.size, max(self.welded.min_faces, 1))

    def prepare(self, goal: int, *, is_exact: bool = False) -> ReducibleSurface:
        """Return the surface to reduce to about `goal` faces: with its seams if the goal leaves enough faces for them.

        In the split mesh the seams are boundaries. If these stay unchanged, the charts still fit together afterwards.

        Args:
            goal: Number of faces to reach.
            is_exact: Whether to leave all of the reduction to the caller.
        """
        charts = None if self._charts is None else find_charts(self.mesh, self.index, by_color=True)
        if charts is None or not charts.has_seams:
            return self._prepare_without_seams(goal, is_exact)
        if goal < MIN_FACES_PER_BOUNDARY_EDGE_RATIO * int((edges(charts.faces).size == 1).sum()):
            return self._prepare_without_seams(goal, is_exact)
        row = self.index[charts.first]
        welded = row[charts.faces]
        is_proper = np.ones(len(welded), np.bool_)
        for corner, next_corner in ((0, 1), (1, 2), (2, 0)):
            is_proper &= welded[:, corner] != welded[:, next_corner]
        points, faces = self.welded.points[row], charts.faces[is_proper]
        if not is_exact:
            points, faces = self.welded.reduce_partly(points, faces, goal, keep_border=True)
        return ReducibleSurface(points, faces, _border_points(faces, len(points)), True)

    def _prepare_without_seams(self, goal: int, is_exact: bool) -> ReducibleSurface:
        points, faces = self.welded.points, self.welded.faces
        if not is_exact:
            points, faces = self.welded.reduce_partly(points, faces, goal, keep_border=False)
        return ReducibleSurface(points, faces, np.zeros(len(points), np.bool_), False)

    def finish(self, surface: ReducibleSurface, points: Float64, faces: Int32) -> ReducedSurface:
        """Return the reduced surface in the frame of the mesh; if it is damaged, reduce it again with more care.

        Args:
            surface: Surface before the collapse of edges.
            points: (n, 3) its points afterwards.
            faces: (m, 3) its faces afterwards.
        """
        goal = len(faces)
        keeps_boxes = goal >= MIN_FACES_PER_BODY * self.welded.state.shells
        if goal >= self.size or len(self.welded.faces) == 0:
            return self._unchanged()
        if surface.keeps_seams and self.welded.is_damaged((points, faces)):
            surface = self._prepare_without_seams(goal, is_exact=False)
            points, faces = _collapse_edges(surface, goal, keeps_boxes=keeps_boxes)
        if not surface.keeps_seams and self.welded.is_damaged((points, faces)):
            points, faces = _collapse_edges(surface, goal, keeps_boxes=keeps_boxes, is_careful=True)
            if self.welded.state.closed and self.welded.is_damaged((points, faces)):
                return self._unchanged()
        pieces = None
        if surface.keeps_seams:
            a, b, c = faces.T
            pieces = components(len(points), np.concatenate([a, b]), np.concatenate([b, c]))[1][a]
        first, index = weld(points)
        return ReducedSurface(self._to_mesh_frame(points[first]), index[faces], pieces, self._charts)

    def normalize(self, surface: ReducedSurface) -> tuple[Float64, Int32]:
        """Return the points and faces of a reduced surface in the normalized frame."""
        return (surface.points @ self._rotation.T - self._center) / self._unit, surface.faces

    def _unchanged(self) -> ReducedSurface:
        return ReducedSurface(self.mesh.vertices, self.mesh.faces, None, None)

    def _to_mesh_frame(self, points: Float64) -> Float64:
        """Convert points back to the frame of the mesh; points that did not move get their exact coordinates."""
        count = len(self.welded.points)
        first, index = weld(np.concatenate([self.welded.points, points]))
        origin = first[index[count:]]
        result: Float64 = (points * self._unit + self._center) @ self._rotation
        is_unmoved = origin < count
        result[is_unmoved] = self._points[origin[is_unmoved]]
        return result


def _find_rotation(linear: Float64) -> Float64:
    """Return the rotation (3, 3) of a matrix; the identity if it keeps boxes parallel to the axes."""
    if (np.count_nonzero(linear, axis=0) <= 1).all():
        return np.eye(3)
    left, _, right = np.linalg.svd(linear)
    rotation: Float64 = left @ right
    return rotation if np.linalg.det(rotation) > 0 else -rotation


def _border_points(faces: Int32, count: int) -> Bool:
    """Return which of the points (count,) are on an edge with one face."""
    border = edges(faces).border()
    is_border = np.zeros(count, np.bool_)
    for ends in half_edges(faces):
        is_border[ends[border]] = True
    return is_border


def _collapse_edges(
    surface: ReducibleSurface, goal: int, *, keeps_boxes: bool, is_careful: bool = False
) -> tuple[Float64, Int32]:
    queue = EdgeCollapse(surface.points, surface.faces, fixed=surface.fixed, is_careful=is_careful)
    if keeps_boxes:
        queue.keep_boxes()
    queue.reduce(goal)
    return queue.points, queue.faces
