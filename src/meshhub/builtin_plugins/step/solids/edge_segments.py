"""Straight segments along the edges of a model, for checks without a CAD kernel."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.solids.curves import CurveKind
from meshhub.builtin_plugins.step.solids.model import BrepModel
from meshhub.builtin_plugins.step.surfaces.arrays import lengths, normalize
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

_SAMPLE_STEP_RAD = np.pi / 32
"""Radians of an arc between two samples."""
_SPLINE_SAGITTA_RATIO = 0.02
"""Distance between a spline and the line through two samples, as a share of the line: a turn of 9°."""


class EdgeSegments(NamedTuple):
    """Straight segments that approximate the edges.

    edge:        (n,) the edge of each segment
    begin, end:  (n, 3) mm
    middle:      (n, 3) mm on the arc; between both ends for lines and splines
    first, last: (n,) numbers of these points; segments that share a point have its number in common
    sagitta:     (n,) mm between the segment and its arc
    """

    edge: IntIndex
    begin: Float64
    end: Float64
    middle: Float64
    first: IntIndex
    last: IntIndex
    sagitta: Float64


def segment_edges(model: BrepModel) -> EdgeSegments:
    """Return straight segments along all edges, in the direction of their forward chains."""
    outline, curves = model.outline, model.curves
    chain = outline.edge_chain
    points = model.skin.points.copy()
    points[model.seams.corner] = model.seams.position
    start, stop = outline.start[chain], outline.stop[chain]
    begin, end = points[start], points[stop]
    size = np.ones(len(chain), np.intp)
    circle = curves.kind == CurveKind.CIRCLE
    x_axis = normalize(begin - curves.center)
    y_axis = np.cross(curves.axis, x_axis)
    to_end = end - curves.center
    turn = np.arctan2(np.einsum("ij,ij->i", to_end, y_axis), np.einsum("ij,ij->i", to_end, x_axis))
    turn = np.where(start == stop, 2 * np.pi, np.mod(turn, 2 * np.pi))
    size[circle] = np.maximum(np.ceil(turn[circle] / _SAMPLE_STEP_RAD), 1).astype(np.intp)
    spline = curves.kind == CurveKind.SPLINE
    size[spline] = np.diff(curves.spline_begin)[spline] - 1
    edge = np.repeat(np.arange(len(chain)), size)
    place = np.arange(len(edge)) - np.repeat(np.cumsum(size) - size, size)

    def sample_arcs(step: NDArray[Any]) -> Float64:
        """Return the points of all edges, as circles, after a number of segments."""
        angle = (turn / size)[edge] * step
        radius = curves.radius[edge]
        arcs: Float64 = curves.center[edge] + (radius * np.cos(angle))[:, None] * x_axis[edge]
        arcs += (radius * np.sin(angle))[:, None] * y_axis[edge]
        return arcs

    def sample(step: IntIndex) -> Float64:
        """Return the points of all edges after a number of segments."""
        position = np.where(circle[edge][:, None], sample_arcs(step), begin[edge])
        on_spline = spline[edge]
        position[on_spline] = curves.spline[curves.spline_begin[edge[on_spline]] + step[on_spline]]
        position = np.where((step == 0)[:, None], begin[edge], position)
        samples: Float64 = np.where((step == size[edge])[:, None], end[edge], position)
        return samples

    inner = len(points) + np.arange(len(edge))
    first = np.where(place == 0, start[edge], inner - 1)
    last = np.where(place == size[edge] - 1, stop[edge], inner)
    sampled_begin, sampled_end = sample(place), sample(place + 1)
    middle = np.where(circle[edge][:, None], sample_arcs(place + 0.5), (sampled_begin + sampled_end) / 2)
    sagitta = np.where(circle[edge], curves.radius[edge] * (1 - np.cos((turn / size)[edge] / 2)), 0.0)
    sagitta[spline[edge]] = _SPLINE_SAGITTA_RATIO * lengths(sampled_end - sampled_begin)[spline[edge]]
    return EdgeSegments(edge, sampled_begin, sampled_end, middle, first, last, sagitta)
