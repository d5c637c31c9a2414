"""Corners that polygons may have and arcs may not: where an outline touches itself, or turns right round."""

from __future__ import annotations

import numpy as np

from meshhub.builtin_plugins.step.recognition.arrays import normalize
from meshhub.builtin_plugins.step.recognition.outline import Outline
from meshhub.builtin_plugins.step.recognition.regions import Regions
from meshhub.builtin_plugins.step.recognition.skin import Skin
from meshhub.builtin_plugins.step.writing.curves import Curve, Curves, edge_regions
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

_CUSP = np.cos(np.radians(0.5))
"""Curves that part by less run side by side for longer than a corner is wide, as CAD programs see it."""


def pinched_regions(regions: Regions, outline: Outline, curves: Curves) -> IntIndex:
    """Curved regions at corners where the outline of a region touches itself, as between two holes that touch.

    Polygons may touch in a corner; of arcs that do, CAD programs say that they cross.
    """
    corners = max(int(outline.start.max(initial=0)), int(outline.stop.max(initial=0))) + 1
    begins, ends = (outline.region.astype(np.int64) * corners + one for one in (outline.start, outline.stop))
    keys, times = np.unique(begins, return_counts=True)
    twice = keys[times > 1]
    touching = np.isin(begins, twice) | np.isin(ends, twice)
    left, right = edge_regions(outline)
    edge = outline.edge[touching & (curves.kind != Curve.LINE)[outline.edge]]
    found = np.concatenate([left[edge], right[edge], outline.region[touching]])
    return np.unique(found[regions.curved[found]]).astype(np.intp)


def cusped_regions(skin: Skin, regions: Regions, outline: Outline, curves: Curves, size: Float64) -> IntIndex:
    """The smallest curved region at each corner where two bent edges of a flat face leave in one direction.

    size: (r,) of the regions; infinite for planes
    Such is the point between a round boss and a fillet that touches it from without.
    """
    leaves, arrives = _tangents(skin, outline, curves)
    edge, forward = outline.edge, outline.forward[:, None]
    begin = np.where(forward, leaves[edge], -arrives[edge])
    end = np.where(forward, arrives[edge], -leaves[edge])
    after = np.arange(len(edge)) + 1
    after[outline.loop_begin[1:] - 1] = outline.loop_begin[:-1]
    cusp = np.einsum("ij,ij->i", end, begin[after]) < -_CUSP
    # where one of them is straight, programs see it right
    bent = curves.kind[edge] != Curve.LINE
    cusp = np.flatnonzero(cusp & bent & bent[after] & ~regions.curved[outline.region])
    left, right = edge_regions(outline)
    beside = np.stack([left[edge[cusp]], right[edge[cusp]], left[edge[after[cusp]]], right[edge[after[cusp]]]], axis=1)
    smallest = beside[np.arange(len(cusp)), np.argmin(size[beside], axis=1)]
    made: IntIndex = smallest[regions.curved[smallest]]
    return made


def _tangents(skin: Skin, outline: Outline, curves: Curves) -> tuple[Float64, Float64]:
    """(e, 3) each, the directions in which edges begin and end."""
    chain = outline.edge_chain
    start, stop = skin.points[outline.start[chain]], skin.points[outline.stop[chain]]
    begin, end = stop - start, stop - start
    circle = curves.kind == Curve.CIRCLE
    begin[circle] = np.cross(curves.axis[circle], (start - curves.centre)[circle])
    end[circle] = np.cross(curves.axis[circle], (stop - curves.centre)[circle])
    spline = np.flatnonzero(curves.kind == Curve.SPLINE)
    first, last = curves.spline_begin[spline], curves.spline_begin[spline + 1] - 1
    # of the parabola through three points at even distances
    one, two, three = (curves.spline[first + k] for k in range(3))
    begin[spline] = 4 * two - 3 * one - three
    one, two, three = (curves.spline[last - k] for k in range(3))
    end[spline] = 3 * one - 4 * two + three
    return normalize(begin), normalize(end)
