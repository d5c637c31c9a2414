"""Reducing one mesh: at its seams left whole if that is possible, across them if not."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meshhub.builtin_plugins.optimize.body import AGGRESSIVENESS, BESIDE_BORDER, Body, fast
from meshhub.builtin_plugins.optimize.charts import Charts, charts
from meshhub.geometry import weld
from meshhub.scene import Float64, Int32, Mesh
from meshhub.topology import components, edges, without_degenerate

DIAGONAL = 100.0


class Reduced(NamedTuple):
    """A reduced surface.

    points, faces: over welded points; `faces` is the mesh's own array when nothing was taken away
    pieces:        (m,) which faces lie in one chart for sure, or None when seams were not kept
    charts:        those of the mesh that it came from, or None when it has no attributes
    """

    points: Float64
    faces: Int32
    pieces: Int32 | None
    charts: Charts | None


class Reduction:
    """A mesh that is going to be reduced, brought to a size of its own around the origin."""

    def __init__(self, mesh: Mesh, place: Float64) -> None:
        self.mesh = mesh
        self.size = len(mesh.faces)
        first, index = weld(mesh.vertices)
        faces = index[mesh.faces]
        own = mesh.vertices[first]
        used = np.zeros(len(own), np.bool_)
        used[faces] = True
        low, high = own[used].min(axis=0), own[used].max(axis=0)
        self.centre = (low + high) / 2
        self.scale = max(float(np.linalg.norm(high - low)) / DIAGONAL, np.finfo(np.float64).tiny)
        self.own = own
        back = place.copy()
        back[:3, :3] *= self.scale
        back[:3, 3] += place[:3, :3] @ self.centre
        self.body = Body((own - self.centre) / self.scale, without_degenerate(faces), back)
        self.index = index

    @property
    def least(self) -> int:
        """The fewest faces it can have."""
        return min(self.size, max(self.body.least, 1))

    def run(self, goal: int) -> Reduced:
        """The mesh with `goal` faces, or as few more as it takes to stay sound."""
        if goal >= self.size or len(self.body.faces) == 0:
            return Reduced(self.mesh.vertices, self.mesh.faces, None, None)
        found = charts(self.mesh, self.index)
        cut = charts(self.mesh, self.index, by_color=True)
        if found is not None and cut is not None and cut.seams:
            along = self._along_seams(cut, goal)
            if along is not None:
                return Reduced(*along, found)
        points, faces = self.body.reduced(goal)
        if len(faces) >= self.size:
            return Reduced(self.mesh.vertices, self.mesh.faces, None, None)
        return Reduced(self._restored(points), faces, None, found)

    def _along_seams(self, found: Charts, goal: int) -> tuple[Float64, Int32, Int32] | None:
        """The charts reduced, with all that lies on a seam left as it is; None when that does not reach the goal.

        Cut apart, the seams are borders, and what is on the border stays: so the pieces still fit together.
        """
        if goal < BESIDE_BORDER * int((edges(found.faces).size == 1).sum()):
            return None
        row = self.index[found.first]
        flat = np.ones(len(found.faces), np.bool_)
        welded = row[found.faces]
        for one, other in ((0, 1), (1, 2), (2, 0)):
            flat &= welded[:, one] != welded[:, other]
        points, cut = fast(self.body.points[row], found.faces[flat], goal, AGGRESSIVENESS, keep_border=True)
        if len(cut) > goal + 1 or len(cut) == 0:
            return None
        first, index = weld(points)
        faces = index[cut]
        if self.body.damage((points[first], faces), goal):
            return None
        _, label = components(
            len(points), np.concatenate([cut[:, 0], cut[:, 1]]), np.concatenate([cut[:, 1], cut[:, 2]])
        )
        return self._restored(points[first]), faces, label[cut[:, 0]]

    def _restored(self, points: Float64) -> Float64:
        """Back to the mesh's own size and place; what did not move gets its exact coordinates again."""
        count = len(self.body.points)
        first, index = weld(np.concatenate([self.body.points, points]))
        origin = first[index[count:]]
        moved: Float64 = points * self.scale + self.centre
        stayed = origin < count
        moved[stayed] = self.own[origin[stayed]]
        return moved
