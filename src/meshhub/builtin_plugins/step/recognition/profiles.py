"""Profiles: plane cubic B-splines that sweep along a line or around an axis."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline, insert, make_interp_spline, splprep
from scipy.spatial import cKDTree

from meshhub.model.scene import Float64

DEGREE = 3
"""Degree of the splines; the smallest one with continuous curvature."""

_SAMPLES_PER_SPAN = 8
"""Samples between two knots; the nearest one is the start of Newton's method."""

_MAX_NEWTON_STEPS = 8
"""Newton steps to the nearest point; they converge quadratically."""

_BEYOND_RATIO = 0.001
"""Part of the length of a curve by which points may lie beyond its ends."""

_MIN_NOISY_COUNT = 200
"""Points of a profile from which noise is looked for first; the fit of a spline to many takes long."""

_NOISE_RATIO = 0.05
"""Distance of points from the curve through their neighbors over the distance to these; it is less on arcs of 30°."""

_RESIDUAL_RATIOS = (1 / 3, 1 / 6, 1 / 12)
"""Root mean squares of the distances from a fitted curve over the tolerance, of which the first one succeeds that
keeps all distances within the tolerance."""

_MAX_FIT_COUNT = 1000
"""Points of a fit, whose time grows with their square; all points are checked."""

_MAX_MISS_RATIO = 2.0
"""Tolerances that a point may lie off a curve that was fitted to others."""

_MAX_DRAFT_RATIO = 0.1
"""Distance of a point from the curve through points that are apart, over their distance; more is not a curve."""

_WRAP_COUNT = 8
"""Points beyond each end of a closed curve that the fit includes, so that the curve is smooth at its ends."""

_MAX_SAGITTA_RATIO = 2.0
"""Sagitta of a curve over that of an arc with the same turn; a larger one is an overshoot."""

_TINY = 1e-300
"""Smallest divisor, so that a span of length zero does not divide by zero."""


class ProfilePoints(NamedTuple):
    """Points in the plane of a profile relative to it.

    distance:  (n,) signed distance from the curve, positive on the right of its direction
    normal:    (n, 2) unit vector to the right of the curve at its nearest point
    curvature: (n,) of the curve at its nearest point, per unit; positive where it bends away from the normal
    """

    distance: Float64
    normal: Float64
    curvature: Float64


@dataclass(frozen=True, eq=False)
class Profile:
    """A plane cubic B-spline over the parameters 0…1, straight beyond its ends.

    knots:  (k,) knots, the first and the last four times
    poles:  (k - 4, 2) millimeters
    x_axis: (3,) unit vector along the first coordinate; not used by surfaces of revolution
    """

    knots: Float64
    poles: Float64
    x_axis: Float64

    @cached_property
    def _curve(self) -> BSpline:
        return BSpline(self.knots, self.poles, DEGREE)

    @cached_property
    def _derivatives(self) -> tuple[BSpline, BSpline]:
        return self._curve.derivative(), self._curve.derivative(2)

    @cached_property
    def _samples(self) -> tuple[Float64, cKDTree]:
        breaks = np.unique(self.knots)
        share = np.arange(_SAMPLES_PER_SPAN) / _SAMPLES_PER_SPAN
        parameter = np.append((breaks[:-1, None] + np.diff(breaks)[:, None] * share).ravel(), 1.0)
        return parameter, cKDTree(self._curve(parameter))

    @cached_property
    def _reach_beyond(self) -> float:
        """Millimeters beyond the ends that still belong to the curve; rounding moves points by less."""
        chord = np.hypot(*np.diff(self._curve(np.unique(self.knots)), axis=0).T)
        return float(chord.sum()) * _BEYOND_RATIO

    @property
    def is_closed(self) -> bool:
        """Whether the curve ends where it begins."""
        return bool((self.poles[0] == self.poles[-1]).all())

    def evaluate(self, parameter: Float64) -> Float64:
        """Return the (n, 2) points at (n,) parameters."""
        points: Float64 = self._curve(parameter)
        return points

    def locate(self, points: Float64) -> Float64:
        """Return the (n,) parameters of the nearest points of the curve."""
        samples, tree = self._samples
        parameter: Float64 = samples[tree.query(points)[1]]
        first, second = self._derivatives
        for _ in range(_MAX_NEWTON_STEPS):
            offset = self._curve(parameter) - points
            tangent = first(parameter)
            speed = np.einsum("ij,ij->i", tangent, tangent)
            slope = speed + np.einsum("ij,ij->i", offset, second(parameter))
            # far from the curve, on the inner side of a bend, Newton's method would leave the minimum
            slope = np.where(slope > speed / 2, slope, speed)
            step = np.einsum("ij,ij->i", offset, tangent) / np.maximum(slope, _TINY)
            parameter = np.clip(parameter - step, 0.0, 1.0)
        return parameter

    def relate(self, points: Float64) -> ProfilePoints:
        """Return (n, 2) points relative to the curve."""
        parameter = self.locate(points)
        first, second = (derivative(parameter) for derivative in self._derivatives)
        speed = np.maximum(np.hypot(*first.T), _TINY)
        normal = np.stack([first[:, 1], -first[:, 0]], axis=1) / speed[:, None]
        offset = points - self._curve(parameter)
        distance = np.einsum("ij,ij->i", offset, normal)
        excess = np.abs(offset[:, 0] * normal[:, 1] - offset[:, 1] * normal[:, 0]) - self._reach_beyond
        distance += np.copysign(np.maximum(excess, 0.0), distance)
        curvature = (first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0]) / speed**3
        is_beyond = (parameter <= 0) | (parameter >= 1)
        return ProfilePoints(distance, normal, np.where(is_beyond, 0.0, curvature))


def fit_profile(points: Float64, x_axis: Float64, tolerance: float, *, is_closed: bool) -> Profile | None:
    """Return a profile with few knots through some points; None if they do not lie on a smooth curve.

    Args:
        points: (n, 2) distinct points, roughly in order, at least five.
        x_axis: (3,) unit vector along the first coordinate.
        tolerance: Millimeters that a point may lie off the curve.
        is_closed: Whether the curve returns to its first point; it is smooth there, too.
    Source:
        Choice of knots: Dierckx, Curve and Surface Fitting with Splines, 1993.
    """
    sorted_points = _sort_along_curve(np.concatenate([points, points[:1]]) if is_closed else points)
    if sorted_points is None:
        return None
    all_points, points = points, _thin_to(sorted_points[: len(points)], _MAX_FIT_COUNT)
    first, last = 0, len(points) - 1
    if is_closed:
        wrap = min(_WRAP_COUNT, len(points) - 1)
        first, last = wrap, wrap + len(points)
        points = np.concatenate([points[-wrap:], points, points[: wrap + 1]])
    parameter = _chord_lengths(points)
    if (np.diff(parameter) <= 0).any() or len(points) <= DEGREE + 1:
        return None
    if len(points) > _MIN_NOISY_COUNT and _is_noisy(points, parameter):
        return None
    for ratio in _RESIDUAL_RATIOS:
        smoothing = len(points) * (tolerance * ratio) ** 2
        with warnings.catch_warnings():
            # it warns of each smoothing that it does not reach; the distances are compared below
            warnings.simplefilter("ignore", RuntimeWarning)
            (knots, coefficients, _), *_ = splprep(points.T, u=parameter, k=DEGREE, s=smoothing, quiet=1)
        curve = BSpline(knots, np.stack(coefficients, axis=1), DEGREE)
        if float(np.hypot(*(curve(parameter) - points).T).max()) <= tolerance:
            break
    else:
        return None
    start, stop = float(parameter[first]), float(parameter[last])
    knots, poles = _cut_spline(np.asarray(curve.t), np.asarray(curve.c), start, stop)
    points, parameter = points[first : last + 1], (parameter[first : last + 1] - start) / (stop - start)
    poles[[0, -1]] = points[[0, -1]]
    profile = Profile(knots, poles, x_axis)
    is_off = float(np.abs(profile.relate(all_points).distance).max()) > _MAX_MISS_RATIO * tolerance
    return None if is_off or _overshoots(profile, points, parameter, tolerance) else profile


def _is_noisy(points: Float64, parameter: Float64) -> bool:
    """Return whether half of (n, 2) points are far from the smooth curve through the points between them."""
    between = make_interp_spline(parameter[::2], points[::2], k=DEGREE)
    inner = slice(1, len(points) - 1, 2)
    off = np.hypot(*(np.asarray(between(parameter[inner])) - points[inner]).T)
    spacing = np.median(np.hypot(*np.diff(points, axis=0).T))
    return bool(np.median(off) > _NOISE_RATIO * spacing)


def _thin_to(points: Float64, count: int) -> Float64:
    """Return at most a number of (n, 2) points at even steps, with the first and the last one."""
    return points[np.unique(np.linspace(0, len(points) - 1, min(count, len(points))).astype(np.intp))]


def _sort_along_curve(points: Float64) -> Float64 | None:
    """Sort (n, 2) points between the first and the last one along a smooth curve; None if they are far from one.

    Points close together can be out of order. They are sorted along a curve through points that are apart.
    """
    chord = np.hypot(*np.diff(points, axis=0).T)
    gap = float(np.median(chord))
    apart = _thin_out(np.concatenate([[0.0], np.cumsum(chord)]), gap)
    if len(apart) <= DEGREE + 1:
        return points
    draft = make_interp_spline(_chord_lengths(points[apart]), points[apart], k=DEGREE)
    profile = Profile(np.asarray(draft.t, np.float64), np.asarray(draft.c, np.float64), np.zeros(3))
    inner = points[1:-1]
    spacing = float(np.hypot(*np.diff(points[apart], axis=0).T).max())
    if float(np.abs(profile.relate(inner).distance).max()) > _MAX_DRAFT_RATIO * spacing:
        return None
    return np.concatenate([points[:1], inner[np.argsort(profile.locate(inner), kind="stable")], points[-1:]])


def _cut_spline(knots: Float64, poles: Float64, start: float, stop: float) -> tuple[Float64, Float64]:
    """Return the knots and poles of the part of a cubic spline between two parameters, over the parameters 0…1.

    Source:
        Knot insertion: Boehm, "Inserting new knots into B-spline curves", Computer-Aided Design 12, 1980.
    """
    columns = list(poles.T)
    for parameter in (start, stop):
        missing = DEGREE - int(np.count_nonzero(knots == parameter))
        if missing > 0:
            knots, columns, _ = insert(parameter, (knots, columns, DEGREE), m=missing)
    low, high = int(np.searchsorted(knots, start)), int(np.searchsorted(knots, stop))
    # the ends of the whole spline have one knot more
    low += int(np.count_nonzero(knots == start)) - DEGREE
    part = np.concatenate([[start], knots[low : high + DEGREE], [stop]])
    return (part - start) / (stop - start), np.stack(columns, axis=1)[low - 1 : high].copy()


def _chord_lengths(points: Float64) -> Float64:
    """Return the (n,) lengths of a polyline up to each point, divided by its whole length."""
    chord = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))])
    return chord / max(float(chord[-1]), _TINY)


def _thin_out(position: Float64, gap: float) -> NDArray[np.intp]:
    """Return members of an ascending array, at least a gap apart, with its first and its last one."""
    kept = [0]
    for index in range(1, len(position) - 1):
        if position[index] - position[kept[-1]] >= gap and position[-1] - position[index] >= gap:
            kept.append(index)
    return np.array([*kept, len(position) - 1])


def _overshoots(profile: Profile, points: Float64, parameter: Float64, tolerance: float) -> bool:
    """Return whether a curve leaves a chord between two points farther than arcs with the turns of the polyline."""
    chord = np.diff(points, axis=0)
    width = np.hypot(*chord.T)
    before, after = chord[:-1], chord[1:]
    turn = np.arctan2(
        np.abs(before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0]), np.einsum("ij,ij->i", before, after)
    )
    noise = 2 * tolerance * (1 / width[:-1] + 1 / width[1:])
    bend = (turn + noise) / ((width[:-1] + width[1:]) / 2)
    bend = np.maximum(np.concatenate([bend[:1], bend]), np.concatenate([bend, bend[-1:]]))
    share = np.array([0.25, 0.5, 0.75])
    between = parameter[:-1, None] + np.diff(parameter)[:, None] * share
    offset = profile.evaluate(between.ravel()).reshape(-1, len(share), 2) - points[:-1, None]
    across = np.stack([-chord[:, 1], chord[:, 0]], axis=1) / np.maximum(width, _TINY)[:, None]
    sagitta = np.abs(np.einsum("ijk,ik->ij", offset, across)).max(axis=1)
    return bool((sagitta > _MAX_SAGITTA_RATIO * bend * width**2 / 8 + 2 * tolerance).any())
