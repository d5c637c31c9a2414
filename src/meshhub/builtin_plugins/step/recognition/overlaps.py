"""Flat regions that lie over themselves, where a mesh cuts itself: no face of a CAD program may."""

from __future__ import annotations

import numpy as np

from meshhub.builtin_plugins.step.recognition.outline import Outline
from meshhub.builtin_plugins.step.recognition.planar import Planes
from meshhub.builtin_plugins.step.recognition.skin import Skin, lengths, normalize, sum_by_label
from meshhub.builtin_plugins.step.recognition.surfaces import perpendicular
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

_ONCE_ROUND = 3 * np.pi


def overlapping(skin: Skin, planes: Planes, outline: Outline, tolerance: float) -> IntIndex:
    """The regions whose outlines cross themselves, by more than rounding explains.

    What the loops enclose, counted once, has the area that their signed areas add up to only when none crosses.
    """
    regions = len(planes.normal)
    if len(outline.start) == 0:
        return np.empty(0, np.intp)
    across = perpendicular(planes.normal)[outline.region]
    along = np.cross(planes.normal[outline.region], across)
    here = skin.points[outline.start] - planes.centre[outline.region]
    flat = np.stack([np.einsum("ij,ij->i", here, across), np.einsum("ij,ij->i", here, along)], axis=1)

    loop_size = np.diff(outline.loop_begin)
    loop = np.repeat(np.arange(len(loop_size)), loop_size)
    after = np.arange(len(flat)) + 1
    after[outline.loop_begin[1:] - 1] = outline.loop_begin[:-1]
    side = normalize(np.concatenate([flat[after] - flat, np.zeros((len(flat), 1))], axis=1))
    left = side[:, 0] * side[after, 1] - side[:, 1] * side[after, 0]
    turn = np.arctan2(left, np.einsum("ij,ij->i", side, side[after]))
    winding = sum_by_label(loop, turn, len(loop_size))
    convex = np.logical_and.reduceat(turn > -1e-9, outline.loop_begin[:-1]) & (winding < _ONCE_ROUND)
    loops = np.bincount(outline.loop_region, minlength=regions)
    doubtful = np.ones(regions, np.bool_)
    doubtful[outline.loop_region[convex & (loops[outline.loop_region] == 1)]] = False

    signed = (flat[:, 0] * flat[after, 1] - flat[:, 1] * flat[after, 0]) / 2
    area = sum_by_label(outline.region, signed, regions)
    length = sum_by_label(outline.region, lengths(flat[after] - flat), regions)
    order = np.argsort(outline.loop_region, kind="stable")
    begin = np.searchsorted(outline.loop_region[order], np.arange(regions + 1))
    found = []
    for region in np.flatnonzero(doubtful).tolist():
        own = order[begin[region] : begin[region + 1]]
        filled = _filled([flat[outline.loop_begin[one] : outline.loop_begin[one + 1]] for one in own.tolist()])
        if abs(filled - area[region]) > tolerance * length[region]:
            found.append(region)
    return np.array(found, np.intp)


def _filled(loops: list[Float64]) -> float:
    """The area that loops enclose, whatever is enclosed twice counted once."""
    import manifold3d  # seldom needed, and every STEP file would wait for it

    return float(manifold3d.CrossSection(loops, manifold3d.FillRule.Positive).area())
