"""Flat regions that overlap themselves, where a mesh intersects itself: CAD programs reject such faces."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.facets.outline import Outline
from meshhub.builtin_plugins.step.facets.planar import Planes
from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.surfaces.arrays import lengths, normalize, perpendicular, sum_by_label
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

_MAX_CONVEX_TURN_RAD = 3 * np.pi
"""Radians; a convex loop turns by 2π in total, and one that runs twice around by 4π: this is the middle."""

_MIN_CONVEX_TURN_RAD = -1e-9
"""Radians; smallest turn at a corner of a convex loop: zero, but for the rounding of `arctan2`."""


def find_overlapping(skin: Skin, planes: Planes, outline: Outline, tolerance: float) -> IntIndex:
    """Find the regions whose outlines cross themselves by more than rounding explains.

    The area that the loops enclose, counted once, equals the sum of their signed areas only if no loops cross.

    Args:
        skin: Mesh.
        planes: (r,) planes of the regions.
        outline: Outlines of the regions.
        tolerance: Millimeters that rounding moves a point.
    Returns:
        Ascending region indices.
    """
    regions = len(planes.normal)
    if len(outline.start) == 0:
        return np.empty(0, np.intp)
    flat = _flatten(skin, planes, outline)
    after = np.arange(len(flat)) + 1
    after[outline.loop_begin[1:] - 1] = outline.loop_begin[:-1]
    doubtful = ~_are_convex(flat, after, outline, regions)
    signed = (flat[:, 0] * flat[after, 1] - flat[:, 1] * flat[after, 0]) / 2
    area = sum_by_label(outline.region, signed, regions)
    length = sum_by_label(outline.region, lengths(flat[after] - flat), regions)
    order = np.argsort(outline.loop_region, kind="stable")
    begin = np.searchsorted(outline.loop_region[order], np.arange(regions + 1))
    overlapping = []
    for region in np.flatnonzero(doubtful).tolist():
        loops = order[begin[region] : begin[region + 1]].tolist()
        filled = _filled_area([flat[outline.loop_begin[loop] : outline.loop_begin[loop + 1]] for loop in loops])
        if abs(filled - area[region]) > tolerance * length[region]:
            overlapping.append(region)
    return np.array(overlapping, np.intp)


def _flatten(skin: Skin, planes: Planes, outline: Outline) -> Float64:
    """Return the first corner (k, 2) of each chain, in coordinates of the plane of its region."""
    u = perpendicular(planes.normal)[outline.region]
    v = np.cross(planes.normal[outline.region], u)
    offset = skin.points[outline.start] - planes.center[outline.region]
    return np.stack([np.einsum("ij,ij->i", offset, u), np.einsum("ij,ij->i", offset, v)], axis=1)


def _are_convex(flat: Float64, after: IntIndex, outline: Outline, regions: int) -> NDArray[np.bool_]:
    """Return the mask (r,) of regions whose outline is one convex loop, which cannot cross itself."""
    loop_size = np.diff(outline.loop_begin)
    loop = np.repeat(np.arange(len(loop_size)), loop_size)
    side = normalize(np.concatenate([flat[after] - flat, np.zeros((len(flat), 1))], axis=1))
    left = side[:, 0] * side[after, 1] - side[:, 1] * side[after, 0]
    turn = np.arctan2(left, np.einsum("ij,ij->i", side, side[after]))
    total = sum_by_label(loop, turn, len(loop_size))
    turns_left = np.logical_and.reduceat(turn > _MIN_CONVEX_TURN_RAD, outline.loop_begin[:-1])
    loops = np.bincount(outline.loop_region, minlength=regions)
    is_simple = turns_left & (total < _MAX_CONVEX_TURN_RAD) & (loops[outline.loop_region] == 1)
    convex = np.zeros(regions, np.bool_)
    convex[outline.loop_region[is_simple]] = True
    return convex


def _filled_area(loops: list[Float64]) -> float:
    """Return the area that loops enclose; parts enclosed several times count once."""
    import manifold3d  # rarely needed here; an import at the top would delay every STEP file

    return float(manifold3d.CrossSection(loops, manifold3d.FillRule.Positive).area())
