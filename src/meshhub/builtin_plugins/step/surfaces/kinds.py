"""Table of the kinds of surfaces: what recognition, files and reports need to know about each."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

STRIP = 0
"""Instead of a number of rings: the facets along the strip of a facet, two in each direction."""


class SurfaceKind(IntEnum):
    """Kind of a surface."""

    PLANE = 0
    CYLINDER = 1
    SPHERE = 2
    CONE = 3
    TORUS = 4
    PATCH = 5


class Trial(NamedTuple):
    """How facets are tried as a surface of a kind.

    rings:      rings of facets around a facet that are tried, in this order
    min_facets: facets of a surface; fewer fit by chance
    min_points: points of a surface; more than it has parameters
    value:      of a facet in a contest; a kind with more parameters must explain more facets
    """

    rings: tuple[int, ...]
    min_facets: int
    min_points: int
    value: float


class Kind(NamedTuple):
    """Traits of a kind of surface.

    plural:  figure in the report
    entity:  in a STEP file (ISO 10303-42)
    lengths: numbers of the entity after its placement: the radius, and the second number
    trial:   None for kinds that are not fitted to facets
    """

    plural: str
    entity: str
    lengths: int
    trial: Trial | None = None


KINDS = {
    SurfaceKind.PLANE: Kind("planes", "PLANE", 0),
    SurfaceKind.CYLINDER: Kind("cylinders", "CYLINDRICAL_SURFACE", 1, Trial((STRIP, 2, 1), 3, 7, 1.0)),
    SurfaceKind.CONE: Kind("cones", "CONICAL_SURFACE", 2, Trial((STRIP, 2), 4, 9, 0.6)),
    SurfaceKind.SPHERE: Kind("spheres", "SPHERICAL_SURFACE", 1, Trial((1,), 5, 8, 0.6)),
    SurfaceKind.TORUS: Kind("tori", "TOROIDAL_SURFACE", 2, Trial((2,), 6, 12, 0.5)),
    SurfaceKind.PATCH: Kind("bsplines", "B_SPLINE_SURFACE_WITH_KNOTS", 0),
}

ANALYTIC_KINDS = frozenset(KINDS) - {SurfaceKind.PATCH}
"""Kinds of `step_surfaces=analytic`; patches are reported only if there are some."""

TRIALS = {kind: traits.trial for kind, traits in KINDS.items() if traits.trial is not None}
"""Kinds that are fitted to facets, simple ones first: one ring of facets is a zone of a sphere as well as of a cone."""
