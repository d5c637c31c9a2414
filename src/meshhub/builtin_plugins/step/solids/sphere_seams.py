"""Seams of spheres with holes: half of a great circle that meets no hole."""

from __future__ import annotations

import numpy as np

from meshhub.builtin_plugins.step.facets.outline import Outline
from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.recognition.regions import Regions
from meshhub.builtin_plugins.step.surfaces.arrays import lengths, normalize, perpendicular
from meshhub.model.scene import Float64

_MAX_POLES_COUNT = 64
"""Positions of the north pole that are tried; bounds the time of a sphere with many triangles."""
_MERIDIANS_COUNT = 32
"""Half circles that are tried for each pole."""
_MIN_CLEARANCE_RATIO = 0.02
"""Distance of a seam from the outline, in radii; closer, CAD programs split edges where they touch the seam."""


def find_meridian(skin: Skin, regions: Regions, outline: Outline, face: int) -> tuple[Float64, Float64] | None:
    """Find a half circle from pole to pole that meets no hole of a sphere.

    Args:
        skin: Mesh, millimeters.
        regions: Regions of the mesh.
        outline: Their outlines.
        face: A region whose surface is a sphere.
    Returns:
        (3,) unit vectors: the axis through the poles, and the direction from the center to the middle of the seam.
        None if every candidate is closer to the outline than _MIN_CLEARANCE_RATIO.
    """
    center = regions.surfaces.origin[face]
    half = outline.half[regions.region[outline.half // 3] == face]
    begin = normalize(skin.points[skin.begin[half]] - center)
    end = normalize(skin.points[skin.end[half]] - center)
    triangles = np.flatnonzero(regions.region == face)
    triangles = triangles[:: -(-len(triangles) // _MAX_POLES_COUNT)]
    poles = normalize(skin.points[skin.faces[triangles]].mean(axis=1) - center)
    angle = np.arange(_MERIDIANS_COUNT)[:, None] * (2 * np.pi / _MERIDIANS_COUNT)
    largest, seam = _MIN_CLEARANCE_RATIO, None
    for pole, u in zip(poles, perpendicular(poles), strict=True):
        direction = np.cos(angle) * u + np.sin(angle) * np.cross(pole, u)
        across = np.cross(pole, direction)
        begin_across, end_across = begin @ across.T, end @ across.T
        begin_along, end_along = begin @ direction.T, end @ direction.T
        # the edge crosses the plane of the great circle, on the half of the seam
        meets = (begin_across < 0) != (end_across < 0)
        meets &= begin_along * np.abs(end_across) + end_along * np.abs(begin_across) > 0
        to_pole = np.minimum(lengths(begin - pole), lengths(begin + pole))[:, None]
        clearance = np.where(begin_along > 0, np.abs(begin_across), to_pole).min(axis=0)
        # rounded, so that rounding noise does not decide between equal candidates
        clearance = np.round(np.where(meets.any(axis=0), 0.0, clearance), 3)
        best = int(clearance.argmax())
        if clearance[best] > largest:
            largest, seam = float(clearance[best]), (pole, direction[best])
    return seam
