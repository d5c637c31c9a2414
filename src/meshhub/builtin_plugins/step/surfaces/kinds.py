"""Table of the kinds of surfaces: how each is fitted and measured, and what files and reports need of it.

A kind of surface of revolution is a row here, an estimate in `initial_fits.py` and a profile in `profiles.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from meshhub.builtin_plugins.step.surfaces.initial_fits import (
    estimate_cone,
    estimate_cone_of_revolution,
    estimate_cylinder,
    estimate_sphere,
    estimate_torus,
)
from meshhub.builtin_plugins.step.surfaces.profiles import (
    ProfileDistances,
    ProfilePoints,
    measure_cone,
    measure_cylinder,
    measure_plane,
    measure_sphere,
    measure_torus,
)
from meshhub.builtin_plugins.step.surfaces.sample_blocks import Block
from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceArray, SurfaceKind

STRIP = 0
"""Value of `Trial.rings` for the facets along the strip of a facet, two in each direction, instead of rings."""


class Trial(NamedTuple):
    """Rules for fitting a surface of one kind to facets.

    rings:      numbers of rings of facets around a facet to fit, in this order
    min_facets: minimum facets of a surface; fewer fit by chance
    min_points: minimum points of a surface, more than the surface has parameters
    value:      value of a facet in a contest; a kind with more parameters must explain more facets
    estimates:  functions for the first estimate; the better result is used
    unknowns:   parameters that a step from an estimate changes: 0, 1, 2 shifts along u, v and the axis; 3, 4 tilts
                towards u and v; 5 radius; 6 second. Empty if the estimate is the best surface
    """

    rings: tuple[int, ...]
    min_facets: int
    min_points: int
    value: float
    estimates: tuple[Callable[[Block], SurfaceArray], ...]
    unknowns: tuple[int, ...] = ()


class Kind(NamedTuple):
    """Traits of a kind of surface.

    plural:  figure in the report
    entity:  in a STEP file (ISO 10303-42)
    lengths: numbers of the entity after its placement: the radius, and the second number
    profile: distances from the surface, see `profiles.py`; None for patches, which measure them by themselves
    trial:   None for kinds that are not fitted to facets
    """

    plural: str
    entity: str
    lengths: int
    profile: Callable[[ProfilePoints], ProfileDistances] | None = None
    trial: Trial | None = None


KINDS = {
    SurfaceKind.PLANE: Kind("planes", "PLANE", 0, measure_plane),
    SurfaceKind.CYLINDER: Kind(
        "cylinders",
        "CYLINDRICAL_SURFACE",
        1,
        measure_cylinder,
        Trial((STRIP, 2, 1), 3, 7, 1.0, (estimate_cylinder,), (0, 1, 3, 4, 5)),
    ),
    SurfaceKind.CONE: Kind(
        "cones",
        "CONICAL_SURFACE",
        2,
        measure_cone,
        Trial((STRIP, 2), 4, 9, 0.6, (estimate_cone, estimate_cone_of_revolution), (0, 1, 3, 4, 5, 6)),
    ),
    SurfaceKind.SPHERE: Kind(
        "spheres", "SPHERICAL_SURFACE", 1, measure_sphere, Trial((1,), 5, 8, 0.6, (estimate_sphere,))
    ),
    SurfaceKind.TORUS: Kind(
        "tori",
        "TOROIDAL_SURFACE",
        2,
        measure_torus,
        Trial((2,), 6, 12, 0.5, (estimate_torus,), (0, 1, 2, 3, 4, 5, 6)),
    ),
    SurfaceKind.PATCH: Kind("bsplines", "B_SPLINE_SURFACE_WITH_KNOTS", 0),
}

ANALYTIC_KINDS = frozenset(KINDS) - {SurfaceKind.PATCH}
"""Kinds of `step_surfaces=analytic`; patches are reported only if there are some."""

TRIALS = {kind: traits.trial for kind, traits in KINDS.items() if traits.trial is not None}
"""Kinds that are fitted to facets, simple ones first: one ring of facets is a zone of a sphere as well as of a cone."""

PROFILES = {kind: traits.profile for kind, traits in KINDS.items() if traits.profile is not None}
"""Kinds whose distances are measured in the half plane through the axis."""
