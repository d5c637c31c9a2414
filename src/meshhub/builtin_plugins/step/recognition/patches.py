"""Patches: tensor-product cubic B-spline surfaces, evaluated and related to points."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline
from scipy.spatial import cKDTree

from meshhub.builtin_plugins.step.recognition.arrays import lengths, normalize
from meshhub.builtin_plugins.step.recognition.profiles import DEGREE
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

ORDER = DEGREE + 1
"""Poles in each direction that a point of a patch depends on."""

_SAMPLES_PER_SPAN = 4
"""Samples between two knots in each direction; the nearest one is the start of Newton's method."""

_MAX_NEWTON_STEPS = 10
"""Newton steps to the nearest point; those beside a patch converge in three."""

_MAX_STEP_SPANS = 1.0
"""Spans between knots that a step may cross; a longer one starts too far from the nearest point."""

_CONVERGED_RATIO = 1e-9
"""Step in the parameters that ends the search; they run from 0 to 1."""

_BEYOND_RATIO = 0.001
"""Part of the diagonal of a patch by which points may lie beyond its border."""

_MIN_PARALLEL_RATIO = 0.1
"""Length of a parallel curve over that of the curve; zero at the centers of curvature."""

_MAX_RESULTS_COUNT = 24
"""Results that a patch keeps; a check takes up to a dozen points of each triangle."""

_TINY = 1e-300
"""Smallest divisor, so that a degenerate point does not divide by zero."""


class PatchPoints(NamedTuple):
    """Points relative to a patch.

    distance:      (n,) signed distance, positive on the side of the normal
    normal:        (n, 3) unit normal at the nearest point
    first, second: (n,) principal curvatures there, per unit; positive where the patch bends away from its normal
    """

    distance: Float64
    normal: Float64
    first: Float64
    second: Float64


class _Axis:
    """Basis of cubic B-splines over the parameters 0…1 in one direction."""

    def __init__(self, knots: Float64) -> None:
        self.breaks = np.unique(knots)
        count = len(knots) - ORDER
        self.first = np.clip(np.searchsorted(knots, self.breaks[:-1], side="right") - ORDER, 0, count - ORDER)
        share = np.arange(ORDER) / DEGREE
        parameter = self.breaks[:-1, None] + np.diff(self.breaks)[:, None] * share
        # the splines are continuous, so that their values at both ends of a span determine its polynomials
        values = BSpline(knots, np.eye(count), DEGREE)(parameter.ravel()).reshape(-1, ORDER, count)
        columns = self.first[:, None, None] + np.arange(ORDER)
        values = np.take_along_axis(values, np.broadcast_to(columns, (len(values), ORDER, ORDER)), axis=2)
        self._powers = np.linalg.solve(np.vander(share, increasing=True), values)

    def evaluate(self, parameter: Float64, derivatives: int) -> tuple[IntIndex, list[Float64]]:
        """Return the first pole (n,) at each parameter, and weights (n, 4): of values, slopes, second derivatives."""
        span = np.clip(np.searchsorted(self.breaks, parameter, side="right") - 1, 0, len(self.breaks) - 2)
        width = self.breaks[span + 1] - self.breaks[span]
        place = (parameter - self.breaks[span]) / width
        powers, one, zero = self._powers[span], np.ones_like(place), np.zeros_like(place)
        rows = [np.stack([one, place, place**2, place**3], axis=1)]
        rows.append(np.stack([zero, one, 2 * place, 3 * place**2], axis=1) / width[:, None])
        rows.append(np.stack([zero, zero, 2 * one, 6 * place], axis=1) / width[:, None] ** 2)
        return self.first[span], [np.einsum("ij,ijk->ik", row, powers) for row in rows[: derivatives + 1]]


@dataclass(frozen=True, eq=False)
class Patch:
    """A cubic B-spline surface over the parameters 0…1 × 0…1.

    u_knots, v_knots: (k,) and (l,) knots, the first and the last four times
    poles:            (k - 4, l - 4, 3) millimeters
    """

    u_knots: Float64
    v_knots: Float64
    poles: Float64

    @cached_property
    def _axes(self) -> tuple[_Axis, _Axis]:
        return _Axis(self.u_knots), _Axis(self.v_knots)

    @cached_property
    def _samples(self) -> tuple[Float64, cKDTree]:
        share = np.arange(_SAMPLES_PER_SPAN) / _SAMPLES_PER_SPAN
        grids = [
            np.append((axis.breaks[:-1, None] + np.diff(axis.breaks)[:, None] * share).ravel(), 1.0)
            for axis in self._axes
        ]
        parameters = np.stack(np.meshgrid(*grids, indexing="ij"), axis=-1).reshape(-1, 2)
        return parameters, cKDTree(self.evaluate(parameters))

    @cached_property
    def diagonal(self) -> float:
        """Millimeters between the corners of the bounding box of the poles."""
        return float(np.linalg.norm(np.ptp(self.poles.reshape(-1, 3), axis=0)))

    @property
    def is_closed(self) -> bool:
        """Whether the patch ends in its first direction where it begins."""
        return bool((self.poles[0] == self.poles[-1]).all())

    def evaluate(self, parameters: Float64) -> Float64:
        """Return the (n, 3) points at (n, 2) parameters."""
        return self.derive(parameters, 0)[0]

    def derive(self, parameters: Float64, derivatives: int) -> list[Float64]:
        """Return (n, 3) each: points, two first derivatives, three second derivatives, up to a number of them."""
        (u_first, u_weights), (v_first, v_weights) = (
            axis.evaluate(parameters[:, k], derivatives) for k, axis in enumerate(self._axes)
        )
        near = np.arange(ORDER)
        poles = self.poles[u_first[:, None, None] + near[:, None], v_first[:, None, None] + near]
        orders = [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2)]
        along = [np.einsum("ij,ijkl->ikl", weights, poles) for weights in u_weights]
        return [np.einsum("ik,ikl->il", v_weights[v], along[u]) for u, v in orders if u + v <= derivatives]

    def locate(self, points: Float64) -> Float64:
        """Return the (n, 2) parameters of the nearest points of the patch."""
        samples, tree = self._samples
        parameters: Float64 = samples[tree.query(points)[1]]
        reach = _MAX_STEP_SPANS * np.array([np.diff(axis.breaks).max() for axis in self._axes])
        is_closed, active = self.is_closed, np.arange(len(points))
        for _ in range(_MAX_NEWTON_STEPS):
            before = parameters[active]
            step = np.clip(self._newton_steps(before, points[active]), -reach, reach)
            after = before - step
            if is_closed:
                after[:, 0] %= 1.0
            after = np.clip(after, 0.0, 1.0)
            parameters[active] = after
            moved = np.abs(after - before)
            moved[:, 0] = np.where(is_closed, np.minimum(moved[:, 0], 1 - moved[:, 0]), moved[:, 0])
            active = active[moved.max(axis=1) > _CONVERGED_RATIO]
            if len(active) == 0:
                break
        return parameters

    def _newton_steps(self, parameters: Float64, points: Float64) -> Float64:
        """Return the (n, 2) steps of the Gauss–Newton method away from the nearest points."""
        place, along_u, along_v = self.derive(parameters, 1)
        offset = place - points
        uu, uv, vv = (
            np.einsum("ij,ij->i", a, b) for a, b in ((along_u, along_u), (along_u, along_v), (along_v, along_v))
        )
        u, v = np.einsum("ij,ij->i", offset, along_u), np.einsum("ij,ij->i", offset, along_v)
        # at the border, and on the way out, only steps along the border count
        u_only, v_only = (_leads_out(parameters[:, k], slope) for k, slope in ((1, v), (0, u)))
        u_only, v_only = u_only & ~v_only, v_only & ~u_only & (not self.is_closed)
        uv = np.where(u_only | v_only, 0.0, uv)
        determinant = np.maximum(uu * vv - uv**2, _TINY)
        return np.stack([(vv * u - uv * v) / determinant, (uu * v - uv * u) / determinant], axis=1)

    @cached_property
    def _related(self) -> dict[bytes, PatchPoints]:
        """Latest results of `relate`: volumes, deviations and checks ask for the same points."""
        return {}

    def relate(self, points: Float64) -> PatchPoints:
        """Return (n, 3) points relative to the patch."""
        key = blake2b(np.ascontiguousarray(points).data, digest_size=16).digest()
        result = self._related.pop(key, None) or self._relate(points)
        if len(self._related) >= _MAX_RESULTS_COUNT:
            del self._related[next(iter(self._related))]
        self._related[key] = result
        return result

    def _relate(self, points: Float64) -> PatchPoints:
        parameters = self.locate(points)
        place, u, v, uu, uv, vv = self.derive(parameters, 2)
        normal = normalize(np.cross(u, v))
        offset = points - place
        distance = np.einsum("ij,ij->i", offset, normal)
        aside = lengths(offset - distance[:, None] * normal)
        excess = aside - _BEYOND_RATIO * self.diagonal
        distance += np.copysign(np.maximum(excess, 0.0), distance)
        first, second = _principal_curvatures(u, v, normal, (uu, uv, vv))
        first, second = (
            curvature / np.maximum(1 + distance * curvature, _MIN_PARALLEL_RATIO) for curvature in (first, second)
        )
        return PatchPoints(distance, normal, first, second)


def _leads_out(parameter: Float64, slope: Float64) -> NDArray[np.bool_]:
    """Return (n,) whether parameters are at an end of 0…1, and steps against the slope lead beyond it."""
    result: NDArray[np.bool_] = ((parameter <= 0) & (slope > 0)) | ((parameter >= 1) & (slope < 0))
    return result


def _principal_curvatures(
    u: Float64, v: Float64, normal: Float64, second: tuple[Float64, Float64, Float64]
) -> tuple[Float64, Float64]:
    """Return (n,) and (n,) principal curvatures from derivatives (n, 3); positive away from the normal.

    Source:
        do Carmo, Differential Geometry of Curves and Surfaces, 1976, §3-3.
    """
    e, f, g = (np.einsum("ij,ij->i", a, b) for a, b in ((u, u), (u, v), (v, v)))
    uu, uv, vv = (-np.einsum("ij,ij->i", derivative, normal) for derivative in second)
    determinant = np.maximum(e * g - f**2, _TINY)
    mean = (e * vv - 2 * f * uv + g * uu) / (2 * determinant)
    spread = np.sqrt(np.maximum(mean**2 - (uu * vv - uv**2) / determinant, 0.0))
    return mean + spread, mean - spread
