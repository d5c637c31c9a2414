"""A skin as planar faces whose polyhedra keep the volumes of the mesh."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.recognition.bodies import shell_sizes, shell_volumes
from meshhub.builtin_plugins.step.recognition.outline import Outline, signed_areas, trace_outline
from meshhub.builtin_plugins.step.recognition.overlaps import overlapping
from meshhub.builtin_plugins.step.recognition.planar import (
    ROUNDING,
    Planes,
    flat_regions,
    parted,
    planes_of,
    tolerance_for,
)
from meshhub.builtin_plugins.step.recognition.skin import Skin, sum_by_label
from meshhub.model.scene import Float64

VOLUME = 3e-7
_ATTEMPTS = 5
_HALF_UNIT = 2.0**-24
_FINER = 0.1


class FacetedSkin(NamedTuple):
    """A skin as planar faces: regions, planes and outlines, and the tolerance they were made with."""

    region: NDArray[np.int32]
    faces: int
    planes: Planes
    outline: Outline
    tolerance: float


def facet_skin(skin: Skin) -> FacetedSkin:
    """The planar faces of a skin, whose polyhedra have the volumes of the mesh.

    Where the coordinates are finer than the rounding of 32-bit numbers lets expect, merging by that
    rounding can move a face too far: then it is done again, finer.
    """
    tolerance = tolerance_for(skin.points)
    volume, size = shell_volumes(skin), shell_sizes(skin)
    allowed = VOLUME * np.maximum(np.abs(volume), VOLUME * size)
    if np.array_equal(skin.points, skin.points.astype(np.float32)):
        # then the mesh's own volume is no better than its rounded coordinates
        allowed = np.maximum(allowed, tolerance / ROUNDING * _HALF_UNIT * size ** (2 / 3))
    for attempt in range(_ATTEMPTS):
        region, count = flat_regions(skin, tolerance)
        planes = planes_of(skin, region, count)
        outline = trace_outline(skin, region, np.zeros(count, np.bool_), tolerance)
        if attempt == _ATTEMPTS - 1:
            break
        off = np.abs(_polyhedra(skin, region, planes, outline) - volume)
        if (off <= allowed)[skin.closed].all():
            break
        tolerance *= _FINER
    folded = overlapping(skin, planes, outline, tolerance)
    if len(folded):
        region, count = parted(skin, region, folded, tolerance)
        planes = planes_of(skin, region, count)
        outline = trace_outline(skin, region, np.zeros(count, np.bool_), tolerance)
    return FacetedSkin(region, count, planes, outline, tolerance)


def _polyhedra(skin: Skin, region: NDArray[np.int32], planes: Planes, outline: Outline) -> Float64:
    """(s,) the volume within the faces' planes, from the areas of their loops."""
    count = len(skin.closed)
    first = np.empty(count, np.intp)
    first[skin.shell[::-1]] = skin.faces[::-1, 0]
    shell = np.empty(len(planes.normal), np.intp)
    shell[region] = skin.shell
    height = np.einsum("ij,ij->i", planes.centre - skin.points[first[shell]], planes.normal)
    loop_region = outline.loop_region
    pyramids = signed_areas(skin, outline, planes.normal) * height[loop_region] / 6
    return sum_by_label(shell[loop_region], pyramids, count)
