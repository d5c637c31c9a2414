"""Where balls with holes are slit: along half a great circle that meets no hole."""

from __future__ import annotations

import numpy as np

from meshhub.builtin_plugins.step.recognition.arrays import lengths, normalize
from meshhub.builtin_plugins.step.recognition.outline import Outline
from meshhub.builtin_plugins.step.recognition.regions import Regions
from meshhub.builtin_plugins.step.recognition.skin import Skin
from meshhub.builtin_plugins.step.recognition.surfaces import perpendicular
from meshhub.model.scene import Float64

_POLES = 64
_SIDES = 32
_CLEARANCE = 0.02


def meridian(skin: Skin, regions: Regions, outline: Outline, face: int) -> tuple[Float64, Float64] | None:
    """The axis of a sphere and the side of its seam, unit vectors, or None where holes leave no room for one.

    The seam leads from pole to pole; of those tried, the one that keeps clearest of the outline.
    """
    centre = regions.surfaces.origin[face]
    half = outline.half[regions.region[outline.half // 3] == face]
    begin = normalize(skin.points[skin.begin[half]] - centre)
    end = normalize(skin.points[skin.end[half]] - centre)
    triangles = np.flatnonzero(regions.region == face)
    triangles = triangles[:: -(-len(triangles) // _POLES)]
    poles = normalize(skin.points[skin.faces[triangles]].mean(axis=1) - centre)
    angle = np.arange(_SIDES)[:, None] * (2 * np.pi / _SIDES)
    best, found = _CLEARANCE, None
    for pole, u in zip(poles, perpendicular(poles), strict=True):
        side = np.cos(angle) * u + np.sin(angle) * np.cross(pole, u)
        across = np.cross(pole, side)
        one, other = begin @ across.T, end @ across.T
        here, there = begin @ side.T, end @ side.T
        # where an edge meets the great circle, on the side of the seam
        meets = ((one < 0) != (other < 0)) & (here * np.abs(other) + there * np.abs(one) > 0)
        to_pole = np.minimum(lengths(begin - pole), lengths(begin + pole))[:, None]
        clear = np.where(here > 0, np.abs(one), to_pole).min(axis=0)
        # rounded, so that noise does not choose among equals
        clear = np.round(np.where(meets.any(axis=0), 0.0, clear), 3)
        at = int(clear.argmax())
        if clear[at] > best:
            best, found = float(clear[at]), (pole, side[at])
    return found
