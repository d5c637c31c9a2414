"""Traits of kinds of surfaces: tables by `SurfaceKind`, so that `IS_PATCH[surfaces.kind]` is a mask."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceKind

Mask = NDArray[np.bool_]


def _select(*kinds: SurfaceKind) -> Mask:
    """Return a table of a trait: whether a kind has it, by its number."""
    return np.isin(np.arange(len(SurfaceKind)), kinds)


IS_PLANE = _select(SurfaceKind.PLANE)

IS_PATCH = _select(SurfaceKind.PATCH)
"""Whether a surface has control points instead of an axis and lengths."""

IS_RULED = _select(SurfaceKind.CYLINDER, SurfaceKind.CONE)
"""Whether straight lines around the axis make the surface, so that it can be unrolled."""

HAS_SLOPE = _select(SurfaceKind.CONE)
"""Whether `SurfaceArray.second` is a slope."""

HAS_TUBE = _select(SurfaceKind.TORUS)
"""Whether `SurfaceArray.second` is the radius of a tube, around which the surface is closed, too."""

HAS_CENTER = _select(SurfaceKind.SPHERE, SurfaceKind.TORUS)
"""Whether `SurfaceArray.origin` is the only point that it can be."""

HAS_FREE_AXIS = _select(SurfaceKind.SPHERE)
"""Whether any line through the origin is an axis, so that seams and poles choose one."""
