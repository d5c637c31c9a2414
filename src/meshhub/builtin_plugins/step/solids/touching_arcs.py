"""Arcs of a flat face that touch or cross its other edges: CAD programs reject such a face.

The polygons of a mesh may be apart where the circles through their corners touch, as a hole inscribed in a hexagon.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.solids.curves import CurveKind
from meshhub.builtin_plugins.step.solids.model import BrepModel
from meshhub.builtin_plugins.step.surfaces.arrays import lengths, normalize
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

Mask = NDArray[np.bool_]


class _Edges(NamedTuple):
    """Lines and circles, in the direction of their edges.

    is_arc:       (k,) whether it is a circle
    begin, end:   (k, 3) mm
    along:        (k, 3) unit vectors of lines
    center, axis: (k, 3) of circles
    radius:       (k,) of circles, mm
    turn:         (k,) of circles from begin to end, rad
    """

    is_arc: Mask
    begin: Float64
    end: Float64
    along: Float64
    center: Float64
    axis: Float64
    radius: Float64
    turn: Float64

    def contain(self, points: Float64) -> Mask:
        """Return the mask (k,) of points (k, 3) on the whole lines and circles that lie between both ends."""
        along = np.einsum("ij,ij->i", points - self.begin, self.along)
        x_axis = normalize(self.begin - self.center)
        y_axis = np.cross(self.axis, x_axis)
        offset = points - self.center
        angle = np.arctan2(np.einsum("ij,ij->i", offset, y_axis), np.einsum("ij,ij->i", offset, x_axis))
        on_line = (along >= 0) & (along <= lengths(self.end - self.begin))
        is_between: Mask = np.where(self.is_arc, np.mod(angle, 2 * np.pi) <= self.turn, on_line)
        return is_between

    def distances(self, points: Float64) -> Float64:
        """Return the distances (k,) in mm of points (k, 3) from the whole lines and circles."""
        away = np.cross(points - self.begin, self.along)
        apart: Float64 = np.where(self.is_arc, np.abs(lengths(points - self.center) - self.radius), lengths(away))
        return apart


def find_touching(model: BrepModel, one: IntIndex, other: IntIndex, limit: Float64) -> Mask:
    """Return which pairs (k,) of edges of flat faces touch or cross; False for pairs with a spline or a common corner.

    Args:
        model: Edges and their curves.
        one, other: (k,) edges; at least one of each pair is a circle.
        limit: (k,) mm; edges that are closer touch.
    """
    outline, kind = model.outline, model.curves.kind
    chain = outline.edge_chain
    ends = np.stack([outline.start[chain], outline.stop[chain]])
    is_apart = (ends[:, None, one] != ends[None, :, other]).all(axis=(0, 1))
    touching = np.zeros(len(one), np.bool_)
    rows = np.flatnonzero(is_apart & (kind[one] != CurveKind.SPLINE) & (kind[other] != CurveKind.SPLINE))
    is_arc = kind[one[rows]] == CurveKind.CIRCLE
    arc = _take_edges(model, np.where(is_arc, one[rows], other[rows]))
    second = _take_edges(model, np.where(is_arc, other[rows], one[rows]))
    found = np.zeros(len(rows), np.bool_)
    for edge, points in ((second, arc.begin), (second, arc.end), (arc, second.begin), (arc, second.end)):
        found |= (edge.distances(points) <= limit[rows]) & edge.contain(points)
    for points in _common_points(arc, second, limit[rows]):
        found |= arc.contain(points) & second.contain(points)
    touching[rows] = found
    return touching


def _take_edges(model: BrepModel, edge: IntIndex) -> _Edges:
    curves, outline, skin = model.curves, model.outline, model.skin
    points = skin.points.copy()
    points[model.seams.corner] = model.seams.position
    chain = outline.edge_chain[edge]
    start, stop = outline.start[chain], outline.stop[chain]
    begin, end = points[start], points[stop]
    center, axis = curves.center[edge], curves.axis[edge]
    x_axis, to_end = normalize(begin - center), end - center
    y_axis = np.cross(axis, x_axis)
    turn = np.arctan2(np.einsum("ij,ij->i", to_end, y_axis), np.einsum("ij,ij->i", to_end, x_axis))
    turn = np.where(start == stop, 2 * np.pi, np.mod(turn, 2 * np.pi))
    is_arc = curves.kind[edge] == CurveKind.CIRCLE
    return _Edges(is_arc, begin, end, normalize(end - begin), center, axis, curves.radius[edge], turn)


def _common_points(arc: _Edges, second: _Edges, limit: Float64) -> tuple[Float64, Float64]:
    """Return both points (k, 3) at which a circle meets a line or circle; NaN where they are apart.

    Within `limit` of a tangent, both are the point at which they touch.
    """
    to_center = second.center - arc.center
    gap = lengths(to_center)
    # foot of the perpendicular from the center of the arc to the line, or to the line through both common points
    on_circle = (gap**2 + arc.radius**2 - second.radius**2) / (2 * np.where(gap > 0, gap, np.nan))
    towards = to_center / np.where(gap > 0, gap, np.nan)[:, None]
    from_begin = arc.center - second.begin
    to_line = np.einsum("ij,ij->i", from_begin, second.along)[:, None] * second.along - from_begin
    foot = np.where(second.is_arc[:, None], on_circle[:, None] * towards, to_line)
    reach = np.where(second.is_arc, np.abs(on_circle), lengths(to_line))
    # of touching circles, the gap between them decides, not the distance of the line through their common points
    overlap = np.minimum(arc.radius + second.radius - gap, gap - np.abs(arc.radius - second.radius))
    overlap = np.where(second.is_arc, overlap, arc.radius - reach)
    square = np.where(overlap < -limit, np.nan, np.maximum(arc.radius**2 - reach**2, 0.0))
    half_chord = np.where(np.abs(overlap) <= limit, 0.0, np.sqrt(square))
    half_chord = np.where(overlap < -limit, np.nan, half_chord)
    direction = np.where(second.is_arc[:, None], np.cross(arc.axis, towards), second.along)
    middle = arc.center + foot
    return middle + half_chord[:, None] * direction, middle - half_chord[:, None] * direction
