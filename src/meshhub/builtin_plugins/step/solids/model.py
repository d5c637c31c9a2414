"""A model: the faces, edges and seams of a skin, before it is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from meshhub.builtin_plugins.step.facets.bodies import Bodies, shell_volumes
from meshhub.builtin_plugins.step.facets.outline import Outline
from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.recognition.deviation import chord_volumes
from meshhub.builtin_plugins.step.recognition.regions import Regions
from meshhub.builtin_plugins.step.solids.curves import Curves
from meshhub.builtin_plugins.step.solids.seams import Seams
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex


@dataclass(frozen=True, eq=False)
class BrepModel:
    """Boundary representation of a skin: a face for each region, an edge for each pair of chains.

    mesh_points:    (p, 3) positions of the points of the skin in the mesh, before corners were moved onto surfaces
    invalid_shells: closed shells that fail the check without a kernel
    """

    skin: Skin
    mesh_points: Float64
    regions: Regions
    outline: Outline
    curves: Curves
    seams: Seams
    bodies: Bodies
    invalid_shells: IntIndex = field(default_factory=lambda: np.empty(0, np.intp))

    @cached_property
    def shell_volumes(self) -> Float64:
        """(s,) mm³ that the triangles of each shell and the arcs over them enclose."""
        return shell_volumes(self.skin) + chord_volumes(self.skin, self.regions.region, self.regions.surfaces)
