"""Parameters and patches of single pieces: strips, heights over a plane, rings, rectangles, discs."""

from __future__ import annotations

import numpy as np

from meshhub.builtin_plugins.step.recognition.patch_parameters import (
    RING_LOOPS,
    Frame,
    Piece,
    flatten_disc,
    project_piece,
    unroll_rectangle,
    unroll_ring,
    unroll_strip,
    wrap,
)
from meshhub.builtin_plugins.step.recognition.rim_curves import RimPoints
from meshhub.builtin_plugins.step.surfaces.arrays import TINY, lengths, normalize
from meshhub.builtin_plugins.step.surfaces.patch_fit import MIN_SPANS, FitPoints, fit_patch
from meshhub.builtin_plugins.step.surfaces.patches import DEGREE, Patch
from meshhub.model.scene import Float64

_RING_SPANS = 6
"""Spans of the first grid around a ring."""

_MIN_OPENNESS_RATIO = 0.2
"""Area of a piece seen along its mean normal over its area; that of a nearly closed piece is close to zero."""

_MAX_SPANS_RATIO = 0.5
"""Spans of the first grid along a strip over the corners on its rim; more slow CAD programs down."""

_MAX_FIRST_SPANS = 120
"""Spans of the first grid along a piece, at most; bounds the time."""


def measure_sagitta(piece: Piece) -> float:
    """Return the millimeters between most triangles and an arc with the turns at their edges."""
    count = len(piece.points)
    begin, end = piece.triangles.ravel(), piece.triangles[:, [1, 2, 0]].ravel()
    corner = piece.points[piece.triangles]
    cross = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    order, twins = np.argsort(begin * count + end), np.argsort(end * count + begin)
    keys, twin_keys = (begin * count + end)[order], (end * count + begin)[twins]
    place = np.minimum(np.searchsorted(keys, twin_keys), len(keys) - 1)
    is_pair = keys[place] == twin_keys
    one, other = twins[is_pair], order[place[is_pair]]
    normal = normalize(cross)
    turn = np.arccos(np.clip(np.einsum("ij,ij->i", normal[one // 3], normal[other // 3]), -1, 1))
    side = np.maximum(lengths(piece.points[end[one]] - piece.points[begin[one]]), TINY)
    return float(np.percentile(lengths(cross)[one // 3] / side * turn / 8, 90)) if len(one) else 0.0


def fit_surface(piece: Piece, rim: RimPoints, error: tuple[float, float]) -> Patch | None:
    """Return a patch within an error of the points of a piece; None if there is none.

    Args:
        piece: Triangles.
        rim: Points on the border of the piece.
        error: Millimeters that a point may lie off: desired, and allowed.
    """
    is_ring = piece.loop_count == RING_LOOPS
    fits = (_fit_strip, _fit_heights, *((_fit_ring,) if is_ring else (_fit_rectangle, _fit_disc)))
    return next((patch for fit in fits if (patch := fit(piece, rim, error)) is not None), None)


def _fit_heights(piece: Piece, rim: RimPoints, error: tuple[float, float]) -> Patch | None:
    """Return a patch over a plane; None if the piece overhangs it, or if no such patch is near its points."""
    projected = project_piece(piece)
    if projected is None:
        return None
    place, frame = projected
    between = rim.position @ frame.axes.T
    between[:, :2] = (between[:, :2] - frame.low) / frame.size
    place = np.concatenate([place, between])
    if place[:, :2].min() < 0 or place[:, :2].max() > 1:
        return None
    points = FitPoints(place[:, :2], place[:, 2:], np.zeros((len(place), 2), np.bool_))
    heights = fit_patch(points, error, is_closed=False, may_slide=False)
    return None if heights is None else _raise_heights(heights, frame)


def _fit_strip(piece: Piece, rim: RimPoints, error: tuple[float, float]) -> Patch | None:
    """Return a patch with straight rulings between two rims; None if the piece has other points."""
    parameters = unroll_strip(piece)
    if parameters is None:
        return None
    is_closed = piece.loop_count == RING_LOOPS
    points = _add_rim(piece, rim, parameters, is_closed=is_closed)
    spans = _limit_spans(_MAX_SPANS_RATIO * len(piece.points) / 4), 1
    # nothing but the rulings determines the middle of the strip
    return fit_patch(points, error, is_closed=is_closed, may_slide=False, first_spans=spans, aspect=np.inf)


def _fit_ring(piece: Piece, rim: RimPoints, error: tuple[float, float]) -> Patch | None:
    """Return a closed patch between two rims."""
    parameters = unroll_ring(piece)
    if parameters is None:
        return None
    points = _add_rim(piece, rim, parameters, is_closed=True)
    held = np.isin(points.parameters, (0.0, 1.0))
    held[:, 0] &= held[:, 1]
    around = float(lengths(piece.points[piece.rim[:, 1]] - piece.points[piece.rim[:, 0]]).sum()) / 2
    aspect = around**2 / _measure_area(piece)
    spans = _RING_SPANS, _limit_spans(_RING_SPANS / aspect)
    points = points._replace(held=held)
    return fit_patch(points, error, is_closed=True, may_slide=True, first_spans=spans, aspect=aspect)


def _fit_rectangle(piece: Piece, rim: RimPoints, error: tuple[float, float]) -> Patch | None:
    """Return an open patch that ends at the four sides of the piece; None if it has another shape."""
    parameters = unroll_rectangle(piece)
    if parameters is None:
        return None
    points = _add_rim(piece, rim, parameters, is_closed=False)
    points = points._replace(held=np.isin(points.parameters, (0.0, 1.0)))
    begin, end = piece.rim.T
    is_along = (parameters[begin, 1] == parameters[end, 1]) & np.isin(parameters[begin, 1], (0.0, 1.0))
    along = float(lengths(piece.points[end] - piece.points[begin])[is_along].sum()) / 2
    aspect = along**2 / _measure_area(piece)
    corners = int(is_along.sum()) / 2
    spans = _limit_spans(min(MIN_SPANS * aspect, _MAX_SPANS_RATIO * corners)), MIN_SPANS
    return fit_patch(points, error, is_closed=False, may_slide=True, first_spans=spans, aspect=aspect)


def _fit_disc(piece: Piece, rim: RimPoints, error: tuple[float, float]) -> Patch | None:
    """Return an open patch that may overhang, and reaches beyond the piece."""
    corner = piece.points[piece.triangles]
    cross = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    if float(np.linalg.norm(cross.sum(axis=0))) < _MIN_OPENNESS_RATIO * float(lengths(cross).sum()):
        return None
    parameters = flatten_disc(piece)
    if parameters is None:
        return None
    return fit_patch(_add_rim(piece, rim, parameters, is_closed=False), error, is_closed=False, may_slide=True)


def _add_rim(piece: Piece, rim: RimPoints, parameters: Float64, *, is_closed: bool) -> FitPoints:
    """Return the points of a piece with parameters (p, 2), and those on its border with parameters between these."""
    begin, end = (parameters[np.searchsorted(piece.number, corner)] for corner in (rim.begin, rim.end))
    step = end - begin
    if is_closed:
        step[:, 0] = wrap(step[:, 0])
    between = begin + rim.share[:, None] * step
    if is_closed:
        between[:, 0] %= 1.0
    place = np.concatenate([parameters, between])
    return FitPoints(place, np.concatenate([piece.points, rim.position]), np.zeros((len(place), 2), np.bool_))


def _measure_area(piece: Piece) -> float:
    """Return the area of a piece in mm²."""
    corner = piece.points[piece.triangles]
    return float(lengths(np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])).sum()) / 2


def _limit_spans(count: float) -> int:
    """Return a number of spans along a piece that are about as long as those across it."""
    return min(max(MIN_SPANS, round(count)), _MAX_FIRST_SPANS)


def _raise_heights(heights: Patch, frame: Frame) -> Patch:
    """Return the patch of heights (c, d, 1) over the box of a frame."""
    poles = np.empty((*heights.poles.shape[:2], 3))
    # a spline whose poles lie at the averages of its knots is linear
    for axis, knots in enumerate((heights.u_knots, heights.v_knots)):
        place = np.convolve(knots[1:-1], np.ones(DEGREE) / DEGREE, "valid")
        shape = (-1, 1) if axis == 0 else (1, -1)
        poles[..., axis] = (frame.low[axis] + frame.size[axis] * place).reshape(shape)
    poles[..., 2] = heights.poles[..., 0]
    return Patch(heights.u_knots, heights.v_knots, poles @ frame.axes)
