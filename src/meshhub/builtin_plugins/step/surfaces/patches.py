"""Patches: tensor-product cubic B-spline surfaces, evaluated and related to points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline
from scipy.spatial import cKDTree

from meshhub.builtin_plugins.step.surfaces.arrays import TINY, lengths, normalize
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

DEGREE = 3
"""Degree of a patch in both directions."""

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

_AXIS_STEP = 2.0
"""Distance between the parameters of different patches on a common axis; those of one patch run from 0 to 1."""

_CHUNK_COUNT = 1 << 16
"""Points at once; bounds the memory."""


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
        self.powers = np.linalg.solve(np.vander(share, increasing=True), values)


class _Axes:
    """Bases of several patches in one direction, evaluated together."""

    def __init__(self, axes: list[_Axis]) -> None:
        self._breaks = np.concatenate([axis.breaks for axis in axes])
        count = np.array([len(axis.breaks) for axis in axes])
        self._begin = np.cumsum(count) - count
        self._last = self._begin + count - 2
        # the last break of a patch begins no span
        self._first = np.concatenate([np.append(axis.first, 0) for axis in axes])
        self._powers = np.concatenate([[*axis.powers, np.zeros((ORDER, ORDER))] for axis in axes])
        self._width = np.append(np.diff(self._breaks), 0.0)
        self._shifted = self._breaks + _AXIS_STEP * np.repeat(np.arange(len(axes)), count)
        self.reach = np.maximum.reduceat(np.where(self._width > 0, self._width, 0.0), self._begin)

    def evaluate(self, owner: IntIndex, parameter: Float64, derivatives: int) -> tuple[IntIndex, list[Float64]]:
        """Return the first pole (n,) at the parameters of patches (n,), and weights (n, 4): of values, slopes, …"""
        span = np.searchsorted(self._shifted, parameter + _AXIS_STEP * owner, side="right") - 1
        span = np.clip(span, self._begin[owner], self._last[owner])
        width = self._width[span]
        place = (parameter - self._breaks[span]) / width
        powers, one, zero = self._powers[span], np.ones_like(place), np.zeros_like(place)
        rows = [np.stack([one, place, place**2, place**3], axis=1)]
        rows.append(np.stack([zero, one, 2 * place, 3 * place**2], axis=1) / width[:, None])
        rows.append(np.stack([zero, zero, 2 * one, 6 * place], axis=1) / width[:, None] ** 2)
        return self._first[span], [np.einsum("ij,ijk->ik", row, powers) for row in rows[: derivatives + 1]]


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
    def axes(self) -> tuple[_Axis, _Axis]:
        """Bases in both directions."""
        return _Axis(self.u_knots), _Axis(self.v_knots)

    @cached_property
    def samples(self) -> tuple[Float64, cKDTree]:
        """Parameters (s, 2) of points all over the patch, and the tree of these points."""
        share = np.arange(_SAMPLES_PER_SPAN) / _SAMPLES_PER_SPAN
        grids = [
            np.append((axis.breaks[:-1, None] + np.diff(axis.breaks)[:, None] * share).ravel(), 1.0)
            for axis in self.axes
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

    @cached_property
    def _alone(self) -> PatchPool:
        return PatchPool([self])

    def evaluate(self, parameters: Float64) -> Float64:
        """Return the (n, 3) points at (n, 2) parameters."""
        return self.derive(parameters, 0)[0]

    def derive(self, parameters: Float64, derivatives: int) -> list[Float64]:
        """Return (n, 3) each: points, two first derivatives, three second derivatives, up to a number of them."""
        return self._alone.derive(np.zeros(len(parameters), np.intp), parameters, derivatives)

    def locate(self, points: Float64) -> Float64:
        """Return the (n, 2) parameters of the nearest points of the patch."""
        return self._alone.locate(np.zeros(len(points), np.intp), points)

    @cached_property
    def related(self) -> dict[bytes, PatchPoints]:
        """Latest results of `relate_points`: volumes, deviations and checks ask for the same points."""
        return {}

    def relate(self, points: Float64) -> PatchPoints:
        """Return (n, 3) points relative to the patch."""
        return relate_points([(self, points)])[0]


def relate_points(parts: Sequence[tuple[Patch, Float64]]) -> list[PatchPoints]:
    """Return points (n, 3) of each patch relative to it.

    Args:
        parts: Different patches, and points in millimeters.
    """
    keys = [blake2b(np.ascontiguousarray(points).data, digest_size=16).digest() for _, points in parts]
    results = [patch.related.pop(key, None) for (patch, _), key in zip(parts, keys, strict=True)]
    missing = [number for number, result in enumerate(results) if result is None]
    if missing:
        sizes = [len(parts[number][1]) for number in missing]
        pool = parts[missing[0]][0]._alone if len(missing) == 1 else PatchPool([parts[number][0] for number in missing])
        related = pool.relate(np.repeat(np.arange(len(missing)), sizes), np.concatenate([parts[n][1] for n in missing]))
        columns = [np.split(column, np.cumsum(sizes)[:-1]) for column in related]
        for number, *values in zip(missing, *columns, strict=True):
            results[number] = PatchPoints(*values)
    found = [result for result in results if result is not None]
    for (patch, _), key, result in zip(parts, keys, found, strict=True):
        if len(patch.related) >= _MAX_RESULTS_COUNT:
            del patch.related[next(iter(patch.related))]
        patch.related[key] = result
    return found


class PatchPool:
    """Patches that are evaluated together: many with few points each take little longer than one."""

    def __init__(self, patches: list[Patch]) -> None:
        self._patches = patches
        self._axes = tuple(_Axes([patch.axes[k] for patch in patches]) for k in range(2))
        self._poles = np.concatenate([patch.poles.reshape(-1, 3) for patch in patches])
        size = np.array([len(patch.poles) * patch.poles.shape[1] for patch in patches])
        self._begin = np.cumsum(size) - size
        self._columns = np.array([patch.poles.shape[1] for patch in patches])
        self.is_closed = np.array([patch.is_closed for patch in patches], np.bool_)
        """(p,) whether each patch ends in its first direction where it begins."""

    def derive(self, owner: IntIndex, parameters: Float64, derivatives: int) -> list[Float64]:
        """Return what `Patch.derive` does, at parameters (n, 2) of patches (n,)."""
        (u_first, u_weights), (v_first, v_weights) = (
            axes.evaluate(owner, parameters[:, k], derivatives) for k, axes in enumerate(self._axes)
        )
        near, columns = np.arange(ORDER), self._columns[owner]
        corner = self._begin[owner] + u_first * columns + v_first
        poles = self._poles[corner[:, None, None] + near[:, None] * columns[:, None, None] + near]
        orders = [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2)]
        along = [np.einsum("ij,ijkl->ikl", weights, poles) for weights in u_weights]
        return [np.einsum("ik,ikl->il", v_weights[v], along[u]) for u, v in orders if u + v <= derivatives]

    def locate(self, owner: IntIndex, points: Float64) -> Float64:
        """Return the (n, 2) parameters of the points of patches (n,), ascending, nearest to points (n, 3)."""
        return np.concatenate([self._locate(owner[step], points[step]) for step in _chunks(len(points))])

    def _locate(self, owner: IntIndex, points: Float64) -> Float64:
        parameters = np.empty((len(points), 2))
        bounds = np.searchsorted(owner, np.arange(len(self._patches) + 1))
        for patch, (start, stop) in zip(self._patches, pairwise(bounds.tolist()), strict=True):
            samples, tree = patch.samples
            parameters[start:stop] = samples[tree.query(points[start:stop])[1]]
        reach = _MAX_STEP_SPANS * np.stack([axes.reach for axes in self._axes], axis=1)
        is_closed, active = self.is_closed[owner], np.arange(len(points))
        for _ in range(_MAX_NEWTON_STEPS):
            before, patch_number = parameters[active], owner[active]
            step = self._newton_steps(patch_number, before, points[active])
            after = before - np.clip(step, -reach[patch_number], reach[patch_number])
            closed = is_closed[active]
            after[closed, 0] %= 1.0
            after = np.clip(after, 0.0, 1.0)
            parameters[active] = after
            moved = np.abs(after - before)
            moved[:, 0] = np.where(closed, np.minimum(moved[:, 0], 1 - moved[:, 0]), moved[:, 0])
            active = active[moved.max(axis=1) > _CONVERGED_RATIO]
            if len(active) == 0:
                break
        return parameters

    def _newton_steps(self, owner: IntIndex, parameters: Float64, points: Float64) -> Float64:
        """Return the (n, 2) steps of the Gauss–Newton method away from the nearest points."""
        place, along_u, along_v = self.derive(owner, parameters, 1)
        offset = place - points
        uu, uv, vv = (
            np.einsum("ij,ij->i", a, b) for a, b in ((along_u, along_u), (along_u, along_v), (along_v, along_v))
        )
        u, v = np.einsum("ij,ij->i", offset, along_u), np.einsum("ij,ij->i", offset, along_v)
        # at the border, and on the way out, only steps along the border count
        u_only, v_only = (_leads_out(parameters[:, k], slope) for k, slope in ((1, v), (0, u)))
        u_only, v_only = u_only & ~v_only, v_only & ~u_only & ~self.is_closed[owner]
        uv = np.where(u_only | v_only, 0.0, uv)
        determinant = np.maximum(uu * vv - uv**2, TINY)
        return np.stack([(vv * u - uv * v) / determinant, (uu * v - uv * u) / determinant], axis=1)

    def relate(self, owner: IntIndex, points: Float64) -> PatchPoints:
        """Return points (n, 3) relative to patches (n,), ascending."""
        parts = [self._relate(owner[step], points[step]) for step in _chunks(len(points))]
        return PatchPoints(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _relate(self, owner: IntIndex, points: Float64) -> PatchPoints:
        parameters = self._locate(owner, points)
        place, u, v, uu, uv, vv = self.derive(owner, parameters, 2)
        normal = normalize(np.cross(u, v))
        offset = points - place
        distance = np.einsum("ij,ij->i", offset, normal)
        aside = lengths(offset - distance[:, None] * normal)
        excess = aside - _BEYOND_RATIO * np.array([patch.diagonal for patch in self._patches])[owner]
        distance += np.copysign(np.maximum(excess, 0.0), distance)
        first, second = _principal_curvatures(u, v, normal, (uu, uv, vv))
        first, second = (
            curvature / np.maximum(1 + distance * curvature, _MIN_PARALLEL_RATIO) for curvature in (first, second)
        )
        return PatchPoints(distance, normal, first, second)


def _chunks(count: int) -> list[slice]:
    return [slice(start, start + _CHUNK_COUNT) for start in range(0, max(count, 1), _CHUNK_COUNT)]


def _leads_out(parameter: Float64, slope: Float64) -> NDArray[np.bool_]:
    """Return the mask (n,) of parameters at an end of 0…1 from which steps against the slope lead beyond it."""
    result: NDArray[np.bool_] = ((parameter <= 0) & (slope > 0)) | ((parameter >= 1) & (slope < 0))
    return result


def _principal_curvatures(
    u: Float64, v: Float64, normal: Float64, second: tuple[Float64, Float64, Float64]
) -> tuple[Float64, Float64]:
    """Return both principal curvatures (n,) from derivatives (n, 3); positive away from the normal.

    Source:
        do Carmo, Differential Geometry of Curves and Surfaces, 1976, §3-3.
    """
    e, f, g = (np.einsum("ij,ij->i", a, b) for a, b in ((u, u), (u, v), (v, v)))
    uu, uv, vv = (-np.einsum("ij,ij->i", derivative, normal) for derivative in second)
    determinant = np.maximum(e * g - f**2, TINY)
    mean = (e * vv - 2 * f * uv + g * uu) / (2 * determinant)
    spread = np.sqrt(np.maximum(mean**2 - (uu * vv - uv**2) / determinant, 0.0))
    return mean + spread, mean - spread
