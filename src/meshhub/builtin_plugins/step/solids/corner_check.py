"""Corners that are valid between lines but not between arcs: outlines that touch themselves, and cusps."""

from __future__ import annotations

import numpy as np

from meshhub.builtin_plugins.step.facets.outline import Outline
from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.recognition.regions import Regions
from meshhub.builtin_plugins.step.solids.curves import CurveKind, Curves, edge_regions
from meshhub.builtin_plugins.step.surfaces.arrays import normalize
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

_CUSP_COS = np.cos(np.radians(0.5))
"""Cosine of the angle below which two curves stay closer than CAD programs' tolerance for longer than a corner."""


def find_pinches(regions: Regions, outline: Outline, curves: Curves) -> tuple[IntIndex, IntIndex]:
    """Return curved regions (k,) whose outline touches itself, and the corners (k,), such as between touching holes.

    CAD programs accept polygons that touch in a corner, but report that touching arcs cross.
    """
    corner_count = max(int(outline.start.max(initial=0)), int(outline.stop.max(initial=0))) + 1
    begins, ends = (outline.region.astype(np.int64) * corner_count + corner for corner in (outline.start, outline.stop))
    keys, visits = np.unique(begins, return_counts=True)
    pinched = keys[visits > 1]
    place = [np.flatnonzero(np.isin(side, pinched)) for side in (begins, ends)]
    chain = np.concatenate(place)
    corner = np.concatenate([outline.start[place[0]], outline.stop[place[1]]])
    is_bent = (curves.kind != CurveKind.LINE)[outline.edge[chain]]
    left, right = (side[outline.edge[chain[is_bent]]] for side in edge_regions(outline))
    adjacent = np.concatenate([left, right, outline.region[chain]]).astype(np.intp)
    corners = np.concatenate([corner[is_bent], corner[is_bent], corner]).astype(np.intp)
    is_curved = regions.curved[adjacent]
    return adjacent[is_curved], corners[is_curved]


def find_cusps(
    skin: Skin, regions: Regions, outline: Outline, curves: Curves, size: Float64
) -> tuple[IntIndex, IntIndex]:
    """Return the smallest curved region at each cusp, a corner where two arcs of a flat face start in one direction.

    An example is the point between a round boss and a fillet that touches it from outside.

    Args:
        skin: Mesh, millimeters.
        regions: Regions of the mesh.
        outline: Their outlines.
        curves: Curves of the edges.
        size: (r,) area of each region; infinite for planes.
    Returns:
        (k,) regions, and (k,) corners.
    """
    leaves, arrives = _edge_tangents(skin, outline, curves)
    edge, forward = outline.edge, outline.forward[:, None]
    begin = np.where(forward, leaves[edge], -arrives[edge])
    end = np.where(forward, arrives[edge], -leaves[edge])
    after = np.arange(len(edge)) + 1
    after[outline.loop_begin[1:] - 1] = outline.loop_begin[:-1]
    is_cusp = np.einsum("ij,ij->i", end, begin[after]) < -_CUSP_COS
    # CAD programs accept a cusp if one of the two edges is a line
    bent = curves.kind[edge] != CurveKind.LINE
    cusp = np.flatnonzero(is_cusp & bent & bent[after] & ~regions.curved[outline.region])
    left, right = edge_regions(outline)
    adjacent = np.stack(
        [left[edge[cusp]], right[edge[cusp]], left[edge[after[cusp]]], right[edge[after[cusp]]]], axis=1
    )
    smallest = adjacent[np.arange(len(cusp)), np.argmin(size[adjacent], axis=1)]
    is_curved = regions.curved[smallest]
    return smallest[is_curved], outline.stop[cusp[is_curved]].astype(np.intp)


def _edge_tangents(skin: Skin, outline: Outline, curves: Curves) -> tuple[Float64, Float64]:
    """Return the unit directions in which edges begin and end, (e, 3) each."""
    chain = outline.edge_chain
    start, stop = skin.points[outline.start[chain]], skin.points[outline.stop[chain]]
    begin, end = stop - start, stop - start
    circle = curves.kind == CurveKind.CIRCLE
    begin[circle] = np.cross(curves.axis[circle], (start - curves.center)[circle])
    end[circle] = np.cross(curves.axis[circle], (stop - curves.center)[circle])
    spline = np.flatnonzero(curves.kind == CurveKind.SPLINE)
    first, last = curves.spline_begin[spline], curves.spline_begin[spline + 1] - 1
    # tangent of the parabola through the three points nearest to the end, at equal distances
    a, b, c = (curves.spline[first + step] for step in range(3))
    begin[spline] = 4 * b - 3 * a - c
    a, b, c = (curves.spline[last - step] for step in range(3))
    end[spline] = 3 * a - 4 * b + c
    return normalize(begin), normalize(end)
