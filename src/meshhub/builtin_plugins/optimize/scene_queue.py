"""One queue for the meshes of a scene, so that each gets the faces that its shape needs."""

from __future__ import annotations

import itertools

import numpy as np

from meshhub.builtin_plugins.optimize.edge_collapse import EdgeCollapse
from meshhub.builtin_plugins.optimize.mesh_reduction import MeshReduction, ReducedSurface, ReducibleSurface
from meshhub.builtin_plugins.optimize.welded_surface import Triangles
from meshhub.model.scene import Int32


class SceneQueue:
    """Queue of the edges of all meshes.

    reductions: reduction of each mesh
    surfaces:   surface of each mesh
    edges:      the queue before the reduction, or after it
    """

    def __init__(
        self, reductions: list[MeshReduction], surfaces: list[ReducibleSurface], times: Int32, weighs_area: bool
    ) -> None:
        """Join the surfaces.

        Args:
            reductions: Reduction of each mesh.
            surfaces: Surface of each mesh.
            times: Number of instances of each mesh.
            weighs_area: As in `EdgeCollapse`.
        """
        self.reductions, self.surfaces = reductions, surfaces
        counts = [len(surface.points) for surface in surfaces]
        self._start = np.cumsum([0, *counts])
        offset = zip(surfaces, self._start, strict=False)
        self.edges = EdgeCollapse(
            np.concatenate([surface.points for surface in surfaces]),
            np.concatenate([surface.faces + np.int32(begin) for surface, begin in offset]),
            fixed=np.concatenate([surface.fixed for surface in surfaces]),
            scale=np.repeat([reduction.scale for reduction in reductions], counts),
            uses=np.repeat(times, counts),
            weighs_area=weighs_area,
        )

    def split(self, edges: EdgeCollapse) -> list[Triangles]:
        """Return the points and faces of each mesh in a reduced copy of the queue; obsolete points stay."""
        owner = np.searchsorted(self._start, edges.faces[:, 0], side="right") - 1
        order = np.argsort(owner, kind="stable")
        end = np.searchsorted(owner[order], np.arange(len(self.surfaces) + 1))
        return [
            (edges.points[begin:stop], edges.faces[order[end[place] : end[place + 1]]] - np.int32(begin))
            for place, (begin, stop) in enumerate(itertools.pairwise(self._start))
        ]

    def finish(self) -> list[ReducedSurface | None]:
        """Return the reduced surface of each mesh."""
        parts = zip(self.reductions, self.surfaces, self.split(self.edges), strict=True)
        return [reduction.finish(surface, *triangles) for reduction, surface, triangles in parts]
